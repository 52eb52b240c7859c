"""Column generation: an L1-penalised problem over many columns, of which few are ever formed.

    F(theta, beta) = sum_i w_i loss_i(f_i) + sum_j lam_j |theta_j|,   f = m + Phi theta + H beta

(BKM 102, 109) is minimised over some of the columns, by whatever suits the loss. One pass over all
columns, Phi'u with the pull u = -w loss'(f), then finds those that violate the conditions for an
optimum, |Phi_j'u| <= lam_j; the worst are added, until none is left. The same pass makes u, shrunk
until it is feasible, a point of the dual problem, whose value is a lower bound of all F: the
difference is the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.inference._columns import Columns
from mercer.inference._expansion_problem import Expansion
from mercer.inference._l1_simplex import UnsolvedError

__all__ = [
    "Generation",
    "Restricted",
    "Solved",
    "shrinkage",
    "worst_columns",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

TINY = float(np.finfo(float).tiny)
# Columns that are added at once: so many, and this part of those that are there.
_BATCH, _SHARE = 128, 0.3
# Candidates that are looked at for each column that is added, rows by which they are compared, and
# the cosine from which on two of them are all but the same column.
_CANDIDATES, _ROWS, _ALIKE = 10, 128, 0.9
# From so many columns on a sample is looked at first: one in so many, no more than the former
# number; how often at the most, how many of it are added at once, and what |Phi_j'u|/lam_j must be
# above for another look.
_SAMPLED, _ONE_IN, _LOOKS, _FEW, _MUCH = 2048, 16, 4, 32, 1.05
# A column that nearly violates its condition, |Phi_j'u|/lam_j above this, may do so next time.
_NEAR = 0.9
# An active column has a ratio of 1 but for rounding.
_ACTIVE = 1.0 - 1e-4
# Doubles in all columns that are kept, beyond which those that are not active go.
_MEMORY = 80_000_000
# Passes in a row that may neither lower F, nor raise D, nor leave more columns in use than ever:
# where few may be kept, rounding can make those that are needed come and go for ever.
_IDLE = 20


class Solved(NamedTuple):
    """The optimum over the columns that have been added.

    coef : (k,) theta, in the order in which they were added
    beta : (r,) coefficients of the functions without a penalty
    latent : (n,) f
    pull : (n,) u = -w loss'(f), with H'u = 0
    objective : F
    """

    coef: Floats
    beta: Floats
    latent: Floats
    pull: Floats
    objective: float


class Restricted(Protocol):
    """The problem over the columns that have been added; none to begin with."""

    def add(self, A: Floats) -> None:
        """Add columns A (n, k), in Fortran order, which may be kept and changed."""

    def keep(self, positions: Indices) -> None:
        """Forget columns without a coefficient: all but those at these ascending positions."""

    def solve(self, lam: Floats) -> Solved:
        """Return the optimum for penalties (k,) of the columns added, near the last one if any."""

    def dual(self, u: Floats) -> float:
        """Return the value of the dual problem at a feasible u: no F is less."""


class Generation:
    """Solves problems over the same columns one after the other; what is formed is kept.

    Parameters
    ----------
    columns : Columns
    restricted : Restricted
        Without columns yet.
    tol : float
        The gap, relative to F, that is enough.
    start : (k,) array of indices, optional
        Columns to begin with.
    max_active : int, optional
        How many columns the restricted problem may have, and so how many coefficients are not 0:
        where the certificate needs more, the status is "stopped". Columns that are not active are
        forgotten to make room.
    report : function, optional
        Called with the solution so far after each pass. It may raise KeyboardInterrupt.
    """

    def __init__(
        self,
        columns: Columns,
        restricted: Restricted,
        *,
        tol: float = 1e-6,
        start: Indices | None = None,
        max_active: int | None = None,
        report: Callable[[Expansion], None] | None = None,
    ) -> None:
        self.columns, self.restricted = columns, restricted
        self.tol, self.max_active, self.report = tol, max_active, report
        self.indices = np.empty(0, dtype=np.intp)
        self.n_formed = 0
        if start is not None and len(start):
            self.add(np.unique(start))

    def add(self, indices: Indices) -> None:
        """Form columns and give them to the restricted problem."""
        A, joined = self.columns.take(indices), np.concatenate([self.indices, indices])
        self.restricted.add(A)
        self.indices = joined  # at once, so that Ctrl-C finds both with the columns or without
        self.n_formed += len(indices)

    def begin(self, lam: ArrayLike) -> Floats:
        """Return penalties as an array (size,), with the columns formed that have none."""
        penalties = np.broadcast_to(np.asarray(lam, dtype=float), (self.columns.size,))
        if not (np.all(penalties >= 0) and np.all(np.isfinite(penalties))):
            raise ValueError("penalties must be finite and at least 0")
        free = np.setdiff1d(np.flatnonzero(penalties == 0.0), self.indices)
        if len(free):  # no pull is feasible without them
            self.add(free)
        return penalties

    def solve(self, lam: ArrayLike) -> Expansion:
        """Return the solution for penalties lam, one number or (size,).

        A linear programme that cannot be solved leaves what the one before it has found. If that
        is nothing, or it is the first for these penalties, UnsolvedError is raised.
        """
        penalties, is_new = self.begin(lam), not len(self.indices)
        found = self.state(self.restricted.solve(penalties[self.indices]), penalties)
        best, idle = np.full(3, -np.inf), 0
        try:
            if is_new and self.columns.size >= _SAMPLED:
                for solved in self._over_sample(penalties, found.pull):
                    found = self.state(solved, penalties)
            while True:
                slopes = np.abs(self.columns.products(found.pull[:, None])[:, 0])
                found, ratios = self.certify(found, slopes, penalties)
                now = np.array([-found.objective, found.dual, len(self.indices)])
                idle = 0 if np.any(now > best) else idle + 1
                best = np.maximum(now, best)
                if found.status == "" and (idle == _IDLE or not self.extend(ratios)):
                    found = found._replace(status="stopped")
                found = found._replace(n_columns=self.n_formed)
                if self.report is not None:
                    self.report(found)
                if found.status != "":
                    return found
                solved = self.restricted.solve(penalties[self.indices])
                found = self.state(solved, penalties, found.dual, found.n_passes)
        except KeyboardInterrupt:
            return found._replace(status="interrupted")
        except UnsolvedError:
            if not len(found.indices):
                raise
            return found._replace(status="stopped", n_columns=self.n_formed)

    def _over_sample(self, penalties: Floats, u: Floats) -> Iterator[Solved]:
        """Solve with columns of a sample, until none of it violates its condition by much.

        They are no worse to begin with than others, for neighbours are much alike, and price at a
        small part of a pass: some passes are saved.
        """
        size = self.columns.size
        sample = np.unique(np.linspace(0, size - 1, min(size // _ONE_IN, _SAMPLED)).astype(np.intp))
        part = self.columns.some(sample)
        for _ in range(_LOOKS):
            ratios = np.zeros(size)
            slopes = np.abs(part.products(u[:, None])[:, 0])
            np.divide(slopes, penalties[sample], out=slopes, where=penalties[sample] > 0.0)
            ratios[sample] = slopes
            if not np.any(np.delete(ratios, self.indices) > _MUCH):
                return
            if not self.extend(ratios, _FEW):
                return
            solved = self.restricted.solve(penalties[self.indices])
            u = solved.pull
            yield solved

    def state(
        self, solved: Solved, penalties: Floats, dual: float = -np.inf, n_passes: int = 0
    ) -> Expansion:
        """Return a solution over the columns that are formed, with what is known so far."""
        kept = np.flatnonzero(solved.coef)
        kept = kept[np.argsort(self.indices[kept])]
        indices = self.indices[kept]
        return Expansion(
            indices,
            solved.coef[kept],
            solved.beta,
            solved.latent,
            solved.pull,
            solved.objective,
            # u = 0 is feasible whatever the columns
            max(dual, self.restricted.dual(np.zeros_like(solved.pull))),
            penalties[indices],
            "",
            n_passes,
            self.n_formed,
        )

    def held(self, found: Expansion, penalties: Floats) -> Expansion:
        """Return a solution for larger penalties as one for these, and what it proves of them."""
        own = penalties[found.indices]
        lower = float((found.penalties - own) @ np.abs(found.coef))
        slopes = np.abs(self.columns.products(found.pull[:, None])[:, 0])
        found = found._replace(
            objective=found.objective - lower, dual=-np.inf, penalties=own, status=""
        )
        found, _ = self.certify(found, slopes, penalties)
        return found._replace(status=found.status or "stopped", n_columns=self.n_formed)

    def certify(
        self, found: Expansion, slopes: Floats, penalties: Floats
    ) -> tuple[Expansion, Floats]:
        """Return a solution with its certificate, from |Phi'u|, and |Phi_j'u|/lam_j (size,)."""
        t = shrinkage(slopes, penalties)
        dual = max(found.dual, self.restricted.dual(t * found.pull))
        found = found._replace(dual=dual, n_passes=found.n_passes + 1)
        if found.gap <= self.tol:
            found = found._replace(status="certified")
        ratios = np.full(len(slopes), np.inf)
        np.divide(slopes, penalties, out=ratios, where=penalties > 0.0)
        return found, ratios

    def extend(self, ratios: Floats, batch: int | None = None) -> bool:
        """Add the columns with the largest |Phi_j'u|/lam_j (size,); False if none is above 1."""
        inside = ratios[self.indices]
        ratios = ratios.copy()
        ratios[self.indices] = 0.0
        count = max(_BATCH if batch is None else batch, int(_SHARE * len(self.indices)))
        if self.max_active is not None:
            count = max(0, min(count, self.max_active - int(np.sum(inside >= _ACTIVE))))
        new = worst_columns(self.columns, ratios, count)
        if not len(new):
            return False
        self._make_room(inside, len(new))
        self.add(new)
        return True

    def _make_room(self, inside: Floats, count: int) -> None:
        """Forget columns farthest from their conditions where with `count` more they are many."""
        most = _MEMORY // max(1, self.columns.n)
        most = most if self.max_active is None else min(most, self.max_active)
        left = max(int(np.sum(inside >= _ACTIVE)), most - count)
        if len(inside) <= left:
            return
        kept = np.sort(np.argsort(-inside, kind="stable")[:left])
        self.restricted.keep(kept)
        self.indices = self.indices[kept]


def shrinkage(slopes: Floats, penalties: Floats) -> float:
    """Return the largest t <= 1 for which t |Phi_j'u| <= lam_j, from |Phi_j'u| (size,).

    A column without a penalty must have slope 0, and is left out: so it is, but for rounding, in
    every solution that has it.
    """
    over = (slopes > penalties) & (penalties > 0.0)
    return float(np.min(penalties[over] / slopes[over], initial=1.0))


def worst_columns(columns: Columns, excess: Floats, count: int) -> Indices:
    """Return at most `count` columns with the largest `excess`, |Phi_j'u|/lam_j, if any is above 1.

    Neighbours of a column that violates its condition do so too, and are nearly the same column:
    one that is like another chosen already, by some of the rows, comes after all that are not.
    What is left of `count` goes to columns that are near to a violation.
    """
    if not count or not np.any(excess > 1.0):
        return np.empty(0, dtype=np.intp)
    over = np.flatnonzero(excess > _NEAR)
    if len(over) <= count:
        return over
    top = over[np.argsort(-excess[over], kind="stable")[: _CANDIDATES * count]]
    rows = np.unique(np.linspace(0, columns.n - 1, _ROWS).astype(np.intp))
    S = columns.rows(rows).take(top)
    S /= np.maximum(np.sqrt(np.einsum("ij,ij->j", S, S)), TINY)
    alike = np.zeros(len(top), dtype=bool)
    chosen: list[int] = []
    for i in range(len(top)):
        if len(chosen) == count:
            break
        if not alike[i]:
            chosen.append(i)
            alike |= np.abs(S[:, i] @ S) > _ALIKE
    others = np.setdiff1d(np.arange(len(top)), chosen)[: count - len(chosen)]
    return np.sort(top[np.concatenate([np.array(chosen, dtype=np.intp), others])])
