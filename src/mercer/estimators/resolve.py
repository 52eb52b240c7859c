"""From what a user wrote to the objects an engine takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.nested import column_names
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
    "require_flag",
    "require_mercer",
]


def require_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def is_flag(value: Any) -> bool:
    """Whether this is True or False, of Python's or of NumPy's."""
    return isinstance(value, (bool, np.bool_))


def is_whole(value: Any) -> bool:
    """Whether this is a whole number; a flag is none."""
    return isinstance(value, (int, np.integer)) and not is_flag(value)


def require_flag(name: str, value: Any) -> None:
    """Raise ValueError unless the value is True or False."""
    if not is_flag(value):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def require_count(name: str, value: Any, least: int) -> None:
    """Raise ValueError unless the value is a whole number of at least so many."""
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} must be a whole number from {least}, got {value!r}")


def check_options(estimator: Any) -> None:
    """Raise ValueError for an option of an exact regressor that is none of its choices."""
    require_choice("inference", estimator.inference, ("auto", "exact"))
    require_choice("hyperprior", estimator.hyperprior, ("default", None))
    require_choice("objective", estimator.objective, CRITERIA)
    if not callable(estimator.optimizer):
        require_choice("optimizer", estimator.optimizer, ("lbfgs", None))
    require_count("n_restarts", estimator.n_restarts, 0)
    require_count("max_iter", estimator.max_iter, 1)
    if not (is_flag(estimator.verbose) or callable(estimator.verbose)):
        require_count("verbose", estimator.verbose, 0)
    require_flag("normalize_y", estimator.normalize_y)
    require_flag("warm_start", estimator.warm_start)
    n_jobs = estimator.n_jobs
    if n_jobs is not None and not (is_whole(n_jobs) and n_jobs != 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}")
    # A RandomState is not asked for a generator, since that would draw from it.
    if not isinstance(estimator.random_state, np.random.RandomState):
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
    X tells the columns: their names, by which a kernel may be on some of them, and their number,
    on which some of scikit-learn's kernels depend.
    """
    if spec is None:
        return None, None
    if isinstance(spec, Kernel):
        return spec.with_columns(column_names(X)), None
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
