"""Checks of the options that are given to estimators, each in words that name the option."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "as_generator",
    "check_run_options",
    "check_search_options",
    "is_flag",
    "is_whole",
    "require_choice",
    "require_count",
    "require_flag",
    "require_instance",
    "require_number",
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


def require_number(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a number; a flag is none."""
    if not isinstance(value, (int, float, np.number)) or is_flag(value):
        raise ValueError(f"{name} must be a number, got {value!r}")


def require_instance(name: str, spec: Any) -> None:
    """Raise ValueError for a class where an object of it is wanted."""
    if isinstance(spec, type):
        raise ValueError(
            f"{name} is the class {spec.__name__} itself, did you forget the brackets: "
            f"{spec.__name__}()"
        )


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a NumPy generator for any `random_state` that scikit-learn takes."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be a whole number, a generator or None, got {random_state!r}"
        ) from None


def check_search_options(estimator: Any) -> None:
    """Raise ValueError for an option of the search for hyperparameters that is none of its choices.

    These are what every estimator that maximises an evidence has: `hyperprior`, `optimizer`,
    `n_restarts`, `max_iter`, `warm_start`, `n_jobs`, `random_state` and `verbose`.
    """
    require_choice("hyperprior", estimator.hyperprior, ("default", None))
    if not callable(estimator.optimizer):
        require_choice("optimizer", estimator.optimizer, ("lbfgs", None))
    check_run_options(estimator)
    require_flag("warm_start", estimator.warm_start)
    n_jobs = estimator.n_jobs
    if n_jobs is not None and not (is_whole(n_jobs) and n_jobs != 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}")


def check_run_options(estimator: Any) -> None:
    """Raise ValueError for a length, a seed or a report of any search that is none.

    These are `n_restarts`, `max_iter`, `random_state` and `verbose`.
    """
    require_count("n_restarts", estimator.n_restarts, 0)
    require_count("max_iter", estimator.max_iter, 1)
    if not (is_flag(estimator.verbose) or callable(estimator.verbose)):
        require_count("verbose", estimator.verbose, 0)
    # A RandomState is not asked for a generator, since that would draw from it.
    if not isinstance(estimator.random_state, np.random.RandomState):
        as_generator(estimator.random_state)
