"""A search for the parameters of a kernel that has no use for gradients.

Where there is no evidence to climb, parameters are judged by what held-out rows are predicted along
a path of penalties, which has no gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, warn
from mercer.evidence.optimum import Report, tell
from mercer.kernels import Kernel, Scaled

__all__ = ["KernelSearch", "free_directions", "search_kernel"]

Floats = NDArray[np.float64]

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
