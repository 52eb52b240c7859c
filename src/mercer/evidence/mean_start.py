"""Coefficients of a mean that a search has among its parameters: their start, and their units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.inference.exact import conditioned
from mercer.means import Mean

__all__ = ["begun_mean", "mean_directions"]

Floats = NDArray[np.float64]

# Each is a weighted least-squares fit; the coefficients need only be of the right size.
_ITERATIONS = 20


def begun_mean(mean: Mean, X: Any, latent: Floats, weights: Floats | None = None) -> Mean:
    """Return the mean with coefficients, if these are to be found and are not known yet.

    They are the least-absolute fit to plausible latent values (n, P), on which outliers have
    little effect: for a constant, about the median.
    """
    if mean.estimate != "ml" or mean.coefficients is not None:
        return mean
    H, T = conditioned(mean.features(X))
    target = latent - mean.fixed_part(X, latent.shape[1])
    gamma = np.column_stack([_least_absolute(H, t, weights) for t in target.T])
    return mean.with_coefficients(T @ gamma)


def _least_absolute(H: Floats, t: Floats, weights: Floats | None) -> Floats:
    """Return the coefficients with the least sum of absolute residuals, by reweighting."""
    counts = np.ones(len(t)) if weights is None else weights
    w = counts
    for _ in range(_ITERATIONS):
        root = np.sqrt(w)
        gamma = np.linalg.lstsq(root[:, None] * H, root * t, rcond=None)[0]
        residual = np.abs(t - H @ gamma)
        size = float(np.median(residual)) or float(np.max(residual))
        if size == 0:
            break
        w = counts / np.maximum(residual / size, 1e-3)
    return np.asarray(gamma)


def mean_directions(mean: Mean, X: Any, latent: Floats) -> Floats:
    """Return steps of the mean's theta, in columns, each of which moves it by a like amount.

    That is the spread of the latent values (n, P) about the mean, or 1 where they have none. The
    regressors are centred, so that no step undoes another. Coefficients are numbers in the units
    of the targets and of the inputs; a search by gradients needs them in units of its own.
    """
    if not mean.theta.size:
        return np.empty((0, 0))
    outputs = latent.shape[1]
    H, T = conditioned(mean.features(X))
    size = float(np.median(np.abs(latent - mean(X, outputs)))) or 1.0
    T = T * size * np.sqrt(len(H))
    return np.kron(T, np.eye(mean.theta.size // T.shape[1]))
