"""From the options of a classifier to the likelihood of its labels."""

from __future__ import annotations

from typing import Any, NamedTuple

from mercer.estimators.options import (
    check_search_options,
    is_flag,
    require_choice,
    require_instance,
)
from mercer.estimators.resolve import as_kernel
from mercer.evidence import require_pair
from mercer.kernels import Kernel
from mercer.likelihoods import Likelihood, Logistic, Probit, SoftLabels, Softmax
from mercer.likelihoods.labels import Binary

__all__ = [
    "ClassModel",
    "binary_likelihood",
    "check_class_options",
    "class_kernel",
    "class_model",
    "soft_kind",
]

_INFERENCE = ("laplace", "ep", "vi", "bounds", "map")
_MULTI_CLASS = ("auto", "softmax", "one_vs_rest")
_NAMED = {"logistic": Logistic, "probit": Probit}


class ClassModel(NamedTuple):
    """How labels come from latent functions.

    kind : "binary", one function for two classes; "softmax", one a class, coupled; "one_vs_rest",
        one a class, each fitted by itself
    likelihood : that of all labels, or of one class against the rest
    """

    kind: str
    likelihood: Likelihood | Softmax


def check_class_options(estimator: Any) -> None:
    """Raise ValueError for an option of a classifier that is none of its choices."""
    require_choice("inference", estimator.inference, _INFERENCE)
    require_choice("multi_class", estimator.multi_class, _MULTI_CLASS)
    soft = soft_kind(estimator.soft_labels)
    if estimator.classes is not None and soft is None:
        raise ValueError(
            "classes names the columns of y where these are probabilities (soft_labels=True); "
            "labels name their classes themselves: leave it out"
        )
    check_search_options(estimator)


def class_kernel(spec: Any, X: Any) -> Kernel | None:
    """Return the kernel of a classifier, None if it is to be chosen, or say why it cannot be."""
    kernel, noise = as_kernel(spec, X)
    if noise is not None:
        raise ValueError(
            "the kernel has a WhiteKernel, the noise of a regression; labels have none but what "
            "their likelihood gives them: leave it out"
        )
    return kernel


def soft_kind(given: Any) -> str | None:
    """Return how soft labels are read, "cross_entropy" or "mixture"; None if labels are hard."""
    if is_flag(given):
        return "cross_entropy" if given else None
    if not isinstance(given, str) or given not in ("cross_entropy", "mixture"):
        raise ValueError(
            f"soft_labels must be False, True, 'cross_entropy' or 'mixture', got {given!r}"
        )
    return given


def class_model(estimator: Any, n_classes: int, sparse: bool = False) -> ClassModel:
    """Return the model of the labels, if its engine takes it; see `GPClassifier` for the rules.

    If `sparse`, it has to take it with inducing inputs.
    """
    spec, soft = estimator.likelihood, soft_kind(estimator.soft_labels)
    likelihood: Likelihood | Softmax
    kind = _kind(estimator, spec, n_classes, soft)
    if kind == "softmax":
        likelihood = spec if isinstance(spec, Softmax) else Softmax(n_classes)
        if likelihood.n_classes != n_classes:
            raise ValueError(f"likelihood is {spec!r}, and y has {n_classes} classes")
        if soft == "mixture":
            raise ValueError(
                "soft_labels='mixture' is no log-concave likelihood of a softmax, for whose "
                "coupled functions there is Laplace's method alone; use multi_class='one_vs_rest', "
                "or soft_labels='cross_entropy'"
            )
    else:
        base = _of_two(spec)
        likelihood = base if soft is None else SoftLabels(base, soft)
    require_pair(likelihood, estimator.inference, sparse)
    return ClassModel(kind, likelihood)


def _kind(estimator: Any, spec: Any, n_classes: int, soft: str | None) -> str:
    multi_class = estimator.multi_class
    if isinstance(spec, Softmax) or (isinstance(spec, str) and spec == "softmax"):
        if multi_class == "one_vs_rest":
            raise ValueError(
                "likelihood='softmax' is of all classes at once, so multi_class cannot be "
                "'one_vs_rest'; for that give likelihood='logistic' or 'probit'"
            )
        return "softmax"
    is_logistic = isinstance(_of_two(spec), Logistic)
    if multi_class == "softmax":
        if not is_logistic:
            raise ValueError(
                "multi_class='softmax' is the logistic likelihood of several classes; with "
                f"likelihood={spec!r} there is 'one_vs_rest'"
            )
        return "softmax"
    if n_classes == 2:
        return "binary"
    coupled = is_logistic and estimator.inference in ("laplace", "map") and soft != "mixture"
    return "softmax" if multi_class == "auto" and coupled else "one_vs_rest"


def binary_likelihood(spec: Any) -> Binary:
    """Return the likelihood of labels -1 and 1 that was asked for, by name or as it is."""
    return _of_two(spec, "'logistic', 'probit'", "Logistic() or Probit(...)")


def _of_two(
    spec: Any,
    names: str = "'logistic', 'probit', 'softmax'",
    objects: str = "Logistic(), Probit(...) or Softmax(n)",
) -> Binary:
    """Return the likelihood of labels -1 and 1; `names` and `objects` say what there is."""
    if isinstance(spec, str) and spec in _NAMED:
        spec = _NAMED[spec]()
    if isinstance(spec, Binary):
        return spec
    require_instance("likelihood", spec)
    text = (
        f"likelihood must be {names}, or an object of mercer.likelihoods: {objects}, got {spec!r}"
    )
    if isinstance(spec, SoftLabels):
        text += "; for soft labels give the likelihood inside it, and soft_labels=" + repr(
            spec.kind
        )
    raise ValueError(text)
