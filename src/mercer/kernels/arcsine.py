"""The arcsine kernel: the covariance of an infinite neural network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels.base import BlockGradient
from mercer.kernels.dot import Dot, norms
from mercer.kernels.stationary import length_bounds
from mercer.kernels.tiles import contract
from mercer.linalg import loops
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["ArcSine"]

Floats = NDArray[np.float64]


@storable
class ArcSine(Dot):
    """2/pi asin(2u / sqrt((1 + 2v)(1 + 2v'))): the covariance of an infinite neural network.

    u = scale (1 + sum_k x_k x'_k / l_k^2), and v and v' are u at (x, x) and at (x', x'): inner
    products of (1, x). One hidden layer of error functions, with weights and biases of variance
    `scale`, tends to this process as its width grows.

    Parameters
    ----------
    scale : float or Parameter, default 1.0
        The variance of weights and biases: the larger, the faster functions vary.
    length_scale : float, array of shape (d,) or Parameter, optional
        Units of the inputs, one or one a column; plain inner products without it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import ArcSine
    >>> ArcSine(scale=2.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)
    array([[0.5903, 0.4067]])
    """

    scale: float

    def __init__(
        self,
        scale: float | Parameter = 1.0,
        length_scale: ArrayLike | Parameter | None = None,
    ) -> None:
        self._set_scaled(length_scale, scale=positive("scale", scale, vector=False))

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        square = self._mean_square(widths)
        return {
            "scale": (1e-4 * min(1.0, 1.0 / square), 1e4 * max(1.0, 1.0 / square)),
            "length_scale": length_bounds(widths),
        }

    def _roots(self, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return u (a, b), v (a,), v' (b,) and r = sqrt((1 + 2v)(1 + 2v') - 4u^2), (a, b).

        asin(2u/sqrt(..)) = atan2(2u, r). Far from 0 the two parts of r^2 agree in all their digits;
        it is 1 + 2v + 2v' + 4(vv' - u^2), and vv' - u^2 is found without cancellation. r is never
        0, and every derivative, which has r below the line, is finite, at coincident points too.
        """
        U = a @ b.T
        U += 1.0
        U *= self.scale
        v, w = self.scale * (1.0 + norms(a)), self.scale * (1.0 + norms(b))
        r = _gram_determinants(a, b)
        r *= 4.0 * self.scale**2
        r += np.add.outer(1.0 + 2.0 * v, 2.0 * w)
        np.sqrt(r, out=r)
        return U, v, w, r

    def _block(self, A: Floats, B: Floats) -> Floats:
        U, _, _, r = self._roots(*self._scaled_pair(A, B))
        U *= 2.0
        return np.asarray(np.arctan2(U, r, out=r)) * (2.0 / np.pi)

    def _diag(self, A: Floats) -> Floats:
        v = self.scale * (1.0 + norms(self._scaled(A)))
        return np.asarray(2.0 / np.pi * np.arctan2(2.0 * v, np.sqrt(1.0 + 4.0 * v)))

    def _block_pullback(self, A: Floats, B: Floats, G: Floats, inputs: bool) -> BlockGradient:
        a, b = self._scaled_pair(A, B)
        U, v, w, r = self._roots(a, b)
        inner = 2.0 / np.pi * contract(G, np.arctan2(2.0 * U, r))
        # dk/du = 4/(pi r), dk/dv = -4u / (pi r (1 + 2v)), and 1 - v/(1+2v) - w/(1+2w) is the mean
        # of 1/(1+2v) and 1/(1+2w)
        dU = 4.0 / np.pi * G / r
        T = dU * U
        p, q = 1.0 / (1.0 + 2.0 * v), 1.0 / (1.0 + 2.0 * w)
        scale = 0.5 * (contract(T.sum(axis=1), p) + contract(T.sum(axis=0), q)) / self.scale
        if not (inputs or self._has_free_scales):
            return self._chained(None, None, 0.0, {"scale": scale}, inner, inputs)
        near_a, near_b = 2.0 * U > v[:, None] + self.scale, 2.0 * U > w + self.scale
        da = (self.scale * p)[:, None] * self._slope(a, b, dU, near_a)
        db = (self.scale * q)[:, None] * self._slope(b, a, dU.T, near_b.T)
        scales = np.sum(da * a, axis=0) + np.sum(db * b, axis=0)
        return self._chained(da, db, scales, {"scale": scale}, inner, inputs)

    def _slope(self, a: Floats, b: Floats, W: Floats, near: NDArray[np.bool_]) -> Floats:
        """Return (1 + 2v) sum_j W_j (b_j - 2u_j/(1 + 2v) a) for each row a.

        As it stands this cancels far from 0, where 2u is nearly 1 + 2v. With delta = b - a and x
        the shorter of b and delta (`near` tells where that is delta) each term is

            b + 2 scale (delta + |a|^2 x's part across a)
        """
        close = _weighted_differences(a, b, np.where(near, W, 0.0))
        W_far = np.where(near, 0.0, W)
        far = W_far @ b
        delta = close + far - W_far.sum(axis=1)[:, None] * a
        curved = norms(a)[:, None] * _across(a, close + far)
        return np.asarray(W @ b + 2.0 * self.scale * (delta + curved))

    def _diag_pullback(self, A: Floats, g: Floats, inputs: bool) -> BlockGradient:
        a = self._scaled(A)
        v = self.scale * (1.0 + norms(a))
        root = np.sqrt(1.0 + 4.0 * v)
        inner = 2.0 / np.pi * contract(g, np.arctan2(2.0 * v, root))
        dv = 4.0 / np.pi * g / ((1.0 + 2.0 * v) * root)
        da = 2.0 * self.scale * dv[:, None] * a
        others = {"scale": contract(dv, v) / self.scale}
        return self._chained(da, None, np.sum(da * a, axis=0), others, inner, inputs)


def _gram_determinants(a: Floats, b: Floats) -> Floats:
    """Return (1 + |a|^2)(1 + |b|^2) - (1 + a.b)^2 for each pair of rows, from their differences.

    With delta = b - a it is |delta|^2 + |a|^2 |delta's part across a|^2, of which there is none in
    one column.
    """
    out = np.empty((a.shape[0], b.shape[0]))
    loops().squared_distances(np.ascontiguousarray(a), np.ascontiguousarray(b.T), out, np.inf)
    if a.shape[1] == 1:
        return out
    squares = norms(a)[:, None]
    along = a / np.sqrt(np.where(squares > 0.0, squares, 1.0))
    # delta's part along a; what rounding leaves in it counts by its square only
    shift = along @ (b - a[:1]).T - np.sum(along * (a - a[:1]), axis=1)[:, None]
    across, part = np.zeros_like(out), np.empty_like(out)
    for k in range(a.shape[1]):
        np.subtract(b[:, k], a[:, k, None], out=part)
        part -= along[:, k, None] * shift
        part *= part
        across += part
    across *= squares
    out += across
    return out


def _weighted_differences(a: Floats, b: Floats, W: Floats) -> Floats:
    """Return sum_j W_ij (b_j - a_i) for each row i, every difference taken exactly."""
    out, part = np.empty(a.shape), np.empty(W.shape)
    for k in range(a.shape[1]):
        np.subtract(b[:, k], a[:, k, None], out=part)
        part *= W
        part.sum(axis=1, out=out[:, k])
    return out


def _across(a: Floats, x: Floats) -> Floats:
    """Return the part of each row of x that is perpendicular to the same row of a.

    A multiple of a is taken off first that leaves nothing in the column where a is largest: of
    what lies along a, as on a ray, no more than its own rounding is left.
    """
    largest = np.argmax(np.abs(a), axis=1)[:, None]
    pivot = np.take_along_axis(a, largest, axis=1)
    pivot[pivot == 0.0] = 1.0  # a = 0, and all of x is across it
    rest = (x * pivot - np.take_along_axis(x, largest, axis=1) * a) / pivot
    squares = norms(a)[:, None]
    along = np.sum(rest * a, axis=1, keepdims=True) / np.where(squares > 0.0, squares, 1.0)
    return np.asarray(rest - along * a)
