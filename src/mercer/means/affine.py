"""The part of another mean that has no coefficients to be found, in other units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.means.base import Mean
from mercer.registry import storable

__all__ = ["Affine"]

Floats = NDArray[np.float64]


@storable(name="AffineMean")
class Affine(Mean):
    """m(x) = slope m'(x) + offset for another mean m', without parameters.

    Parameters
    ----------
    mean : Mean
        m'. Of one whose coefficients are estimated the fixed part is taken.
    slope, offset : float
    output : int, optional
        Which of the outputs of `mean`, counted from 0; all without it. A mean of one output serves
        every one.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.means import Affine, Linear
    >>> Affine(Linear(1.0, [2.0], estimate=None), 3.0, -1.0)(np.array([[0.0], [1.0]])).ravel()
    array([2., 8.])
    """

    def __init__(
        self, mean: Mean, slope: float = 1.0, offset: float = 0.0, output: int | None = None
    ) -> None:
        if not isinstance(mean, Mean):
            raise ValueError(f"mean must be a mean, got {mean!r}")
        if not (np.isfinite(slope) and np.isfinite(offset)):
            raise ValueError(f"slope and offset must be finite, got {slope!r} and {offset!r}")
        self.mean, self.slope, self.offset = mean, float(slope), float(offset)
        self.output = None if output is None else int(output)
        self._set()

    def _fixed(self, X: Any) -> Floats:
        held = self.mean.estimate is None
        values = self.mean(X) if held else self.mean.fixed_part(X)
        return np.asarray(self.slope * self._own(values) + self.offset)

    def _fixed_gradient(self, X: Any) -> Floats:
        held = self.mean.estimate is None
        values = self.mean.gradient(X) if held else self.mean._fixed_gradient(X)
        return np.asarray(self.slope * self._own(values))

    def _own(self, values: Floats) -> Floats:
        """Return the outputs that are wanted, on the last axis."""
        if self.output is None or values.shape[-1] == 1:
            return values
        if not 0 <= self.output < values.shape[-1]:
            raise ValueError(
                f"output {self.output} is wanted, and the mean is of {values.shape[-1]}"
            )
        return values[..., self.output : self.output + 1]

    def _options(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "slope": self.slope,
            "offset": self.offset,
            "output": self.output,
        }
