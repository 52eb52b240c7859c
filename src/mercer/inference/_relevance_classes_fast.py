"""The sequential algorithm for one latent number a row, by the steps of the regression engine.

Not an engine. At the mode the regression on the working response t + W^-1 g has the same posterior,
with the rows' curvatures W for precisions. Under it the sparsity and quality of all functions cost
a pass over the columns: S_j = phi_j'W phi_j - |R'^-1 Phi'W phi_j|^2 and Q_j = phi_j'g. As long as W
is held, functions come, change and go by the steps of `mercer.linalg.precisions`, each O(kM). How
many are taken before the mode is computed again is learned: more while the evidence gains what the
regression said, fewer where it does not.

That W changes with the mode is left out here, as in (BKM 134), though the ascent in all precisions
counts it. Where the Laplace approximation is poor, narrow functions that separate the rows they are
about, it is this term that would have many more of them come in, for an evidence that is not there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._relevance_growth import Addition, Growth
from mercer.inference._relevance_problem import Hyperprior, Report
from mercer.inference._relevance_search import add, after_exchange, gains_of_exchange, run
from mercer.inference._relevance_sites import Sites
from mercer.inference._relevance_table import Table
from mercer.linalg.precisions import ADD, COLLINEAR, Model, empty_model

__all__ = ["Sequential"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Steps inside the model for each function that comes in: so many, and a multiple of k.
_RUN, _PER_FUNCTION = 8, 2
# Functions that may come in before the mode is computed: a part of those in the model.
_MOST = 0.25
# The part of what the regression said that the evidence must gain, for longer and shorter runs.
_GOOD, _POOR = 0.6, 0.3
# The part of its square under the weights that a function has left under the curvatures, at least.
_BARE = 1e-30
# Part of `tol` that a run of steps must gain, and steps of the ascent after one that did not.
_PART, _MOVES = 0.1, 6


class Sequential(Growth):
    """A model of one latent number a row; see `Growth`."""

    def __init__(
        self,
        table: Table,
        sites: Sites,
        hyperprior: Hyperprior,
        always: Indices,
        tol: float,
        report: Report | None = None,
    ) -> None:
        super().__init__(table, sites, hyperprior, always, tol, report)
        self._model: Model = empty_model(np.empty(table.size), min(64, table.size))

    # --- the working regression -----------------------------------------------------------------

    def refresh(self) -> None:
        """Compute the statistics of all functions under the working regression."""
        at, table, indices = self.point, self.table, self.indices
        k = len(indices)
        model = self._model = self._model.with_room(k)
        pull = np.ascontiguousarray(at.pull[:, 0])
        model.G[:k], model.Q[:] = table.weigh_and_multiply(at.bend[0, 0], indices, pull)
        model.D[:] = table.D
        model.active[:k] = indices
        model.settle(at.R, at.s, at.mu, 1.0)
        # Rows that are beyond doubt have no curvature, and functions of these nothing to gain.
        bare = table.D <= _BARE * table.weight * self.widths
        model.place[:] = np.where(self._zero | bare, -1, 0)
        model.place[list(self._aside)] = -1
        model.place[indices] = 1
        model.place[np.intersect1d(indices, self._always)] = 2

    # --- steps ----------------------------------------------------------------------------------

    def stride(self) -> bool:
        """Take steps with the rows' curvatures held, then compute the mode; False if none gains."""
        if not self.left:
            return self._gains() and not self.may_step()
        adds = self._rough_run(self.left) if self._rough else self._additions_alone(self.left)
        model = self._model
        if not model.whole[1]:
            return False
        self.n_steps += int(model.whole[1])
        k, said = int(model.whole[0]), float(model.numbers[1])
        indices = np.array(model.active[:k], dtype=np.intp)
        laplace = self.of(indices)
        found = laplace.at(model.s[:k].copy(), model.mu[:k].copy())
        if found is not None:
            found = laplace.ascended(found, 1 if self._rough else 2, 0.0)
            gain = found.value - self.point.value
            if gain >= max(_PART * self.tol, _POOR * said if adds > 1 else 0.0):
                if gain >= _GOOD * said:
                    self._pace = min(2.0 * self._pace, max(1.0, _MOST * k))
                self.take(indices, found)
                return True
        # It is undone.
        if self._rough:
            self._rough = False
            if self.ascend(_MOVES, _PART * self.tol) == 0.0:
                self.refresh()
            return True
        self.refresh()
        if self._pace > 1.0:
            self._pace = max(1.0, 0.25 * self._pace)
            return True
        return self.add_one()

    def _gains(self) -> bool:
        """Whether a step is thought to gain `tol`."""
        if self._rough:
            return run(self._model, self.penalty, self.tol, 0)[3] >= self.tol
        return bool(self.additions(1))

    def _rough_run(self, most: int) -> int:
        """Let functions come, change and go, in so many steps; return how many have come."""
        limit, adds = _RUN + _PER_FUNCTION * len(self.indices), 0
        while adds < int(self._pace):
            left = most - int(self._model.whole[1])
            what, which, s, gain = run(self._model, self.penalty, self.tol, min(left, limit))
            if what != ADD:
                break
            self._model = add(self._model, self.table, which, s, gain)
            adds += 1
        return adds

    def _additions_alone(self, most: int) -> int:
        """Let so many functions come, the others as they are; return how many have come."""
        adds = 0
        while adds < min(int(self._pace), most):
            found = self.additions(1)
            if not found:
                break
            self._model = add(self._model, self.table, *found[0])
            adds += 1
        return adds

    def additions(self, many: int) -> list[Addition]:
        """Return the best functions outside the model."""
        model = self._model
        model.place[list(self._aside)] = -1
        outside = np.flatnonzero((model.place == 0) & (model.S > 0))
        S, Q = model.S[outside], model.Q[outside]
        s, gain = self.penalty.hyperprior.best_precision(S, Q)
        there = np.isfinite(s) & (gain >= self.tol)
        s = np.where(there, s, 1.0)
        there &= s + S > COLLINEAR * (s + model.D[outside])
        order = np.argsort(-np.where(there, gain, 0.0), kind="stable")[:many]
        return [(int(outside[i]), float(s[i]), float(gain[i])) for i in order if there[i]]

    def worth(self) -> Floats:
        """Return what the working regression would lose with each function."""
        model, k = self._model, len(self.indices)
        xi, s = np.diagonal(model.Xi)[:k], model.s[:k]
        worth = 0.5 * (np.log(s * xi) + model.mu[:k] ** 2 / xi)
        if not self.penalty.is_flat:
            worth = worth + self.penalty.hyperprior.log_hyper(s)
        return np.asarray(worth)

    def swaps(self) -> list[tuple[int, int, float]]:
        """Return exchanges that gain under the working regression, best first."""
        model, found = self._model, []
        for j, i in gains_of_exchange(model, self.penalty, self.tol):
            at = int(np.flatnonzero(self.indices == j)[0])
            s, _ = after_exchange(model, self.penalty, at, i)
            if np.isfinite(s):
                found.append((j, i, s))
        return found
