"""Saving estimators: their parameters and what they have fitted, without pickle."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.estimators.resolve import is_sklearn_kernel
from mercer.kernels import from_sklearn
from mercer.likelihoods import Gaussian
from mercer.posterior import Posterior

__all__ = ["StorableEstimator"]


class StorableEstimator:
    """Adds `to_state` and `from_state` to an estimator.

    The state is the constructor's parameters and every attribute that `fit` has set.
    """

    X_train_: Any

    def to_state(self) -> dict[str, Any]:
        """Return the parameters and the fitted attributes."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        fitted = {k: v for k, v in vars(self).items() if k not in params}
        if fitted.get("X_train_") is not None and fitted["X_train_"] is _points(fitted):
            fitted["X_train_"] = None  # they are written with the posterior
        return {"params": _storable(params), "fitted": fitted}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        model = cls(**state["params"])
        for name, value in state["fitted"].items():
            setattr(model, name, value)
        if "X_train_" in vars(model) and model.X_train_ is None:
            model.X_train_ = _points(vars(model))
        return model


def _points(fitted: dict[str, Any]) -> Any:
    """Return the basis points of a model's posterior, or of the first if it has several.

    There are none where something else that predicts was put in its place.
    """
    posteriors = [fitted.get("posterior_"), *fitted.get("posteriors_", ())]
    return next((each.basis.points for each in posteriors if isinstance(each, Posterior)), None)


def _storable(params: dict[str, Any]) -> dict[str, Any]:
    """Return the same parameters in forms that can be saved."""
    params = dict(params)
    kernel = params.get("kernel")
    if is_sklearn_kernel(kernel):
        # No scikit-learn class is ever built from a file: the kernel and its noise are converted.
        params["kernel"], noise = from_sklearn(kernel)
        if noise is not None:
            params["likelihood"] = Gaussian(noise)
    if callable(params.get("verbose")):
        params["verbose"] = 0  # who watched the fit is no part of the model
    seed = params.get("random_state")
    if seed is not None and not isinstance(seed, (int, np.integer)):
        raise ValueError(
            f"a random_state of type {type(seed).__name__} cannot be saved; set a whole number or "
            "None with set_params(random_state=...) first"
        )
    return params
