"""What may be asked of on-line estimators, and which models they take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import means
from mercer.estimators.class_options import binary_likelihood, class_kernel
from mercer.estimators.options import (
    check_search_options,
    require_choice,
    require_count,
    require_number,
)
from mercer.estimators.resolve import as_kernel, as_likelihood, require_mercer
from mercer.estimators.rows import is_precomputed
from mercer.inference._online_takeover import joined
from mercer.inference.online import CRITERIA, NOVELTIES
from mercer.kernels import Flipped, Kernel
from mercer.likelihoods import Custom, Gaussian, Likelihood
from mercer.likelihoods.labels import Binary
from mercer.means import Mean
from mercer.posterior import Posterior

__all__ = [
    "Asked",
    "check_online_options",
    "engine_options",
    "is_complete",
    "online_class_model",
    "regression_model",
    "require_counts",
    "require_moments",
    "require_one_noise",
    "require_posterior",
    "together",
]


class Asked:
    """An on-line estimator as a search asks it, with what there is no choice of here."""

    warm_start, inference, objective = False, "auto", "evidence"

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_estimator":  # of a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self._estimator, name)


#: What `n_sweeps` does with rows that were learned.
_RECYCLE = ("sites", "heuristic")


def check_online_options(estimator: Any) -> None:
    """Raise ValueError for an option of an on-line estimator that is none of its choices."""
    for name in ("max_basis", "n_init", "n_sweeps"):
        require_count(name, getattr(estimator, name), 1)
    _require_between("tol", estimator.tol)
    _require_between("forget", estimator.forget)
    require_choice("novelty", estimator.novelty, NOVELTIES)
    require_choice("criterion", estimator.criterion, CRITERIA)
    require_choice("recycle", estimator.recycle, _RECYCLE)
    check_search_options(Asked(estimator))
    if is_precomputed(estimator):
        whole = type(estimator).__name__.removeprefix("Online")
        raise ValueError(
            f"{type(estimator).__name__} takes inputs, not kernel matrices: the kernel between "
            f"rows that are yet to come is in no matrix; use {whole} for kernel='precomputed'"
        )
    if estimator.forget > 0 and estimator.n_sweeps > 1 and estimator.recycle == "sites":
        raise ValueError(
            "n_sweeps > 1 finds the sites of all rows again, as parts of one posterior, and with "
            f"forget={estimator.forget!r} there is none: what the first rows said is partly lost. "
            "Give forget=0.0, n_sweeps=1, or recycle='heuristic'"
        )


def _require_between(name: str, value: Any) -> None:
    require_number(name, value)
    if not 0.0 <= value < 1.0:
        raise ValueError(f"{name} must be a number from 0 to less than 1, got {value!r}")


def engine_options(estimator: Any) -> dict[str, Any]:
    """Return what the engine is to be told of basis vectors."""
    names = ("max_basis", "tol", "novelty", "criterion", "forget")
    return {name: getattr(estimator, name) for name in names}


def regression_model(estimator: Any, X: Any) -> tuple[Kernel | None, Likelihood | None, Mean]:
    """Return kernel and likelihood, None where they are to be chosen from the data, and mean."""
    kernel, noise = as_kernel(estimator.kernel, X)
    likelihood = as_likelihood(estimator.likelihood, noise, "OnlineGPClassifier")
    if kernel is not None:
        require_mercer(kernel)
    require_one_noise(likelihood)
    if likelihood is not None and likelihood.missing("smoothed", "log_density") == [
        "smoothed",
        "log_density",
    ]:
        raise ValueError(f"on-line learning needs a density, which {likelihood!r} does not have")
    mean = means.from_spec(estimator.mean)
    _require_online_mean(mean)
    return kernel, likelihood, mean


def require_one_noise(likelihood: Any) -> None:
    """Raise ValueError for noise that is given for each of some rows."""
    if isinstance(likelihood, Gaussian) and not likelihood.parameters:
        raise ValueError(
            "variances of known rows cannot be given for rows that are yet to come. Give "
            "Gaussian(Parameter(1.0, fixed=True)) with sample_weight=1/variance, by which a row "
            "has its own variance. Predictions are of rows of variance 1 then: ask for "
            "latent=True, and add the variance that a new row has"
        )


def require_counts(likelihood: Any, Y: NDArray[np.float64]) -> None:
    """Raise ValueError for targets of which a likelihood of counts says that they are none.

    Compiled loops do not look at that.
    """
    if getattr(likelihood, "counts_events", False):
        likelihood.log_density(Y, np.zeros(Y.shape))


def require_moments(likelihood: Any) -> None:
    """Raise ValueError for noise that does not tell mean and variance of an observation."""
    if not isinstance(likelihood, Custom):
        return
    wanted = likelihood.missing("conditional_mean", "conditional_var")
    if wanted:
        raise ValueError(
            "learn returns mean and standard deviation of the observations that were predicted, "
            f"and {likelihood!r} has no {' and no '.join(wanted)}: give it what is missing, or "
            "learn by partial_fit and predict with latent=True"
        )


def online_class_model(estimator: Any, X: Any) -> tuple[Kernel | None, Binary, Mean]:
    """Return likewise those of a classifier."""
    kernel = class_kernel(estimator.kernel, X)
    if kernel is not None:
        require_mercer(kernel)
    mean = means.from_spec(estimator.mean)
    _require_online_mean(mean)
    return kernel, binary_likelihood(estimator.likelihood), mean


def _require_online_mean(mean: Mean) -> None:
    """Raise ValueError for a mean that is integrated out, which has no proper prior to begin at."""
    if mean.estimate == "integrate":
        raise ValueError(
            "coefficients of the mean with a flat prior cannot be learned from the first row on; "
            "use estimate='ml', or fit GPRegressor to some rows first and go on with "
            "from_posterior(model.posterior_, model.likelihood_), which updates them"
        )


# Two targets whose spread is 1.
_TARGETS = np.array([-1.0, 1.0])


def is_complete(kernel: Kernel | None, likelihood: Likelihood | None) -> bool:
    """Whether nothing of a model is left to be chosen from the data."""
    if kernel is None or likelihood is None or _wants_anchors(kernel):
        return False
    return set(likelihood.begun(_TARGETS).parameters) == set(likelihood.parameters)


def _wants_anchors(kernel: Kernel) -> bool:
    own = isinstance(kernel, Flipped) and kernel.anchors is None
    return own or any(_wants_anchors(child) for child in kernel._children)


def require_posterior(posterior: Any) -> None:
    """Raise ValueError for what predicts but is no posterior over a basis."""
    if isinstance(posterior, Posterior):
        return
    raise ValueError(
        f"on-line learning goes on from a Posterior, got {type(posterior).__name__}. Committees, "
        "PIC and augmented models have none: they need their rows to predict; of classes that were "
        "fitted one against the rest give the list posteriors_, and of several targets go on with "
        "one model for each"
    )


def together(posteriors: Any, likelihood: Likelihood) -> Posterior:
    """Return one posterior of functions that have one each; raises ValueError where none can be."""
    given = list(posteriors) if isinstance(posteriors, list | tuple) else [posteriors]
    for each in given or [None]:
        require_posterior(each)
    first = given[0]
    for each in given:
        own, other = _common(first), _common(each)
        for name, mine, theirs in zip(("kernel", "mean", "weight"), own, other, strict=True):
            if mine != theirs:
                raise ValueError(
                    f"these posteriors cannot go on together: one has the {name} {mine!r}, another "
                    f"{theirs!r}, and all functions of an on-line model share kernel, mean and "
                    "basis. Fit with optimizer=None and one kernel, or begin with "
                    "OnlineGPClassifier, which searches one kernel for all classes"
                )
        same = np.array_equal(np.asarray(each.basis.points), np.asarray(first.basis.points))
        if each.n_outputs != 1 or each.n_features or not same:
            raise ValueError(
                "these posteriors cannot go on together: each must be of one function, over the "
                "same basis points and without further basis functions"
            )
    return joined(given, likelihood)


def _common(posterior: Posterior) -> tuple[Kernel, Mean, int]:
    return posterior.kernel, posterior.mean_function, posterior.weight
