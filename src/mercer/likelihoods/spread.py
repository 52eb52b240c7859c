"""How far targets scatter, said so that outliers have no say: where scales start, and their bounds.

A change of units only shifts the logarithm of a scale, so that a start and bounds in units of the
spread are the same as standardising the targets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.params import Parameter

__all__ = ["deviation_of", "far_from_others", "median_of", "spread_of", "started"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# The standard deviation of a Gaussian over the median of its absolute deviations.
_NORMAL = 1.4826022185056018
# Noise is looked for from a thousandth to ten times the spread of the targets.
_NARROWEST, _WIDEST = 1e-3, 10.0
# Targets so many spreads from their median are far from all others, if they are at the most this
# part of them.
_FAR, _FEW = 20.0, 0.1


def started(given: Parameter | None, start: float, spread: float, power: int = 1) -> Parameter:
    """Return the parameter that was given, or one that starts at `start`, with bounds.

    Bounds are put in where it is free and has none, in units of the spread to a power (1 for a
    scale, 2 for a variance); a value that was given is always well within.
    """
    parameter = Parameter(start) if given is None else given
    if parameter.bounds is not None or not parameter.is_free:
        return parameter
    value = np.asarray(parameter.value)
    low = np.minimum((_NARROWEST * spread) ** power, 0.1 * value)
    high = np.maximum((_WIDEST * spread) ** power, 10.0 * value)
    return parameter.replace(bounds=(low, high))


def spread_of(y: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return the spread of targets: 1.48 times the median of their distances from their median.

    For a Gaussian it is the standard deviation, and half of the targets may be anywhere. Where
    more than half are the same it is the standard deviation; where all are, their size, or 1.

    Parameters
    ----------
    y : array of shape (n,)
    weights : array of shape (n,), optional
        Weight 2 is the target twice, 0 is without it.
    """
    y, w = _checked(y, weights)
    power, y = _reduced(y)
    away = np.abs(y - median_of(y, w))
    width = _NORMAL * median_of(away, w)
    return float(np.ldexp(width if width > _nothing(y) else _deviation(y, w), power))


def deviation_of(y: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return the standard deviation of targets; where all are the same their size, or 1."""
    y, w = _checked(y, weights)
    power, y = _reduced(y)
    return float(np.ldexp(_deviation(y, w), power))


def far_from_others(y: Floats, weights: Floats) -> Mask:
    """Return which targets (n,) are twenty times the spread from the median; none if many are."""
    far = np.abs(y - median_of(y, weights)) > _FAR * spread_of(y, weights)
    return far & (np.sum(weights[far]) <= _FEW * np.sum(weights))


def _reduced(y: Floats) -> tuple[int, Floats]:
    """Return targets in units of a power of 2, which is exact: their squares may not be doubles."""
    power = int(np.frexp(np.max(np.abs(y)))[1])
    return power, np.ldexp(y, -power)


def _nothing(y: Floats) -> float:
    """Return what targets may differ by and still count as the same."""
    return float(10.0 * np.finfo(float).eps * np.max(np.abs(y)))


def _deviation(y: Floats, weights: Floats) -> float:
    away = y - np.average(y, weights=weights)
    width = float(np.sqrt(np.average(away**2, weights=weights)))
    return width if width > _nothing(y) else float(np.max(np.abs(y))) or 1.0


def median_of(values: Floats, weights: Floats) -> float:
    """Return the weighted median; weights are positive."""
    order = np.argsort(values)
    part = np.cumsum(weights[order])
    part /= part[-1]
    # Both values in the middle where the weights are cut in halves, whatever their rounding.
    low = values[order[np.searchsorted(part, 0.5 - 1e-12)]]
    high = values[order[np.searchsorted(part, 0.5 + 1e-12)]]
    return float(0.5 * (low + high))


def _checked(y: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    try:
        y = np.asarray(y, dtype=float)
        w = np.ones(y.shape) if weights is None else np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"targets and their weights must be numbers, got {y!r}") from None
    if y.ndim != 1 or w.shape != y.shape:
        raise ValueError(
            "targets and their weights must be vectors of one length, got shapes "
            f"{y.shape} and {w.shape}"
        )
    if not (np.all(np.isfinite(y)) and np.all(np.isfinite(w)) and np.all(w >= 0)):
        raise ValueError("targets must be finite, and weights finite and not negative")
    y, w = y[w > 0], w[w > 0]
    if y.size == 0:
        raise ValueError("at least one target with a positive weight is wanted, got none")
    return y, w
