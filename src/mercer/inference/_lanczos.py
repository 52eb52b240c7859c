"""Gaussian quadrature of the logarithm by the tridiagonal matrices of conjugate gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from mercer.inference._conjugate import Coefficients

__all__ = ["log_quadrature"]

Floats = NDArray[np.float64]


def log_quadrature(coefficients: Coefficients) -> float:
    """Return u' ln(P^-1/2 Q P^-1/2) u, u the unit vector along P^-1/2 z.

    Conjugate gradients on Q a = z, preconditioned by P, are a Lanczos process on P^-1/2 Q P^-1/2
    that starts from u. Its tridiagonal matrix T has the coefficients of theirs, and e'ln(T)e, e the
    first unit vector, is the quadrature of Gauss: the first 2k moments of the spectrum are right
    after k steps (Golub and Welsch).
    """
    steps = np.array(coefficients.steps)
    if not steps.size:  # a vector of zeros
        return 0.0
    conjugations = np.array(coefficients.conjugations[:-1])
    diagonal = 1.0 / steps
    diagonal[1:] += conjugations / steps[:-1]
    values, vectors = eigh_tridiagonal(diagonal, np.sqrt(np.maximum(conjugations, 0)) / steps[:-1])
    # T is positive definite, its eigenvalues within those of a matrix from 1 on.
    return float(vectors[0] ** 2 @ np.log(np.maximum(values, np.finfo(float).tiny)))
