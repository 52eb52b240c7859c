"""Losses with a slope that is continuous, over some columns: Newton's method with an L1 penalty.

Huber's and logistic noise and the quadratic soft margin make of

    F = sum_i w_i loss_i(f_i) + sum_j lam_j |theta_j|,   f = m + Phi theta + H beta

(BKM 102, 109) a smooth function and a penalty. With the pulls u = -w loss'(f) and the curvature
C = diag(w loss''(f)) a step goes towards the minimiser of

    theta'G theta/2 - c'theta + sum_j lam_j |theta_j|,   G = Phi'C Phi,  c = Phi'u + G theta,

by the homotopy of `_l1_quadratic`, as far as F falls. Losses that are quadratic in pieces end so
after finitely many steps, once the rows' pieces are known. Where the curvature is 0, some of the
greatest there is, L, is added: so much more as steps fall short, and next to nothing at the end.
With L alone no step can fail.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._column_blocks import ColumnBlocks
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._l1_generation import Solved
from mercer.inference._l1_quadratic import minimise_l1

__all__ = ["Newton"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(float).eps)
_ITERATIONS = 200
# By this part of lam, or of what the pulls could be, slopes may differ from what they must be.
_EXACT = 1e-11
_ROUNDING = 1e-13  # of F
# F of labels that falls by this factor goes on, down to this part of the loss of f = 0.
_FALLING, _NOTHING = 0.7, 1e-10
# Steps without progress by which that has become rounding.
_PATIENCE = 4
# The share of L in the curvature: at first, at least and at most.
_SHARE, _LEAST, _MOST = 1e-3, 1e-10, 1.0
# Columns enter a step from this part of their penalty on.
_NEAR = 0.9
_BISECTIONS, _DOUBLINGS = 40, 40


class Newton:
    """The problem over columns that are added, for a loss whose slope is continuous.

    O(n k^2) a step with k columns at work, and O(n k) memory for all k that were added.

    Parameters
    ----------
    problem : ExpansionProblem
        With the loss `Clipped`, `LogisticLoss` or `QuadraticSoftMargin`.
    """

    def __init__(self, problem: ExpansionProblem) -> None:
        self.problem = problem
        H = np.empty((problem.n, 0)) if problem.H is None else problem.H
        self.r = H.shape[1]
        self.steepest = problem.weighted(np.full(problem.n, problem.loss.greatest_curvature))
        self._columns = ColumnBlocks(H)
        self._coef = np.zeros(self.r)
        self._most = 0.0  # the largest norm of pulls so far

    def add(self, A: Floats) -> None:
        """Add columns A (n, k), which are kept."""
        coef = np.concatenate([self._coef, np.zeros(A.shape[1])])
        self._columns.add(A)
        self._coef = coef

    def keep(self, positions: Indices) -> None:
        """Forget all columns but those at these ascending positions."""
        kept = np.concatenate([np.arange(self.r), self.r + np.asarray(positions)])
        self._columns.keep(kept)
        self._coef = self._coef[kept]

    def solve(self, lam: Floats) -> Solved:
        """Return the optimum for penalties (k,) of the columns added."""
        problem, coef = self.problem, self._coef
        penalties = np.concatenate([np.zeros(self.r), lam])
        sizes = self._sizes()
        share, length, least, stalled = _SHARE, 1.0, np.inf, 0
        of_labels = problem.loss.is_of_labels
        f = self._latent(coef)
        best, nearest = (coef, f), np.inf
        whole, lowest = problem.value(np.zeros(problem.n)), np.inf
        for _ in range(_ITERATIONS):
            u = problem.pull(f)
            slopes = self._columns.slopes(u)
            self._most = max(self._most, self._norm(u))
            off = self._off(coef, slopes, penalties, self._most * sizes)
            # F falls, until that is rounding: then the slopes tell
            value = self._objective(coef, f, penalties)
            if off < nearest or value < lowest * (1.0 - _ROUNDING):
                best, nearest = (coef, f), off
            # labels that are told apart without a penalty: F falls for ever, towards 0
            falls = of_labels and _NOTHING * whole < value < _FALLING * lowest
            # and slowly while curvature is added, which is no end; without a way down rounding is
            added = of_labels and share > _LEAST and length > 0.0
            lowest = min(lowest, value)
            stalled = 0 if off < 0.5 * least or added else stalled + 1
            least = min(least, off)
            settled = stalled >= _PATIENCE and nearest <= 1e3 * _EXACT
            if (nearest <= _EXACT or settled) and not falls:
                break
            target = self._target(coef, f, slopes, penalties, share)
            before = coef, f
            coef, f, length = self._step(coef, f, target, penalties)
            if of_labels and stalled and length == 1.0:
                coef, f = self._further(*before, coef, f, penalties)
            if length == 1.0:
                # beside curvature that goes the same way, were it the least that is added
                floor = min(_LEAST, 1e-4 * value / whole) if of_labels else _LEAST
                share = max(floor, 0.1 * share, _EPS)
            elif length < 0.25:
                if share == _MOST and length == 0.0:
                    break  # rounding: there is no way down
                share = min(_MOST, 10.0 * share)
        coef, f = best
        self._coef = coef
        objective = self._objective(coef, f, penalties)
        return Solved(
            coef[self.r :].copy(),
            coef[: self.r].copy(),
            f,
            problem.balanced(problem.pull(f)),
            objective,
        )

    def dual(self, u: Floats) -> float:
        """Return the value of the dual problem at a feasible u."""
        return self.problem.dual_value(u)

    def _latent(self, coef: Floats) -> Floats:
        return self.problem.mean + self._columns.times(coef)

    def _sizes(self) -> Floats:
        """Return the norm (k,) of each column at the greatest curvature."""
        blocks = self._columns.blocks
        squares = [self.steepest @ (block * block) for block in blocks]
        return np.asarray(np.sqrt(np.concatenate(squares)))

    def _norm(self, u: Floats) -> float:
        """Return the norm of pulls, each over the root of the curvature its row has at the most."""
        some = self.steepest > 0.0
        return float(np.linalg.norm(u[some] / np.sqrt(self.steepest[some])))

    @staticmethod
    def _off(coef: Floats, slopes: Floats, penalties: Floats, largest: Floats) -> float:
        """Return by how much slopes differ from an optimum's, beside the penalties.

        Where there is none, or next to none, it is beside what the slopes can be at the largest.
        """
        excess = np.where(
            coef != 0.0,
            np.abs(slopes - penalties * np.sign(coef)),
            np.maximum(np.abs(slopes) - penalties, 0.0),
        )
        wanted = np.where(penalties > 0.0, np.maximum(penalties, 1e-3 * largest), largest)
        return float(np.max(excess / np.where(wanted > 0.0, wanted, 1.0), initial=0.0))

    def _target(
        self, coef: Floats, f: Floats, slopes: Floats, penalties: Floats, share: float
    ) -> Floats:
        """Return the coefficients that the step goes towards."""
        work = np.flatnonzero((coef != 0.0) | (np.abs(slopes) >= _NEAR * penalties))
        A = self._columns.take(work)
        curvature = self.problem.curvature(f) + share * self.steepest
        half = np.sqrt(curvature)[:, None] * A
        G = half.T @ half
        c = slopes[work] + G @ coef[work]
        target = np.zeros(len(coef))
        target[work] = minimise_l1(G, c, penalties[work], start=coef[work]).coef
        return target

    def _further(
        self, start: Floats, ahead: Floats, coef: Floats, f: Floats, penalties: Floats
    ) -> tuple[Floats, Floats]:
        """Return coefficients and f further along the move from a start: as far as F falls.

        The move is doubled each time. Where all labels but a few are certain the curvature is that
        which is added, and steps are short beside the way there is.
        """
        here = self._objective(coef, f, penalties)
        move, way, whole = coef - start, f - ahead, (coef, f)
        for _ in range(_DOUBLINGS):
            along, between = coef + move, f + way
            there = self._objective(along, between, penalties)
            if not there < here * (1.0 - _ROUNDING):
                break
            coef, f, here, move, way = along, between, there, 2.0 * move, 2.0 * way
        f = self._latent(coef)  # the rounding of a short way has been doubled with it
        further = self._objective(coef, f, penalties) < self._objective(*whole, penalties)
        return (coef, f) if further else whole

    def _objective(self, coef: Floats, f: Floats, penalties: Floats) -> float:
        return self.problem.value(f) + float(penalties @ np.abs(coef))

    def _step(
        self, coef: Floats, f: Floats, target: Floats, penalties: Floats
    ) -> tuple[Floats, Floats, float]:
        """Return the coefficients and f after the best step towards the target, and its length."""
        problem = self.problem
        whole, move = self._latent(target), target - coef

        def slope(t: float) -> float:
            """Return dF/dt at coef + t move, from the left."""
            along = coef + t * move
            sign = np.where(along != 0.0, np.sign(along), np.sign(coef))
            fall = problem.pull(f + t * (whole - f)) @ (whole - f)
            return float(-fall + penalties @ (sign * move))

        here, there = (self._objective(*at, penalties) for at in ((coef, f), (target, whole)))
        rounding = _ROUNDING * abs(here)
        start = np.where(coef != 0.0, np.sign(coef) * move, np.abs(move))
        first = float(-problem.pull(f) @ (whole - f) + penalties @ start)
        if there <= here + 1e-4 * min(first, 0.0) + rounding:
            return target, whole, 1.0
        low, high = 0.0, 1.0
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
            if high - low <= 1e-3 * low:
                break
        along = coef + low * move
        between = self._latent(along)
        if low == 0.0 or self._objective(along, between, penalties) > here:
            return coef, f, 0.0
        return along, between, low
