"""Losses of labels -1 and 1; see `_losses`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from mercer.inference._losses import Loss

__all__ = ["LogisticLoss", "QuadraticSoftMargin", "SoftMargin"]

Floats = NDArray[np.float64]


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
