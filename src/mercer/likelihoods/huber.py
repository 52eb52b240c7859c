"""Huber's robust noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, erfinv, ndtr

from mercer.likelihoods.additive import bounded
from mercer.likelihoods.base import broadcast
from mercer.likelihoods.clipped import Clipped, smoothed
from mercer.likelihoods.dead_zone import Excess, expected_excess
from mercer.likelihoods.pulls import Slopes
from mercer.likelihoods.scaled import ScaledNoise
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["Huber"]

Floats = NDArray[np.float64]

_ROOT_2PI = float(np.sqrt(2.0 * np.pi))


@storable
class Huber(ScaledNoise):
    """y = f + e with e Gaussian in the middle and Laplacian in the tails (BKM 12).

    With z = e/s and k the threshold, the density is exp(-z^2/2) for abs(z) <= k and
    exp(k^2/2 - k abs(z)) beyond, over s [sqrt(2 pi) (2 Phi(k) - 1) + 2 exp(-k^2/2)/k]. The paper's
    density with its one parameter sigma is ``Huber(sqrt(sigma), sqrt(sigma))``.

    The most probable f of several observations is a trimmed mean: that of the observations within
    k s of it, if as many lie beyond on either side. Use it where most noise is Gaussian and some
    is not: it is robust, and unlike `StudentT` keeps the problem convex.

    Parameters
    ----------
    scale : float or Parameter, optional
        s, the standard deviation of the Gaussian middle. Without it, it is chosen from the data
        (see `begun`).
    threshold : float or Parameter, default 1.345
        k, in units of s. It is bounded by 0.1 and 10 in a search, if not otherwise said. 1.345
        loses 5% of efficiency if the noise is Gaussian after all.

    Examples
    --------
    >>> from mercer.likelihoods import Huber
    >>> first, second, third = Huber(1.0, threshold=1.5).derivatives([0.5, 9.0], 0.0)
    >>> first
    array([0.5, 1.5])
    """

    is_log_concave = True
    is_symmetric = True
    # a closed form, and more accurate than Laplace's method for little more time
    preferred_inference = "ep"

    def __init__(
        self, scale: float | Parameter | None = None, threshold: float | Parameter = 1.345
    ) -> None:
        self._set(
            **self._open(scale=scale),
            threshold=positive("threshold", bounded(threshold, 0.1, 10.0), vector=False),
        )

    def _parts(self) -> tuple[float, float]:
        """Return the integrals over the middle and the tails, in units of s."""
        k = float(self.threshold)
        return _ROOT_2PI * float(erf(k / np.sqrt(2.0))), float(2.0 * np.exp(-0.5 * k**2) / k)

    def _log_noise(self, t: Floats) -> Floats:
        z, k = np.abs(t) / self._scale, self.threshold
        inside = np.minimum(z, k)
        constant = np.log(sum(self._parts()) * self._scale)
        return np.asarray(-0.5 * inside**2 - k * (z - inside) - constant)

    def _noise_slopes(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        z, k, s = t / self._scale, self.threshold, self._scale
        second = np.where(np.abs(z) <= k, -1.0 / s**2, 0.0)
        return np.asarray(-np.clip(z, -k, k) / s), second, np.zeros(t.shape)

    def _noise_cdf(self, t: Floats) -> Floats:
        z, k = t / self._scale, float(self.threshold)
        middle, tails = self._parts()
        below = 0.5 * tails * np.exp(np.minimum(k * (k - np.abs(z)), 0.0))
        at = np.clip(z, -k, k)
        inside = 0.5 * tails + _ROOT_2PI * (ndtr(at) - ndtr(-k))
        tail = np.where(z < 0, below, middle + tails - below)
        return np.asarray(np.where(np.abs(z) <= k, inside, tail) / (middle + tails))

    def _noise_moments(self) -> tuple[float, float]:
        k = float(self.threshold)
        middle, tails = self._parts()
        square = middle - 2.0 * k * np.exp(-0.5 * k**2)  # of the middle, by parts
        square += tails * (k**2 + 2.0 + 2.0 / k**2)
        return 0.0, float(self._scale**2 * square / (middle + tails))

    def _information(self) -> float:
        middle, tails = self._parts()
        return float(middle / (middle + tails) / self._scale**2)

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        k = float(self.threshold)
        middle, tails = self._parts()
        side = np.where(rng.uniform(size=shape) < 0.5, -1.0, 1.0)
        in_tail = rng.uniform(size=shape) * (middle + tails) < tails
        # The middle by its quantiles; erf(k) = 1 for a large k is no harm, u being below 1.
        inner = _half_normal(rng.uniform(size=shape), k)
        size = np.where(in_tail, k + rng.exponential(1.0 / k, shape), inner)
        return np.asarray(self._scale * side * size)

    def knots(self, y: Floats) -> Floats:
        """Return y - k s, y and y + k s: the peak, and where the curvature jumps."""
        reach = self.threshold * self._scale * np.array([-1.0, 0.0, 1.0])
        return np.asarray(np.asarray(y, dtype=float)[:, None] + reach)

    # --------------------------------------------------------------------------- closed integrals

    def _averages(self, y: Floats, mean: Floats, var: Floats) -> Clipped:
        """Return the averages over the tilted density of z = (y - f)/s."""
        s = self._scale
        return smoothed((y - mean) / s, var / s**2, float(self.threshold))

    def smoothed(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return log Z and its two derivatives in the mean, Z = E[p(y | f)], in closed form."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        s, none = self._scale, var == 0
        it = self._averages(y, mean, np.where(none, 1.0, var))
        log_z = it.log_value - np.log(sum(self._parts()) * s)
        out = log_z, np.asarray(it.slope / s), np.asarray(it.curvature / s**2)
        if not none.any():
            return out
        plain = self.log_density(y, mean), *self.derivatives(y, mean)[:2]
        first, second, third = (np.where(none, p, o) for p, o in zip(plain, out, strict=True))
        return first, second, third

    def compiled_site(self) -> tuple[str, Floats]:
        """Return the scale, the threshold and the logarithm of the normaliser."""
        constant = np.log(sum(self._parts()) * self._scale)
        return "huber", np.array([self._scale, self.threshold, constant], dtype=float)

    def pull_smoothed(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g log Z) at fixed y, mean and var, shape (p,)."""
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        k, none = float(self.threshold), var == 0
        it = self._averages(y, mean, np.where(none, 1.0, var))
        z = (y - mean) / self._scale
        product = np.where(none, z * np.clip(z, -k, k), it.product)
        excess = np.where(none, np.maximum(np.abs(z) - k, 0.0), it.excess)
        return self._total(g, product, excess)

    def _total(self, g: Floats, product: Floats, excess: Floats) -> Floats:
        """Chain sum(g log p) to theta from averages of z clip(z) and of (abs(z) - k)+."""
        # The normaliser's derivative in k is -2 exp(-k^2/2)/k^2: what its two parts add cancels.
        middle, tails = self._parts()
        threshold = tails / (float(self.threshold) * (middle + tails)) - excess
        scale = (product - 1.0) / self._scale
        return self._own_gradient(scale=np.sum(g * scale), threshold=np.sum(g * threshold))

    # The loss is z^2/2 - (abs(z) - k)+^2/2.

    def _units(self, y: Floats, mean: Floats, var: Floats) -> tuple[Floats, Floats, Excess]:
        """Return mean and mean square of z = (y - f)/s, and the moments of (abs(z) - k)+."""
        z, v = (y - mean) / self._scale, var / self._scale**2
        return z, z**2 + v, expected_excess(z, v, float(self.threshold))

    def expected(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return E[log p(y | f)] and its derivatives in mean and variance, in closed form."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        s = self._scale
        z, square, over = self._units(y, mean, var)
        value = -0.5 * (square - over.square) - np.log(sum(self._parts()) * s)
        first, second = (z - over.signed) / s, -0.5 * (1.0 - over.outside) / s**2
        return np.asarray(value), np.asarray(first), np.asarray(second)

    def pull_expected(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g E[log p]) at fixed y, mean and var, shape (p,)."""
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        _, square, over = self._units(y, mean, var)
        product = square - over.square - float(self.threshold) * over.value
        return self._total(g, product, over.value)

    def _slopes(self, y: Floats, f: Floats) -> Slopes:
        t, k, s = y - f, float(self.threshold), self._scale
        z = np.asarray(t / s)
        over = np.maximum(np.abs(z) - k, 0.0)
        middle, tails = self._parts()
        zero = tails / (k * (middle + tails)) - over
        first = np.where(over > 0, np.sign(z) / s, 0.0)
        own: Slopes = {"threshold": (np.asarray(zero), first, np.zeros(z.shape))}
        return super()._slopes(y, f) | own


def _half_normal(u: Floats, k: float) -> Floats:
    """Return the quantiles of abs(z) given abs(z) <= k, for a standard normal z."""
    return np.asarray(np.sqrt(2.0) * erfinv(u * erf(k / np.sqrt(2.0))))
