"""Expansions with the functions that have no penalty taken out as far as they can be.

f = m + Phi theta + H beta is not changed, whatever theta, if multiples of the columns of H are
taken from those of Phi, and from targets that are numbers: beta takes them up. Targets far from 0
beside their spread, and columns that are nearly constant beside a free constant, otherwise cost the
digits that the objective, its lower bound and their difference are made of.

So a problem is solved with an orthonormal basis B of H in the place of H, sum_i w_i B_ij B_ik = 1
for j = k and else 0, with the columns P Phi, P = I - B B'W, and, where the targets are numbers,
with what a fit of B leaves of y - m. The pulls are the same: H'u = 0 makes (P Phi)'u = Phi'u.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mercer.inference._columns import Columns
from mercer.inference._expansion_problem import Expansion, ExpansionProblem

__all__ = ["FreeBasis", "ProjectedColumns", "Reduced"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(float).eps)
# What a fit leaves of targets is rounding, in units of these and of the fit.
_EXACT = 2.0 * _EPS
# Rounds of reweighted least squares, for losses that outliers have no hold of.
_ROUNDS = 8


class FreeBasis:
    """An orthonormal basis of functions without a penalty, at rows with weights.

    H : (n, r) the functions, which may depend on each other
    basis : (n, q) B, q <= r
    mix : (r, q) with B = H mix
    """

    def __init__(self, H: Floats, weights: Floats | None) -> None:
        self.H, self.weights = H, weights
        root = np.ones(len(H)) if weights is None else np.sqrt(weights)
        size = np.linalg.norm(root[:, None] * H, axis=0)
        size = np.where(size > 0.0, size, 1.0)
        _, s, Vt = np.linalg.svd(root[:, None] * (H / size), full_matrices=False)
        some = s > max(H.shape) * _EPS * np.max(s, initial=0.0)
        mix = (Vt[some].T / s[some]) / size[:, None]
        # once more, for what rounding has made of functions that all but depend on each other
        R = np.asarray(np.linalg.qr(root[:, None] * (H @ mix), mode="r"))
        self.mix = np.linalg.solve(R.T, mix.T).T
        self.basis = H @ self.mix

    def coordinates(self, A: Floats) -> Floats:
        """Return B'W A for A (n, k) or (n,)."""
        B = self.basis if self.weights is None else self.weights[:, None] * self.basis
        return np.asarray(B.T @ A)

    def remove(self, A: Floats) -> Floats:
        """Take the basis out of A (n, k) or (n,), in place, and return its coordinates."""
        found = self.coordinates(A)
        A -= (found.T @ self.basis.T).T  # in the order of columns, as A is
        again = self.coordinates(A)  # what rounding has left
        A -= (again.T @ self.basis.T).T
        return found + again

    def balanced(self, V: Floats) -> Floats:
        """Return P'V = V - W B B'V, which leaves the basis at rest."""
        part = self.basis @ (self.basis.T @ V)
        return V - (part if self.weights is None else self.weights[:, None] * part)


class ProjectedColumns:
    """Columns without their part in functions that have no penalty: P Phi.

    What has been taken out of each column that was formed is kept, (M, q) numbers.

    Parameters
    ----------
    columns : Columns
    free : FreeBasis
        At the same rows.
    """

    def __init__(self, columns: Columns, free: FreeBasis) -> None:
        self.columns, self.free = columns, free
        self.removed = np.zeros((columns.size, free.basis.shape[1]))

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.columns.n

    @property
    def size(self) -> int:
        """How many columns there are."""
        return self.columns.size

    @property
    def is_symmetric(self) -> bool:
        """Whether Phi is known to be a symmetric matrix."""
        return False

    def take(self, indices: Indices) -> Floats:
        """Return some of the columns (n, k), a fresh array in Fortran order."""
        A = self.columns.take(indices)
        self.removed[indices] = self.free.remove(A).T
        return A

    def products(self, V: Floats) -> Floats:
        """Return (P Phi)'V (size, q) for V (n, q)."""
        return self.columns.products(self.free.balanced(V))

    def rows(self, kept: Indices) -> ProjectedColumns:
        """Return the same functions at some of the rows, but for what is taken out: all of it."""
        weights = self.free.weights
        free = FreeBasis(self.free.H[kept], None if weights is None else weights[kept])
        return ProjectedColumns(self.columns.rows(kept), free)

    def some(self, indices: Indices) -> ProjectedColumns:
        """Return some of the columns."""
        return ProjectedColumns(self.columns.some(indices), self.free)


class Reduced:
    """A problem as it is solved, and the way back.

    given : ExpansionProblem
    problem : ExpansionProblem, the one that is solved
    """

    def __init__(self, given: ExpansionProblem) -> None:
        self.given = given
        self.free = (
            FreeBasis(given.H, given.weights) if given.n_free and given.H is not None else None
        )
        self.fitted = np.zeros(0 if self.free is None else self.free.basis.shape[1])
        loss, mean, columns = given.loss, given.mean, given.columns
        if not loss.is_of_labels:
            rest = np.array(loss.y - mean)
            if self.free is not None:
                self.fitted, rest = _fit(given, self.free, rest)
            loss, mean = replace(loss, y=rest), np.zeros(given.n)
        self.columns = None if self.free is None else ProjectedColumns(columns, self.free)
        self.problem = ExpansionProblem(
            columns if self.columns is None else self.columns,
            loss,
            mean,
            None if self.free is None else self.free.basis,
            given.weights,
        )
        # m + H beta of the fit, to which the latent values of the problem are relative
        self.shift = given.mean - mean
        if self.free is not None:
            self.shift = self.shift + self.free.basis @ self.fitted

    def restored(self, found: Expansion) -> Expansion:
        """Return a solution as one of the problem that was given."""
        if self.free is None or self.columns is None:
            return found._replace(latent=self.shift + found.latent)
        own = self.fitted + found.beta - self.columns.removed[found.indices].T @ found.coef
        return found._replace(beta=self.free.mix @ own, latent=self.shift + found.latent)

    def reduced(self, start: Expansion) -> Expansion:
        """Return an expansion of the problem given as one of that which is solved.

        Its latent values are those of its coefficients here, whatever problem it is a solution of.
        """
        A = self.problem.columns.take(start.indices)
        beta = np.zeros(len(self.fitted))
        latent = self.problem.mean + A @ start.coef
        if self.free is not None and self.columns is not None:
            beta = self.free.coordinates(self.free.H @ start.beta) - self.fitted
            beta += self.columns.removed[start.indices].T @ start.coef
            latent = latent + self.free.basis @ beta
        return start._replace(beta=beta, latent=latent)


def _fit(problem: ExpansionProblem, free: FreeBasis, target: Floats) -> tuple[Floats, Floats]:
    """Return coordinates of a fit to targets (n,), and what it leaves of them.

    Least squares, but where the loss grows no faster than residuals do: a fit that is near to the
    least sum of these, or none at all, since one outlier could make all other residuals large.
    """
    rest = target.copy()
    found = free.remove(rest)
    # row by row: heavy rows tell nothing of what is left of others
    size = np.abs(target) + np.abs(free.H) @ (np.abs(free.mix) @ np.abs(found))
    if problem.everywhere(np.abs(rest) <= _EXACT * size):
        return found, np.zeros(len(target))
    if problem.loss.kind == "squares":
        return found, rest
    tries = [(np.zeros(len(found)), target), (found, rest)]
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    for _ in range(_ROUNDS):
        far = np.abs(tries[-1][1])
        root = np.sqrt(w / (far + 1e-3 * float(np.average(far, weights=w)) + _EPS))
        again = np.linalg.lstsq(root[:, None] * free.basis, root * target, rcond=None)[0]
        tries.append((again, target - free.basis @ again))
    return min(tries, key=lambda one: float(w @ np.abs(one[1])))
