"""Length scales for the default kernel of a sparse expansion: those of a Gaussian process.

Expansions of few functions have no evidence to climb, or one with many local optima. That of a
Gaussian process on some hundred rows is quick to maximise, and tells which columns matter.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer.errors import ConvergenceWarning, MercerWarning, warn
from mercer.estimators.classification import label_variance
from mercer.estimators.laplacian_rows import Merged
from mercer.estimators.online_start import Start, start_of_classes, start_of_regression
from mercer.estimators.rows import Rows
from mercer.evidence.defaults import default_class_kernel, deviation
from mercer.evidence.held_out import Scores
from mercer.kernels import RBF, Kernel, Scaled
from mercer.likelihoods import Gaussian, Logistic
from mercer.likelihoods.spread import median_of, spread_of
from mercer.means import Mean, Zero

__all__ = ["Sampled", "sampled_widths", "third_of_each"]

Floats = NDArray[np.float64]

# Rows by which the length scales are chosen; labels take longer.
_NUMBERS, _LABELS = 500, 300
# Iterations of that.
_ITERATIONS = 50
# Rows with targets further than this many deviations from the median are left out of it, where the
# noise is not Gaussian; a process with Gaussian noise would follow even one of them by functions as
# narrow as it takes. If more than this part of the rows are so far, they are no outliers.
_FAR, _MOST = 4.0, 0.25
# Labels beside more columns than this may say too little to choose a length scale for each.
_COLUMNS = _LABELS // 2


class Sampled(NamedTuple):
    """Length scales as a sample has them.

    kernel : with a length scale a column
    common : beside so many columns that labels may say too little to choose one for each, the best
        with a factor of all of them chosen alone, which may be `kernel`; None of fewer columns, or
        without a search
    is_whole : whether no interrupt has ended the search for them
    """

    kernel: RBF
    common: RBF | None = None
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

    Of labels beside many columns rows that are held out decide. Without a search they are sqrt(d)
    times the deviation of each column, which `widths` has. Of a search that is interrupted there is
    a warning. Labels are -1 and 1, in columns. With `outliers` rows whose targets are far from the
    others are left out.
    """
    from mercer.estimators.gp_classifier import GPClassifier
    from mercer.estimators.gp_regressor import GPRegressor

    if estimator.optimizer is None or len(rows.Y) < 3:
        return Sampled(RBF(np.sqrt(widths.size) * widths))
    sample = rows.some(_LABELS if labels else _NUMBERS, rng)
    if outliers:
        sample = _without_outliers(sample)
    some = _rows(sample)
    options = {"n_restarts": estimator.n_restarts, "max_iter": _ITERATIONS, "random_state": 0}
    with warnings.catch_warnings():  # what is wrong with an auxiliary model is of no use
        warnings.simplefilter("ignore", MercerWarning)
        warnings.simplefilter("ignore", UserWarning)
        if labels and widths.size > _COLUMNS:
            found = _of_many(GPClassifier(**options), sample, widths)
        elif labels:
            found = _of_classes(GPClassifier(**options), None, some)[1]
        else:
            known = None if sample.variances is None else Gaussian(sample.variances)
            model = GPRegressor(**options)
            found = _sampled(start_of_regression(model, None, known, mean, some, None))
    if not found.is_whole:
        warn(
            "the search for relative length scales was interrupted; the best so far are kept",
            ConvergenceWarning,
        )
    return found


def third_of_each(rows: Merged) -> NDArray[np.bool_]:
    """Return which rows to hold out: those of a third of the inputs of each class.

    Labels are in columns. Rows with the same inputs are held out together, or not, as the first.
    """
    held = np.lexsort(rows.Y[rows.centres].T)[1::3]
    return np.isin(rows.kinds, held)


def _rows(rows: Merged) -> Rows:
    """Return rows whose weights are 1 on average, at the most.

    Those that count rows have equal targets, which a process takes for the want of noise, and then
    follows every one; what is looked for here is length scales alone.
    """
    kept = np.ones(len(rows.Y), dtype=bool)
    weights = None if np.all(rows.weights == 1.0) else rows.weights / max(1.0, rows.weights.mean())
    return Rows(rows.X, rows.Y, weights, kept, rows.Y.shape[1] > 1)


def _sampled(start: Start, units: Floats | float = 1.0) -> Sampled:
    assert isinstance(start.kernel, Scaled)
    scales = np.array(start.kernel.kernel.length_scale) * units
    return Sampled(RBF(scales), is_whole=start.status != "interrupted")


def _of_classes(model: Any, units: Floats | None, rows: Rows) -> tuple[Kernel, Sampled]:
    """Return the kernel that labels choose, with length scales that are one a column, or in units.

    And these alone.
    """
    kernel, inside = None, rows
    if units is not None:
        kernel = default_class_kernel(np.array(1.0), label_variance(Logistic()))
        inside = rows._replace(X=rows.X / units)
    start = start_of_classes(model, kernel, Logistic(), Zero(), inside, None)
    found = _sampled(start, 1.0 if units is None else units)
    assert isinstance(start.kernel, Scaled)
    return Scaled(start.kernel.variance, found.kernel), found


def _of_many(model: Any, rows: Merged, widths: Floats) -> Sampled:
    """Return length scales for labels beside many columns.

    In a proportion that is given, that of the deviations of the columns, or all the same, which is
    better where columns have the same units, as those of an image do; or one a column, which few
    columns that matter need, and which follow the rows where many do. A third of the inputs, held
    out, tells: evidence that has so many parameters does not.
    """
    is_test = third_of_each(rows)
    train, test = _rows(rows.take(np.flatnonzero(~is_test))), rows.take(np.flatnonzero(is_test))
    # The deviation of a constant column, which `widths` has not, is 0.
    alike = np.hypot.reduce(deviation(rows.X, rows.weights)) or 1.0
    best, common, most = None, None, -np.inf
    for units in (np.sqrt(widths.size) * widths, np.full_like(widths, alike), None):
        found = None
        try:
            kernel, found = _of_classes(model, units, train)
            if not found.is_whole:
                raise KeyboardInterrupt
            value = _held_out(model, kernel, train, test)
        except KeyboardInterrupt:
            best = best or found
            if best is None:
                raise
            return best._replace(common=common or best.kernel, is_whole=False)
        if best is None or value > most:
            best, most = found, value
            common = common if units is None else found.kernel
    assert best is not None
    return best._replace(common=common)


def _held_out(model: Any, kernel: Kernel, train: Rows, test: Merged) -> float:
    """Return the mean log probability of labels that were not learned from, over columns a sum."""
    if not len(test.Y):  # there is but one input
        return 0.0
    told = np.flatnonzero(np.ptp(train.Y, axis=0))
    total = 0.0
    for p in told:
        held = clone(model).set_params(kernel=kernel, optimizer=None)
        held.fit(train.X, train.Y[:, p], sample_weight=train.weights)
        total += Scores(held.log_predictive_density(test.X, test.Y[:, p]), test.weights).mean
    return total


def _without_outliers(rows: Merged) -> Merged:
    """Return the rows whose targets are all among the others."""
    Y, weights = rows.Y, rows.weights
    middle = np.array([median_of(y, weights) for y in Y.T])
    width = np.array([spread_of(y, weights) for y in Y.T])
    near = np.flatnonzero(np.all(np.abs(Y - middle) <= _FAR * width, axis=1))
    return rows if len(near) < (1.0 - _MOST) * len(Y) else rows.take(near)
