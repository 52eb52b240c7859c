"""The likelihoods whose Gaussian averages are compiled, one observation at a time."""

from __future__ import annotations

__all__ = ["SITES"]

#: The kinds of observation that are compiled, in the order by which `_smoothing.smoothed` knows
#: them. What each takes for its parameters is said there.
SITES = ("gaussian", "probit", "logistic", "mixture", "insensitive", "huber", "student", "poisson")
