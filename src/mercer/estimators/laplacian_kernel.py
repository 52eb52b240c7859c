"""The kernel of a Laplacian process: where it begins, and the search for its parameters.

There is no evidence to climb: parameters are judged by what held-out rows are predicted along a
path of penalties, which has no gradient. The default kernel leaves one direction to search: length
scales in proportion to each other as a Gaussian process on a sample has them, and a factor to all.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, MercerWarning, warn
from mercer.estimators.laplacian_rows import Merged
from mercer.estimators.online_start import start_of_classes, start_of_regression
from mercer.estimators.rows import Rows
from mercer.evidence.defaults import deviation, spread
from mercer.evidence.optimum import Report, tell
from mercer.kernels import RBF, Kernel, Scaled
from mercer.likelihoods import Gaussian, Logistic
from mercer.likelihoods.spread import median_of
from mercer.means import Mean, Zero

__all__ = ["KernelSearch", "default_start", "free_directions", "search_kernel"]

Floats = NDArray[np.float64]

# Rows by which the relative length scales of the default kernel are chosen; labels take longer.
_NUMBERS, _LABELS = 500, 300
# Iterations of that.
_ITERATIONS = 50
# Targets further than this many deviations from the median are drawn in there before it, where
# the noise is not Gaussian.
_FAR = 4.0
# The first and the least step of the search, in logarithms, and the gain that is one.
_STEP, _LEAST, _GAIN = np.log(2.0), np.log(2.0) / 3.0, 1e-9


class KernelSearch(NamedTuple):
    """Where a search has ended.

    kernel : the best one
    thetas, values : every evaluation
    status : "converged", "stopped" at `max_iter`, or "interrupted"
    """

    kernel: Kernel
    thetas: list[Floats]
    values: list[float]
    status: str


def default_start(
    estimator: Any, rows: Merged, mean: Mean, labels: bool, rng: np.random.Generator
) -> tuple[Kernel, bool]:
    """Return an RBF with a length scale a column, as the evidence of a sample has them.

    Without a search they are sqrt(d) times the deviation of each column. And whether that search
    has not been interrupted; of one that has there is a warning.
    """
    from mercer.estimators.gp_classifier import GPClassifier
    from mercer.estimators.gp_regressor import GPRegressor

    widths = spread(rows.X, rows.weights)
    plain = RBF(np.sqrt(widths.size) * widths)
    if estimator.optimizer is None or len(rows.Y) < 3:
        return plain, True
    sample = rows.some(_LABELS if labels else _NUMBERS, rng)
    Y = sample.Y
    if not (labels or isinstance(estimator.likelihood, (Gaussian, type(None)))):
        Y = _drawn_in(Y, sample.weights)
    kept = np.ones(len(Y), dtype=bool)
    unit = np.all(sample.weights == 1.0)
    some = Rows(sample.X, Y, None if unit else sample.weights, kept, Y.shape[1] > 1)
    options = {"n_restarts": estimator.n_restarts, "max_iter": _ITERATIONS, "random_state": 0}
    with warnings.catch_warnings():  # what is wrong with an auxiliary model is of no use
        warnings.simplefilter("ignore", MercerWarning)
        warnings.simplefilter("ignore", UserWarning)
        if labels:
            start = start_of_classes(GPClassifier(**options), None, Logistic(), Zero(), some, None)
        else:
            known = None if sample.variances is None else Gaussian(sample.variances)
            start = start_of_regression(GPRegressor(**options), None, known, mean, some, None)
    assert isinstance(start.kernel, Scaled)
    whole = start.status != "interrupted"
    if not whole:
        warn(
            "the search for relative length scales was interrupted; the best so far are kept",
            ConvergenceWarning,
        )
    return RBF(np.array(start.kernel.kernel.length_scale)), whole


def _drawn_in(Y: Floats, weights: Floats) -> Floats:
    """Return targets with outliers at the edge of the others."""
    middle = np.array([median_of(y, weights) for y in Y.T])
    width = np.array([median_of(y, weights) for y in np.abs(Y - middle).T]) / 0.6745
    width = np.where(width > 0, width, deviation(Y, weights))
    return np.clip(Y, middle - _FAR * width, middle + _FAR * width)


def free_directions(kernel: Kernel, default: bool, scaled: bool) -> Floats:
    """Return the directions in theta (p, k) that are searched.

    Of the default kernel it is that of all length scales together. The variance of a kernel is left
    out where the scale of the coefficients is chosen, with which it is one.
    """
    size = kernel.theta.size
    if default:
        return np.ones((size, 1))
    kept = np.eye(size)
    if scaled and isinstance(kernel, Scaled) and kernel.parameters["variance"].is_free:
        kept = kept[:, 1:]
    return kept


def search_kernel(
    kernel: Kernel,
    directions: Floats,
    bounds: Floats,
    value: Callable[[Kernel], float],
    most: int,
    starts: list[Floats],
    report: Report | None,
) -> KernelSearch:
    """Return the best kernel that a pattern search finds, which has no use for gradients.

    Parameters
    ----------
    kernel : where it begins
    directions : (p, k) along which theta changes
    bounds : (p, 2) of theta
    value : what is maximised
    most : evaluations from a start at the most
    starts : further values of theta to begin at
    report : whom to tell of evaluations
    """
    search = _Pattern(kernel, directions, bounds, value, most, report)
    status = "converged"
    try:
        for number, theta in enumerate([kernel.theta, *starts]):
            if not search.run(np.clip(theta, *bounds.T), number + 1):
                status = "stopped"
    except KeyboardInterrupt:
        if not search.values:
            raise
        status = "interrupted"
        warn(
            "the search was interrupted; the best hyperparameters so far are kept",
            ConvergenceWarning,
        )
    best = int(np.argmax(search.values))
    found = kernel.with_theta(search.thetas[best])
    tell(report, f"the kernel is {found!r}")
    return KernelSearch(found, search.thetas, search.values, status)


class _Pattern:
    """A pattern search: steps along each direction in turn, halved where none is better."""

    def __init__(
        self,
        kernel: Kernel,
        directions: Floats,
        bounds: Floats,
        value: Callable[[Kernel], float],
        most: int,
        report: Report | None,
    ) -> None:
        self.kernel, self.directions, self.bounds = kernel, directions, bounds
        self.value, self.most, self.report = value, most, report
        self.thetas: list[Floats] = []
        self.values: list[float] = []
        self.start = self.count = 0

    def at(self, theta: Floats) -> float:
        """Return the value at a point; one that was seen before is not evaluated again."""
        for old, value in zip(self.thetas, self.values, strict=True):
            if np.allclose(old, theta, rtol=0.0, atol=1e-12):
                return value
        value = self.value(self.kernel.with_theta(theta))
        self.thetas.append(np.array(theta))
        self.values.append(value)
        self.count += 1
        if self.report is not None:
            self.report(self.start, self.count, value, max(self.values))
        return value

    def run(self, theta: Floats, start: int) -> bool:
        """Search from a point; return whether that ended by itself."""
        self.start, self.count = start, 0
        best, step = self.at(theta), _STEP
        signs = np.ones(self.directions.shape[1])
        while step >= _LEAST:
            moved = False
            for k, direction in enumerate(self.directions.T):
                for sign in (signs[k], -signs[k]):
                    better = False
                    while self.count < self.most:
                        near = np.clip(theta + sign * step * direction, *self.bounds.T)
                        if np.array_equal(near, theta) or not self.at(near) > best + _GAIN:
                            break
                        theta, best, better = near, self.at(near), True
                    if better:
                        signs[k], moved = sign, True
                        break
                if self.count >= self.most:
                    return False
            if not moved:
                step *= 0.5
        return True
