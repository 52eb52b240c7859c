"""Timing contenders against each other."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# BLAS and OpenMP threads spin for some milliseconds after their work; the next contender must not
# pay for that.
PAUSE = 0.05


@dataclass
class Contender:
    """Something to be timed.

    prepare : called before each run, and not timed
    most : how often to run it at most, for what is slow
    """

    name: str
    run: Callable[[], Any]
    prepare: Callable[[], Any] | None = None
    most: int = 1000


def race(
    contenders: Sequence[Contender], rounds: int, *, warm_up: bool = True, pause: float = PAUSE
) -> dict[str, float]:
    """Return the best time of each contender in seconds.

    A round runs every contender once, each round starting with another one, so that what the
    machine does meanwhile falls on all alike. The first round, if `warm_up`, does not count for
    those that run often.
    """
    best = {c.name: float("inf") for c in contenders}
    runs = dict.fromkeys(best, 0)
    for number in range(rounds + warm_up):
        first = number % len(contenders)
        for contender in [*contenders[first:], *contenders[:first]]:
            if runs[contender.name] >= contender.most:
                continue
            runs[contender.name] += 1
            seconds = _time(contender, pause)
            if number >= warm_up or contender.most <= 2:
                best[contender.name] = min(best[contender.name], seconds)
    return best


def _time(contender: Contender, pause: float) -> float:
    if contender.prepare is not None:
        contender.prepare()
    gc.collect()
    time.sleep(pause)
    gc.disable()
    try:
        start = time.perf_counter()
        contender.run()
        return time.perf_counter() - start
    finally:
        gc.enable()


def milliseconds(seconds: float) -> str:
    """Return a time for a table: three digits, in ms."""
    value = 1e3 * seconds
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
