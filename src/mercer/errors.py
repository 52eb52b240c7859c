"""Exceptions and warnings.

Every text says what was expected, what came, and what to try.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


class MercerError(Exception):
    """Base of the exceptions that Mercer raises on its own account."""


class NotPositiveDefiniteError(MercerError, ValueError):
    """A covariance matrix could not be factorised, even with the largest permitted jitter."""


class StorageError(MercerError, ValueError):
    """A file is not a Mercer file, is damaged, or needs a function that was not given."""


class TooLargeError(MercerError, ValueError):
    """The work asked for would not fit into this machine's memory."""


class MercerWarning(UserWarning):
    """Base of the warnings that Mercer issues."""


class JitterWarning(MercerWarning):
    """A small multiple of the identity had to be added to a covariance matrix."""


class ConvergenceWarning(MercerWarning):
    """An optimisation stopped before it converged."""


class BoundWarning(MercerWarning):
    """A fitted parameter stands at the edge of the interval it may move in."""


class FallbackWarning(MercerWarning):
    """A slower implementation runs because an optional part is missing."""


class UndeterminedWarning(MercerWarning):
    """The data say nothing about a part of the model, which was kept as it began."""


class CalibrationWarning(MercerWarning):
    """The error bars of some outputs are too narrow or too wide."""


# Packages whose frames lie between a user's line and the place that warns.
_INSIDE = ("mercer", "sklearn", "joblib")
# What calls the work of a thread or a process: no line of the user's stands above it.
_WORKERS = ("concurrent", "multiprocessing", "threading")


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line: the nearest outside Mercer, and what may have called it for them."""
    level, frame = 2, sys._getframe(1)
    while _package(frame) in _INSIDE:
        if frame.f_back is None or _package(frame.f_back) in _WORKERS:
            level = 2
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
