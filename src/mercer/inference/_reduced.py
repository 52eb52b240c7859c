"""The mode of a latent function whose prior covariance is V V', V (n, m), in O(n m^2) a step.

With W the diagonal matrix of the sites' precisions, some of which may be negative,

    B     = 1 + V'W V                                     = L L',   m x m
    Sigma = (K~^-1 + W)^-1 = V B^-1 V',   K~ = V V'
    R     = (K~ + W^-1)^-1 = W - W V B^-1 V'W,   R V = W V B^-1,

the second line by (BKM 74), and ln det(1 + K~ W) = ln det B. Newton's step of (BKM 75, as
corrected) moves a = V'alpha by B^-1 (V'g - a), and f by V times that.

Where W >= 0 and V'W V is large, its sum with 1 would lose the 1. L' is then the triangle of a QR
factorisation of 1 above W^(1/2) V, which takes about twice as long and never forms B.

Not an engine of its own: `low_rank` goes on from it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dgemv, dsyrk
from scipy.linalg.lapack import dtpqrt

from mercer.compute import blas_for, map_tiles, row_blocks
from mercer.errors import NotPositiveDefiniteError
from mercer.inference._newton import Direction, Point, Solver
from mercer.inference._problem import LatentProblem
from mercer.inference._scalar import _FAR as FAR
from mercer.inference._scalar import ScalarNewton
from mercer.linalg import cholesky, solve_lower

__all__ = ["LowRankSearch", "LowRankSites", "down", "up"]

Floats = NDArray[np.float64]

_BLOCK = 2**18  # entries of V that are scaled at once, few enough to stay in the cache
_LARGE = 1e6  # the trace of V'W V from which on B is not formed
_PANEL = 32  # columns that the QR factorisation takes at a time


def up(V: Floats, c: Floats) -> Floats:
    """Return V c (n,), V in C order."""
    return np.concatenate(map_tiles(lambda rows: dgemv(1.0, V[rows].T, c, trans=1), _tiles(V)))


def down(V: Floats, v: Floats) -> Floats:
    """Return V'v (m,), V in C order."""
    return np.asarray(sum(map_tiles(lambda rows: dgemv(1.0, V[rows].T, v[rows]), _tiles(V))))


class LowRankSites:
    """A factorisation of B = 1 + V'W V.

    Parameters
    ----------
    V : (n, m) array, C order
        Kept, not copied.
    precision : (n,) array
        The diagonal of W, of any sign.
    squares : (n,) array, optional
        The diagonal of V V', if the caller has it.

    Raises
    ------
    NotPositiveDefiniteError
        Where B is not positive definite.
    """

    def __init__(self, V: Floats, precision: Floats, squares: Floats | None = None) -> None:
        self.V, self.precision = V, precision
        if not np.all(np.isfinite(precision)):
            raise ValueError("the precisions of the sites must be finite, got NaN or infinity")
        if squares is None:
            squares = np.einsum("ij,ij->i", V, V)
        # not `@`: the threads of NumPy's BLAS would go on spinning, see `linalg.product`
        trace = np.sum(precision * squares)
        try:
            if np.all(precision >= 0) and trace > _LARGE:
                self.L = _triangle(V, precision)
            else:
                B = middle(V, precision)
                with blas_for(len(B)):
                    self.L = cholesky(B, 0.0).L
        except NotPositiveDefiniteError:
            raise NotPositiveDefiniteError(
                f"1 + V'W V is not positive definite: {np.sum(precision < 0)} of the sites' "
                f"{len(V)} precisions are negative, and outweigh the prior"
            ) from None
        # ln det(1 + K~ W)
        self.log_determinant = 2.0 * float(np.sum(np.log(np.diagonal(self.L))))

    def coefficients(self, v: Floats) -> Floats:
        """Return B^-1 v for v (m,)."""
        return solve_lower(self.L, solve_lower(self.L, v), transpose=True)

    def solve(self, v: Floats) -> Floats:
        """Return R v = (K~ + W^-1)^-1 v for v (n,). O(n m)."""
        Wv = self.precision * v
        return np.asarray(Wv - self.precision * up(self.V, self.coefficients(down(self.V, Wv))))


class LowRankSearch(ScalarNewton[LowRankSites]):
    """Newton's method with V V' for K, in a = V'alpha, so that f = m + V a and a ~ N(0, 1).

    Of a `Point` alpha and f are both a, for which the identity stands for K. Where the noise is
    small alpha itself is large, and V'alpha made of rounding.

    Parameters
    ----------
    problem : LatentProblem
    V : (n, m) array, C order
    """

    def __init__(self, problem: LatentProblem, V: Floats) -> None:
        super().__init__(problem, V)
        self.V, self.squares = V, np.einsum("ij,ij->i", V, V)
        # the last a, and what took a pass over V there
        self._latent: tuple[Floats, Floats] | None = None
        self._slopes: tuple[Floats, tuple[Floats, Floats]] | None = None

    def latent(self, a: Floats) -> Floats:
        """Return f (n,)."""
        if self._latent is None or self._latent[0] is not a:
            self._latent = a, np.asarray(self.problem.mean + up(self.V, a))
        return self._latent[1]

    def slopes(self, f: Floats) -> tuple[Floats, Floats]:
        """Return V'g (m,) and the diagonal of W (n,), at f = a; `LowRankSites` has them finite."""
        if self._slopes is None or self._slopes[0] is not f:
            with np.errstate(over="ignore", invalid="ignore"):
                g, W = super().slopes(self.latent(f))
                self._slopes = f, (down(self.V, g), W)
        return self._slopes[1]

    def positive(self, W: Floats, f: Floats) -> Floats:
        """Return the curvature, with the Fisher information where it is negative; at f = a."""
        return super().positive(W, self.latent(f))

    def fresh_sites(self, precision: Floats) -> LowRankSites:
        """Factorise 1 + V'W V."""
        return LowRankSites(self.V, precision, self.squares)

    def point(self, alpha: Floats) -> Point:
        """Return the iterate at alpha = a."""
        with np.errstate(all="ignore"):  # a start may be anything
            value = self.problem.log_likelihood(self.latent(alpha))
            return Point(alpha, alpha, value, float(alpha @ alpha))

    def along(self, at: Point, d: Floats, Kd: Floats, t: float) -> Point:
        """Return the point at a distance t, in O(n m)."""
        return self.point(at.alpha + t * d)

    def begin(self, start: Floats | None) -> Point:
        """Return the best of the starts there are; `start` is an alpha (n,)."""
        problem, V = self.problem, self.V
        is_concave = problem.likelihood.is_log_concave
        best = self.point(np.zeros(V.shape[1]))
        if start is not None and start.shape == (problem.n,) and np.all(np.isfinite(start)):
            given = self.point(down(V, start))
            # of several modes, that which the caller comes from
            if given.value > best.value or (not is_concave and np.isfinite(given.value)):
                return given
        target = problem.likelihood.initial(problem.y)
        far = problem.log_likelihood(target) - best.log_likelihood > FAR * problem.n
        if not is_concave or far:
            W = super().positive(super().slopes(target)[1], target)
            pull = down(V, W * (target - problem.mean))
            fitted = self.point(self.factorise(W).coefficients(pull))
            if fitted.value > best.value:
                return fitted
        return best

    def direction(self, r: Floats, W: Floats, solver: Solver, fresh: bool) -> Direction:
        """Return the step of (BKM 75, as corrected), in a.

        A factorisation costs about as much as some tens of passes over V, so that nothing is gained
        by keeping to an old one: it is made anew at each step, unless W has not changed.
        """
        assert isinstance(solver, LowRankSites)
        if not fresh and not np.array_equal(W, solver.precision):
            return Direction(r, r, False)
        c = solver.coefficients(r)
        return Direction(c, c, True)

    def polish(self, at: Point, solver: Solver) -> Point:
        """Return the point after Newton steps with the factorisation that belongs to the mode."""
        assert isinstance(solver, LowRankSites)
        step = solver.coefficients(self.slopes(at.f)[0] - at.alpha)
        for _ in range(3):
            new = self.point(at.alpha + step)
            left = solver.coefficients(self.slopes(new.f)[0] - new.alpha)
            if not np.max(np.abs(left)) < 0.5 * np.max(np.abs(step)):
                break
            at, step = new, left
        return at

    def gain(self, at: Point, sites: LowRankSites) -> float:
        """Return twice what a Newton step would add to the objective."""
        r = self.slopes(at.f)[0] - at.alpha
        return float(r @ sites.coefficients(r))

    def falling(self, W: Floats) -> tuple[Floats, Floats] | None:
        """Return the direction of most negative curvature, twice: that of q, B q = s q, s < 0."""
        values, vectors = eigh(middle(self.V, W), subset_by_index=[0, 0])
        if values[0] >= 0:
            return None
        q = vectors[:, 0]
        q *= np.sqrt(np.mean(self.squares)) / np.max(np.abs(up(self.V, q)))
        return q, q


def middle(V: Floats, precision: Floats) -> Floats:
    """Return the lower triangle of 1 + V'W V, (m, m), Fortran order. O(n m^2)."""
    B = np.eye(V.shape[1], order="F")
    for part in map_tiles(lambda rows: _square(V[rows], precision[rows]), _tiles(V)):
        B += part
    return B


def _square(V: Floats, precision: Floats) -> Floats:
    """Return the lower triangle of V'W V, in this thread."""
    m = V.shape[1]
    S = np.zeros((m, m), order="F")
    blocks = _blocks(V)
    buffer = np.empty((blocks[0].stop, m))
    for rows in blocks:
        w = precision[rows]
        scaled = np.multiply(V[rows], np.sqrt(np.abs(w))[:, None], out=buffer[: len(w)])
        for sign, some in ((1.0, w >= 0), (-1.0, w < 0)):
            if np.any(some):
                part = scaled if np.all(some) else scaled[some]
                S = dsyrk(sign, part.T, 1.0, S, lower=1, overwrite_c=1)
    return S


def _triangle(V: Floats, precision: Floats) -> Floats:
    """Return L with L L' = 1 + V'W V for W >= 0, (m, m), Fortran order. O(n m^2)."""
    m = V.shape[1]
    R = np.eye(m, order="F")
    for rows in _blocks(V):
        scaled = np.asfortranarray(V[rows] * np.sqrt(precision[rows])[:, None])
        R = dtpqrt(0, min(_PANEL, m), R, scaled, overwrite_a=1, overwrite_b=1)[0]
    L = np.asfortranarray((R * np.where(np.diagonal(R) < 0, -1.0, 1.0)[:, None]).T)
    # each column's distance from those before it: with the 1 above never less than that
    np.fill_diagonal(L, np.maximum(np.diagonal(L), 1.0))
    return L


def _tiles(V: Floats) -> list[slice]:
    """Cut the rows for threads, so that results of m x m are few, and smaller than V together."""
    n, m = V.shape
    return row_blocks(n, max(2 * m, _BLOCK // m, n // 64))


def _blocks(V: Floats) -> list[slice]:
    n, m = V.shape
    return row_blocks(n, max(1, _BLOCK // m))
