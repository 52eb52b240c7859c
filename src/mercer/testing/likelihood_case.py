"""A likelihood with the observations it is tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods import Likelihood
from mercer.testing.integrals import edges_around, integrate, peak
from mercer.testing.parametrised import functions_of

__all__ = ["LikelihoodCase", "gives", "likelihood_case"]

Floats = NDArray[np.float64]

_VARIANCES = np.array([0.01, 0.5, 4.0])
_REACH = -30.0, 30.0  # of a standard normal variable


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

    @cached_property
    def steps(self) -> Floats:
        """How far each f must go for p(y | f) to change by a factor of about e, at most 1, (k,)."""
        sizes = 2.0 ** -np.arange(50.0)
        y, f = self.y[:, None], self.f[:, None]
        with np.errstate(all="ignore"):
            here = self.likelihood.log_density(y, f)
            up = np.abs(self.likelihood.log_density(y, f + sizes) - here)
            down = np.abs(self.likelihood.log_density(y, f - sizes) - here)
        small = (up <= 1.0) & (down <= 1.0)
        return np.asarray(sizes[np.where(small.any(axis=1), np.argmax(small, axis=1), -1)])

    # ------------------------------------------------------------------------ sums over y given f

    def density(self, f: float, y: Floats) -> Floats:
        """Return p(y | f)."""
        return np.asarray(np.exp(self.likelihood.log_density(y, np.full(y.size, f))))

    def edges(self, f: float) -> Floats:
        """Return the edges of panels over all y, dense where p(y | f) has its peak or kinks."""
        it, points = self.likelihood, [f]
        if not it.missing("conditional_mean"):
            points.append(float(it.conditional_mean(np.array(f))))
        knots = it.knots(self.y[:1])
        if knots is not None:  # of noise that is added to f: y - f is the same at all its kinks
            points += [float(f + self.y[0] - knot) for knot in np.ravel(knots)]
        grid = edges_around(points, *self.interval)
        points.append(peak(lambda y: it.log_density(y, np.full(y.size, f)), grid))
        return edges_around(points, *self.interval)

    def expectation_over_y(self, f: float, function: Callable[[Floats], Floats]) -> float:
        """Return E[function(y) | f] by brute force."""
        if self.outcomes is not None:
            values = self.density(f, self.outcomes) * function(self.outcomes)
            return float(np.sum(values, where=np.isfinite(values)))
        return float(integrate(lambda y: self.density(f, y) * function(y), self.edges(f)).total[0])

    def distribution(self, f: float) -> tuple[Floats, Floats]:
        """Return observations, sorted, and P(Y <= y | f) at each, from the density alone."""
        if self.outcomes is not None:
            return self.outcomes, np.cumsum(self.density(f, self.outcomes))
        panels = integrate(partial(self.density, f), self.edges(f))
        return panels.edges, panels.below

    # -------------------------------------------------------------------- sums over a Gaussian f

    @cached_property
    def latent_edges(self) -> list[Floats]:
        """Edges of panels over z = (f - mean)/sd for each of the `gaussians`."""
        y, mean, var = self.gaussians
        knots = self.likelihood.knots(y)
        out = []
        for i, (m, sd) in enumerate(zip(mean, np.sqrt(var), strict=True)):
            points = [0.0] if knots is None else [0.0, *((knots[i] - m) / sd)]
            grid = np.union1d(edges_around(points, *_REACH), np.linspace(-12.0, 12.0, 97))
            # a narrow likelihood is nearly all of the integrand, and could lie between the nodes
            points.append(peak(partial(self._log_integrand, i), grid))
            out.append(np.union1d(grid, edges_around(points[-1:], *_REACH)))
        return out

    def _log_p(self, i: int, z: Floats) -> Floats:
        y, mean, var = (a[i] for a in self.gaussians)
        return np.asarray(self.likelihood.log_density(np.full(z.size, y), mean + np.sqrt(var) * z))

    def _log_integrand(self, i: int, z: Floats) -> Floats:
        return self._log_p(i, z) - 0.5 * z**2

    def _over_z(self, i: int, function: Callable[[Floats], Floats]) -> Floats:
        """Return E[function(z)], (k,) for k functions, over a standard normal z."""

        def weighted(z: Floats) -> Floats:
            return np.asarray(function(z) * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi))

        return integrate(weighted, self.latent_edges[i]).total

    def expectation_over_f(self, function: Callable[[Floats, float], Any]) -> Floats:
        """Return E[function(f, y)] for each of the `gaussians`, by brute force, (3k,)."""
        out = []
        for i, (y, m, v) in enumerate(zip(*self.gaussians, strict=True)):
            out.append(self._over_z(i, partial(_at, function, float(m), float(v), float(y)))[0])
        return np.array(out)

    def tilted(self) -> tuple[Floats, Floats, Floats]:
        """Return log Z = log E[p(y | f)], and E[z] and E[z^2] under p(y | f) N(f)/Z, (3k,) each."""
        out = []
        for i in range(self.gaussians[0].size):
            # the largest value, which tiny ones are kept relative to
            top = float(np.max(self._log_p(i, self.latent_edges[i])))

            def powers(z: Floats, i: int = i, top: float = top) -> Floats:
                return np.asarray(np.exp(self._log_p(i, z) - top) * np.stack([z**0, z, z**2]))

            Z, first, second = self._over_z(i, powers)
            out.append([top + np.log(Z), first / Z, second / Z])
        log_z, first, second = np.array(out).T
        return log_z, first, second

    def log_moments(self) -> tuple[Floats, Floats, Floats]:
        """Return E[log p(y | f)], E[z log p] and E[(z^2 - 1) log p] of the `gaussians`, (3k,)."""
        out = []
        for i in range(self.gaussians[0].size):
            # E[z] = E[z^2 - 1] = 0: the value at the mean is taken off, and its rounding
            at = float(self._log_p(i, np.zeros(1))[0])

            def powers(z: Floats, i: int = i, at: float = at) -> Floats:
                return np.asarray((self._log_p(i, z) - at) * np.stack([z**0, z, z**2 - 1.0]))

            out.append(self._over_z(i, powers) + np.array([at, 0.0, 0.0]))
        value, first, second = np.array(out).T
        return value, first, second


def _at(
    function: Callable[[Floats, float], Any], mean: float, var: float, y: float, z: Floats
) -> Floats:
    return np.asarray(function(mean + np.sqrt(var) * z, y))


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
