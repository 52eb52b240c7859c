"""Relevance with a noise variance t_i^2 of its own for each row (BKM 126).

Not an engine; `relevance.robust` has the model. Written with p_i = 1/t_i^2, r_i the residual and
q_i = phi_i'Xi phi_i the variance of the fit at a row, the derivative of the log evidence in ln p_i
is w_i [1 - p_i (r_i^2 + q_i)]/2, and that of the row's Gamma density with shape e and rate e v is
w_i (e - e v p_i). At a maximum

    t_i^2 = (r_i^2 + 2 e v)/(1 - q_i/t_i^2 + 2 e),

on the slides with e = 0. As an update it may lower the evidence; then EM's takes its place, which
does not: t_i^2 = (r_i^2 + q_i + 2 e v)/(1 + 2 e).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from mercer.errors import BoundWarning, warn
from mercer.inference._relevance_evidence import (
    Functions,
    Point,
    Terms,
    ascend,
    covariance,
    evaluate,
)
from mercer.inference._relevance_fast import Fast
from mercer.inference._relevance_problem import RelevanceProblem, Report
from mercer.inference._relevance_rows import Rows
from mercer.likelihoods.spread import spread_of

__all__ = ["Heavy"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Updates of rows and precisions between two searches among the functions.
_UPDATES = 200
_ROUNDS = 50


class Heavy:
    """A model whose rows' variances change with it.

    Parameters
    ----------
    problem : RelevanceProblem
    degrees : float or None
        2 e; None is e = 0, with a floor.
    tol : float
    report : function, optional
    """

    def __init__(
        self,
        problem: RelevanceProblem,
        degrees: float | None,
        tol: float,
        report: Report | None = None,
    ) -> None:
        self._problem, self.tol, self._report = problem, tol, report
        self._e = 0.0 if degrees is None else 0.5 * degrees
        self._plain = Rows(problem)
        self._common = Terms(problem, self._plain)
        # Outliers have no say in how little noise there may be.
        y, w = self._plain.y, self._plain.weights
        self._common.floor = min(self._common.floor, problem.noise_floor * spread_of(y, w) ** 2)
        self._unit = replace(problem, noise=1.0, noise_prior=(0.0, 0.0))
        self.terms = Terms(self._unit, self._plain)
        self.rows = self._plain
        self.scale = self._common.start
        self.history: list[float] = []
        self.n_steps = 0
        self._alike: Fast
        self._is_new = True
        self._v: Floats
        self.indices: Indices
        self.point: Point

    def begin(self, start: tuple[Indices, Floats, float] | None) -> None:
        """Begin with all variances alike: those of a fit with normal noise, or of another fit."""
        self._alike = Fast(self._problem, self._plain, max(self.tol, 0.1))
        self._alike.begin(start)
        self._is_new = start is None

    def _set_out(self, max_iter: int) -> None:
        """Find the fit with normal noise, if there is no other, and take its model."""
        fast = self._alike
        try:
            if self._is_new:
                fast.grow(max_iter)
        finally:  # also where it is interrupted
            self.n_steps += fast.n_steps
            self._take(fast)

    def _take(self, fast: Fast) -> None:
        self.scale = fast.point.v
        self._v = np.full(self._plain.n, fast.point.v)
        self._reweigh(self._v)
        self.indices = fast.indices
        point = evaluate(self.terms, self._functions(), fast.point.s, 1.0)
        assert point is not None  # it is the one of `fast`
        self.point = point
        self.history.append(self._objective(point, self._v, self.scale))

    # --- the objective --------------------------------------------------------------------------

    def _weighted_sum(self, values: Floats) -> float:
        w = self._plain.weights
        return float(np.sum(values) if w is None else w @ values)

    def _objective(self, at: Point, v: Floats, scale: float) -> float:
        """Return the evidence, with the densities of ln s, of ln 1/t^2 and of ln 1/scale."""
        total, e = at.value, self._e
        if e > 0:
            rate = e * scale
            each = e * np.log(rate / v) - rate / v - float(gammaln(e))
            total += self._weighted_sum(each) + self._common.noise(scale)
        return total

    def _reweigh(self, v: Floats) -> None:
        self.rows = self._plain.reweighted(v)
        self.terms.offset = self.rows.offset

    def _functions(self) -> Functions:
        A = self.rows.take(self.indices)
        return Functions(A, A.T @ A, self.rows.P[self.indices], self.rows.z, self.rows.zz)

    # --- steps ----------------------------------------------------------------------------------

    def grow(self, max_iter: int) -> str:
        """Update rows, precisions and functions in turn; return the status."""
        self._set_out(max_iter)
        self._tell()
        if self.n_steps >= max_iter:
            return "stopped"
        for _ in range(_ROUNDS):
            before = self.history[-1]
            for _ in range(_UPDATES):
                last = self.history[-1]
                self._update()
                self._tell()
                if self.history[-1] - last < 0.1 * self.tol:
                    break
                if self.n_steps >= max_iter:
                    return "stopped"
            status = self._search(max_iter - self.n_steps)
            if self.history[-1] - before < self.tol:
                if self._e == 0:
                    self._warn_of_floor()
                return status
            if self.n_steps >= max_iter:
                break
        return "stopped"

    def _tell(self) -> None:
        if self._report is not None:
            self._report(self.n_steps, self.history[-1], len(self.indices))

    def _warn_of_floor(self) -> None:
        some = int(np.sum(self._v <= self._common.floor))
        if some:
            warn(
                f"{some} of {len(self._v)} rows are fitted exactly: their variances are at the "
                "floor, which alone bounds the evidence where t_i has a flat hyperprior. Give "
                "degrees of freedom, as robust=4.0 does",
                BoundWarning,
            )

    def fitted_variances(self, r2: Floats, q: Floats, v: Floats | None) -> Floats:
        """Return variances of rows: of the fixed point if they are given, else EM's."""
        e, rate = self._e, self._e * self.scale
        if v is None:
            new = (r2 + q + 2.0 * rate) / (1.0 + 2.0 * e)
        else:
            new = (r2 + 2.0 * rate) / np.maximum(1.0 - q / v + 2.0 * e, 1e-12)
        return np.asarray(np.maximum(new, self._common.floor))

    def _update(self) -> None:
        """Update the rows' variances, their scale, and the precisions."""
        self.n_steps += 1
        at, root = self.point, self.rows.root
        assert root is not None
        A = self.rows.take(self.indices) / root[:, None]
        r2 = (self._plain.y - A @ at.mu) ** 2
        q = np.einsum("ij,ij->i", A @ covariance(at.R), A)
        was, before = self._v, self.history[-1]
        for held in (was, None):
            v = self.fitted_variances(r2, q, held)
            scale = self._fitted_scale(v)
            self._reweigh(v)
            of = self._functions()
            found = evaluate(self.terms, of, at.s, 1.0)
            if found is not None and self._objective(found, v, scale) >= before:
                found = ascend(self.terms, of, found, 2, 0.01 * self.tol)
                self._v, self.scale, self.point = v, scale, found
                self.history.append(self._objective(found, v, scale))
                return
        self._reweigh(was)
        self.history.append(before)

    def _fitted_scale(self, v: Floats) -> float:
        """Return the scale of the highest density, given the variances."""
        if self._e == 0:
            w = self._plain.weights
            return float(np.median(v if w is None else v[w > 0]))
        if not self._common.learns:
            return self.scale
        T = self._e * self._weighted_sum(1.0 / v)
        c, d = self._common.shape, self._common.rate
        half = 0.5 * (self._e * self._plain.weight - c)
        return self._common.within(float((half + np.sqrt(half * half + T * d)) / T))

    def _search(self, limit: int) -> str:
        """Let functions come and go, with the rows' variances as they are; return the status."""
        fast = Fast(self._unit, self.rows, self.tol)
        fast.begin((self.indices, self.point.s, 1.0))
        try:
            return fast.grow(limit)
        finally:
            self.n_steps += fast.n_steps
            value = self._objective(fast.point, self._v, self.scale)
            if value >= self.history[-1]:
                self.indices, self.point = fast.indices, fast.point
                self.history.append(value)

    @property
    def is_at_floor(self) -> bool:
        """Whether the rows' variances are about the least that they may be."""
        common = self._common
        return self._e > 0 and common.learns and self.scale <= common.floor * (1.0 + 1e-9)

    @property
    def variances(self) -> Floats:
        """The variances of all rows, (n,); of rows without a weight, what EM's update gives."""
        kept = self._plain.kept
        if kept is None:
            return self._v
        problem, at = self._problem, self.point
        A = problem.columns.take(self.indices)
        r2 = (problem.y - problem.mean - A @ at.mu) ** 2
        q = np.einsum("ij,ij->i", A @ covariance(at.R), A)
        out = self.fitted_variances(r2, q, None)
        out[kept] = self._v
        return out
