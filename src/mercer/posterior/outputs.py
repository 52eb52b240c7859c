"""How the outputs of a process go together at each point by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.bilinear import Bilinear
from mercer.posterior.factor_set import FactorSet
from mercer.posterior.factors import RowBlock
from mercer.posterior.posterior import Posterior
from mercer.posterior.precomputed import PrecomputedPredictive
from mercer.posterior.predictive import Predictive

__all__ = ["output_moments"]

Floats = NDArray[np.float64]

# Bytes of what the factors make of one block of rows.
_BLOCK_BYTES = 16 * 2**20


def output_moments(predictive: Predictive, X: Any) -> tuple[Floats, Floats]:
    """Return the mean (n, P), and the covariance (n, P, P) of the outputs at each row of X.

    Of coupled outputs, such as the classes of a softmax, `Predictive.cov` has the covariance of all
    rows with each other, n times as much. Independent outputs have diagonal matrices.
    """
    posterior = predictive
    if isinstance(predictive, PrecomputedPredictive):
        posterior = predictive.posterior
    if not (isinstance(posterior, Posterior) and posterior.is_coupled):
        mean, var = predictive.mean_and_var(X)
        return mean, var[:, :, None] * np.eye(predictive.n_outputs)
    phi: Floats | None = None
    kdiag: Floats | None = None
    if isinstance(predictive, PrecomputedPredictive):
        rows, phi, further = predictive._split(X, "k(x, x)")
        kdiag = further[:, 0]
    else:
        rows = posterior.kernel.inputs(X)
        if posterior.weight:
            kdiag = posterior.kernel.diag(rows)
    mean = np.array(posterior.mean_function(rows, posterior.n_outputs), dtype=float)
    cov = np.empty((*mean.shape, posterior.n_outputs))
    for block in posterior._blocks(len(rows), _BLOCK_BYTES):
        Phi = posterior.basis.phi(rows[block]) if phi is None else phi[block]
        mean[block] += posterior.mean_from(Phi)
        cov[block] = _output_cov(posterior, Phi, None if kdiag is None else kdiag[block])
    return mean, cov


def _output_cov(posterior: Bilinear, Phi: Floats, kdiag: Floats | None) -> Floats:
    """Return the covariances (n, P, P) of coupled outputs, for rows phi of Phi."""
    with posterior._blas():
        cov = _products(posterior._B, Phi) - _products(posterior._A, Phi)
    outputs = np.arange(posterior.n_outputs)
    if kdiag is not None:
        cov[:, outputs, outputs] += posterior.weight * kdiag[:, None]
    cov[:, outputs, outputs] = np.maximum(cov[:, outputs, outputs], 0.0)  # below only by rounding
    return np.asarray(cov * np.multiply.outer(posterior.scale, posterior.scale))


def _products(factors: FactorSet, Phi: Floats) -> Floats:
    """Return <F_p phi, F_q phi> for the rows phi of Phi, shape (n, P, P)."""
    out = np.zeros((len(Phi), factors.c, factors.c))
    images = []
    for F in factors.factors:
        inner, start = (F.factor, F.start) if isinstance(F, RowBlock) else (F, 0)
        images.append((inner.apply(Phi), start))
    for p, (U, i) in enumerate(images):
        for q, (V, j) in enumerate(images[: p + 1]):
            low, high = max(i, j), min(i + len(U), j + len(V))  # the rows of both
            if low < high:
                both = np.einsum("ij,ij->j", U[low - i : high - i], V[low - j : high - j])
                out[:, p, q] = out[:, q, p] = both
    return out
