"""What on-line regressors and classifiers share: rows that come, wait, and are learned."""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import heard, row_blocks
from mercer.errors import ConvergenceWarning, warn
from mercer.estimators.memory import require_basis, require_sweeps
from mercer.estimators.nested import column_names
from mercer.estimators.online_lift import factor_of
from mercer.estimators.online_loss import NO_LOSSES, NoticesLosses
from mercer.estimators.online_options import check_online_options, engine_options
from mercer.estimators.online_start import Start, sample_of, taken
from mercer.estimators.preparation import all_or_nothing
from mercer.estimators.rows import Rows
from mercer.estimators.search import report_of
from mercer.evidence.few_rows import warn_of_next_to_no_noise
from mercer.evidence.optimum import Report, tell
from mercer.inference._online_moments import n_covariances
from mercer.inference._online_sweeps import refine
from mercer.inference.online import Before, OnlineProcess
from mercer.likelihoods import Likelihood
from mercer.posterior import Posterior

__all__ = ["LearnsOnline"]

Whole = NDArray[np.intp]

# Rows that are learned before Ctrl-C is heard, and how many lines tell of a pass.
_BLOCK = 512
_LINES = 10
# How far sites may be from settled before it is worth a word: far below what a posterior tells.
_SETTLED = 1e-4


class LearnsOnline(NoticesLosses):
    """Adds to an estimator `fit`, `partial_fit` and what an on-line process has.

    A subclass gives `_rows`, `_complete` and `_chosen`. It stands before the other bases.
    """

    #: Whether functions have a covariance each: those of labels have, columns of numbers share one.
    _of_labels: bool
    n_sweeps: int
    recycle: str
    _conformance_exemptions = {"rule_order_of_rows": "it takes rows in turn"}  # noqa: RUF012

    status_: str
    n_iter_: int
    n_features_in_: int
    _multioutput: bool

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
            self._require_room(rows)
            if self.n_sweeps > 1 and self.recycle == "sites":
                require_sweeps(len(rows.Y), self.max_basis)
            some = taken(rows, sample_of(len(rows.Y), self.n_init))
            more = len(some.Y) < len(rows.Y)  # that could have chosen too
            self._begin(self._chosen(X, some), rows.multioutput, len(some.Y) if more else 0)
            self._process.require_units(rows.X)
            report = report_of(self)
            before, stopped = self._pass(rows, report, np.flatnonzero(rows.kept))
            whole = len(before.log_density) == len(rows.Y)
            if whole and self.n_sweeps > 1:
                whole = not stopped and self._sweep(rows, before, report)
            self.status_ = "complete" if whole else "interrupted"
            self._posterior = self._process.posterior()  # so that predictions change nothing
            tell(report, f"{self.status_}: {self.n_seen_} rows, {self.n_basis_} basis vectors")
        return self

    def _require_room(self, rows: Rows) -> None:
        """Raise TooLargeError if the matrices of the process do not fit into memory."""
        require_basis(self.max_basis, rows.Y.shape[1] if self._of_labels else 1)

    def _begin(self, start: Start, multioutput: bool, chosen_by: int) -> None:
        """Take this model, without any rows yet.

        `chosen_by` is how many rows chose it where others could have, else 0.
        """
        outputs = len(start.scale)
        model = start.kernel, start.likelihood, start.mean
        self.kernel_, self.likelihood_, self.mean_ = model
        self.n_iter_, self.status_, self._multioutput = start.n_iter, "complete", multioutput
        options = engine_options(self)
        process = OnlineProcess(*model, n_outputs=outputs, scale=start.scale, **options)
        self._process, self._posterior, self._waiting = process, None, None
        self._lost, self._chosen_by = NO_LOSSES, chosen_by

    @classmethod
    def _from_posterior(
        cls,
        posterior: Posterior,
        likelihood: Any,
        link: Likelihood,
        max_basis: int | None,
        lift: bool | str,
        options: dict[str, Any],
        **own: Any,
    ) -> Self:
        """Return a model that goes on from a posterior; `link` is what `likelihood` names."""
        most = max(posterior.n_basis, 1) if max_basis is None else max_basis
        model = cls(
            posterior.kernel,  # type: ignore[call-arg]
            likelihood,
            max_basis=most,
            mean=posterior.mean_function,
            optimizer=None,
            **options,
            **own,
        )
        check_online_options(model)
        require_basis(most, n_covariances(link, posterior.n_outputs))
        process = OnlineProcess.from_posterior(
            posterior, link, lift=factor_of(lift, posterior), max_basis=max_basis, **options
        )
        model.kernel = model.kernel_ = process.kernel
        if not process.is_degenerate:
            model.max_basis = process.rules.max_basis  # a lift leaves out redundant points
        model.likelihood_ = link
        model.mean_ = posterior.mean_function
        model.n_iter_, model.status_ = 1, "complete"
        model._process, model._posterior, model._waiting = process, None, None
        if posterior.kernel.is_numeric and posterior.n_basis:
            model.n_features_in_ = posterior.basis.points.shape[1]
        model._wants_names = True  # a posterior does not know those of its columns
        return model

    def _pass(
        self, rows: Rows, report: Report | None = None, numbers: Whole | None = None
    ) -> tuple[Before, bool]:
        """Learn rows until all are, or Ctrl-C is heard.

        Returns what was predicted of each, and whether Ctrl-C was heard: it may have come while
        the last of them were learned. `numbers` says which they are to the user, as `_warn_of` has
        it; without it they were learned before, and nothing but the basis can be told of.
        """
        process, n, stop = self._process, len(rows.Y), threading.Event()
        again = numbers is None
        self._posterior = None
        parts = [Before(*(np.empty((0, rows.Y.shape[1])),) * 2, np.empty(0))]
        with heard(stop):
            for some in row_blocks(n, _BLOCK):
                weights = None if rows.weights is None else rows.weights[some]
                parts.append(self._learned(rows.X[some], rows.Y[some], weights, again))
                if (some.start * _LINES) // n < (some.stop * _LINES) // n:
                    tell(report, f"row {some.stop} of {n}, {process.n_basis} basis vectors")
                if stop.is_set():
                    break
        before = Before(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        if again:
            self._warn_of_losses()
        else:
            self._warn_of(before, numbers)
        return before, stop.is_set()

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
            if not (refined.converged or refined.residual < _SETTLED):
                self._warn_of_unsettled(refined.residual)
            return True
        for sweep in range(2, self.n_sweeps + 1):
            tell(report, f"sweep {sweep} of {self.n_sweeps}")
            with self._process.uncounted():  # the paper's way: as if the rows were new
                again, stopped = self._pass(rows, report)
            if len(again.log_density) < len(rows.Y) or (stopped and sweep < self.n_sweeps):
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
            if first:
                self._require_room(rows)
            if begun:
                process = self._process
                if self.max_basis != process.rules.max_basis:
                    self._forget_losses()
                process.obey(**engine_options(self))
            else:
                every = self._with_waiting(rows)
                start = self._complete(X, rows.Y.shape[1])
                if start is None and len(every.Y) >= self.n_init:
                    some, waited = taken(every, slice(self.n_init)), self.n_init
                    start = self._chosen(X, some)
                    if self.kernel is None:
                        columns, own = some.X.shape[1], (start.likelihood, start.scale)
                        warn_of_next_to_no_noise(*own, some.Y, some.weights, columns)
                if start is None:
                    self._waiting = {"X": every.X, "Y": every.Y, "weights": every.weights}
                    return rows, _unknown(rows)
                self._begin(start, rows.multioutput, waited)
                self._process.require_units(every.X)
        earlier = np.full(len(every.Y) - len(rows.Y), -1)
        numbers = np.r_[earlier, np.flatnonzero(rows.kept)]
        found, stopped = self._pass(every, numbers=numbers)
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


def _unknown(rows: Rows) -> Before:
    """Return that nothing was said of these rows."""
    n, outputs = rows.Y.shape
    return Before(np.full((n, outputs), np.nan), np.full((n, outputs), np.nan), np.full(n, np.nan))
