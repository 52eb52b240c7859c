"""The quadratic programme in a box that the mode becomes where the noise has linear tails.

Let the loss of a row of weight w, its -w log p(y | f) but for a constant, be

    l(t) = max over a in [-c, c] of  a t - e |a| - d a^2/2,          t = y - f:

0 up to a distance e, then a parabola of curvature 1/d, then a straight line of slope c. With
f = m + K alpha the mode minimises P(alpha) = sum_i l_i(t_i) + alpha'K alpha/2, whose dual is to
minimise

    D(alpha) = alpha'(K + diag(d)) alpha/2 + e sum_i |alpha_i| - alpha'(y - m),  |alpha_i| <= c_i.

For every alpha in the box P + D >= 0, with equality at the solution alone. As alpha'K alpha is
alpha'(y - m - t), this gap is a sum over the rows of l(t) + e |a| + d a^2/2 - a t, none of which
is negative: but for the rounding of K alpha it can be told to the last digit. Half the squared
distance to the solution, in the norm of K, is at most the gap.

Two methods share the work. Interior points (`_interior`) come near from anywhere. Once they tell
which rows are inside the box, at its faces or at 0, a linear system in the rows inside has the
solution itself; rows on whose side the guess was wrong change it, and the system is solved again,
while the gap falls. From the solution of a programme nearby this often does alone.

Not an engine of its own: `map` is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.inference._interior import Box, InteriorPoints
from mercer.inference._sites import symmetric_product
from mercer.linalg import cholesky, solve_lower

__all__ = ["Box", "BoxSolution", "solve_box"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_ITERATIONS = 80
_CHANGES = 20  # systems in a row, at the most, with rows changing sides
_GUESS = 1e-3  # the relative gap of interior points from which on the sides are guessed
_ROUNDING = 1e-6  # the relative gap that rounding may leave at the solution
_EPS = float(np.finfo(float).eps)


class BoxSolution(NamedTuple):
    """A feasible alpha, and how good it is.

    alpha, shift : (n,) the dual variables, and K alpha
    inside : (n,) the rows with curvature: between the faces, and off 0 where there is a zone
    gap : P + D
    is_settled : whether the sides of all rows are known, and alpha is good to rounding
    n_iterations, n_factorisations : steps by interior points; factorisations by both methods
    jitter : what was added to the diagonal of K, in place
    """

    alpha: Floats
    shift: Floats
    inside: Mask
    gap: float
    is_settled: bool = False
    n_iterations: int = 0
    n_factorisations: int = 0
    jitter: float = 0.0

    @property
    def relative_gap(self) -> float:
        """The gap in units of 1 + alpha'K alpha/2.

        P is no unit: a row far off may make it as large as one likes, and the others need not be
        solved for then.
        """
        return self.gap / self.unit

    def is_solved(self, tolerance: float) -> bool:
        """Whether the gap is small enough, or as small as rounding lets it be."""
        return self.relative_gap <= (max(tolerance, _ROUNDING) if self.is_settled else tolerance)

    @property
    def unit(self) -> float:
        """1 + alpha'K alpha/2."""
        return 1.0 + 0.5 * float(self.alpha @ self.shift)


def solve_box(
    K: Floats,
    box: Box,
    start: Floats | None = None,
    jitter: float | None = None,
    tolerance: float = 1e-8,
) -> BoxSolution:
    """Minimise D over the box.

    From a cold start some ten factorisations of n rows, and a few of the rows inside.

    Parameters
    ----------
    K : (n, n) array, Fortran order
        Its lower triangle is read. It may be singular.
    box : Box
    start : (n,) array, optional
        The solution of a programme nearby.
    jitter : float, optional
        As in `_sites.factorise`: with None, what K lacks to be positive semidefinite is added to
        its diagonal.
    tolerance : float
        On the relative gap. What comes back is mostly better by far.
    """
    if not np.all(box.bound > 0):
        return _without_the_fixed(K, box, start, jitter, tolerance)
    search = _Search(K, box)
    best = search.solution(np.zeros_like(box.target))
    if start is not None:
        alpha = np.clip(start, -box.bound, box.bound)
        best = search.better(best, search.change_sides(alpha))
    points = InteriorPoints(K, box, jitter)
    guess, left = _GUESS, np.inf
    # once nothing is left over, what is wrong is rounding
    while not best.is_solved(tolerance) and left > 1e-6 * tolerance:
        held = points.jitter
        alpha = points.step()
        if points.jitter > held:  # K is another one
            best = search.solution(best.alpha)
        best = search.better(best, search.solution(alpha))
        left = points.gap / best.unit
        if left <= guess:
            best = search.better(best, search.change_sides(alpha))
            guess = 0.1 * left
        if points.n_iterations == _ITERATIONS:
            break
    if not best.is_settled:
        best = search.better(best, search.change_sides(best.alpha))
    return best._replace(
        n_iterations=points.n_iterations,
        n_factorisations=points.n_iterations + search.n_factorisations,
        jitter=points.jitter,
    )


def _without_the_fixed(
    K: Floats, box: Box, start: Floats | None, jitter: float | None, tolerance: float
) -> BoxSolution:
    """Return the solution where some alpha must be 0."""
    rows = np.flatnonzero(box.bound > 0)
    alpha, inside = np.zeros_like(box.target), np.zeros(box.target.shape, dtype=bool)
    if not rows.size:
        return BoxSolution(alpha, alpha.copy(), inside, 0.0)
    found = solve_box(
        np.asfortranarray(K[np.ix_(rows, rows)]),
        Box(box.target[rows], box.bound[rows], box.zone, box.noise[rows]),
        None if start is None else start[rows],
        jitter,
        tolerance,
    )
    alpha[rows], inside[rows] = found.alpha, found.inside
    np.fill_diagonal(K, np.diagonal(K) + found.jitter)
    return found._replace(alpha=alpha, shift=symmetric_product(K, alpha), inside=inside)


class _Search:
    """Guesses at the sides of the rows, and what comes of them.

    A side is 2 or -2 at a face of the box, 1 or -1 inside, 0 at the zero of a zone. Without a
    zone the sign of a row inside means nothing.
    """

    def __init__(self, K: Floats, box: Box) -> None:
        self.K, self.box = K, box
        self.n_factorisations = 0

    def solution(self, alpha: Floats, side: Floats | None = None) -> BoxSolution:
        """Return a feasible alpha with its gap; the sides are guessed, if not given."""
        box, shift = self.box, symmetric_product(self.K, alpha)
        t = box.target - shift
        inside = np.abs(self.sides(alpha) if side is None else side) == 1
        inside &= np.abs(alpha) < box.bound
        if box.zone > 0:
            inside &= alpha != 0
        return BoxSolution(alpha, shift, inside, float(np.sum(box.gaps(alpha, t))))

    @staticmethod
    def better(one: BoxSolution, other: BoxSolution | None) -> BoxSolution:
        """Return that of the smaller gap."""
        return other if other is not None and other.gap < one.gap else one

    def slope(self, alpha: Floats) -> Floats:
        """Return -dD/dalpha but for the zone: y - f, less the noise that alpha stands for."""
        return self.box.target - symmetric_product(self.K, alpha) - self.box.noise * alpha

    def sides(self, alpha: Floats) -> Floats:
        """Return the sides that a feasible alpha seems to tend to.

        By what is nearer to 0, the room to the face or the zero, or the multiplier there.
        """
        box, sign = self.box, np.where(alpha < 0, -1.0, 1.0)
        excess = (np.abs(self.slope(alpha)) - box.zone) / box.unit
        used = np.abs(alpha) / box.bound
        side = np.where(1.0 - used < excess, 2.0 * sign, sign)
        return np.where((box.zone > 0) & (used < -excess), 0.0, side)

    def change_sides(self, alpha: Floats) -> BoxSolution | None:
        """Return the best of several guesses at what is near alpha, each correcting the last."""
        best: BoxSolution | None = None
        side, kept = self.sides(alpha), alpha
        may_rise = True  # once, as many rows change at a time
        for _ in range(_CHANGES):
            on = self.on(side, kept)
            if on is None:
                break
            kept = self.into_box(on, side)
            new = self.solution(kept, side)
            if best is not None and not new.gap < 0.9 * best.gap:
                if not may_rise:
                    break
                may_rise = False
            changed = self.corrected(on, side)
            new = new._replace(is_settled=np.array_equal(side, changed))
            best, side = new if best is None else self.better(best, new), changed
            if new.is_settled:
                break
        return best

    def on(self, side: Floats, near: Floats) -> Floats | None:
        """Return the alpha that is best with the rows on these sides, which it may leave.

        Of several, as there are where rows are the same, one that is near a given alpha. None
        where the matrix of the rows inside cannot be factorised.
        """
        box, rows = self.box, np.flatnonzero(np.abs(side) == 1)
        alpha = np.where(np.abs(side) == 2, 0.5 * side * box.bound, 0.0)
        alpha[rows] = near[rows]
        if not rows.size:
            return alpha
        M = np.asfortranarray(self.K[np.ix_(rows, rows)])
        diagonal = np.diagonal(M) + box.noise[rows]
        np.fill_diagonal(M, diagonal)
        self.n_factorisations += 1
        try:
            L = cholesky(M, 4.0 * _EPS * rows.size * float(np.mean(diagonal))).L
        except NotPositiveDefiniteError:
            return None
        size = np.inf
        for _ in range(5):  # refined, as the factor is that of a matrix a little larger
            left = self.slope(alpha)[rows] - box.zone * side[rows]
            if not np.max(np.abs(left)) < 0.5 * size:
                break
            size = float(np.max(np.abs(left)))
            alpha[rows] += solve_lower(L, solve_lower(L, left), transpose=True)
        return alpha

    def into_box(self, alpha: Floats, side: Floats) -> Floats:
        """Return the nearest alpha that is feasible and has the signs of the guess."""
        c, sign = self.box.bound, np.sign(side)
        if self.box.zone == 0:
            return np.clip(alpha, -c, c)
        return np.asarray(sign * np.clip(sign * alpha, 0.0, c))

    def corrected(self, alpha: Floats, side: Floats) -> Floats:
        """Return the sides that `on` speaks for: the same, if it is the solution."""
        box, sign, t = self.box, np.sign(side), self.slope(alpha)
        if box.zone == 0:
            sign = np.where(np.abs(side) == 1, np.where(alpha < 0, -1.0, 1.0), sign)
        inside = np.where(sign * alpha > box.bound, 2.0 * sign, sign)
        inside = np.where((sign * alpha < 0) & (box.zone > 0), 0.0, inside)
        # what rounding makes of a multiplier that is 0 is no reason to change
        small = _EPS * (np.abs(box.target) + float(np.diagonal(self.K) @ np.abs(alpha)))
        at_zero = np.where(np.abs(t) - box.zone > small, np.sign(t), 0.0)
        at_face = np.where(sign * t - box.zone < -small, sign, side)
        return np.where(np.abs(side) == 1, inside, np.where(side == 0, at_zero, at_face))
