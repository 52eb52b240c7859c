"""Exceptions and warnings.

Every text says what was expected, what came, and what to try.
"""

from __future__ import annotations


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
