"""The names that ``--method`` takes. A new method is one more entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["METHODS", "Method"]


@dataclass(frozen=True)
class Method:
    """A way to fit: a line for the help, and a function from options to an unfitted estimator.

    The options are `kernel` (a Kernel, or None for the method's own), `n_restarts` and
    `random_state`, and what `own` names. With `of_classes` the target is taken for labels.
    `likelihoods` are the names of those it takes, the first by default; none if it has no choice.
    """

    summary: str
    build: Callable[..., Any]
    of_classes: bool = False
    own: tuple[str, ...] = ()
    likelihoods: tuple[str, ...] = ()


def _gp(**options: Any) -> Any:
    from mercer.estimators import GPRegressor

    return GPRegressor(**options)


def _sparse(**options: Any) -> Any:
    from mercer.estimators import SparseGPRegressor

    return SparseGPRegressor(**options)


def _greedy(**options: Any) -> Any:
    from mercer.estimators import SparseGreedyGPRegressor

    return SparseGreedyGPRegressor(**options)


def _online(**options: Any) -> Any:
    from mercer.estimators import OnlineGPRegressor

    return OnlineGPRegressor(**options)


def _online_classes(**options: Any) -> Any:
    from mercer.estimators import OnlineGPClassifier

    return OnlineGPClassifier(**options)


def _laplacian(likelihood: str | None = None, **options: Any) -> Any:
    from mercer import likelihoods
    from mercer.estimators import LaplacianProcessRegressor

    name = "".join(part.title() for part in (likelihood or "gaussian").split("_"))
    return LaplacianProcessRegressor(likelihood=getattr(likelihoods, name)(), **options)


def _laplacian_classes(**options: Any) -> Any:
    from mercer.estimators import LaplacianProcessClassifier

    return LaplacianProcessClassifier(**options)


def _relevance(kernel: Any = None, **options: Any) -> Any:
    from mercer.estimators import RelevanceVectorRegressor

    return RelevanceVectorRegressor(_terms(kernel), **options)


def _relevance_classes(kernel: Any = None, **options: Any) -> Any:
    from mercer.estimators import RelevanceVectorClassifier

    return RelevanceVectorClassifier(_terms(kernel), **options)


def _terms(kernel: Any) -> Any:
    """Return the terms of a sum one by one, as relevance vectors take several kernels.

    A section of the sum is a single function, in which the linear term of columns that are far
    from 0, such as dates, is all but constant and outweighs the rest.
    """
    from mercer.kernels import Sum

    return list(kernel.kernels) if isinstance(kernel, Sum) else kernel


_OWN = ("max_basis", "forget")
_EXPANSION = ("prior", "prior_scale", "likelihood")
_NOISES = ("gaussian", "laplace", "huber", "epsilon_insensitive")
_LOSSES = ("logistic", "soft_margin", "quadratic_soft_margin")

METHODS = {
    "gp": Method("exact Gaussian process regression, up to some ten thousand rows", _gp),
    "sparse": Method("sparse Gaussian process regression, from some thousands of rows on", _sparse),
    "greedy": Method("as few basis functions as a certified tolerance needs", _greedy),
    "online": Method("one row after another, in bounded memory, for streams", _online, own=_OWN),
    "online-classes": Method(
        "labels one row after another, in bounded memory, for streams",
        _online_classes,
        of_classes=True,
        own=_OWN,
    ),
    "laplacian": Method(
        "a kernel expansion, sparse unless the prior is weight_decay",
        _laplacian,
        own=_EXPANSION,
        likelihoods=_NOISES,
    ),
    "laplacian-classes": Method(
        "labels by kernel expansions, sparse unless the prior is weight_decay",
        _laplacian_classes,
        of_classes=True,
        own=_EXPANSION,
        likelihoods=_LOSSES,
    ),
    "relevance": Method(
        "as few kernels as the evidence asks for, with error bars", _relevance, own=("robust",)
    ),
    "relevance-classes": Method(
        "labels by as few kernels as the evidence asks for, each class against the rest",
        _relevance_classes,
        of_classes=True,
    ),
}
