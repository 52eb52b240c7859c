"""From what a user wrote to the objects an engine takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.regressor import as_generator
from mercer.evidence import CRITERIA
from mercer.kernels import Kernel, from_sklearn
from mercer.likelihoods import Gaussian
from mercer.params import Parameter

__all__ = [
    "as_gaussian",
    "as_kernel",
    "check_options",
    "is_sklearn_kernel",
    "require_choice",
    "require_count",
    "require_mercer",
]


def require_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def require_count(name: str, value: Any, least: int) -> None:
    """Raise ValueError unless the value is a whole number of at least so many."""
    whole = isinstance(value, (int, np.integer)) and (name == "verbose" or value is not True)
    if not whole or value < least:
        raise ValueError(f"{name} must be a whole number from {least}, got {value!r}")


def check_options(estimator: Any) -> None:
    """Raise ValueError for an option of an exact regressor that is none of its choices."""
    require_choice("inference", estimator.inference, ("auto", "exact"))
    require_choice("hyperprior", estimator.hyperprior, ("default", None))
    require_choice("objective", estimator.objective, CRITERIA)
    if not callable(estimator.optimizer):
        require_choice("optimizer", estimator.optimizer, ("lbfgs", None))
    for name, least in (("n_restarts", 0), ("max_iter", 1), ("verbose", 0)):
        require_count(name, getattr(estimator, name), least)
    if estimator.n_jobs is not None and estimator.n_jobs != -1:
        require_count("n_jobs", estimator.n_jobs, 1)
    for name in ("normalize_y", "warm_start"):
        require_choice(name, getattr(estimator, name), (True, False))
    as_generator(estimator.random_state)


def require_instance(name: str, spec: Any) -> None:
    """Raise ValueError for a class where an object of it is wanted."""
    if isinstance(spec, type):
        raise ValueError(
            f"{name} is the class {spec.__name__} itself, did you forget the brackets: "
            f"{spec.__name__}()"
        )


def is_sklearn_kernel(spec: Any) -> bool:
    """Whether this is a kernel of scikit-learn's, which is imported only to find that out."""
    if not hasattr(spec, "clone_with_theta"):
        return False
    from sklearn.gaussian_process.kernels import Kernel as SklearnBase

    return isinstance(spec, SklearnBase)


def as_kernel(spec: Any, X: Any) -> tuple[Kernel | None, Parameter | None]:
    """Return the kernel (None: to be chosen from the data) and the noise that came with it.

    Takes None, a Mercer kernel, or a scikit-learn kernel, whose WhiteKernel becomes the noise.
    X tells the number of columns, on which some of scikit-learn's kernels depend.
    """
    if spec is None or isinstance(spec, Kernel):
        return spec, None
    if is_sklearn_kernel(spec):
        shape: tuple[int, ...] = np.shape(X) if isinstance(X, (list, tuple)) else ()
        shape = getattr(X, "shape", shape)
        return from_sklearn(spec, shape[1] if len(shape) == 2 else None)
    require_instance("kernel", spec)
    raise ValueError(
        f"kernel must be None, 'precomputed', a kernel of mercer.kernels or one of scikit-learn's, "
        f"got {spec!r}; wrap a function as mercer.kernels.Callable(f)"
    )


def require_mercer(kernel: Kernel) -> None:
    """Raise ValueError for a kernel that is no covariance, naming the two ways out."""
    if not kernel.is_mercer:
        raise ValueError(
            f"{kernel!r} is not a Mercer kernel, so it is no covariance of a Gaussian process. "
            "Two ways out: Flipped(kernel) makes a covariance of it; a Laplacian process or "
            "relevance vectors (LaplacianProcessRegressor, RelevanceVectorRegressor) take it as "
            "it is"
        )


def as_gaussian(spec: Any, from_kernel: Parameter | None) -> Gaussian | None:
    """Return the likelihood, or None where its noise is to be chosen from the data."""
    if spec is None:
        return None if from_kernel is None else Gaussian(from_kernel)
    if not isinstance(spec, Gaussian):
        require_instance("likelihood", spec)
        text = f"likelihood must be None or a Gaussian for exact inference, got {spec!r}"
        if isinstance(spec, (int, float, np.number)):
            text += f"; for noise of that variance give mercer.likelihoods.Gaussian({spec})"
        elif isinstance(spec, np.ndarray):
            text += "; for known noise variances give mercer.likelihoods.Gaussian(array)"
        raise ValueError(text)
    if from_kernel is not None:
        raise ValueError(
            "the noise is given twice, by a WhiteKernel in the kernel and by the likelihood; "
            "leave one of them out"
        )
    return None if spec.noise is None else spec
