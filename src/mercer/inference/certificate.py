"""How far the log posterior of a model's mean is from the highest there is, proved (BKM 4.3).

Whatever made it, a mean f = sum_j alpha_j k(., b_j) is one function among those that exact
regression with the same kernel and noise ranks by their posterior density. The exact mean is the
highest of these. A dual vector bounds by how much it is higher than f, without being computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.inference import quadratic
from mercer.inference._expansion import basis_factor, mean_expansion, same_rows, values_and_norm
from mercer.inference.duals import (
    Dual,
    LowRank,
    RowProblem,
    one_noise,
    refined_dual,
    residual_dual,
)
from mercer.posterior import Basis, Predictive
from mercer.selection import pivoted_cholesky

__all__ = ["DUALS", "Certificate", "certify"]

Floats = NDArray[np.float64]

#: What the duals of `certify` are called.
DUALS = ("best", "residual", "refined")

# Columns of the preconditioner, which take the time of some 10 products at 10,000 rows, and replace
# more steps than that where these are many.
_RANK = 500
# A basis of so many points is as good, and all of its columns are made at once.
_OWN = (200, 1000)
# Steps end where no other dual could take more than this part from the excess.
_SHARE = 0.05


@dataclass(frozen=True)
class Certificate:
    """Bounds on how far a mean f is from that of exact regression with its kernel and noise.

    With y less the mean function and s2 the variance of the noise, the log posterior of f is
    -(L(f) + |y|^2/2)/s2 but for a constant that is the same for all functions, where

        L(f) = -y'f(X) + (s2 |f|_H^2 + |f(X)|^2)/2.                                      (BKM 78)

    Its minimum L_min belongs to the exact mean f*. The certificate bounds this log posterior. It
    says nothing about the evidence, and so nothing about hyperparameters, nor about variances.

    Attributes
    ----------
    lower, upper : float
        What L_min lies between (BKM 80), summed over outputs; `upper` is L(f), and `lower` has what
        may be rounding taken off it. As the targets are seen by the kernel: in units of the
        posterior's `scale`, squared. Rows with weights count as many; where rows have variances of
        their own s2 is their harmonic mean, and their weights are s2 over the variances.
    gap : float
        2 (upper - lower)/(|upper| + |lower|) (BKM 84), from 0 to 2, that rounding left out.
    excess : ndarray of shape (P,)
        What L(f) - L_min is at most, for each output.
    log_posterior_loss : float
        By how many nats the log posterior of f is below that of f* at most, summed over outputs.
    fitted_error : ndarray of shape (P,)
        The root mean square of f - f* over the rows (weighted) is at most this, in the units of y.
    function_error : ndarray of shape (P,)
        At any x, f(x) is within this times k(x, x)^1/2 of f*(x), in the units of y.
    dual : str
        What the lower bound came from: "own" are the coefficients of f itself.
    n_products : int
        How many products with the n x n kernel matrix it took.
    """

    lower: float
    upper: float
    gap: float
    excess: Floats
    log_posterior_loss: float
    fitted_error: Floats
    function_error: Floats
    dual: str
    n_products: int


def certify(
    predictive: Predictive,
    X: Any,
    Y: ArrayLike,
    noise: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    dual: str = "best",
    max_steps: int = 50,
) -> Certificate:
    """Return the certificate of a regression model's mean on rows with Gaussian noise.

    Parameters
    ----------
    predictive : Predictive
        One whose mean is a mean function and a sum of kernel sections: a `Posterior`, or what
        predicts by one.
    X : inputs
        n rows.
    Y : array of shape (n, P)
        Targets.
    noise : float, or array of shape (n,)
        The variance, or that of each row, in units of the predictive's `scale`, squared.
    weights : array of shape (n,), optional
        Powers of the likelihood; rows of weight 0 are left out.
    dual : {"best", "residual", "refined"}, default "best"
        Where the lower bound comes from. "residual" is (y - f)/s2. "refined" improves on it by
        conjugate gradients, preconditioned by the basis if it has 200 to 1000 points and by 500
        rows otherwise, until no other dual could take more than a twentieth from the excess. "best"
        has the coefficients of f too where its basis are the rows, and refines only what that
        leaves to be gained.
    max_steps : int, default 50
        How many conjugate-gradient steps to take at most.

    Notes
    -----
    O(n^2) time for each product with K, of which "residual" takes one and a step one more. Memory
    beside the data is O(n), twice n times its columns for the preconditioner, and the m x m kernel
    matrix of a basis that is not the rows. Where that is singular its factor has jitter, which adds
    to the norm of f and so to the excess.
    """
    if dual not in DUALS:
        raise ValueError(f"dual must be one of {', '.join(map(repr, DUALS))}, got {dual!r}")
    max_steps = _count(max_steps)
    model = mean_expansion(predictive, X)
    kernel, alpha, scale = model.kernel, model.alpha, predictive.scale
    X, n, P = model.X, len(model.X), len(scale)
    targets = np.asarray(Y, dtype=float)
    if targets.shape != (n, P) or not np.all(np.isfinite(targets)):
        raise ValueError(
            f"finite targets of shape {(n, P)} are wanted, a row of outputs for each row of X; got "
            f"an array of shape {targets.shape}"
        )
    variances, powers, kept = _checked(noise, weights, n)
    s2, w = one_noise(variances, powers)
    if not np.all(kept):
        X, targets = X[kept], targets[kept]
    rest = targets - np.asarray(model.mean(X, P), dtype=float)
    rest = quadratic.less_rounding(rest, targets) / scale
    problem = RowProblem.of(kernel, X, rest, s2, w)
    F, norm = values_and_norm(model.basis, alpha, X)
    # a function that is but rounding of targets that the mean explains
    nothing = ~np.any(rest, axis=0) & ~np.any(quadratic.less_rounding(scale * F, targets), axis=0)
    F, norm = np.where(nothing, 0.0, F), np.where(nothing, 0.0, norm)
    fitted = problem.rows(F)
    own = problem.coefficients(alpha) if same_rows(model.basis.points, X) else None

    def width(candidate: Dual) -> Floats:
        """Return what the candidate leaves between L(f) and L_min, (P,)."""
        A, KA = candidate.A, candidate.KA
        if own is None:
            square = quadratic.distance(fitted, A, KA, squared_norm=norm)
        else:
            square = quadratic.distance(fitted, A, KA, coefficients=own)
        return quadratic.excess(problem.Y, fitted, A, square, s2)

    name, excess, products = _narrowest(
        problem, fitted, own, width, dual, max_steps, lambda: _low_rank(model.basis, X, problem)
    )
    found = quadratic.bounds(quadratic.primal(problem.Y, fitted, norm, s2), excess)
    # L is a sum over the rows of what is as large as the targets' squares, and rounds as that does.
    rounding = len(X) * np.finfo(float).eps * 0.5 * float(np.sum(problem.Y**2))
    found = found._replace(lower=found.lower - rounding)
    total = float(len(X) if w is None else np.sum(w))
    return Certificate(
        *found,
        excess,
        float(np.sum(excess)) / s2,
        scale * np.sqrt(2.0 * excess / total),
        scale * np.sqrt(2.0 * excess / s2),
        name,
        products,
    )


def _narrowest(
    problem: RowProblem,
    fitted: Floats,
    own: Floats | None,
    width: Callable[[Dual], Floats],
    dual: str,
    max_steps: int,
    preconditioner: Callable[[], LowRank],
) -> tuple[str, Floats, int]:
    """Return the dual that leaves least of all that may be taken, its excess, and the products."""
    count = 0

    def times(A: Floats) -> Floats:
        nonlocal count
        count += 1
        return problem.times(A)

    counted = RowProblem(problem.Y, problem.noise, times, problem.root)

    def settled(candidate: Dual) -> bool:
        # As a function the candidate has the excess |y - K a - s2 a|^2/2 with itself, which L_min
        # less the lower bound is therefore at most.
        rest = problem.Y - candidate.KA - problem.noise * candidate.A
        return bool(0.5 * np.sum(rest**2) <= _SHARE * np.sum(width(candidate)))

    name = "residual"
    start = residual_dual(counted, fitted)
    excess = width(start)
    if own is not None and dual == "best":
        other = Dual.of(problem, own, fitted)
        if np.sum(width(other)) < np.sum(excess):
            name, start, excess = "own", other, width(other)
    rounding = np.sum(problem.Y**2) * np.finfo(float).eps
    gain = np.sum(excess) > rounding and not settled(start)
    if dual == "refined" or (dual == "best" and gain):
        reached = refined_dual(counted, start, preconditioner(), max_steps, settled)
        if dual == "refined" or np.sum(width(reached)) < np.sum(excess):
            name, excess = "refined", width(reached)
    return name, excess, count


def _count(max_steps: Any) -> int:
    if isinstance(max_steps, bool) or not isinstance(max_steps, int | np.integer) or max_steps < 0:
        raise ValueError(f"max_steps must be a whole number, at least 0, got {max_steps!r}")
    return int(max_steps)


def _checked(
    noise: ArrayLike, weights: ArrayLike | None, n: int
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return variances and weights of the rows that have a weight, and which these are."""
    variances = np.asarray(noise, dtype=float)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    if variances.shape not in {(), (n,)} or not np.all((variances > 0) & np.isfinite(variances)):
        raise ValueError(
            f"noise must be a positive variance, or {n} of them, one for each row; got {noise!r}"
        )
    if w.shape != (n,) or not np.all((w >= 0) & np.isfinite(w)) or not np.any(w):
        raise ValueError(
            f"weights must be {n} numbers that are not negative, one for each row and not all of "
            f"them 0, got {weights!r}"
        )
    kept = w > 0
    return np.broadcast_to(variances, n)[kept], w[kept], kept


def _low_rank(basis: Basis, X: Any, problem: RowProblem) -> LowRank:
    """Return the preconditioner of the rows: of the basis, or of rows chosen by pivoting."""
    if _OWN[0] <= basis.n_points <= _OWN[1]:
        V = basis_factor(basis, X)
    else:
        V = pivoted_cholesky(basis.kernel, X, min(_RANK, len(X))).V
    return LowRank.of(problem.rows(V), problem.noise)
