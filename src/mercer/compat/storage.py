"""Saving the drop-ins without pickle: scikit-learn's kernels as descriptions of themselves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.gaussian_process import kernels as skl

from mercer.kernels.from_sklearn import is_sklearns_own
from mercer.posterior import InverseTriangular

__all__ = ["Stored"]


class Stored:
    """Adds `to_state` and `from_state`: the constructor's parameters, and what `fit` has set.

    Kernels are kept by the name of their class and its arguments. When a file is read, only
    scikit-learn's own kernels are built from it.
    """

    def to_state(self) -> dict[str, Any]:
        """Return the parameters and the fitted attributes."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        seed = params.get("random_state")
        if seed is not None and not isinstance(seed, (int, np.integer)):
            raise ValueError(
                f"a random_state of type {type(seed).__name__} cannot be saved; set a whole number "
                "or None with set_params(random_state=...) first"
            )
        fitted = {name: value for name, value in vars(self).items() if name not in params}
        if "L_" in fitted:
            fitted["L_"] = InverseTriangular(fitted["L_"])  # keeps one triangle
        return {"params": _kept(params), "fitted": _kept(fitted)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        model = cls(**_built(state["params"]))
        for name, value in _built(state["fitted"]).items():
            if isinstance(value, InverseTriangular):
                value = np.asfortranarray(np.tril(value.L))
            elif isinstance(value, float):
                value = np.float64(value)
            setattr(model, name, value)
        return model


def _kept(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with kernels as descriptions."""
    return {
        name: _described(value) if isinstance(value, skl.Kernel) else value
        for name, value in values.items()
    }


def _described(kernel: Any) -> dict[str, Any]:
    name = type(kernel).__name__
    if not is_sklearns_own(kernel):
        raise ValueError(
            f"a model with the kernel {kernel} cannot be saved: {name} is not one of "
            "scikit-learn's own kernels, and a file holds no code. Pickle the model, or write the "
            "kernel as one of Mercer's, registered with mercer.registry.storable, and give it to "
            "Mercer's own estimator"
        )
    arguments = _kept(kernel.get_params(deep=False))
    for key, value in arguments.items():
        if isinstance(value, (list, tuple)):  # which of them it was, a file does not tell
            arguments[key] = np.asarray(value)
    return {"sklearn": name, "arguments": arguments}


def _built(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with descriptions as kernels."""
    return {
        name: _kernel(value) if isinstance(value, dict) and "sklearn" in value else value
        for name, value in values.items()
    }


def _kernel(description: dict[str, Any]) -> Any:
    cls = getattr(skl, description["sklearn"], None)
    if not (isinstance(cls, type) and issubclass(cls, skl.Kernel)):
        raise ValueError(f"scikit-learn has no kernel {description['sklearn']!r}")
    return cls(**_built(description["arguments"]))
