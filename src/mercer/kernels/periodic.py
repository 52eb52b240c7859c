"""The periodic kernel, as an RBF on the circle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels.base import BlockGradient, Kernel
from mercer.kernels.stationary import RBF
from mercer.kernels.tiles import origin
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["Periodic"]

Floats = NDArray[np.float64]


@storable
class Periodic(Kernel):
    """exp(-2 sum_k sin^2(pi (x_k - x'_k)/p_k) / l_k^2): functions that repeat with period p.

    Parameters
    ----------
    length_scale : float, array of shape (d,) or Parameter, default 1.0
        Smoothness within a period, one or one a column.
    periodicity : float, array of shape (d,) or Parameter, default 1.0
        The period, one or one a column, in the units of the inputs.

    Notes
    -----
    Each column is wound around a circle, u = (cos(2 pi x/p), sin(2 pi x/p)), and an RBF taken
    there: |u - u'|^2 = 4 sin^2(pi (x - x')/p). It is a Mercer kernel for any number of columns,
    which the same formula with the distance |x - x'| inside the sine is not.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Periodic
    >>> Periodic(periodicity=3.0)(np.array([[0.0]]), np.array([[1.5], [3.0]]).copy()).round(4)
    array([[0.1353, 1.    ]])
    """

    is_infinitely_divisible = True
    length_scale: float | Floats
    periodicity: float | Floats

    def __init__(
        self,
        length_scale: ArrayLike | Parameter = 1.0,
        periodicity: ArrayLike | Parameter = 1.0,
    ) -> None:
        self._set(
            length_scale=positive("length_scale", length_scale),
            periodicity=positive("periodicity", periodicity),
        )

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        return {"length_scale": (1e-2, 1e2), "periodicity": (1e-3 * widths, 1e2 * widths)}

    def start_intervals(self, X: Floats) -> Floats:
        """Return where a search may begin, (low, high) for each component of theta.

        Only for periods, since the evidence has a narrow peak at the right one and leads there
        from nearby only; NaN for the others. It is the whole of the user's bounds; without any it
        is 0.03 s to 3 s, s the standard deviation of a column, and no less than 7 s/n, two steps
        of n rows that are evenly spread: the data do not show shorter periods, or longer ones once.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.kernels import Periodic
        >>> np.exp(Periodic().start_intervals(np.arange(100.0)[:, None])).round(1)
        array([[ nan,  nan],
               [ 2. , 86.6]])
        """
        lengths, periods = self._parameters["length_scale"], self._parameters["periodicity"]
        parts = [np.full((lengths.size, 2), np.nan)] if lengths.is_free else []
        if periods.is_free and periods.bounds is None:
            s = np.where(np.ptp(X, axis=0) > 0, np.std(X, axis=0), 1.0)
            low, high = np.clip(7.0 / len(X), 0.03, 0.95) * s, 3.0 * s
            whole = (low, high) if periods.is_vector else (np.min(low), np.max(high))
            periods = periods.replace(bounds=whole)
        if periods.is_free:
            parts.append(periods.theta_bounds)
        return np.concatenate([*parts, np.empty((0, 2))])

    # Tiles are seen from a point near 0 of theirs: far from 0, angles would have few digits.

    def _angles(self, A: Floats) -> Floats:
        return 2.0 * np.pi * A / self.periodicity

    def _wind(self, A: Floats) -> Floats:
        """Return (cos, sin) of the angles, shape (a, 2d)."""
        # Whole periods are taken off first, which is exact; an angle of many would have few digits.
        angles = self._angles(np.fmod(A, self.periodicity))
        return np.hstack([np.cos(angles), np.sin(angles)])

    def _circle(self, d: int) -> RBF:
        scales = np.broadcast_to(self.length_scale, d)
        return RBF(np.concatenate([scales, scales]))

    def _block(self, A: Floats, B: Floats) -> Floats:
        seen_from = origin(A)
        A, B = A - seen_from, B - seen_from
        return self._circle(A.shape[1])._block(self._wind(A), self._wind(B))

    def _diag(self, A: Floats) -> Floats:
        return np.ones(A.shape[0])

    def _unwind(self, U: Floats, dU: Floats) -> Floats:
        """Chain the derivative in U = (cos, sin) to that in the angle."""
        d = U.shape[1] // 2
        return dU[:, d:] * U[:, :d] - dU[:, :d] * U[:, d:]

    def _block_pullback(self, A: Floats, B: Floats, G: Floats, inputs: bool) -> BlockGradient:
        seen_from = origin(A)
        A, B = A - seen_from, B - seen_from
        d = A.shape[1]
        wound_A, wound_B = self._wind(A), self._wind(B)
        part = self._circle(d)._block_pullback(wound_A, wound_B, G, inputs=True)
        assert part.A is not None and part.B is not None
        dangle_A, dangle_B = self._unwind(wound_A, part.A), self._unwind(wound_B, part.B)
        # part.theta is in log l, the cosine and the sine sharing one length scale
        dlog = part.theta[:d] + part.theta[d:]
        # The derivative in the period grows with the number of periods: angles as they are.
        dperiod = -np.sum(dangle_A * self._angles(A), axis=0)
        dperiod -= np.sum(dangle_B * self._angles(B), axis=0)
        theta = self._theta_gradient({"length_scale": dlog, "periodicity": dperiod}, {})
        if not inputs:
            return BlockGradient(theta, None, None, part.inner)
        turn = 2.0 * np.pi / self.periodicity
        return BlockGradient(theta, turn * dangle_A, turn * dangle_B, part.inner)

    def _diag_pullback(self, A: Floats, g: Floats, inputs: bool) -> BlockGradient:
        dA = np.zeros(A.shape) if inputs else None
        return BlockGradient(np.zeros(self.theta.size), dA, None, float(np.sum(g)))
