"""Noise from a mixture of Gaussians."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from mercer.likelihoods.additive import AdditiveNoise
from mercer.likelihoods.base import broadcast
from mercer.likelihoods.normal import log_normal
from mercer.likelihoods.pulls import Slopes
from mercer.likelihoods.spread import spread_of, started
from mercer.linalg.quadrature import expectation
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["MixtureNoise"]

Floats = NDArray[np.float64]


@storable
class MixtureNoise(AdditiveNoise):
    """y = f + e with e from one of several Gaussians: p(e) = sum_k w_k N(e; m_k, s_k^2).

    Use it where the noise is known to have kinds: good measurements and bad ones, with a small
    weight and a large scale for the bad; or an offset that some have. All integrals over a
    Gaussian f are closed. The log density is not concave: a posterior can have several modes, for
    which EP is the engine.

    Parameters
    ----------
    weights : array of shape (k,)
        The probabilities of the kinds, positive, divided by their sum; held.
    means : array of shape (k,) or Parameter
        Their means, learned unless fixed. A common shift of all is the mean function's business.
    scales : array of shape (k,) or Parameter
        Their standard deviations, positive.

    Examples
    --------
    >>> from mercer.likelihoods import MixtureNoise
    >>> noise = MixtureNoise([0.9, 0.1], [0.0, 0.0], [0.1, 2.0])
    >>> noise.predictive_var(0.0, 1.0).round(3)
    np.float64(1.409)
    """

    is_unimodal = False

    def __init__(
        self, weights: ArrayLike, means: ArrayLike | Parameter, scales: ArrayLike | Parameter
    ) -> None:
        self.weights = _probabilities(weights)
        given = {"means": means, "scales": scales}
        vectors = {
            name: v if isinstance(v, Parameter) else Parameter(np.atleast_1d(v))
            for name, v in given.items()
        }
        for name, vector in vectors.items():
            if not vector.is_vector or vector.size != self.weights.size:
                raise ValueError(
                    f"{name} must have one entry for each of the {self.weights.size} weights, got "
                    f"{given[name]!r}"
                )
        scale = positive("scales", vectors["scales"])
        self._set(means=vectors["means"].replace(transform="identity"), scales=scale)

    def _options(self) -> dict[str, Any]:
        return {"weights": self.weights}

    def _shares(self, t: Floats, var: float | Floats = 0.0) -> tuple[Floats, Floats, Floats]:
        """Return log p(t), and with a last axis for the kinds their shares of p and slopes.

        The noise has `var` added to each variance. The slopes are those of log N(t; m_k, .).
        """
        spread = np.asarray(var)[..., None] + self.scales**2
        away = t[..., None] - self.means
        logs = np.log(self.weights) + log_normal(away, spread)
        total = np.asarray(np.logaddexp.reduce(logs, axis=-1))
        some = np.isfinite(total)[..., None]
        # Where the logarithms themselves overflow, the widest kind is all there is.
        widest = self.scales == np.max(self.scales)
        shares = np.where(
            some, np.exp(logs - np.where(some, total[..., None], 0.0)), widest / np.sum(widest)
        )
        return total, shares, np.asarray(-away / spread)

    def _away(self, p: Floats, a: Floats) -> tuple[Floats, Floats]:
        """Return the mean slope, and how far from it the slopes are that have a share."""
        first = np.sum(p * a, axis=-1, keepdims=True)
        return first[..., 0], np.where(p > 0, a - first, 0.0)

    def _log_noise(self, t: Floats) -> Floats:
        return self._shares(t)[0]

    def _noise_slopes(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        _, p, a = self._shares(t)
        curvature = -1.0 / self.scales**2
        first, away = self._away(p, a)
        second = np.sum(p * (away**2 + curvature), axis=-1)
        third = np.sum(p * (away**3 + 3.0 * away * curvature), axis=-1)
        return np.asarray(first), np.asarray(second), np.asarray(third)

    def _noise_cdf(self, t: Floats) -> Floats:
        return np.asarray(ndtr((t[..., None] - self.means) / self.scales) @ self.weights)

    def _noise_moments(self) -> tuple[float, float]:
        mean = float(self.weights @ self.means)
        return mean, float(self.weights @ (self.scales**2 + (self.means - mean) ** 2))

    def _information(self) -> float:
        # No closed form: E[d1^2] under each kind by quadrature.
        each = expectation(
            lambda row, t: self._noise_slopes(t)[0] ** 2,
            np.array(self.means),
            np.array(self.scales) ** 2,
            np.tile(self.means, (self.weights.size, 1)),
        )
        return float(self.weights @ each)

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        kind = rng.choice(self.weights.size, size=shape, p=self.weights)
        return np.asarray(self.means[kind] + self.scales[kind] * rng.standard_normal(shape))

    def begun(self, y: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the likelihood with bounds on its scales, where they are free and have none."""
        scales = started(self.parameters["scales"], 1.0, spread_of(y, weights))
        return self.with_parameters(scales=scales)

    def knots(self, y: Floats) -> Floats:
        """Return y less the means of the kinds: their peaks."""
        return np.asarray(np.asarray(y, dtype=float)[:, None] - self.means)

    # --------------------------------------------------------------------------- closed integrals

    def smoothed(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return log Z and its two derivatives in the mean: var adds to each kind's variance."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        log_z, p, a = self._shares(y - mean, var)
        first, away = self._away(p, a)
        curvature = -1.0 / (var[..., None] + self.scales**2)
        second = np.sum(p * (away**2 + curvature), axis=-1)
        return log_z, np.asarray(-first), np.asarray(second)

    def compiled_site(self) -> tuple[str, Floats]:
        """Return the logarithms of the weights, the means and the variances of the kinds."""
        return "mixture", np.concatenate([np.log(self.weights), self.means, self.scales**2])

    def predictive_cdf(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the probability that a new observation is at most y."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        spread = np.sqrt(var[..., None] + self.scales**2)
        return np.asarray(ndtr(((y - mean)[..., None] - self.means) / spread) @ self.weights)

    def _slopes(self, y: Floats, f: Floats) -> Slopes:
        _, p, a = self._shares(y - f)
        s, b = self.scales, -1.0 / self.scales**2
        away = self._away(p, a)[1]
        second = np.sum(p * (away**2 + b), axis=-1)[..., None]
        # Of kind k's slope a and curvature b in the residual, by its mean and by its scale; and of
        # its log density, l. d log p = p_k l, and the others follow: d1 = -sum p a, and so on.
        out: Slopes = {}
        for name, da, db, dl in (
            ("means", -b, 0.0 * b, -a),
            ("scales", -2.0 * a / s, 2.0 / s**3, s * a**2 - 1.0 / s),
        ):
            d_first = p * (dl * away + da)
            d_second = p * (dl * (away**2 + b - second) + 2.0 * away * da + db)
            parts = (p * dl, -d_first, d_second)
            zero, one, two = (np.moveaxis(np.asarray(part), -1, 0) for part in parts)
            out[name] = zero, one, two
        return out

    def pull_smoothed(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g log Z) at fixed y, mean and var, shape (p,)."""
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        _, p, a = self._shares(y - mean, var)
        axes = tuple(range(g.ndim))
        weight = g[..., None] * p
        spread = a**2 - 1.0 / (var[..., None] + self.scales**2)
        return self._own_gradient(
            means=np.sum(-weight * a, axis=axes),
            scales=np.sum(weight * spread, axis=axes) * self.scales,
        )


def _probabilities(weights: ArrayLike) -> Floats:
    try:
        w = np.array(weights, dtype=float)
    except (TypeError, ValueError):
        w = np.empty(0)
    if w.ndim != 1 or w.size == 0 or not np.all(np.isfinite(w)) or np.any(w <= 0):
        raise ValueError(f"weights must be a vector of positive numbers, got {weights!r}")
    # Once divided, dividing again must change nothing, or a saved one would not be equal.
    if abs(np.sum(w) - 1.0) > 4 * np.finfo(float).eps * w.size:
        w /= np.sum(w)
    w.setflags(write=False)
    return w
