"""Kernels made of kernels: sums, products, multiples, powers, and some columns only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import BlockGradient, Kernel, is_number
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["On", "Power", "Product", "Scaled", "Sum", "add", "multiply"]

Floats = NDArray[np.float64]


def add(first: Kernel, second: Any) -> Kernel:
    """Return ``first + second``; a number stands for a constant kernel."""
    from mercer.kernels.constant import Constant

    if is_number(second):
        second = Constant(second)
    return Sum(first, second) if isinstance(second, Kernel) else NotImplemented


def multiply(first: Kernel, second: Any) -> Kernel:
    """Return ``first * second``; a number becomes a scale that can be learned."""
    if is_number(second):
        if isinstance(first, Scaled) and not isinstance(second, Parameter):
            inner = first._parameters["variance"]
            return Scaled(inner.replace(value=float(second) * first.variance), first.kernel)
        return Scaled(second, first)
    return Product(first, second) if isinstance(second, Kernel) else NotImplemented


class _Composite(Kernel):
    @property
    def is_numeric(self) -> bool:  # type: ignore[override]
        return self._needs_numbers or all(child.is_numeric for child in self._children)

    @property
    def _needs_numbers(self) -> bool:
        return any(child._needs_numbers for child in self._children)

    @property
    def is_infinitely_divisible(self) -> bool:  # type: ignore[override]
        return False


class _Several(_Composite):
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
        K = self._children[0]._block(A, B)
        for child in self._children[1:]:
            K += child._block(A, B)
        return K

    def _times(self, A: Any, B: Any, V: Floats) -> Floats:
        total = self._children[0]._times(A, B, V)
        for child in self._children[1:]:
            total += child._times(A, B, V)
        return total

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
        K = self._children[0]._block(A, B)
        for child in self._children[1:]:
            K *= child._block(A, B)
        return K

    def _diag(self, A: Any) -> Floats:
        return np.asarray(np.prod([child._diag(A) for child in self._children], axis=0))

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        others = _products_of_others([child._block(A, B) for child in self._children])
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


class OfOne(_Composite):
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

    def _inside(self) -> str:
        return (
            f"({self.kernel!r})" if isinstance(self.kernel, (Sum, Product)) else repr(self.kernel)
        )


@storable
class Scaled(OfOne):
    """variance * k(x, x'); written ``2.0 * k``. The variance can be learned."""

    variance: float

    def __init__(self, variance: float | Parameter, kernel: Kernel) -> None:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"Scaled takes a kernel, got {kernel!r}")
        self._set(kernel, variance=positive("variance", variance, vector=False))

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        return {"variance": (1e-4 * variance, 1e4 * variance)}

    def _block(self, A: Any, B: Any) -> Floats:
        K = self.kernel._block(A, B)
        K *= self.variance
        return K

    def _times(self, A: Any, B: Any, V: Floats) -> Floats:
        return self.variance * self.kernel._times(A, B, V)

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
        return self._raised(self.kernel._block(A, B))

    def _diag(self, A: Any) -> Floats:
        return self._raised(self.kernel._diag(A))

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        part = self.kernel._block_pullback(A, B, G * self._slope(self.kernel._block(A, B)), inputs)
        return part._replace(inner=part.inner / self.exponent)

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        part = self.kernel._diag_pullback(A, g * self._slope(self.kernel._diag(A)), inputs)
        return part._replace(inner=part.inner / self.exponent)

    def __repr__(self) -> str:
        inside = f"({self.kernel!r})" if isinstance(self.kernel, _Composite) else repr(self.kernel)
        return f"{inside} ** {self.exponent:g}"


@storable
class On(OfOne):
    """A kernel applied to some columns of the inputs; written ``k.on([0, 2])``."""

    def __init__(self, kernel: Kernel, columns: int | Sequence[int]) -> None:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"On takes a kernel, got {kernel!r}")
        given = np.atleast_1d(np.asarray(columns))
        if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu" or given.min() < 0:
            raise ValueError(f"columns must be one or more column numbers from 0, got {columns!r}")
        if np.unique(given).size != given.size:
            raise ValueError(f"columns must not repeat, got {columns!r}")
        self.columns = tuple(int(c) for c in given)
        self._set(kernel)

    def _options(self) -> dict[str, Any]:
        return {"columns": self.columns}

    def _check_columns(self, d: int) -> None:
        if max(self.columns) >= d:
            raise ValueError(f"the kernel uses column {max(self.columns)}, the inputs have {d}")
        self.kernel._check_columns(len(self.columns))

    @property
    def _needs_numbers(self) -> bool:
        return False  # in its own columns at most; the others may hold any objects

    def _check_objects(self, X: NDArray[Any], name: str) -> None:
        self.kernel.inputs(self._select(X), f"{name}[:, {list(self.columns)}]")

    def _select(self, A: Any) -> Any:
        if np.ndim(A) != 2:
            raise ValueError(
                f"columns {list(self.columns)} can only be taken of a matrix, "
                f"got shape {np.shape(A)}"
            )
        selected = A[:, list(self.columns)]
        try:
            return np.ascontiguousarray(selected, dtype=float if self.kernel.is_numeric else None)
        except (TypeError, ValueError) as error:
            raise ValueError(f"columns {list(self.columns)} must be numbers: {error}") from None

    def _block(self, A: Any, B: Any) -> Floats:
        return self.kernel._block(self._select(A), self._select(B))

    def _times(self, A: Any, B: Any, V: Floats) -> Floats:
        return self.kernel._times(self._select(A), self._select(B), V)

    def _diag(self, A: Any) -> Floats:
        return self.kernel._diag(self._select(A))

    def _scatter(self, gradient: Floats | None, like: Any) -> Floats | None:
        if gradient is None:
            return None
        out = np.zeros(like.shape)
        out[:, list(self.columns)] = gradient
        return out

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        part = self.kernel._block_pullback(self._select(A), self._select(B), G, inputs)
        return part._replace(A=self._scatter(part.A, A), B=self._scatter(part.B, B))

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        part = self.kernel._diag_pullback(self._select(A), g, inputs)
        return part._replace(A=self._scatter(part.A, A))

    def anchored(self, X: Any) -> Self:
        """Return a copy anchored at the columns it uses."""
        return self._with({}, (self.kernel.anchored(self._select(X)),))

    def with_bounds_from(self, widths: Floats, variance: float) -> Self:
        """Return a copy bounded in the units of the columns it uses."""
        # objects other than numbers have no widths, and no parameters that would need them
        own = widths[list(self.columns)] if max(self.columns) < len(widths) else widths
        return self._with({}, (self.kernel.with_bounds_from(own, variance),))

    def __repr__(self) -> str:
        inside = f"({self.kernel!r})" if isinstance(self.kernel, _Composite) else repr(self.kernel)
        return f"{inside}.on({list(self.columns)})"
