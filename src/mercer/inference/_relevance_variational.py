"""Relevance by a factorised posterior q(theta) q(s) q(1/v), after Bishop and Tipping (2000).

Each factor is updated in turn, and the bound on the log evidence of all that is unknown, integrated
over, never decreases: that bound is the history, and not the penalised evidence. With Gamma(a, b)
on each precision and Gamma(c, d) on 1/v the factors are

    q(theta) = N(mu, Xi),  Xi = (<S> + <1/v> A'A)^-1,  mu = <1/v> Xi A'z,
    q(s_j) = Gamma(a + 1/2, b + (mu_j^2 + Xi_jj)/2),
    q(1/v) = Gamma(c + W/2, d + (|z - A mu|^2 + tr A'A Xi)/2).

Constants of hyperpriors without an integral (a = b = 0, c = d = 0) are left out of the bound. A
function of which nothing is left goes, and what it had of the bound stays in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from mercer.inference._relevance_evidence import Functions, Point, Terms, covariance, evaluate
from mercer.inference._relevance_problem import Hyperprior, RelevanceProblem, Report
from mercer.inference._relevance_rows import Rows

__all__ = ["Variational"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_LOG_2PI = float(np.log(2.0 * np.pi))
# A function goes of which the data determine less than this part.
_UNDETERMINED = 1e-3


def _gamma_of(hyperprior: Hyperprior) -> tuple[float, float]:
    """Return shape and rate of a hyperprior that is a Gamma density, flat included."""
    places = np.array([1e-3, 1.0, 3.0])
    slope = np.asarray(hyperprior.slope(places), dtype=float)
    b = float(slope[1] - slope[2]) / 2.0
    a = float(slope[1]) + b
    if a < 0 or b < 0 or not np.allclose(slope, a - b * places, rtol=1e-9, atol=1e-12):
        raise ValueError(
            "the variational algorithm takes a flat hyperprior or a Gamma density of the "
            f'precisions, got {hyperprior!r}; the others, such as "fast", take any'
        )
    return a, b


def _normaliser(a: float, b: float) -> float:
    return a * float(np.log(b)) - float(gammaln(a)) if a > 0 and b > 0 else 0.0


class Variational:
    """A factorised posterior that is being improved.

    The parameters are those of `Updates`.
    """

    def __init__(
        self, problem: RelevanceProblem, rows: Rows, tol: float, report: Report | None = None
    ) -> None:
        self.rows, self.terms, self.tol, self._report = rows, Terms(problem, rows), tol, report
        self._a, self._b = _gamma_of(problem.hyperprior)
        self._always = np.unique(np.asarray(problem.always, dtype=np.intp))
        self._A, self._G = rows.all()
        self._kept = 0.0  # what functions that are gone had of the bound
        self.history: list[float] = []
        self.n_steps = 0
        self.indices: Indices
        self.point: Point

    def begin(self, start: tuple[Indices, Floats, float] | None) -> None:
        """Begin with all functions that are not 0, or where another fit has ended."""
        rows, v = self.rows, self.terms.start
        if start is not None:
            indices, s, given = start
            v = self.terms.within(given) if self.terms.learns else v
            missing = np.setdiff1d(self._always, indices)
            self.indices = np.append(indices, missing).astype(np.intp)
            s = np.append(s, np.maximum(rows.D[missing], 1e-300) / v)
        else:
            some = np.flatnonzero(rows.D > 0)
            self.indices = some if len(some) else np.array([0])
            spread = max(rows.zz / rows.weight, self.terms.floor)
            D = np.maximum(rows.D[self.indices], 1e-300)
            s = D * len(self.indices) / (rows.weight * spread)
            v = 10.0 * v if self.terms.learns else v
        point = self._at(s, v)
        while point is None:
            s, v = 4.0 * s, (2.0 * v if self.terms.learns else v)
            if not np.all(np.isfinite(s)):
                raise FloatingPointError("the functions' Gram matrix has no factor")
            point = self._at(s, v)
        self.point = point
        self.history.append(self._update()[2])

    def _at(self, s: Floats, v: float) -> Point | None:
        rows, some = self.rows, self.indices
        if len(some) == rows.size:
            of = Functions(self._A, self._G, rows.P, rows.z, rows.zz)
        else:
            G = self._G[np.ix_(some, some)]
            of = Functions(self._A[:, some], G, rows.P[some], rows.z, rows.zz)
        return evaluate(self.terms, of, s, v)

    def _update(self) -> tuple[Floats, float, float]:
        """Return <s> and 1/<1/v> that q(theta) entails, and the bound with them."""
        at, terms, k = self.point, self.terms, len(self.indices)
        d = np.diagonal(covariance(at.R))
        square = at.mu**2 + d
        determined = float(np.sum(np.clip(1.0 - at.s * d, 0.0, 1.0)))
        error = at.error + at.v * determined
        # <s_j>, <ln s_j>, and what q(s_j) adds to the bound
        a, b = self._a + 0.5, self._b + 0.5 * square
        s, log_s = a / b, float(digamma(a)) - np.log(b)
        bound = terms.offset + k * (_normaliser(self._a, self._b) + a + float(gammaln(a)))
        bound += k * (1.0 - a) * float(digamma(a)) - float(np.sum(np.log(b)))
        bound += float(np.sum((self._a - 1.0) * log_s - self._b * s))
        bound += 0.5 * float(np.sum(log_s - s * square))
        bound += 0.5 * k - float(np.sum(np.log(np.diagonal(at.R))))
        v, log_b = at.v, -float(np.log(at.v))
        if terms.learns:
            c, rate = terms.shape + 0.5 * terms.weight, terms.rate + 0.5 * error
            v = max(rate / c, terms.floor)
            rate = v * c
            log_b = float(digamma(c) - np.log(rate))
            bound += _normaliser(terms.shape, terms.rate) + c - float(np.log(rate))
            bound += float(gammaln(c)) + (1.0 - c) * float(digamma(c))
            bound += (terms.shape - 1.0) * log_b - terms.rate / v
        bound += 0.5 * (terms.weight * (log_b - _LOG_2PI) - error / v)
        return s, v, bound + self._kept

    def grow(self, max_iter: int) -> str:
        """Update until a round gains less than a thousandth of `tol`; return the status."""
        self._tell()
        while self.n_steps < max_iter:
            self.n_steps += 1
            s, v, before = self._update()
            found = self._at(s, v)
            if found is None:
                return "converged"
            self.point = found
            bound = self._update()[2]
            gone = self._prune(bound)
            self.history.append(max(bound, self.history[-1]))  # but for rounding
            self._tell()
            if not gone and bound - before < 1e-3 * self.tol:
                return "converged"
        return "stopped"

    def _tell(self) -> None:
        if self._report is not None:
            self._report(self.n_steps, self.history[-1], len(self.indices))

    def _prune(self, bound: float) -> bool:
        at = self.point
        gamma = 1.0 - at.s * np.diagonal(covariance(at.R))
        stays = (gamma >= _UNDETERMINED) | np.isin(self.indices, self._always)
        if np.all(stays):
            return False
        if not np.any(stays):
            stays[int(np.argmax(gamma))] = True
            if len(stays) == 1:
                return False
        was = self.indices
        self.indices = was[stays]
        found = self._at(at.s[stays], at.v)
        if found is None:
            self.indices = was
            return False
        self.point = found
        self._kept += bound - self._update()[2]
        return True
