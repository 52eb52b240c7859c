"""Gaussian noise: one variance, one a row, or a full covariance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from mercer.likelihoods.base import Likelihood, broadcast, check_level
from mercer.likelihoods.noise import known, number
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["Gaussian"]

Floats = NDArray[np.float64]

_LOG_2PI = float(np.log(2.0 * np.pi))


@storable
class Gaussian(Likelihood):
    """y = f + e with Gaussian e.

    Parameters
    ----------
    noise : float, Parameter, array of shape (n,) or (n, n), or None, default None
        The *variance* of e.

        - None: one variance, to be chosen from the data by whoever fits the model.
        - A positive number or a `Parameter`: one variance, optimised from this value on unless it
          is fixed.
        - A vector: the known variance of each training row, held. An entry may be 0.
        - A matrix: the known covariance of the training rows' noise, held. Only exact inference
          takes it, without sample weights.
    new_noise : float, optional
        The variance of e for a new observation, where the training rows' variances are given. By
        default their mean (a fit with sample weights takes the weighted one).

    Notes
    -----
    With a vector, `log_density`, `derivatives`, `fisher` and `smoothed` speak of the training
    rows: their first axis must be the rows, each with its own variance. What speaks of new
    observations (`predictive_mean`, `predictive_var`, `predictive_cdf`, `quantile`,
    `log_predictive`, `sample` and the conditional moments) uses `new_variance`, the mean of the
    given variances, since nothing is known of a new row's own.

    Examples
    --------
    >>> from mercer.likelihoods import Gaussian
    >>> Gaussian(0.25).predictive_var(0.0, 1.0)
    array(1.25)
    >>> Gaussian([0.1, 0.4]).variances(2, weights=[1.0, 2.0])
    array([0.1, 0.2])
    """

    def __init__(
        self, noise: ArrayLike | Parameter | None = None, new_noise: float | None = None
    ) -> None:
        self._known: Floats | None = None  # (n,) or (n, n)
        if new_noise is not None:
            if noise is None or isinstance(noise, Parameter) or np.ndim(noise) == 0:
                raise ValueError("new_noise goes with variances of the training rows only")
            if not (np.isfinite(new_noise) and new_noise >= 0):
                raise ValueError(f"new_noise must be a variance, at least 0, got {new_noise!r}")
        self._new = None if new_noise is None else float(new_noise)
        if noise is None:
            self._set()
        elif isinstance(noise, Parameter) or np.ndim(noise) == 0:
            self._set(noise=positive("noise", number(noise), vector=False))
        else:
            self._known = known(noise)
            self._set()

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
        powers = np.where(w == 1, 0.0, (w - 1) * (_LOG_2PI + np.log(np.where(s > 0, s, 1.0))))
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

    def subset(self, keep: ArrayLike) -> Gaussian:
        """Return the likelihood of the training rows that a boolean mask keeps."""
        mask = np.asarray(keep)
        if mask.ndim != 1 or mask.dtype != bool:
            raise ValueError(f"keep must be a boolean mask, one entry a row, got {keep!r}")
        if self._known is None:
            return self
        self._check_rows(mask.size)
        kept = self._known[mask] if self._known.ndim == 1 else self._known[mask][:, mask]
        return Gaussian(kept, self._new)

    def weighted(self, weights: ArrayLike) -> Gaussian:
        """Return the likelihood whose `new_variance` is the weighted mean of known variances."""
        if self._known is None or self._known.ndim == 2 or self._new is not None:
            return self
        return Gaussian(
            self._known, float(np.average(self._known, weights=np.asarray(weights, dtype=float)))
        )

    # --------------------------------------------------------------------- the generic methods

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return -(y - f)^2/(2 s) - log(2 pi s)/2."""
        y, f = np.asarray(y, dtype=float), np.asarray(f, dtype=float)
        return _log_normal(y - f, self._row_variances(np.broadcast_shapes(y.shape, f.shape)))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return (y - f)/s, -1/s and 0."""
        residual = np.asarray(np.asarray(y, dtype=float) - np.asarray(f, dtype=float))
        s = self._row_variances(residual.shape)
        return np.asarray(residual / s), np.zeros(residual.shape) - 1 / s, np.zeros(residual.shape)

    def fisher(self, f: ArrayLike) -> Floats:
        """Return 1/s."""
        shape = np.shape(f)
        return np.zeros(shape) + 1.0 / self._row_variances(shape)

    def smoothed(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return log N(y; mean, t), (y - mean)/t and -1/t with t = var + s."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        t = var + self._row_variances(y.shape)
        return _log_normal(y - mean, t), np.asarray((y - mean) / t), np.asarray(-1.0 / t)

    def log_predictive(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the log density of a new observation, log N(y; mean, var + s)."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        return _log_normal(y - mean, var + self.new_variance)

    def predictive_mean(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the mean."""
        return broadcast(mean=mean, var=var)[0]

    def predictive_var(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return var + s."""
        return np.asarray(broadcast(mean=mean, var=var)[1] + self.new_variance)

    def predictive_cdf(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the probability that a new observation is at most y."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        return _normal_cdf(y - mean, var + self.new_variance)

    def quantile(self, mean: ArrayLike, var: ArrayLike, level: ArrayLike) -> Floats:
        """Return mean + sqrt(var + s) z with z the quantile of the standard normal."""
        mean, var, level = broadcast(mean=mean, var=var, level=level)
        check_level(level)
        return np.asarray(mean + np.sqrt(var + self.new_variance) * ndtri(level))

    def conditional_mean(self, f: ArrayLike) -> Floats:
        """Return f."""
        return np.array(f, dtype=float)

    def conditional_var(self, f: ArrayLike) -> Floats:
        """Return s."""
        return np.full(np.shape(f), self.new_variance)

    def conditional_cdf(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return the normal distribution function."""
        residual = np.asarray(y, dtype=float) - np.asarray(f, dtype=float)
        return _normal_cdf(residual, self.new_variance)

    def sample(self, f: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one new observation for each f."""
        f = np.asarray(f, dtype=float)
        return np.asarray(f + np.sqrt(self.new_variance) * rng.standard_normal(f.shape))

    # --------------------------------------------------------------------------------- insides

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

    def _options(self) -> dict[str, Any]:
        if self._parameters:
            return {}
        known = {"noise": self._known}
        return known if self._new is None else {**known, "new_noise": self._new}

    def _with(self, parameters: dict[str, Parameter], children: tuple[Any, ...]) -> Self:
        return type(self)(parameters["noise"]) if parameters else self


def _log_normal(residual: Floats, var: float | Floats) -> Floats:
    """Return log N(residual; 0, var); without variance, inf at 0 and -inf elsewhere."""
    with np.errstate(all="ignore"):
        out = -0.5 * ((residual / np.sqrt(var)) ** 2 + np.log(var) + _LOG_2PI)
    return np.where(np.equal(var, 0.0), np.where(residual == 0.0, np.inf, -np.inf), out)


def _normal_cdf(residual: Floats, var: float | Floats) -> Floats:
    """Return the distribution function of N(0, var); without variance, a step to 1 at 0."""
    with np.errstate(all="ignore"):
        out = ndtr(residual / np.sqrt(var))
    return np.where(np.equal(var, 0.0), np.where(residual >= 0.0, 1.0, 0.0), out)
