"""The noise of a Laplacian process: one shape for all outputs, and where outliers make it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, Likelihood
from mercer.likelihoods.spread import median_of

__all__ = [
    "is_drawn",
    "is_louder",
    "of_outliers",
    "ratio_of",
    "require_one_zone",
    "shares_its_shape",
]

Floats = NDArray[np.float64]

# Noise of a scale of so many times the distance from their median within which half of the targets
# are is that of the part of them that is further out than it, if that is no more than the other
# number. Of targets that are Laplace noise and nothing else the ratio is 1.44.
_WIDE, _MOST = 3.0, 0.25
# Noise of more than so many times the mean square of the residuals is not theirs.
_LOUD = 10.0
# Estimated noise of more than so many times what is left of targets without the few far out is that
# of these; more than so many times given noise that is left is no noise; and more than so many
# times the variance is worse than none of the functions.
_DRAWN, _WORSE = 4.0, 1.25


def _scale_of(noise: Likelihood) -> float:
    """Return the scale of noise, in the units of the targets."""
    if isinstance(noise, Gaussian):
        return float(np.sqrt(noise.new_variance))
    assert isinstance(noise, (Laplace, EpsilonInsensitive, Huber))
    return float(noise.scale or 1.0)


def ratio_of(noise: Likelihood, first: Likelihood) -> float:
    """Return the units of an output in which its noise is that of the first."""
    return _scale_of(noise) / _scale_of(first)


def of_outliers(noise: Likelihood, y: Floats, weights: Floats, unit: float) -> str | None:
    """Return in words that noise which was estimated is that of a few targets far out, if it is.

    Densities whose tails are exponential, or thinner, have the likeliest scale near the mean size
    of the residuals: outliers that are gross enough make all of it, and next to it nothing that is
    told of the other targets counts.

    Parameters
    ----------
    noise : as it was estimated
    y, weights : (n,) the targets, in units of `unit`
    """
    scale, away = _scale_of(noise), np.abs(y - median_of(y, weights))
    half = median_of(away, weights)
    part = float(np.sum(weights[away > scale]) / np.sum(weights))
    if not (scale > _WIDE * half > 0 and 0 < part <= _MOST):
        return None
    return (
        f"its scale is {unit * scale:.3g} because of {100 * part:.2g}% of the targets, which are "
        f"further than that from their median, while half of all are within {unit * half:.3g}"
    )


def is_louder(noise: Likelihood, residuals: Floats, weights: Floats, k: int) -> bool:
    """Whether noise is far above the residuals (n,) of a fit with k coefficients."""
    total = float(np.sum(weights))
    left = float(weights @ residuals**2) / max(total - k, 1.0)
    return _scale_of(noise) > float(np.sqrt(_LOUD * left))


def is_drawn(noise: Likelihood, y: Floats, f: Floats, weights: Floats, is_open: bool) -> bool:
    """Whether a fit is poor at targets (n,) because of others, far from these, which are left out.

    Noise that was estimated is far above what f leaves of them then, or f leaves more than there
    was; beside noise that was given, f leaves far more than it.
    """
    left = float(np.average((y - f) ** 2, weights=weights))
    own = _scale_of(noise) ** 2
    away = y - np.average(y, weights=weights)
    variance = float(np.average(away**2, weights=weights))
    if is_open:
        return own > _DRAWN * left or left > _WORSE * variance
    return left > max(_DRAWN * own, 0.5 * variance)


def shares_its_shape(spec: Likelihood | None) -> bool:
    """Whether noise that is left open differs between outputs by its scale alone."""
    if not isinstance(spec, EpsilonInsensitive):
        return True
    return spec.epsilon == 0 or None not in (spec.epsilon, spec.scale)


def require_one_zone(spec: Likelihood, outputs: int) -> None:
    """Raise ValueError where outputs would have noise that differs by more than its scale."""
    if outputs > 1 and not shares_its_shape(spec):
        raise ValueError(
            f"y has {outputs} columns, and of EpsilonInsensitive noise epsilon or the scale is "
            "left open, which each column would have in a ratio of its own. Give both, or fit one "
            "model an output"
        )
