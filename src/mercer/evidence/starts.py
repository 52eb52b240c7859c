"""Where searches for hyperparameters begin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.searchable import Searchable

__all__ = ["starts"]

Floats = NDArray[np.float64]

# How many points are looked at for each start, where there is a period to be found.
_LOOKED_AT = 4


def starts(objective: Searchable, n_restarts: int, rng: np.random.Generator) -> list[Floats]:
    """Return the objective's own start, and `n_restarts` random ones, all inside the bounds.

    These are drawn from around it (see `Parametrised.draw_theta`), but periods from the whole of
    a sensible interval, each draw from a part of its own: the evidence has a narrow peak at the
    right period and leads there from nearby only. Of four times as many draws the best are taken.
    """
    low, high = objective.bounds.T
    own = np.clip(objective.theta, low, high)
    if not n_restarts:
        return [own]
    least, most = objective.start_intervals().T
    periods = np.flatnonzero(~np.isnan(least))
    count = n_restarts * (_LOOKED_AT if periods.size else 1)
    draws = [objective.draw_theta(rng) for _ in range(count)]
    for i in periods:
        parts = (rng.permutation(count) + rng.uniform(size=count)) / count
        for draw, part in zip(draws, parts, strict=True):
            draw[i] = least[i] + part * (most[i] - least[i])
    draws = [np.clip(draw, low, high) for draw in draws]
    if not periods.size:
        return [own, *draws]
    objective.value(own)  # the start decides on jitter, not the first of the draws
    values = [objective.value(draw) for draw in draws]
    best = np.argsort(values)[::-1][:n_restarts]
    return [own, *(draws[i] for i in best)]
