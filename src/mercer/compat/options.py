"""What the constructor's parameters may be."""

from __future__ import annotations

from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

__all__ = ["check_options", "default_kernel"]


def check_options(model: Any) -> None:
    """Raise ValueError for a parameter that is none of its choices."""
    kernel, alpha, optimizer = model.kernel, model.alpha, model.optimizer
    restarts, outputs = model.n_restarts_optimizer, model.n_targets
    wanted = {
        "kernel": (
            kernel is None or isinstance(kernel, Kernel),
            "None or a kernel of sklearn.gaussian_process.kernels (a kernel of Mercer's goes into "
            "mercer.GPRegressor)",
        ),
        "alpha": (
            bool(alpha >= 0) if isinstance(alpha, Real) else np.ndim(alpha) == 1,  # type: ignore[operator]
            "a number from 0, or an array of one a row",
        ),
        "optimizer": (
            optimizer is None or callable(optimizer) or optimizer == "fmin_l_bfgs_b",
            "'fmin_l_bfgs_b', a callable or None",
        ),
        "n_restarts_optimizer": (_whole(restarts, 0), "a whole number from 0"),
        "n_targets": (outputs is None or _whole(outputs, 1), "None or a whole number from 1"),
    }
    for name in ("normalize_y", "copy_X_train"):
        wanted[name] = isinstance(getattr(model, name), (bool, np.bool_)), "True or False"
    for name, (right, what) in wanted.items():
        if not right:
            raise ValueError(
                f"The {name!r} parameter of {type(model).__name__} must be {what}. Got "
                f"{getattr(model, name)!r} instead."
            )
    if isinstance(kernel, CompoundKernel):
        raise ValueError(
            f"kernel is {kernel}, and a CompoundKernel is a list of kernels, one a class, and not "
            "a covariance; give one of its `kernels`, or their sum"
        )


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least


def default_kernel() -> Any:
    """Return the kernel that the installed scikit-learn puts for None."""
    return clone(_asked())


@cache
def _asked() -> Any:
    # asked rather than known: versions differ in what they hold fixed
    return GaussianProcessRegressor(optimizer=None).fit(np.zeros((1, 1)), np.zeros(1)).kernel_
