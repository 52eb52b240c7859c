"""A model under Laplace's evidence that grows and shrinks; no step lowers the penalised evidence.

Not an engine; `relevance_classes` has the model and the notation. What is likely to gain is found
on the working regression of the Laplace approximation; how, is for the subclass to say. Whether it
does gain is seen when the mode has been computed again: a step that turns out to lower the evidence
is undone, and the function that was to come in is set aside, until nothing else gains.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from mercer.inference._relevance_ascent import Penalty
from mercer.inference._relevance_laplace import LARGEST, Laplace
from mercer.inference._relevance_mode import Mode
from mercer.inference._relevance_problem import Hyperprior, Report
from mercer.inference._relevance_run import Limited, firmer
from mercer.inference._relevance_search import alone
from mercer.inference._relevance_sites import Sites
from mercer.inference._relevance_table import Table

__all__ = ["Addition", "Growth", "widths_of"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
#: A function that may come in, its precision, and what it is thought to gain.
Addition = tuple[int, float, float]

# Steps of all precisions at once: where single steps have settled, and at the end; and the part of
# `tol` that they gain at least.
_SETTLED, _END = 12, 200
_PART = 0.1
# A function that is thought to be worth less, in nats, is tried to be left out; so many of them.
_LITTLE, _TRIALS = 0.3, 8
# Rounds of exchanges.
_EXCHANGES = 12
# How often to grow again, as long as that gains, without one in so many of the functions; models
# of more functions than this are left as they are, since it takes as long as all before, and so are
# those that began with another fit.
_SHAKES, _THIRD, _FEW = 2, 3, 60
# How often to go on where precisions that were moved to the very top let another step gain.
_ENDS = 3
_ROUNDING = 1e-12
# Squares that are smaller, relative to the largest, are taken for 0.
_TINY = 1e-60


class Growth(Limited, ABC):
    """A model that grows.

    Parameters
    ----------
    table : Table
        All functions, at the rows that have a weight.
    sites : Sites
        Of these rows.
    hyperprior : Hyperprior
    always : functions that stay
    tol : float
        What a step must gain, in nats.
    report : function, optional
    """

    def __init__(
        self,
        table: Table,
        sites: Sites,
        hyperprior: Hyperprior,
        always: Indices,
        tol: float,
        report: Report | None = None,
    ) -> None:
        super().__init__()
        self.table, self.sites, self.tol, self._report = table, sites, tol, report
        self.penalty = Penalty(hyperprior)
        self._always = np.unique(np.asarray(always, dtype=np.intp))
        self.widths, self._zero = widths_of(table, sites)
        self.history: list[float] = []
        self._aside: set[int] = set()
        self._exchanges = 0
        self._best, self._is_new = -np.inf, True
        # How many functions come in before the mode is computed again; and whether precisions
        # change by the working regression too, until that first misleads.
        self._pace, self._rough = 1.0, True
        self.point: Mode
        self.indices: Indices

    # --- for subclasses -------------------------------------------------------------------------

    @abstractmethod
    def refresh(self) -> None:
        """Compute what the search needs, afresh, at `point`."""

    @abstractmethod
    def stride(self) -> bool:
        """Take steps that are thought to gain `tol`, if any is left; False if there are none."""

    @abstractmethod
    def additions(self, many: int) -> list[Addition]:
        """Return functions that are thought to gain `tol` and are not set aside, best first."""

    @abstractmethod
    def worth(self) -> Floats:
        """Return what each function in the model is thought to be worth, (k,), in nats."""

    @abstractmethod
    def swaps(self) -> list[tuple[int, int, float]]:
        """Return exchanges (j, i, s) that are thought to gain: j goes, i comes with s."""

    # --- beginning ------------------------------------------------------------------------------

    def begin(self, start: tuple[Indices, Floats] | None) -> None:
        """Take the first functions: those given, or those that are always in, or the best one."""
        t = np.zeros((self.table.n, self.sites.width))
        pull, bend = self.sites.slopes(t)
        self.table.weigh(np.mean(np.einsum("cci->ci", bend), axis=0))
        D = self.table.D
        P2 = np.mean([self.table.times(np.ascontiguousarray(g)) ** 2 for g in pull.T], axis=0)
        self._is_new = start is None
        if start is not None:
            missing = np.setdiff1d(self._always, start[0])
            indices = np.append(start[0], missing).astype(np.intp)
            s = np.append(start[1], alone(D[missing], P2[missing]))
        else:
            indices = self._always
            if not len(indices):
                ratio = np.where(D > 0, P2 / np.where(D > 0, D, 1.0), -1.0)
                indices = np.array([int(np.argmax(ratio))])
            s = alone(D[indices], P2[indices])
        laplace = self.of(indices)
        point = laplace.at(s)
        while point is None:  # they are too alike: firmer priors
            s = firmer(s, 1e-6 * self.widths[indices], LARGEST * self.widths[indices])
            point = laplace.at(s)
        self._hold(indices, point)

    def of(self, indices: Indices) -> Laplace:
        """Return the evidence of some functions."""
        return Laplace(self.sites, self.penalty, self.table.plain(indices), self.widths[indices])

    # --- steps ----------------------------------------------------------------------------------

    def take(self, indices: Indices, point: Mode) -> None:
        """Make this the model, and tell of it."""
        self._hold(indices, point)
        self._tell()

    def _hold(self, indices: Indices, point: Mode) -> None:
        self.point, self.indices = point, indices
        self.history.append(point.value)
        self.refresh()

    def _tell(self) -> None:
        self._best = max(self._best, self.point.value)
        if self._report is not None:
            self._report(self.n_steps, self._best, len(self.indices))

    def trial(self, indices: Indices, s: Floats, steps: int, least: float) -> Mode | None:
        """Return the mode of another model, if it gains so much; all precisions may move for it."""
        start = np.zeros((len(indices), self.sites.width))
        place = {int(j): at for at, j in enumerate(self.indices)}
        for at, j in enumerate(indices):
            if int(j) in place:
                start[at] = self.point.theta[place[int(j)]]
        laplace, wanted = self.of(indices), self.point.value + least
        found = laplace.at(s, start)
        if found is not None and found.value < wanted and steps:
            found = laplace.ascended(found, steps, _PART * self.tol)
        return found if found is not None and found.value >= wanted else None

    def ascend(self, steps: int, tol: float) -> float:
        """Move all precisions, and return what that has gained."""
        before = self.point.value
        found = self.of(self.indices).ascended(self.point, steps, tol)
        if found is not self.point:
            self.take(self.indices, found)
        return self.point.value - before

    def polish(self) -> None:
        """Move all precisions to where the gradient is 0."""
        laplace = self.of(self.indices)
        found = laplace.ascended(self.point, _SETTLED, 1e-6)
        found = laplace.polished(found, _END)
        if found is not self.point:
            self.take(self.indices, found)

    def add_one(self) -> bool:
        """Add the first of the best functions that does gain, and set others aside."""
        for i, s, _ in self.additions(_TRIALS):
            if not self.may_step():
                break
            self.n_steps += 1
            indices = np.append(self.indices, i)
            found = self.trial(indices, np.append(self.point.s, s), 2, _PART * self.tol)
            if found is not None:
                self.take(indices, found)
                return True
            self._aside.add(i)
        return False

    def prune(self, trials: int = _TRIALS) -> bool:
        """Leave functions out that the model is no worse without; so many trials for each."""
        done = False
        for _ in range(len(self.indices)):
            if not self._leave_one_out(trials):
                break
            done = True
        return done

    def _leave_one_out(self, trials: int) -> bool:
        worth = np.where(np.isin(self.indices, self._always), np.inf, self.worth())
        for j in np.argsort(worth, kind="stable")[:trials]:
            if len(self.indices) == 1 or worth[j] > _LITTLE or not self.may_step():
                break
            self.n_steps += 1
            kept = np.delete(np.arange(len(self.indices)), j)
            rounding = -_ROUNDING * (1.0 + abs(self.point.value))
            found = self.trial(self.indices[kept], self.point.s[kept], 2, rounding)
            if found is not None:
                value = max(found.value, self.point.value)
                self.take(self.indices[kept], found._replace(value=value))
                return True
        return False

    def exchange(self) -> bool:
        """Exchange functions of the model for others where that gains; False if none does."""
        done = False
        for j, i, s in self.swaps()[:_TRIALS]:
            place = np.flatnonzero(self.indices == j)
            if not len(place) or i in self.indices:
                continue
            if not self.may_step():
                break
            self.n_steps += 1
            indices, precisions = self.indices.copy(), self.point.s.copy()
            indices[place[0]], precisions[place[0]] = i, s
            found = self.trial(indices, precisions, 1, 0.5 * self.tol)
            if found is not None:
                self.take(indices, found)
                done = True
        return done

    # --- the algorithm --------------------------------------------------------------------------

    def grow(self, max_iter: int) -> str:
        """Take steps until none gains `tol`, or there are so many; return the status."""
        self.limit_to(max_iter)
        self._tell()
        self._rest()
        for _ in range(_SHAKES if self._is_new else 0):
            if self._is_cut or not self._shake():
                break
        for _ in range(_ENDS):
            self.polish()
            if self._is_cut or not (self.prune() or self.add_one()):
                break
            self._rest()
        else:
            self.polish()
        return self.status

    def _rest(self) -> None:
        """Take steps until none gains, or none is left for one that would."""
        self._exchanges = 0
        while not self._is_cut:
            if not self.stride() and self._settle():
                break

    def _shake(self) -> bool:
        """Grow again without those that are worth most; undo it if that is no better, or larger.

        They came first, when little was known of what else there would be. What more functions
        would add to the evidence is not sought in this way: where the approximation is poor, there
        is always more of it.
        """
        best, indices, history = self.point, self.indices, self.history
        may_go = np.flatnonzero(~np.isin(indices, self._always))
        many = -(-len(may_go) // _THIRD)
        if not 0 < many < len(indices) or len(indices) > _FEW:
            return False
        gone = may_go[np.argsort(-self.worth()[may_go], kind="stable")[:many]]
        kept = np.delete(np.arange(len(indices)), gone)
        point = self.of(indices[kept]).at(best.s[kept], best.theta[kept])
        if point is None:
            return False
        better = False
        try:
            self.history, self._rough, self._pace = [], True, 1.0
            self._aside.clear()
            self.take(indices[kept], point)
            self._rest()
            gain, more = self.point.value - best.value, len(self.indices) > len(indices)
            better = gain >= self.tol and not more
        finally:  # also where it is interrupted
            if better:
                self.history = [*history, self.point.value]
            else:
                self.point, self.indices, self.history = best, indices, history
        if not better:
            self.refresh()
        return better

    def _settle(self) -> bool:
        """Move all precisions to where they gain nothing more; True if no step gains then."""
        before = self.point.value
        self.ascend(_SETTLED, _PART * self.tol)
        self.prune(1)
        if self.point.value - before >= self.tol or self.add_one():
            return False
        if self._exchanges < _EXCHANGES and self.exchange():
            self._exchanges += 1
            return False
        while self.prune():
            self.ascend(_SETTLED, _PART * self.tol)
        if self._aside:  # what was set aside in another model may gain in this one
            self._aside.clear()
            self.refresh()
        return not self.add_one()


def widths_of(table: Table, sites: Sites) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the mean squares (M,) of functions under the rows' weights, and which are all but 0.

    Latent numbers are in the unit of their sites. Functions that are all but 0, as a section of a
    kernel is at rows that are all far from its centre, are given a mean square of 1.
    """
    table.weigh(table.weights)
    zero = table.D <= _TINY * np.max(table.D)
    return np.where(zero, 1.0, table.D / table.weight) / sites.unit / sites.unit, zero
