"""Losses of kernel expansions in unit scale, their pulls and their conjugates.

Minus the logarithm of a likelihood is, but for a constant, a loss over a unit: |y - f| over b for
`Laplace` noise of scale b. The problems of BKM 5.3 are solved for the loss itself, so that the
noise's scale appears in the penalty alone; nats are the objective over `unit`.

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
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, Logistic

__all__ = [
    "Absolute",
    "Clipped",
    "InUnits",
    "Insensitive",
    "LogisticLoss",
    "Loss",
    "QuadraticSoftMargin",
    "SoftMargin",
    "Squares",
    "unit_loss",
]

Floats = NDArray[np.float64]

MARGINS = ("soft_margin", "quadratic_soft_margin")


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

    def rows(self, kept: Any) -> Self:
        """Return the loss of some rows."""
        return replace(self, y=self.y[kept])

    def _both_sides(self, most: float) -> tuple[Floats, Floats]:
        bound = np.full(self.y.size, most)
        return -bound, bound

    def _to_the_label(self, most: float) -> tuple[Floats, Floats]:
        side = np.where(self.y > 0, most, -most)
        return np.minimum(side, 0.0), np.maximum(side, 0.0)


class Squares(Loss):
    """(y - f)^2/2."""

    kind = "squares"
    greatest_curvature = 1.0

    def values(self, f: Floats) -> Floats:
        """Return (y - f)^2/2."""
        return np.asarray(0.5 * (self.y - f) ** 2)

    def pull(self, f: Floats) -> Floats:
        """Return y - f."""
        return np.asarray(self.y - f)

    def curvature(self, f: Floats) -> Floats:
        """Return ones."""
        return np.ones(np.shape(f))

    def conjugate(self, v: Floats) -> Floats:
        """Return v y + v^2/2."""
        return np.asarray(v * self.y + 0.5 * v**2)

    def reach(self) -> tuple[Floats, Floats]:
        """Return -infinity and infinity."""
        return self._both_sides(np.inf)


@dataclass(frozen=True)
class Insensitive(Loss):
    """max(0, |y - f| - zone) (BKM 13)."""

    zone: float = 0.0

    kind = "linear"
    greatest_curvature = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.zone) and self.zone >= 0):
            raise ValueError(f"the zone must be at least 0 and finite, got {self.zone!r}")

    def values(self, f: Floats) -> Floats:
        """Return max(0, |y - f| - zone)."""
        return np.maximum(np.abs(self.y - f) - self.zone, 0.0)

    def pull(self, f: Floats) -> Floats:
        """Return the sign of y - f outside the zone, 0 within it and at its edge."""
        r = self.y - f
        return np.where(np.abs(r) > self.zone, np.sign(r), 0.0)

    def curvature(self, f: Floats) -> Floats:
        """Return zeros."""
        return np.zeros(np.shape(f))

    def conjugate(self, v: Floats) -> Floats:
        """Return v y + zone |v| for |v| <= 1."""
        return np.where(np.abs(v) <= 1.0, v * self.y + self.zone * np.abs(v), np.inf)

    def reach(self) -> tuple[Floats, Floats]:
        """Return -1 and 1."""
        return self._both_sides(1.0)


class Absolute(Insensitive):
    """|y - f| (BKM 10)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.zone != 0.0:
            raise ValueError(f"the absolute loss has no zone, got {self.zone!r}; use Insensitive")


@dataclass(frozen=True)
class Clipped(Loss):
    """r^2/2 for r = y - f within the knee, and knee |r| - knee^2/2 beyond (BKM 12)."""

    knee: float = 1.0

    kind = "quadratic"
    greatest_curvature = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.knee) and self.knee > 0):
            raise ValueError(f"the knee must be positive and finite, got {self.knee!r}")

    def values(self, f: Floats) -> Floats:
        """Return c |r| - c^2/2 with c = min(|r|, knee)."""
        far = np.abs(self.y - f)
        c = np.minimum(far, self.knee)
        return np.asarray(c * (far - 0.5 * c))

    def pull(self, f: Floats) -> Floats:
        """Return y - f, clipped to the knee."""
        return np.clip(self.y - f, -self.knee, self.knee)

    def curvature(self, f: Floats) -> Floats:
        """Return 1 up to the knee, 0 beyond."""
        return np.where(np.abs(self.y - f) <= self.knee, 1.0, 0.0)

    def conjugate(self, v: Floats) -> Floats:
        """Return v y + v^2/2 for |v| <= knee."""
        return np.where(np.abs(v) <= self.knee, v * self.y + 0.5 * v**2, np.inf)

    def reach(self) -> tuple[Floats, Floats]:
        """Return minus and plus the knee."""
        return self._both_sides(self.knee)


class LogisticLoss(Loss):
    """log(1 + exp(-y f)) (BKM 14)."""

    kind = "smooth"
    greatest_curvature = 0.25
    is_of_labels = True

    def values(self, f: Floats) -> Floats:
        """Return log(1 + exp(-y f))."""
        return np.asarray(np.logaddexp(0.0, -self.y * f))

    def pull(self, f: Floats) -> Floats:
        """Return y/(1 + exp(y f))."""
        return np.asarray(self.y * expit(-self.y * f))

    def curvature(self, f: Floats) -> Floats:
        """Return s(f) s(-f), s the logistic function."""
        return np.asarray(expit(f) * expit(-np.asarray(f)))

    def conjugate(self, v: Floats) -> Floats:
        """Return a log a + (1 - a) log(1 - a) for a = -y v in [0, 1]."""
        a = -self.y * v
        inside = (a >= 0.0) & (a <= 1.0)
        a = np.where(inside, a, 0.0)
        return np.where(inside, xlogy(a, a) + xlogy(1.0 - a, 1.0 - a), np.inf)

    def reach(self) -> tuple[Floats, Floats]:
        """Return 0 and the label, in order."""
        return self._to_the_label(1.0)


class SoftMargin(Loss):
    """(1 - y f)_+ (BKM 2.2)."""

    kind = "linear"
    greatest_curvature = 0.0
    is_of_labels = True
    is_likelihood = False

    def values(self, f: Floats) -> Floats:
        """Return (1 - y f)_+."""
        return np.maximum(1.0 - self.y * f, 0.0)

    def pull(self, f: Floats) -> Floats:
        """Return the label within the margin, 0 outside and at its edge."""
        return np.where(self.y * f < 1.0, self.y, 0.0)

    def curvature(self, f: Floats) -> Floats:
        """Return zeros."""
        return np.zeros(np.shape(f))

    def conjugate(self, v: Floats) -> Floats:
        """Return v y for -v y in [0, 1]."""
        a = -self.y * v
        return np.where((a >= 0.0) & (a <= 1.0), -a, np.inf)

    def reach(self) -> tuple[Floats, Floats]:
        """Return 0 and the label, in order."""
        return self._to_the_label(1.0)


class QuadraticSoftMargin(Loss):
    """(1 - y f)_+^2 (BKM 2.2)."""

    kind = "quadratic"
    greatest_curvature = 2.0
    is_of_labels = True
    is_likelihood = False

    def values(self, f: Floats) -> Floats:
        """Return (1 - y f)_+^2."""
        return np.maximum(1.0 - self.y * f, 0.0) ** 2

    def pull(self, f: Floats) -> Floats:
        """Return 2 y (1 - y f)_+."""
        return np.asarray(2.0 * self.y * np.maximum(1.0 - self.y * f, 0.0))

    def curvature(self, f: Floats) -> Floats:
        """Return 2 within the margin, 0 outside."""
        return np.where(self.y * f <= 1.0, 2.0, 0.0)

    def conjugate(self, v: Floats) -> Floats:
        """Return a^2/4 - a for a = -y v >= 0."""
        a = -self.y * v
        return np.where(a >= 0.0, 0.25 * a**2 - a, np.inf)

    def reach(self) -> tuple[Floats, Floats]:
        """Return 0 and infinity to the side of the label, in order."""
        return self._to_the_label(np.inf)


class InUnits(NamedTuple):
    """A loss, and what the rows' weights are multiplied by, (n,), None for ones."""

    loss: Loss
    factor: Floats | None


def unit_loss(noise: Any, y: Floats) -> InUnits:
    """Return the loss of a likelihood, or of one of the margins by its name.

    A variance a row in `Gaussian` becomes a weight a row; its unit is their harmonic mean.
    """
    loss: Loss
    if isinstance(noise, Gaussian):
        return _squares(noise, y)
    if isinstance(noise, EpsilonInsensitive):
        zone, scale = _given(noise.epsilon, "epsilon"), _given(noise.scale, "scale")
        loss = Insensitive(y, scale, zone)
    elif isinstance(noise, Laplace):
        loss = Absolute(y, _given(noise.scale, "scale"))
    elif isinstance(noise, Huber):
        scale = _given(noise.scale, "scale")
        loss = Clipped(y, scale**2, scale * float(noise.threshold))
    elif isinstance(noise, Logistic):
        loss = LogisticLoss(y)
    elif isinstance(noise, str) and noise in MARGINS:
        loss = SoftMargin(y) if noise == "soft_margin" else QuadraticSoftMargin(y)
    else:
        given = repr(noise) if isinstance(noise, str) else type(noise).__name__
        raise ValueError(
            "a kernel expansion takes Gaussian, Laplace, EpsilonInsensitive, Huber or Logistic "
            f"noise, 'soft_margin' or 'quadratic_soft_margin', got {given}"
        )
    return InUnits(loss, None)


def _squares(noise: Gaussian, y: Floats) -> InUnits:
    if noise.covariance is not None:
        raise ValueError(
            "a kernel expansion takes one variance, or one a row, got a covariance of the rows"
        )
    if noise.noise is None or np.ndim(noise.noise) == 0:
        return InUnits(Squares(y, _given(noise.noise, "noise")), None)
    variances = noise.variances(len(y))
    if not np.all(variances > 0):
        raise ValueError("the variances of the rows must be positive here, got a 0 among them")
    unit = float(1.0 / np.mean(1.0 / variances))
    return InUnits(Squares(y, unit), unit / variances)


def _given(value: Any, name: str) -> float:
    if value is None:
        raise ValueError(f"the {name} of the noise is not chosen yet: take it from begun(y)")
    return float(value)
