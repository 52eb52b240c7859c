"""Factorisations, triangular solves, quadrature, and the compiled loops."""

from mercer.linalg.cholesky import JITTERS, Factorisation, cholesky, inverse_lower, solve_with
from mercer.linalg.loops import loops
from mercer.linalg.triangular import solve_lower

__all__ = [
    "JITTERS",
    "Factorisation",
    "cholesky",
    "inverse_lower",
    "loops",
    "solve_lower",
    "solve_with",
]
