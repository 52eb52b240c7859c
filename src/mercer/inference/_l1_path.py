"""Solutions along a path of penalties, with the columns of one reused by all."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.inference._expansion_problem import Expansion
from mercer.inference._l1_generation import Generation, Restricted, Solved
from mercer.inference._l1_simplex import UnsolvedError

__all__ = ["PathRestricted", "solve_path"]

Floats = NDArray[np.float64]

# Points of the path whose pulls are in one pass: beyond this the multiplications cost more than
# the columns do.
_TOGETHER = 16


@runtime_checkable
class PathRestricted(Restricted, Protocol):
    """A restricted problem that is solved for many multiples of its penalties at once."""

    def solve_path(self, lam: Floats, multipliers: Floats) -> list[Solved]:
        """Return the optima for penalties t lam, t of the descending multipliers."""

    def refine(self, solved: Solved, lam: Floats) -> Solved:
        """Return one of these optima as exact as `solve` gives it, for its penalties lam (k,)."""


def solve_path(run: Generation, multipliers: ArrayLike, lam: ArrayLike = 1.0) -> list[Expansion]:
    """Return the solutions for penalties t lam, t of positive multipliers that descend.

    Where one homotopy gives them all, the least penalties come first: their columns are nearly all
    that the others need, and few passes, for many of them together, tell what is missing. Elsewhere
    it is one after the other, the columns kept. So it is where the columns are limited, which those
    of the least penalties would use up, and where rounding has spoiled the homotopy. The solution
    for a larger penalty stands in for one that is not found, with the status "stopped".

    After Ctrl-C some are "interrupted", and those of still lower penalties may be missing.
    """
    t = np.asarray(multipliers, dtype=float)
    if t.ndim != 1 or not len(t) or not np.all(t > 0) or np.any(np.diff(t) > 0):
        raise ValueError("multipliers of the penalties must be positive and descend")
    penalties = run.begin(lam)
    restricted = run.restricted
    if run.max_active is not None or not isinstance(restricted, PathRestricted):
        founds: list[Expansion] = []
        for multiplier in t:
            try:
                founds.append(run.solve(multiplier * penalties))
            except UnsolvedError:  # a linear programme; the others of the path are not lost by it
                if not founds:
                    raise
                founds.append(run.held(founds[-1], multiplier * penalties))
            if founds[-1].status == "interrupted":
                break
        return founds
    last = run.solve(t[-1] * penalties)
    broken = last.status == "interrupted"
    return [*_together(run, restricted, t[:-1], penalties, broken), last]


def _together(
    run: Generation, restricted: PathRestricted, t: Floats, penalties: Floats, interrupted: bool
) -> list[Expansion]:
    """Return the solutions for multipliers whose columns are nearly all there.

    Where the work was `interrupted` before, it is without passes.
    """
    done: dict[int, Expansion] = {}
    duals, passes = np.full(len(t), -np.inf), np.zeros(len(t), dtype=int)
    try:
        if interrupted:
            raise KeyboardInterrupt
        while len(done) < len(t):
            left = np.array([i for i in range(len(t)) if i not in done])
            lam = penalties[run.indices]
            ratios = np.zeros(run.columns.size)
            # Each group of points has a pass; what all of them lack is added together.
            solved = restricted.solve_path(lam, t[left])
            for first in range(0, len(left), _TOGETHER):
                group = range(first, min(first + _TOGETHER, len(left)))
                U = np.column_stack([solved[g].pull for g in group])
                slopes = np.abs(run.columns.products(U))
                for column, g in enumerate(group):
                    i = left[g]
                    found = run.state(solved[g], t[i] * penalties, duals[i], passes[i])
                    found, over = run.certify(found, slopes[:, column], t[i] * penalties)
                    duals[i], passes[i] = found.dual, found.n_passes
                    if found.status == "certified":
                        exact = restricted.refine(solved[g], t[i] * lam)
                        again = run.state(exact, t[i] * penalties, duals[i], passes[i])
                        done[i] = again._replace(status="certified")
                    else:
                        np.maximum(ratios, over, out=ratios)
                    if run.report is not None:
                        run.report(found)
            if len(done) < len(t) and not run.extend(ratios):
                break
        # What one homotopy for all has spoiled by rounding may be solved by itself.
        for i in range(len(t)):
            if i not in done:
                alone = run.solve(t[i] * penalties)
                if alone.status == "interrupted":
                    raise KeyboardInterrupt
                done[i] = alone._replace(n_passes=alone.n_passes + int(passes[i]))
    except KeyboardInterrupt:
        pass
    left = np.array([i for i in range(len(t)) if i not in done], dtype=int)
    if len(left):
        solved = restricted.solve_path(penalties[run.indices], t[left])
        for i, each in zip(left, solved, strict=True):
            found = run.state(each, t[i] * penalties, duals[i], passes[i])
            done[i] = found._replace(status="interrupted")
    return [done[i] for i in range(len(t))]
