"""What the fronts of the relevance engines share: limits, memory, and the run itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, NotPositiveDefiniteError, TooLargeError, warn
from mercer.inference._columns import Columns

__all__ = ["Limited", "checked_limit", "firmer", "require_memory", "run", "warn_of_stop"]

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


class Limited:
    """An algorithm whose steps are counted, and may be only so many.

    It has stopped if a step was wanted when none was left: one that takes its last step and wants
    no other has converged.
    """

    def __init__(self) -> None:
        self.n_steps, self._limit, self._is_cut = 0, 0, False

    def limit_to(self, max_iter: int) -> None:
        """Set how many steps there may be."""
        self._limit, self._is_cut = max_iter, False

    @property
    def left(self) -> int:
        """How many steps there may still be; one that is tried and undone is a step too."""
        return max(self._limit - self.n_steps, 0)

    def may_step(self) -> bool:
        """Whether a step that is wanted may be taken; the algorithm has stopped if not."""
        self._is_cut = self._is_cut or not self.left
        return not self._is_cut

    @property
    def status(self) -> str:
        """The status, "converged" or "stopped"."""
        return "stopped" if self._is_cut else "converged"


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
