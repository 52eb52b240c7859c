"""Losses of numbers in unit scale; see `_losses`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.inference._losses import Loss

__all__ = ["Absolute", "Clipped", "Insensitive", "Squares"]

Floats = NDArray[np.float64]


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
