"""The kernel of a Laplacian process: where the default one begins, and the search.

The default kernel leaves one direction to search: length scales in proportion to each other as a
Gaussian process on a sample has them, and a factor to all.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, MercerWarning, warn
from mercer.estimators.laplacian_frame import Frame, Model
from mercer.estimators.laplacian_options import PRIORS
from mercer.estimators.laplacian_rows import Merged
from mercer.estimators.online_start import start_of_classes, start_of_regression
from mercer.estimators.rows import Rows
from mercer.evidence.defaults import deviation, spread
from mercer.evidence.expansion_choice import choose, tells
from mercer.evidence.optimum import Report, tell
from mercer.evidence.pattern_search import KernelSearch, free_directions, search_kernel
from mercer.inference._residual_noise import Noise
from mercer.kernels import RBF, Kernel, Scaled
from mercer.likelihoods import Gaussian, Likelihood, Logistic
from mercer.likelihoods.spread import median_of
from mercer.means import Mean, Zero

__all__ = ["default_start", "kernel_for"]

Floats = NDArray[np.float64]

# Rows by which kernels are compared, at the most, and penalties of a path that serves for that.
_KERNEL_ROWS, _KERNEL_PENALTIES = 1000, 17
# Rows by which the relative length scales of the default kernel are chosen; labels take longer.
_NUMBERS, _LABELS = 500, 300
# Iterations of that.
_ITERATIONS = 50
# Targets further than this many deviations from the median are drawn in there before it, where
# the noise is not Gaussian.
_FAR = 4.0


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


def kernel_for(
    estimator: Any, model: Model, seed: int, report: Report | None
) -> tuple[Kernel, KernelSearch | None]:
    """Return the kernel, and the search for its parameters if there was one."""
    rows, kernel = model.rows, model.kernel
    labels = isinstance(model.noise, str)
    rng = np.random.default_rng(seed)
    no_sections = estimator.centres is not None and len(estimator.centres) == 0
    default = kernel is None
    if kernel is None:
        if no_sections:
            return RBF(), None
        tell(report, "choosing relative length scales")
        kernel, whole = default_start(estimator, rows, model.mean, labels, rng)
        if not whole:
            return kernel, KernelSearch(kernel, [], [], "interrupted")
    kernel = kernel.anchored(rows.X)
    directions = free_directions(kernel, default, estimator.prior_scale is None)
    if estimator.optimizer is None or not directions.shape[1] or no_sections:
        return kernel, None
    some = rows.some(_KERNEL_ROWS, np.random.default_rng(seed))
    begun = Frame(estimator, kernel, model, seed)
    table = begun.table(some)
    telling = [
        p
        for p in range(rows.Y.shape[1])
        if tells(table, begun.targets(some, p), PRIORS[estimator.prior])
    ]
    if not telling:
        return kernel, None
    tell(report, f"comparing kernels by {len(some.Y)} rows")

    found: dict[int, Likelihood] = {}  # that of the first kernel shapes the loss of all

    def value(kernel: Kernel) -> float:
        frame = Frame(estimator, kernel, model, seed)
        options = frame.options(estimator.max_active, None)
        options = options._replace(n_penalties=min(_KERNEL_PENALTIES, estimator.n_penalties))
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
    starts = [kernel.draw_theta(rng) for _ in range(0 if default else estimator.n_restarts)]
    end = search_kernel(kernel, directions, bounds, value, estimator.max_iter, starts, report)
    return end.kernel, end
