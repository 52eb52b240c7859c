"""Between the moments that an on-line posterior is kept by and the common form of a posterior.

`mercer.linalg.recursion` has the notation: z = (beta, g_B), its mean and covariance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.errors import NotPositiveDefiniteError
from mercer.likelihoods import Gaussian, Likelihood
from mercer.linalg import cholesky, inverse_lower, mirror_lower, semidefinite_root, solve_lower
from mercer.linalg.recursion import Arrays, empty_arrays, symmetric
from mercer.means import Mean
from mercer.posterior import Basis, Dense, InverseTriangular, Posterior
from mercer.posterior.chart import Chart, charted
from mercer.posterior.factor_set import Image
from mercer.posterior.factors import Factor, RowBlock

__all__ = ["arrays_of", "as_posterior", "grown", "n_covariances", "packed", "refresh", "unpacked"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(float).eps)
# Off-diagonal blocks of a coupled posterior's covariance that may be taken for rounding.
_COUPLED = 1e-8


def n_covariances(likelihood: Likelihood, outputs: int) -> int:
    """Return how many covariances there are: Gaussian noise says the same of all outputs' ones."""
    return 1 if isinstance(likelihood, Gaussian) else outputs


def refresh(A: Arrays) -> None:
    """Make Q, P and what is derived of them anew from K and the moments: O(m^3)."""
    m, r = A.m, A.n_features
    n = r + m
    symmetric(A)
    A.whole[1:] = 0
    with blas_for(n):
        K = A.K[:m, :m]
        Q = _inverse(K)
        A.Q[:m, :m] = 0.5 * (Q + Q.T)
        for c, S in enumerate(A.S[:, :n, :n]):
            A.P[c, :n, :n] = _inverse(S)
            A.curvature[c, :m] = np.einsum("ij,ij->i", Q @ S[r:, r:], Q) - np.diagonal(Q)
        A.alpha[:, :m] = A.mu[:, r:n] @ A.Q[:m, :m]


def _inverse(S: Floats) -> Floats:
    """Return the inverse of a covariance; of one that is singular, of it and as little as helps."""
    if not len(S):
        return np.empty((0, 0))
    least = len(S) * _EPS * float(np.max(np.diagonal(S), initial=0.0))
    for ridge in (0.0, least, 1e3 * least, 1e6 * least):
        try:
            factor = cholesky(np.array(S, order="F"), ridge)
            return mirror_lower(inverse_lower(factor.L))
        except NotPositiveDefiniteError:
            continue
    values, vectors = np.linalg.eigh(S)
    return np.asarray((vectors / np.maximum(values, 1e6 * least)) @ vectors.T)


def as_posterior(
    A: Arrays, basis: Basis, chart: Chart, mean: Mean, scale: Floats, weight: int
) -> Posterior:
    """Return the process: cov = w (k - |L^-1 k_B|^2) + |root' e|^2 with K = L L', S = root root'.

    With w = 0 there are no points, and e is F phi.
    """
    m, r = A.m, A.n_features
    n = r + m
    symmetric(A)
    with blas_for(n):
        L = cholesky(np.array(A.K[:m, :m], order="F")).L if m else np.empty((0, 0), order="F")
        B: list[Factor] = []
        for S in A.S[:, :n, :n]:
            root = semidefinite_root(S)
            sections = _solved(L, root[r:])
            B.append(Dense(np.hstack([sections.T, chart.pull(root[:r]).T])))
        moved = chart.coef + chart.pull(A.mu[:, :r].T)
        alpha = np.vstack([_solved(L, A.mu[:, r:n].T), moved])
    if not n:
        return Posterior(basis, alpha, weight=weight, mean=mean, scale=scale)
    shared = InverseTriangular(L) if m else None
    if len(B) == 1:
        return Posterior(basis, alpha, shared, B[0], weight, mean, scale)
    c = len(B)
    own = [RowBlock(F, p * n, c * n) for p, F in enumerate(B)]
    prior = None if shared is None else [RowBlock(shared, p * m, c * m) for p in range(c)]
    return Posterior(basis, alpha, prior, own, weight, mean, scale)


def _solved(L: Floats, right: Floats) -> Floats:
    """Return (L L')^-1 times an array."""
    half = solve_lower(L, np.asfortranarray(right))
    return solve_lower(L, half, transpose=True, overwrite=True)


def arrays_of(posterior: Posterior, cap: int, covariances: int) -> tuple[Arrays, Chart]:
    """Return the arrays of a posterior, with room for `cap` points, and what they have for h.

    Those of a degenerate one are of its weights, as explicit functions.

    Raises
    ------
    ValueError
        If the outputs are coupled by more than rounding: the recursion has one covariance for all,
        or one for each.
    """
    if posterior.is_coupled and posterior.n_outputs > 1 and covariances == 1:
        raise ValueError(
            "these outputs have a covariance each, and with Gaussian noise they share one; "
            "continue each output by itself"
        )
    m = posterior.n_basis if posterior.weight else 0
    K = posterior.kernel(posterior.basis.points) if m else np.empty((0, 0))
    sections = np.zeros((m, len(posterior.alpha)))
    sections[:, :m] = K
    chart, b, a = charted(posterior, sections)
    q = chart.size
    A = empty_arrays(cap if posterior.weight else 0, q, posterior.n_outputs, covariances)
    A.whole[0], n = m, q + m
    A.S[:, :n, :n] = _covariances(posterior, b, a, n)
    A.S[:, q:n, q:n] += K
    A.mu[:, q:n] = (sections @ posterior.alpha).T
    A.K[:m, :m] = K
    refresh(A)
    return A, chart


def _covariances(posterior: Posterior, b: list[Image], a: list[Image], n: int) -> Floats:
    """Return <b_p, b_p'> - <a_p, a_p'> of each output, (c, n, n), from images in n columns.

    Of what couples two outputs one block is there at a time.
    """
    c = posterior.n_outputs if posterior.is_coupled else 1
    own, across = np.zeros((c, n, n)), 0.0
    with blas_for(n):
        parts = [(1.0, b), (-1.0, a)]
        for p in range(c):
            for sign, images in parts:
                if images:
                    own[p] += sign * images[p].product(images[p])
            for q in range(p):
                shared = [sign * images[p].product(images[q]) for sign, images in parts if images]
                across = max(across, float(np.max(np.abs(sum(shared)), initial=0.0)))
    if across > _COUPLED * np.max(np.abs(own), initial=0.0):
        raise ValueError(
            "the outputs of this posterior are coupled, as those of a softmax are, and on-line "
            "learning keeps one process for each: continue from one with independent outputs, or "
            "from a list of posteriors with one kernel and basis"
        )
    return own


# Of each array the axes that have room for points.
_POINT_AXES = {
    "K": (0, 1),
    "Q": (0, 1),
    "S": (1, 2),
    "P": (1, 2),
    "mu": (1,),
    "alpha": (1,),
    "curvature": (1,),
}


def packed(A: Arrays) -> dict[str, Any]:
    """Return the numbers in use, by the names of their arrays, and the room there is."""
    symmetric(A)
    out: dict[str, Any] = {"cap": len(A.K), "whole": A.whole.copy(), "sums": A.sums.copy()}
    for name, axes in _POINT_AXES.items():
        array = getattr(A, name)
        used = [slice(None)] * array.ndim
        for axis in axes:
            used[axis] = slice(array.shape[axis] - len(A.K) + A.m)
        out[name] = array[tuple(used)].copy()
    return out


def unpacked(state: dict[str, Any]) -> Arrays:
    """Return the arrays that `packed` was given."""
    cap, whole = int(state["cap"]), np.asarray(state["whole"], dtype=np.int64)
    covariances, n, _ = np.shape(state["S"])
    A = empty_arrays(cap, n - int(whole[0]), len(state["mu"]), covariances)
    A.whole[:], A.sums[:] = whole, state["sums"]
    for name in _POINT_AXES:
        array, used = getattr(A, name), np.asarray(state[name])
        array[tuple(slice(size) for size in used.shape)] = used
    return A


def grown(A: Arrays, cap: int) -> Arrays:
    """Return the same arrays with room for `cap` points."""
    new = unpacked({**packed(A), "cap": cap})
    new.source[: A.m] = A.source[: A.m]
    return new
