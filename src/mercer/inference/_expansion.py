"""The mean of a process as a function in the kernel's space: a sum of kernel sections."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm, dtrsm

from mercer.compute import blas_for
from mercer.kernels import Kernel, Precomputed
from mercer.linalg import cholesky
from mercer.means import Mean
from mercer.posterior import (
    Basis,
    IndependentPredictive,
    NystromPredictive,
    Posterior,
    PrecomputedPredictive,
    Predictive,
)

__all__ = ["MeanExpansion", "basis_factor", "mean_expansion", "same_rows", "values_and_norm"]

Floats = NDArray[np.float64]


class MeanExpansion(NamedTuple):
    """A mean function and a sum of kernel sections, and the rows as their kernel takes them."""

    basis: Basis
    alpha: Floats  # (m, P)
    mean: Mean
    X: Any

    @property
    def kernel(self) -> Kernel:
        return self.basis.kernel


def mean_expansion(predictive: Predictive, X: Any) -> MeanExpansion:
    """Return the mean of a predictive as an expansion, or say why it is none."""
    if isinstance(predictive, IndependentPredictive):
        predictive = predictive.process
    if isinstance(predictive, PrecomputedPredictive):
        X = _row_numbers(predictive, X)
        predictive = predictive.posterior
    if not isinstance(predictive, Posterior | NystromPredictive):
        raise ValueError(
            "a certificate is for one process whose mean is a sum of kernel sections, which a "
            f"{type(predictive).__name__} is not. Committees, blocks of PIC and augmented "
            "predictions mix several: use approximation='vfe' or 'fitc', and augment=False. Of "
            "processes side by side each has its own"
        )
    if isinstance(predictive, Posterior) and predictive.is_coupled:
        raise ValueError("a certificate is for regression, these outputs are coupled as classes")
    if predictive.basis.features is not None:
        raise ValueError(
            "a certificate is for a mean function whose coefficients are held or estimated; these "
            "are integrated out, and the function is not in the kernel's space: use estimate='ml'"
        )
    if not predictive.kernel.is_mercer:
        raise ValueError(f"{predictive.kernel!r} is no covariance, so that nothing is bounded")
    X = predictive.kernel.inputs(X)
    if len(X) == 0:
        raise ValueError("at least one row is wanted, got none")
    return MeanExpansion(predictive.basis, predictive.alpha, predictive.mean_function, X)


def _row_numbers(predictive: PrecomputedPredictive, X: Any) -> Floats:
    """Return the numbers of the training rows that a precomputed matrix stands for."""
    kernel = predictive.posterior.kernel
    assert isinstance(kernel, Precomputed)
    given = np.asarray(X, dtype=float)
    n = len(kernel.K)
    if given.shape != (n, n) or not np.array_equal(given, kernel.K):
        raise ValueError(
            "with a precomputed kernel the certificate is for the training rows: give the kernel "
            f"matrix ({n}, {n}) that was fitted, got an array of shape {given.shape}"
        )
    return np.arange(float(n))[:, None]


def same_rows(points: Any, X: Any) -> bool:
    """Whether the points of a basis are rows, in their order; of objects nothing is known."""
    return points.shape == np.shape(X) and points.dtype != object and np.array_equal(points, X)


def values_and_norm(basis: Basis, alpha: Floats, X: Any) -> tuple[Floats, Floats]:
    """Return the values (n, P) of the expansion at X and the squares (P,) of its norm.

    With K_bb = C C' the latter is |C' alpha|^2: first-order in what rounding leaves of
    coefficients that nearly cancel, as those of points close together do.
    """
    m, P = alpha.shape
    if m == 0:
        return np.zeros((len(X), P)), np.zeros(P)
    kernel, points = basis.kernel, basis.points
    F = kernel.times(X, points, alpha)
    if same_rows(points, X):  # without a matrix
        return F, np.maximum(np.einsum("ip,ip->p", alpha, F), 0.0)
    with blas_for(m):
        C = _gram_factor(basis)
        U = dtrmm(1.0, C, alpha, lower=1, trans_a=1)
    return F, np.asarray(np.einsum("ip,ip->p", U, U))


def basis_factor(basis: Basis, X: Any) -> Floats:
    """Return V (n, m), Fortran order, with V V' = K_nb K_bb^-1 K_bn for the points b: O(n m^2)."""
    V = np.asfortranarray(basis.kernel(X, basis.points))
    with blas_for(basis.n_points):
        return np.asarray(dtrsm(1.0, _gram_factor(basis), V, side=1, lower=1, trans_a=1))


def _gram_factor(basis: Basis) -> Floats:
    """Return the factor C of the points' kernel matrix, C C', which may have jitter."""
    kernel, points = basis.kernel, basis.points
    gram = kernel.gram_lower(points)
    return cholesky(gram, rebuild=lambda: kernel.gram_lower(points, gram)).L
