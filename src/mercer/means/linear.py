"""Means that are linear in coefficients: a constant, and a plane."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.means.base import Mean, check_estimate, coefficient, matrix, n_rows
from mercer.params import Parameter
from mercer.registry import storable

__all__ = ["Constant", "Linear"]

Floats = NDArray[np.float64]


@storable(name="ConstantMean")
class Constant(Mean):
    """m(x) = c, for inputs of any kind.

    Parameters
    ----------
    value : float or array of shape (P,), optional
        The constant, one for all outputs or one each. None: found from the data.
    estimate : {"ml", "integrate"} or None, default "ml"
        Where the constant comes from, see :class:`Mean`. None holds it at `value`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.means import Constant
    >>> Constant(2.0, estimate=None)(np.zeros((3, 1))).ravel()
    array([2., 2., 2.])
    >>> Constant().with_coefficients([[1.5]])
    Constant(value=1.5, estimate='ml')
    """

    def __init__(
        self, value: ArrayLike | Parameter | None = None, estimate: str | None = "ml"
    ) -> None:
        self.estimate = check_estimate(estimate, value is not None, "Constant")
        if value is None:
            self._set()
            return
        if not isinstance(value, Parameter) and np.ndim(value) > 1:
            raise ValueError(f"value must be one number, or one an output, got {value!r}")
        self._set(value=coefficient("value", value, self.estimate))

    @property
    def value(self) -> float | Floats | None:
        """The constant, or one for each output; None if it is not known yet."""
        own = self._parameters.get("value")
        return None if own is None else own.value

    @property
    def coefficients(self) -> Floats | None:
        """The constants, shape (1, P), a copy; None if they are not known yet."""
        return None if self.value is None else np.array(self.value).reshape(1, -1)

    def with_coefficients(self, beta: ArrayLike) -> Self:
        """Return the same mean with constants beta of shape (1, P)."""
        beta = _checked_beta(beta, "Constant", rows=1)
        return type(self)(beta[0] if beta.shape[1] > 1 else beta[0, 0], self.estimate)

    def features(self, X: Any) -> Floats:
        """Return a column of ones."""
        return np.ones((n_rows(X), 1))

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"value": self.value, "estimate": self.estimate}

    def _options(self) -> dict[str, Any]:
        return {"estimate": self.estimate}


@storable(name="LinearMean")
class Linear(Mean):
    """m(x) = a + b'x.

    Parameters
    ----------
    intercept : float or array of shape (P,), optional
        a, one for all outputs or one each.
    slope : array of shape (d,) or (d, P), optional
        b, with a column for each output if there are several. Intercept and slope are given both
        or neither; neither: found from the data.
    estimate : {"ml", "integrate"} or None, default "ml"
        Where the coefficients come from, see :class:`Mean`. None holds them at the values given.

    Examples
    --------
    >>> from mercer.means import Linear
    >>> Linear(1.0, [2.0, -1.0], estimate=None)([[0.0, 0.0], [3.0, 1.0]])
    array([[1.],
           [6.]])
    """

    def __init__(
        self,
        intercept: ArrayLike | Parameter | None = None,
        slope: ArrayLike | Parameter | None = None,
        estimate: str | None = "ml",
    ) -> None:
        if (intercept is None) != (slope is None):
            raise ValueError(
                f"give intercept and slope both or neither, got {intercept=!r}, {slope=!r}"
            )
        self.estimate = check_estimate(estimate, intercept is not None, "Linear")
        if intercept is None or slope is None:
            self._set()
            return
        a = coefficient("intercept", intercept, self.estimate)
        b = coefficient("slope", slope, self.estimate)
        # A `Parameter` is flat, its slopes row by row, as `parameters` shows them.
        rank = 0 if isinstance(intercept, Parameter) else np.ndim(intercept)
        if isinstance(slope, Parameter):
            fits = b.size % a.size == 0
        elif np.ndim(slope) > 1:
            fits = np.shape(slope)[1:] == (a.size,)
        else:
            fits = a.size == 1
        if rank > 1 or not fits:
            raise ValueError(
                "slope must have shape (d,) for one output and (d, P) for an intercept of shape "
                f"(P,), got slope {slope!r} and intercept {intercept!r}"
            )
        if not b.is_vector:
            b = b.replace(value=[b.value])
        self._set(intercept=a, slope=b)

    @property
    def intercept(self) -> float | Floats | None:
        """The intercept, or one for each output; None if it is not known yet."""
        own = self._parameters.get("intercept")
        return None if own is None else own.value

    @property
    def slope(self) -> Floats | None:
        """The slopes, shape (d,) or (d, P); None if they are not known yet."""
        if not self._parameters:
            return None
        intercept, slope = self._parameters["intercept"], np.array(self._parameters["slope"].value)
        return slope.reshape(-1, intercept.size) if intercept.is_vector else slope

    @property
    def coefficients(self) -> Floats | None:
        """Intercepts and slopes, shape (1 + d, P), a copy; None if they are not known yet."""
        if not self._parameters:
            return None
        intercept = np.atleast_1d(self._parameters["intercept"].value)
        slope = np.asarray(self._parameters["slope"].value)
        return np.concatenate([intercept, slope]).reshape(-1, intercept.size)

    def with_coefficients(self, beta: ArrayLike) -> Self:
        """Return the same mean with coefficients beta of shape (1 + d, P), the intercepts first."""
        beta = _checked_beta(beta, "Linear", rows=None)
        if beta.shape[1] == 1:
            return type(self)(beta[0, 0], beta[1:, 0], self.estimate)
        return type(self)(beta[0], beta[1:], self.estimate)

    def features(self, X: Any) -> Floats:
        """Return a column of ones beside X, shape (n, 1 + d)."""
        X = matrix(X)
        beta = self.coefficients
        if beta is not None and beta.shape[0] != 1 + X.shape[1]:
            raise ValueError(f"the mean is of {beta.shape[0] - 1} columns, but X has {X.shape[1]}")
        return np.concatenate([np.ones((X.shape[0], 1)), X], axis=1)

    def pull_features(self, X: Any, G: ArrayLike) -> Floats:
        """Return G without its first column, which is that of the intercept."""
        n, d = matrix(X).shape
        G = np.asarray(G, dtype=float)
        if G.shape != (n, 1 + d):
            raise ValueError(f"G must have shape {(n, 1 + d)}, got {G.shape}")
        return G[:, 1:].copy()

    def _slopes(self, X: Any, beta: Floats) -> Floats:
        n, d = matrix(X).shape
        if beta.shape[0] != 1 + d:
            raise ValueError(f"the mean is of {beta.shape[0] - 1} columns, but X has {d}")
        return np.broadcast_to(beta[1:], (n, d, beta.shape[1]))

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"intercept": self.intercept, "slope": self.slope, "estimate": self.estimate}

    def _options(self) -> dict[str, Any]:
        return {"estimate": self.estimate}


def _checked_beta(beta: ArrayLike, name: str, rows: int | None) -> Floats:
    array = np.array(beta, dtype=float)
    wrong = array.shape[0] != rows if rows and array.ndim else array.size < 2
    if array.ndim != 2 or wrong or not np.all(np.isfinite(array)):
        wanted = "(1, P)" if rows else "(1 + d, P)"
        raise ValueError(
            f"the coefficients of {name} must be finite and of shape {wanted}, got {beta!r}"
        )
    return array
