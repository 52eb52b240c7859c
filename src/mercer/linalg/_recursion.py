"""Rows of a block into a sparse posterior, compiled; import through `mercer.linalg.recursion`.

What is computed, and why it is right, is written in the NumPy twin, `_recursion_twins`. Of
symmetric matrices lower triangles are read and written (`_recursion_matrices`).
"""

from __future__ import annotations

import math

from numba import int64, njit, types

from mercer.linalg._elementary import MAP, GivenVector
from mercer.linalg._recursion_matrices import Matrix, Vector
from mercer.linalg._recursion_steps import (
    Choice,
    State,
    cheapest,
    forget,
    learn,
    predict,
    remove,
)
from mercer.linalg._smoothing import powered
from mercer.linalg.recursion import Block
from mercer.linalg.smoothing import SITES

__all__ = ["advance", "cheapest", "forget", "learn", "predict", "remove"]

_Block = types.NamedTuple(
    (Matrix, Vector, Matrix, Matrix, Matrix, Vector, Matrix, Matrix, Vector), Block
)
#: Whether `advance` goes over the rows of a block by itself.
COMPILED = True
_GAUSSIAN = SITES.index("gaussian")


@njit(int64(State, Choice, _Block, int64, GivenVector, int64, int64), **MAP)
def advance(A, rules, block, kind, parameters, old, start):  # type: ignore[no-untyped-def]
    """Learn the rows of a block from `start` on, in their order, by a compiled site.

    Returns the row to go on with: the number of rows, or less where Q and P are to be made anew
    first. `old` is the number of the block's columns that are of points there were before.
    """
    outputs, covariances = A.mu.shape[0], A.S.shape[0]
    for i in range(start, block.y.shape[0]):
        if block.weights[i] == 0.0:
            continue
        steps = 1 if kind == _GAUSSIAN else math.ceil(block.weights[i])
        power = block.weights[i] / steps
        for step in range(steps):
            if rules.keep < 1.0 and step == 0:
                forget(A, rules.keep)
            for j in range(A.whole[0]):
                A.k[j] = block.kernel[i, A.source[j]]
            for j in range(block.features.shape[1]):
                A.e[j] = block.features[i, j]
            gamma = predict(A, block.variances[i], rules.floor)
            total = 0.0
            ok = True
            for p in range(outputs):
                c = p if covariances > 1 else 0
                mean, var = A.mean[p] + block.offsets[i, p], gamma + A.spread[c]
                value, A.q[p], A.r[c] = powered(kind, parameters, block.y[i, p], mean, var, power)
                total += value
                ok = ok and math.isfinite(value + A.q[p] + A.r[c])
                if step == 0:
                    block.mean[i, p], block.spread[i, c] = mean, var
            if not ok:
                if step == 0:
                    block.log_density[i] = math.nan
                break  # what the steps before have said of it stays, and counts
            block.log_density[i] += total
            A.sums[1] += total
            A.sums[2] += power
            learn(A, rules, block.variances[i], gamma, old + i)
        if A.whole[2]:
            return i + 1
    return block.y.shape[0]
