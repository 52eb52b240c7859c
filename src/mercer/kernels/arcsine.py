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
        # dk/du = 4/(pi r), dk/dv = -4u / (pi r (1 + 2v))
        dU = 4.0 / np.pi * G / r
        T = dU * U
        dv, dw = -T.sum(axis=1) / (1.0 + 2.0 * v), -T.sum(axis=0) / (1.0 + 2.0 * w)
        scale = (float(np.sum(T)) + contract(dv, v) + contract(dw, w)) / self.scale
        da = self.scale * (dU @ b + 2.0 * dv[:, None] * a)
        db = self.scale * (dU.T @ a + 2.0 * dw[:, None] * b)
        scales = np.sum(da * a, axis=0) + np.sum(db * b, axis=0)
        return self._chained(da, db, scales, {"scale": scale}, inner, inputs)

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
