"""Sparse approximations of Gaussian process regression: one engine for the whole family.

Inducing variables u = f(Z) carry all that the rows tell about new points. The approximations
differ in the covariance Lambda that y has given u (`approximations`), and in nothing else: the
evidence is that of y ~ N(H beta, Q + Lambda), Q = K_fu K_uu^-1 K_uf (UV 30), and

    mean(x) = k_u(x)' A^-1 K_uf Lambda^-1 (y - H beta)         (UV 16b, 20b, 24b)
    var(x)  = k(x, x) - k_u(x)' (K_uu^-1 - A^-1) k_u(x),       A = K_uu + K_uf Lambda^-1 K_fu,

where k(x, x) - k_u' K_uu^-1 k_u is left out by a test conditional that is deterministic.

Rows are passed over in blocks: once for statistics of order m, and for derivatives once more.
Beyond the data, memory is for a few blocks of b x m and m x m; time is O(n m^2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrcon

from mercer.inference._approximations import APPROXIMATIONS, Approximation
from mercer.inference._conditionals import Pulled, Solved, Statistics, pulled, statistics
from mercer.inference._sparse_rows import Passes
from mercer.kernels import Kernel
from mercer.likelihoods.normal import LOG_2PI
from mercer.linalg import cholesky, inverse_lower, mirror_lower, solve_lower
from mercer.means import Mean, Zero
from mercer.posterior import Basis, Dense, InverseTriangular, Posterior

__all__ = [
    "SparseAdjoints",
    "SparseProblem",
    "SparseSolution",
    "evidence",
    "evidence_bounds",
    "posterior",
    "solve",
]

Floats = NDArray[np.float64]

# What a derivative may lose by rounding, in units of the log evidence, where a search's tolerance
# is 1e-3: by any row, and by so many rows at the most.
_LOSS, _ROWS = 3e-4, 1e5


@dataclass(frozen=True)
class SparseProblem:
    """Regression with Gaussian noise and inducing inputs, in arrays.

    kernel : Kernel
    X : inputs, n rows
    Y : (n, P) targets less the fixed part of the mean; the outputs are independent and share Q
    noise : (n,) noise variances
    Z : (m, d) inducing inputs
    kind : Approximation
    H : (n, r) regressors of the mean, or None
    integrate : whether beta is integrated out, rather than estimated
    beta : (r, P) coefficients that are held, instead
    weights : (n,) powers of the likelihood, or None
    groups : (n,) the numbers of the blocks of K - Q that rows belong to, for "pitc" and "pic"; the
        rows of a block stand together
    jitter : what to add to the diagonal of K_uu; None lets the factorisation decide
    """

    kernel: Kernel
    X: Any
    Y: Floats
    noise: Floats
    Z: Any
    kind: Approximation
    H: Floats | None = None
    integrate: bool = False
    beta: Floats | None = None
    weights: Floats | None = None
    groups: NDArray[np.intp] | None = None
    jitter: float | None = None

    def __post_init__(self) -> None:
        if self.kind.training == "blocks" and self.groups is None:
            raise ValueError(f"{self.kind.name!r} needs groups, the block that each row belongs to")
        if len(self.Z) == 0:
            raise ValueError("at least one inducing input is wanted, got none")

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return int(self.Y.shape[1])


class SparseSolution(NamedTuple):
    """What predictions and derivatives need.

    L : (m, m) lower, L L' = K_uu with its jitter
    LB : (m, m) lower, LB LB' = B = 1 + V Lambda^-1 V', V = L^-1 K_uf
    alpha : (m, P) A^-1 K_uf Lambda^-1 (Y - H beta)
    beta : (r, P)
    alpha_H : (m, r) A^-1 K_uf Lambda^-1 H
    root : (k, r) (H' Sigma^-1 H)^-1 = root' root, Sigma = Q + Lambda
    log_evidence : of all outputs; its bound, for "vfe"
    quadratic : its part that depends on Y, and on ln det H' Sigma^-1 H if that is integrated over
    jitter : on the diagonal of K_uu
    statistics : of all rows
    """

    L: Floats
    LB: Floats
    alpha: Floats
    beta: Floats
    alpha_H: Floats
    root: Floats
    log_evidence: float
    quadratic: float
    jitter: float
    statistics: Statistics


class SparseAdjoints(NamedTuple):
    """Derivatives of the log evidence.

    theta : (p,) in the parameters of the kernel
    Z : (m, d) in the inducing inputs, or None
    noise : in the logarithm of a factor of all noise variances
    beta : (r, P) in the coefficients of the mean
    """

    theta: Floats
    Z: Floats | None
    noise: float
    beta: Floats


def solve(problem: SparseProblem) -> SparseSolution:
    """Pass over the rows once and compute the evidence (UV 30): O(n m^2)."""
    return _solve(problem, Passes(problem))[0]


def _solve(problem: SparseProblem, passes: Passes) -> tuple[SparseSolution, Floats, Floats]:
    """Return the solution, and coefficients and targets of the residuals (see `Solved`)."""
    kernel, Z, P, r = problem.kernel, problem.Z, problem.n_outputs, passes.r
    gram = kernel.gram_lower(Z)
    factor = cholesky(gram, problem.jitter, rebuild=lambda: kernel.gram_lower(Z, gram))
    L = factor.L
    total = passes.sum(lambda rows: statistics(kernel, Z, L, problem.kind, rows))
    B = total.VV.copy(order="F")
    B.reshape(-1, order="F")[:: len(B) + 1] += 1.0
    LB = cholesky(B, 0.0).L
    C = solve_lower(LB, np.asfortranarray(total.VT))
    S = total.TT - C.T @ C  # T' Sigma^-1 T
    log_determinant = float(2.0 * np.sum(np.log(np.diagonal(LB)))) + total.log_determinant
    c, root = np.eye(P + r, P), np.empty((0, r))
    dimensions, extra = total.weight, np.empty((P + r, 0))
    of_mean = 0.0
    if r and problem.beta is None:
        values, W = np.linalg.eigh(S[P:, P:])
        kept = values > values[-1] * max(len(problem.Y), r) * np.finfo(float).eps
        if problem.integrate and not np.all(kept):
            raise ValueError(
                f"the mean has {r} regressors of which only {int(np.sum(kept))} are linearly "
                f"independent on these rows, so they cannot be integrated out; drop constant or "
                "repeated columns, give more rows, or use estimate='ml'"
            )
        half = W[:, kept] / np.sqrt(values[kept])
        root = half.T @ passes.change.T
        c[P:] = -half @ (half.T @ S[P:, :P])
        if problem.integrate:
            of_mean = float(np.sum(np.log(values))) - 2.0 * np.linalg.slogdet(passes.change)[1]
            dimensions -= r
            extra = np.vstack([np.zeros((P, half.shape[1])), np.sqrt(P) * half])
    square = float(np.sum(np.maximum(np.einsum("ij,ij->j", c, S @ c), 0.0)))
    quadratic = -0.5 * (square + P * of_mean)
    value = quadratic - 0.5 * P * (log_determinant + dimensions * LOG_2PI) + P * total.penalty
    c = np.hstack([c, extra])
    b = solve_lower(LB, np.asfortranarray(C @ c), transpose=True)
    a = solve_lower(L, b, transpose=True)
    alpha_H = _back(L, LB, C[:, P:]) @ np.linalg.inv(passes.change) if r else np.empty((len(L), 0))
    solution = SparseSolution(
        L,
        LB,
        a[:, :P],
        passes.beta - passes.change @ c[P:, :P],
        alpha_H,
        root,
        value,
        quadratic,
        factor.jitter,
        total,
    )
    return solution, b, c


def _back(L: Floats, LB: Floats, C: Floats) -> Floats:
    """Return L^-T LB^-T C."""
    if not C.size:
        return C
    half = solve_lower(LB, np.asfortranarray(C), transpose=True)
    return solve_lower(L, half, transpose=True, overwrite=True)


def evidence(problem: SparseProblem, inputs: bool = False) -> tuple[SparseSolution, SparseAdjoints]:
    """Return the solution and the derivatives of its log evidence, by two passes over the rows.

    With `inputs` those in the inducing inputs are among them.
    """
    passes = Passes(problem)
    solution, b, c = _solve(problem, passes)
    a = solve_lower(solution.L, b, transpose=True)
    kernel, Z, P, kind = problem.kernel, problem.Z, problem.n_outputs, problem.kind
    L, LB, total = solution.L, solution.LB, solution.statistics
    inverse = mirror_lower(inverse_lower(LB.copy(order="F")))  # B^-1
    is_safe, M = _is_safe(problem, L), None
    if is_safe and kind.training == "deterministic":
        N = np.asfortranarray((np.eye(len(L)) if kind.penalised else 0.0) - inverse)
        M = _both_sides(L, N)
    solved = Solved(L, LB, a, b, c, P, M, is_safe)
    sums: Pulled = passes.sum(lambda rows: pulled(kernel, Z, kind, solved, rows, inputs))
    # dL/dK_uu: of Q, -(a a' - P (K_uu^-1 - A^-1))/2; of the diagonal that Lambda or the penalty has
    G = 0.5 * P * (np.eye(len(L)) - inverse)
    noise = sums.noise
    if kind.training == "deterministic":
        trace = float(len(L) - np.trace(inverse))
        noise += 0.5 * P * (trace - total.weight) - P * total.penalty
        if kind.penalised and is_safe:
            G -= 0.5 * P * mirror_lower(total.VV.copy(order="F"))
    G = _both_sides(L, np.asfortranarray(G + _mirrored(sums.VgV))) - 0.5 * (a @ a.T)
    G += _mirrored(sums.CgC)
    own = kernel.pullback(Z, None, G, inputs=inputs)
    dZ = np.asarray(sums.Z) + own.X if inputs else None
    beta = np.zeros((0, P))
    if passes.r:
        beta = np.asarray(np.linalg.solve(passes.change.T, sums.targets[P:, :P]), dtype=float)
    return solution, SparseAdjoints(sums.theta + own.theta, dZ, noise, beta)


def _is_safe(problem: SparseProblem, L: Floats) -> bool:
    """Whether what K_uu^-1 is multiplied into is right to what a search asks for.

    It loses digits by the condition of K_uu, and the precision of the rows multiplies the loss.
    """
    weights = 1.0 if problem.weights is None else problem.weights
    signal = float(np.max(problem.kernel.diag(problem.Z)))
    precision = weights / problem.noise
    precise = signal * max(float(np.max(precision)), float(np.sum(precision)) / _ROWS)
    return bool(precise * np.finfo(float).eps <= _LOSS * dtrcon(L, uplo="L")[0] ** 2)


def _mirrored(square: Floats | float) -> Floats | float:
    """Return a symmetric matrix of which the lower triangle was summed, or the 0.0 of none."""
    return square if isinstance(square, float) else mirror_lower(np.array(square, order="F"))


def _both_sides(L: Floats, N: Floats) -> Floats:
    """Return L^-T N L^-1 for a symmetric N, which is overwritten."""
    half = solve_lower(L, N, transpose=True, overwrite=True)
    return solve_lower(L, np.asfortranarray(half.T), transpose=True, overwrite=True)


def posterior(
    problem: SparseProblem, mean: Mean, scale: Floats
) -> tuple[Posterior, SparseSolution]:
    """Return the posterior process (UV 16b, 20b, 24b) and the solution it was made of.

    As `exact.posterior`; the basis are the inducing inputs. A test conditional that is neither
    exact nor deterministic has more to it than this process (see `mercer.posterior`).
    """
    solution = solve(problem)
    L, LB = np.tril(solution.L), np.tril(solution.LB)
    both = np.asfortranarray(L @ LB)  # A = L B L', whose factor this is
    alpha, features = solution.alpha, None
    B: Any = InverseTriangular(both)
    if problem.H is not None and problem.H.shape[1]:
        if problem.integrate:
            features = mean
            alpha = np.vstack([alpha, solution.beta])
            m, r = len(L), solution.beta.shape[0]
            inverse = solve_lower(both, np.eye(m, order="F"))
            B = Dense(
                np.block(
                    [
                        [inverse, np.zeros((m, r))],
                        [-solution.root @ solution.alpha_H.T, solution.root],
                    ]
                )
            )
        elif problem.beta is None:
            mean = mean.with_coefficients(solution.beta * scale)
    basis = Basis(problem.kernel, problem.Z, features)
    fixed = mean if features is None else Zero()
    degenerate = problem.kind.test == "deterministic"
    A = None if degenerate else InverseTriangular(solution.L)
    return Posterior(basis, alpha, A, B, 0 if degenerate else 1, fixed, scale), solution


def evidence_bounds(problem: SparseProblem) -> tuple[float, float, float]:
    """Return a lower and an upper bound on the exact log evidence, and t = tr(K - Q): two passes.

    The lower one is that of VFE, whatever the problem's own kind. The upper one has
    ln det (Q + noise) and the quadratic form of Q + noise + t, between which and the exact ones
    stand Q <= K <= Q + t. A row of weight w counts as w rows here too.

    References
    ----------
    Titsias, *Variational inference for Gaussian and Dirichlet process mixtures*, 2014.
    """
    problem = replace(problem, kind=APPROXIMATIONS["vfe"], groups=None)
    lower = solve(problem)
    t = lower.statistics.residual
    wider = solve(replace(problem, noise=problem.noise + t))
    P = problem.n_outputs
    upper = lower.log_evidence - lower.quadratic - P * lower.statistics.penalty + wider.quadratic
    return lower.log_evidence, float(upper), t
