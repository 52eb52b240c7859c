"""What likelihoods of two classes share; labels are -1 and 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods.base import Likelihood, broadcast, check_level

__all__ = ["Binary", "margin"]

Floats = NDArray[np.float64]


class Binary(Likelihood):
    """y = 1 with a probability that grows with f, else -1; a subclass gives `_positive`."""

    is_log_concave = True
    is_of_labels = True

    @property
    def analytic_within(self) -> float:
        """How far from the real line log p is an analytic function of f; 0 if that is unknown."""
        return 0.0

    def _positive(self, f: Floats) -> Floats:
        """Return P(y = 1 | f); that of -1 is P(y = 1 | -f)."""
        raise NotImplementedError

    def conditional_mean(self, f: ArrayLike) -> Floats:
        """Return P(y = 1 | f) - P(y = -1 | f)."""
        f = np.asarray(f, dtype=float)
        return np.asarray(self._positive(f) - self._positive(-f))

    def conditional_var(self, f: ArrayLike) -> Floats:
        """Return 4 P(y = 1 | f) P(y = -1 | f)."""
        f = np.asarray(f, dtype=float)
        return np.asarray(4.0 * self._positive(f) * self._positive(-f))

    def conditional_cdf(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return 0 below -1, P(y = -1 | f) from there to 1, and 1."""
        y, f = np.asarray(y, dtype=float), np.asarray(f, dtype=float)
        return np.where(y < -1.0, 0.0, np.where(y < 1.0, self._positive(-f), 1.0))

    def sample(self, f: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw -1 or 1 for each f."""
        f = np.asarray(f, dtype=float)
        return np.where(rng.uniform(size=f.shape) < self._positive(f), 1.0, -1.0)

    def quantile(self, mean: ArrayLike, var: ArrayLike, level: ArrayLike) -> Floats:
        """Return -1 if a new label is -1 with that probability at least, else 1."""
        mean, var, level = broadcast(mean=mean, var=var, level=level)
        check_level(level)
        return np.where(self.predictive_cdf(-1.0, mean, var) >= level, -1.0, 1.0)

    def initial(self, y: ArrayLike) -> Floats:
        """Return zeros: even odds."""
        return np.zeros(np.shape(y))


def margin(y: ArrayLike, f: ArrayLike) -> tuple[Floats, Floats]:
    """Return the labels, checked, and y f."""
    y, f = np.asarray(y, dtype=float), np.asarray(f, dtype=float)
    if not np.all(np.abs(y) == 1.0):
        wrong = y[np.abs(y) != 1.0].ravel()[:3]
        raise ValueError(f"labels must be -1 or 1, got {', '.join(f'{v:g}' for v in wrong)}")
    return y, np.asarray(y * f)
