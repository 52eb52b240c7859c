"""Stationary kernels: one radial profile k(s) of the squared scaled distance each.

s(x, x') = sum_k (x_k - x'_k)^2 / l_k^2, with one length scale or one a column. A profile gives
k(s) and, pulled back, W = G k'(s); the derivatives in length scales and inputs are written once,
here. Distances are sums of squared differences, never expanded into products, so coincident points
are at distance 0 exactly. Differences are taken from a point near 0 of a tile (see `tiles.origin`)
before they are divided by length scales: rows far from 0 but near each other keep the digits that
doubles of their size have, and more if no row of the tile is near 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels.base import BlockGradient, Kernel
from mercer.kernels.bessel import matern_slope, matern_value
from mercer.kernels.tiles import contract, origin, scratch
from mercer.kernels.units import length_bounds
from mercer.linalg import PROFILES, loops
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["RBF", "Exponential", "Matern", "RationalQuadratic", "Stationary"]

Floats = NDArray[np.float64]

# Beyond this many length scales a distance counts as this many: exponentials of it are 0, and what
# stands for 0, 1e-308, is so even after the third power of the distance has multiplied it.
_FAR = 1e75
_LARGEST = 0.25 * np.finfo(float).max
# Beyond this many columns a strip of rows no longer fits into the cache `weigh` keeps it in.
_MOST_COLUMNS = 64


class Stationary(Kernel):
    """Base of the kernels that depend on s alone. Subclasses give a profile."""

    length_scale: float | Floats

    def _profile(self) -> tuple[str, float] | None:
        """Return the compiled profile's name and shape parameter; None where `_value` is given."""
        return None

    def _value(self, s: Floats) -> None:
        """Overwrite the flat vector s by k(s)."""
        found = self._profile()
        if found is None:
            raise NotImplementedError(f"{type(self).__name__} must define _profile() or _value(s)")
        loops().value(PROFILES.index(found[0]), found[1], s)

    def _pull(self, s: Floats, G: Floats) -> tuple[float, float, dict[str, float]]:
        """Overwrite s by W = G k'(s); return sum(G k), sum(W s) and dL/d(other parameters)."""
        found = self._profile()
        if found is None:
            raise NotImplementedError(
                f"{type(self).__name__} must define _profile() or _pull(s, G)"
            )
        inner, outer = getattr(loops(), f"pull_{found[0]}")(s, G)
        return inner, outer, {}

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        return {"length_scale": length_bounds(widths)}

    def _scaled(self, A: Floats, B: Floats) -> tuple[Floats, Floats]:
        """Return the scaled inputs A (a, d) and B' (d, b)."""
        # Far from 0, dividing would round away the differences.
        seen_from, lengths = origin(A)[:, None], np.reshape(self.length_scale, (-1, 1))
        scaled, scaled_t = np.empty(A.shape), np.empty(B.shape[::-1])
        with np.errstate(over="ignore"):
            np.subtract(A, seen_from.T, out=scaled)
            np.subtract(B.T, seen_from, out=scaled_t)
            scaled /= lengths.T
            scaled_t /= lengths
        return scaled, scaled_t

    def _squared_distances(self, A: Floats, B: Floats) -> tuple[Floats, Floats, Floats]:
        """Return s (a, b), and the scaled inputs A (a, d) and B' (d, b)."""
        scaled, scaled_t = self._scaled(A, B)
        s = scratch(A.shape[0], B.shape[0])
        if loops().squared_distances(scaled, scaled_t, s, _FAR):
            self._rein_in(s, scaled, scaled_t)
        return s, scaled, scaled_t

    def _rein_in(self, s: Floats, scaled: Floats, scaled_t: Floats) -> None:
        """Keep squares finite, in place, where rows are more than _FAR length scales apart.

        Doubles of that size are so far apart that rows near each other are equal, and stay so.
        """
        for points in (scaled, scaled_t):
            np.clip(points, -_LARGEST, _LARGEST, out=points)  # infinity less infinity is no number
        loops().squared_distances(scaled, scaled_t, s, _FAR)
        np.minimum(s, _FAR**2, out=s)
        for points in (scaled, scaled_t):
            np.clip(points, -_FAR, _FAR, out=points)

    def _block(self, A: Floats, B: Floats) -> Floats:
        s, _, _ = self._squared_distances(A, B)
        self._value(s.reshape(-1))
        return s

    def _times(self, A: Floats, B: Floats, V: Floats) -> Floats:
        found = self._profile()
        if found is None or A.shape[1] > _MOST_COLUMNS:
            return super()._times(A, B, V)
        name, shape = found
        out = np.empty((len(A), V.shape[1]))
        arrays = (*self._scaled(A, B), np.ascontiguousarray(V.T), out)
        too_far = loops().weigh(PROFILES.index(name), shape, *arrays, _FAR)
        return super()._times(A, B, V) if too_far else out

    def _times_both(
        self, A: Floats, B: Floats, U: Floats, V: Floats, squared: bool
    ) -> tuple[Floats, Floats]:
        found, both = self._profile(), super()._times_both
        if found is None or A.shape[1] > _MOST_COLUMNS:
            return both(A, B, U, V, squared)
        name, shape = found
        out, back = np.empty((len(A), V.shape[1])), np.empty((V.shape[1], len(B)))
        given = (*self._scaled(A, B), np.ascontiguousarray(U), np.ascontiguousarray(V.T))
        far = loops().weigh_both(PROFILES.index(name), shape, *given, squared, out, back, _FAR)
        return both(A, B, U, V, squared) if far else (out, back.T)

    def _diag(self, A: Floats) -> Floats:
        return np.ones(A.shape[0])

    def _block_pullback(self, A: Floats, B: Floats, G: Floats, inputs: bool) -> BlockGradient:
        W, scaled, scaled_t = self._squared_distances(A, B)
        inner, outer, others = self._pull(W.reshape(-1), G.reshape(-1))
        p = self._parameters["length_scale"]
        length: ArrayLike = 0.0
        if p.is_free:
            # ds/dlog l_k = -2 (x_k - x'_k)^2 / l_k^2; `outer` is the sum over all k
            if p.is_vector:
                sums = np.empty(p.size)
                loops().pull_scales(scaled, scaled_t, W, sums)
                length = -2.0 * sums
            else:
                length = -2.0 * outer
        theta = self._theta_gradient({"length_scale": length}, others)
        if not inputs:
            return BlockGradient(theta, None, None, inner)
        dA, dBt = np.empty(scaled.shape), np.empty(scaled_t.shape)
        loops().pull_points(scaled, scaled_t, W, dA, dBt)
        return BlockGradient(theta, dA / self.length_scale, dBt.T / self.length_scale, inner)

    def _diag_pullback(self, A: Floats, g: Floats, inputs: bool) -> BlockGradient:
        dA = np.zeros(A.shape) if inputs else None
        return BlockGradient(np.zeros(self.theta.size), dA, None, float(np.sum(g)))


@storable
class RBF(Stationary):
    """exp(-s/2): the squared-exponential or Gaussian kernel (BKM 39).

    Parameters
    ----------
    length_scale : float, array of shape (d,) or Parameter, default 1.0
        One length scale, or one a column (automatic relevance determination).

    Notes
    -----
    Functions drawn from it are infinitely smooth. Where the data are rougher than that, prefer
    `Matern`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> RBF(length_scale=2.0)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    is_infinitely_divisible = True

    def __init__(self, length_scale: ArrayLike | Parameter = 1.0) -> None:
        self._set(length_scale=positive("length_scale", length_scale))

    def _profile(self) -> tuple[str, float]:
        return "rbf", 0.0


@storable
class Exponential(Stationary):
    """exp(-r), r = sqrt(s): the papers' Laplacian kernel (BKM 42); `Matern` with nu = 1/2.

    Parameters
    ----------
    length_scale : float, array of shape (d,) or Parameter, default 1.0
        One length scale, or one a column.

    Notes
    -----
    Functions drawn from it are continuous and nowhere smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Exponential
    >>> Exponential(2.0)(np.array([[0.0]]), np.array([[2.0]])).round(4)
    array([[0.3679]])
    """

    is_infinitely_divisible = True

    def __init__(self, length_scale: ArrayLike | Parameter = 1.0) -> None:
        self._set(length_scale=positive("length_scale", length_scale))

    def _profile(self) -> tuple[str, float]:
        return "exponential", 0.0


@storable
class Matern(Stationary):
    """2^(1-nu)/Gamma(nu) z^nu K_nu(z) with z = sqrt(2 nu s); K_nu is the modified Bessel function.

    Parameters
    ----------
    length_scale : float, array of shape (d,) or Parameter, default 1.0
        One length scale, or one a column.
    nu : float, default 1.5
        Smoothness, not learned: draws are k times differentiable for nu > k. 1/2, 3/2 and 5/2 have
        closed forms and are fast; any other value above 0 costs a Bessel function an entry.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Matern
    >>> Matern(2.0, nu=1.5)(np.array([[0.0]]), np.array([[2.0]])).round(4)
    array([[0.4834]])
    """

    def __init__(self, length_scale: ArrayLike | Parameter = 1.0, nu: float = 1.5) -> None:
        nu = float(nu)
        if not (np.isfinite(nu) and nu > 0):
            raise ValueError(f"nu must be a positive number, got {nu!r}; use RBF for infinity")
        self.nu = nu
        self._set(length_scale=positive("length_scale", length_scale))

    def _options(self) -> dict[str, Any]:
        return {"nu": self.nu}

    def _profile(self) -> tuple[str, float] | None:
        name = {0.5: "exponential", 1.5: "matern32", 2.5: "matern52"}.get(self.nu)
        return None if name is None else (name, 0.0)

    def _value(self, s: Floats) -> None:
        if self._profile() is None:
            s[:] = matern_value(s, self.nu)
        else:
            super()._value(s)

    def _pull(self, s: Floats, G: Floats) -> tuple[float, float, dict[str, float]]:
        if self._profile() is not None:
            return super()._pull(s, G)
        W = G * matern_slope(s, self.nu)
        inner, outer = contract(G, matern_value(s, self.nu)), contract(W, s)
        s[:] = W
        return inner, outer, {}


@storable
class RationalQuadratic(Stationary):
    """(1 + s/(2 alpha))^-alpha: RBF kernels of many length scales, mixed.

    Parameters
    ----------
    length_scale : float, array of shape (d,) or Parameter, default 1.0
        One length scale, or one a column.
    alpha : float or Parameter, default 1.0
        How narrow the mixture of scales is; RBF as it grows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RationalQuadratic
    >>> RationalQuadratic(1.0, alpha=2.0)(np.array([[0.0]]), np.array([[2.0]]))
    array([[0.25]])
    """

    is_infinitely_divisible = True
    alpha: float

    def __init__(
        self, length_scale: ArrayLike | Parameter = 1.0, alpha: float | Parameter = 1.0
    ) -> None:
        self._set(
            length_scale=positive("length_scale", length_scale),
            alpha=positive("alpha", alpha, vector=False),
        )

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        return {"length_scale": length_bounds(widths), "alpha": (1e-2, 1e3)}

    def _profile(self) -> tuple[str, float]:
        return "rational", self.alpha

    def _pull(self, s: Floats, G: Floats) -> tuple[float, float, dict[str, float]]:
        inner, outer, shape = loops().pull_rational(s, G, self.alpha)
        return inner, outer, {"alpha": shape}
