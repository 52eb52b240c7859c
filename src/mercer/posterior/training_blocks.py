"""The training rows of PIC, which new points are joined to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.posterior.factors import frozen
from mercer.registry import storable

__all__ = ["TrainingBlocks", "rows_by_label"]

Floats = NDArray[np.float64]


def rows_by_label(groups: NDArray[Any]) -> tuple[NDArray[Any], list[NDArray[np.intp]]]:
    """Return the labels in their order, and which rows have each."""
    order = np.argsort(groups, kind="stable")
    labels, starts = np.unique(groups[order], return_index=True)
    return labels, np.split(order, starts)[1:]


@storable
class TrainingBlocks:
    """The training rows of PIC, by blocks.

    Parameters
    ----------
    X : inputs, n rows
    groups : (n,) array
        The block that each row belongs to.
    noise : (n,) array
        Noise variances, over the weights.
    residuals : (n, P) array
        Sigma^-1 (Y - H beta), Sigma = Q + Lambda.
    regressors : (n, r) array
        Sigma^-1 H of coefficients that are integrated out; (n, 0) without any.
    centres : (g, d) array, optional
        Where the blocks are, in the order of ``np.unique(groups)``. Without them new points must
        say which block they belong to.
    widths : (d,) array, optional
        Units of the columns in which distances from the centres are taken; ones without it.
    """

    def __init__(
        self,
        X: Any,
        groups: ArrayLike,
        noise: ArrayLike,
        residuals: ArrayLike,
        regressors: ArrayLike,
        centres: ArrayLike | None = None,
        widths: ArrayLike | None = None,
    ) -> None:
        self.X, self.groups = frozen(np.asarray(X)), frozen(np.asarray(groups))
        self.noise = frozen(np.asarray(noise, dtype=float))
        self.residuals = frozen(np.asarray(residuals, dtype=float))
        self.regressors = frozen(np.asarray(regressors, dtype=float))
        self.labels, self._members = rows_by_label(self.groups)
        self.centres = None if centres is None else frozen(np.asarray(centres, dtype=float))
        self.widths = frozen(np.asarray(1.0 if widths is None else widths, dtype=float))
        n = len(self.X)
        lengths = {len(self.groups), len(self.noise), len(self.residuals), len(self.regressors)}
        placed = self.labels if self.centres is None else self.centres
        if lengths != {n} or len(placed) != len(self.labels):
            raise ValueError(
                f"{n} rows of inputs want as many groups, noise variances and residuals, and a "
                f"centre for each of their {len(self.labels)} blocks"
            )

    def rows(self, label: Any) -> NDArray[np.intp]:
        """Return the rows of a block."""
        return self._members[int(np.searchsorted(self.labels, label))]

    def nearest(self, X: Floats) -> NDArray[Any]:
        """Return the label of the block whose centre is nearest, for each row."""
        if self.centres is None:
            raise ValueError(
                "the blocks of these inputs have no centres to be near to: say by groups which "
                "block each point belongs to"
            )
        best = np.full(len(X), np.inf)
        found = np.zeros(len(X), dtype=np.intp)
        for i, centre in enumerate(self.centres):
            distance = np.sum(((X - centre) / self.widths) ** 2, axis=1)
            closer = distance < best
            best[closer], found[closer] = distance[closer], i
        return np.asarray(self.labels[found])

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "X": self.X,
            "groups": self.groups,
            "noise": self.noise,
            "residuals": self.residuals,
            "regressors": self.regressors,
            "centres": self.centres,
            "widths": self.widths,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TrainingBlocks:
        """Rebuild from `to_state`."""
        return cls(**state)
