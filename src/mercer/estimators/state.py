"""Saving estimators: their parameters and what they have fitted, without pickle."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

__all__ = ["StorableEstimator"]


class StorableEstimator:
    """Adds `to_state` and `from_state` to an estimator.

    The state is the constructor's parameters and every attribute that `fit` has set.
    """

    def to_state(self) -> dict[str, Any]:
        """Return the parameters and the fitted attributes."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        fitted = {k: v for k, v in vars(self).items() if k not in params}
        return {"params": {k: _storable_param(k, v) for k, v in params.items()}, "fitted": fitted}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        model = cls(**state["params"])
        for name, value in state["fitted"].items():
            setattr(model, name, value)
        return model


def _storable_param(name: str, value: Any) -> Any:
    if name == "kernel" and hasattr(value, "clone_with_theta"):
        from mercer.kernels import from_sklearn

        # The class registry knows no scikit-learn classes; the noise is in `likelihood_`.
        return from_sklearn(value)[0]
    if name == "random_state" and not isinstance(value, (int, np.integer, type(None))):
        return None
    return value
