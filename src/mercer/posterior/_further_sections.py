"""Sections of further kernels, as explicit functions of a basis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels import Kernel
from mercer.posterior.basis import Regressors
from mercer.posterior.factors import frozen
from mercer.registry import storable

__all__ = ["FurtherSections"]

Floats = NDArray[np.float64]


@storable
class FurtherSections:
    """h(x) = [k_1(x, b), ..., k_2(x, b), ..., those of a mean].

    A `Basis` has sections of one kernel; those of others are explicit functions to it.

    Parameters
    ----------
    kernels : sequence of Kernel
    points : sequence of arrays
        For each kernel its points, at least one.
    rest : Mean or other Regressors, optional
        Whose regressors come last.
    """

    def __init__(
        self, kernels: Sequence[Kernel], points: Sequence[Any], rest: Regressors | None = None
    ) -> None:
        self.kernels, self.rest = tuple(kernels), rest
        self.points = tuple(
            frozen(np.array(kernel.inputs(own)))
            for kernel, own in zip(self.kernels, points, strict=True)
        )

    def features(self, X: Any) -> Floats:
        """Return the sections at the rows of X, then the regressors of `rest`, shape (n, r)."""
        parts = [kernel(X, own) for kernel, own in zip(self.kernels, self.points, strict=True)]
        if self.rest is not None:
            parts.append(self.rest.features(X))
        return np.hstack(parts)

    def pull_features(self, X: Any, G: ArrayLike) -> Floats:
        """Return the derivative of sum(G * features(X)) in X, shape (n, d)."""
        G, start = np.asarray(G, dtype=float), 0
        out = np.zeros(np.shape(X))
        for kernel, own in zip(self.kernels, self.points, strict=True):
            part = np.ascontiguousarray(G[:, start : start + len(own)])
            out += kernel.pullback(X, own, part).X
            start += len(own)
        if self.rest is not None:
            out += self.rest.pull_features(X, G[:, start:])
        return out

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"kernels": self.kernels, "points": self.points, "rest": self.rest}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FurtherSections:
        """Rebuild from `to_state`."""
        return cls(**state)
