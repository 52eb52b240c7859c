"""A softmax at its mode: what `softmax` is without moving the mean from there."""

from __future__ import annotations

from functools import partial

from mercer.inference import softmax
from mercer.inference.softmax import evidence, solve

__all__ = ["evidence", "posterior", "solve"]

posterior = partial(softmax.posterior, at_mode=True)
