"""The functions that a relevance vector machine chooses from, and what they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.inference._columns import ArrayColumns, Columns, JoinedColumns, KernelColumns
from mercer.kernels import Kernel

__all__ = ["Dictionary"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Dictionary:
    """Functions at n rows: sections of one kernel or several at their centres, and given columns.

    kernels : any kernels
    X : the rows
    centres : for each kernel its centres; None where they are the rows
    others : (n, q) functions that depend on no kernel, which come last
    """

    kernels: tuple[Kernel, ...]
    X: Any
    centres: tuple[Any, ...]
    others: Floats | None = None

    def columns(self) -> Columns:
        """Return the functions as columns, of which no more is formed than is asked for."""
        parts: list[Columns] = [
            KernelColumns(kernel, self.X, own)
            for kernel, own in zip(self.kernels, self.centres, strict=True)
            if own is None or len(own)
        ]
        if self.others is not None and self.others.shape[1]:
            parts.append(ArrayColumns(self.others))
        return parts[0] if len(parts) == 1 else JoinedColumns(parts)

    def centres_of(self, number: int) -> Any:
        """Return the centres of one of the kernels."""
        own = self.centres[number]
        return self.X if own is None else own

    @property
    def sizes(self) -> list[int]:
        """How many sections there are of each kernel."""
        return [len(self.centres_of(number)) for number in range(len(self.kernels))]

    def split(self, indices: Indices) -> tuple[list[Indices], Indices]:
        """Return which centres of each kernel these functions have, and which are given columns."""
        sections, start = [], 0
        for size in self.sizes:
            own = indices[(indices >= start) & (indices < start + size)]
            sections.append(own - start)
            start += size
        return sections, indices[indices >= start] - start

    # --- what they depend on ------------------------------------------------------------------

    @property
    def theta(self) -> Floats:
        """The free parameters of all kernels, one after the other."""
        return np.concatenate([kernel.theta for kernel in self.kernels])

    @property
    def log_prior(self) -> float:
        """The log density of the kernels' hyperpriors."""
        return float(sum(kernel.log_prior() for kernel in self.kernels))

    @property
    def log_prior_gradient(self) -> Floats:
        """Its derivative in `theta`."""
        return np.concatenate([kernel.log_prior_gradient() for kernel in self.kernels])

    def with_theta(self, theta: Floats) -> Self:
        """Return the functions with other parameters of the kernels."""
        ends = np.cumsum([kernel.theta.size for kernel in self.kernels])[:-1]
        parts = np.split(theta, ends)
        kernels = (k.with_theta(own) for k, own in zip(self.kernels, parts, strict=True))
        return replace(self, kernels=tuple(kernels))

    def with_centres(self, indices: Indices, moved: Sequence[Floats]) -> Self:
        """Return the functions with other centres of some sections, (k, d) for each kernel."""
        centres = []
        for number, own in enumerate(self.split(indices)[0]):
            new = np.array(self.centres_of(number), dtype=float)
            new[own] = moved[number]
            centres.append(new)
        return replace(self, centres=tuple(centres))

    def pull(self, indices: Indices, G: Floats, centres: bool) -> tuple[Floats, list[Floats]]:
        """Chain dL/dPhi (n, k) of some functions to theta, and if wanted to their centres."""
        theta, moved, start = [], [], 0
        for number, own in enumerate(self.split(indices)[0]):
            kernel, points = self.kernels[number], self.centres_of(number)[own]
            if not len(own):
                theta.append(np.zeros(kernel.theta.size))
                moved.append(np.zeros(np.shape(points)))
                continue
            part = np.ascontiguousarray(G[:, start : start + len(own)])
            pulled = kernel.pullback(self.X, points, part, inputs=centres)
            theta.append(pulled.theta)
            moved.append(np.zeros(0) if pulled.Z is None else pulled.Z)
            start += len(own)
        return np.concatenate(theta), moved
