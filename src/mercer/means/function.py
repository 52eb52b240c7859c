"""A mean that the user computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.linalg.differences import row_slopes
from mercer.means.base import Mean, matrix, n_rows
from mercer.registry import storable

__all__ = ["Function"]

Floats = NDArray[np.float64]


@storable(name="FunctionMean")
class Function(Mean):
    """m(x) = f(x), a known function without parameters, such as a simulator's answer.

    Parameters
    ----------
    f : callable
        f(X) gives the mean at all rows of X, shape (n,) or, for P outputs, (n, P). A model that
        is to be saved needs a function with a name, not a lambda; loading it asks for the
        function again.

    Notes
    -----
    `gradient` is by central differences, with steps of 6e-6 max(1, abs(x)) in each column (so
    inputs that vary on a much smaller scale than 1 should be rescaled): about ten digits for a
    smooth f, and 2 d calls of it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.means import Function
    >>> def square(X):
    ...     return X[:, 0] ** 2
    >>> Function(square)(np.array([[1.0], [3.0]])).ravel()
    array([1., 9.])
    """

    def __init__(self, f: Callable[[Any], Any]) -> None:
        if not callable(f):
            raise ValueError(f"f must be a function of X, got {f!r}")
        self.f = f
        self._set()

    def _fixed(self, X: Any) -> Floats:
        n = n_rows(X)
        given = self.f(X)
        try:
            value = np.array(given, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"the mean function must return numbers, got {given!r}") from None
        if value.ndim not in (1, 2) or value.shape[0] != n or (value.ndim == 2 and not value.size):
            raise ValueError(
                f"the mean function must return shape ({n},) or ({n}, P) for {n} rows, got shape "
                f"{value.shape}"
            )
        if not np.all(np.isfinite(value)):
            bad = np.flatnonzero(~np.isfinite(value.reshape(n, -1)).all(axis=1))
            raise ValueError(
                f"the mean function must return finite numbers, got NaN or infinity in row {bad[0]}"
            )
        return value.reshape(n, -1) if value.ndim == 1 else value

    def _fixed_gradient(self, X: Any) -> Floats:
        return np.stack(list(row_slopes(self._fixed, matrix(X))), axis=1)

    def _options(self) -> dict[str, Any]:
        return {"f": self.f}
