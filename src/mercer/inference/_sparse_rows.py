"""The rows of a sparse problem: how they are passed over, and what the solution says of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.compute import Executor, executor_for, map_tiles, row_blocks
from mercer.inference._conditionals import Rows, block_factor, sections
from mercer.inference.exact import conditioned
from mercer.linalg import solve_lower

if TYPE_CHECKING:
    from mercer.inference.sparse import SparseProblem, SparseSolution

__all__ = ["Passes", "RowSolution", "row_solution"]

Floats = NDArray[np.float64]

# Entries of a block of K_fu: large enough for the BLAS, small enough to stay out of the way.
_ENTRIES = 1_000_000


class Passes:
    """The rows, and how to pass over blocks of them.

    T : (n, P + r) targets less H `beta`, and regressors times `change`
    beta : (r, P) the coefficients where they are held, and else such that little is left of the
        targets: what is common to all would take the digits of what is not
    change : (r, r)
    """

    def __init__(self, problem: SparseProblem) -> None:
        n, r = len(problem.Y), 0 if problem.H is None else problem.H.shape[1]
        self.problem, self.r = problem, r
        if problem.H is not None and r:
            # products of regressors square their condition, so it had better be good
            H, self.change = conditioned(problem.H)
            near = problem.beta
            self.beta = self.change @ np.linalg.lstsq(H, problem.Y)[0] if near is None else near
            self.T = np.hstack([problem.Y - problem.H @ self.beta, H])
        else:
            self.T, self.change = problem.Y, np.empty((0, 0))
            self.beta = np.empty((0, problem.n_outputs))
        ones = np.broadcast_to(1.0, n)
        self.weights = ones if problem.weights is None else problem.weights
        groups = problem.groups
        self.groups = np.broadcast_to(0, n) if groups is None else groups
        self.executor: Executor = executor_for(problem.X)

    def sum(self, function: Callable[[Rows], Any]) -> Any:
        """Return the sum of ``function(rows)`` over blocks of rows."""
        return self.executor.sum(
            lambda *block: function(Rows(*block)), *self._rows(), block=self._cuts(len(self.T))
        )

    def map(self, function: Callable[[Rows], Any]) -> list[Any]:
        """Return ``function(rows)`` for blocks of rows, in their order; for rows in memory."""
        cuts, rows = self._cuts(len(self.T)), self._rows()
        slices = row_blocks(len(self.T), cuts) if isinstance(cuts, int) else cuts
        return map_tiles(lambda s: function(Rows(*(r[s] for r in rows))), slices)

    def _rows(self) -> tuple[Any, ...]:
        problem = self.problem
        return problem.X, self.T, problem.noise, self.weights, self.groups

    def _cuts(self, n: int) -> int | Sequence[slice]:
        size = max(1, _ENTRIES // len(self.problem.Z))
        if self.problem.kind.training != "blocks":
            return size
        # whole groups, as many as make a block
        edges = np.append(np.flatnonzero(np.diff(self.groups)) + 1, n)
        cuts, start = [], 0
        for edge, following in zip(edges, [*edges[1:], None], strict=True):
            if following is None or following - start > size:
                cuts.append(slice(start, int(edge)))
                start = int(edge)
        return cuts


class RowSolution(NamedTuple):
    """What the solution says of each row, Sigma = Q + Lambda.

    residuals : (n, P) Sigma^-1 (Y - H beta)
    regressors : (n, r) Sigma^-1 H
    """

    residuals: Floats
    regressors: Floats


def row_solution(problem: SparseProblem, solution: SparseSolution) -> RowSolution:
    """Pass over the rows once more: O(n m^2).

    Sigma^-1 t = Lambda^-1 (t - K_fu A^-1 K_uf Lambda^-1 t): the targets less what the inducing
    variables explain of them, over the variance that these leave.
    """
    passes, P = Passes(problem), problem.n_outputs
    coefficients, c = solution.alpha, np.eye(P + passes.r)
    if passes.r:
        coefficients = np.hstack([coefficients, solution.alpha_H])
        back = np.linalg.inv(passes.change)
        c[P:, :P], c[P:, P:] = back @ (passes.beta - solution.beta), back
    b = np.tril(solution.L).T @ coefficients
    blocks = passes.map(lambda rows: _over_lambda(problem, solution.L, rows, b, c))
    both = np.concatenate(blocks)
    return RowSolution(both[:, :P], both[:, P:])


def _over_lambda(problem: SparseProblem, L: Floats, rows: Rows, b: Floats, c: Floats) -> Floats:
    """Return Lambda^-1 (T c - V'b)."""
    kernel, kind = problem.kernel, problem.kind
    V = solve_lower(L, sections(kernel, rows.X, problem.Z), overwrite=True)
    E = np.asfortranarray(rows.T @ c - V.T @ b)
    if kind.training == "deterministic":
        return np.asarray(E * (rows.weights / rows.noise)[:, None])
    if kind.training == "blocks":
        for s in rows.blocks():
            R = block_factor(kernel, rows, s, V)
            E[s] = solve_lower(R, solve_lower(R, np.asfortranarray(E[s])), transpose=True)
        return E
    d = np.maximum(kernel.diag(rows.X) - np.einsum("ij,ij->j", V, V), 0.0)
    return np.asarray(E * (rows.weights / (rows.noise + kind.power * d))[:, None])
