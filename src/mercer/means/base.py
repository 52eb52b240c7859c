"""The interface of mean functions, and the arithmetic that they share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.params import Parameter, Parametrised

__all__ = ["Mean"]

Floats = NDArray[np.float64]

_ESTIMATES = ("ml", "integrate")


class Mean(Parametrised):
    """A mean m(x) = m0(x) + h(x)' beta for each of P outputs.

    m0 is a part without coefficients (`fixed_part`), h(x) are r regressors (`features`), and beta
    are coefficients of shape (r, P), one column an output. `estimate` says where they come from:

    - "ml": from the data, by generalised least squares within the evidence. Values that are
      already there are a start, or the result.
    - "integrate": they have a flat prior and are integrated out. Values that are there are the
      posterior mean.
    - None: they are held at the values given.

    Until coefficients are known the mean is m0 alone: a model that was never fitted predicts from
    its prior with mean 0.

    `theta` holds the coefficients, row by row, if they are known and `estimate` is "ml"; it is
    empty otherwise.

    Subclasses give `features`, `pull_features`, `_fixed` and `_fixed_gradient`, as far as these
    are not zero, and `with_coefficients`.
    """

    estimate: str | None = None

    def __call__(self, X: Any, n_outputs: int | None = None) -> Floats:
        """Return the mean at the rows of X, shape (n, P).

        `n_outputs` is needed only where the mean does not know P itself; a mean of one output
        then serves every output.
        """
        value = self._fixed(X)
        beta = self.coefficients
        if beta is not None and beta.shape[0]:
            value = value + self.features(X) @ beta
        return self._spread(value, n_outputs)

    def gradient(self, X: Any, n_outputs: int | None = None) -> Floats:
        """Return the derivative of the mean in x at the rows of X, shape (n, d, P)."""
        value = self._fixed_gradient(X)
        beta = self.coefficients
        if beta is not None and beta.shape[0]:
            value = value + self._slopes(X, beta)
        return self._spread(value, n_outputs)

    def fixed_part(self, X: Any, n_outputs: int | None = None) -> Floats:
        """Return m0 at the rows of X, shape (n, P): the mean less its regressors."""
        return self._spread(self._fixed(X), n_outputs)

    def features(self, X: Any) -> Floats:
        """Return the regressors h at the rows of X, shape (n, r)."""
        return np.empty((n_rows(X), 0))

    def pull_features(self, X: Any, G: ArrayLike) -> Floats:
        """Return the derivative of sum(G * features(X)) in X, shape (n, d); G is (n, r)."""
        return np.zeros(matrix(X).shape)

    @property
    def coefficients(self) -> Floats | None:
        """The coefficients beta, shape (r, P), a copy; None if they are not known yet."""
        return None

    def with_coefficients(self, beta: ArrayLike) -> Self:
        """Return the same mean with coefficients beta of shape (r, P)."""
        if np.size(beta):
            raise ValueError(
                f"{type(self).__name__} has no coefficients, got an array of shape {np.shape(beta)}"
            )
        return self

    def pullback(self, X: Any, G: ArrayLike) -> Floats:
        """Chain dL/dm at the rows of X, shape (n, P), to dL/dtheta."""
        if not self.theta.size:
            return np.empty(0)
        beta = self.coefficients
        assert beta is not None
        gradient = self.features(X).T @ np.asarray(G, dtype=float)
        # One column of coefficients that serves all outputs collects the sum.
        return np.ravel(gradient if beta.shape[1] > 1 else gradient.sum(axis=1))

    def _slopes(self, X: Any, beta: Floats) -> Floats:
        """Return the derivative of h(x)' beta in x, shape (n, d, P)."""
        n = n_rows(X)
        columns = [self.pull_features(X, np.broadcast_to(b, (n, b.size))) for b in beta.T]
        return np.stack(columns, axis=2)

    def _fixed(self, X: Any) -> Floats:
        """Return m0, shape (n, 1) or (n, P)."""
        return np.zeros((n_rows(X), 1))

    def _fixed_gradient(self, X: Any) -> Floats:
        """Return the derivative of m0 in x, shape (n, d, 1) or (n, d, P)."""
        return np.zeros((*matrix(X).shape, 1))

    def _spread(self, value: Floats, n_outputs: int | None) -> Floats:
        """Repeat the last axis for each output, if it is one for all."""
        own = value.shape[-1]
        if n_outputs is None or own == n_outputs:
            return value
        if own != 1:
            raise ValueError(f"the mean is of {own} outputs, but {n_outputs} are wanted")
        return np.repeat(value, n_outputs, axis=-1)

    def __repr__(self) -> str:
        state = self.to_state().items()
        parts = [f"{k}={_show(v)}" for k, v in state if v is not None or k == "estimate"]
        return f"{type(self).__name__}({', '.join(parts)})"


def check_estimate(estimate: Any, known: bool, name: str) -> str | None:
    """Return a checked `estimate` for a mean whose coefficients are known or not."""
    if estimate is not None and not (isinstance(estimate, str) and estimate in _ESTIMATES):
        raise ValueError(f'estimate must be "ml", "integrate" or None, got {estimate!r}')
    if estimate is None and not known:
        raise ValueError(
            f'{name}: with estimate=None the value must be given; estimate="ml" finds it'
        )
    return None if estimate is None else str(estimate)


def coefficient(name: str, given: ArrayLike | Parameter, estimate: str | None) -> Parameter:
    """Return the parameter of a coefficient: free if it is estimated by "ml", else held.

    Bounds and hyperpriors are refused, since least squares would pass over them.
    """
    if isinstance(given, Parameter):
        if given.bounds is not None or given.prior is not None:
            raise ValueError(f"{name} takes no bounds and no hyperprior, got {given!r}")
        if given.fixed and estimate == "ml":
            raise ValueError(f"{name} is fixed and to be estimated; say estimate=None to hold it")
        given = given.value
    try:
        array = np.array(given, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if not np.all(np.isfinite(array)) or array.size == 0:
        raise ValueError(f"{name} must be a finite number or an array of them, got {given!r}")
    flat = array.ravel() if array.ndim else array
    return Parameter(flat, fixed=estimate != "ml", transform="identity")


def n_rows(X: Any) -> int:
    """Return the number of rows of an array or of a list of any objects."""
    shape = getattr(X, "shape", None)
    return len(X) if shape is None else int(shape[0])


def matrix(X: Any) -> Floats:
    """Return X as a finite float array (n, d), or say what it is instead."""
    try:
        X = np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("this mean needs inputs that are numbers") from None
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n, d), got shape {X.shape}")
    if not np.all(np.isfinite(X)):
        raise ValueError("X must be finite, got NaN or infinity in it")
    return np.asarray(X)


def _show(value: Any) -> str:
    if isinstance(value, float | np.ndarray):
        array = np.asarray(value)
        text = np.array2string(
            array, separator=", ", threshold=20, formatter={"float": lambda v: f"{v:.4g}"}
        )
        return " ".join(text.split())  # in one line
    return str(getattr(value, "__name__", None) or repr(value))
