"""A likelihood with the observations it is tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods import Likelihood
from mercer.testing.integrals import gaussian_nodes, interval_nodes
from mercer.testing.parametrised import functions_of

__all__ = ["LikelihoodCase", "gives", "likelihood_case"]

Floats = NDArray[np.float64]

_VARIANCES = np.array([0.01, 0.5, 4.0])


@dataclass(frozen=True)
class LikelihoodCase:
    """A likelihood with latent values f (k,), and where its observations lie.

    interval : the observations of a continuous one
    outcomes : the observations of a discrete one, sorted, or None
    """

    subject: Likelihood
    f: Floats
    interval: tuple[float, float]
    outcomes: Floats | None
    objects: dict[str, Callable[..., Any]]

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood."""
        return self.subject

    @cached_property
    def y(self) -> Floats:
        """One observation for each f, (k,)."""
        if not self.likelihood.missing("sample"):
            return np.asarray(self.likelihood.sample(self.f, np.random.default_rng(0)), dtype=float)
        if self.outcomes is not None:
            return self.outcomes[np.arange(self.f.size) % self.outcomes.size]
        low, high = self.interval
        inside = self.f + 0.7 * np.cos(np.arange(self.f.size))
        if np.isfinite(low) and np.isfinite(high):
            return np.asarray(low + (high - low) / (1.0 + np.exp(-inside)))
        if np.isfinite(low):
            return np.asarray(low + np.exp(inside))
        return np.asarray(high - np.exp(inside)) if np.isfinite(high) else inside

    @cached_property
    def gaussians(self) -> tuple[Floats, Floats, Floats]:
        """y, means and variances (3k,): every f with narrow and wide Gaussians around it."""
        y, mean, var = np.broadcast_arrays(
            self.y[:, None], self.f[:, None], np.broadcast_to(_VARIANCES, (self.f.size, 3))
        )
        return y.ravel().copy(), mean.ravel().copy(), var.ravel().copy()

    def values(self, subject: Any) -> Floats:
        """Return log p(y | f)."""
        return np.array(subject.log_density(self.y, self.f))

    def over_y(self, f: float) -> tuple[Floats, Floats]:
        """Return observations and weights that integrate, or sum, over y given f."""
        if self.outcomes is not None:
            return self.outcomes, np.ones(self.outcomes.size)
        mean = var = np.nan
        if not self.likelihood.missing("conditional_mean", "conditional_var"):
            mean = float(self.likelihood.conditional_mean(np.array(f)))
            var = float(self.likelihood.conditional_var(np.array(f)))
        centre = mean if np.isfinite(mean) else f
        width = np.sqrt(var) if np.isfinite(var) and var > 0 else 1.0
        return interval_nodes(self.interval, centre, width)

    def expectation_over_y(self, f: float, function: Callable[[Floats], Floats]) -> float:
        """Return E[function(y) | f] by brute force."""
        y, w = self.over_y(f)
        p = np.exp(self.likelihood.log_density(y, np.full(y.size, f)))
        return float(np.sum(np.where(p > 0, w * p * function(y), 0.0)))

    @cached_property
    def over_f(self) -> list[tuple[Floats, Floats, Floats]]:
        """z, f = mean + sd z and weights that integrate over each of the `gaussians`."""
        y, mean, var = self.gaussians
        knots = self.likelihood.knots(y)
        out = []
        for i, (m, sd) in enumerate(zip(mean, np.sqrt(var), strict=True)):
            z, w = gaussian_nodes(() if knots is None else (knots[i] - m) / sd)
            out.append((z, m + sd * z, w))
        return out

    def expectation_over_f(self, function: Callable[[Floats, float], Any]) -> Floats:
        """Return E[function(f, y)] for each of the `gaussians`, by brute force."""
        y = self.gaussians[0]
        parts = zip(self.over_f, y, strict=True)
        return np.array([np.sum(w * function(f, value)) for (_, f, w), value in parts])


def gives(*methods: str) -> Callable[[LikelihoodCase], str]:
    """Say which of these methods a likelihood does not give, where it matters to a rule."""

    def lacking(case: LikelihoodCase) -> str:
        missing = case.likelihood.missing(*methods)
        return f"it does not give {', '.join(missing)}" if missing else ""

    return lacking


def likelihood_case(
    likelihood: Any,
    f: ArrayLike | None,
    interval: tuple[float, float],
    outcomes: ArrayLike | None,
    objects: dict[str, Callable[..., Any]] | None,
) -> LikelihoodCase:
    """Return the case of a likelihood."""
    if not isinstance(likelihood, Likelihood):
        brackets = "; did you forget the brackets?" if isinstance(likelihood, type) else ""
        raise ValueError(f"a mercer.likelihoods.Likelihood is wanted, got {likelihood!r}{brackets}")
    return LikelihoodCase(
        subject=likelihood,
        f=np.array([-1.3, -0.2, 0.4, 2.1] if f is None else f, dtype=float).ravel(),
        interval=(float(interval[0]), float(interval[1])),
        outcomes=None if outcomes is None else np.sort(np.array(outcomes, dtype=float).ravel()),
        objects=functions_of(likelihood) if objects is None else objects,
    )
