"""Several outputs of a Laplacian process, whose noise differs by its scale alone."""

from __future__ import annotations

import numpy as np

from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, Likelihood

__all__ = ["ratio_of", "require_one_zone", "shares_its_shape"]


def _scale_of(noise: Likelihood) -> float:
    """Return the scale of noise, in the units of the targets."""
    if isinstance(noise, Gaussian):
        return float(np.sqrt(noise.new_variance))
    assert isinstance(noise, (Laplace, EpsilonInsensitive, Huber))
    return float(noise.scale or 1.0)


def ratio_of(noise: Likelihood, first: Likelihood) -> float:
    """Return the units of an output in which its noise is that of the first."""
    return _scale_of(noise) / _scale_of(first)


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
