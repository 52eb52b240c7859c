"""Losses of kernel expansions in unit scale, their pulls and their conjugates.

Minus the logarithm of a likelihood is, but for a constant, a loss over a unit: |y - f| over b for
`Laplace` noise of scale b. The problems of BKM 5.3 are solved for the loss itself, so that the
noise's scale appears in the penalty alone; nats are the objective over `unit`.

Of numbers (`_losses_numbers`) and of labels (`_losses_labels`); `_unit_loss` tells which is whose:

    `Squares`               (y - f)^2/2                    `Gaussian`, unit its variance
    `Absolute`              |y - f|                        `Laplace` (BKM 10), unit its scale
    `Insensitive`           max(0, |y - f| - e)            `EpsilonInsensitive` (BKM 13), its scale
    `Clipped`               r^2/2, |r| <= k; else k|r| - k^2/2   `Huber` (BKM 12), scale^2
    `LogisticLoss`          log(1 + exp(-y f))             `Logistic` (BKM 14), 1
    `SoftMargin`            (1 - y f)_+                    "soft_margin" (BKM 2.2), 1
    `QuadraticSoftMargin`   (1 - y f)_+^2                  "quadratic_soft_margin" (BKM 2.2), 1

The pull of a row is u = -loss'(f), the force with which its observation draws f. It stays within
`reach`, an interval that has 0 in it. The conjugate loss*(v) = max over f of v f - loss(f) is
infinite at slopes v = -u outside. All losses are convex and at least 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Loss"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss(ABC):
    """What the observations y cost, a number a row.

    y : (n,) targets, or labels -1 and 1
    unit : nats are the objective over this
    """

    y: Floats
    unit: float = 1.0

    #: "squares"; "linear" in pieces; "quadratic" in pieces, with a continuous slope; or "smooth".
    kind: ClassVar[Literal["squares", "linear", "quadratic", "smooth"]]
    is_of_labels: ClassVar[bool] = False
    #: Whether it is minus the logarithm of a likelihood, but for its unit and a constant.
    is_likelihood: ClassVar[bool] = True
    #: What `curvature` is at most.
    greatest_curvature: ClassVar[float]

    def __post_init__(self) -> None:
        y = np.asarray(self.y, dtype=float)
        if y.ndim != 1 or not np.all(np.isfinite(y)):
            raise ValueError(
                f"y must be a vector of finite numbers, got an array of shape {y.shape}"
                + (" with NaN or infinity in it" if y.ndim == 1 else "")
            )
        if self.is_of_labels and not np.all(np.abs(y) == 1.0):
            wrong = y[np.abs(y) != 1.0][0]
            raise ValueError(f"labels must be -1 and 1, got {wrong!r} among them")
        if not (np.isfinite(self.unit) and self.unit > 0):
            raise ValueError(f"the unit of a loss must be positive, got {self.unit!r}")
        object.__setattr__(self, "y", y)

    @abstractmethod
    def values(self, f: Floats) -> Floats:
        """Return the loss of each row."""

    @abstractmethod
    def pull(self, f: Floats) -> Floats:
        """Return -loss'(f); at a kink, a value between those of its sides."""

    @abstractmethod
    def curvature(self, f: Floats) -> Floats:
        """Return loss''(f) but at kinks; at a jump, the greater of the sides."""

    @abstractmethod
    def conjugate(self, v: Floats) -> Floats:
        """Return max over f of v f - loss(f); infinity where there is none."""

    @abstractmethod
    def reach(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest pull of each row."""

    @property
    def zone(self) -> float:
        """The residual below which it is 0; 0 for losses without such a zone."""
        return 0.0

    def rows(self, kept: Any) -> Self:
        """Return the loss of some rows."""
        return replace(self, y=self.y[kept])

    def _both_sides(self, most: float) -> tuple[Floats, Floats]:
        bound = np.full(self.y.size, most)
        return -bound, bound

    def _to_the_label(self, most: float) -> tuple[Floats, Floats]:
        side = np.where(self.y > 0, most, -most)
        return np.minimum(side, 0.0), np.maximum(side, 0.0)
