"""Kernels of inner products: linear and polynomial (`Tanh` and `ArcSine` have the same base).

u(x, x') = sum_k x_k x'_k / l_k^2, the plain inner product where no length scale is given. A profile
gives k(u) and, pulled back, W = G k'(u); the derivatives in length scales and inputs are written
once, here, as matrix products.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels.base import BlockGradient, Kernel
from mercer.kernels.tiles import contract
from mercer.kernels.units import length_bounds
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["Dot", "Linear", "Polynomial", "norms"]

Floats = NDArray[np.float64]


class Dot(Kernel):
    """Base of the kernels that depend on inner products. Subclasses give `_value` and `_pull`."""

    length_scale: float | Floats | None

    def _value(self, u: Floats) -> Floats:
        """Return k(u); u may be overwritten."""
        raise NotImplementedError(f"{type(self).__name__} must define _value(u)")

    def _pull(self, u: Floats, G: Floats) -> tuple[Floats, float, dict[str, float]]:
        """Return W = G k'(u), sum(G k) and dL/d(parameters other than length scales)."""
        raise NotImplementedError(f"{type(self).__name__} must define _pull(u, G)")

    def _set_scaled(self, length_scale: ArrayLike | Parameter | None, **others: Parameter) -> None:
        if length_scale is None:
            self.length_scale = None
        else:
            others["length_scale"] = positive("length_scale", length_scale)
        self._set(**others)

    def _scaled(self, A: Floats) -> Floats:
        return A if self.length_scale is None else A / self.length_scale

    def _scaled_pair(self, A: Floats, B: Floats) -> tuple[Floats, Floats]:
        a = self._scaled(A)
        return a, a if B is A else self._scaled(B)

    def _mean_square(self, widths: Floats) -> float:
        """Return what |x/l|^2 is on average for centred inputs."""
        with np.errstate(over="ignore"):
            square = float(np.sum(self._scaled(widths) ** 2))
        return min(max(square, 1e-290), 1e290)

    def _block(self, A: Floats, B: Floats) -> Floats:
        a, b = self._scaled_pair(A, B)
        return self._value(a @ b.T)

    def _diag(self, A: Floats) -> Floats:
        return self._value(norms(self._scaled(A)))

    def _block_pullback(self, A: Floats, B: Floats, G: Floats, inputs: bool) -> BlockGradient:
        a, b = self._scaled_pair(A, B)
        W, inner, others = self._pull(a @ b.T, G)
        da = W @ b if inputs or self._has_free_scales else None
        db = W.T @ a if inputs else None
        # u has x_k x'_k / l_k^2: each of its two factors 1/l_k contributes the same
        scales = 0.0 if da is None else 2.0 * np.sum(da * a, axis=0)
        return self._chained(da, db, scales, others, inner, inputs)

    def _diag_pullback(self, A: Floats, g: Floats, inputs: bool) -> BlockGradient:
        a = self._scaled(A)
        w, inner, others = self._pull(norms(a), g)
        da = 2.0 * w[:, None] * a
        return self._chained(da, None, np.sum(da * a, axis=0), others, inner, inputs)

    @property
    def _has_free_scales(self) -> bool:
        return self.length_scale is not None and self._parameters["length_scale"].is_free

    def _chained(
        self,
        da: Floats | None,
        db: Floats | None,
        scales: ArrayLike,
        others: dict[str, float],
        inner: float,
        inputs: bool,
    ) -> BlockGradient:
        """Go from derivatives in the scaled inputs a and b to those in inputs and parameters.

        `scales` (d,) is sum(da * a) + sum(db * b), from which d(x/l)/dlog l = -x/l makes the
        derivative in the length scales.
        """
        logs = {"length_scale": -np.asarray(scales)} if self._has_free_scales else {}
        theta = self._theta_gradient(logs, others)
        if not inputs or da is None:
            return BlockGradient(theta, None, None, inner)
        return BlockGradient(
            theta, self._scaled(da), None if db is None else self._scaled(db), inner
        )


def norms(a: Floats) -> Floats:
    """Return the squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", a, a))


@storable
class Linear(Dot):
    """u + offset with u = sum_k x_k x'_k / l_k^2: linear functions with Gaussian coefficients.

    Parameters
    ----------
    offset : float or Parameter, default 0.0
        The prior variance of the value at the origin; 0 is held at 0.
    length_scale : float, array of shape (d,) or Parameter, optional
        1 over the prior standard deviation of the slopes, one or one a column. Without it slopes
        have variance 1.

    Notes
    -----
    The covariance has rank d (+ 1 with an offset); with many rows, Bayesian linear regression does
    the same in less time. Its place is in sums with other kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> Linear(offset=1.0)(np.array([[2.0, 0.0], [1.0, 3.0]]))
    array([[ 5.,  3.],
           [ 3., 11.]])
    """

    offset: float

    def __init__(
        self,
        offset: float | Parameter = 0.0,
        length_scale: ArrayLike | Parameter | None = None,
    ) -> None:
        self._set_scaled(length_scale, offset=positive("offset", offset, zero=True, vector=False))

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        # in units of the targets when it stands alone, of the inputs when it is scaled
        square, spread = self._mean_square(widths), np.sqrt(variance)
        low, high = length_bounds(widths)
        with np.errstate(over="ignore"):  # no bound, then
            low, high = low * min(1.0, 1.0 / spread), high * max(1.0, 1.0 / spread)
        return {
            "offset": (1e-4 * min(variance, square), 1e4 * max(variance, square)),
            "length_scale": (low, high),
        }

    def _log_size(self, widths: Floats) -> float:
        return float(np.log(self._mean_square(widths)))

    def _value(self, u: Floats) -> Floats:
        u += self.offset
        return u

    def _pull(self, u: Floats, G: Floats) -> tuple[Floats, float, dict[str, float]]:
        constant = float(np.sum(G))
        return G, contract(G, u) + self.offset * constant, {"offset": constant}


@storable
class Polynomial(Dot):
    """(u + offset)^degree with u = sum_k x_k x'_k / l_k^2 (BKM 43): polynomials in the inputs.

    Parameters
    ----------
    degree : int, default 2
        The power, 1 or more; not learned.
    offset : float or Parameter, default 1.0
        How much the lower powers count, 0 or more; 0 is held at 0 and leaves only terms of the
        full degree.
    length_scale : float, array of shape (d,) or Parameter, optional
        Units of the inputs, one or one a column; plain inner products without it.

    Notes
    -----
    Values grow like |x|^(2 degree) away from the origin: centre and scale the inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Polynomial
    >>> Polynomial(3, offset=1.0)(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[ 8., 27.]])
    """

    offset: float
    _in_units = frozenset({"offset"})

    def __init__(
        self,
        degree: int = 2,
        offset: float | Parameter = 1.0,
        length_scale: ArrayLike | Parameter | None = None,
    ) -> None:
        given: Any = degree
        if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
            raise ValueError(f"degree must be a whole number from 1, got {degree!r}")
        self.degree = int(degree)
        self._set_scaled(length_scale, offset=positive("offset", offset, zero=True, vector=False))

    def _options(self) -> dict[str, Any]:
        return {"degree": self.degree}

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        square = self._mean_square(widths)
        return {"offset": (1e-4 * square, 1e4 * square), "length_scale": length_bounds(widths)}

    def _log_size(self, widths: Floats) -> float:
        square, offset = self._mean_square(widths), self.offset
        if offset == 0.0:
            return self.degree * float(np.log(square))
        # (u + o)^p - o^p = u sum_j (u + o)^j o^(p-1-j)
        powers = np.arange(self.degree)
        terms = powers * np.log(square + offset) + powers[::-1] * np.log(offset)
        return float(np.log(square) + np.logaddexp.reduce(terms))

    def _value(self, u: Floats) -> Floats:
        u += self.offset
        return _whole_power(u, self.degree)

    def _pull(self, u: Floats, G: Floats) -> tuple[Floats, float, dict[str, float]]:
        u += self.offset
        W = self.degree * _whole_power(u, self.degree - 1)
        W *= G
        return W, contract(W, u) / self.degree, {"offset": float(np.sum(W))}


def _whole_power(base: Floats, exponent: int) -> Floats:
    """Return base ** exponent by repeated squaring, many times faster than NumPy's power."""
    result = np.ones_like(base)
    while exponent:
        if exponent % 2:
            result *= base
        exponent //= 2
        if exponent:
            base = base * base
    return result
