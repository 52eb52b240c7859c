"""Coefficients a for which L* (BKM 79) is small, so that the bound (BKM 80) on L_min is tight.

The paper's live on a subset of the rows (see `greedy`). Of targets with mean zero such a subset
explains little: where a is zero it leaves |y_i|^2 in place of noise. Those of this module are on
all rows, at the cost of a product K a, O(n^2) time and O(n) memory, for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm

from mercer.compute import blas_for
from mercer.inference import quadratic
from mercer.kernels import Kernel
from mercer.linalg import cholesky

__all__ = ["Dual", "LowRank", "RowProblem", "one_noise", "refined_dual", "residual_dual"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RowProblem:
    """Regression with Gaussian noise as (BKM 78, 79) have it: one variance, and K a by a function.

    Y : (n, P) w^1/2 times the targets less the mean
    noise : s2; that of row i is s2/w_i
    times : a function from A (n, P) to w^1/2 K w^1/2 A, a fresh array
    root : (n,) w^1/2, or None for ones
    """

    Y: Floats
    noise: float
    times: Callable[[Floats], Floats]
    root: Floats | None = None

    @classmethod
    def of(
        cls, kernel: Kernel, X: Any, Y: Floats, noise: float, weights: Floats | None = None
    ) -> Self:
        """Return the problem for targets Y (n, P) less the mean, without a matrix of n^2."""
        if weights is None:
            return cls(Y, noise, lambda A: kernel.gram_times(X, A))
        root = np.sqrt(weights)
        r = root[:, None]
        return cls(r * Y, noise, lambda A: r * kernel.gram_times(X, r * A), root)

    def rows(self, values: Floats) -> Floats:
        """Return w^1/2 times values (n, k) of functions at the rows: F, or columns of K or V."""
        return values if self.root is None else self.root[:, None] * values

    def coefficients(self, alpha: Floats) -> Floats:
        """Return w^-1/2 times the coefficients alpha (n, P) of kernel sections."""
        return alpha if self.root is None else alpha / self.root[:, None]


def one_noise(variances: Floats, weights: Floats | None = None) -> tuple[float, Floats | None]:
    """Return s2 and w (n,), None for ones, such that row i has the variance s2/w_i.

    s2 is the harmonic mean of variances (n,) that differ, so that their weights are 1 on average;
    powers of the likelihood are in the weights.
    """
    s2 = float(variances[0])
    if np.ptp(variances) > 0:
        s2 = float(1.0 / np.mean(1.0 / variances))
        own = s2 / variances
        return s2, own if weights is None else own * weights
    return s2, None if weights is None or np.all(weights == 1) else weights


class Dual(NamedTuple):
    """Coefficients and what is known of them, in the scaled rows of a `RowProblem`.

    A : (n, P) coefficients
    KA : (n, P) the products K a
    support : the number of rows where some coefficient is not 0
    value : L*(a), summed over outputs
    lower : the bound on L_min by (BKM 80), summed over outputs
    """

    A: Floats
    KA: Floats
    support: int
    value: float
    lower: float

    @classmethod
    def of(cls, problem: RowProblem, A: Floats, KA: Floats) -> Self:
        """Return coefficients with their values."""
        each = quadratic.dual(problem.Y, A, KA, problem.noise)
        lower = quadratic.lower_bound(problem.Y, each, problem.noise)
        support = int(np.count_nonzero(np.any(A != 0, axis=1)))
        return cls(A, KA, support, float(np.sum(each)), float(np.sum(lower)))


def residual_dual(problem: RowProblem, fitted: Floats) -> Dual:
    """Return a = (y - F)/s2 for fitted values F (n, P), w^1/2 in them: one product.

    It is the optimum if F is. Of any other F its excess is s2/2 |f - sum_i a_i k(., x_i)|_H^2.
    """
    A = (problem.Y - fitted) / problem.noise
    return Dual.of(problem, A, problem.times(A))


class LowRank:
    """(V V' + s2)^-1, to multiply by: (1 - W W')/s2, with V'V + s2 = R'R and W = V R^-1.

    W : (n, m) the upper part of an orthogonal factor of [V; s 1], Fortran order
    noise : s2
    """

    def __init__(self, W: Floats, noise: float) -> None:
        self.W, self.noise = W, noise

    @classmethod
    def of(cls, V: Floats, noise: float) -> Self:
        """Return it for V (n, m), w^1/2 in its rows: O(n m^2) time, and memory of another V."""
        m = V.shape[1]
        with blas_for(m):
            S = np.asfortranarray(V.T @ V)
            S.reshape(-1, order="F")[:: m + 1] += noise
            R = cholesky(S).L
            W = dtrsm(1.0, R, V, side=1, lower=1, trans_a=1) if m else V
        return cls(np.asfortranarray(W), noise)

    def __call__(self, R: Floats) -> Floats:
        """Return (V V' + s2)^-1 R for R (n, P): O(n m P)."""
        with blas_for(int(np.cbrt(float(max(self.W.size, 1)) * R.shape[1]))):
            return np.asarray((R - self.W @ (self.W.T @ R)) / self.noise)


def refined_dual(
    problem: RowProblem,
    start: Dual,
    precondition: Callable[[Floats], Floats],
    steps: int,
    enough: Callable[[Dual], bool] | None = None,
) -> Dual:
    """Improve on coefficients by conjugate gradients on (K + s2) a = y, which descend L*.

    Parameters
    ----------
    problem : RowProblem
    start : Dual
        Where to begin, such as `residual_dual`.
    precondition : function
        What takes residuals (n, P) to directions: `LowRank`, or any positive definite matrix.
    steps : int
        How many to take at most. Each costs one product.
    enough : function, optional
        Called with the coefficients after each step; where it is true no more are taken.

    Returns
    -------
    Dual
        The best of those passed through: `start` if there is none better.
    """
    Y, noise = problem.Y, problem.noise
    A, KA, best = start.A.copy(), start.KA.copy(), start
    R = Y - KA - noise * A
    Z = precondition(R)
    direction, square = Z, _dots(R, Z)
    for _ in range(steps):
        KD = problem.times(direction)
        curvature = _dots(direction, KD) + noise * _dots(direction, direction)
        step = _ratio(square, curvature)
        if not np.any(step):
            break  # every output is at its optimum, or rounding is all that is left
        A += step * direction
        KA += step * KD
        R -= step * (KD + noise * direction)
        reached = Dual.of(problem, A, KA)
        if reached.value < best.value:
            best = reached._replace(A=A.copy(), KA=KA.copy())
        if enough is not None and enough(best):
            break
        Z = precondition(R)
        new = _dots(R, Z)
        direction, square = Z + _ratio(new, square) * direction, new
    return best


def _ratio(a: Floats, b: Floats) -> Floats:
    """Return a/b, (P,), where both are positive, and 0 for outputs where one is not."""
    fine = (a > 0) & (b > 0)
    return np.asarray(np.where(fine, a / np.where(fine, b, 1.0), 0.0))


def _dots(A: Floats, B: Floats) -> Floats:
    return np.asarray(np.einsum("ip,ip->p", A, B))
