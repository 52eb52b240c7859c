"""What Laplacian processes for numbers and for labels share: one fit, and what it leaves."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import ConvergenceWarning, warn
from mercer.estimators.expansion_options import check_centres
from mercer.estimators.expansion_process import ExpansionProcess, single
from mercer.estimators.laplacian_frame import Frame, Model
from mercer.estimators.laplacian_kernel import kernel_for
from mercer.estimators.laplacian_options import PRIORS, check_laplacian_options, most_active
from mercer.estimators.laplacian_rows import Merged
from mercer.estimators.laplacian_warnings import warn_of_expansion, warn_of_status
from mercer.estimators.options import as_generator
from mercer.estimators.preparation import all_or_nothing
from mercer.estimators.rows import is_precomputed
from mercer.estimators.search import report_of
from mercer.evidence.expansion_choice import choose, larger
from mercer.evidence.expansion_fit import fit_targets
from mercer.evidence.expansion_targets import Chosen, Fitted, Options, Targets
from mercer.evidence.optimum import Report, tell
from mercer.evidence.pattern_search import KernelSearch
from mercer.inference._columns import Columns
from mercer.means import Mean
from mercer.posterior import Posterior

__all__ = ["LaplacianProcess"]

Floats = NDArray[np.float64]

# Rows by which penalties and noise are chosen, at the most.
_CHOICE_ROWS = 5000
# The worst that can be said of several functions comes first.
_STATUS = ("interrupted", "stopped", "certified")


class LaplacianProcess(ExpansionProcess):
    """Adds the fit of kernel expansions to an estimator. It stands before the other bases."""

    prior: str
    prior_scale: float | None
    centres: Any
    functions: Any
    tol: float
    max_active: int | None
    n_folds: int
    n_penalties: int
    optimizer: str | None
    n_restarts: int
    max_iter: int
    random_state: Any

    mean_: Mean
    history_: dict[str, Any]

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose what is left open, and fit an expansion to each column of targets, or each class.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Inputs; with ``kernel="precomputed"`` the kernel matrix (n, n).
        y : array-like of shape (n,) or (n, P)
            Targets. Of numbers each column has coefficients, noise and a prior scale of its own,
            and all share the kernel. Labels, of one column, are text, whole numbers or booleans; of
            more than two classes each has a function against the rest.
        sample_weight : array-like of shape (n,), optional
            Powers of the likelihood: weight 2 is the row twice, weight 0 the row left out. They
            are no precisions: known variances go into the noise, ``Gaussian(variances)``.
        """
        check_laplacian_options(self)
        with all_or_nothing(self):
            frame, fits = self._fit_expansion(self._prepared(X, y, sample_weight))
            self._keep_posteriors(self._keep_outputs(frame, fits))
            self.mean_ = self._mean_of(frame, fits)
            warn_of_expansion(self, frame, fits)
            warn_of_status(self, fits)
        return self

    @abstractmethod
    def _prepared(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Model:
        """Return the model and its rows, checked."""

    @abstractmethod
    def _keep_outputs(self, frame: Frame, fits: list[Fitted]) -> list[Posterior]:
        """Keep what depends on the kind of targets, and return the posteriors."""

    def _fit_expansion(self, model: Model) -> tuple[Frame, list[Fitted]]:
        """Choose what is left open and fit a function to each column of targets."""
        report = report_of(self)
        seed = int(as_generator(self.random_state).integers(2**31))
        rows = model.rows
        check_centres(self.centres, rows.X, model.kernel)
        kernel, searched = kernel_for(self, model, seed, report)
        frame = Frame(self, kernel, model, seed)
        outputs = rows.Y.shape[1]
        small = rows.some(_CHOICE_ROWS, np.random.default_rng(seed))
        table = frame.table(small)
        chosen = self._choices(frame, table, small, report)
        columns = frame.columns(rows)
        most = most_active(self, len(rows.Y), columns.size)
        options = frame.options(most, report)
        fits = []
        for p in range(outputs):
            which = "" if outputs == 1 else f", function {p + 1} of {outputs}"
            tell(report, f"solving for {columns.size} functions at {len(rows.Y)} rows{which}")
            targets, own = frame.targets(rows, p), chosen[p]
            fit = fit_targets(columns, targets, options, own)
            while most is not None and fit.solution.status == "stopped":
                # the folds had room for their functions, and all rows have not
                more = larger(own)
                if more is None:
                    break
                own = more
                fit = fit_targets(columns, targets, options, own)
            fits.append(fit)
        self._keep(frame, fits, searched)
        return frame, fits

    def _choices(
        self, frame: Frame, table: Columns, rows: Merged, report: Report | None
    ) -> list[Chosen]:
        """Return the penalties of all columns of targets.

        After Ctrl-C no more are compared: the columns that are left have the penalty at the same
        place of the path as the last that was chosen. Before there is one it is raised.
        """
        options = frame.options(self.max_active, None)
        chosen: list[Chosen] = []
        for p in range(rows.Y.shape[1]):
            targets = frame.targets(rows, p)
            try:
                own = _choose(table, targets, options, report)
            except KeyboardInterrupt:
                if not chosen:
                    raise
                options = options._replace(like=chosen[-1])
                own = _choose(table, targets, options, report)
            chosen.append(own)
            if options.like is None and not own.is_whole:
                options = options._replace(like=own)
        if options.like is not None:
            text = "interrupted as penalties were compared"
            if not options.like.is_whole:
                text += "; the one that is best by the folds that were done is kept"
            left = sum(own.path is None for own in chosen if not own.is_whole)
            if left:
                text += f"; that of {left} more functions is at the same place of the path"
            warn(text, ConvergenceWarning)
        return chosen

    # --- what it leaves -----------------------------------------------------------------------

    def _keep(self, frame: Frame, fits: list[Fitted], searched: KernelSearch | None) -> None:
        """Set the fitted attributes that do not depend on what the targets are."""
        indices = [fit.solution.indices for fit in fits]
        m = len(frame.centres)
        numbers = frame.numbers
        sections = [numbers[own[own < m]] for own in indices]
        others = [own[own >= m] - m for own in indices]
        units = frame.model.scale
        coef = [units[p] * fit.solution.coef for p, fit in enumerate(fits)]
        priors = [PRIORS[self.prior](fit.scale) for fit in fits]
        paths = [_record(fit.chosen) for fit in fits]
        self.kernel_ = frame.kernel
        self._pairwise = is_precomputed(self)
        self.basis_indices_ = single(sections)
        self.function_indices_ = single(others)
        self.coef_ = single(coef)
        self.prior_ = single(priors)
        self.path_ = single(paths)
        self.n_active_ = int(sum(map(len, indices)))
        self.objective_ = float(sum(fit.objective for fit in fits))
        self.dual_objective_ = float(sum(fit.dual for fit in fits))
        self.gap_ = max(float(fit.solution.gap) for fit in fits)
        statuses = {fit.solution.status for fit in fits}
        interrupted = searched is not None and searched.status == "interrupted"
        if interrupted or not all(fit.chosen.is_whole for fit in fits):
            statuses.add("interrupted")
        self.status_ = next(status for status in _STATUS if status in statuses)
        self.n_iter_ = 1
        self.history_ = {
            "theta": np.empty((0, frame.kernel.theta.size)),
            "value": np.empty(0),
            "objective": "mean log density of held-out rows",
            "status": "fixed",
        }
        if searched is not None:
            self.n_iter_ = max(1, len(searched.values))
            self.history_ |= {
                "theta": np.array(searched.thetas).reshape(-1, frame.kernel.theta.size),
                "value": np.array(searched.values),
                "status": searched.status,
            }
            if searched.status == "stopped":
                warn(
                    "the search for hyperparameters stopped early (max_iter="
                    f"{self.max_iter} kernels were tried); raise max_iter",
                    ConvergenceWarning,
                )

    def _mean_of(self, frame: Frame, fits: list[Fitted]) -> Mean:
        """Return the mean with the coefficients that were found, in the targets' units."""
        mean, r = frame.model.mean, len(fits[0].solution.beta)
        if mean.estimate is None or not r:
            return mean
        columns = [posterior.alpha[-r:, 0] * posterior.scale[0] for posterior in self._posteriors()]
        return mean.with_coefficients(np.column_stack(columns))


def _record(chosen: Chosen) -> dict[str, Floats] | None:
    """Return the path on which a penalty was chosen; None if it was given."""
    path = chosen.path
    if path is None:
        return None
    return {"penalty": path.penalties, "value": path.values, "n_active": path.active}


def _choose(table: Columns, targets: Targets, options: Options, report: Report | None) -> Chosen:
    """Return the penalty of one column of targets."""
    chosen = choose(table, targets, options)
    if chosen.path is not None:
        tell(report, f"the penalty is {chosen.penalty:.3g}, chosen by {len(targets.y)} rows")
    return chosen
