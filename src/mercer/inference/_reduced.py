"""The mode of a latent function whose prior covariance is V V', V (n, m), in O(n m^2) a step.

With W the diagonal matrix of the sites' precisions, some of which may be negative,

    B     = 1 + V'W V                                     = L L',   m x m
    Sigma = (K~^-1 + W)^-1 = V B^-1 V',   K~ = V V'
    R     = (K~ + W^-1)^-1 = W - W V B^-1 V'W,   R V = W V B^-1,

the second line by (BKM 74), and ln det(1 + K~ W) = ln det B. Newton's step of (BKM 75, as
corrected), alpha + d, is d = r - W V c with c = B^-1 V'r and r = g - alpha, and moves f by V c.

Not an engine of its own: `low_rank` goes on from it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dgemv, dsyrk

from mercer.compute import row_blocks
from mercer.errors import NotPositiveDefiniteError
from mercer.inference._newton import Direction, Point, Solver
from mercer.inference._problem import LatentProblem
from mercer.inference._scalar import ScalarNewton
from mercer.linalg import cholesky, solve_lower

__all__ = ["LowRankSearch", "LowRankSites", "down", "up"]

Floats = NDArray[np.float64]

_BLOCK = 2**20  # entries of V that are scaled at once


def up(V: Floats, c: Floats) -> Floats:
    """Return V c (n,), V in C order."""
    return np.asarray(dgemv(1.0, V.T, c, trans=1))


def down(V: Floats, v: Floats) -> Floats:
    """Return V'v (m,), V in C order."""
    return np.asarray(dgemv(1.0, V.T, v))


class LowRankSites:
    """A factorisation of B = 1 + V'W V.

    Parameters
    ----------
    V : (n, m) array, C order
        Kept, not copied.
    precision : (n,) array
        The diagonal of W, of any sign.

    Raises
    ------
    NotPositiveDefiniteError
        Where B is not positive definite.
    """

    def __init__(self, V: Floats, precision: Floats) -> None:
        self.V, self.precision = V, precision
        try:
            factor = cholesky(middle(V, precision), 0.0)
        except NotPositiveDefiniteError:
            raise NotPositiveDefiniteError(
                f"1 + V'W V is not positive definite: {np.sum(precision < 0)} of the sites' "
                f"{len(V)} precisions are negative, and outweigh the prior"
            ) from None
        self.L = factor.L
        self.log_determinant = factor.log_determinant()  # ln det(1 + K~ W)

    def coefficients(self, v: Floats) -> Floats:
        """Return B^-1 v for v (m,)."""
        return solve_lower(self.L, solve_lower(self.L, v), transpose=True)

    def solve(self, v: Floats) -> Floats:
        """Return R v = (K~ + W^-1)^-1 v for v (n,). O(n m)."""
        Wv = self.precision * v
        return np.asarray(Wv - self.precision * up(self.V, self.coefficients(down(self.V, Wv))))


class LowRankSearch(ScalarNewton[LowRankSites]):
    """Newton's method with V V' for K.

    Parameters
    ----------
    problem : LatentProblem
    V : (n, m) array, C order
    """

    def __init__(self, problem: LatentProblem, V: Floats) -> None:
        super().__init__(problem, V)
        self.V = V

    def fresh_sites(self, precision: Floats) -> LowRankSites:
        """Factorise 1 + V'W V."""
        return LowRankSites(self.V, precision)

    def point(self, alpha: Floats) -> Point:
        """Return the iterate that has these coefficients."""
        with np.errstate(all="ignore"):  # a start may be anything
            a = down(self.V, alpha)
            f = self.problem.mean + up(self.V, a)
            return Point(alpha, f, self.problem.log_likelihood(f), float(a @ a))

    def direction(self, r: Floats, W: Floats, solver: Solver, fresh: bool) -> Direction:
        """Return the step of (BKM 75, as corrected), and what it adds to f.

        A factorisation costs about as much as some tens of passes over V, so that nothing is gained
        by keeping to an old one: it is made anew at each step, unless W has not changed.
        """
        assert isinstance(solver, LowRankSites)
        if not fresh and not np.array_equal(W, solver.precision):
            return Direction(r, r, False)
        c = solver.coefficients(down(self.V, r))
        Vc = up(self.V, c)
        return Direction(r - solver.precision * Vc, Vc, True)

    def polish(self, at: Point, solver: Solver) -> Point:
        """Return the point after Newton steps with the factorisation that belongs to the mode."""
        r = self.slopes(at.f)[0] - at.alpha
        for _ in range(3):
            new = self.point(at.alpha + self.direction(r, r, solver, True).d)
            left = self.slopes(new.f)[0] - new.alpha
            if not np.max(np.abs(left)) < 0.5 * np.max(np.abs(r)):
                break
            at, r = new, left
        return at

    def falling(self, W: Floats) -> tuple[Floats, Floats] | None:
        """Return the direction of most negative curvature, and what it adds to f.

        With B q = s q and s < 0, the step d = W V q/(s - 1) has V'd = q.
        """
        values, vectors = eigh(middle(self.V, W), subset_by_index=[0, 0])
        if values[0] >= 0:
            return None
        Vq = up(self.V, vectors[:, 0])
        unit = np.sqrt(np.sum(self.V**2) / len(self.V)) / np.max(np.abs(Vq))
        return unit * W * Vq / (values[0] - 1.0), unit * Vq


def middle(V: Floats, precision: Floats) -> Floats:
    """Return the lower triangle of 1 + V'W V, (m, m), Fortran order. O(n m^2)."""
    if not np.all(np.isfinite(precision)):
        raise ValueError("the precisions of the sites must be finite, got NaN or infinity")
    B = np.eye(V.shape[1], order="F")
    for rows in _blocks(V):
        w = precision[rows]
        for sign in (1.0, -1.0):
            some = sign * w > 0
            if np.any(some):
                part = V[rows] if np.all(some) else V[rows][some]
                scaled = part * np.sqrt(np.abs(w[some]))[:, None]
                B = dsyrk(sign, scaled.T, 1.0, B, lower=1, overwrite_c=1)
    return np.asarray(B)


def _blocks(V: Floats) -> list[slice]:
    n, m = V.shape
    return row_blocks(n, max(1, _BLOCK // m))
