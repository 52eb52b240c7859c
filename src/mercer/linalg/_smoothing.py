import math
from numba import njit, float64, int64, types
from mercer.linalg._elementary import COMMON
G = types.Array(float64, 1, "C", readonly=True)
@njit(types.UniTuple(float64, 3)(int64, G, float64, float64, float64), **COMMON)
def smoothed(kind, p, y, mean, var):
    t = p[0] + var
    d = y - mean
    return -0.5*(d*d/t + math.log(2*math.pi*t)), d/t, -1.0/t
