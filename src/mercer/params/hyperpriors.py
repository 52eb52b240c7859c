"""Hyperpriors: densities over one positive (or real) parameter, in its natural units.

Each has ``log_density(x)``, ``derivative(x)`` (of the log density, in x), and
``sample(rng, size)``. Their arguments may be arrays, one entry for each component of a vector
parameter. The densities are those of the parameter itself, not of its logarithm;
`InverseHalfNormal` alone is one of the parameter's inverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from mercer.registry import storable

__all__ = [
    "Flat",
    "Gamma",
    "HalfNormal",
    "Hyperprior",
    "InverseGamma",
    "InverseHalfNormal",
    "LogNormal",
]

Floats = NDArray[np.float64]


class Hyperprior:
    """A density over a parameter; subclasses give `log_density`, `derivative` and `sample`.

    Attributes
    ----------
    is_level_above : bool
        Whether large values are meant to be free: of several length scales, those that end at the
        upper bound are not warned of.
    """

    is_level_above: bool = False
    _arguments: tuple[str, ...] = ()
    _positive: tuple[str, ...] = ()

    def _store(self, **arguments: ArrayLike) -> None:
        for name, given in arguments.items():
            try:
                value = np.array(given, dtype=float)
            except (TypeError, ValueError):
                value = np.array(np.nan)
            wrong = ~np.isfinite(value) | ((value <= 0) if name in self._positive else False)
            if value.ndim > 1 or np.any(wrong):
                kind = "positive" if name in self._positive else "finite"
                raise ValueError(
                    f"{type(self).__name__}: {name} must be a {kind} number or a vector of them, "
                    f"got {given!r}"
                )
            value.setflags(write=False)
            setattr(self, name, float(value) if value.ndim == 0 else value)

    # Parameters share and hash hyperpriors: a constructor sets each argument once.

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or self.__dict__.keys() >= set(self._arguments) > set():
            raise AttributeError(f"{type(self).__name__} objects do not change: make a new one")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} objects do not change: {name} stays")

    def log_density(self, x: Floats) -> Floats:
        """Return the log density at each component of x."""
        raise NotImplementedError

    def derivative(self, x: Floats) -> Floats:
        """Return the derivative of the log density at each component of x."""
        raise NotImplementedError

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Return `size` draws (for array arguments `size` must be their length)."""
        raise NotImplementedError

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {name: getattr(self, name) for name in self._arguments}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Hyperprior:
        """Rebuild from `to_state`."""
        return cls(**state)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            np.array_equal(getattr(self, a), getattr(other, a)) for a in self._arguments
        )

    def __hash__(self) -> int:
        return hash(
            (type(self), *(np.asarray(getattr(self, a)).tobytes() for a in self._arguments))
        )

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{a}={np.array2string(np.asarray(getattr(self, a)), precision=4, separator=', ')}"
            for a in self._arguments
        )
        return f"{type(self).__name__}({inside})"


@storable
class Flat(Hyperprior):
    """The improper density that is 1 everywhere; cannot be sampled."""

    def log_density(self, x: Floats) -> Floats:
        """Return zeros."""
        return np.zeros_like(x)

    def derivative(self, x: Floats) -> Floats:
        """Return zeros."""
        return np.zeros_like(x)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Refuse: the density is improper."""
        raise ValueError("the flat hyperprior is improper and cannot be sampled")


@storable
class LogNormal(Hyperprior):
    """log x ~ N(location, scale^2)."""

    _arguments = ("location", "scale")
    _positive = ("scale",)
    location: float | Floats
    scale: float | Floats

    def __init__(self, location: ArrayLike = 0.0, scale: ArrayLike = 1.0) -> None:
        self._store(location=location, scale=scale)

    def log_density(self, x: Floats) -> Floats:
        """Return -z^2/2 - log(x scale sqrt(2 pi)) with z = (log x - location)/scale."""
        z = (np.log(x) - self.location) / self.scale
        return np.asarray(-0.5 * z**2 - np.log(x * self.scale) - 0.5 * np.log(2 * np.pi))

    def derivative(self, x: Floats) -> Floats:
        """Return -(1 + z/scale)/x."""
        z = (np.log(x) - self.location) / self.scale
        return np.asarray(-(1.0 + z / self.scale) / x)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Return draws."""
        return np.exp(self.location + self.scale * rng.standard_normal(size))


@storable
class Gamma(Hyperprior):
    """p(x) = rate^shape x^(shape-1) exp(-rate x) / Gamma(shape)."""

    _arguments = ("shape", "rate")
    _positive = ("shape", "rate")
    shape: float | Floats
    rate: float | Floats

    def __init__(self, shape: ArrayLike = 2.0, rate: ArrayLike = 1.0) -> None:
        self._store(shape=shape, rate=rate)

    def log_density(self, x: Floats) -> Floats:
        """Return the log density."""
        a, b = self.shape, self.rate
        return np.asarray(a * np.log(b) - gammaln(a) + (a - 1) * np.log(x) - b * x)

    def derivative(self, x: Floats) -> Floats:
        """Return (shape - 1)/x - rate."""
        return np.asarray((self.shape - 1) / x - self.rate)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Return draws."""
        return rng.gamma(self.shape, 1.0 / np.asarray(self.rate), size)


@storable
class InverseGamma(Hyperprior):
    """p(x) = scale^shape x^-(shape+1) exp(-scale/x) / Gamma(shape)."""

    _arguments = ("shape", "scale")
    _positive = ("shape", "scale")
    shape: float | Floats
    scale: float | Floats

    def __init__(self, shape: ArrayLike = 2.0, scale: ArrayLike = 1.0) -> None:
        self._store(shape=shape, scale=scale)

    def log_density(self, x: Floats) -> Floats:
        """Return the log density."""
        a, b = self.shape, self.scale
        return np.asarray(a * np.log(b) - gammaln(a) - (a + 1) * np.log(x) - b / x)

    def derivative(self, x: Floats) -> Floats:
        """Return -(shape + 1)/x + scale/x^2."""
        return np.asarray(-(self.shape + 1) / x + self.scale / x**2)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Return draws."""
        return np.asarray(self.scale) / rng.gamma(self.shape, 1.0, size)


@storable
class HalfNormal(Hyperprior):
    """The positive half of N(0, scale^2)."""

    _arguments = ("scale",)
    _positive = ("scale",)
    scale: float | Floats

    def __init__(self, scale: ArrayLike = 1.0) -> None:
        self._store(scale=scale)

    def log_density(self, x: Floats) -> Floats:
        """Return log(sqrt(2/pi)/scale) - x^2/(2 scale^2)."""
        return np.asarray(
            0.5 * np.log(2 / np.pi) - np.log(self.scale) - 0.5 * (x / self.scale) ** 2
        )

    def derivative(self, x: Floats) -> Floats:
        """Return -x/scale^2."""
        return np.asarray(-x / np.asarray(self.scale) ** 2)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Return draws."""
        return np.abs(rng.standard_normal(size)) * self.scale


_UNIT = HalfNormal()  # what scale/x is in the next


@storable
class InverseHalfNormal(Hyperprior):
    """1/x is the positive half of N(0, 1/scale^2), and the density is that of 1/x.

    It falls where x is short of `scale` and is level where x is long. A length scale may then
    grow without end, which is how a column that does not matter is left out, and pays only for
    being short, which is how columns are fitted to noise.

    As a density of x it is improper: it has no peak, and its integral over x is infinite. `sample`
    draws 1/x from the half-normal.
    """

    is_level_above = True
    _arguments = ("scale",)
    _positive = ("scale",)
    scale: float | Floats

    def __init__(self, scale: ArrayLike = 1.0) -> None:
        self._store(scale=scale)

    def log_density(self, x: Floats) -> Floats:
        """Return log(sqrt(2/pi) scale) - scale^2/(2 x^2)."""
        return np.asarray(_UNIT.log_density(self.scale / x) + np.log(self.scale))

    def derivative(self, x: Floats) -> Floats:
        """Return scale^2/x^3."""
        z = self.scale / x
        return np.asarray(-_UNIT.derivative(z) * z / x)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Return draws."""
        return self.scale / _UNIT.sample(rng, size)
