"""What estimators need of the names within kernels: nested parameters, and names of columns."""

from __future__ import annotations

from typing import Any, Self

from mercer.params import Parametrised

__all__ = ["NestedParameters", "column_names"]


class NestedParameters:
    """Adds to an estimator a `set_params` that reaches into kernels, likelihoods and means.

    They never change, so that ``set_params(kernel__length_scale=2.0)`` puts a new kernel in the
    place of the old one. It stands before `BaseEstimator` among an estimator's bases.
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the kernel, the likelihood and the mean by their paths.

        Parameters
        ----------
        **params
            Values by name. ``kernel__length_scale`` is the length scale of the kernel, and
            ``kernel__RBF__length_scale`` that of the RBF within it: ``get_params()`` has them all.

        Examples
        --------
        >>> from sklearn.base import BaseEstimator
        >>> from mercer.estimators.nested import NestedParameters
        >>> from mercer.kernels import RBF
        >>> class Model(NestedParameters, BaseEstimator):
        ...     def __init__(self, kernel=None):
        ...         self.kernel = kernel
        >>> Model(2.0 * RBF()).set_params(kernel__RBF__length_scale=3.0)
        Model(kernel=2 * RBF(length_scale=3))
        """
        plain: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            own, _, path = name.partition("__")
            held = params.get(own, getattr(self, own, None))
            if path and isinstance(held, Parametrised):
                nested.setdefault(own, {})[path] = value
            elif path and hasattr(self, own) and not hasattr(held, "set_params"):
                raise ValueError(
                    f"{name} cannot be set, since {own} is {held!r}, which has no parameters; "
                    f"give a {own} that has them"
                )
            else:
                plain[name] = value
        for own, values in nested.items():
            held = plain.get(own, getattr(self, own))
            plain[own] = held.with_params(**values)
        return super().set_params(**plain)  # type: ignore[misc, no-any-return]


def column_names(X: Any) -> list[str] | None:
    """Return the names of a frame's columns; None for what is no frame, or has other labels."""
    if not (hasattr(X, "shape") and hasattr(X, "columns")):
        return None
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None
