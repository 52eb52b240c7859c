"""From what a user wrote to the objects an engine takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import likelihoods
from mercer.estimators.iterative_options import Iterative
from mercer.estimators.nested import column_names
from mercer.estimators.options import (
    check_search_options,
    require_choice,
    require_flag,
    require_instance,
)
from mercer.evidence import CRITERIA, best_engine, engines_that_take, require_pair
from mercer.kernels import Kernel, from_sklearn
from mercer.likelihoods import Gaussian, Likelihood
from mercer.params import Parameter

__all__ = [
    "as_kernel",
    "as_likelihood",
    "check_options",
    "chosen_engine",
    "is_sklearn_kernel",
    "named_engine",
    "require_mercer",
]

#: The engines of a regressor.
INFERENCES = ("auto", "exact", "iterative", "laplace", "ep", "vi", "map")


def check_options(estimator: Any) -> None:
    """Raise ValueError for an option of a `GPRegressor` that is none of its choices."""
    require_instance("inference", estimator.inference)
    require_choice("inference", named_engine(estimator.inference), INFERENCES)
    require_choice("objective", estimator.objective, (*CRITERIA, "joint"))
    require_flag("normalize_y", estimator.normalize_y)
    check_search_options(estimator)


def named_engine(inference: Any) -> Any:
    """Return the name of an engine that is given by its name, or by its options."""
    return "iterative" if isinstance(inference, Iterative) else inference


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
            "Two ways out: Flipped(kernel) makes a covariance of it; Laplacian processes "
            "(LaplacianProcessRegressor, LaplacianProcessClassifier) and relevance vectors "
            "(RelevanceVectorRegressor, RelevanceVectorClassifier) take it as it is"
        )


def as_likelihood(
    spec: Any, from_kernel: Parameter | None, classifier: str = "GPClassifier"
) -> Likelihood | None:
    """Return the likelihood, or None where Gaussian noise is to be chosen from the data.

    `classifier` is that which takes a likelihood of classes instead.
    """
    if spec is None:
        return None if from_kernel is None else Gaussian(from_kernel)
    if getattr(spec, "is_of_labels", False):
        raise ValueError(
            f"{spec!r} is a likelihood of classes, and the targets of a regression are numbers; "
            f"use {classifier}"
        )
    if not isinstance(spec, Likelihood):
        require_instance("likelihood", spec)
        text = f"likelihood must be None or one of mercer.likelihoods, got {spec!r}"
        if isinstance(spec, (int, float, np.number)):
            text += f"; for noise of that variance give mercer.likelihoods.Gaussian({spec})"
        elif isinstance(spec, np.ndarray):
            text += "; for known noise variances give mercer.likelihoods.Gaussian(array)"
        elif isinstance(spec, str):
            text += f"; write {_likelihood_named(spec)} in the place of its name"
        raise ValueError(text)
    if from_kernel is not None:
        raise ValueError(
            "the noise is given twice, by a WhiteKernel in the kernel and by the likelihood; "
            "leave one of them out"
        )
    return None if isinstance(spec, Gaussian) and spec.noise is None else spec


def _likelihood_named(name: str) -> str:
    """Return how the likelihood of regression that a name means is written, or how one is."""
    plain = name.lower().replace("_", "").replace("-", "").replace(" ", "")
    known = {each.lower(): each for each in likelihoods.__all__}
    return f"mercer.likelihoods.{known.get(plain, 'Laplace')}()"


def chosen_engine(estimator: Any, likelihood: Likelihood | None) -> str:
    """Return the engine that an estimator asks for; raises ValueError for one that cannot be."""
    gaussian = likelihood is None or isinstance(likelihood, Gaussian)
    inference: str = named_engine(estimator.inference)
    if inference == "auto":
        inference = "exact" if gaussian else best_engine(likelihood)
    if inference in ("exact", "iterative"):
        if not gaussian:
            others = ", ".join(map(repr, engines_that_take(likelihood)))
            raise ValueError(
                f"{inference} inference is for Gaussian noise, got {likelihood!r}; "
                f"inference='auto' chooses among {others}"
            )
        if inference == "iterative":
            _require_iterative(estimator, likelihood)
        if estimator.objective == "joint":
            _require_joint(estimator, inference)
        return inference
    require_pair(Gaussian(1.0) if likelihood is None else likelihood, inference)
    if estimator.objective == "loo":
        raise ValueError(
            f"objective='loo' goes with exact inference alone, got inference={inference!r}: the "
            "leave-one-out density of the other engines has no gradient; use objective='evidence'"
        )
    if estimator.objective == "joint":
        _require_joint(estimator, inference)
    if estimator.normalize_y:
        raise ValueError(
            f"normalize_y=True goes with exact inference alone, got inference={inference!r}; "
            "divide the targets by np.std(y) where that makes sense, or leave kernel and "
            "likelihood to be chosen in the units of the data"
        )
    return inference


def _require_iterative(estimator: Any, likelihood: Any) -> None:
    """Raise ValueError for what takes a factorised covariance, or the noise of single rows."""
    if likelihood is not None and likelihood.covariance is not None:
        raise ValueError(
            "inference='iterative' takes noise that is independent between the rows, and a full "
            "noise covariance was given; use inference='exact'"
        )
    if estimator.objective == "loo":
        raise ValueError(
            "objective='loo' takes the diagonal of the inverse covariance, which "
            "inference='iterative' never makes; use objective='evidence', or inference='exact'"
        )


def _require_joint(estimator: Any, inference: str) -> None:
    """Raise ValueError where the joint density is to be climbed by what cannot do it."""
    if inference != "map":
        raise ValueError(
            "objective='joint' is the joint density of the most probable function and the "
            f"hyperparameters, and goes with inference='map', got inference={inference!r}"
        )
    if callable(estimator.optimizer):
        raise ValueError(
            "objective='joint' has no gradient in all at once that a callable optimizer could "
            "take: give optimizer='lbfgs', by which function and hyperparameters are found in turn"
        )
    if estimator.n_restarts > 0:
        raise ValueError(
            "objective='joint' climbs from one start, in turn, and has no maximum that random "
            f"starts could find; got n_restarts={estimator.n_restarts}, give n_restarts=0"
        )
