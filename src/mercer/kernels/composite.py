"""Sums and products of kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import BlockGradient, Kernel
from mercer.kernels.units import within_doubles
from mercer.registry import storable

__all__ = ["Composite", "Product", "Sum"]

Floats = NDArray[np.float64]


class Composite(Kernel):
    """A kernel made of kernels."""

    @property
    def is_numeric(self) -> bool:  # type: ignore[override]
        """Whether rows are vectors of numbers: if a part needs them, or all take no others."""
        return self._needs_numbers or all(child.is_numeric for child in self._children)

    @property
    def _needs_numbers(self) -> bool:
        return any(child._needs_numbers for child in self._children)

    @property
    def is_infinitely_divisible(self) -> bool:  # type: ignore[override]
        """Whether every positive power is a Mercer kernel: not known of a sum."""
        return False


class _Several(Composite):
    """A sum or product of two or more kernels; nested ones of the same kind are flattened."""

    _sign: str

    def __init__(self, *kernels: Kernel) -> None:
        flat: list[Kernel] = []
        for kernel in kernels:
            if not isinstance(kernel, Kernel):
                raise ValueError(f"{type(self).__name__} takes kernels, got {kernel!r}")
            flat += kernel.kernels if type(kernel) is type(self) else [kernel]
        if not flat:
            raise ValueError(f"{type(self).__name__} needs at least one kernel")
        self._set(*flat)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The parts."""
        return self._children

    def to_state(self) -> dict[str, Any]:
        """Return the parts."""
        return {"kernels": list(self._children)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        return cls(*state["kernels"])

    def _with_children(self, children: tuple[Any, ...]) -> Self:
        return type(self)(*children)

    def __repr__(self) -> str:
        return self._sign.join(
            f"({k!r})" if isinstance(k, Sum) and self._sign == " * " else repr(k)
            for k in self._children
        )


def _joined(parts: list[BlockGradient], inputs: bool, inner: float) -> BlockGradient:
    """Add up the input gradients of children and line up their parameter gradients."""
    theta = np.concatenate([part.theta for part in parts])
    if not inputs:
        return BlockGradient(theta, None, None, inner)
    A = sum(part.A for part in parts if part.A is not None)
    B = sum(part.B for part in parts if part.B is not None) if parts[0].B is not None else None
    return BlockGradient(theta, A, B, inner)  # type: ignore[arg-type]


@storable
class Sum(_Several):
    """k(x, x') = k_1(x, x') + k_2(x, x') + ...; written ``k_1 + k_2``."""

    _sign = " + "

    def _block(self, A: Any, B: Any) -> Floats:
        K = self._children[0]._checked_block(A, B)
        for child in self._children[1:]:
            K += child._checked_block(A, B)
        return K

    def _times(self, A: Any, B: Any, V: Floats) -> Floats:
        total = self._children[0]._times(A, B, V)
        for child in self._children[1:]:
            total += child._times(A, B, V)
        return total

    def _times_both(
        self, A: Any, B: Any, U: Floats, V: Floats, squared: bool
    ) -> tuple[Floats, Floats]:
        if squared:  # the square of a sum is no sum of squares
            return super()._times_both(A, B, U, V, squared)
        out, back = self._children[0]._times_both(A, B, U, V, squared)
        for child in self._children[1:]:
            more, more_back = child._times_both(A, B, U, V, squared)
            out += more
            back += more_back
        return out, back

    def _log_size(self, widths: Floats) -> float:
        # no number serves terms of very different sizes: the middle
        return float(np.mean([child._log_size(widths) for child in self._children]))

    def _diag(self, A: Any) -> Floats:
        return np.asarray(np.sum([child._diag(A) for child in self._children], axis=0))

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        parts = [child._block_pullback(A, B, G, inputs) for child in self._children]
        return _joined(parts, inputs, sum(part.inner for part in parts))

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        parts = [child._diag_pullback(A, g, inputs) for child in self._children]
        return _joined(parts, inputs, sum(part.inner for part in parts))


def _products_of_others(factors: list[Floats]) -> list[Floats]:
    """Return for each factor the product of all the others, without dividing."""
    others = [np.ones_like(factors[0])]
    for factor in factors[:-1]:
        others.append(others[-1] * factor)
    after = factors[-1]
    for i in range(len(factors) - 2, -1, -1):
        others[i] = others[i] * after
        after = after * factors[i]
    return others


@storable
class Product(_Several):
    """k(x, x') = k_1(x, x') k_2(x, x') ...; written ``k_1 * k_2``."""

    _sign = " * "

    @property
    def is_infinitely_divisible(self) -> bool:  # type: ignore[override]
        """Whether all factors are."""
        return all(child.is_infinitely_divisible for child in self._children)

    def _block(self, A: Any, B: Any) -> Floats:
        K = self._children[0]._checked_block(A, B)
        for child in self._children[1:]:
            K *= child._checked_block(A, B)
        return K

    def _log_size(self, widths: Floats) -> float:
        return sum(child._log_size(widths) for child in self._children)

    def _variances_inside(self, widths: Floats, variance: float) -> list[float]:
        logs = [child._log_size(widths) for child in self._children]
        return [within_doubles(np.log(variance) - (sum(logs) - log)) for log in logs]

    def _diag(self, A: Any) -> Floats:
        return np.asarray(np.prod([child._diag(A) for child in self._children], axis=0))

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        others = _products_of_others([child._checked_block(A, B) for child in self._children])
        parts = [
            child._block_pullback(A, B, G * other, inputs)
            for child, other in zip(self._children, others, strict=True)
        ]
        return _joined(parts, inputs, parts[0].inner)

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        others = _products_of_others([child._diag(A) for child in self._children])
        parts = [
            child._diag_pullback(A, g * other, inputs)
            for child, other in zip(self._children, others, strict=True)
        ]
        return _joined(parts, inputs, parts[0].inner)
