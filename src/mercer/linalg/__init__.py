"""Factorisations, triangular solves, quadrature, and the compiled loops."""

from mercer.linalg.cholesky import (
    JITTERS,
    Factorisation,
    cholesky,
    inverse_lower,
    semidefinite_root,
    update_lower,
)
from mercer.linalg.loops import PROFILES, loops
from mercer.linalg.triangular import mirror_lower, product, solve_lower

__all__ = [
    "JITTERS",
    "PROFILES",
    "Factorisation",
    "cholesky",
    "inverse_lower",
    "loops",
    "mirror_lower",
    "product",
    "semidefinite_root",
    "solve_lower",
    "update_lower",
]
