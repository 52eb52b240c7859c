"""What on-line regressors and classifiers share: rows that come, wait, and are learned."""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from mercer.compute import row_blocks
from mercer.errors import ConvergenceWarning, MercerWarning, warn
from mercer.estimators.interruption import heard
from mercer.estimators.memory import require_basis
from mercer.estimators.nested import column_names
from mercer.estimators.online_options import (
    check_online_options,
    engine_options,
    require_posterior,
)
from mercer.estimators.online_start import Start, sample_of, taken
from mercer.estimators.options import require_count
from mercer.estimators.preparation import all_or_nothing
from mercer.estimators.process import FittedProcess
from mercer.estimators.rows import Rows
from mercer.estimators.search import report_of
from mercer.estimators.state import StorableEstimator
from mercer.evidence.optimum import Report, tell
from mercer.inference._online_sweeps import refine, repeat
from mercer.inference.online import Before, OnlineProcess
from mercer.kernels import Kernel
from mercer.means import Mean
from mercer.posterior import Posterior, Predictive

__all__ = ["LearnsOnline"]

Floats = NDArray[np.float64]

# Rows that are learned before Ctrl-C is heard, and how many lines tell of a pass.
_BLOCK = 512
_LINES = 10


class LearnsOnline(StorableEstimator, FittedProcess):
    """Adds to an estimator `fit`, `partial_fit` and what an on-line process has.

    A subclass gives `_rows`, `_complete` and `_chosen`. It stands before the other bases.
    """

    max_basis: int
    n_init: int
    n_sweeps: int
    recycle: str
    # What searches ask of an estimator, and there is no choice of here.
    warm_start, inference, objective = False, "auto", "evidence"
    _conformance_exemptions = {"rule_order_of_rows": "it takes rows in turn"}  # noqa: RUF012

    status_: str
    n_iter_: int
    n_features_in_: int
    _multioutput: bool
    _process: OnlineProcess
    _posterior: Posterior | None
    _waiting: dict[str, Any] | None

    # --- what a subclass gives ----------------------------------------------------------------

    @abstractmethod
    def _rows(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        again: bool,
        some: bool,
        **options: Any,
    ) -> Rows:
        """Return rows, checked, with targets as the engine takes them.

        If `again`, they come after others; with `some`, weights must not all be 0.
        """

    @abstractmethod
    def _complete(self, X: Any, outputs: int) -> Start | None:
        """Return the model if all of it is given, else None."""

    @abstractmethod
    def _chosen(self, X: Any, rows: Rows) -> Start:
        """Return the model as these rows choose it; X tells the names of columns."""

    # --- all rows at once ---------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Self:
        check_online_options(self)
        with all_or_nothing(self):
            rows = self._rows(X, y, sample_weight, again=False, some=True)
            some = taken(rows, sample_of(len(rows.Y), self.n_init))
            self._begin(self._chosen(X, some), rows.multioutput)
            report = report_of(self)
            before, stopped = self._pass(rows, report)
            whole = len(before.log_density) == len(rows.Y)
            if whole and self.n_sweeps > 1:
                whole = not stopped and self._sweep(rows, before, report)
            self.status_ = "complete" if whole else "interrupted"
            self._posterior = self._process.posterior()  # so that predictions change nothing
            tell(report, f"{self.status_}: {self.n_seen_} rows, {self.n_basis_} basis vectors")
        return self

    def _begin(self, start: Start, multioutput: bool) -> None:
        """Take this model, without any rows yet."""
        outputs = len(start.scale)
        require_basis(self.max_basis, outputs)
        model = start.kernel, start.likelihood, start.mean
        self.kernel_, self.likelihood_, self.mean_ = model
        self.n_iter_, self.status_, self._multioutput = start.n_iter, "complete", multioutput
        options = engine_options(self)
        process = OnlineProcess(*model, n_outputs=outputs, scale=start.scale, **options)
        self._process, self._posterior, self._waiting = process, None, None

    def _go_on_from(self, posterior: Posterior, likelihood: Any, lift: bool) -> None:
        """Take this posterior and its model."""
        check_online_options(self)
        options = engine_options(self)
        process = OnlineProcess.from_posterior(posterior, likelihood, lift=lift, **options)
        self.kernel_, self.likelihood_ = posterior.kernel, likelihood
        self.mean_ = posterior.mean_function
        self.n_iter_, self.status_ = 1, "complete"
        self._process, self._posterior, self._waiting = process, None, None
        if posterior.kernel.is_numeric and posterior.n_basis:
            self.n_features_in_ = posterior.basis.points.shape[1]
        self._wants_names = True  # a posterior does not know those of its columns

    def _pass(self, rows: Rows, report: Report | None = None) -> tuple[Before, bool]:
        """Learn rows until all are, or Ctrl-C is heard.

        Returns what was predicted of each, and whether Ctrl-C was heard: it may have come while
        the last of them were learned.
        """
        process, n, stop = self._process, len(rows.Y), threading.Event()
        self._posterior = None
        parts = [Before(*(np.empty((0, rows.Y.shape[1])),) * 2, np.empty(0))]
        with heard(stop):
            for some in row_blocks(n, _BLOCK):
                weights = None if rows.weights is None else rows.weights[some]
                parts.append(process.learn(rows.X[some], rows.Y[some], weights))
                if (some.start * _LINES) // n < (some.stop * _LINES) // n:
                    tell(report, f"row {some.stop} of {n}, {process.n_basis} basis vectors")
                if stop.is_set():
                    break
        before = Before(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        self._warn_of_skipped(before)
        return before, stop.is_set()

    def _warn_of_skipped(self, before: Before) -> None:
        skipped = np.flatnonzero(np.isnan(before.log_density))
        if skipped.size:
            warn(
                f"{skipped.size} of {len(before.log_density)} rows were skipped, row {skipped[0]} "
                f"(counted from 0) the first: under {self.likelihood_!r} their targets have "
                "probability 0 wherever the process can be, or tell nothing that a Gaussian could "
                "hold. A likelihood with some noise learns from any",
                MercerWarning,
            )

    def _sweep(self, rows: Rows, before: Before, report: Report | None) -> bool:
        """Go over the rows again; return whether that was not broken off."""
        given = rows.X, rows.Y, rows.weights
        if self.recycle == "sites":
            tell(report, f"refining the sites of {len(rows.Y)} rows")
            try:
                refined = refine(self._process, *given, before, self.n_sweeps - 1)
            except KeyboardInterrupt:  # of which the process knows nothing
                return False
            self._process = refined.process
            if not refined.converged:
                self._warn_of_unsettled(refined.residual)
            return True
        stop = threading.Event()
        with heard(stop):
            for sweep in range(2, self.n_sweeps + 1):
                repeat(self._process, *given, 1)
                tell(report, f"sweep {sweep} of {self.n_sweeps}")
                if stop.is_set() and sweep < self.n_sweeps:
                    return False
        return True

    def _warn_of_unsettled(self, residual: float) -> None:
        warn(
            f"the sites had not settled after n_sweeps={self.n_sweeps}: at the worst row the mean, "
            f"in standard deviations, or the variance, as a part of it, is off by {residual:.2g}. "
            "Raise n_sweeps: sweeps end by themselves once sites have settled, often within ten. "
            "Where 100 are not enough, rows contradict each other under this likelihood: take one "
            "with heavier tails, or shorter length scales, or n_sweeps=1",
            ConvergenceWarning,
        )

    # --- rows as they come --------------------------------------------------------------------

    def _take(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, **options: Any
    ) -> tuple[Rows, Before]:
        """Learn rows, or let them wait; return them and what was predicted of each before.

        That is NaN for the rows that have chosen the hyperparameters.
        """
        begun, first = "_process" in vars(self), "_waiting" not in vars(self)
        if not begun:
            check_online_options(self)
        waited = 0
        with all_or_nothing(self):
            if vars(self).get("_wants_names"):
                self._wants_names = False
                names = column_names(X)
                if names is not None:
                    self.feature_names_in_ = np.array(names, dtype=object)
            rows = every = self._rows(X, y, sample_weight, again=not first, some=False, **options)
            if first:
                self._waiting, self._multioutput = None, rows.multioutput
            self._require_outputs(rows)
            if not begun:
                every = self._with_waiting(rows)
                start = self._complete(X, rows.Y.shape[1])
                if start is None and len(every.Y) >= self.n_init:
                    start, waited = self._chosen(X, taken(every, slice(self.n_init))), self.n_init
                if start is None:
                    self._waiting = {"X": every.X, "Y": every.Y, "weights": every.weights}
                    return rows, _unknown(rows)
                self._begin(start, rows.multioutput)
        found, stopped = self._pass(every)
        told, new = len(found.log_density), len(rows.Y)
        before = _unknown(rows)
        for out, values in zip(before, found, strict=True):
            values[:waited] = np.nan
            out[: max(0, told - len(every.Y) + new)] = values[len(every.Y) - new :]
        if stopped:
            raise KeyboardInterrupt  # between rows or after all: n_seen_ tells how many are learned
        return rows, before

    def _with_waiting(self, rows: Rows) -> Rows:
        """Return the rows that wait, then these."""
        old = self._waiting
        if old is None:
            return rows
        X, Y = np.concatenate([old["X"], rows.X]), np.concatenate([old["Y"], rows.Y])
        given = [(old["weights"], old["Y"]), (rows.weights, rows.Y)]
        weights = np.concatenate([np.ones(len(Y)) if w is None else w for w, Y in given])
        kept = np.ones(len(Y), dtype=bool)
        return Rows(X, Y, weights, kept, rows.multioutput)

    def _require_outputs(self, rows: Rows) -> None:
        """Raise ValueError for targets in other columns than those of the rows before."""
        known = vars(self).get("_waiting")
        outputs = rows.Y.shape[1]
        if known is not None:
            outputs = known["Y"].shape[1]
        elif "_process" in vars(self):
            outputs = len(self._process.scale)
        if rows.Y.shape[1] != outputs or rows.multioutput != self._multioutput:
            shape = f"(n, {outputs})" if self._multioutput else "(n,)"
            own = f"(n, {rows.Y.shape[1]})" if rows.multioutput else "(n,)"
            raise ValueError(f"y must have shape {shape}, as in the rows before, got {own}")

    # --- what there is of it ------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a process."""
        return "_process" in vars(self)

    def _require_begun(self) -> OnlineProcess:
        if "_process" in vars(self):
            return self._process
        waiting = vars(self).get("_waiting")
        name = type(self).__name__
        if waiting is None:
            raise NotFittedError(
                f"this {name} instance is not fitted yet: call 'fit' or 'partial_fit' first"
            )
        n = len(waiting["Y"])
        raise NotFittedError(
            f"this {name} instance is not fitted yet: {n} of the first n_init={self.n_init} rows "
            "are there, by which hyperparameters are chosen. Give more to 'partial_fit', or a "
            "kernel and a likelihood of your own, with which learning starts at once"
        )

    def _models(self) -> list[tuple[Kernel, Any, Mean]]:
        self._require_begun()
        return super()._models()

    @property
    def posterior_(self) -> Posterior:
        """The process as it is now."""
        process = self._require_begun()
        if self._posterior is None:
            self._posterior = process.posterior()
        return self._posterior

    @posterior_.setter
    def posterior_(self, posterior: Posterior) -> None:
        process = self._require_begun()
        require_posterior(posterior)
        options = engine_options(self)
        new = OnlineProcess.from_posterior(posterior, self.likelihood_, **options)
        new.n_seen = process.n_seen
        self._process, self._posterior = new, None

    @property
    def predictive_(self) -> Predictive:
        """The process as it is now, as predictions ask it."""
        return self.posterior_

    @property
    def basis_(self) -> Any:
        """The basis vectors, rows of inputs (m, d)."""
        return self._require_begun().points

    @property
    def n_basis_(self) -> int:
        """How many basis vectors there are."""
        return self._require_begun().n_basis

    @property
    def n_seen_(self) -> int:
        """How many rows have been learned; of those that choose the model, how many wait."""
        waiting = vars(self).get("_waiting")
        if waiting is not None:
            return len(waiting["Y"])
        return self._require_begun().n_seen

    @property
    def projection_loss_(self) -> float:
        """What projections and removals have cost, in nats, added up."""
        return self._require_begun().projection_loss

    @property
    def log_evidence_(self) -> float:
        """The log predictive density of all rows, each given those before it, added up."""
        return self._require_begun().log_evidence

    def prune(self, n: int) -> float:
        """Remove basis vectors of this model, by `criterion`, until n are left.

        Parameters
        ----------
        n : int
            How many to keep. Rows that come later may bring their number back to `max_basis`.

        Returns
        -------
        float
            What that cost: the divergence of the process before from that after, in nats. It is
            also added to `projection_loss_`.
        """
        process = self._require_begun()
        require_count("n", n, 1)
        loss = process.prune(n)
        self._posterior = None
        return loss

    def to_state(self) -> dict[str, Any]:
        """Return the parameters and the fitted attributes; the posterior is made anew."""
        state = super().to_state()
        if "_posterior" in state["fitted"]:
            state["fitted"]["_posterior"] = None
        return state


def _unknown(rows: Rows) -> Before:
    """Return that nothing was said of these rows."""
    n, outputs = rows.Y.shape
    return Before(np.full((n, outputs), np.nan), np.full((n, outputs), np.nan), np.full(n, np.nan))
