"""Gaussian quadrature of the logarithm by the tridiagonal matrices of conjugate gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from mercer.inference._conjugate import Coefficients

__all__ = ["log_quadrature"]

Floats = NDArray[np.float64]

# Below the spectrum of P^-1/2 Q P^-1/2, which is from 1 on: far enough that rounding is no matter.
_BELOW = 0.5


def log_quadrature(coefficients: Coefficients) -> tuple[float, float]:
    """Return u' ln(P^-1/2 Q P^-1/2) u, u the unit vector along P^-1/2 z, and what it is above that.

    Conjugate gradients on Q a = z, preconditioned by P, are a Lanczos process on P^-1/2 Q P^-1/2
    that starts from u. Its tridiagonal matrix T has the coefficients of theirs, and e'ln(T)e, e the
    first unit vector, is the quadrature of Gauss: the first 2k moments of the spectrum are right
    after k steps (Golub and Welsch). It is not below the value, since even derivatives of the
    logarithm are negative; that of Radau, with a node below the spectrum, is not above it (Golub
    and Meurant). The second number returned is the distance between them.
    """
    if not coefficients:  # a vector of zeros
        return 0.0, 0.0
    steps, conjugations = np.array(coefficients).T
    conjugations = np.maximum(conjugations, 0.0)
    diagonal = 1.0 / steps
    diagonal[1:] += conjugations[:-1] / steps[:-1]
    beside = np.sqrt(conjugations) / steps
    values, vectors = eigh_tridiagonal(diagonal, beside[:-1])
    gauss = _logarithm(values, vectors)
    # the next element of the diagonal, such that the node is an eigenvalue
    distances = np.maximum(values - _BELOW, np.finfo(float).eps)
    last = _BELOW + beside[-1] ** 2 * float(vectors[-1] ** 2 @ (1.0 / distances))
    radau = _logarithm(*eigh_tridiagonal(np.append(diagonal, last), beside))
    return gauss, max(0.0, gauss - radau)


def _logarithm(values: Floats, vectors: Floats) -> float:
    """Return e'ln(T)e; T is positive definite."""
    return float(vectors[0] ** 2 @ np.log(np.maximum(values, np.finfo(float).tiny)))
