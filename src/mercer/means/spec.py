"""Means by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.means.base import Mean
from mercer.means.function import Function
from mercer.means.linear import Constant, Linear
from mercer.means.zero import Zero

__all__ = ["from_spec"]


def from_spec(spec: str | Mean | Callable[[Any], Any] | None) -> Mean:
    """Return the mean that an estimator's argument stands for.

    Parameters
    ----------
    spec : None, "zero", "constant", "linear", Mean or callable
        None is "zero"; "constant" and "linear" are estimated from the data; a function of X is
        taken as it is.
    """
    if spec is None or (isinstance(spec, str) and spec == "zero"):
        return Zero()
    if isinstance(spec, str) and spec == "constant":
        return Constant()
    if isinstance(spec, str) and spec == "linear":
        return Linear()
    if isinstance(spec, Mean):
        return spec
    if callable(spec) and not isinstance(spec, type):
        return Function(spec)
    brackets = f"; did you forget the brackets: {spec.__name__}()" if isinstance(spec, type) else ""
    raise ValueError(
        'mean must be None, "zero", "constant", "linear", a mercer.means.Mean or a function of X, '
        f"got {spec!r}{brackets}"
    )
