"""Comparisons that say what was expected and what came, and slopes by differences."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.testing.rules import ConformanceError

__all__ = ["brief", "close", "expect", "frozen", "identical", "lower", "refused", "slope"]

Floats = NDArray[np.float64]

# Central differences with it err by about 1e-10 of the function, from curvature and from rounding.
STEP = 1e-5


def brief(value: Any) -> str:
    """Show a value in one line."""
    if isinstance(value, np.ndarray):
        text = np.array2string(value, precision=6, threshold=8, edgeitems=2, separator=", ")
        text = f"{' '.join(text.split())} of shape {value.shape}"
    else:
        text = repr(value)
    return text if len(text) <= 160 else text[:157] + "..."


def expect(condition: Any, expected: str, got: Any) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise ConformanceError(f"expected {expected}, got {brief(got)}")


def _arrays(what: str, got: Any, wanted: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape:
        raise ConformanceError(f"{what}: expected shape {wanted.shape}, got shape {got.shape}")
    return got, wanted


def identical(what: str, got: Any, wanted: Any) -> None:
    """Raise unless two arrays agree in every bit."""
    got, wanted = _arrays(what, got, wanted)
    if not np.array_equal(got, wanted, equal_nan=got.dtype.kind == "f"):
        raise ConformanceError(f"{what}: expected exactly {brief(wanted)}, got {brief(got)}")


def close(what: str, got: Any, wanted: Any, rtol: float = 1e-10, atol: float = 0.0) -> None:
    """Raise unless two arrays agree to a tolerance; `atol` adds to `rtol` of the wanted."""
    got, wanted = _arrays(what, got, wanted)
    with np.errstate(invalid="ignore"):
        error = np.abs(got - wanted)
        excess = error - (atol + rtol * np.abs(wanted))
    excess = np.where((got == wanted) | (np.isnan(got) & np.isnan(wanted)), -1.0, excess)
    bad = ~(excess <= 0)  # NaN is bad
    if not np.any(bad):
        return
    at = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), excess.shape)
    where = f" at {tuple(map(int, at))}" if at else ""
    allowed = atol + rtol * abs(float(wanted[at]))
    raise ConformanceError(
        f"{what}: expected {wanted[at]:.10g}{where}, got {got[at]:.10g} (allowed {allowed:.1e}; "
        f"{int(np.sum(bad))} of {bad.size} entries differ by more)"
    )


def refused(
    what: str,
    call: Callable[[], Any],
    text: str = "",
    error: type[Exception] | tuple[type[Exception], ...] = ValueError,
) -> None:
    """Raise unless the call raises an error of the right type, whose text matches a pattern."""
    names = "/".join(e.__name__ for e in (error if isinstance(error, tuple) else (error,)))
    try:
        result = call()
    except error as raised:
        if text and not re.search(text, str(raised), flags=re.IGNORECASE):
            raise ConformanceError(
                f"{what}: expected a {names} whose text matches {text!r}, got the text {raised}"
            ) from raised
        if not str(raised).strip():
            raise ConformanceError(
                f"{what}: expected a {names} that says what was wrong, got one without a text"
            ) from raised
        return
    except Exception as raised:
        raise ConformanceError(
            f"{what}: expected a {names}, got {type(raised).__name__}: {raised}"
        ) from raised
    raise ConformanceError(f"{what}: expected a {names}, got the result {brief(result)}")


def slope(function: Callable[[Floats], Any], x: ArrayLike, step: float = STEP) -> Floats:
    """Return the derivative of a function of an array, by central differences.

    A scalar function gives the shape of x; one with an array for its value has that value's shape
    behind it.
    """
    x = np.array(x, dtype=float)
    parts = []
    for i in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        rise = np.asarray(function(up), dtype=float) - np.asarray(function(down), dtype=float)
        parts.append(rise / (up[i] - down[i]))
    inner = parts[0].shape if parts else ()
    return np.array(parts, dtype=float).reshape((*x.shape, *inner))


def frozen(array: Any) -> Any:
    """Return a read-only copy, which raises when code under test writes into it."""
    out = np.array(array, copy=True, order="K")
    out.setflags(write=False)
    return out


def lower(G: Floats) -> Floats:
    """Return a matrix with NaN above its diagonal, where it must not be read."""
    return np.tril(G) + np.triu(np.full(G.shape, np.nan), 1)
