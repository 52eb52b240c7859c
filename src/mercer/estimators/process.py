"""What estimators share once they are fitted: parts of the model, its process, new inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mercer.estimators.inputs import require_numbers
from mercer.estimators.rows import is_precomputed
from mercer.kernels import Kernel
from mercer.means import Mean
from mercer.posterior import Posterior, PrecomputedPredictive, Predictive, Stacked
from mercer.posterior.outputs import output_moments

__all__ = [
    "FittedProcess",
    "RowTooLargeError",
    "coupled_moments",
    "latent_cov",
    "latent_mean",
    "latent_moments",
]

Floats = NDArray[np.float64]


class RowTooLargeError(ValueError):
    """A row to predict is too large for floating point under the kernel or the mean function."""


class FittedProcess:
    """Adds to an estimator what asks its fitted process.

    `fit` sets `kernel_`, `likelihood_`, `mean_` and `posterior_`; where several parts were fitted
    by themselves the first three are lists, and there is a list `posteriors_` instead of the last.
    It sets `_pairwise` too if kernel matrices stand for inputs. A predictor that is no posterior
    overrides `predictive_`. It stands before `BaseEstimator` among an estimator's bases.
    """

    kernel: Any
    kernel_: Any
    likelihood_: Any
    mean_: Any
    posterior_: Posterior
    posteriors_: list[Posterior]
    _pairwise: bool = False

    if not TYPE_CHECKING:  # to which any name would be an attribute

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, which says why where a fitted model has no such attribute."""
            why = self._absent(name)
            if why is not None:
                raise AttributeError(why, name=name, obj=self)
            return self.__getattribute__(name)  # once more, for its own words

    def _absent(self, name: str) -> str | None:
        """Return why this fit has not set an attribute that others set; None for any other."""
        return None

    @property
    def _has_parts(self) -> bool:
        """Whether several parts were fitted by themselves: one class against the rest each."""
        return isinstance(self.kernel_, list)

    def _models(self) -> list[tuple[Kernel, Any, Mean]]:
        """Return kernel, likelihood and mean of each part that was fitted by itself."""
        check_is_fitted(self, "kernel_")
        fitted = self.kernel_, self.likelihood_, self.mean_
        return list(zip(*fitted, strict=True)) if self._has_parts else [fitted]

    @property
    def theta_(self) -> Floats:
        """The fitted hyperparameters [kernel_, likelihood_, mean_] as one flat vector.

        With one class against the rest, those of one class after the other.
        """
        return np.concatenate([part.theta for model in self._models() for part in model])

    @property
    def predictive_(self) -> Predictive:
        """The fitted process, as predictions ask it; parts fitted by themselves side by side."""
        check_is_fitted(self, "kernel_")
        members: list[Predictive] = list(self._posteriors())
        if self._pairwise:
            members = [PrecomputedPredictive(posterior) for posterior in self._posteriors()]
        return Stacked(members) if len(members) > 1 else members[0]

    def _posteriors(self) -> list[Posterior]:
        """Return the posterior of each part that was fitted by itself."""
        return self.posteriors_ if "posteriors_" in vars(self) else [self.posterior_]

    def _new_inputs(self, X: Any) -> Any:
        """Return rows to predict, checked: inputs as the kernel takes them, or of its matrix."""
        return self._checked_inputs(X, self._models()[0][0])

    def _checked_inputs(self, X: Any, kernel: Kernel) -> Any:
        if self._pairwise:
            require_numbers(X)
            return check_array(X, dtype=np.float64)
        if kernel.is_numeric:
            require_numbers(X)
            return validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return X

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: pairwise when precomputed."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = is_precomputed(self)
        return tags


def latent_mean(predictive: Predictive, X: Any) -> Floats:
    """Return the mean (n, P) at the rows of X; raises ValueError for rows too large for doubles."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = predictive.mean(X)
    _require_finite(mean)
    return mean


def latent_moments(predictive: Predictive, X: Any) -> tuple[Floats, Floats]:
    """Return mean and variance likewise."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, var = predictive.mean_and_var(X)
    _require_finite(mean, var)
    return mean, var


def latent_cov(predictive: Predictive, X: Any) -> Floats:
    """Return the covariance of the rows of X, (n, n, P), or (n, P, n, P) of coupled outputs."""
    with np.errstate(over="ignore", invalid="ignore"):
        cov = predictive.cov(X)
    _require_finite(np.einsum("iip->ip" if cov.ndim == 3 else "ipip->ip", cov))
    return cov


def coupled_moments(predictive: Predictive, X: Any) -> tuple[Floats, Floats]:
    """Return the mean (n, P), and the covariance (n, P, P) of the outputs at each row."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, cov = output_moments(predictive, X)
    _require_finite(mean, np.einsum("npp->np", cov))
    return mean, cov


def _require_finite(*moments: Floats) -> None:
    """Raise ValueError that names the first row at which moments (n, P) are not finite."""
    wrong = [~np.all(np.isfinite(part), axis=1) for part in moments]
    rows = np.flatnonzero(np.any(wrong, axis=0))
    if rows.size:
        others = f", and at {rows.size - 1} more" if rows.size > 1 else ""
        raise RowTooLargeError(
            f"the kernel or the mean function is too large for floating point at row {rows[0]} of "
            f"X (counted from 0){others}: nothing can be predicted there. Look for wrong entries, "
            "or standardise the columns for the fit and here"
        )
