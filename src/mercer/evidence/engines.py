"""Which engine takes which likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods import (
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Likelihood,
    Logistic,
    Softmax,
)

__all__ = [
    "ENGINES",
    "arrays_of",
    "best_engine",
    "engine_for",
    "engines_that_take",
    "require_pair",
    "state_of",
]

Floats = NDArray[np.float64]

#: The engines for one latent function, by the names that estimators give them: modules of
#: `mercer.inference`, imported when they are first asked for.
ENGINES = {
    "laplace": "laplace",
    "ep": "ep",
    "vi": "variational",
    "bounds": "bounds",
    "map": "map",
}

# What they start from, where that is more than one array.
_STATES = {"ep": "SiteState", "vi": "State", "bounds": "State"}

# Those that may be taken by themselves, in the order in which they are tried.
_CHOSEN = ("laplace", "ep", "vi")

_METHODS = {
    "laplace": "Laplace's method",
    "ep": "expectation propagation",
    "vi": "variational inference",
    "bounds": "inference by the bounds on the logistic function",
    "map": "the search for the mode",
}


_SEVERAL_PEAKS = "its density may have several peaks in f, of which a Gaussian finds only one"


def engine_for(likelihood: Any, inference: str) -> Any:
    """Return the module with `solve`, `evidence` and `posterior`; see `require_pair`."""
    require_pair(likelihood, inference)
    if isinstance(likelihood, Softmax):
        return _engine("softmax")
    return _engine(ENGINES[inference])


def _engine(name: str) -> Any:
    return import_module(f"mercer.inference.{name}")


def engines_that_take(likelihood: Any) -> list[str]:
    """Return the names of the engines that take a likelihood.

    Examples
    --------
    >>> from mercer.evidence import engines_that_take
    >>> from mercer.likelihoods import Laplace, Poisson
    >>> engines_that_take(Poisson())
    ['laplace', 'ep', 'vi', 'map']
    >>> engines_that_take(Laplace(1.0))
    ['ep', 'vi', 'map']
    """
    return [name for name in ENGINES if _reason(likelihood, name) is None]


def best_engine(likelihood: Any) -> str:
    """Return the engine to be taken where none is named.

    Its evidence is also what chooses the hyperparameters of inference="map", of a `GPRegressor` and
    of a `GPClassifier`, since that has none of its own.

    That is the likelihood's `preferred_inference`, or the first other one that takes it. The
    likelihoods of Mercer prefer the most accurate that is not many times slower than the fastest.
    On 60 rows, of noise with a fifth of outliers, held against long runs of a sampler:

    - `Poisson`: "vi" has a closed form, twice the time of "laplace", and its means are 0.03
      deviations off, those of "laplace" 0.16.
    - `Huber`: "ep" has a closed form; its deviations are 2% too small, those of "laplace" 11%.
    - `StudentT`: "laplace", 4 to 7% too small; "ep" and "vi" are within 2%, but take quadrature,
      25 times as long at 600 rows, and may not settle.
    - without curvature, or with several peaks: "ep", with deviations 2% too small.

    Examples
    --------
    >>> from mercer.evidence.engines import best_engine
    >>> from mercer.likelihoods import Laplace, StudentT
    >>> best_engine(StudentT()), best_engine(Laplace())
    ('laplace', 'ep')
    """
    preferred = likelihood.preferred_inference
    if preferred not in _CHOSEN:
        raise ValueError(
            f"preferred_inference of {type(likelihood).__name__} must be one of "
            f"{', '.join(map(repr, _CHOSEN))}, got {preferred!r}"
        )
    takes = engines_that_take(likelihood)
    found = [name for name in (preferred, *_CHOSEN) if name in takes]
    if not found:
        require_pair(likelihood, "ep")  # which says why
    return found[0]


def require_pair(likelihood: Any, inference: str) -> None:
    """Raise ValueError, with the reason and what would do, for a pair that does not go together."""
    if inference not in ENGINES:
        names = ", ".join(map(repr, ENGINES))
        raise ValueError(f"inference must be one of {names}, got {inference!r}")
    if not isinstance(likelihood, Likelihood | Softmax):
        raise ValueError(f"likelihood must be one of mercer.likelihoods, got {likelihood!r}")
    reason = _reason(likelihood, inference)
    if reason is None:
        return
    others = " or ".join(f"inference={name!r}" for name in engines_that_take(likelihood))
    if isinstance(likelihood, Gaussian):
        others = "inference='exact'" + (f" or {others}" if others else "")
    raise ValueError(
        f"{_METHODS[inference]} (inference={inference!r}) does not take "
        f"{type(likelihood).__name__}: {reason}" + (f"; use {others}" if others else "")
    )


def _reason(likelihood: Any, inference: str) -> str | None:
    """Return why an engine does not take a likelihood, None if it does."""
    if isinstance(likelihood, Softmax):
        if inference in ("laplace", "map"):  # the mode of Laplace's method
            return None
        return (
            "it couples the latent functions of the classes, for which there is Laplace's method "
            "alone; this one takes a function at a time, each class against the rest"
        )
    if isinstance(likelihood, Gaussian) and likelihood.covariance is not None:
        return "its noise is correlated between the rows, which only exact inference can hold"
    return {
        "laplace": _no_laplace,
        "ep": _no_ep,
        "vi": _no_vi,
        "bounds": _no_bounds,
        "map": _no_map,
    }[inference](likelihood)


def _lacks(likelihood: Likelihood, *methods: str) -> str | None:
    missing = likelihood.missing(*methods)
    return f"it has no {' and no '.join(missing)}" if missing else None


def _no_laplace(likelihood: Likelihood) -> str | None:
    if not likelihood.is_positive:
        return "its density is 0 for some latent values, so that it has no curvature there"
    if not likelihood.is_unimodal:
        return _SEVERAL_PEAKS
    if not likelihood.has_curvature:
        return (
            "the second derivative of its log density is 0 almost everywhere, and this method goes "
            "by that"
        )
    return _lacks(likelihood, "log_density", "derivatives")


def _no_ep(likelihood: Likelihood) -> str | None:
    return _lacks(likelihood, "log_density") if likelihood.missing("smoothed") else None


def _no_vi(likelihood: Likelihood) -> str | None:
    if not likelihood.is_positive:
        return (
            "its density is 0 for some latent values, so that the expectation of its logarithm is "
            "minus infinity"
        )
    if not likelihood.is_unimodal:
        return _SEVERAL_PEAKS
    return _lacks(likelihood, "log_density") if likelihood.missing("expected") else None


def _no_bounds(likelihood: Likelihood) -> str | None:
    return None if isinstance(likelihood, Logistic) else "it is not Logistic()"


def _no_map(likelihood: Likelihood) -> str | None:
    # noise without curvature that makes the search a quadratic programme
    programmes = isinstance(likelihood, Laplace | EpsilonInsensitive | Huber)
    return None if programmes else _no_laplace(likelihood)


def arrays_of(state: Any) -> list[Floats]:
    """Return the arrays that the state of a solution is made of."""
    if state is None:
        return []
    return [np.asarray(part) for part in (state if isinstance(state, tuple) else (state,))]


def state_of(inference: str, arrays: Sequence[ArrayLike]) -> Any:
    """Return the state of which `arrays_of` has made these."""
    parts = [np.asarray(part, dtype=float) for part in arrays]
    if not parts:
        return None
    if inference not in _STATES:
        return parts[0]
    return getattr(_engine(ENGINES[inference]), _STATES[inference])(*parts)
