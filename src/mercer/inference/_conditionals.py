"""What a training conditional makes of a block of rows: its statistics, and their adjoints.

The rows of a block have f = K_fu K_uu^-1 u + e with e ~ N(0, Lambda - noise), so that y given u
has the covariance Lambda, which is diagonal, or has blocks. With L L' = K_uu and V = L^-1 K_uf,
all that a solution needs of the rows are V Lambda^-1 V', V Lambda^-1 T and T' Lambda^-1 T, T their
targets (and the regressors of the mean), and ln det Lambda. These add up over the rows.

A row of weight w counts as w rows that are the same. Rows that are independent given u then have
the variance lambda/w, and w times its normaliser; rows of one block share f, and noise/w.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsymm, dsyrk

from mercer.inference._approximations import Approximation
from mercer.kernels import Kernel
from mercer.linalg import cholesky, inverse_lower, mirror_lower, solve_lower

__all__ = [
    "Additive",
    "Pulled",
    "Rows",
    "Solved",
    "Statistics",
    "block_factor",
    "pulled",
    "sections",
    "statistics",
]

Floats = NDArray[np.float64]


class Additive:
    """A record that adds, field by field."""

    def __add__(self, other: Any) -> Any:
        """Return the sum of two records."""
        own = fields(self)  # type: ignore[arg-type]
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in own))


@dataclass(frozen=True)
class Rows:
    """A block of rows.

    X : inputs, b rows
    T : (b, q) targets and regressors
    noise : (b,) noise variances
    weights : (b,)
    groups : (b,) numbers, equal for rows of one block of K - Q, which stand together
    """

    X: Any
    T: Floats
    noise: Floats
    weights: Floats
    groups: NDArray[np.intp]

    def blocks(self) -> Iterator[slice]:
        """Yield where the groups are."""
        edges = np.flatnonzero(np.diff(self.groups)) + 1
        bounds = [0, *edges.tolist(), len(self.groups)]
        yield from (slice(a, b) for a, b in pairwise(bounds))


@dataclass(frozen=True)
class Statistics(Additive):
    """What the solution needs of the rows.

    VV : (m, m) V Lambda^-1 V', lower triangle
    VT : (m, q) V Lambda^-1 T
    TT : (q, q) T' Lambda^-1 T
    log_determinant : of Lambda, with the normalisers of the weights
    penalty : what the evidence of one output pays for the part of K - Q that is not kept
    residual : trace of K - Q, what the inducing variables leave unexplained, by the weights
    weight : sum of the weights
    """

    VV: Floats
    VT: Floats
    TT: Floats
    log_determinant: float
    penalty: float
    residual: float
    weight: float


@dataclass(frozen=True)
class Solved:
    """What is known once the statistics are.

    L : (m, m) lower, L L' = K_uu
    LB : (m, m) lower, LB LB' = B = 1 + VV
    a : (m, k) coefficients of the k functions whose residuals the evidence is made of
    b : (m, k) L'a
    c : (q, k) these functions' targets in terms of T
    outputs : how many times ln det counts
    M : (m, m) K_uu^-1 - A^-1 with the penalty and -A^-1 without, A = L B L'; lower triangle. For
        the deterministic conditional alone, and None unless `is_safe`
    is_safe : whether products with K_uu^-1 round little; else it is applied to each row
    """

    L: Floats
    LB: Floats
    a: Floats
    b: Floats
    c: Floats
    outputs: int
    M: Floats | None
    is_safe: bool


@dataclass(frozen=True)
class Pulled(Additive):
    """Derivatives of the evidence, summed over rows.

    theta : (p,) in the parameters of the kernel
    Z : (m, d) in the inducing inputs; 0.0 where these are not asked for
    noise : in the logarithm of a factor of all noise variances
    VgV : (m, m) V diag(g) V', g the derivative in the diagonal (or blocks) of K - Q
    CgC : (m, m) the same of C = L^-T V = K_uu^-1 K_uf, and VgV is 0 then: these are what the
        derivative in K_uf has too, so that what both round to cancels
    targets : (q, k) T'E, E the residuals over Lambda + Q
    """

    theta: Floats
    Z: Floats | float
    noise: float
    VgV: Floats | float
    CgC: Floats | float
    targets: Floats


def statistics(kernel: Kernel, Z: Any, L: Floats, kind: Approximation, rows: Rows) -> Statistics:
    """Return the statistics of a block of rows: O(b m^2)."""
    V = solve_lower(L, sections(kernel, rows.X, Z), overwrite=True)
    T, w = rows.T.copy(), rows.weights
    d = np.maximum(kernel.diag(rows.X) - np.einsum("ij,ij->j", V, V), 0.0)
    penalty = 0.0
    if kind.training == "blocks":
        log_determinant = float(np.sum((w - 1.0) * np.log(rows.noise) + np.log(w)))
        for s in rows.blocks():
            R = block_factor(kernel, rows, s, V)
            log_determinant += 2.0 * float(np.sum(np.log(np.diagonal(R))))
            V[:, s] = solve_lower(R, np.asfortranarray(V[:, s].T)).T
            T[s] = solve_lower(R, np.asfortranarray(T[s]))
    else:
        variance = rows.noise + kind.power * d
        log_determinant = float(np.sum(w * np.log(variance)))
        root = np.sqrt(w / variance)
        V *= root
        T *= root[:, None]
        if kind.penalised:
            penalty = -0.5 * float(np.sum(w * _unkept(kind.power, d / rows.noise)))
    return Statistics(
        dsyrk(1.0, V, lower=1),
        V @ T,
        T.T @ T,
        log_determinant,
        penalty,
        float(np.sum(w * d)),
        float(np.sum(w)),
    )


def _unkept(power: float, ratio: Floats) -> Floats:
    """Return (1 - power)/power log(1 + power ratio), which tends to the ratio."""
    return ratio if power == 0 else np.asarray((1.0 - power) / power * np.log1p(power * ratio))


def sections(kernel: Kernel, X: Any, Z: Any) -> Floats:
    """Return K_uf, (m, b), Fortran order."""
    return kernel(X, Z).T


def block_factor(kernel: Kernel, rows: Rows, s: slice, V: Floats) -> Floats:
    """Return the factor of a block of Lambda: K - Q + noise/w."""
    C = kernel.gram_lower(rows.X[s])
    C = dsyrk(-1.0, np.asfortranarray(V[:, s]), 1.0, C, trans=1, lower=1, overwrite_c=1)
    C.reshape(-1, order="F")[:: len(C) + 1] += rows.noise[s] / rows.weights[s]
    return cholesky(C, 0.0).L


def pulled(
    kernel: Kernel, Z: Any, kind: Approximation, solved: Solved, rows: Rows, inputs: bool
) -> Pulled:
    """Pull the evidence back to what the rows were made of: O(b m^2).

    With Sigma = Q + Lambda and E = Sigma^-1 T c, the evidence has the derivative
    dL/dSigma = (E E' - P Sigma^-1)/2, as in exact inference; what follows is the chain rule
    through Q = V'V and Lambda.
    """
    pull = {"deterministic": _pull_deterministic, "independent": _pull_independent}
    return pull.get(kind.training, _pull_blocks)(kernel, Z, kind, solved, rows, inputs)


def _pull_deterministic(
    kernel: Kernel, Z: Any, kind: Approximation, solved: Solved, rows: Rows, inputs: bool
) -> Pulled:
    """Lambda is the noise, so that one product with the symmetric matrix M is enough.

    dL/dK_uf = a E' + P M K_uf Lambda^-1; where M would be too large, by solves.
    """
    K = sections(kernel, rows.X, Z)
    precision = rows.weights / rows.noise
    g = -0.5 * solved.outputs * precision if kind.penalised else np.zeros(len(precision))
    CgC: Floats | float = 0.0
    if solved.M is not None:
        E = precision[:, None] * (rows.T @ solved.c - K.T @ solved.a)
        G = dsymm(float(solved.outputs), solved.M, K, lower=1)
        G *= precision
    else:
        V = solve_lower(solved.L, K, overwrite=True)
        E = precision[:, None] * (rows.T @ solved.c - V.T @ solved.b)
        G, CgC = _by_solves(solved, V, solve_lower(solved.LB, V), precision, g)
    G = dgemm(1.0, solved.a, E, 1.0, G, trans_b=1, overwrite_c=1)
    gradient = kernel.pullback(rows.X, Z, G.T, inputs=inputs)
    theta, noise = gradient.theta, 0.5 * float(np.sum(E**2 / precision[:, None]))
    if kind.penalised:
        theta = theta + kernel.pullback_diag(rows.X, g, inputs=False).theta
    return Pulled(theta, _or_zero(gradient.Z), noise, 0.0, CgC, rows.T.T @ E)


def _by_solves(
    solved: Solved, V: Floats, U: Floats, precision: Floats, g: Floats
) -> tuple[Floats, Floats | float]:
    """Return -P A^-1 K_uf diag(precision) - 2 C diag(g), and C diag(g) C'; overwrites V and U.

    U is LB^-1 V, and C = L^-T V.
    """
    G = solve_lower(solved.LB, U, transpose=True, overwrite=True)
    G *= -solved.outputs * precision
    G = solve_lower(solved.L, G, transpose=True, overwrite=True)
    if not np.any(g):
        return G, 0.0
    C = solve_lower(solved.L, V, transpose=True, overwrite=True)
    CgC = _weighted_square(C, g)
    C *= 2.0 * g
    G -= C
    return G, CgC


def _pull_independent(
    kernel: Kernel, Z: Any, kind: Approximation, solved: Solved, rows: Rows, inputs: bool
) -> Pulled:
    """Lambda has a part of the diagonal of K - Q, whose derivative differs from row to row."""
    L, w, power, outputs = solved.L, rows.weights, kind.power, solved.outputs
    V = solve_lower(L, sections(kernel, rows.X, Z), overwrite=True)
    d = np.maximum(kernel.diag(rows.X) - np.einsum("ij,ij->j", V, V), 0.0)
    variance = rows.noise + power * d
    precision = w / variance
    U = solve_lower(solved.LB, V)
    s = np.einsum("ij,ij->j", U, U)  # k_i' A^-1 k_i
    E = precision[:, None] * (rows.T @ solved.c - V.T @ solved.b)
    # in lambda: the evidence of Sigma, and what weights add to its normaliser
    dvariance = 0.5 * (np.sum(E**2, axis=1) - outputs * precision * (1.0 - s * precision)) / w
    dvariance -= 0.5 * outputs * (w - 1.0) / variance
    g, dnoise = power * dvariance, dvariance
    if kind.penalised:
        g = g - 0.5 * outputs * (1.0 - power) * precision
        dnoise = dnoise + 0.5 * outputs * (1.0 - power) * precision * d / rows.noise
    VgV: Floats | float = 0.0
    CgC: Floats | float = 0.0
    if solved.is_safe:
        VgV = _weighted_square(V, g)
        G = solve_lower(solved.LB, U, transpose=True, overwrite=True)  # B^-1 V
        G *= -outputs * precision
        G -= 2.0 * g * V
        G = solve_lower(L, G, transpose=True, overwrite=True)
    else:
        G, CgC = _by_solves(solved, V, U, precision, g)
    G = dgemm(1.0, solved.a, E, 1.0, G, trans_b=1, overwrite_c=1)
    gradient = kernel.pullback(rows.X, Z, G.T, inputs=inputs)
    theta = gradient.theta + kernel.pullback_diag(rows.X, g, inputs=False).theta
    noise = float(np.sum(rows.noise * dnoise))
    return Pulled(theta, _or_zero(gradient.Z), noise, VgV, CgC, rows.T.T @ E)


def _or_zero(dZ: Floats | None) -> Floats | float:
    """Return a derivative, or 0.0 where it is not asked for: that adds too."""
    return 0.0 if dZ is None else dZ


def _weighted_square(V: Floats, g: Floats) -> Floats:
    """Return V diag(g) V', lower triangle, in one product of half the cost where g has one sign."""
    if np.all(g <= 0) or np.all(g >= 0):
        sign = -1.0 if np.all(g <= 0) else 1.0
        return np.asarray(dsyrk(sign, V * np.sqrt(np.abs(g)), lower=1))
    return np.asarray(dgemm(1.0, V * g, V, trans_b=1))


def _pull_blocks(
    kernel: Kernel, Z: Any, kind: Approximation, solved: Solved, rows: Rows, inputs: bool
) -> Pulled:
    """Lambda has the blocks of K - Q, whose derivative is a matrix D for each.

    D goes with V, or with C = L^-T V where that is more exact (see `Pulled`).
    """
    L, outputs = solved.L, solved.outputs
    V = solve_lower(L, sections(kernel, rows.X, Z), overwrite=True)
    C = V if solved.is_safe else solve_lower(L, V, transpose=True)
    E = rows.T @ solved.c - V.T @ solved.b
    theta, CgC = np.zeros(kernel.theta.size), np.zeros((len(V), len(V)))
    G, CD, noise = np.empty_like(V), np.empty_like(V), 0.0
    for b in rows.blocks():
        n, w = rows.noise[b], rows.weights[b]
        R = block_factor(kernel, rows, b, V)
        E[b] = solve_lower(R, solve_lower(R, np.asfortranarray(E[b])), transpose=True)
        W = solve_lower(R, np.asfortranarray(V[:, b].T))
        W = solve_lower(R, W, transpose=True, overwrite=True)  # Lambda^-1 V', (b, m)
        U = solve_lower(solved.LB, np.asfortranarray(W.T))  # LB^-1 V Lambda^-1
        D = mirror_lower(inverse_lower(R))
        D = 0.5 * (E[b] @ E[b].T - outputs * (D - U.T @ U))
        own = kernel.pullback(rows.X[b], None, D, inputs=False)
        theta = theta + own.theta
        CD[:, b] = C[:, b] @ D
        CgC += CD[:, b] @ C[:, b].T
        G[:, b] = -outputs * solve_lower(solved.LB, U, transpose=True)
        noise += float(n / w @ np.diagonal(D)) - 0.5 * outputs * float(np.sum(w - 1.0))
    if solved.is_safe:
        G -= 2.0 * CD
    G = solve_lower(L, G, transpose=True, overwrite=True)
    if not solved.is_safe:
        G -= 2.0 * CD
    G = dgemm(1.0, solved.a, E, 1.0, G, trans_b=1, overwrite_c=1)
    gradient = kernel.pullback(rows.X, Z, G.T, inputs=inputs)
    theta = theta + gradient.theta
    of_V, of_C = (CgC, 0.0) if solved.is_safe else (0.0, CgC)
    return Pulled(theta, _or_zero(gradient.Z), noise, of_V, of_C, rows.T.T @ E)
