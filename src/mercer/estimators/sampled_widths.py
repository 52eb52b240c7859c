"""Length scales for the default kernel of a sparse expansion: those of a Gaussian process.

Expansions of few functions have no evidence to climb, or one with many local optima. That of a
Gaussian process on some hundred rows is quick to maximise, and tells which columns matter.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, MercerWarning, warn
from mercer.estimators.classification import label_variance
from mercer.estimators.laplacian_rows import Merged
from mercer.estimators.online_start import start_of_classes, start_of_regression
from mercer.estimators.rows import Rows
from mercer.evidence.defaults import default_class_kernel, deviation
from mercer.kernels import RBF, Scaled
from mercer.likelihoods import Gaussian, Logistic
from mercer.likelihoods.spread import median_of, spread_of
from mercer.means import Mean, Zero

__all__ = ["Sampled", "sampled_widths"]

Floats = NDArray[np.float64]

# Rows by which the length scales are chosen; labels take longer.
_NUMBERS, _LABELS = 500, 300
# Iterations of that.
_ITERATIONS = 50
# Rows with targets further than this many deviations from the median are left out of it, where the
# noise is not Gaussian; a process with Gaussian noise would follow even one of them by functions as
# narrow as it takes. If more than this part of the rows are so far, they are no outliers.
_FAR, _MOST = 4.0, 0.25
# Labels choose a length scale a column for this many columns at the most.
_COLUMNS = _LABELS // 2


class Sampled(NamedTuple):
    """Length scales as a sample has them.

    kernel : with a length scale a column
    is_common : whether there are too many columns for labels to choose one for each, and these have
        chosen a factor to all of them
    is_whole : whether no interrupt has ended the search for them
    """

    kernel: RBF
    is_common: bool
    is_whole: bool = True


def sampled_widths(
    estimator: Any,
    rows: Merged,
    widths: Floats,
    mean: Mean,
    labels: bool,
    outliers: bool,
    rng: np.random.Generator,
) -> Sampled:
    """Return an RBF with a length scale a column, as the evidence of a sample has them.

    Without a search they are sqrt(d) times the deviation of each column, which `widths` has. Of a
    search that is interrupted there is a warning. Labels are -1 and 1, in columns. With `outliers`
    rows whose targets are far from the others are left out.
    """
    from mercer.estimators.gp_classifier import GPClassifier
    from mercer.estimators.gp_regressor import GPRegressor

    is_common = labels and widths.size > _COLUMNS
    if estimator.optimizer is None or len(rows.Y) < 3:
        return Sampled(RBF(np.sqrt(widths.size) * widths), is_common)
    sample = rows.some(_LABELS if labels else _NUMBERS, rng)
    if outliers:
        sample = _without_outliers(sample)
    Y = sample.Y
    kept = np.ones(len(Y), dtype=bool)
    unit = np.all(sample.weights == 1.0)
    some = Rows(sample.X, Y, None if unit else sample.weights, kept, Y.shape[1] > 1)
    options = {"n_restarts": estimator.n_restarts, "max_iter": _ITERATIONS, "random_state": 0}
    with warnings.catch_warnings():  # what is wrong with an auxiliary model is of no use
        warnings.simplefilter("ignore", MercerWarning)
        warnings.simplefilter("ignore", UserWarning)
        if is_common:
            scales, status = _common_factor(GPClassifier(**options), some, widths)
        else:
            if labels:
                model = GPClassifier(**options)
                start = start_of_classes(model, None, Logistic(), Zero(), some, None)
            else:
                known = None if sample.variances is None else Gaussian(sample.variances)
                start = start_of_regression(GPRegressor(**options), None, known, mean, some, None)
            assert isinstance(start.kernel, Scaled)
            scales, status = np.array(start.kernel.kernel.length_scale), start.status
    is_whole = status != "interrupted"
    if not is_whole:
        warn(
            "the search for relative length scales was interrupted; the best so far are kept",
            ConvergenceWarning,
        )
    return Sampled(RBF(scales), is_common, is_whole)


def _common_factor(model: Any, rows: Rows, widths: Floats) -> tuple[Floats, str]:
    """Return length scales in a proportion that is given, and how the search for them ended.

    That of the deviations of the columns; or all the same, which is better where columns have the
    same units, as those of an image do, and hopeless where they have not: the evidence tells.
    """
    # The deviation of a constant column, which `widths` has not, is 0.
    alike = np.hypot.reduce(deviation(rows.X, rows.weights)) or 1.0
    kernel = default_class_kernel(np.array(1.0), label_variance(Logistic()))
    found: list[tuple[float, Floats]] = []
    for units in (np.sqrt(widths.size) * widths, np.full_like(widths, alike)):
        inside = rows._replace(X=rows.X / units)
        start = start_of_classes(model, kernel, Logistic(), Zero(), inside, None)
        assert isinstance(start.kernel, Scaled)
        found.append((start.value, start.kernel.kernel.length_scale * units))
        if start.status == "interrupted":
            break
    return max(found, key=lambda one: one[0])[1], start.status


def _without_outliers(rows: Merged) -> Merged:
    """Return the rows whose targets are all among the others."""
    Y, weights = rows.Y, rows.weights
    middle = np.array([median_of(y, weights) for y in Y.T])
    width = np.array([spread_of(y, weights) for y in Y.T])
    near = np.flatnonzero(np.all(np.abs(Y - middle) <= _FAR * width, axis=1))
    return rows if len(near) < (1.0 - _MOST) * len(Y) else rows.take(near)
