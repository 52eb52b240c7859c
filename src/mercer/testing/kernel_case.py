"""A kernel with the rows it is tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Kernel
from mercer.testing.parametrised import functions_of

__all__ = ["KernelCase", "kernel_case", "moves", "numeric"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KernelCase:
    """A kernel with the rows it is tried on.

    X, Z : two sets of rows
    repeated : rows of which some coincide
    many : rows for the spectrum of a Gram matrix
    inputs : whether there are derivatives in the rows to check
    """

    subject: Kernel
    X: Any
    Z: Any
    repeated: Any
    many: Any
    inputs: bool
    objects: dict[str, Callable[..., Any]]

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.subject

    def values(self, subject: Any) -> Floats:
        """Return k(X, Z)."""
        return np.array(subject(self.X, self.Z))

    def cotangent(self, *shape: int) -> Floats:
        """Return random numbers that stand for dL/dK."""
        return np.random.default_rng(shape[0] + 31 * len(shape)).normal(size=shape)


def numeric(case: KernelCase) -> str:
    """Say whether rules on rows of numbers do not apply."""
    return "" if case.X.dtype.kind in "fiu" and case.X.ndim == 2 else "its rows are not numbers"


def moves(case: KernelCase) -> str:
    """Say whether rules on derivatives in the rows do not apply."""
    return numeric(case) or ("" if case.inputs else "its rows cannot be moved a little")


def kernel_case(
    kernel: Any, X: Any, Z: Any, inputs: bool, objects: dict[str, Callable[..., Any]] | None
) -> KernelCase:
    """Return the case of a kernel, with random rows where none are given."""
    if not isinstance(kernel, Kernel):
        brackets = "; did you forget the brackets?" if isinstance(kernel, type) else ""
        raise ValueError(f"a mercer.kernels.Kernel is wanted, got {kernel!r}{brackets}")
    if X is None:
        if not kernel.is_numeric:
            raise ValueError(f"{kernel!r} is over any objects: give X, at least 6 of them")
        rng = np.random.default_rng(0)
        d = _columns(kernel)
        X, Z = rng.normal(size=(6, d)), rng.normal(size=(4, d))
        many = rng.normal(size=(40, d))
    else:
        X = kernel.inputs(X)
        if Z is None:
            if len(X) < 6:
                raise ValueError(f"X must have at least 6 rows, got {len(X)}")
            X, Z = X[: -(len(X) // 3)], X[-(len(X) // 3) :]
        Z = kernel.inputs(Z, "Z")
        many = np.concatenate([X, Z])
    X, Z = np.array(X), np.array(Z)
    return KernelCase(
        subject=kernel,
        X=X,
        Z=Z,
        repeated=X[[0, 1, 0, 2, 1]],
        many=np.concatenate([many, many[:2]]),
        inputs=inputs,
        objects=functions_of(kernel) if objects is None else objects,
    )


def _columns(kernel: Kernel) -> int:
    """Return a number of columns that the kernel takes."""
    widths: tuple[int, ...] = (2, 1, *range(3, 65))
    for d in widths:
        try:
            kernel.inputs(np.zeros((1, d)))
        except ValueError:
            continue
        return d
    raise ValueError(f"{kernel!r} takes no rows of up to 64 columns: give X")
