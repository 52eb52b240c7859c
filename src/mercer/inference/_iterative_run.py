"""What every use of the iterative engine begins with: solutions, certificate, evidence.

The mathematics is on the page of `iterative`. All is computed in units of the noise: rows are
divided by their noise's deviation, so that K + Sigma becomes K + 1 (`_products`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._conjugate import Progress, descend, gaps
from mercer.inference._iterative_errors import log_ratio, unsolved
from mercer.inference._iterative_mean import Estimate, estimate, first_estimate
from mercer.inference._preconditioner import EXACT, Preconditioner, choose_pivots
from mercer.inference._products import Products, RecomputedProducts, StoredProducts
from mercer.inference.exact import conditioned
from mercer.inference.quadratic import Bounds, bounds, excess, primal
from mercer.kernels import Kernel
from mercer.likelihoods.normal import LOG_2PI

__all__ = ["IterativeProblem", "IterativeSolution", "Settings", "Work", "run", "starting"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Where the probes' solutions are good enough: |P^-1/2 r| over |P^-1/2 z|. What that leaves out of
# traces is far below the error of a few dozen probes.
_PROBES = 1e-2
# Products and sums round a residual to some 1e-13 of the targets, and a Gap has its square.
_ROUNDING = 1e-20
# What solutions may lack of the log evidence, in nats, unless its standard error is larger; and as
# a part of the square y'Q^-1 y where that is so large that rounding takes more.
_NATS, _PART = 0.1, 1e-8


@dataclass(frozen=True)
class Settings:
    """How accurate the engine is to be, and what it may take.

    tol : the Gap (BKM 84) of the solution at which it stops
    rank : the most pivots of the preconditioner
    n_probes : vectors by which the log determinant and its derivatives are estimated
    max_iter : the most steps of conjugate gradients
    stored : whether K is kept in memory, rather than computed anew at each step
    """

    tol: float = 1e-8
    rank: int = 1000
    n_probes: int = 31
    max_iter: int = 1000
    stored: bool = True


@dataclass(frozen=True)
class IterativeProblem:
    """Regression with Gaussian noise, in arrays.

    kernel : Kernel
    X : inputs, n rows
    Y : (n, P) targets less the fixed part of the mean; the outputs are independent and share Q
    noise : (n,) noise variances, positive
    H : (n, r) regressors of the mean, or None
    integrate : whether beta is integrated out, rather than estimated
    pivots : (m,) rows of the preconditioner; None has them chosen
    seed : for the choice of pivots, and for the probes
    settings : Settings
    """

    kernel: Kernel
    X: Any
    Y: Floats
    noise: Floats
    H: Floats | None = None
    integrate: bool = False
    pivots: Indices | None = None
    seed: int = 0
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if not (np.all(self.noise > 0) and np.all(np.isfinite(self.noise))):
            raise ValueError(
                "inference='iterative' divides rows by their noise, whose variances must be "
                f"positive; got {float(np.min(self.noise)):.3g} among them. Use inference='exact'"
            )


class IterativeSolution(NamedTuple):
    """What the iterations have found.

    alpha : (n, P) coefficients of the mean's kernel sections: Q^-1 (Y - H beta)
    beta : (r, P)
    V : (n, k) what the integrated coefficients take from Q^-1; see `exact.Solution`
    root : (k, r) (H'Q^-1 H)^-1 = root' root
    log_evidence : estimated
    std_error : the standard error of that from the probes, and bounds on what the solver has left
        out: r'P^-1 r / 2, with r what the solutions lack, and the error of the quadrature
    bounds : between which the minimum of L (BKM 78) lies, in units of the noise, and their Gap
    iterations : steps of conjugate gradients, of the column that took most
    pivots : (m,) rows of the preconditioner
    is_exact : whether the preconditioner was Q to rounding, and nothing was estimated
    status : "converged", where the Gap is as wanted and r'P^-1 r / 2 is no more than a tenth of a
        nat, or the standard error; "stopped" or "interrupted"
    jitter : 0.0, since nothing is factorised that could need any
    """

    alpha: Floats
    beta: Floats
    V: Floats
    root: Floats
    log_evidence: float
    std_error: float
    bounds: Bounds
    iterations: int
    pivots: Indices
    is_exact: bool
    status: str
    jitter: float = 0.0


class Work(NamedTuple):
    """What an evaluation has at hand, in units of the noise."""

    root: Floats  # (n,) Sigma^-1/2
    preconditioner: Preconditioner
    products: Products
    A: Floats  # (n, P) Q^-1 (Y - H beta)
    U: Floats  # (n, s) Q^-1 z of the probes
    W: Floats  # (n, s) P^-1 z


def run(
    problem: IterativeProblem,
    out: Floats | None = None,
    keep: bool = False,
    progress: Progress | None = None,
) -> tuple[IterativeSolution, Work]:
    """Return the solution, and what it was found with; `keep` and `progress` as in `descend`."""
    settings = problem.settings
    n, outputs = problem.Y.shape
    root, pre, products = starting(problem, out)
    is_exact = pre.left <= EXACT

    H, T = np.zeros((n, 0)), np.zeros((0, 0))
    if problem.H is not None and problem.H.shape[1]:
        H, T = conditioned(problem.H)
    H = root[:, None] * H
    Y = root[:, None] * problem.Y
    first = first_estimate(Y, H, pre.solve) if H.shape[1] else np.zeros((0, outputs))
    Y = Y - H @ first  # what is large in the targets by their mean alone would hide the rest
    Z, W = np.zeros((n, 0)), np.zeros((n, 0))
    if not is_exact:
        Z, W = _probes(pre, settings.n_probes, problem.seed)
    right = np.hstack([Y, H, Z])
    probes = outputs + H.shape[1]

    def enough(B: Floats, A: Floats, R: Floats, rho: Floats, columns: Indices) -> NDArray[Any]:
        done = np.asarray(rho <= _PROBES**2 * n)
        of_targets = columns < probes
        if np.any(of_targets):
            done[of_targets] = gaps(*(M[:, of_targets] for M in (B, A, R))) <= 0.5 * settings.tol
            done &= (columns >= outputs) | (rho <= _NATS / outputs)
        return done

    found = descend(products, pre.solve, right, enough, settings.max_iter, keep, progress)
    A, S, U = np.split(found.A, [outputs, probes], axis=1)
    R, RH, _ = np.split(found.R, [outputs, probes], axis=1)
    fit = Estimate(np.zeros((0, outputs)), np.zeros((0, 0)), 0.0)
    if H.shape[1]:
        fit = estimate(Y, H, A, S, R, RH)
        if problem.integrate and fit.E.shape[1] < H.shape[1]:
            raise ValueError(
                f"the mean has {H.shape[1]} regressors of which only {fit.E.shape[1]} are linearly "
                f"independent on these {n} rows, so they cannot be integrated out; drop constant "
                "or repeated columns, give more rows, or use estimate='ml'"
            )
        A, Y = A - S @ fit.beta, Y - H @ fit.beta
    ratio = log_ratio(found.coefficients[probes:], n)
    error = 0.5 * outputs * ratio.std_error
    status, limit = found.status, max(_NATS, error)
    going = status == "converged"
    A, R, certificate, more, ended = _refined(products, pre, Y, A, settings, limit, going, keep)
    status = "interrupted" if ended else status
    square = float(np.sum(A * (Y + R)))  # Y'Q^-1 Y
    left = unsolved(pre, Y, A, R, H, S, RH, fit, problem.integrate)
    far = certificate.gap > max(settings.tol, _ROUNDING) or left > max(limit, _PART * square)
    status = "stopped" if status == "converged" and far else status
    solution = IterativeSolution(
        alpha=root[:, None] * A,
        beta=T @ (first + fit.beta),
        V=root[:, None] * (S @ fit.E),
        root=fit.E.T @ T.T,
        log_evidence=_log_evidence(problem, pre.log_determinant() + ratio.value, fit, T, square),
        std_error=error + left + 0.5 * outputs * ratio.unsolved,
        bounds=certificate,
        iterations=found.iterations + more,
        pivots=pre.pivots,
        is_exact=is_exact,
        status=status,
    )
    return solution, Work(root, pre, products, A, U, W)


def starting(
    problem: IterativeProblem, out: Floats | None = None
) -> tuple[Floats, Preconditioner, Products]:
    """Return Sigma^-1/2, the preconditioner, and the products with the kernel matrix."""
    kernel, X, settings = problem.kernel, problem.X, problem.settings
    root = 1.0 / np.sqrt(problem.noise)
    pivots = problem.pivots
    if pivots is None:
        rng = np.random.default_rng(problem.seed)
        pivots = choose_pivots(kernel, X, root, settings.rank, rng)
    pre = Preconditioner(kernel, X, root, pivots)
    if settings.stored:
        return root, pre, StoredProducts(kernel, X, root, out)
    return root, pre, RecomputedProducts(kernel, X, root)


def _probes(pre: Preconditioner, number: int, seed: int) -> tuple[Floats, Floats]:
    """Return probes z ~ N(0, P), scaled to z'P^-1 z = n, and P^-1 z."""
    n, m = pre.V.shape
    rng = np.random.default_rng((seed, n))  # not those that have drawn pivots
    outer = rng.standard_normal((n, number))
    Z = pre.colour(rng.standard_normal((m, number)), outer)
    W = pre.solve(Z)
    length = np.sqrt(n / pre.squares(Z))
    return Z * length, W * length


def _refined(
    products: Products,
    pre: Preconditioner,
    Y: Floats,
    A: Floats,
    settings: Settings,
    nats: float,
    going: bool,
    keep: bool,
) -> tuple[Floats, Floats, Bounds, int, bool]:
    """Return solutions whose Gap is as small as is wanted, their residuals, bounds, and steps.

    And whether Ctrl-C has ended it, which passes on without `keep`.

    So is what they lack of the log evidence, in nats. The residual that is known from step to step
    drifts from the true one, and that of targets less their mean has a part of that of the
    regressors: where a product of its own tells too much, the descent goes on from there.
    """

    def lacking(R: Floats, gap: float) -> float:
        return max(gap / settings.tol, 0.5 * float(np.sum(pre.squares(R))) / nats)

    R, certificate = _certified(products, Y, A)
    found, left, steps = (A, R, certificate), lacking(R, certificate.gap), 0
    try:
        while going and left > 1.0:
            base = found[0]

            def enough(B: Floats, C: Floats, R: Floats, rho: Floats, columns: Indices) -> Any:
                so_far = base[:, columns] + C  # noqa: B023 (called before it changes)
                done = np.asarray(gaps(Y[:, columns], so_far, R) <= 0.25 * settings.tol)
                return np.asarray(done & (rho <= nats / Y.shape[1]))

            more = descend(products, pre.solve, found[1], enough, settings.max_iter)
            steps, A = steps + more.iterations, base + more.A
            R, certificate = _certified(products, Y, A)
            before, left = left, lacking(R, certificate.gap)
            if left <= before:
                found = (A, R, certificate)
            if not left < 0.5 * before:  # rounding is all there is
                break
    except KeyboardInterrupt:
        if not keep:
            raise
        return *found, steps, True
    return *found, steps, False


def _certified(products: Products, Y: Floats, A: Floats) -> tuple[Floats, Bounds]:
    """Return what solutions lack, by a product of their own, and the bounds that follow."""
    F = products.times(A)
    R = Y - F - A
    # f = K a on both sides: nothing lies between the function and its dual but the residual
    upper = primal(Y, F, np.einsum("ij,ij->j", A, F), 1.0)
    return R, bounds(upper, excess(Y, F, A, np.zeros(Y.shape[1]), 1.0))


def _log_evidence(
    problem: IterativeProblem, log_determinant: float, fit: Estimate, T: Floats, square: float
) -> float:
    """Return the log evidence (BKM 62) from ln det Q in units of the noise, and y'Q^-1 y."""
    dimensions, outputs = problem.Y.shape
    log_determinant += float(np.sum(np.log(problem.noise)))
    if problem.integrate and len(T):
        log_determinant += fit.log_determinant - 2.0 * float(np.linalg.slogdet(T)[1])
        dimensions -= len(T)
    return float(-0.5 * square - 0.5 * outputs * (log_determinant + dimensions * LOG_2PI))
