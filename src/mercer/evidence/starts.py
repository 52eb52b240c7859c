"""Where searches for hyperparameters begin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.guarded import Guarded
from mercer.evidence.optimum import Again, Optimum
from mercer.evidence.searchable import Searchable
from mercer.kernels import Kernel

__all__ = ["noisy_start", "starts"]

Floats = NDArray[np.float64]

# Noise below this share of the targets' variance interpolates them; half of it is plenty.
_INTERPOLATES, _PLENTY = 1e-3, 0.5

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


def noisy_start(objective: Guarded, kernel: Kernel, variance: float) -> Again:
    """Return what sends a search that ends at next to no noise to a start of plenty.

    Rough functions through all of the targets are often a maximum beside that of a smooth one and
    noise. `kernel` is the default one at its start, `variance` that of the targets in its units,
    and the noise is to be the last component of theta.
    """
    least = np.log(_INTERPOLATES * variance)
    low, high = objective.bounds.T
    start = np.append(kernel.theta, np.log(_PLENTY * variance))
    data = objective.data
    # No density of targets with so much noise is higher, nor one of those left out, and no
    # hyperprior than at the kernel's start: an end above that needs no other. It does not hold for
    # estimate="integrate", whose evidence is no density of the targets, so that an end above may be
    # left without a second look.
    each_row = float(np.sum(0.5 * (np.log(2.0 * np.pi) + least) + np.log(data.scale)))
    highest = kernel.log_prior() - data.total_weight * each_row

    def again(end: Optimum) -> Floats | None:
        interpolates = end.theta[-1] < least and end.value < highest
        return np.clip(start, low, high) if interpolates else None

    return again
