"""Removing basis points from a degenerate posterior (w = 0), which is a linear model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from mercer.posterior.factors import Dense, InverseTriangular

if TYPE_CHECKING:
    from mercer.posterior.posterior import Posterior

__all__ = ["REDUNDANT", "log_det", "prune_linear"]

Floats = NDArray[np.float64]

# Directions with less than this part of the largest deviation have none but rounding.
_KNOWN = 1e-13
#: A point whose variance given the others is below this part of the largest is redundant.
REDUNDANT = 1e-10


def prune_linear(posterior: Posterior, n: int, noise: float | None) -> tuple[Posterior, float]:
    """Prune a linear model by backward elimination.

    At some rows the function is Phi v, v ~ N(alpha, B'B); on the kept columns it is its
    least-squares projection Pi Phi v. With G the covariance of Phi v over the noise, and likewise
    mu its mean over the noise's deviation, the divergence of noisy observations is

        1/2 [ln det(1 + Pi G Pi) - ln det(1 + G) + tr((1 - Pi) G) + |(1 - Pi) mu|^2]

    The rows are those that the coefficients were learned from, so far as they tell: with a flat
    prior Phi'Phi over the noise is the precision (B'B)^-1, of which a root serves for Phi. At the
    basis points sections could go that the explicit functions and the other sections take over
    there and nowhere else. Coefficients without a covariance leave nothing else to measure at.
    """
    m, r, P = posterior.n_basis, posterior.n_features, posterior.n_outputs
    Phi, units = _rows(posterior, noise)
    explicit = _orthonormal(Phi[:, m:])
    sections = Phi[:, :m] - explicit @ (explicit.T @ Phi[:, :m])
    mu = Phi @ posterior.alpha * units  # (m, P)
    images = [F.apply(Phi).T for F in posterior._B.factors]  # each (m, n_rows)
    if posterior.is_coupled:
        roots = [np.stack([units[p] * Z for p, Z in enumerate(images)], axis=1)]  # (m, P, n_rows)
        roots = roots if images else [np.zeros((m, P, 0))]
    else:
        shared = images[0] if images else np.zeros((m, 0))
        roots = [(s * shared)[:, None, :] for s in units]

    _, R, order = qr(sections, mode="economic", pivoting=True)
    size = np.abs(np.diagonal(R))
    rank = int(np.sum(size > REDUNDANT * size[0]))
    # Columns beyond the rank change nothing here, but do elsewhere: they stay while there is room.
    kept = np.asarray(order[: max(rank, n)], dtype=np.intp)
    while len(kept) > n:
        base, R = qr(sections[:, kept], mode="economic")
        c = solve_triangular(R, np.eye(len(kept))).copy()  # row i: what only column i reaches
        c /= np.linalg.norm(c, axis=1, keepdims=True)
        U = np.hstack([base, explicit])
        c = np.hstack([c, np.zeros((len(kept), explicit.shape[1]))])
        scores = np.sum((c @ (U.T @ mu)) ** 2, axis=1)
        for Z in roots:
            scores += _direction_scores(np.tensordot(U, Z, (0, 0)), c)
        kept = np.delete(kept, np.argmin(scores))
    kept = np.sort(kept)

    U = np.hstack([_orthonormal(sections[:, kept]), explicit])
    loss = np.sum((mu - U @ (U.T @ mu)) ** 2)
    for Z in roots:
        part = np.tensordot(U, Z, (0, 0))
        loss += _log_det_plus_one(part) - _log_det_plus_one(Z)
        loss += np.sum((Z - np.tensordot(U, part, (1, 0))) ** 2)
    # What the dropped columns did is taken over by the kept ones, whose own part stays.
    columns = np.concatenate([kept, np.arange(m, m + r)])
    dropped = np.setdiff1d(np.arange(m), kept)
    T = np.zeros((len(columns), m + r))
    T[np.arange(len(columns)), columns] = 1.0
    T[:, dropped] = np.linalg.lstsq(Phi[:, columns], Phi[:, dropped], rcond=None)[0]
    B = [Dense(F.apply(T)) for F in posterior._B.factors]
    pruned = posterior.replace(
        basis=posterior.basis.take(kept),
        alpha=T @ posterior.alpha,
        B=None if not B else (B if posterior.is_coupled else B[0]),
    )
    return pruned, max(0.0, 0.5 * float(loss))


def _rows(posterior: Posterior, noise: float | None) -> tuple[Floats, Floats]:
    """Return rows (k, m + r) of the functions to measure at, and the outputs in units of noise."""
    factors, one = posterior._B.factors, np.ones(posterior.n_outputs)
    if not factors:
        assert noise is not None
        points = posterior.basis.phi(posterior.basis.points)
        return points, posterior.scale / np.sqrt(noise)
    if len(factors) == 1 and isinstance(factors[0], InverseTriangular):
        L = np.tril(factors[0].L)
        return np.hstack([L.T, np.zeros((len(L), len(posterior.alpha) - len(L)))]), one
    # factors that read the leading coefficients alone give the others no variance
    size = len(posterior.alpha)
    roots = [F.apply(np.eye(size)) for F in factors]  # each (n_rows, m + r)
    # of coupled outputs the mean covariance serves
    _, s, Vt = np.linalg.svd(np.vstack(roots) / np.sqrt(len(roots)), full_matrices=False)
    some = s > _KNOWN * s[:1]
    return Vt[some] / s[some][:, None], one


def _orthonormal(M: Floats) -> Floats:
    """Return an orthonormal basis of the columns' span."""
    Q, R, _ = qr(M, mode="economic", pivoting=True)
    size = np.abs(np.diagonal(R))
    return np.asarray(Q[:, : int(np.sum(size > 1e-14 * size[:1]))])


def _direction_scores(Z: Floats, c: Floats) -> Floats:
    """Return twice the loss of giving up each direction c_j, Z (k, outputs, n_rows) a root of G.

    With H = 1 + G on the current span: ln det(c'H^-1 c) + tr(c'Gc), by Schur's complement.
    """
    k, outputs, _ = Z.shape
    G = np.tensordot(Z, Z, (2, 2))
    H = G.reshape(k * outputs, k * outputs) + np.eye(k * outputs)
    H_inverse = np.linalg.inv(H).reshape(k, outputs, k, outputs)
    left = np.tensordot(c, H_inverse, (1, 0))  # (j, p, k, q)
    blocks = np.einsum("jpkq,jk->jpq", left, c)
    variance = np.einsum("jpr,jpr->j", *(2 * [np.tensordot(c, Z, (1, 0))]))
    return np.asarray(log_det(blocks) + variance)


def _log_det_plus_one(Z: Floats) -> float:
    """Return ln det(1 + ZZ'), Z (k, outputs, n_rows) taken as a matrix of k outputs rows."""
    flat = Z.reshape(Z.shape[0] * Z.shape[1], Z.shape[2])
    gram = flat.T @ flat if flat.shape[0] > flat.shape[1] else flat @ flat.T
    return float(np.linalg.slogdet(gram + np.eye(len(gram)))[1])


def log_det(blocks: Floats) -> Floats:
    """Return ln det of each of the small blocks (k, c, c)."""
    if blocks.shape[1] == 1:
        return np.asarray(np.log(blocks[:, 0, 0]))
    return np.asarray(np.linalg.slogdet(blocks)[1])
