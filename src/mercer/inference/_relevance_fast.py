"""The sequential algorithm: functions come, change and go, by what gains most evidence.

Tipping and Faul's, with some additions. Where single steps no longer gain, all precisions and the
noise go up the evidence together (`_relevance_evidence`), which single steps take long for where
functions are alike. Where nothing gains then, exchanges of a function in the model for one outside
are looked at, all k M of them for the price of one more matrix product. From where that ends too,
half the noise is tried, and what comes of it taken if it is better. Every so often all matrices are
computed afresh; if that shows less evidence than before, or next to none of what steps were said to
gain, which only rounding can bring about, these are undone and shorter runs made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._relevance_evidence import Functions, Point, Terms, ascend, evaluate
from mercer.inference._relevance_problem import RelevanceProblem, Report
from mercer.inference._relevance_rows import Rows
from mercer.inference._relevance_run import Limited, firmer
from mercer.inference._relevance_search import (
    add,
    after_exchange,
    alone,
    gains_of_exchange,
    look,
    run,
)
from mercer.linalg.precisions import (
    ADD,
    CANCELLED,
    Model,
    empty_model,
    precisions,
)

__all__ = ["Fast"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Steps of all precisions at once: while the model grows, where single steps have settled, at the
# end; and the part of `tol` that they gain at least.
_WHILE, _SETTLED, _END = 1, 12, 50
_PART = 0.1
# Single steps that are made without a look at the rounding: so many, and a multiple of k.
_RUN, _PER_FUNCTION = 32, 4
# Steps that turn out to be rounding are undone, and runs a quarter as long; this ends it.
_IMPATIENT = 1e-3
# What may be rounding of the evidence, relative; and the part of what steps were said to gain that
# they must have gained, or all of it was rounding.
_ROUNDING, _TRUE = 1e-9, 1e-3
# A function of which only this part is not explained by the model is added to fresh matrices alone.
_DOUBTFUL = 1e-7
# Rounds of exchanges before single steps alone decide: fewer of large models, where each
# costs as much as many steps.
_EXCHANGES = 24
# How often to go on from half the noise, as long as that gains, and what single steps must gain
# then.
_TRIALS, _COARSE = 1, 0.05


class Fast(Limited):
    """A model that grows.

    Parameters
    ----------
    problem : RelevanceProblem
    rows : Rows
        Its rows.
    tol : float
        What a step must gain, in nats.
    report : function, optional
    """

    def __init__(
        self, problem: RelevanceProblem, rows: Rows, tol: float, report: Report | None = None
    ) -> None:
        super().__init__()
        self.rows, self.terms, self.tol, self._report = rows, Terms(problem, rows), tol, report
        self.history: list[float] = []
        self._loops = precisions()
        self._always = np.unique(np.asarray(problem.always, dtype=np.intp))
        self._model: Model = empty_model(np.ascontiguousarray(rows.D), min(64, rows.size))
        self._model.place[rows.D <= 0] = -1
        self._patience = 1.0
        self._best = -np.inf
        self._exchanges = 0
        self._since = 0  # functions added since all precisions moved
        self.point: Point
        self.indices: Indices

    # --- beginning ------------------------------------------------------------------------------

    def begin(self, start: tuple[Indices, Floats, float] | None) -> None:
        """Take the first functions: those given, or those that are always in, or the best one."""
        rows, v = self.rows, self.terms.start
        if start is not None:
            indices, s, given = start
            v = self.terms.within(given) if self.terms.learns else v
            missing = np.setdiff1d(self._always, indices)
            indices = np.append(indices, missing).astype(np.intp)
            s = np.append(s, self._alone(missing, v))
        else:
            indices = self._always
            if not len(indices):
                with np.errstate(divide="ignore", invalid="ignore"):
                    indices = np.array([np.argmax(np.where(rows.D > 0, rows.P**2 / rows.D, -1.0))])
            s = self._alone(indices, v)
        while not self._set(indices, s, v):  # they are too alike: firmer priors
            s = firmer(s, 1e-12 * rows.D[indices] / v)

    def _alone(self, indices: Indices, v: float) -> Floats:
        return alone(self.rows.D[indices] / v, (self.rows.P[indices] / v) ** 2)

    # --- matrices -------------------------------------------------------------------------------

    @property
    def active(self) -> Indices:
        """The functions in the model, in its order."""
        return self._model.active[: self._model.whole[0]]

    def _functions(self) -> Functions:
        model, active = self._model, self.active
        G = model.G[: len(active)][:, active]
        G = 0.5 * (G + G.T)
        return Functions(self.rows.take(active), G, self.rows.P[active], self.rows.z, self.rows.zz)

    def _set(self, indices: Indices, s: Floats, v: float) -> bool:
        """Make these the model; False if they have no factor."""
        k = len(indices)
        model = self._model = self._model.with_room(k)
        held = {int(j): place for place, j in enumerate(self.active)}
        rows = [
            model.G[held[j]].copy() if j in held else self.rows.gram(j) for j in map(int, indices)
        ]
        for place, row in enumerate(rows):
            model.G[place] = row
        model.place[model.place > 0] = 0
        model.place[indices] = 1
        model.place[np.intersect1d(indices, self._always)] = 2
        model.whole[0] = k
        model.active[:k] = indices
        of = self._functions()
        point = evaluate(self.terms, of, s, v)
        if point is None:
            return False
        self._take(point)
        return True

    def _take(self, point: Point) -> None:
        """Compute all matrices afresh at this point, which becomes the one to return to."""
        model, rows, k = self._model, self.rows, len(point.s)
        b = 1.0 / point.v
        model.settle(point.R, point.s, point.mu, b)
        model.Q[:] = b * (rows.P - point.mu @ model.G[:k])
        model.place[(model.place == -1) & (rows.D > 0)] = 0
        self.point, self.indices = point, self.active.copy()
        self.history.append(point.value)

    def _move(self, steps: int, tol: float) -> bool:
        """Move all precisions and the noise, and compute all afresh; False if steps were undone."""
        model = self._model
        self._since = 0
        k = len(self.active)
        of = self._functions()
        fresh = evaluate(self.terms, of, model.s[:k].copy(), 1.0 / model.numbers[0])
        if fresh is None or self._is_rounding(fresh.value):
            before = self.point
            self._patience *= 0.25
            self._set(self.indices, before.s, before.v)
            self.history.pop()
            return False
        self._take(ascend(self.terms, of, fresh, steps, tol))
        self._tell()
        return True

    def _is_rounding(self, value: float) -> bool:
        """Whether steps that lead to such a value gain nothing, whatever they were said to."""
        gain, said = value - self.point.value, float(self._model.numbers[1])
        if said > 0:
            return gain <= _TRUE * said
        return gain < -_ROUNDING * (1.0 + abs(self.point.value))

    def _tell(self) -> None:
        if self._report is not None:
            self._best = max(self._best, self.point.value)
            self._report(self.n_steps, self._best, len(self.active))

    # --- the algorithm --------------------------------------------------------------------------

    def grow(self, max_iter: int) -> str:
        """Take steps until none gains `tol`, or there are so many; return the status."""
        self.limit_to(max_iter)
        self._tell()
        self._rest()
        for _ in range(_TRIALS):
            if self._is_cut or not self.terms.learns or not self._try_less_noise():
                break
        return self.status

    def _rest(self) -> None:
        """Take steps until none gains, or none is left for one that would."""
        self._exchanges = 0
        while not self._is_cut:
            gains = self._steps(self.tol)
            if self._patience < _IMPATIENT:  # all that steps gain is undone, being rounding
                return
            if not gains and self._settle():
                return
        self._move(_END, 1e-3 * self.tol)

    def _steps(self, tol: float) -> bool:
        """Take single steps up to the next addition, if any is left; False if none gains tol."""
        k = len(self.active)
        limit = max(1, int(self._patience * (_RUN + _PER_FUNCTION * k)))
        before, left = int(self._model.whole[1]), self.left
        what, which, s, gain = run(self._model, self.terms, tol, min(limit, left))
        if not left and gain >= tol:
            return not self.may_step()
        self.n_steps += int(self._model.whole[1]) - before
        model = self._model
        if what == ADD and model.whole[1] and model.S[which] < _DOUBTFUL * self._scale(which):
            self._move(_WHILE, 0.0)  # what it seems to gain may be rounding
        elif what == ADD:
            self._model = add(model, self.rows, which, s, gain)
            self.n_steps += 1
            self._since += 1
            due = self._since >= max(1, k // 8) or self._model.numbers[2] < CANCELLED
            if due or self._model.whole[1] >= limit:
                self._move(_WHILE, 0.0)
        elif gain >= tol or self._model.whole[1] >= limit:
            self._move(_WHILE, 0.0)
        else:
            return False
        return True

    def _scale(self, i: int) -> float:
        return float(self._model.numbers[0] * self.rows.D[i])

    def _try_less_noise(self) -> bool:
        """Go on from half the noise, under which more functions gain; undo it if all is no better.

        Functions that are of use together, and none alone, are found in this way.
        """
        terms, best, indices, history = self.terms, self.point, self.indices, self.history
        most = 2 * len(indices) + _RUN
        self.history = []
        try:
            terms.learns = False
            if self._set(indices, best.s, terms.within(0.5 * best.v)):
                coarse = max(self.tol, _COARSE)
                while not self._is_cut and len(self.active) < most:
                    if not self._steps(coarse) or self._patience < _IMPATIENT:
                        break
            self._move(_WHILE, 0.0)
            terms.learns = True
            self._rest()
            better = self.point.value >= best.value + self.tol
        except KeyboardInterrupt:
            self.point, self.indices, self.history = best, indices, history
            raise
        finally:
            terms.learns = True
        if better:
            self.history = [*history, self.point.value]
        else:
            self._set(indices, best.s, best.v)
            self.point, self.history = best, history
        self._tell()
        return better

    def _settle(self) -> bool:
        """Move all precisions to where they gain nothing more; True if no step gains then."""
        before = self.point.value
        if not self._move(_SETTLED, _PART * self.tol):
            return False
        if self._gains() or self.point.value - before >= self.tol:
            return False
        if self._exchanges < _EXCHANGES * 40 // (40 + len(self.active)) and self._exchange():
            self._exchanges += 1
            return False
        self._move(_END, 1e-9)
        return not self._gains()

    def _gains(self) -> bool:
        if self.terms.is_flat:
            return bool(self._loops.choose(self._model)[3] >= self.tol)
        return look(self._model, self.terms.hyperprior)[3] >= self.tol

    def _exchange(self) -> bool:
        """Exchange functions of the model for others where that gains; False if none does."""
        model, done = self._model, 0
        for j, i in gains_of_exchange(model, self.terms, self.tol):
            place = np.flatnonzero(self.active == j)
            if model.place[i] != 0 or not len(place):
                continue
            at = int(place[0])
            s, gain = after_exchange(model, self.terms, at, i)
            if not (np.isfinite(s) and gain >= 0.5 * self.tol):
                continue
            if not self.may_step():
                break
            row = self.rows.gram(i)
            self._loops.remove(model, at)
            model.G[model.whole[0]] = row
            self._loops.insert(model, i, s)
            model.numbers[1] += gain
            self.n_steps += 1
            done += 1
        if done:
            return self._move(_WHILE, 0.0)
        return False
