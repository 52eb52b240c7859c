"""What the priors on coefficients share: a scale, gamma, and what follows from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["CoefficientPrior", "numbers", "require_generator"]

Floats = NDArray[np.float64]


class CoefficientPrior(ABC):
    """p(coef) proportional to exp(-sum_i gamma(coef_i/scale)) (BKM 97): independent coefficients.

    The coefficients are those of f(x) = sum_i coef_i k(x, x_i); k need not be a Mercer kernel. The
    class is the base of `Laplacian`, `WeightDecay` and `FeatureSelection`, which say what gamma is.
    Objects do not change, and compare by their scales.

    Parameters
    ----------
    scale : float, default 1.0
        The unit of the coefficients, above 0.
    """

    #: Whether exp(-gamma) has a finite integral: the prior has a density, and can be sampled.
    is_proper: bool = True
    scale: float

    def __init__(self, scale: float = 1.0) -> None:
        try:
            value = float(scale)
        except (TypeError, ValueError):
            value = np.nan
        if not (np.isfinite(value) and value > 0):
            raise ValueError(
                f"{type(self).__name__}: scale must be a positive number, got {scale!r}"
            )
        self.__dict__["scale"] = value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} objects do not change: make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} objects do not change: {name} stays")

    # --- for subclasses: functions of t = |coef|/scale ----------------------------------------

    @abstractmethod
    def _gamma(self, t: Floats) -> Floats:
        """Return gamma(t)."""

    @abstractmethod
    def _slope(self, t: Floats) -> Floats:
        """Return its derivative."""

    @abstractmethod
    def _log_normaliser(self) -> float:
        """Return the log of the integral of exp(-gamma(|t|)) over the whole line."""

    # --- the density --------------------------------------------------------------------------

    def gamma(self, coef: ArrayLike) -> Floats:
        """Return gamma(coef_i/scale) for each coefficient: what it adds to (BKM 109), in nats."""
        return self._gamma(self._units(coef))

    def slope(self, coef: ArrayLike) -> Floats:
        """Return the derivative of `gamma` in |coef_i|, from above at 0.

        It is the penalty of each coefficient in the L1 problem that touches this prior's at `coef`.
        """
        return self._slope(self._units(coef)) / self.scale

    def log_density(self, coef: ArrayLike) -> Floats:
        """Return the log density of each coefficient; their joint one is the sum.

        ValueError where the prior is improper.
        """
        return np.asarray(-self.gamma(coef) - self._log_normaliser() - np.log(self.scale))

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of a coefficient; its mean is 0. ValueError where the prior is improper."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Return independent draws in an array of shape `size`; ValueError where improper."""

    @classmethod
    def estimate(cls, coef: ArrayLike) -> Self:
        """Return the prior under which these coefficients are likeliest, zeros among them included.

        ValueError where the prior is improper, and where all of them are 0: the likelihood then
        grows without end as the scale falls.
        """
        values = numbers(coef)
        largest = float(np.max(np.abs(values), initial=0.0))
        if largest == 0:
            raise ValueError(
                f"{cls.__name__}: no scale is likeliest for coefficients that are all 0, or none"
            )
        return cls(largest * cls._likeliest(np.abs(values) / largest))

    @classmethod
    @abstractmethod
    def _likeliest(cls, size: Floats) -> float:
        """Return the scale of the greatest likelihood, from |coef| of which the largest is 1."""

    def _units(self, coef: ArrayLike) -> Floats:
        return np.asarray(np.abs(numbers(coef)) / self.scale)

    # --- the object ---------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"scale": self.scale}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        return cls(**state)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.scale))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(scale={self.scale:.6g})"


def require_generator(rng: Any) -> None:
    """Raise a ValueError for what is no source of randomness."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            "rng must be a generator, such as numpy.random.default_rng(0), and comes before the "
            f"size; got {rng!r}"
        )


def numbers(coef: ArrayLike) -> Floats:
    """Return coefficients as floats; ValueError if they are not finite numbers."""
    try:
        values = np.asarray(coef, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"coefficients must be numbers: {error}") from None
    if not np.all(np.isfinite(values)):
        raise ValueError("the coefficients hold NaN or infinity")
    return values
