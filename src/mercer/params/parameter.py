"""One parameter: its value, and how an optimiser may move it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.params.hyperpriors import Hyperprior
from mercer.registry import storable

__all__ = ["Parameter"]

Floats = NDArray[np.float64]

# What an unbounded parameter may do while nothing is known of the data. Estimators replace these
# by bounds in the units of the data.
_STEEPEST = 700.0  # exp of more overflows
_FLATTEST = 36.0  # from 37 on 1/(1 + exp(-t)) rounds to 1
_WIDEST = {"log": (1e-10, 1e10), "identity": (-np.inf, np.inf), "logit": (1e-6, 1 - 1e-6)}


def _forward(transform: str, x: Floats) -> Floats:
    if transform == "log":
        return np.log(x)
    if transform == "logit":
        return np.log(x) - np.log1p(-x)
    return x.copy()


def _backward(transform: str, t: Floats) -> Floats:
    # What would overflow, underflow or round to an end stays at the edge of what does not.
    if transform == "log":
        return np.exp(np.clip(t, -_STEEPEST, _STEEPEST))
    if transform == "logit":
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(t, -_FLATTEST, _FLATTEST))))
    return t.copy()


def _slope(transform: str, x: Floats) -> Floats:
    """Return dx/dt at x."""
    if transform == "log":
        return x
    if transform == "logit":
        return x * (1.0 - x)
    return np.ones_like(x)


@storable
class Parameter:
    """A number or vector, with what the optimiser must know of it. Immutable.

    Wherever a kernel, likelihood or mean takes a number, it takes a `Parameter` instead, to hold
    it fixed, bound it, or give it a hyperprior.

    Parameters
    ----------
    value : float or array of shape (k,)
        The value, copied.
    bounds : (low, high), optional
        The interval the optimiser may use, in natural units; numbers or vectors. Without it the
        bounds come from the data. A search that starts outside begins at the nearest end.
    prior : Hyperprior, optional
        A density over the value; the evidence is then maximised times this density.
    fixed : bool, default False
        Whether the optimiser must leave the value alone.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> from mercer.params import LogNormal, Parameter
    >>> RBF(Parameter(2.0, bounds=(0.1, 10.0), prior=LogNormal(0.0, 1.0))).theta.round(4)
    array([0.6931])
    >>> RBF(Parameter(2.0, fixed=True)).theta
    array([], dtype=float64)
    """

    __slots__ = ("_value", "bounds", "fixed", "prior", "transform")

    def __init__(
        self,
        value: ArrayLike,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        prior: Hyperprior | None = None,
        fixed: bool = False,
        *,
        transform: str = "identity",
    ) -> None:
        try:
            array = np.array(value, dtype=float)
        except (TypeError, ValueError):
            array = np.array(np.nan)
        if array.ndim > 1 or array.size == 0 or not np.all(np.isfinite(array)):
            raise ValueError(
                f"a parameter must be a finite number or a vector of them, got {value!r}"
            )
        if transform not in _WIDEST:
            raise ValueError(f"transform must be one of {sorted(_WIDEST)}, got {transform!r}")
        if prior is not None and not isinstance(prior, Hyperprior):
            raise ValueError(f"prior must be a hyperprior such as LogNormal(0, 1), got {prior!r}")
        array = array + 0.0  # no negative zero
        array.setflags(write=False)
        if prior is not None and not _fits(prior, array):
            raise ValueError(f"{prior!r} does not fit a parameter of {array.size} components")
        put = object.__setattr__
        put(self, "_value", array)
        put(self, "bounds", None if bounds is None else _checked_bounds(bounds, array))
        put(self, "prior", prior)
        put(self, "fixed", bool(fixed))
        put(self, "transform", transform)

    _value: Floats
    bounds: tuple[Any, Any] | None
    prior: Hyperprior | None
    fixed: bool
    transform: str

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Parameter is immutable; use replace({name}=...)")

    def __reduce__(self) -> Any:
        return (Parameter.from_state, (self.to_state(),))

    @property
    def value(self) -> float | Floats:
        """The value: a float, or a read-only vector."""
        return float(self._value) if self._value.ndim == 0 else self._value

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return self._value.size

    @property
    def is_vector(self) -> bool:
        """Whether the value is a vector (of any length)."""
        return self._value.ndim == 1

    @property
    def is_free(self) -> bool:
        """Whether the optimiser may move it.

        A value at the edge of its domain (an offset of 0, a correlation of 0 or 1) has no finite
        image under the transform and is held.
        """
        if self.fixed:
            return False
        if self.transform == "log":
            return bool(np.all(self._value > 0))
        if self.transform == "logit":
            return bool(np.all((self._value > 0) & (self._value < 1)))
        return True

    @property
    def theta(self) -> Floats:
        """The transformed value as a new flat vector (whether free or not)."""
        return _forward(self.transform, np.atleast_1d(self._value))

    @property
    def theta_bounds(self) -> Floats:
        """The bounds in the units of `theta`, shape (size, 2)."""
        low, high = _WIDEST[self.transform] if self.bounds is None else self.bounds
        out = np.empty((self.size, 2))
        out[:, 0] = _forward(self.transform, np.broadcast_to(low, self.size))
        out[:, 1] = _forward(self.transform, np.broadcast_to(high, self.size))
        return out

    def with_theta(self, theta: Floats) -> Parameter:
        """Return a copy holding the value whose transform is given."""
        value = _backward(self.transform, np.asarray(theta, dtype=float))
        return self.replace(value=value if self.is_vector else value[0])

    def to_theta_gradient(self, gradient: ArrayLike) -> Floats:
        """Chain dL/dvalue to dL/dtheta."""
        value = np.atleast_1d(self._value)
        return np.asarray(np.atleast_1d(gradient) * _slope(self.transform, value))

    def log_prior(self) -> float:
        """Return the log density of the hyperprior at the value, 0 without one."""
        if self.prior is None:
            return 0.0
        return float(np.sum(self.prior.log_density(np.atleast_1d(self._value))))

    def log_prior_gradient(self) -> Floats:
        """Return the derivative of `log_prior` in theta."""
        if self.prior is None:
            return np.zeros(self.size)
        return self.to_theta_gradient(self.prior.derivative(np.atleast_1d(self._value)))

    def draw_theta(self, rng: np.random.Generator) -> Floats:
        """Return a random value in theta's units: uniform within 2 of the current one."""
        return self.theta + rng.uniform(-2.0, 2.0, self.size)

    def replace(self, **changes: Any) -> Parameter:
        """Return a copy with some of value, bounds, prior, fixed and transform changed."""
        return Parameter(**(self.to_state() | changes))

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "value": self.value,
            "bounds": self.bounds,
            "prior": self.prior,
            "fixed": self.fixed,
            "transform": self.transform,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Parameter:
        """Rebuild from `to_state`."""
        return cls(**state)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parameter):
            return NotImplemented
        return (
            self.is_vector == other.is_vector
            and np.array_equal(self._value, other._value)
            and (self.bounds is None) == (other.bounds is None)
            and (self.bounds is None or np.array_equal(self.theta_bounds, other.theta_bounds))
            and (self.prior, self.fixed, self.transform)
            == (other.prior, other.fixed, other.transform)
        )

    def __hash__(self) -> int:
        return hash((self._value.tobytes(), self.fixed, self.transform))

    def __repr__(self) -> str:
        parts = [self.show()]
        if self.bounds is not None:
            parts.append(f"bounds={self.bounds!r}")
        if self.prior is not None:
            parts.append(f"prior={self.prior!r}")
        if self.fixed:
            parts.append("fixed=True")
        return f"Parameter({', '.join(parts)})"

    def show(self) -> str:
        """Return the value alone, to four digits, for the repr of whatever has this parameter."""
        if self.is_vector:
            return f"[{', '.join(f'{v:.4g}' for v in self._value)}]"
        return f"{float(self._value):.4g}"


def _fits(prior: Hyperprior, value: Floats) -> bool:
    sizes = {np.size(argument) for argument in prior.to_state().values()}
    return sizes <= {1, value.size}


def _checked_bounds(bounds: tuple[ArrayLike, ArrayLike], value: Floats) -> tuple[Any, Any]:
    try:
        low, high = (np.array(b, dtype=float) for b in bounds)
        np.broadcast_to(low, value.shape)
        np.broadcast_to(high, value.shape)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be a pair (low, high), each a number or one a component, got {bounds!r}"
        ) from None
    if not np.all(low < high) or np.any(np.isnan(low)) or np.any(np.isnan(high)):
        raise ValueError(f"bounds must satisfy low < high, got {bounds!r}")
    for bound in (low, high):
        bound.setflags(write=False)
    return (
        float(low) if low.ndim == 0 else low,
        float(high) if high.ndim == 0 else high,
    )
