"""The derivatives of a posterior's predictions in the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.predictive import InputGradients

if TYPE_CHECKING:
    from mercer.posterior.posterior import Posterior

__all__ = ["input_gradients", "pull_phi"]

Floats = NDArray[np.float64]


def input_gradients(posterior: Posterior, X: Any, blocks: list[slice]) -> InputGradients:
    """Return the derivatives of mean and variance at the rows of X, taken block by block."""
    kernel, scale, P = posterior.kernel, posterior.scale, posterior.n_outputs
    if not kernel.is_numeric:
        raise ValueError(f"{kernel!r} takes inputs that are not numbers: no gradients")
    n, d = X.shape
    dmean, dvar = np.empty((n, d, P)), np.empty((n, d, P))
    for rows in blocks:
        Xb = X[rows]
        Phi = posterior.basis.phi(Xb)
        dmean[rows] = posterior.mean_function.gradient(Xb, P)
        for p in range(P):
            rise = np.tile(posterior.alpha[:, p], (len(Phi), 1))
            dmean[rows, :, p] += scale[p] * pull_phi(posterior, Xb, rise)
        prior_part = np.zeros((len(Xb), d))
        if posterior.weight:
            pulled = kernel.pullback_diag(Xb, np.ones(len(Xb))).X
            assert pulled is not None
            prior_part += pulled
        for p in range(P if posterior.is_coupled else 1):
            # var = w k(x,x) - |A phi|^2 + |B phi|^2
            shared = prior_part + pull_phi(posterior, Xb, posterior.var_slope_from(Phi, p))
            outputs = slice(p, p + 1) if posterior.is_coupled else slice(None)
            dvar[rows, :, outputs] = shared[:, :, None] * scale[outputs] ** 2
    return InputGradients(dmean, dvar)


def pull_phi(posterior: Posterior, X: Floats, G: Floats) -> Floats:
    """Return the derivative (n, d) of sum(G * phi(X)) in X, a row each."""
    m, basis = posterior.n_basis, posterior.basis
    out = np.zeros(X.shape)
    if m:
        pulled = basis.kernel.pullback(X, basis.points, G[:, :m]).X
        assert pulled is not None
        out += pulled
    if basis.features is not None and posterior.n_features:
        out += basis.features.pull_features(X, G[:, m:])
    return out
