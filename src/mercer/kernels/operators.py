"""What ``+`` and ``*`` make of kernels and numbers."""

from __future__ import annotations

from typing import Any

from mercer.kernels.base import Kernel, is_number
from mercer.kernels.composite import Product, Sum
from mercer.kernels.constant import Constant
from mercer.kernels.of_one import Scaled
from mercer.params import Parameter

__all__ = ["add", "multiply"]


def add(first: Kernel, second: Any) -> Kernel:
    """Return ``first + second``; a number stands for a constant kernel."""
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
