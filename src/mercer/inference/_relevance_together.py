"""Updates of all precisions at once: the fixed point of (BKM 134), and EM, for any evidence.

At a maximum of the penalised evidence gamma_j + 2 h'(s_j) = s_j mu_j^2 with gamma_j =
1 - s_j Xi_jj and h' the slope of the hyperprior's logarithm in ln s, which for a Gamma density is
(BKM 134 corrected) s_j = (gamma_j + 2a)/(mu_j^2 + 2b). Solved for s_j with gamma and mu held it is
a step of the fixed-point algorithm. The step of EM solves 1 + 2 h'(s_j) = s_j (mu_j^2 + Xi_jj): it
never lowers the evidence under Gaussian noise, and takes the place of a fixed-point step that
would. Under a Laplace approximation both may, and neither is then made; the end is by Newton's
steps, which look at the evidence itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.inference._relevance_ascent import Penalty
from mercer.inference._relevance_evidence import covariance
from mercer.inference._relevance_problem import Report

__all__ = ["Together", "solve_precisions"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
#: A `Point` of the regression's evidence, or a `Mode` of Laplace's.
Place = Any

# A function whose gamma is less than this goes if the evidence does not fall by it.
_UNDETERMINED = 1e-2
_HALVINGS = 2
_ROUNDING = 1e-10


def solve_precisions(
    terms: Penalty, share: Floats, square: Floats, low: Floats, high: Floats
) -> Floats:
    """Return s between low and high with share + 2 h'(s) = s square, (k,)."""
    if terms.is_flat:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            s = np.maximum(share, 0.0) / square
        return np.clip(np.where(np.isnan(s), high, s), low, high)
    bottom, top = np.log(low), np.log(high)
    for _ in range(64):
        middle = 0.5 * (bottom + top)
        s = np.exp(middle)
        more = share + 2.0 * terms.hyperprior.slope(s) > s * square
        bottom, top = np.where(more, middle, bottom), np.where(more, top, middle)
    return np.asarray(np.exp(0.5 * (bottom + top)))


class Together(ABC):
    """A model whose precisions change together.

    Parameters
    ----------
    terms : Penalty
    always : functions that stay
    algorithm : {"fixed_point", "em"}, or another of the subclass
    tol : float
        What a step must gain, in nats, for the next to be made.
    report : function, optional
    """

    def __init__(
        self,
        terms: Penalty,
        always: Sequence[int],
        algorithm: str,
        tol: float,
        report: Report | None = None,
    ) -> None:
        self._penalty, self.tol, self._report = terms, tol, report
        self._algorithm = algorithm
        self._always = np.unique(np.asarray(always, dtype=np.intp))
        self.history: list[float] = []
        self.n_steps = 0
        self.indices: Indices
        self.point: Place

    # --- for subclasses -------------------------------------------------------------------------

    @abstractmethod
    def evaluate(self, indices: Indices, s: Floats, v: float) -> Place | None:
        """Return the evidence of some functions; None where there is none."""

    @abstractmethod
    def ascended(self, indices: Indices, at: Place, steps: int, tol: float) -> Place:
        """Return where Newton's steps in all precisions and the noise lead."""

    @abstractmethod
    def limits(self, indices: Indices, v: float) -> tuple[Floats, Floats]:
        """Return the least and the greatest precisions."""

    @abstractmethod
    def noise(self, at: Place, gamma: Floats, em: bool) -> float:
        """Return the noise after a step."""

    # --- steps ----------------------------------------------------------------------------------

    def grow(self, max_iter: int) -> str:
        """Update until a step gains less than `tol`; return the status."""
        self._tell()
        while self.n_steps < max_iter:
            gain = self._step(self._algorithm == "em")
            gain += self._prune()
            self._tell()
            if gain < 1e-3 * self.tol and self._is_settled():
                return "converged"
        return "stopped"

    def _tell(self) -> None:
        if self._report is not None:
            self._report(self.n_steps, self.point.value, len(self.indices))

    def _is_settled(self) -> bool:
        """Whether no direction is left: if only the pace is gone, Newton's steps end it."""
        before = self.point.value
        self.point = self.ascended(self.indices, self.point, 50, 1e-9)
        self.history.append(self.point.value)
        return self.point.value - before < self.tol and self._prune() == 0.0

    def _step(self, em: bool) -> float:
        """Update precisions and noise, and return what it has gained."""
        self.n_steps += 1
        at, terms = self.point, self._penalty
        d = np.diagonal(covariance(at.R))
        gamma = np.clip(1.0 - at.s * d, 0.0, 1.0)
        low, high = self.limits(self.indices, at.v)
        found = None
        if not em:
            s = solve_precisions(terms, gamma, at.mu**2, low, high)  # (BKM 134)
            v = self.noise(at, gamma, False)
            for _ in range(1 + _HALVINGS):
                found = self.evaluate(self.indices, s, v)
                if found is not None and found.value >= at.value:
                    break
                found, s, v = None, np.sqrt(s * at.s), float(np.sqrt(v * at.v))
        if found is None:
            s = solve_precisions(terms, np.ones(len(d)), at.mu**2 + d, low, high)
            found = self.evaluate(self.indices, s, self.noise(at, gamma, True))
            if found is None or found.value < at.value:  # by rounding, or by Laplace's error
                found = at
        gain, self.point = float(found.value - at.value), found
        self.history.append(found.value)
        return gain

    def _prune(self) -> float:
        """Leave functions out that nothing is known of (s -> infinity); return what it gains."""
        gained = 0.0
        while len(self.indices) > 1:
            at = self.point
            xi = np.diagonal(covariance(at.R))
            gamma = 1.0 - at.s * xi
            now = 0.5 * (np.log(at.s * xi) + at.mu**2 / xi)
            if not self._penalty.is_flat:
                now = now + self._penalty.hyperprior.log_hyper(at.s)
            goes = (gamma < _UNDETERMINED) & (now <= 0.0) & ~np.isin(self.indices, self._always)
            if not np.any(goes):
                break
            kept = np.flatnonzero(~goes)
            found = self._without(kept) if len(kept) else None
            if found is None:  # they are not independent: only the one that gains most
                kept = np.delete(np.arange(len(now)), int(np.argmin(np.where(goes, now, np.inf))))
                found = self._without(kept)
            if found is None:
                break
            gained += found.value - at.value
            self.indices, self.point = self.indices[kept], found
            self.history.append(found.value)
        return gained

    def _without(self, kept: Indices) -> Place | None:
        at = self.point
        found = self.evaluate(self.indices[kept], at.s[kept], at.v)
        if found is None or found.value < at.value - _ROUNDING * (1.0 + abs(at.value)):
            return None
        return found._replace(value=max(found.value, at.value))
