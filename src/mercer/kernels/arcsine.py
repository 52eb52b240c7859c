"""The arcsine kernel: the covariance of an infinite neural network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels.base import BlockGradient
from mercer.kernels.dot import Dot, norms
from mercer.kernels.tiles import contract, origin
from mercer.kernels.units import length_bounds
from mercer.linalg import loops
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["ArcSine"]

Floats = NDArray[np.float64]

# Rows are no longer than about 2^200: their fourth powers, in r^2, are far from overflowing.
_LONGEST = 200


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

    def _shortened(self, A: Floats) -> tuple[Floats, NDArray[np.int32]]:
        """Return the scaled rows, the longest divided by 2^shift, and the shifts (a, 1).

        The 1 beside a row so long has no weight, and all but its direction counts for less than
        1e-59. Powers of 2 lose no digits; the derivative in a row is to be divided by the same.
        """
        exponents = np.frexp(A)[1]
        if self.length_scale is not None:
            exponents = np.where(A == 0.0, 0, exponents - np.frexp(self.length_scale)[1])
        shift = exponents.max(axis=1, keepdims=True, initial=_LONGEST) - _LONGEST
        return self._scaled(np.ldexp(A, -shift)), shift

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
        r = _gram_determinants(a, b, 2.0 * U > v[:, None] + self.scale)
        r *= 4.0 * self.scale**2
        r += np.add.outer(1.0 + 2.0 * v, 2.0 * w)
        np.sqrt(r, out=r)
        return U, v, w, r

    def _block(self, A: Floats, B: Floats) -> Floats:
        U, _, _, r = self._roots(self._shortened(A)[0], self._shortened(B)[0])
        U *= 2.0
        return np.asarray(np.arctan2(U, r, out=r)) * (2.0 / np.pi)

    def _diag(self, A: Floats) -> Floats:
        v = self.scale * (1.0 + norms(self._shortened(A)[0]))
        return np.asarray(2.0 / np.pi * np.arctan2(2.0 * v, np.sqrt(1.0 + 4.0 * v)))

    def _block_pullback(self, A: Floats, B: Floats, G: Floats, inputs: bool) -> BlockGradient:
        (a, shift_a), (b, shift_b) = self._shortened(A), self._shortened(B)
        U, v, w, r = self._roots(a, b)
        inner = 2.0 / np.pi * contract(G, np.arctan2(2.0 * U, r))
        # dk/du = 4/(pi r), dk/dv = -4u / (pi r (1 + 2v)), and 1 - v/(1+2v) - w/(1+2w) is the mean
        # of 1/(1+2v) and 1/(1+2w)
        dU = 4.0 / np.pi * G / r
        T = dU * U
        p, q = 1.0 / (1.0 + 2.0 * v), 1.0 / (1.0 + 2.0 * w)
        scale = 0.5 * (contract(T.sum(axis=1), p) + contract(T.sum(axis=0), q)) / self.scale
        scales: ArrayLike = 0.0
        one_column = a.shape[1] == 1
        if self._has_free_scales and not one_column:
            scales = self._pull_stretching(a, b, np.sqrt(p), np.sqrt(q), G, U, r)
        if not (inputs or (self._has_free_scales and one_column)):
            return self._chained(None, None, scales, {"scale": scale}, inner, inputs)
        near_a, near_b = 2.0 * U > v[:, None] + self.scale, 2.0 * U > w + self.scale
        da = (self.scale * p)[:, None] * self._slope(a, b, dU, near_a)
        db = (self.scale * q)[:, None] * self._slope(b, a, dU.T, near_b.T)
        if one_column:  # where nothing cancels
            scales = np.sum(da * a, axis=0) + np.sum(db * b, axis=0)
        da, db = np.ldexp(da, -shift_a), np.ldexp(db, -shift_b)
        return self._chained(da, db, scales, {"scale": scale}, inner, inputs)

    def _slope(self, a: Floats, b: Floats, W: Floats, near: NDArray[np.bool_]) -> Floats:
        """Return (1 + 2v) sum_j W_j (b_j - 2u_j/(1 + 2v) a) for each row a.

        As it stands this cancels far from 0, where 2u is nearly 1 + 2v. With delta = b - a and x
        the shorter of b and delta (`near` tells where that is delta) each term is

            b + 2 scale (delta + |a|^2 x's part across a)

        For rows near a ray from 0 the part across is what their own rounding has left: the result
        is right for rows moved by an ulp, which at a distance of 1e9 may be any direction across.
        """
        close = _weighted_differences(a, b, np.where(near, W, 0.0))
        W_far = np.where(near, 0.0, W)
        far = W_far @ b
        delta = close + far - W_far.sum(axis=1)[:, None] * a
        curved = norms(a)[:, None] * _across(a, close + far)
        return np.asarray(W @ b + 2.0 * self.scale * (delta + curved))

    def _pull_stretching(
        self, a: Floats, b: Floats, p: Floats, q: Floats, G: Floats, U: Floats, r: Floats
    ) -> Floats:
        """Return sum(da * a) + sum(db * b), (d,), the two of which cancel for rows near a ray.

        With a' = a/sqrt(1 + 2v) = p a, b' likewise, and k = 1 - 2 phi/pi, a pair's column k has

            8 scale/pi (a'_k b'_k sin/(1 + |cos|) - cos/(2 sin) (a'_k -+ b'_k)^2)

        of the angle phi, with minus where cos is positive.
        """
        a, b = p[:, None] * a, q[:, None] * b
        pq = np.multiply.outer(p, q)
        sin, cos = r * pq, 2.0 * U * pq
        bend = sin / (1.0 + np.abs(cos))
        most = bend * sin / self.scale  # which no square exceeds but by rounding
        sign, W = np.sign(cos), 0.5 * G * cos / sin
        out = np.sum(a * ((G * bend) @ b), axis=0)
        for k in range(a.shape[1]):
            part = a[:, k, None] - sign * b[:, k]
            part *= part
            out[k] -= contract(W, np.minimum(part, most, out=part))
        return np.asarray(8.0 / np.pi * self.scale * out)

    def _diag_pullback(self, A: Floats, g: Floats, inputs: bool) -> BlockGradient:
        a, shift = self._shortened(A)
        v = self.scale * (1.0 + norms(a))
        root = np.sqrt(1.0 + 4.0 * v)
        inner = 2.0 / np.pi * contract(g, np.arctan2(2.0 * v, root))
        dv = 4.0 / np.pi * g / ((1.0 + 2.0 * v) * root)
        da = 2.0 * self.scale * dv[:, None] * a
        others = {"scale": contract(dv, v) / self.scale}
        scales = np.sum(da * a, axis=0)
        return self._chained(np.ldexp(da, -shift), None, scales, others, inner, inputs)


def _gram_determinants(a: Floats, b: Floats, near: NDArray[np.bool_]) -> Floats:
    """Return (1 + |a|^2)(1 + |b|^2) - (1 + a.b)^2 for each pair of rows, from their differences.

    With delta = b - a and x the shorter of b and delta (`near` tells where that is delta) it is
    |delta|^2 + |a|^2 |x's part across a|^2, of which there is none in one column.
    """
    out = np.empty((a.shape[0], b.shape[0]))
    loops().squared_distances(np.ascontiguousarray(a), np.ascontiguousarray(b.T), out, np.inf)
    if a.shape[1] == 1:
        return out
    squares = norms(a)[:, None]
    along = a / np.sqrt(np.where(squares > 0.0, squares, 1.0))
    # x's part along a; what rounding leaves in it counts by its square only
    centre = origin(a)
    shift = along @ (b - centre).T - np.sum(along * (a - centre), axis=1)[:, None]
    np.copyto(shift, along @ b.T, where=~near)
    taken, across, part = near.astype(float), np.zeros_like(out), np.empty_like(out)
    for k in range(a.shape[1]):
        np.multiply(taken, a[:, k, None], out=part)
        np.subtract(b[:, k], part, out=part)
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
