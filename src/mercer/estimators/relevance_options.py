"""What may be asked of a relevance vector machine, and what goes together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.expansion_options import check_functions
from mercer.estimators.options import (
    check_run_options,
    is_flag,
    require_choice,
    require_count,
    require_flag,
    require_instance,
    require_number,
)
from mercer.estimators.resolve import as_kernel
from mercer.estimators.rows import is_precomputed
from mercer.kernels import Kernel
from mercer.params import Parameter
from mercer.priors import Flat, PrecisionPrior

__all__ = [
    "as_kernels",
    "check_relevance_options",
    "class_weights",
    "degrees_of",
    "hyperprior_of",
    "known_noise",
    "noise_prior_of",
]

Floats = NDArray[np.float64]

# Degrees of freedom of robust=True.
_DEGREES = 4.0


def check_relevance_options(estimator: Any, algorithms: tuple[str, ...]) -> None:
    """Raise ValueError for an option of a relevance vector machine that is none of its choices."""
    require_choice("algorithm", estimator.algorithm, algorithms)
    hyperprior_of(estimator.hyperprior)
    require_choice("optimizer", estimator.optimizer, ("lbfgs", None))
    for name in ("augment", "learn_centres"):
        require_flag(name, getattr(estimator, name))
    check_run_options(estimator)
    if estimator.max_steps is not None:
        require_count("max_steps", estimator.max_steps, 1)
    require_number("tol", estimator.tol)
    if not (np.isfinite(estimator.tol) and estimator.tol > 0):
        raise ValueError(f"tol must be a positive number of nats, got {estimator.tol!r}")
    check_functions(estimator)
    none = estimator.centres is not None and not len(estimator.centres)
    if none and estimator.augment:
        raise ValueError("augment=True adds sections of the kernel, and there are no centres")
    if none and estimator.learn_centres:
        raise ValueError("learn_centres=True moves centres, and there are none")
    for name in ("augment", "learn_centres"):
        if is_precomputed(estimator) and getattr(estimator, name):
            raise ValueError(f"{name}=True needs inputs, and a precomputed kernel has none")


def hyperprior_of(spec: Any) -> PrecisionPrior:
    """Return the hyperprior of the precisions, flat unless another is given."""
    if spec is None or (isinstance(spec, str) and spec == "flat"):
        return Flat()
    require_instance("hyperprior", spec)
    if not isinstance(spec, PrecisionPrior):
        raise ValueError(
            "hyperprior must be None, 'flat' or one of precisions in mercer.priors, such as "
            f"GammaPrecision(1e-4, 1e-4), got {spec!r}"
        )
    return spec


def degrees_of(spec: Any) -> tuple[bool, float | None]:
    """Return whether rows have variances of their own, and the degrees of freedom of these."""
    if is_flag(spec):
        return bool(spec), _DEGREES
    if isinstance(spec, str) and spec == "flat":
        return True, None
    try:
        require_number("robust", spec)
        fits = np.isfinite(spec) and spec > 0
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            "robust must be True, False, a positive number of degrees of freedom or 'flat', got "
            f"{spec!r}"
        )
    return True, float(spec)


def known_noise(spec: Any, given: Parameter | None) -> float | None:
    """Return the variance of noise that is known, None to learn it.

    Parameters
    ----------
    spec : the option `noise`
    given : what the kernel says of it, if anything
    """
    if spec is not None:
        require_number("noise", spec)
        if not (np.isfinite(spec) and spec > 0):
            raise ValueError(f"noise must be a positive variance or None, got {spec!r}")
    if given is None:
        return None if spec is None else float(spec)
    if spec is not None:
        raise ValueError(
            "the noise is given twice, by a WhiteKernel in the kernel and by `noise`; leave "
            "one of them out"
        )
    return None if given.is_free else float(given.value)


def noise_prior_of(spec: Any) -> tuple[float, float]:
    """Return shape and rate of the Gamma density of the inverse noise variance."""
    if spec is None:
        return 0.0, 0.0
    try:
        shape, rate = (float(value) for value in spec)
        fits = 0 <= shape < np.inf and 0 <= rate < np.inf
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            "noise_prior must be None or two numbers of at least 0, shape and rate of a Gamma "
            f"density of the inverse variance, got {spec!r}"
        )
    return shape, rate


def as_kernels(spec: Any, X: Any) -> tuple[tuple[Kernel, ...] | None, Parameter | None]:
    """Return the kernels (None: one to be chosen from the data) and the noise that came with them.

    Takes what `as_kernel` does, or a list of that.
    """
    if not isinstance(spec, (list, tuple)):
        kernel, noise = as_kernel(spec, X)
        return (None if kernel is None else (kernel,)), noise
    if not len(spec):
        raise ValueError("kernel is an empty list: give one kernel or more, or None")
    kernels: list[Kernel] = []
    for each in spec:
        kernel, noise = as_kernel(each, X)
        if kernel is None or noise is not None:
            raise ValueError(
                f"each of several kernels must be a kernel, without noise, got {each!r}"
            )
        kernels.append(kernel)
    if len({kernel.is_numeric for kernel in kernels}) > 1:
        raise ValueError(
            f"kernels of numbers and of other objects cannot be taken together, got {list(spec)!r}"
        )
    return tuple(kernels), None


def class_weights(
    spec: Any, classes: NDArray[Any], codes: NDArray[np.intp], weights: Floats | None
) -> Floats | None:
    """Return the weights of rows times those of their classes; None if all are 1."""
    if spec is None:
        return weights
    own = np.ones(len(codes)) if weights is None else weights
    if isinstance(spec, str) and spec == "balanced":
        total = np.bincount(codes, own, minlength=len(classes))
        each = float(np.sum(own)) / (len(classes) * total)
    elif isinstance(spec, dict):
        known = {label: i for i, label in enumerate(classes.tolist())}
        unknown = [label for label in spec if label not in known]
        if unknown:
            raise ValueError(
                f"class_weight has weights of {unknown!r}, and the classes are {classes.tolist()!r}"
            )
        each = np.ones(len(classes))
        for label, value in spec.items():
            require_number("a class_weight", value)
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"class weights must be positive, got {value!r} of {label!r}")
            each[known[label]] = float(value)
    else:
        raise ValueError(f"class_weight must be None, 'balanced' or a dictionary, got {spec!r}")
    return np.asarray(own * each[codes])
