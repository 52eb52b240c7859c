"""Kernels made of one other kernel: multiples and powers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import BlockGradient, Kernel, is_number
from mercer.kernels.composite import Composite, Product, Sum
from mercer.kernels.units import within_doubles
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["OfOne", "Power", "Scaled"]

Floats = NDArray[np.float64]


class OfOne(Composite):
    """A kernel made of one other kernel."""

    @property
    def kernel(self) -> Kernel:
        """The kernel inside."""
        return self._children[0]

    @property
    def is_infinitely_divisible(self) -> bool:  # type: ignore[override]
        """Whether the kernel inside is."""
        return self.kernel.is_infinitely_divisible

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"kernel": self.kernel, **super().to_state()}

    def _with_children(self, children: tuple[Any, ...]) -> Self:
        return self.from_state(self.to_state() | {"kernel": children[0]})

    def _inside(self) -> str:
        return (
            f"({self.kernel!r})" if isinstance(self.kernel, (Sum, Product)) else repr(self.kernel)
        )


@storable
class Scaled(OfOne):
    """variance * k(x, x'); written ``2.0 * k``. The variance can be learned."""

    variance: float
    _in_units = frozenset({"variance"})

    def __init__(self, variance: float | Parameter, kernel: Kernel) -> None:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"Scaled takes a kernel, got {kernel!r}")
        self._set(kernel, variance=positive("variance", variance, vector=False))

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        # so that a change of the columns' units changes bounds as it changes the best value
        centre = within_doubles(np.log(variance) - self.kernel._log_size(widths))
        return {"variance": (1e-4 * centre, 1e4 * centre)}

    def _log_size(self, widths: Floats) -> float:
        return float(np.log(self.variance)) + self.kernel._log_size(widths)

    def _block(self, A: Any, B: Any) -> Floats:
        K = self.kernel._checked_block(A, B)
        K *= self.variance
        return K

    def _times(self, A: Any, B: Any, V: Floats) -> Floats:
        return self.variance * self.kernel._times(A, B, V)

    def _times_both(
        self, A: Any, B: Any, U: Floats, V: Floats, squared: bool
    ) -> tuple[Floats, Floats]:
        both = self.kernel._times_both(A, B, U, V, squared)
        for part in both:
            part *= self.variance
            if squared:
                part[:, -1] *= self.variance
        return both

    def _diag(self, A: Any) -> Floats:
        return self.variance * self.kernel._diag(A)

    def _outer(self, part: BlockGradient) -> BlockGradient:
        """Take the pullback of the unscaled G to that of the product."""
        v = self.variance
        own = self._own_gradient(variance=part.inner)
        A = None if part.A is None else v * part.A
        B = None if part.B is None else v * part.B
        return BlockGradient(np.concatenate([own, v * part.theta]), A, B, v * part.inner)

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        return self._outer(self.kernel._block_pullback(A, B, G, inputs))

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        return self._outer(self.kernel._diag_pullback(A, g, inputs))

    def __repr__(self) -> str:
        return f"{self._parameters['variance'].show()} * {self._inside()}"


@storable
class Power(OfOne):
    """k(x, x')^exponent; written ``k ** 2``.

    A Mercer kernel for whole exponents, and for any positive exponent where the kernel is
    infinitely divisible (RBF, exponential, rational quadratic).
    """

    def __init__(self, kernel: Kernel, exponent: float) -> None:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"Power takes a kernel, got {kernel!r}")
        if not is_number(exponent) or not np.isfinite(exponent) or exponent <= 0:
            raise ValueError(f"exponent must be a positive number, got {exponent!r}")
        self.exponent = float(exponent)
        self._set(kernel)

    def _options(self) -> dict[str, Any]:
        return {"exponent": self.exponent}

    @property
    def is_mercer(self) -> bool:
        """Whether every Gram matrix is positive semi-definite."""
        whole = self.exponent == int(self.exponent)
        return self.kernel.is_mercer and (whole or self.kernel.is_infinitely_divisible)

    def _log_size(self, widths: Floats) -> float:
        return self.exponent * self.kernel._log_size(widths)

    def _variances_inside(self, widths: Floats, variance: float) -> list[float]:
        return [within_doubles(np.log(variance) / self.exponent)]

    def _raised(self, K: Floats) -> Floats:
        if self.exponent % 1.0 and np.min(K, initial=0.0) < 0.0:
            raise ValueError(
                f"{self!r} cannot be evaluated: the kernel inside has negative values, of which "
                "only whole powers are real"
            )
        return np.asarray(K**self.exponent)

    def _slope(self, K: Floats) -> Floats:
        if self.exponent >= 1.0:
            return np.asarray(self.exponent * K ** (self.exponent - 1.0))
        # infinite at 0, a value that no parameter of an infinitely divisible kernel moves it from
        powers = np.power(K, self.exponent - 1.0, out=np.zeros_like(K), where=K > 0.0)
        return np.asarray(self.exponent * powers)

    def _block(self, A: Any, B: Any) -> Floats:
        return self._raised(self.kernel._checked_block(A, B))

    def _diag(self, A: Any) -> Floats:
        return self._raised(self.kernel._diag(A))

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        slope = self._slope(self.kernel._checked_block(A, B))
        part = self.kernel._block_pullback(A, B, G * slope, inputs)
        return part._replace(inner=part.inner / self.exponent)

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        part = self.kernel._diag_pullback(A, g * self._slope(self.kernel._diag(A)), inputs)
        return part._replace(inner=part.inner / self.exponent)

    def __repr__(self) -> str:
        inside = f"({self.kernel!r})" if isinstance(self.kernel, Composite) else repr(self.kernel)
        return f"{inside} ** {self.exponent:g}"
