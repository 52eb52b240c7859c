"""What the constructors' parameters may be."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

__all__ = ["check_options", "kernel_or_default", "kind_of_rows"]


class Choices(NamedTuple):
    """What a parameter may be: a test, and the words for it."""

    has: Callable[[Any], bool]
    words: str


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Integral) and int(value) >= least


def _is_diagonal(value: Any) -> bool:
    return float(value) >= 0 if isinstance(value, Real) else np.ndim(value) == 1


_FLAG = Choices(lambda value: isinstance(value, (bool, np.bool_)), "True or False")
_CHOICES = {
    "kernel": Choices(
        lambda value: value is None or isinstance(value, Kernel),
        "None or a kernel of sklearn.gaussian_process.kernels (a kernel of Mercer's goes into "
        "mercer.{own})",
    ),
    "alpha": Choices(_is_diagonal, "a number from 0, or an array of one a row"),
    "optimizer": Choices(
        lambda value: value is None or callable(value) or value == "fmin_l_bfgs_b",
        "'fmin_l_bfgs_b', a callable or None",
    ),
    "n_restarts_optimizer": Choices(_whole(0), "a whole number from 0"),
    "n_targets": Choices(
        lambda value: value is None or _whole(1)(value), "None or a whole number from 1"
    ),
    "max_iter_predict": Choices(_whole(1), "a whole number from 1"),
    "multi_class": Choices(
        lambda value: isinstance(value, str) and value in ("one_vs_rest", "one_vs_one"),
        "'one_vs_rest' or 'one_vs_one'",
    ),
    "n_jobs": Choices(
        lambda value: value is None or isinstance(value, Integral), "None or a whole number"
    ),
    "normalize_y": _FLAG,
    "copy_X_train": _FLAG,
    "warm_start": _FLAG,
}


def check_options(model: Any) -> None:
    """Raise ValueError for a parameter that is none of its choices."""
    for name, value in model.get_params(deep=False).items():
        choices = _CHOICES.get(name)
        if choices is not None and not choices.has(value):
            own = "GPClassifier" if is_classifier(model) else "GPRegressor"
            raise ValueError(
                f"The {name!r} parameter of {type(model).__name__} must be "
                f"{choices.words.format(own=own)}. Got {value!r} instead."
            )
    if isinstance(model.kernel, CompoundKernel):
        raise ValueError(
            "kernel cannot be a CompoundKernel: a CompoundKernel is a list of kernels, one a "
            "class, and not a covariance; give one of its `kernels`, or their sum"
        )


def kernel_or_default(kernel: Any, original: Any = GaussianProcessRegressor) -> Any:
    """Return a copy of a kernel; for None of the one that a class of scikit-learn puts there."""
    return clone(_asked(original) if kernel is None else kernel)


@cache
def _asked(original: Any) -> Any:
    # asked rather than known: versions differ in what they hold fixed
    assert original in (GaussianProcessClassifier, GaussianProcessRegressor)
    return original(optimizer=None).fit(np.array([[0.0], [1.0]]), np.array([0, 1])).kernel_


def kind_of_rows(kernel: Any) -> dict[str, Any]:
    """Return how rows are to be validated: as numbers, or not at all."""
    if kernel is None or kernel.requires_vector_input:
        return {"dtype": "numeric", "ensure_2d": True}
    return {"dtype": None, "ensure_2d": False}
