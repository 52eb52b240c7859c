"""What unsolved parts, probes and rounding may take from results of the iterative engine.

All is in units of the noise, Q = K + 1. With a near Q^-1 b, r = b - Q a, and P <= Q,

    0 <= b'Q^-1 b - a'(b + r) = r'Q^-1 r <= r'P^-1 r.

Rounding takes part where K is large beside the noise. With d the roots of the diagonal of K, sums
that make K a round by some units of d (d'|a|), and V V' is above K by some units of tr K = |d|^2 at
most: P <= Q + e <= (1 + e) Q.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._conjugate import Coefficients
from mercer.inference._iterative_mean import Estimate
from mercer.inference._lanczos import log_quadrature
from mercer.inference._preconditioner import Preconditioner

__all__ = ["LogRatio", "Quadratics", "log_ratio", "quadratics", "rounding_of", "unsolved"]

Floats = NDArray[np.float64]


class Quadratics(NamedTuple):
    """What b'Q^-1 b lies between, (k,) each."""

    lower: Floats
    upper: Floats


class LogRatio(NamedTuple):
    """An estimate of ln det Q - ln det P.

    value : the mean over probes
    std_error : of that mean
    unsolved : how far it may be above what more steps would have, by the same probes
    """

    value: float
    std_error: float
    unsolved: float


def rounding_of(n: int) -> float:
    """Return what a sum of n terms rounds, in units of its largest: errors of either sign."""
    return float(np.finfo(float).eps * (4.0 + np.sqrt(n)))


def quadratics(
    pre: Preconditioner, size: Floats, A: Floats, B: Floats, R: Floats, scale: Floats
) -> Quadratics:
    """Return bounds on b'Q^-1 b from solutions A with residuals R, for b = k_x in noise units.

    size : (n,) the roots of the diagonal of K
    scale : (k,) the root of k(x, x): |b| <= size scale
    """
    unit, trace = rounding_of(len(A)), float(size @ size)
    weight = size @ np.abs(A) + scale
    square = np.einsum("ij,ij->j", A, A)
    found = np.einsum("ij,ij->j", A, B + R)
    slack = unit * (weight**2 + square)
    # r is known to this length, and r'Q^-1 r is below r'r too
    off = unit * (np.sqrt(trace) * weight + np.sqrt(square))
    left = np.minimum((1.0 + unit * trace) * pre.squares(R), np.einsum("ij,ij->j", R, R))
    return Quadratics(found - slack, found + slack + (np.sqrt(left) + off) ** 2)


def unsolved(
    pre: Preconditioner,
    Y: Floats,
    A: Floats,
    R: Floats,
    H: Floats,
    S: Floats,
    RH: Floats,
    fit: Estimate,
    integrate: bool,
) -> float:
    """Return what solutions may lack of the log evidence, in nats.

    Y, A, R : (n, P) targets less the mean, their solutions and residuals
    H, S, RH : (n, r) the same of the regressors

    With coefficients estimated, H'Q^-1 Y = 0 at their optimum, and half the square of what it is
    instead, in units of its own, is lost; it is known but for R_H'Q^-1 R. Where they are integrated
    out, R_H'Q^-1 R_H is missing in the determinant.
    """
    left = pre.squares(R)
    missing = float(np.sum(left))
    if H.shape[1]:
        of_mean = float(np.sum(pre.squares(RH @ fit.E)))
        slope = fit.E.T @ (S.T @ Y + RH.T @ A)
        slope = np.sqrt(np.einsum("ij,ij->j", slope, slope)) + np.sqrt(of_mean * left)
        missing += float(slope @ slope) + (Y.shape[1] * of_mean if integrate else 0.0)
    return 0.5 * (1.0 + rounding_of(len(Y)) * pre.trace) * missing


def log_ratio(coefficients: list[Coefficients], n: int) -> LogRatio:
    """Return the probes' estimate of ln det Q - ln det P, with its errors."""
    if not coefficients:
        return LogRatio(0.0, 0.0, 0.0)
    values, above = n * np.array([log_quadrature(c) for c in coefficients]).T
    error = float(np.std(values, ddof=1) / np.sqrt(values.size))
    return LogRatio(float(np.mean(values)), error, float(np.mean(above)))
