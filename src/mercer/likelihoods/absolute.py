"""Noise with exponential tails: Laplacian, and epsilon-insensitive."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods.base import broadcast
from mercer.likelihoods.dead_zone import expected_excess, smoothed
from mercer.likelihoods.pulls import Slopes
from mercer.likelihoods.scaled import ScaledNoise
from mercer.params import Parameter
from mercer.registry import storable

__all__ = ["EpsilonInsensitive", "Laplace"]

Floats = NDArray[np.float64]


class _Absolute(ScaledNoise):
    """p(y | f) = exp(-max(0, abs(y - f) - epsilon)/s) / (2 (s + epsilon)), (BKM 13) with a scale.

    All integrals over a Gaussian f are closed; see :mod:`mercer.likelihoods.dead_zone`.
    """

    is_log_concave = True
    has_curvature = False

    @property
    def _epsilon(self) -> float:
        raise NotImplementedError

    def _excess(self, t: Floats) -> Floats:
        return np.maximum(np.abs(t) - self._epsilon, 0.0)

    def _log_noise(self, t: Floats) -> Floats:
        return np.asarray(
            -self._excess(t) / self._scale - np.log(2.0 * (self._scale + self._epsilon))
        )

    def _noise_slopes(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        first = np.where(np.abs(t) > self._epsilon, -np.sign(t) / self._scale, 0.0)
        return first, np.zeros(t.shape), np.zeros(t.shape)

    def _noise_cdf(self, t: Floats) -> Floats:
        s, e = self._scale, self._epsilon
        tail = 0.5 * s / (s + e) * np.exp(-self._excess(t) / s)
        inside = 0.5 + 0.5 * t / (s + e)
        return np.asarray(np.where(np.abs(t) <= e, inside, np.where(t < 0, tail, 1.0 - tail)))

    def _noise_moments(self) -> tuple[float, float]:
        s, e = self._scale, self._epsilon
        outside = s / (s + e)  # how probable that is
        return 0.0, float((1.0 - outside) * e * e / 3.0 + outside * (e * e + 2.0 * s * (e + s)))

    def _information(self) -> float:
        # The curvature is all in the kinks, where no derivative sees it.
        return float(1.0 / (self._scale * (self._scale + self._epsilon)))

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        s, e = self._scale, self._epsilon
        side = rng.uniform(-1.0, 1.0, shape)
        outside = rng.uniform(size=shape) * (s + e) < s
        return np.where(outside, np.sign(side) * (e + rng.exponential(s, shape)), e * side)

    # --------------------------------------------------------------------------- closed integrals

    def smoothed(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return log Z and its two derivatives in the mean, Z = E[p(y | f)], in closed form."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        s, none = self._scale, var == 0
        it = smoothed(y - mean, np.where(none, 1.0, var), self._epsilon, s)
        log_z = it.log_value - np.log(2.0 * (s + self._epsilon))
        out = log_z, np.asarray(-it.first / s), np.asarray(it.second / s / s)
        if not none.any():
            return out
        plain = self.log_density(y, mean), *self.derivatives(y, mean)[:2]
        first, second, third = (np.where(none, p, o) for p, o in zip(plain, out, strict=True))
        return first, second, third

    def expected(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return E[log p(y | f)] and its derivatives in mean and variance, in closed form."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        s, it = self._scale, expected_excess(y - mean, var, self._epsilon)
        value = -it.value / s - np.log(2.0 * (s + self._epsilon))
        return np.asarray(value), np.asarray(it.first / s), np.asarray(-it.in_var / s)

    def _slopes(self, y: Floats, f: Floats) -> Slopes:
        t, s = y - f, self._scale
        first = self.derivatives(y, f)[0]
        return self._by_name(self._excess(t) / s, s * np.abs(first), -first / s)

    def pull_smoothed(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g log Z) at fixed y, mean and var, shape (p,)."""
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        none = var == 0
        it = smoothed(y - mean, np.where(none, 1.0, var), self._epsilon, self._scale)
        excess = np.where(none, self._excess(y - mean) / self._scale, it.excess)
        outside = np.where(none, np.abs(y - mean) > self._epsilon, it.outside)
        return self._total(g, excess, outside)

    def pull_expected(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g E[log p]) at fixed y, mean and var, shape (p,)."""
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        it = expected_excess(y - mean, var, self._epsilon)
        return self._total(g, it.value / self._scale, it.outside)

    def _total(self, g: Floats, excess: Floats, outside: Floats) -> Floats:
        slopes = self._by_name(excess, outside, np.zeros(()))
        return self._own_gradient(**{name: np.sum(g * d[0]) for name, d in slopes.items()})

    def _by_name(self, excess: Floats, outside: Floats, first: Floats) -> Slopes:
        """Return `_slopes` from the excess over s, whether t is outside, and d(d1)/ds."""
        s, e = self._scale, self._epsilon
        zero = np.zeros(np.shape(excess))
        return {
            "epsilon": (np.asarray(outside / s - 1.0 / (s + e)), zero, zero),
            "scale": (np.asarray(excess / s - 1.0 / (s + e)), np.asarray(first + zero), zero),
        }


@storable
class Laplace(_Absolute):
    """y = f + e with Laplacian e, of density exp(-abs(e)/s)/(2 s) (BKM 10).

    The most probable f of several observations is their median (BKM 11): a gross outlier pulls no
    harder than any other point. Use it where the tails are heavy but not wild, or where a robust
    fit must stay a convex problem. The log density has no curvature but for its kink, so that EP,
    variational inference and the exact MAP take it, and Laplace's approximation does not.

    Parameters
    ----------
    scale : float or Parameter, optional
        s, the mean of abs(e). The variance of e is 2 s^2. Without it, it is chosen from the data
        (see `begun`).

    Examples
    --------
    >>> from mercer.likelihoods import Laplace
    >>> noise = Laplace(0.5)
    >>> noise.log_density(1.0, [1.5, 2.0])
    array([-1., -2.])
    >>> noise.predictive_var(0.0, 1.0)
    array(1.5)
    """

    is_symmetric = True

    def __init__(self, scale: float | Parameter | None = None) -> None:
        self._set(**self._open(scale=scale))

    @property
    def _epsilon(self) -> float:
        return 0.0

    def compiled_site(self) -> tuple[str, Floats]:
        """Return an epsilon of 0, and the scale."""
        return "insensitive", np.array([0.0, self._scale])

    def _by_name(self, excess: Floats, outside: Floats, first: Floats) -> Slopes:
        slopes = super()._by_name(excess, outside, first)
        return {"scale": slopes["scale"]}


@storable
class EpsilonInsensitive(_Absolute):
    """y = f + e with e of density exp(-max(0, abs(e) - epsilon)/s)/(2 (s + epsilon)) (BKM 13).

    Residuals up to epsilon cost nothing, larger ones as much as their excess: the loss of support
    vector regression. The most probable f of several observations is the middle of two of them
    about 2 epsilon apart, and few observations have a say in a fit. Use it for sparse MAP
    solutions, or where measurements are rounded to a grid of width 2 epsilon. Like `Laplace`, it
    has no curvature.

    Parameters
    ----------
    epsilon : float or Parameter, optional
        Half the width of the zone without cost, at least 0; 0 makes it `Laplace`, and is held.
        Without it, it is chosen from the data (see `begun`).
    scale : float or Parameter, optional
        s, how fast the density falls beyond it. Without it, it is chosen from the data.

    Examples
    --------
    >>> from mercer.likelihoods import EpsilonInsensitive
    >>> EpsilonInsensitive(0.5, scale=0.5).log_density(1.0, [1.0, 1.4, 2.0]).round(4)
    array([-0.6931, -0.6931, -1.6931])
    """

    is_symmetric = True
    _starts = {"epsilon": 0.1, "scale": 0.3}  # noqa: RUF012  (never changed)

    def __init__(
        self, epsilon: float | Parameter | None = None, scale: float | Parameter | None = None
    ) -> None:
        self._set(**self._open(zero=("epsilon",), epsilon=epsilon, scale=scale))

    @property
    def epsilon(self) -> float | None:
        """Half the width of the zone without cost, None if not yet chosen."""
        own = self._parameters.get("epsilon")
        return None if own is None else float(own.value)

    @property
    def _epsilon(self) -> float:
        return self._chosen("epsilon")

    def compiled_site(self) -> tuple[str, Floats]:
        """Return epsilon and the scale."""
        return "insensitive", np.array([self._epsilon, self._scale])

    def knots(self, y: Floats) -> Floats:
        """Return y - epsilon and y + epsilon, the kinks."""
        return np.asarray(np.asarray(y, dtype=float)[:, None] + self._epsilon * np.array([-1, 1]))
