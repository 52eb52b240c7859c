"""The noise of the training rows: one variance, one a row, or a full covariance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods.base import Likelihood
from mercer.likelihoods.normal import LOG_2PI
from mercer.likelihoods.spread import deviation_of, started

__all__ = ["RowNoise"]

Floats = NDArray[np.float64]


class RowNoise(Likelihood):
    """Gives a likelihood of Gaussian noise its variances, and what weights make of them.

    A subclass's constructor sets `_known`, the given variances (n,) or the covariance (n, n) or
    None, and `_new`, the variance of a new observation that goes with them or None.
    """

    _known: Floats | None
    _new: float | None

    @property
    def noise(self) -> float | Floats | None:
        """The variance, the variances, the covariance (read-only), or None if not yet chosen."""
        own = self._parameters.get("noise")
        return self._known if own is None else own.value

    @property
    def covariance(self) -> Floats | None:
        """The full noise covariance (n, n), read-only, if that is what was given."""
        return self._known if self._known is not None and self._known.ndim == 2 else None

    @property
    def new_variance(self) -> float:
        """The noise variance of a new observation: for known variances, their mean."""
        if self._known is None:
            return self._scalar()
        if self._new is not None:
            return self._new
        return float(np.mean(self._known if self._known.ndim == 1 else np.diag(self._known)))

    # ---------------------------------------------------------- noise of the training rows

    def variances(self, n: int, weights: ArrayLike | None = None) -> Floats:
        """Return the noise variances of n training rows, divided by their weights, shape (n,).

        Weights are powers of the likelihood and must be positive (rows of weight 0 are left out
        beforehand, see `subset`). For a full covariance it is the diagonal.
        """
        w = self._weights(n, weights)
        return self._unweighted(n) / w

    def training_var(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return var + s, each row with its own s."""
        return np.asarray(var, dtype=float) + self.variances(np.size(var))

    def weight_constant(self, n: int, weights: ArrayLike | None = None) -> float:
        """Return what weights add to the log evidence, for each output.

        N(y; f, s)^w is N(y; f, s/w) times a constant whose logarithm,
        -(w - 1)/2 log(2 pi s) - 1/2 log w, is summed over the rows here. With it a row of weight
        2 is exactly the row twice.
        """
        if weights is None:
            return 0.0
        w = self._weights(n, weights)
        s = self._unweighted(n)
        if np.any((s == 0) & (w != 1)):
            raise ValueError("a row with noise variance 0 must have weight 1")
        powers = np.where(w == 1, 0.0, (w - 1) * (LOG_2PI + np.log(np.where(s > 0, s, 1.0))))
        return float(-0.5 * np.sum(powers) - 0.5 * np.sum(np.log(w)))

    def weight_constant_gradient(self, n: int, weights: ArrayLike | None = None) -> Floats:
        """Return the derivative of `weight_constant` in theta."""
        excess = np.sum(self._weights(n, weights) - 1.0)
        return self._chain(lambda noise: -0.5 * excess / noise)

    def pull_variances(self, gradient: ArrayLike, weights: ArrayLike | None = None) -> Floats:
        """Chain dL/d variances, shape (n,), to dL/dtheta."""
        g = np.asarray(gradient, dtype=float)
        if g.ndim != 1:
            raise ValueError(f"gradient must have one entry a row, got shape {g.shape}")
        total = np.sum(g / self._weights(g.size, weights))
        return self._chain(lambda noise: total)

    def begun(self, y: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the likelihood with a start and bounds for its variance, where it is free.

        It starts at a tenth of the variance of the targets if it was left open, and its bounds
        are 1e-6 and 100 times that variance if it has none.
        """
        if self._known is not None:
            return self
        width = deviation_of(y, weights)
        noise = started(self._parameters.get("noise"), 0.1 * width**2, width, power=2)
        return self.from_state({"noise": noise})

    def subset(self, keep: ArrayLike) -> Self:
        """Return the likelihood of the training rows that a boolean mask keeps."""
        mask = np.asarray(keep)
        if mask.ndim != 1 or mask.dtype != bool:
            raise ValueError(f"keep must be a boolean mask, one entry a row, got {keep!r}")
        if self._known is None:
            return self
        self._check_rows(mask.size)
        kept = self._known[mask] if self._known.ndim == 1 else self._known[mask][:, mask]
        return self._of(kept, self._new)

    def weighted(self, weights: ArrayLike) -> Self:
        """Return the likelihood whose `new_variance` is the weighted mean of known variances."""
        if self._known is None or self._known.ndim == 2 or self._new is not None:
            return self
        mean = np.average(self._known, weights=np.asarray(weights, dtype=float))
        return self._of(self._known, float(mean))

    # --------------------------------------------------------------------------------- insides

    def _of(self, known: Floats, new: float | None) -> Self:
        return self.from_state({"noise": known, "new_noise": new})

    def _scalar(self) -> float:
        own = self._parameters.get("noise")
        if own is None:
            raise ValueError(
                "the noise variance is not chosen yet: give a number, Gaussian(0.1), or fit the "
                "model first"
            )
        return float(own.value)

    def _check_rows(self, n: int) -> None:
        if self._known is not None and self._known.shape[0] != n:
            raise ValueError(
                f"the noise was given for {self._known.shape[0]} rows (shape "
                f"{self._known.shape}), but there are {n}"
            )

    def _unweighted(self, n: int) -> Floats:
        self._check_rows(n)
        if self._known is None:
            return np.full(n, self._scalar())
        return self._known.copy() if self._known.ndim == 1 else np.diag(self._known).copy()

    def _weights(self, n: int, weights: ArrayLike | None) -> Floats:
        if weights is None:
            return np.ones(n)
        if self.covariance is not None:
            raise ValueError(
                "weights cannot be combined with a full noise covariance: a power of a likelihood "
                "that couples the rows has no meaning for one row"
            )
        w = np.asarray(weights, dtype=float)
        if w.shape != (n,) or not np.all(np.isfinite(w)) or np.any(w <= 0):
            raise ValueError(
                f"weights must be {n} positive numbers (leave out the rows of weight 0 first), "
                f"got {weights!r}"
            )
        return w

    def _row_variances(self, shape: tuple[int, ...]) -> float | Floats:
        """Return the variances in a form that broadcasts against arrays whose rows come first."""
        if self._known is None:
            return self._scalar()
        if self._known.ndim == 2:
            raise ValueError(
                "a full noise covariance couples the rows, so that a row has no likelihood of its "
                "own; only exact inference takes it"
            )
        self._check_rows(shape[0] if shape else 1)
        if np.any(self._known == 0):
            raise ValueError(
                "a row with noise variance 0 has no density; only exact inference takes it"
            )
        return self._known.reshape(-1, *(1,) * max(len(shape) - 1, 0))

    def _chain(self, slope: Any) -> Floats:
        """Return dL/dtheta from dL/dnoise, given as a function of the noise."""
        if not self._parameters:
            return np.empty(0)
        return self._own_gradient(noise=slope(self._scalar()))
