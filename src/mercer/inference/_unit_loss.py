"""The loss of a likelihood, in unit scale."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._losses import Loss
from mercer.inference._losses_labels import LogisticLoss, QuadraticSoftMargin, SoftMargin
from mercer.inference._losses_numbers import Absolute, Clipped, Insensitive, Squares
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, Logistic

__all__ = ["InUnits", "unit_loss"]

Floats = NDArray[np.float64]

MARGINS = ("soft_margin", "quadratic_soft_margin")


class InUnits(NamedTuple):
    """A loss, and what the rows' weights are multiplied by, (n,), None for ones."""

    loss: Loss
    factor: Floats | None


def unit_loss(noise: Any, y: Floats) -> InUnits:
    """Return the loss of a likelihood, or of one of the margins by its name.

    A variance a row in `Gaussian` becomes a weight a row; its unit is their harmonic mean.
    """
    loss: Loss
    if isinstance(noise, Gaussian):
        return _squares(noise, y)
    if isinstance(noise, EpsilonInsensitive):
        zone, scale = _given(noise.epsilon, "epsilon"), _given(noise.scale, "scale")
        loss = Insensitive(y, scale, zone)
    elif isinstance(noise, Laplace):
        loss = Absolute(y, _given(noise.scale, "scale"))
    elif isinstance(noise, Huber):
        scale = _given(noise.scale, "scale")
        loss = Clipped(y, scale**2, scale * float(noise.threshold))
    elif isinstance(noise, Logistic):
        loss = LogisticLoss(y)
    elif isinstance(noise, str) and noise in MARGINS:
        loss = SoftMargin(y) if noise == "soft_margin" else QuadraticSoftMargin(y)
    else:
        given = repr(noise) if isinstance(noise, str) else type(noise).__name__
        raise ValueError(
            "a kernel expansion takes Gaussian, Laplace, EpsilonInsensitive, Huber or Logistic "
            f"noise, 'soft_margin' or 'quadratic_soft_margin', got {given}"
        )
    return InUnits(loss, None)


def _squares(noise: Gaussian, y: Floats) -> InUnits:
    if noise.covariance is not None:
        raise ValueError(
            "a kernel expansion takes one variance, or one a row, got a covariance of the rows"
        )
    if noise.noise is None or np.ndim(noise.noise) == 0:
        return InUnits(Squares(y, _given(noise.noise, "noise")), None)
    variances = noise.variances(len(y))
    if not np.all(variances > 0):
        raise ValueError("the variances of the rows must be positive here, got a 0 among them")
    unit = float(1.0 / np.mean(1.0 / variances))
    return InUnits(Squares(y, unit), unit / variances)


def _given(value: Any, name: str) -> float:
    if value is None:
        raise ValueError(f"the {name} of the noise is not chosen yet: take it from begun(y)")
    return float(value)
