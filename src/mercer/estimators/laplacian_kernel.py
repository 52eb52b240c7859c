"""The kernel of a Laplacian process: where the default one begins, and the search.

The default kernel leaves one direction to search: length scales in proportion to each other as a
Gaussian process on a sample has them, and a factor to all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.expansion_options import check_symmetry
from mercer.estimators.laplacian_frame import Frame, Model
from mercer.estimators.sampled_widths import sampled_widths
from mercer.evidence.defaults import spread
from mercer.evidence.expansion_choice import choose, tells
from mercer.evidence.optimum import Report, tell
from mercer.evidence.pattern_search import KernelSearch, free_directions, search_kernel
from mercer.kernels import RBF, Kernel
from mercer.likelihoods import Gaussian, Likelihood

__all__ = ["kernel_for"]

Floats = NDArray[np.float64]

# Rows by which kernels are compared, at the most, and penalties of a path that serve for that: a
# wide kernel is seen to be the better one only at small penalties where there is little noise, and
# labels are never without.
_KERNEL_ROWS, _KERNEL_PENALTIES, _LABEL_PENALTIES = 1000, 30, 17


def kernel_for(
    estimator: Any, model: Model, seed: int, report: Report | None
) -> tuple[Kernel, KernelSearch | None]:
    """Return the kernel, and the search for its parameters if there was one."""
    rows, kernel = model.rows, model.kernel
    labels = isinstance(model.noise, str)
    rng = np.random.default_rng(seed)
    no_sections = estimator.centres is not None and len(estimator.centres) == 0
    default = kernel is None
    widths = np.ones(1)
    if kernel is None or kernel.is_numeric:
        widths = spread(rows.X, rows.weights)
    if kernel is None:
        if no_sections:
            return RBF(), None
        tell(report, "choosing relative length scales")
        outliers = not (labels or isinstance(estimator.likelihood, (Gaussian, type(None))))
        found = sampled_widths(estimator, rows, widths, model.mean, labels, outliers, rng)
        kernel = found.kernel
        if not found.is_whole:
            return kernel, KernelSearch(kernel, [], [], "interrupted")
    kernel = kernel.anchored(rows.X)
    check_symmetry(kernel, rows.X)
    directions = free_directions(kernel, default, estimator.prior_scale is None)
    if estimator.optimizer is None or not directions.shape[1] or no_sections:
        return kernel, None
    some = rows.some(_KERNEL_ROWS, np.random.default_rng(seed))
    begun = Frame(estimator, kernel, model, seed)
    table, options = begun.table(some), begun.options(estimator.max_active, None)
    most = _LABEL_PENALTIES if labels else _KERNEL_PENALTIES
    options = options._replace(n_penalties=min(most, estimator.n_penalties))
    telling = [p for p in range(rows.Y.shape[1]) if tells(table, begun.targets(some, p), options)]
    if not telling:
        return kernel, None
    tell(report, f"comparing kernels by {len(some.Y)} rows")

    noises: dict[int, Likelihood] = {}  # that of the first kernel shapes the loss of all

    def value(kernel: Kernel) -> float:
        frame = Frame(estimator, kernel, model, seed)
        columns, total = frame.table(some), 0.0
        for p in telling:
            targets = frame.targets(some, p)
            if p in noises:
                targets = targets.with_noise(start=noises[p])
            own = options._replace(settles=p not in noises)
            chosen = choose(columns, targets, own, judge=True)
            if not chosen.is_whole:
                raise KeyboardInterrupt
            noises.setdefault(p, chosen.now)
            total += chosen.value
        return total if np.isfinite(total) else -np.inf

    bounds = kernel.with_bounds_from(widths, 1.0).bounds
    starts = [kernel.draw_theta(rng) for _ in range(0 if default else estimator.n_restarts)]
    end = search_kernel(kernel, directions, bounds, value, estimator.max_iter, starts, report)
    return end.kernel, end
