"""The evidence of a model without a kernel."""

from __future__ import annotations

import numpy as np

from mercer.evidence.objective import Objective
from mercer.inference.exact import conditioned
from mercer.likelihoods import Gaussian

__all__ = ["evidence_of_noise"]


def evidence_of_noise(objective: Objective, likelihood: Gaussian) -> float | None:
    """Return the log evidence of mean and noise without a kernel, None where it is no short sum.

    A noise that is free has its best value. Constants are those of a search, see
    `Objective.constant_of_search`.
    """
    data, mean = objective.data, objective.mean
    if mean.estimate == "integrate" or likelihood.covariance is not None:
        return None
    n, outputs = data.Y.shape
    held = mean.estimate is None
    residual = data.Y - (mean if held else mean.fixed_part)(data.X, outputs)
    H = conditioned(np.empty((n, 0)) if held else mean.features(data.X))[0]
    noise = likelihood.parameters.get("noise")
    root = np.sqrt(likelihood.variances(n, data.weights))[:, None]
    if not np.all(root > 0):
        return None
    scaled = residual / data.scale / root
    scaled -= H / root @ np.linalg.lstsq(H / root, scaled, rcond=None)[0]
    if noise is not None and noise.is_free:
        better = float(noise.value) * np.sum(scaled**2) / (outputs * data.total_weight)
        if noise.bounds is not None:
            better = float(np.clip(better, *noise.bounds))
        if not better > 0:
            return None
        likelihood = likelihood.with_parameters(noise=noise.replace(value=better))
        scaled *= np.sqrt(float(noise.value) / better)
    logs = np.log(2.0 * np.pi * likelihood.variances(n, data.weights))
    engine = -0.5 * (outputs * np.sum(logs) + np.sum(scaled**2))
    return float(engine) + objective.constant_of_search(likelihood)
