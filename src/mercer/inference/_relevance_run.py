"""What the fronts of the relevance engines share: limits, memory, and the run itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, NotPositiveDefiniteError, TooLargeError, warn
from mercer.inference._columns import Columns

__all__ = ["checked_limit", "firmer", "require_memory", "run", "warn_of_stop"]

Floats = NDArray[np.float64]

# Bytes that the algorithms that keep a Gram matrix of all functions may take.
_MOST = 2**33


def checked_limit(tol: float, max_iter: int | None) -> int:
    """Return how many steps there may be; ValueError if that, or tol, is not to be had."""
    if not (np.isfinite(tol) and tol > 0):
        raise ValueError(f"tol must be a positive number of nats, got {tol!r}")
    if max_iter is None:
        return 1_000_000
    if max_iter < 1 or max_iter != int(max_iter):
        raise ValueError(f"max_iter must be a whole number from 1 on, got {max_iter!r}")
    return int(max_iter)


def require_memory(columns: Columns, algorithm: str) -> None:
    """Raise TooLargeError where a Gram matrix of all functions does not fit."""
    n, M = columns.n, columns.size
    needed = 8 * (2 * n * M + 4 * M * M)
    if needed > _MOST:
        raise TooLargeError(
            f'"{algorithm}" keeps all {M} functions at {n} rows and their Gram matrix: '
            f'{needed / 2**30:.1f} GiB. "fast" computes columns as it wants them'
        )


def firmer(s: Floats, least: Floats, most: Floats | float = np.inf) -> Floats:
    """Return greater precisions than s, at which functions that are too alike may have a factor.

    Those above `most` are none; NotPositiveDefiniteError if all of s are.
    """
    if not np.any(s < most):
        raise NotPositiveDefiniteError(
            "the evidence is no number, whatever the precisions of the functions: targets, "
            "functions or weights are beyond what doubles can hold; give them in other units"
        )
    return np.asarray(8.0 * np.maximum(s, least))


def run(work: Any, start: Any, limit: int) -> str:
    """Let an algorithm begin and grow; return the status."""
    work.begin(start)
    try:
        return str(work.grow(limit))
    except KeyboardInterrupt:
        return "interrupted"


def warn_of_stop(status: str, n_steps: int) -> None:
    """Warn of a run that its limit has ended."""
    if status == "stopped":
        warn(
            f"the evidence was still increasing after {n_steps} steps; raise their limit, "
            "`max_steps` of an estimator",
            ConvergenceWarning,
        )
