"""Where searches for hyperparameters begin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotPositiveDefiniteError

__all__ = ["starts"]

Floats = NDArray[np.float64]

# How many points are looked at for each start, where there is a period to be found.
_LOOKED_AT = 4


def starts(objective: Any, n_restarts: int, rng: np.random.Generator) -> list[Floats]:
    """Return the objective's own start, and `n_restarts` random ones, all inside the bounds.

    These are drawn from around it (see `Parametrised.draw_theta`), but periods from the whole of
    a sensible interval, each draw from a part of its own: the evidence has a narrow peak at the
    right period and leads there from nearby only. Of four times as many draws the best are taken.
    """
    low, high = objective.bounds.T
    own = np.clip(objective.theta, low, high)
    periods = objective.period_intervals() if n_restarts else {}
    count = n_restarts * (_LOOKED_AT if periods else 1)
    draws = [objective.draw_theta(rng) for _ in range(count)]
    if not periods:
        return [own, *(np.clip(draw, low, high) for draw in draws)]
    for i, (least, most) in periods.items():
        parts = (rng.permutation(count) + rng.uniform(size=count)) / count
        for draw, part in zip(draws, parts, strict=True):
            draw[i] = least + part * (most - least)
    draws = [np.clip(draw, low, high) for draw in draws]
    _value(objective, own)  # the start decides on jitter, not the first of the draws
    values = [_value(objective, draw) for draw in draws]
    best = np.argsort(values)[::-1][:n_restarts]
    return [own, *(draws[i] for i in best)]


def _value(objective: Any, theta: Floats) -> float:
    try:
        return float(objective(theta)[0])
    except NotPositiveDefiniteError:
        return -np.inf
