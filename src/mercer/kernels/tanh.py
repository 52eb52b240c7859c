"""The tanh of inner products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels.dot import Dot
from mercer.kernels.tiles import contract
from mercer.kernels.units import length_bounds
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["Tanh"]

Floats = NDArray[np.float64]


@storable
class Tanh(Dot):
    """tanh(scale u + offset) with u = sum_k x_k x'_k / l_k^2: the papers' neural-network kernel.

    **Not a Mercer kernel**: its matrices may have negative eigenvalues. Laplacian processes and
    relevance vector machines take it as it is; `Flipped` and `EquivalentGP` make a covariance of
    it; `ArcSine` is the covariance of an infinite network.

    Parameters
    ----------
    scale : float or Parameter, default 1.0
        The slope, above 0. With a length scale that is learned, hold it fixed: the two are one.
    offset : float or Parameter, default 0.0
        Any number.
    length_scale : float, array of shape (d,) or Parameter, optional
        Units of the inputs, one or one a column; plain inner products without it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Tanh
    >>> Tanh(scale=0.5, offset=-1.0)(np.array([[1.0, 2.0]]), np.array([[2.0, 1.0]])).round(4)
    array([[0.7616]])
    """

    scale: float
    offset: float

    def __init__(
        self,
        scale: float | Parameter = 1.0,
        offset: float | Parameter = 0.0,
        length_scale: ArrayLike | Parameter | None = None,
    ) -> None:
        real = offset if isinstance(offset, Parameter) else Parameter(offset)
        if real.is_vector:
            raise ValueError(f"offset must be one number, got {offset!r}")
        self._set_scaled(
            length_scale,
            scale=positive("scale", scale, vector=False),
            offset=real.replace(transform="identity"),
        )

    @property
    def is_mercer(self) -> bool:
        """False: no choice of parameters makes every Gram matrix positive semi-definite."""
        return False

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        square = self._mean_square(widths)
        return {
            "scale": (1e-4 / square, 1e4 / square),
            "offset": (-10.0, 10.0),
            "length_scale": length_bounds(widths),
        }

    def _value(self, u: Floats) -> Floats:
        u *= self.scale
        u += self.offset
        return np.asarray(np.tanh(u, out=u))

    def _pull(self, u: Floats, G: Floats) -> tuple[Floats, float, dict[str, float]]:
        t = np.tanh(self.scale * u + self.offset)
        D = G * (1.0 - t) * (1.0 + t)
        others = {"scale": contract(D, u), "offset": float(np.sum(D))}
        return self.scale * D, contract(G, t), others
