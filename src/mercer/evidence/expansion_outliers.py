"""Whether the noise and the functions of a kernel expansion are those of all rows, or of a few."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, Likelihood
from mercer.likelihoods.spread import median_of

__all__ = ["Few", "few_that_make", "is_louder", "poor_because_of_others", "scale_of"]

Floats = NDArray[np.float64]

# Noise of a scale of so many times the distance from their median within which half of the targets
# are is that of the part of them that is further out than it, if that is no more than the other
# number. Of targets that are Laplace noise and nothing else the ratio is 1.44.
_WIDE, _MOST = 3.0, 0.25
# Noise of more than so many times the mean square of the residuals is not theirs.
_LOUD = 10.0
# Estimated noise of more than so many times what is left of the other targets is that of the few
# far out; so is what is left of the others, if it is so many times the noise that was given.
_ABOVE = 4.0
# Functions that leave more than so many times the variance of these targets are worse than none;
# beside noise that was given they are poor if they leave more than this part of it.
_WORSE, _POOR = 1.25, 0.5


class Few(NamedTuple):
    """Targets far out that make the noise.

    scale : of the noise
    part : of the weight of all targets that is further than it from their median
    half : the distance from the median within which half of all are
    """

    scale: float
    part: float
    half: float


def scale_of(noise: Likelihood) -> float:
    """Return the scale of noise, in the units of the targets."""
    if isinstance(noise, Gaussian):
        return float(np.sqrt(noise.new_variance))
    assert isinstance(noise, (Laplace, EpsilonInsensitive, Huber))
    return float(noise.scale or 1.0)


def few_that_make(noise: Likelihood, y: Floats, weights: Floats) -> Few | None:
    """Return which part of targets (n,), far out, has made all of the noise estimated, if one has.

    Densities whose tails are exponential, or thinner, have the likeliest scale near the mean size
    of the residuals: outliers that are gross enough make all of it, and next to it nothing that is
    told of the other targets counts.
    """
    scale, away = scale_of(noise), np.abs(y - median_of(y, weights))
    half = median_of(away, weights)
    part = float(np.sum(weights[away > scale]) / np.sum(weights))
    if not (scale > _WIDE * half > 0 and 0 < part <= _MOST):
        return None
    return Few(scale, part, half)


def is_louder(noise: Likelihood, residuals: Floats, weights: Floats, k: int) -> bool:
    """Whether noise is far above the residuals (n,) of a fit with k coefficients."""
    total = float(np.sum(weights))
    left = float(weights @ residuals**2) / max(total - k, 1.0)
    return scale_of(noise) > float(np.sqrt(_LOUD * left))


def poor_because_of_others(
    noise: Likelihood, y: Floats, f: Floats, weights: Floats, is_open: bool
) -> Literal["noise", "fit"] | None:
    """Return what is poor at targets (n,) because of others, far from these, which are left out.

    "noise" that was estimated is far above what f leaves of these targets. The "fit" is poor if f
    leaves 1.25 times their variance; beside noise that was given, if it leaves far more than that
    noise and more than half of the variance.
    """
    left = float(np.average((y - f) ** 2, weights=weights))
    own = scale_of(noise) ** 2
    away = y - np.average(y, weights=weights)
    variance = float(np.average(away**2, weights=weights))
    if not is_open:
        return "fit" if left > max(_ABOVE * own, _POOR * variance) else None
    if own > _ABOVE * left:
        return "noise"
    return "fit" if left > _WORSE * variance else None
