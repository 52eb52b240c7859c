"""The search for hyperparameters, by scikit-learn's rules, and what it warns of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from mercer.errors import warn

__all__ = ["lbfgs", "warn_at_bounds"]

Floats = NDArray[np.float64]
Function = Callable[[Floats], tuple[float, Floats]]

# SciPy's: the least relative gain of a step, and the largest component of the gradient.
_FTOL, _GTOL = 2.2e-9, 1e-5
# How far away are the points whose values would be the same, were it not for rounding.
_NEIGHBOURS = (-2e-8, -1e-8, 1e-8, 2e-8)


def lbfgs(
    function: Function, start: Floats, bounds: Floats, again: bool = True
) -> tuple[Floats, float]:
    """Minimise a function (value and gradient) by L-BFGS-B with SciPy's tolerances.

    That is scikit-learn's search, and goes its ways. With `again`, but for two things: where the
    function is infinite the line search is given a finite wall to turn back from, and a search that
    ends in a failed line search is taken up again, once, from where it stood, unless there is only
    rounding to follow. Neither is for kernels that may be indefinite: there the evidence rises
    without end towards the walls.
    """
    walled = _Walled(function) if again else function
    found = minimize(walled, start, method="L-BFGS-B", jac=True, bounds=bounds)
    if again and not found.success and not _is_rounding(function, found):
        second = _in_small_steps(walled, found.x, bounds)
        if second.success or second.fun < found.fun:
            found = second
    if not found.success:
        warn(
            f"lbfgs failed to converge (status={found.status}): {found.message}. The "
            "hyperparameters may not be at a maximum of the evidence; scale the data, raise alpha, "
            "or give other bounds or starting values",
            ConvergenceWarning,
        )
    return found.x, float(found.fun)


class _Walled:
    """A function whose infinite values are replaced by finite ones that lead back.

    A matrix that cannot be factorised has no evidence, and no gradient to turn back by. The wall
    rises with the distance from the last point where there was a value.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.good: tuple[Floats, float] | None = None

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        value, gradient = self.function(theta)
        if np.isfinite(value):
            self.good = np.array(theta), value
        elif self.good is not None:
            step, height = theta - self.good[0], 10.0 * (1.0 + abs(self.good[1]))
            return float(self.good[1] + height * (1.0 + step @ step)), 2.0 * height * step
        return value, gradient


def _is_rounding(function: Function, end: Any) -> bool:
    """Whether there is no value, or none but that of rounding.

    That is so where values 1e-8 apart differ by more than a step of 0.1 down the gradient would
    give: a kernel cannot explain the targets, and `alpha` is less than rounding. What is found
    there by going on is a corner where the errors are largest.
    """
    slope = float(np.linalg.norm(end.jac))
    if not np.isfinite(end.fun) or slope == 0.0:
        return True
    jumps = [abs(function(end.x + step * end.jac / slope)[0] - end.fun) for step in _NEIGHBOURS]
    return bool(sorted(jumps)[1] > 0.1 * slope)  # on one side there may be a wall


def _in_small_steps(function: Function, start: Floats, bounds: Floats) -> Any:
    """Run L-BFGS-B in units in which its first step, the gradient, is at most 1 long.

    A gradient of hundreds lands in a corner of the box, from where line searches may fail.
    """
    unit = 1.0 / max(1.0, float(np.linalg.norm(function(start)[1])))

    def scaled(theta: Floats) -> tuple[float, Floats]:
        value, gradient = function(theta)
        return unit * value, unit * gradient

    options = {"ftol": _FTOL * unit, "gtol": _GTOL * unit}
    found = minimize(scaled, start, method="L-BFGS-B", jac=True, bounds=bounds, options=options)
    found.fun /= unit
    return found


def warn_at_bounds(kernel: Any) -> None:
    """Warn of each fitted hyperparameter that stands at one of its bounds."""
    at_bound = np.isclose(kernel.bounds, kernel.theta[:, None])
    component = 0
    for hyperparameter in kernel.hyperparameters:
        if hyperparameter.fixed:
            continue
        for dimension in range(hyperparameter.n_elements):
            for side, word, advice in ((0, "lower", "Decreasing"), (1, "upper", "Increasing")):
                if at_bound[component, side]:
                    warn(
                        f"The optimal value found for dimension {dimension} of parameter "
                        f"{hyperparameter.name} is close to the specified {word} bound "
                        f"{hyperparameter.bounds[dimension, side]}. {advice} the bound and "
                        "calling fit again may find a better value.",
                        ConvergenceWarning,
                    )
                    break
            component += 1
