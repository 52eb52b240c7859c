"""The search for hyperparameters, by scikit-learn's rules, and what it warns of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from mercer.compat.covariance import covariance_of
from mercer.errors import warn

__all__ = ["Searches", "lbfgs", "warn_at_bounds"]

Floats = NDArray[np.float64]
Function = Callable[[Floats], tuple[float, Floats]]

# SciPy's: the least relative gain of a step, and the largest component of the gradient.
_FTOL, _GTOL = 2.2e-9, 1e-5


class Searches:
    """Adds the search that `optimizer` and `n_restarts_optimizer` ask for."""

    optimizer: Any
    n_restarts_optimizer: int
    kernel_: Any
    X_train_: Any

    def _search(self, obj_func: Any, rng: np.random.RandomState) -> Floats:
        """Return the theta of the least value that all starts have found."""
        bounds = self.kernel_.bounds
        starts = [self.kernel_.theta]
        if self.n_restarts_optimizer > 0:
            if not np.all(np.isfinite(bounds)):
                raise ValueError(
                    "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all "
                    "bounds are finite."
                )
            starts += [self._drawn_start(rng, bounds) for _ in range(self.n_restarts_optimizer)]
        ends = [self._constrained_optimization(obj_func, start, bounds) for start in starts]
        return np.asarray(min(ends, key=lambda end: end[1])[0], dtype=float)

    def _drawn_start(self, rng: np.random.RandomState, bounds: Floats) -> Floats:
        return np.asarray(rng.uniform(*bounds.T))

    def _constrained_optimization(
        self, obj_func: Any, initial_theta: Floats, bounds: Floats
    ) -> tuple[Floats, float]:
        """Run one start. The name is scikit-learn's: classes derived from it override this."""
        if callable(self.optimizer):
            theta, least = self.optimizer(obj_func, initial_theta, bounds=bounds)
            return theta, least
        is_definite = covariance_of(self.kernel_, self.X_train_).is_definite
        return lbfgs(obj_func, initial_theta, bounds, again=is_definite)


def lbfgs(
    function: Function, start: Floats, bounds: Floats, again: bool = True
) -> tuple[Floats, float]:
    """Minimise a function (value and gradient) by L-BFGS-B with SciPy's tolerances.

    That is scikit-learn's search, and goes its ways. With `again`, but for two things: where the
    function is infinite the line search is given a finite wall to turn back from, and a search that
    ends in a failed line search is taken up again, once, from where it stood. Neither is for
    kernels that may be indefinite: there the evidence rises without end towards the walls.
    """
    walled = _Walled(function) if again else function
    found = minimize(walled, start, method="L-BFGS-B", jac=True, bounds=bounds)
    if again and not found.success and np.isfinite(found.fun):
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
