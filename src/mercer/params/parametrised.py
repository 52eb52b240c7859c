"""What kernels, likelihoods and means share: named parameters and one flat vector."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.params.named import Named
from mercer.params.parameter import Parameter

__all__ = ["Parametrised", "positive"]

Floats = NDArray[np.float64]


def positive(
    name: str, given: Any, *, zero: bool = False, vector: bool = True, transform: str = "log"
) -> Parameter:
    """Make the `Parameter` of a positive quantity from a number, a vector or a `Parameter`.

    `zero` permits 0 as well (which is then held); `vector` permits more than one component.
    """
    parameter = given if isinstance(given, Parameter) else Parameter(given)
    values = np.atleast_1d(parameter.value)
    if np.any(values < 0) or (not zero and np.any(values == 0)):
        least = "at least 0" if zero else "positive"
        raise ValueError(f"{name} must be {least}, got {given!r}")
    if parameter.is_vector and not vector:
        raise ValueError(f"{name} must be one number, got {given!r}")
    if transform == "logit" and np.any(values > 1):
        raise ValueError(f"{name} must be at most 1, got {given!r}")
    bounds = parameter.bounds
    if bounds is not None and np.any(np.asarray(bounds[0]) <= 0):
        raise ValueError(f"the lower bound of {name} must be positive, got {bounds[0]!r}")
    if bounds is not None and transform == "logit" and np.any(np.asarray(bounds[1]) >= 1):
        raise ValueError(f"the upper bound of {name} must be below 1, got {bounds[1]!r}")
    return parameter.replace(transform=transform)


class Parametrised(Named):
    """An immutable object with named parameters of its own, and perhaps with children.

    Subclasses call `_set` once in their constructor. Everything about flat vectors is written
    here: `theta` runs over the object's own free parameters, then over its children's.
    """

    _children: tuple[Parametrised, ...]

    def _set(self, *children: Parametrised, **parameters: Parameter) -> None:
        self._parameters = parameters
        self._children = children

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and "_parameters" in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__} objects do not change: make a new one, with "
                f"with_parameters({name}=...) if {name} is a parameter"
            )
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} objects do not change: {name} stays")

    def __getattr__(self, name: str) -> Any:
        # Only reached when normal look-up fails: parameters read as plain values.
        if not name.startswith("_"):
            parameters = self.__dict__.get("_parameters", {})
            if name in parameters:
                return parameters[name].value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def parameters(self) -> dict[str, Parameter]:
        """This object's own parameters by name (a copy; children's are on the children)."""
        return dict(self._parameters)

    @property
    def theta(self) -> Floats:
        """The free parameters as one new flat vector, logarithms where positive."""
        own = [p.theta for p in self._parameters.values() if p.is_free]
        return np.concatenate([*own, *(c.theta for c in self._children), np.empty(0)])

    @property
    def bounds(self) -> Floats:
        """The optimiser's bounds on `theta`, shape (p, 2)."""
        own = [p.theta_bounds for p in self._parameters.values() if p.is_free]
        return np.concatenate([*own, *(c.bounds for c in self._children), np.empty((0, 2))])

    @property
    def parameter_names(self) -> list[str]:
        """A name for each component of `theta`."""
        names = []
        for name, p in self._parameters.items():
            if p.is_free:
                names += [f"{name}[{i}]" for i in range(p.size)] if p.is_vector else [name]
        for label, child in zip(self._labelled(), self._children, strict=True):
            names += [f"{label}.{n}" for n in child.parameter_names]
        return names

    def with_theta(self, theta: ArrayLike) -> Self:
        """Return a new object of the same form with these free parameters."""
        theta = np.array(theta, dtype=float)
        if theta.shape != self.theta.shape or not np.all(np.isfinite(theta)):
            raise ValueError(
                f"theta must be a finite vector of shape {self.theta.shape}, one entry each for "
                f"{self.parameter_names}, got {theta!r}"
            )
        start = 0
        parameters = {}
        for name, p in self._parameters.items():
            if p.is_free:
                parameters[name] = p.with_theta(theta[start : start + p.size])
                start += p.size
        children = []
        for child in self._children:
            stop = start + child.theta.size
            children.append(child.with_theta(theta[start:stop]))
            start = stop
        return self._with(parameters, tuple(children))

    def with_parameters(self, **parameters: Any) -> Self:
        """Return a new object with some of its own parameters replaced, by numbers or others."""
        unknown = set(parameters) - set(self._parameters)
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no parameter {sorted(unknown)}; it has "
                f"{sorted(self._parameters)}"
            )
        return self.from_state(self.to_state() | parameters)

    def _with(self, parameters: dict[str, Parameter], children: tuple[Any, ...]) -> Self:
        new = copy.copy(self)
        new._parameters = self._parameters | parameters
        new._children = children
        return new

    def log_prior(self) -> float:
        """Return the log hyperprior density of the free parameters (of their natural values)."""
        own = sum(p.log_prior() for p in self._parameters.values() if p.is_free)
        return own + sum(c.log_prior() for c in self._children)

    def log_prior_gradient(self) -> Floats:
        """Return the derivative of `log_prior` in `theta`."""
        own = [p.log_prior_gradient() for p in self._parameters.values() if p.is_free]
        return np.concatenate(
            [*own, *(c.log_prior_gradient() for c in self._children), np.empty(0)]
        )

    def draw_theta(self, rng: np.random.Generator) -> Floats:
        """Return a random `theta` around the current one, uniform within 2 units either way.

        For a positive parameter that is a factor of e^2. Hyperpriors are not drawn from: the bulk
        of a wide one may lie far from where it has its mode.
        """
        own = [p.draw_theta(rng) for p in self._parameters.values() if p.is_free]
        return np.concatenate([*own, *(c.draw_theta(rng) for c in self._children), np.empty(0)])

    def _own_gradient(self, **gradients: ArrayLike) -> Floats:
        """Chain dL/d(own parameter) of the free ones to dL/dtheta, in theta's order.

        A gradient may be given column by column: one number that serves all columns has the sum.
        """
        free = {name: p for name, p in self._parameters.items() if p.is_free}
        own = [
            p.to_theta_gradient(gradients[name] if p.is_vector else np.sum(gradients[name]))
            for name, p in free.items()
        ]
        return np.concatenate([*own, np.empty(0)])

    def _options(self) -> dict[str, Any]:
        """Constructor arguments that are not parameters; subclasses with any override this."""
        return {}

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**self._options(), **self._parameters}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        return cls(**state)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        assert isinstance(other, Parametrised)
        return (
            self._parameters == other._parameters
            and self._children == other._children
            and _same(self._options(), other._options())
        )

    def __hash__(self) -> int:
        return hash((type(self), *self._parameters.values(), *self._children))

    def __repr__(self) -> str:
        # Values only; bounds, hyperpriors and what is fixed are in `parameters`.
        parts = [f"{k}={p.show()}" for k, p in self._parameters.items()]
        parts += [f"{k}={v!r}" for k, v in self._options().items()]
        return f"{type(self).__name__}({', '.join(parts)})"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)
