"""Warning of noise that has vanished because rows are few: length scales can follow each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UndeterminedWarning, warn
from mercer.likelihoods import Gaussian, Likelihood

__all__ = ["warn_of_next_to_no_noise"]

Floats = NDArray[np.float64]

# Rows for each column that are enough for its length scale, and the part of the targets' variance
# below which noise is next to none.
_ENOUGH, _NEXT_TO_NONE = 30, 1e-3


def warn_of_next_to_no_noise(
    likelihood: Likelihood, scale: Floats, Y: Floats, weights: Floats | None, columns: int
) -> None:
    """Warn if rows are few for a length scale a column, and have left next to no noise.

    Parameters
    ----------
    likelihood : Likelihood
        As these rows have chosen it.
    scale : (P,) array
        The units of the outputs in which it is.
    Y : (n, P) array
        The targets of these rows.
    weights : (n,) array or None
        Their weights.
    columns : int
        How many length scales they have chosen.
    """
    count, is_free = len(Y), bool(likelihood.theta.size)
    weighted = weights is not None and bool(np.any(weights != 1.0))
    if not isinstance(likelihood, Gaussian) or not is_free or weighted:
        return  # noise that was given, or is that of a weight of 1, which there may not be
    if columns == 1 or count >= _ENOUGH * columns:
        return
    noise = np.asarray(likelihood.noise, dtype=float) * scale**2
    variance = np.var(Y, axis=0)
    most = np.full_like(variance, np.inf)
    least = float(np.min(np.divide(noise, variance, out=most, where=variance > 0.0)))
    if least < _NEXT_TO_NONE:
        warn(
            f"the n_init={count} rows that have chosen a length scale for each of {columns} "
            f"columns have left next to no noise, {least:.2g} of the variance of their targets. "
            "Where targets are not so exact predictions stay poor however many rows follow: let "
            f"more rows choose, n_init={max(500, _ENOUGH * columns)}, or bound the noise from "
            "below if you know about how large it is",
            UndeterminedWarning,
        )
