"""The model that an on-line estimator begins with: chosen by the evidence of some rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UndeterminedWarning, warn
from mercer.estimators.class_search import search_classes
from mercer.estimators.classification import bound_by_data, label_variance
from mercer.estimators.online_options import Asked
from mercer.estimators.preparation import naming_the_model
from mercer.estimators.prepare_exact import prepare_exact
from mercer.estimators.prepare_latent import prepare_latent
from mercer.estimators.resolve import chosen_engine
from mercer.estimators.rows import Rows
from mercer.estimators.search import report_of, search, warn_of_fit
from mercer.estimators.starting import begin_at_best, begun_kernel
from mercer.evidence import LatentData, Optimum, best_engine, warn_of_search
from mercer.evidence.against_rest import AgainstRest
from mercer.evidence.defaults import default_class_kernel, default_starts
from mercer.evidence.optimum import tell
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian, Likelihood
from mercer.means import Mean
from mercer.selection.subset import spread_rows

__all__ = [
    "Start",
    "sample_of",
    "start_of_classes",
    "start_of_regression",
    "taken",
]

Floats = NDArray[np.float64]

# How many rows of a fit choose the hyperparameters, if `n_init` is not more.
_SAMPLE = 500
# The largest size of a target that an on-line process can be of, whose square is the largest of its
# prior variances; but what is no more than so many times the median size is no outlier.
_LARGEST, _FAR = 1e70, 1e10
# An input that is larger, and as far from others, is a wrong entry: k(x, x) may be its tenth power.
_WRONG = 1e14


class Start(NamedTuple):
    """A model to begin with.

    kernel, likelihood, mean : the model
    scale : (P,) the units of the outputs in which it is
    n_iter : iterations of the search
    status : how that ended, see `Optimum`
    value : what was maximised, the evidence with hyperpriors, as `Objective.constant_of_search` has
        it; NaN without a search
    """

    kernel: Kernel
    likelihood: Likelihood
    mean: Mean
    scale: Floats
    n_iter: int = 1
    status: str = "fixed"
    value: float = float("nan")


def sample_of(n: int, n_init: int) -> NDArray[np.intp]:
    """Return which of n rows choose the hyperparameters of a `fit`: max(n_init, 500) of them.

    Half are the first ones, one after the other, since spread rows step over what changes within
    fewer than n / count of them, such as a daily course. Half are spread over all others, since
    rows may be sorted.
    """
    count = max(int(n_init), _SAMPLE)
    first = min(n, count // 2)
    return np.concatenate([np.arange(first), first + spread_rows(n - first, count - first)])


def taken(rows: Rows, some: NDArray[np.intp] | slice) -> Rows:
    """Return some of the rows."""
    weights = None if rows.weights is None else rows.weights[some]
    Y = rows.Y[some]
    return Rows(rows.X[some], Y, weights, np.ones(len(Y), dtype=bool), rows.multioutput)


def start_of_regression(
    estimator: Any,
    kernel: Kernel | None,
    likelihood: Likelihood | None,
    mean: Mean,
    rows: Rows,
    columns: list[str] | None,
) -> Start:
    """Return the model of a regression as these rows choose it, as `GPRegressor` would."""
    report, estimator, rows = report_of(estimator), Asked(estimator), _moderate(rows)
    inference = chosen_engine(estimator, likelihood)
    tell(report, f"choosing hyperparameters by {len(rows.Y)} rows")
    if inference == "exact":
        assert likelihood is None or isinstance(likelihood, Gaussian)
        prepared = prepare_exact(estimator, kernel, likelihood, mean, rows)
    else:
        prepared = prepare_latent(estimator, kernel, likelihood, mean, rows, inference)
    objective = prepared.objective
    with naming_the_model(objective):
        optimum = search(estimator, objective, prepared.undetermined, columns, report)
        objective.hold_jitter(optimum.jitter)
        fit = objective.fitted(optimum.theta)
    warn_of_fit(objective, fit, searched=optimum.status != "fixed")
    scale = np.array(fit.posterior.scale)
    ended = max(1, optimum.n_iterations), optimum.status, optimum.value
    return Start(fit.kernel, fit.likelihood, fit.mean, scale, *ended)


def start_of_classes(
    estimator: Any,
    kernel: Kernel | None,
    likelihood: Likelihood,
    mean: Mean,
    rows: Rows,
    columns: list[str] | None,
) -> Start:
    """Return the model of labels -1 and 1, in columns of Y, as these rows choose it.

    All columns share it: the evidence that is maximised is the sum of theirs.
    """
    report, estimator, rows = report_of(estimator), Asked(estimator), _moderate(rows)
    variance = label_variance(likelihood)
    kernel, default, widths = begun_kernel(
        kernel, rows, variance, estimator.hyperprior, default_class_kernel
    )
    searched = estimator.optimizer is not None and not _undetermined(rows)
    if searched:
        kernel = kernel.with_start_from(widths, variance)
        tell(report, f"choosing hyperparameters by {len(rows.Y)} rows")
    data = LatentData(rows.X, rows.Y, rows.weights)
    objective = AgainstRest(kernel, likelihood, mean, data, best_engine(likelihood))
    bound_by_data(objective, widths, variance)
    optimum = Optimum(objective.theta, np.nan, "fixed", "the hyperparameters were kept")
    if searched:
        with naming_the_model(objective):
            if default is not None:
                begin_at_best(objective, default_starts(default))
            optimum = search_classes(estimator, [objective])[0]
            warn_of_search(objective, optimum, columns)
    outputs = rows.Y.shape[1]
    ended = max(1, optimum.n_iterations), optimum.status, optimum.value
    return Start(*objective.unpack(optimum.theta), np.ones(outputs), *ended)


def _moderate(rows: Rows) -> Rows:
    """Return the rows without outliers that are too large for any model, and wrong entries in X.

    One of them is no reason to refuse all others: when it is learned it is told of.
    """
    some = _are_near(rows.Y, _LARGEST)
    if rows.X.ndim == 2 and np.issubdtype(rows.X.dtype, np.number):  # else they are objects
        some &= _are_near(rows.X, _WRONG)
    return taken(rows, np.flatnonzero(some)) if some.any() else rows


def _are_near(values: Floats, limit: float) -> NDArray[np.bool_]:
    """Return which rows (n,) have no value above a limit that is far above its column's median."""
    sizes = np.abs(values)
    near = sizes / _FAR <= np.maximum(limit / _FAR, np.median(sizes, axis=0))
    return np.asarray(np.all(near, axis=1))


def _undetermined(rows: Rows) -> bool:
    """Whether all rows have one label, of which there is a warning."""
    if np.any(np.ptp(rows.Y, axis=0)):
        return False
    warn(
        f"the {len(rows.Y)} rows that choose the hyperparameters are all of one class, and say "
        "nothing about them: they were kept as they began. Give rows of several classes first, or "
        "a kernel with optimizer=None",
        UndeterminedWarning,
    )
    return True
