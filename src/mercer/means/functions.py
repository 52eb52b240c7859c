"""A mean that is linear in functions of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.linalg.differences import pull_rows
from mercer.means.base import Mean, check_estimate, coefficient, matrix, n_rows
from mercer.params import Parameter
from mercer.registry import storable

__all__ = ["Functions"]

Floats = NDArray[np.float64]


@storable(name="FunctionsMean")
class Functions(Mean):
    """m(x) = f(x)' beta: functions that are given, with coefficients that are found.

    Parameters
    ----------
    f : callable
        f(X) gives the functions at all rows of X, shape (n, q). A model that is to be saved needs a
        function with a name, not a lambda; loading it asks for the function again.
    columns : array of whole numbers, optional
        Which of the q functions there are; all without it.
    rest : Mean, optional
        Another mean, whose regressors come after these, and whose fixed part is added.
    beta : array of shape (r,) or (r, P), optional
        The coefficients, those of `rest` last. None: found from the data.
    n_outputs : int, optional
        P, where `beta` is flat, row by row.
    estimate : {"ml", "integrate"} or None, default "ml"
        Where the coefficients come from, see :class:`Mean`. None holds them at the values given.

    Notes
    -----
    Derivatives in x are by central differences, as those of `Function`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.means import Functions
    >>> def waves(X):
    ...     return np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0])])
    >>> Functions(waves, beta=[2.0, -1.0], estimate=None)(np.array([[0.0]]))
    array([[-1.]])
    """

    def __init__(
        self,
        f: Callable[[Any], Any],
        columns: ArrayLike | None = None,
        rest: Mean | None = None,
        beta: ArrayLike | Parameter | None = None,
        n_outputs: int | None = None,
        estimate: str | None = "ml",
    ) -> None:
        if not callable(f):
            raise ValueError(f"f must be a function of X, got {f!r}")
        if rest is not None and not isinstance(rest, Mean):
            raise ValueError(f"rest must be a mean, got {rest!r}")
        self.f, self.rest = f, rest
        self.columns = None if columns is None else _numbers(columns)
        self.estimate = check_estimate(estimate, beta is not None, "Functions")
        self.n_outputs = 1 if n_outputs is None else int(n_outputs)
        if beta is None:
            self._set()
            return
        if not isinstance(beta, Parameter) and np.ndim(beta) == 2:
            self.n_outputs = int(np.shape(beta)[1])
            beta = np.ravel(beta)
        own = coefficient("beta", beta, self.estimate)
        if not own.is_vector:
            own = own.replace(value=[own.value])
        if self.n_outputs < 1 or own.size % self.n_outputs:
            raise ValueError(
                f"beta must have a row for each function and a column for each of {self.n_outputs} "
                f"outputs, got {own.size} numbers"
            )
        self._set(beta=own)

    @property
    def beta(self) -> Floats | None:
        """The coefficients, flat; None if they are not known yet."""
        own = self._parameters.get("beta")
        return None if own is None else np.array(own.value)

    @property
    def coefficients(self) -> Floats | None:
        """The coefficients, shape (r, P), a copy; None if they are not known yet."""
        return None if self.beta is None else self.beta.reshape(-1, self.n_outputs)

    def with_coefficients(self, beta: ArrayLike) -> Self:
        """Return the same mean with coefficients beta of shape (r, P)."""
        array = np.array(beta, dtype=float)
        if array.ndim != 2 or not array.size or not np.all(np.isfinite(array)):
            raise ValueError(
                f"the coefficients of Functions must be finite and of shape (r, P), got {beta!r}"
            )
        return type(self)(self.f, self.columns, self.rest, array, None, self.estimate)

    def features(self, X: Any) -> Floats:
        """Return the functions at the rows of X, then the regressors of `rest`, shape (n, r)."""
        own = self._own(X)
        if self.columns is not None:
            own = own[:, self.columns]
        H = own if self.rest is None else np.hstack([own, self.rest.features(X)])
        beta = self.coefficients
        if beta is not None and len(beta) != H.shape[1]:
            raise ValueError(f"the mean has {len(beta)} coefficients, but {H.shape[1]} functions")
        return H

    def pull_features(self, X: Any, G: ArrayLike) -> Floats:
        """Return the derivative of sum(G * features(X)) in X, by central differences."""
        return pull_rows(self.features, matrix(X), np.asarray(G, dtype=float))

    def _own(self, X: Any) -> Floats:
        n, given = n_rows(X), self.f(X)
        try:
            values = np.array(given, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"the functions must return numbers, got {given!r}") from None
        if values.ndim != 2 or values.shape[0] != n:
            raise ValueError(
                f"the functions must return shape ({n}, q) for {n} rows, a column for each, got "
                f"shape {values.shape}"
            )
        if not np.all(np.isfinite(values)):
            bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
            raise ValueError(
                f"the functions must return finite numbers, got NaN or infinity in row {bad[0]}"
            )
        if self.columns is not None and np.max(self.columns, initial=-1) >= values.shape[1]:
            raise ValueError(
                f"columns name function {int(np.max(self.columns))}, and there are "
                f"{values.shape[1]}, counted from 0"
            )
        return values

    def _fixed(self, X: Any) -> Floats:
        return super()._fixed(X) if self.rest is None else self.rest._fixed(X)

    def _fixed_gradient(self, X: Any) -> Floats:
        return super()._fixed_gradient(X) if self.rest is None else self.rest._fixed_gradient(X)

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**self._options(), **self._parameters}

    def _options(self) -> dict[str, Any]:
        return {
            "f": self.f,
            "columns": self.columns,
            "rest": self.rest,
            "n_outputs": self.n_outputs,
            "estimate": self.estimate,
        }


def _numbers(columns: ArrayLike) -> NDArray[np.intp]:
    array = np.asarray(columns)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or np.any(array < 0):
        raise ValueError(f"columns must be whole numbers from 0, got {columns!r}")
    return array.astype(np.intp)
