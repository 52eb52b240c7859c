"""Bounds and starts of a kernel's parameters in the units of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.assembly import Assembled
from mercer.params import Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["InUnits", "length_bounds", "within_doubles"]

Floats = NDArray[np.float64]


def length_bounds(widths: Floats) -> tuple[Floats, Floats]:
    """Suggest an interval for each column's length scale, from that column's spread."""
    return 1e-3 * widths, 1e3 * widths


class InUnits(Assembled):
    """What a kernel says of its parameters' sizes, given those of columns and targets."""

    # Parameters of which a value far from what the data suggest says nothing but other units.
    _in_units: frozenset[str] = frozenset()
    _children: tuple[Any, ...]

    def with_bounds_from(self, widths: Floats, variance: float) -> Self:
        """Return a copy whose unbounded parameters are bounded in the units of the data.

        The bounds are widened to hold the values that the kernel has; see `with_start_from`.

        Parameters
        ----------
        widths : array of shape (d,)
            The standard deviation of each column of the inputs.
        variance : float
            The variance of the targets.
        """
        suggested = self._bounds_from(widths, variance)
        own = {
            name: p.replace(bounds=_around(suggested[name], p))
            for name, p in self._parameters.items()
            if p.bounds is None and p.is_free and name in suggested
        }
        variances = self._variances_inside(widths, variance)
        children = tuple(
            child.with_bounds_from(widths, each)
            for child, each in zip(self._children, variances, strict=True)
        )
        return self._with(own, children)

    def with_start_from(self, widths: Floats, variance: float) -> Self:
        """Return a copy from which a search may begin, in the units of the data.

        That is the kernel as it is, but for the variance of a `Scaled` kernel and the offset of a
        `Polynomial`. Where these are free, have neither bounds nor a hyperprior, and lie beyond
        the bounds that the data suggest, they are moved to the middle: 1.0 then says nothing of
        targets in the thousands. From the far end of many powers of 10 the evidence would lead to
        the nearest poor optimum.

        Parameters
        ----------
        widths : array of shape (d,)
            The standard deviation of each column of the inputs.
        variance : float
            The variance of the targets.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.kernels import RBF
        >>> kernel = 1.0 * RBF(2.0)
        >>> kernel.with_start_from(np.ones(1), 100.0), kernel.with_start_from(np.ones(1), 1e6)
        (1 * RBF(length_scale=2), 1e+06 * RBF(length_scale=2))
        """
        new = self
        for i in range(len(self._children)):
            # one after the other: of two factors the first may bring the whole to its size
            each = new._variances_inside(widths, variance)[i]
            children = list(new._children)
            children[i] = children[i].with_start_from(widths, each)
            new = new._with({}, tuple(children))
        suggested = new._bounds_from(widths, variance)
        own = {
            name: p.replace(value=_drawn_in(suggested[name], p))
            for name, p in new._parameters.items()
            if name in new._in_units and p.is_free and p.bounds is None and p.prior is None
        }
        return new._with(own, new._children)

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        """Suggest (low, high) for parameters by name, in their natural units."""
        return {}

    def _variances_inside(self, widths: Floats, variance: float) -> list[float]:
        """Return the variance that each child would have if the whole had that of the targets."""
        return [variance] * len(self._children)

    def _log_size(self, widths: Floats) -> float:
        """Return the logarithm of about what k(x, x) is, for centred columns of these widths.

        A constant among its terms is left out: what counts is how far functions vary.
        """
        return 0.0


def within_doubles(log: float) -> float:
    """Return exp(log), cut off where bounds a few powers of 10 away would be no doubles."""
    return float(np.exp(np.clip(log, -670.0, 670.0)))


def _drawn_in(bounds: tuple[float, float], parameter: Parameter) -> float:
    """Return the value if it lies within the bounds, else their middle."""
    low, high = bounds
    value = float(parameter.value)
    return value if low <= value <= high else float(np.sqrt(low) * np.sqrt(high))


def _around(bounds: tuple[Any, Any], parameter: Parameter) -> tuple[Any, Any]:
    """Widen suggested bounds so that they contain the value a user has given."""
    value = np.asarray(parameter.value)
    near, far = np.minimum(value / 10.0, value * 10.0), np.maximum(value / 10.0, value * 10.0)
    low, high = np.minimum(bounds[0], near), np.maximum(bounds[1], far)
    if not parameter.is_vector:
        return float(np.min(low)), float(np.max(high))
    return np.broadcast_to(low, value.shape), np.broadcast_to(high, value.shape)
