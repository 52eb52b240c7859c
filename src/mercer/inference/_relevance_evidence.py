"""The penalised evidence of a set of functions, and its ascent in all precisions and the noise.

Not an engine; `relevance` has the model and the notation. With b = 1/v, H = S + b A'A, Xi = H^-1,
mu = b Xi A'z (BKM 131) and E = |z - A mu|^2 the log evidence (BKM 127) is

    -W/2 ln(2 pi v) - (b E + mu'S mu)/2 + sum_j ln(s_j)/2 - ln det(H)/2,

W the sum of the weights. The penalised evidence (BKM 132) adds log densities of ln s_j and ln b.
Its gradient and matrix of second derivatives in (ln s, ln b) cost no more than Xi.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from mercer.inference._relevance_ascent import Penalty, Slopes, climb
from mercer.inference._relevance_problem import RelevanceProblem
from mercer.inference._relevance_rows import Rows

__all__ = ["Functions", "Point", "Terms", "ascend", "covariance", "evaluate", "gradient", "limits"]

Floats = NDArray[np.float64]

_LOG_2PI = float(np.log(2.0 * np.pi))
# Precisions end here, in units of b A_j'A_j: of a function beyond nothing is left but rounding.
_SMALLEST, _LARGEST = 1e-14, 1e12


class Terms(Penalty):
    """What is the same for all sets of functions: hyperpriors, weights, and limits of the noise."""

    def __init__(self, problem: RelevanceProblem, rows: Rows) -> None:
        super().__init__(problem.hyperprior)
        self.learns = problem.noise is None
        self.shape, self.rate = problem.noise_prior if self.learns else (0.0, 0.0)
        self.weight, self.offset = rows.weight, rows.offset
        spread = rows.spread()
        self.floor = problem.noise_floor * spread
        self.ceiling = 1e4 * max(spread, rows.zz / rows.weight)
        self.start = 0.01 * spread if problem.noise is None else float(problem.noise)

    def noise(self, v: float) -> float:
        """Return the log density of ln 1/v, a Gamma's up to a constant (BKM 133 corrected)."""
        return -self.shape * float(np.log(v)) - self.rate / v

    def within(self, v: float) -> float:
        """Return the noise that may be nearest to v."""
        return float(np.clip(v, self.floor, self.ceiling))


class Functions(NamedTuple):
    """Functions in a model: A (n, k), their Gram matrix (k, k), A'z (k,), and z with z'z."""

    A: Floats
    G: Floats
    P: Floats
    z: Floats
    zz: float


class Point(NamedTuple):
    """The evidence at precisions s and noise v.

    s, mu : (k,)
    R : (k, k) upper triangular, R'R = H
    error : E
    evidence, value : the log evidence, and the penalised one
    """

    s: Floats
    v: float
    R: Floats
    mu: Floats
    error: float
    evidence: float
    value: float


def evaluate(terms: Terms, of: Functions, s: Floats, v: float) -> Point | None:
    """Return the evidence, O(k^3 + nk); None where H has no factor."""
    b = 1.0 / v
    H = b * of.G
    np.fill_diagonal(H, np.diagonal(H) + s)
    R, info = dpotrf(H, lower=0, clean=1)
    if info or not np.all(np.isfinite(R)):
        return None
    mu = dpotrs(R, b * of.P, lower=0)[0]
    residual = of.z - of.A @ mu
    mu = mu + dpotrs(R, b * (of.A.T @ residual) - s * mu, lower=0)[0]  # one refinement
    residual = of.z - of.A @ mu
    error = float(residual @ residual)
    log_det = 2.0 * float(np.sum(np.log(np.diagonal(R)))) - float(np.sum(np.log(s)))
    evidence = terms.offset - 0.5 * (
        terms.weight * (_LOG_2PI + float(np.log(v))) + b * error + float(s @ mu**2) + log_det
    )
    value = evidence + terms.hyper(s) + terms.noise(v)
    if not np.isfinite(value):
        return None
    return Point(s, v, np.asarray(R), mu, error, evidence, value)


def covariance(R: Floats) -> Floats:
    """Return Xi = (R'R)^-1, both triangles."""
    Xi, _ = dpotri(R, lower=0)
    upper = np.triu(Xi)
    out: Floats = upper + np.triu(upper, 1).T
    return out


def gradient(terms: Terms, at: Point, Xi: Floats) -> Floats:
    """Return the derivatives of the penalised evidence in ln s and, at the end, in ln 1/v."""
    s, mu, b = at.s, at.mu, 1.0 / at.v
    d = np.diagonal(Xi)
    along = 0.5 * (1.0 - s * d - s * mu**2) + terms.slopes(s)[0]
    noise = 0.5 * (terms.weight - b * at.error - float(np.sum(1.0 - s * d)))
    return np.append(along, noise + terms.shape - terms.rate * b)


def _curvature(terms: Terms, at: Point, Xi: Floats) -> Floats:
    """Return minus the second derivatives, (k + 1, k + 1)."""
    s, mu, b, k = at.s, at.mu, 1.0 / at.v, len(at.s)
    d, sm = np.diagonal(Xi), at.s * at.mu
    out = np.empty((k + 1, k + 1), order="F")
    inner = out[:k, :k]
    sXi = s[:, None] * Xi
    np.multiply(Xi, np.outer(sm, sm), out=inner)
    inner += 0.5 * sXi * sXi.T
    inner *= -1.0
    out.reshape(-1, order="F")[: k * (k + 2) : k + 2] += (
        0.5 * (s * d + s * mu**2) - terms.slopes(s)[1]
    )
    pulled = Xi @ sm
    share = s * (d - np.einsum("ij,ij->j", sXi, Xi))
    out[k, :k] = out[:k, k] = sm * pulled - 0.5 * share
    out[k, k] = 0.5 * (b * at.error - 2.0 * float(sm @ pulled) + float(np.sum(share)))
    out[k, k] += terms.rate * b
    return out


def limits(D: Floats, v: float) -> tuple[Floats, Floats]:
    """Return the least and the greatest precisions of functions, from the squares A_j'A_j (k,)."""
    return _SMALLEST * D / v, _LARGEST * D / v


class _Ascent:
    """The penalised evidence of some functions, as `climb` wants it."""

    def __init__(self, terms: Terms, of: Functions) -> None:
        self.terms, self.of, self._widths = terms, of, np.diagonal(of.G)

    def slopes(self, at: Point) -> Slopes:
        """Return the derivatives in (ln s, ln 1/v)."""
        terms, k = self.terms, len(at.s)
        Xi = covariance(at.R)
        g, C = gradient(terms, at, Xi), _curvature(terms, at, Xi)
        low, high = limits(self._widths, at.v)
        free = np.ones(k + 1, dtype=bool)
        free[:k] = ~((at.s >= high) & (g[:k] > 0)) & ~((at.s <= low) & (g[:k] < 0))
        free[k] = terms.learns and not (at.v <= terms.floor and g[k] > 0)
        return Slopes(g, C, free)

    def moved(self, at: Point, step: Floats) -> Point | None:
        """Return the point a step away."""
        k = len(at.s)
        low, high = limits(self._widths, at.v)
        v = self.terms.within(at.v * float(np.exp(-step[k]))) if self.terms.learns else at.v
        s = np.where(step[:k] == 0, at.s, np.clip(at.s * np.exp(step[:k]), low, high))
        return evaluate(self.terms, self.of, s, v if step[k] else at.v)


def ascend(terms: Terms, of: Functions, at: Point, steps: int, tol: float) -> Point:
    """Go up the penalised evidence by damped Newton steps in (ln s, ln v); it never decreases.

    Ends after `steps`, or where a step gains less than tol and the gradient is small.
    """
    return climb(_Ascent(terms, of), at, steps, tol)
