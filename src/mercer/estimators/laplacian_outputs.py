"""The noise of a Laplacian process: one shape for all outputs, and where outliers make it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.expansion_outliers import few_that_make, scale_of
from mercer.likelihoods import EpsilonInsensitive, Likelihood

__all__ = [
    "of_outliers",
    "ratio_of",
    "require_one_zone",
    "shares_its_shape",
]

Floats = NDArray[np.float64]


def ratio_of(noise: Likelihood, first: Likelihood) -> float:
    """Return the units of an output in which its noise is that of the first."""
    return scale_of(noise) / scale_of(first)


def of_outliers(noise: Likelihood, y: Floats, weights: Floats, unit: float) -> str | None:
    """Return in words that noise which was estimated is that of a few targets far out, if it is.

    Parameters
    ----------
    noise : as it was estimated
    y, weights : (n,) the targets, in units of `unit`
    """
    few = few_that_make(noise, y, weights)
    if few is None:
        return None
    return (
        f"its scale is {unit * few.scale:.3g} because of {100 * few.part:.2g}% of the targets, "
        "which are further than that from their median, while half of all are within "
        f"{unit * few.half:.3g}"
    )


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
