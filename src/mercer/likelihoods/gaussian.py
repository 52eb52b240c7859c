"""Gaussian noise: one variance, one a row, or a full covariance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from mercer.likelihoods.base import broadcast, check_level
from mercer.likelihoods.noise import known, number
from mercer.likelihoods.normal import log_normal, normal_cdf
from mercer.likelihoods.pulls import Slopes
from mercer.likelihoods.row_noise import RowNoise
from mercer.params import Parameter, positive
from mercer.registry import storable

__all__ = ["Gaussian"]

Floats = NDArray[np.float64]


@storable
class Gaussian(RowNoise):
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

    is_log_concave = True
    adds_noise = True
    is_symmetric = True

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

    # --------------------------------------------------------------------- the generic methods

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return -(y - f)^2/(2 s) - log(2 pi s)/2."""
        y, f = np.asarray(y, dtype=float), np.asarray(f, dtype=float)
        return log_normal(y - f, self._row_variances(np.broadcast_shapes(y.shape, f.shape)))

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
        """Return log N(y; mean, t), (y - mean)/t and -1/t with t = var + s (SOGP 4.4)."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        t = var + self._row_variances(y.shape)
        return log_normal(y - mean, t), np.asarray((y - mean) / t), np.asarray(-1.0 / t)

    def compiled_site(self) -> tuple[str, Floats] | None:
        """Return the one variance; None where each row has its own, or none is chosen yet."""
        own = self._parameters.get("noise")
        return None if own is None else ("gaussian", np.array([own.value], dtype=float))

    def log_predictive(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the log density of a new observation, log N(y; mean, var + s) (SOGP 4.3)."""
        # The paper prints 1/(2 pi t) to the power of 2, and it is that of 1/2.
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        return log_normal(y - mean, var + self.new_variance)

    def predictive_mean(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the mean."""
        return broadcast(mean=mean, var=var)[0]

    def predictive_var(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return var + s."""
        return np.asarray(broadcast(mean=mean, var=var)[1] + self.new_variance)

    def predictive_cdf(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the probability that a new observation is at most y."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        return normal_cdf(y - mean, var + self.new_variance)

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
        return normal_cdf(residual, self.new_variance)

    def sample(self, f: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one new observation for each f."""
        f = np.asarray(f, dtype=float)
        return np.asarray(f + np.sqrt(self.new_variance) * rng.standard_normal(f.shape))

    # ------------------------------------------------------------- expectations and parameters

    def expected(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return log N(y; mean, s) - var/(2 s), (y - mean)/s and -1/(2 s)."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        s = self._row_variances(y.shape)
        value = np.asarray(log_normal(y - mean, s) - 0.5 * var / s)
        return value, np.asarray((y - mean) / s), np.zeros(y.shape) - 0.5 / s

    def _slopes(self, y: Floats, f: Floats) -> Slopes:
        s, t = self._scalar(), y - f
        first = np.asarray(-0.5 / s + 0.5 * (t / s) ** 2)
        return {"noise": (first, np.asarray(-t / s**2), np.full(t.shape, 1.0 / s**2))}

    def pull_smoothed(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g log Z) at fixed y, mean and var, shape (p,)."""
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        return self._chain(
            lambda s: np.sum(0.5 * g * (((y - mean) / (s + var)) ** 2 - 1.0 / (s + var)))
        )

    def pull_expected(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g E[log p]) at fixed y, mean and var, shape (p,)."""
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        return self._chain(lambda s: np.sum(0.5 * g * (((y - mean) ** 2 + var) / s - 1.0) / s))

    # --------------------------------------------------------------------------------- insides

    def _options(self) -> dict[str, Any]:
        if self._parameters:
            return {}
        known = {"noise": self._known}
        return known if self._new is None else {**known, "new_noise": self._new}

    def _with(self, parameters: dict[str, Parameter], children: tuple[Any, ...]) -> Self:
        return type(self)(parameters["noise"]) if parameters else self
