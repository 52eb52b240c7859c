"""The mode of coefficients under a likelihood that is not Gaussian, and Laplace's evidence there.

Not an engine; `relevance_classes` has the model. For the functions Phi (n, k) that are in it, with
precisions s and coefficients theta (k, q), the penalised log likelihood (BKM 136)

    J(theta) = sum_i w_i ln p(y_i | t_i) - tr(theta'S theta)/2,   t = Phi theta,

has the gradient Phi'g - S theta (BKM 137: c = -g, and K' in front of it), minus the second
derivatives H = S + Phi'W Phi (BKM 138), and one maximum, which Newton's steps (BKM 139) find. The
log evidence is Laplace's: J + (q/2) sum_j ln s_j - ln det(H)/2 at the mode.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from mercer.inference._relevance_ascent import Penalty
from mercer.inference._relevance_sites import Sites

__all__ = ["Mode", "curvature", "find_mode"]

Floats = NDArray[np.float64]

# Newton's decrement g'H^-1 g, which is twice what J may still gain, at which the steps end; what it
# must be, or less than the rounding of J, where no step brings it down any more.
_ZERO, _SMALL = 1e-20, 1e-10
_ITERATIONS, _HALVINGS = 200, 60
_ROUNDING = 8.0 * float(np.finfo(float).eps)


class Mode(NamedTuple):
    """The evidence at precisions s.

    s : (k,)
    theta : (k, q) the mode
    R : (kq, kq) upper triangular, R'R = H; coefficient j of contrast c is number c k + j
    t : (n, q) Phi theta
    pull, bend : (n, q) and (q, q, n), g and W at the mode
    evidence, value : Laplace's log evidence, and the penalised one
    """

    s: Floats
    theta: Floats
    R: Floats
    t: Floats
    pull: Floats
    bend: Floats
    evidence: float
    value: float

    @property
    def mu(self) -> Floats:
        """The coefficients (k,) of a model of one latent number."""
        return self.theta[:, 0]

    @property
    def v(self) -> float:
        """1: the precision of a row is its curvature, and no noise is learned."""
        return 1.0


def curvature(Phi: Floats, bend: Floats, s: Floats) -> Floats:
    """Return H (kq, kq) (BKM 138), at least its upper triangle; O(n k^2 q^2)."""
    k, q = Phi.shape[1], len(bend)
    H = np.zeros((k * q, k * q), order="F")
    for c in range(q):
        own = slice(c * k, (c + 1) * k)
        A = np.sqrt(bend[c, c])[:, None] * Phi
        H[own, own] = dsyrk(1.0, A, trans=1, lower=0)
        for d in range(c + 1, q):
            H[own, d * k : (d + 1) * k] = dgemm(1.0, Phi, bend[c, d][:, None] * Phi, trans_a=1)
    H.reshape(-1, order="F")[:: k * q + 1] += np.tile(s, q)
    return H


def find_mode(
    sites: Sites, penalty: Penalty, Phi: Floats, s: Floats, start: Floats | None = None
) -> Mode | None:
    """Return the mode, and the evidence there; None where H has no factor.

    O(n k^2 q^2 + k^3 q^3) a step of Newton's, of which there are three or so from a start nearby.

    Parameters
    ----------
    sites : Sites
    penalty : Penalty
    Phi : (n, k)
    s : (k,)
    start : (k, q) coefficients to begin at
    """
    k, q = Phi.shape[1], sites.width
    theta = np.zeros((k, q)) if start is None else np.array(start, dtype=float).reshape(k, q)
    t = Phi @ theta
    value = sites.value(t) - 0.5 * float(s @ np.sum(theta**2, axis=1))
    if start is not None:
        nothing = sites.value(np.zeros_like(t))
        if not value >= nothing:
            theta, t, value = np.zeros((k, q)), np.zeros_like(t), nothing
    size, before = np.abs(Phi), np.inf
    for _ in range(_ITERATIONS):
        pull, bend = sites.slopes(t)
        R, info = dpotrf(curvature(Phi, bend, s), lower=0, clean=1, overwrite_a=1)
        if info or not np.all(np.isfinite(R)):
            return None
        down = Phi.T @ pull - s[:, None] * theta  # (BKM 137), with the opposite sign
        step = dpotrs(R, down.T.reshape(-1), lower=0)[0].reshape(q, k).T
        decrement = float(np.sum(down * step))
        # J is a sum, of rows whose t are sums of terms that may cancel.
        terms = float(np.sum(np.abs(pull) * (size @ np.abs(theta))))
        rounding = _ROUNDING * (1.0 + abs(value) + terms)
        if decrement <= _ZERO:
            break
        if before <= max(_SMALL, rounding) and decrement >= 0.5 * before:
            break
        found = _search(sites, Phi, s, theta, step, value, decrement, rounding)
        if found is None:
            break
        theta, t, value = found
        before = decrement
    else:
        return None
    log_det = 2.0 * float(np.sum(np.log(np.diagonal(R)))) - q * float(np.sum(np.log(s)))
    evidence = value - 0.5 * log_det
    total = evidence + penalty.hyper(s)
    if not np.isfinite(total):
        return None
    return Mode(s, theta, np.asarray(R), t, pull, bend, evidence, total)


def _search(
    sites: Sites,
    Phi: Floats,
    s: Floats,
    theta: Floats,
    step: Floats,
    value: float,
    decrement: float,
    rounding: float,
) -> tuple[Floats, Floats, float] | None:
    """Return coefficients along a step that gain (BKM 139), with t and J; None if none do."""
    length = 1.0
    if decrement >= max(1e-6, rounding):  # what it gains can be told from rounding
        rounding = 0.0
    for _ in range(_HALVINGS):
        new = theta + length * step
        if np.array_equal(new, theta):  # what is left of the step is rounding
            break
        t = Phi @ new
        there = sites.value(t) - 0.5 * float(s @ np.sum(new**2, axis=1))
        if there >= value + 1e-4 * length * decrement - rounding:
            return new, t, there
        length *= 0.5
    return None
