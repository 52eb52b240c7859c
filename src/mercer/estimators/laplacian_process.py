"""What Laplacian processes for numbers and for labels share: one fit, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, MercerWarning, UndeterminedWarning, warn
from mercer.estimators.expansion_parts import fixed_mean, given_centres
from mercer.estimators.laplacian_fit import (
    Chosen,
    Fitted,
    Options,
    Targets,
    choose,
    fit_targets,
    larger,
    tells,
)
from mercer.estimators.laplacian_kernel import (
    KernelSearch,
    default_start,
    free_directions,
    search_kernel,
)
from mercer.estimators.laplacian_options import (
    check_centres,
    check_symmetry,
    most_active,
    prior_of,
)
from mercer.estimators.laplacian_rows import Merged
from mercer.estimators.options import as_generator
from mercer.estimators.process import FittedProcess
from mercer.estimators.rows import is_precomputed
from mercer.estimators.search import report_of
from mercer.estimators.state import StorableEstimator
from mercer.evidence.defaults import output_units, spread
from mercer.evidence.optimum import Report, tell
from mercer.inference._columns import ArrayColumns, Columns, JoinedColumns, KernelColumns
from mercer.inference._expansion_choice import folds_of
from mercer.inference._expansion_posterior import expansion_posterior
from mercer.inference._residual_noise import Noise
from mercer.kernels import RBF, Kernel
from mercer.likelihoods import Likelihood
from mercer.means import Constant, Functions, Mean
from mercer.posterior import Basis, Posterior, PrecomputedPredictive, Predictive, Stacked

__all__ = ["LaplacianProcess", "Model"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rows by which kernels are compared, and by which penalties and noise are chosen, at the most.
_KERNEL_ROWS, _CHOICE_ROWS = 1000, 5000
# Values of functions that are kept while penalties are compared, at the most.
_TABLE = 4_000_000
# Penalties of a path that serves to compare kernels.
_KERNEL_PENALTIES = 17
# The worst that can be said of several functions comes first.
_STATUS = ("interrupted", "stopped", "certified")


class Model(NamedTuple):
    """A model and its rows, as a fit takes them.

    rows : Merged, with targets in the units of `scale`, or labels -1 and 1
    kernel : Kernel, or None for the default one
    mean : of the function
    noise : what is minimised: given the spread of a column of targets, its noise; or a loss's name
    scale : (P,) the units of the outputs
    """

    rows: Merged
    kernel: Kernel | None
    mean: Mean
    noise: Callable[[float], Noise] | str
    scale: Floats


class LaplacianProcess(StorableEstimator, FittedProcess):
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

    def _fit_expansion(self, model: Model) -> tuple[_Frame, list[Fitted]]:
        """Choose what is left open and fit a function to each column of targets."""
        report = report_of(self)
        seed = int(as_generator(self.random_state).integers(2**31))
        rows = model.rows
        check_centres(self.centres, rows.X, model.kernel)
        check_symmetry(model.kernel, rows.X)
        kernel, searched = self._kernel_for(model, seed, report)
        frame = _Frame(self, kernel, model, seed)
        outputs = rows.Y.shape[1]
        small = rows.some(_CHOICE_ROWS, np.random.default_rng(seed))
        table = frame.table(small)
        chosen = [self._choose(frame, table, small, p, report) for p in range(outputs)]
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

    # --- the kernel ---------------------------------------------------------------------------

    def _kernel_for(
        self, model: Model, seed: int, report: Report | None
    ) -> tuple[Kernel, KernelSearch | None]:
        """Return the kernel, and the search for its parameters if there was one."""
        rows, kernel = model.rows, model.kernel
        labels = isinstance(model.noise, str)
        rng = np.random.default_rng(seed)
        no_sections = self.centres is not None and len(self.centres) == 0
        default = kernel is None
        if kernel is None:
            if no_sections:
                return RBF(), None
            tell(report, "choosing relative length scales")
            kernel, whole = default_start(self, rows, model.mean, labels, rng)
            if not whole:
                return kernel, KernelSearch(kernel, [], [], "interrupted")
        kernel = kernel.anchored(rows.X)
        directions = free_directions(kernel, default, self.prior_scale is None)
        if self.optimizer is None or not directions.shape[1] or no_sections:
            return kernel, None
        some = rows.some(_KERNEL_ROWS, np.random.default_rng(seed))
        begun = _Frame(self, kernel, model, seed)
        table = begun.table(some)
        telling = [
            p for p in range(rows.Y.shape[1]) if tells(table, begun.targets(some, p), self.prior)
        ]
        if not telling:
            return kernel, None
        tell(report, f"comparing kernels by {len(some.Y)} rows")

        found: dict[int, Likelihood] = {}  # that of the first kernel shapes the loss of all

        def value(kernel: Kernel) -> float:
            frame = _Frame(self, kernel, model, seed)
            options = frame.options(self.max_active, None)
            options = options._replace(n_penalties=min(_KERNEL_PENALTIES, self.n_penalties))
            columns, total = frame.table(some), 0.0
            for p in telling:
                targets = frame.targets(some, p)
                if p in found and isinstance(targets.noise, Noise):
                    targets = replace(targets, noise=replace(targets.noise, start=found[p]))
                own = options._replace(settles=p not in found)
                chosen = choose(columns, targets, own, judge=True)
                if not chosen.is_whole:
                    raise KeyboardInterrupt
                found.setdefault(p, chosen.now)
                total += chosen.value
            return total if np.isfinite(total) else -np.inf

        widths = spread(rows.X, rows.weights) if kernel.is_numeric else np.ones(1)
        bounds = kernel.with_bounds_from(widths, 1.0).bounds
        starts = [kernel.draw_theta(rng) for _ in range(0 if default else self.n_restarts)]
        end = search_kernel(kernel, directions, bounds, value, self.max_iter, starts, report)
        return end.kernel, end

    def _choose(
        self, frame: _Frame, table: Columns, rows: Merged, p: int, report: Report | None
    ) -> Chosen:
        """Return the penalty of one column of targets."""
        options = frame.options(self.max_active, None)
        chosen = choose(table, frame.targets(rows, p), options)
        if chosen.path is not None:
            tell(report, f"the penalty is {chosen.penalty:.3g}, chosen by {len(rows.Y)} rows")
        if chosen.path is not None and not np.any(np.isfinite(chosen.path.values)):
            warn(
                f"the rows weigh {np.sum(rows.weights):.3g} together, which leaves nothing to "
                "estimate noise from: no penalty could be compared with another, and no function "
                "was fitted. Weights are powers of the likelihood, so that those that add up to 1 "
                "stand for one row: give weights that add up to the number of rows, or give "
                "likelihood and prior_scale",
                UndeterminedWarning,
            )
        if not chosen.is_whole:
            warn(
                "interrupted as penalties were compared; the one that is best by the folds that "
                "were done is kept",
                ConvergenceWarning,
            )
        return chosen

    # --- what it leaves -----------------------------------------------------------------------

    def _keep(self, frame: _Frame, fits: list[Fitted], searched: KernelSearch | None) -> None:
        """Set the fitted attributes that do not depend on what the targets are."""
        one = len(fits) == 1
        indices = [fit.solution.indices for fit in fits]
        m = len(frame.centres)
        numbers = frame.numbers
        sections = [numbers[own[own < m]] for own in indices]
        others = [own[own >= m] - m for own in indices]
        units = frame.model.scale
        coef = [units[p] * fit.solution.coef for p, fit in enumerate(fits)]
        priors = [prior_of(self, fit.scale) for fit in fits]
        paths = [_record(fit.chosen) for fit in fits]
        self.kernel_ = frame.kernel
        self._pairwise = is_precomputed(self)
        self.basis_indices_ = sections[0] if one else sections
        self.function_indices_ = others[0] if one else others
        self.coef_ = coef[0] if one else coef
        self.prior_ = priors[0] if one else priors
        self.path_ = paths[0] if one else paths
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
        self.history_ = {"theta": np.empty((0, frame.kernel.theta.size)), "value": np.empty(0)}
        if searched is not None:
            self.n_iter_ = max(1, len(searched.values))
            self.history_ = {
                "theta": np.array(searched.thetas).reshape(-1, frame.kernel.theta.size),
                "value": np.array(searched.values),
            }
            if searched.status == "stopped":
                warn(
                    "the search for hyperparameters stopped early (max_iter="
                    f"{self.max_iter} kernels were tried); raise max_iter",
                    ConvergenceWarning,
                )

    def _keep_posteriors(self, posteriors: list[Posterior]) -> None:
        """Keep the posterior, or those of several functions side by side."""
        for name in ("posterior_", "posteriors_"):
            self.__dict__.pop(name, None)
        if len(posteriors) == 1:
            self.posterior_ = posteriors[0]
        else:
            self.posteriors_ = posteriors

    def _absent(self, name: str) -> str | None:
        if name == "posterior_" and "posteriors_" in self.__dict__:
            return (
                "there is no posterior_ of several functions, which have basis functions of their "
                "own: posteriors_ is the list of them, one an output or a class"
            )
        return None

    def _posteriors(self) -> list[Posterior]:
        several = "posteriors_" in self.__dict__
        return self.posteriors_ if several else [self.posterior_]

    @property
    def predictive_(self) -> Predictive:
        """The fitted process, as predictions ask it; several functions side by side."""
        self._models()  # which raises where there is none
        members: list[Predictive] = list(self._posteriors())
        if self._pairwise:
            members = [PrecomputedPredictive(posterior) for posterior in self._posteriors()]
        return members[0] if len(members) == 1 else Stacked(members)

    def _mean_of(self, frame: _Frame, fits: list[Fitted]) -> Mean:
        """Return the mean with the coefficients that were found, in the targets' units."""
        mean, r = frame.model.mean, len(fits[0].solution.beta)
        if mean.estimate is None or not r:
            return mean
        columns = [posterior.alpha[-r:, 0] * posterior.scale[0] for posterior in self._posteriors()]
        return mean.with_coefficients(np.column_stack(columns))

    def _warn_of_expansion(self, fits: list[Fitted]) -> None:
        """Warn of functions that are none, and of what was not proved."""
        known = [p for p, fit in enumerate(fits) if fit.chosen.is_known]  # others were warned of
        empty = [p for p in known if not len(fits[p].solution.indices)]
        if empty:
            which = "" if len(fits) == 1 else f" of function {', '.join(str(p) for p in empty)}"
            warn(
                f"all coefficients{which} are 0: nothing in the inputs was found to tell of the "
                "targets, predictions are the mean alone and their spread is that of the noise. "
                "If there is more to them, try another kernel, or a larger prior_scale",
                MercerWarning,
            )
        short = [fit.spread for fit in fits if fit.spread.factor is not None]
        lost = [s for s in short if s.factor is not None and s.rank < s.factor.n_columns]
        if lost:
            warn(
                f"the rows determine only {lost[0].rank} of {lost[0].factor.n_columns} "  # type: ignore[union-attr]
                "coefficients; the others have no error bars. Functions may repeat each other",
                MercerWarning,
            )
        if all(fit.solution.status == "certified" for fit in fits):
            return
        status, remedy = "interrupted", "fit again to have it whole"
        if all(fit.solution.status != "interrupted" for fit in fits):
            status, remedy = "stopped", "raise tol"
            if self.max_active is not None:
                remedy = "raise max_active, or tol"
        shown = f"{self.gap_:.3g}"
        if float(shown) <= self.tol < self.gap_:
            shown = f"just above that, {self.gap_:.9g}"
        warn(
            f"the fit was {status}: tol is {self.tol:g}, and the gap that is proved is {shown}; "
            f"{remedy}",
            ConvergenceWarning,
        )


class _Frame:
    """A model with a kernel: its functions and its targets, at any of the rows."""

    def __init__(self, estimator: Any, kernel: Kernel, model: Model, seed: int) -> None:
        self.estimator, self.kernel, self.model, self.seed = estimator, kernel, model, seed
        rows = model.rows
        if estimator.centres is None:
            own = rows.centres
            self.centres, self.numbers = rows.X[own], rows.first[own]
        else:
            self.centres = given_centres(estimator.centres, kernel)
            self.numbers = np.arange(len(self.centres))

    def table(self, rows: Merged) -> Columns:
        """Return the functions at rows that are going to be solved for many times.

        As a matrix, if that is small.
        """
        columns = self.columns(rows)
        if columns.n * columns.size > _TABLE:
            return columns
        return ArrayColumns(columns.take(np.arange(columns.size)))

    def columns(self, rows: Merged) -> Columns:
        """Return the functions at some rows; centres are those of these rows unless given."""
        parts: list[Columns] = []
        if self.estimator.centres is None:
            own = rows.centres
            same = len(own) == len(rows.Y)
            parts.append(KernelColumns(self.kernel, rows.X, None if same else rows.X[own]))
        elif len(self.centres):
            parts.append(KernelColumns(self.kernel, rows.X, self.centres))
        if self.estimator.functions is not None:
            parts.append(ArrayColumns(Functions(self.estimator.functions).features(rows.X)))
        return parts[0] if len(parts) == 1 else JoinedColumns(parts)

    def targets(self, rows: Merged, p: int) -> Targets:
        """Return column p of the targets of some rows."""
        model, y = self.model, rows.Y[:, p]
        mean, outputs = model.mean, rows.Y.shape[1]
        scale = model.scale[p]
        estimated = mean.estimate is not None
        fixed = mean.fixed_part(rows.X, outputs) if estimated else mean(rows.X, outputs)
        H = mean.features(rows.X) if estimated else None
        H = None if H is None or not H.shape[1] else H
        codes = None
        if isinstance(model.noise, str):
            codes = np.argmax(rows.Y, axis=1) if outputs > 1 else np.asarray(y > 0, dtype=np.intp)
        rng = np.random.default_rng(self.seed)
        folds = folds_of(rows.kinds, self.estimator.n_folds, rng, codes)
        spec = model.noise
        noise = spec if isinstance(spec, str) else spec(_deviation(y, rows.weights))
        known = None if rows.variances is None else rows.variances
        return Targets(y, rows.weights, fixed[:, p] / scale, H, folds, noise, known)

    def options(self, max_active: int | None, report: Report | None) -> Options:
        """Return what is asked of a fit."""
        own = self.estimator
        scale = None if own.prior_scale is None else float(own.prior_scale)
        return Options(own.prior, scale, float(own.tol), max_active, own.n_penalties, report)

    def posterior(self, fit: Fitted, p: int, ratio: float = 1.0) -> Posterior:
        """Return the posterior of output p, in units of `ratio` times those that it has here."""
        indices, mean = fit.solution.indices, self.model.mean
        m = len(self.centres)
        points = self.centres[indices[indices < m]]
        others = indices[indices >= m] - m
        estimated = mean.estimate is not None and len(fit.solution.beta)
        features: Mean | None = mean if estimated else None
        if len(others):
            features = Functions(self.estimator.functions, others, features)
        coef, slope, offset = fit.coef, 1.0, 0.0
        if fit.chosen.calibration is not None:
            slope, offset, _ = fit.chosen.calibration
            if estimated and isinstance(mean, Constant):
                coef, offset = np.append(coef[:-1], coef[-1] + offset), 0.0
        fixed = fixed_mean(mean, slope, offset, p if len(self.model.scale) > 1 else None)
        basis = Basis(self.kernel, points, features)
        units = float(ratio * self.model.scale[p])
        return expansion_posterior(basis, coef, fit.spread, ratio, fixed, units)


def _record(chosen: Chosen) -> dict[str, Floats] | None:
    """Return the path on which a penalty was chosen; None if it was given."""
    path = chosen.path
    if path is None:
        return None
    return {"penalty": path.penalties, "value": path.values, "n_active": path.active}


def _deviation(y: Floats, weights: Floats) -> float:
    """Return the standard deviation of targets, or what stands for it where they are constant."""
    column = y[:, None]
    return float(output_units(column, column, weights)[0])
