"""What a sparse approximation predicts, by its test conditional (UV Table 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.inference._conditionals import sections
from mercer.inference._sparse_rows import Passes, row_solution
from mercer.inference.sparse import SparseProblem, SparseSolution, posterior
from mercer.linalg import solve_lower
from mercer.means import Mean
from mercer.posterior import (
    AugmentedPredictive,
    BlockPredictive,
    IndependentPredictive,
    InverseTriangular,
    NystromPredictive,
    Predictive,
    SolvedRows,
    TrainingBlocks,
)

__all__ = ["augmented", "nystrom", "predictive"]

Floats = NDArray[np.float64]


def predictive(
    problem: SparseProblem,
    mean: Mean,
    scale: Floats,
    labels: ArrayLike | None = None,
    units: ArrayLike | None = None,
) -> tuple[Predictive, SparseSolution]:
    """Return the predictions of an approximation and the solution they were made of.

    A `Posterior`, unless the test conditional has more to it: new points that are independent of
    each other (FIC), or that belong to blocks of the training rows (PIC).

    Parameters
    ----------
    problem : SparseProblem
        In units in which the outputs are divided by `scale`.
    mean : Mean
        The mean function, in the user's units; its coefficients, where they are estimated, are
        set from the solution.
    scale : (P,) array
        The units of the outputs.
    labels : (n,) array, optional
        What the blocks of PIC are called; without it by the numbers of the problem's groups.
    units : (d,) array, optional
        Of the columns, in which new points are near to blocks; the columns' standard deviations
        without it.
    """
    process, solution = posterior(problem, mean, scale)
    if problem.kind.test == "independent":
        return IndependentPredictive(process), solution
    if problem.kind.test == "blocks":
        return BlockPredictive(process, _blocks(problem, solution, labels, units)), solution
    return process, solution


def _blocks(
    problem: SparseProblem,
    solution: SparseSolution,
    labels: ArrayLike | None,
    units: ArrayLike | None,
) -> TrainingBlocks:
    assert problem.groups is not None
    groups = np.asarray(problem.groups if labels is None else labels)
    names, number = np.unique(groups, return_inverse=True)
    starts = np.append(True, number[1:] != number[:-1])
    changes = np.append(True, np.diff(problem.groups) != 0)
    if int(np.sum(starts)) != len(names) or np.any(starts != changes):
        raise ValueError("the rows of a block must stand together, under one label of its own")
    centres, widths = None, None
    if problem.kernel.is_numeric:
        X = np.asarray(problem.X, dtype=float)
        w = np.ones(len(X)) if problem.weights is None else problem.weights
        counts = np.bincount(number, weights=w)
        columns = [np.bincount(number, weights=w * column) / counts for column in X.T]
        centres = np.stack(columns, axis=1)
        widths = np.std(X, axis=0) if units is None else np.array(units, dtype=float)
        widths[(widths == 0) | (np.ptp(X, axis=0) == 0)] = 1.0
    E, regressors = row_solution(problem, solution)
    if not problem.integrate:
        regressors = regressors[:, :0]
    return TrainingBlocks(problem.X, groups, _over_weights(problem), E, regressors, centres, widths)


def _over_weights(problem: SparseProblem) -> Floats:
    """Return the noise variances of rows that count as many."""
    return problem.noise if problem.weights is None else problem.noise / problem.weights


def nystrom(
    problem: SparseProblem, mean: Mean, scale: Floats
) -> tuple[NystromPredictive, SparseSolution]:
    """Return the predictions of the Nyström approximation (UV 32), and the solution.

    As `predictive`. Training rows are those of a deterministic conditional, "sor" or "dtc", and
    the covariance between them and new points is exact.
    """
    if problem.kind.training != "deterministic":
        raise ValueError(
            "the Nyström approximation has the training rows of 'sor' or 'dtc', got the "
            f"approximation {problem.kind.name!r}"
        )
    process, solution = posterior(problem, mean, scale)
    E, regressors = row_solution(problem, solution)
    left = _left(problem, solution)
    if process.n_features:  # root (h - H'Sigma^-1 k_f), the price of not knowing beta
        E = np.vstack([E, solution.beta])
        r, root = regressors.shape[1], solution.root
        below = np.hstack([-root @ regressors.T, root])
        left = np.vstack([np.hstack([left, np.zeros((len(left), r))]), below])
    made = NystromPredictive(
        problem.kernel,
        problem.X,
        E,
        _over_weights(problem),
        left,
        process.basis.features,  # type: ignore[arg-type]
        process.mean_function,
        scale,
    )
    return made, solution


def _left(problem: SparseProblem, solution: SparseSolution) -> Floats:
    """Return U (m, n) with Sigma^-1 = noise^-1 - U'U: LB^-1 V noise^-1."""
    L, LB = solution.L, solution.LB

    def block(rows: Any) -> Floats:
        V = solve_lower(L, sections(problem.kernel, rows.X, problem.Z), overwrite=True)
        U = solve_lower(LB, V, overwrite=True)
        return np.asarray(U * (rows.weights / rows.noise))

    return np.hstack(Passes(problem).map(block))


def augmented(
    problem: SparseProblem, mean: Mean, scale: Floats
) -> tuple[AugmentedPredictive, SparseSolution]:
    """Return predictions for which each point joins the inducing inputs (UV 8.1).

    As `predictive`. What the test conditional is makes no difference then.
    """
    process, solution = posterior(problem, mean, scale)
    passes, P = Passes(problem), problem.n_outputs
    E, regressors = row_solution(problem, solution)
    # targets less what the mean is without the point: what it changes in that is small
    T, alpha, features = problem.Y, solution.alpha, None
    change, beta = np.empty((0, 0)), np.empty((0, P))
    if passes.r:
        assert problem.H is not None
        T = T - problem.H @ solution.beta
        if problem.beta is None:
            features, change = mean, passes.change
            T = np.hstack([T, passes.T[:, P:]])
            E = np.hstack([E, regressors @ change])
            alpha = np.hstack([alpha, solution.alpha_H @ change])
            beta = np.zeros((passes.r, P))
            if problem.integrate:
                beta = np.asarray(np.linalg.solve(change, solution.beta), dtype=float)
    S = T.T @ E
    L = np.tril(solution.L)
    rows = SolvedRows(
        problem.kernel,
        problem.Z,
        InverseTriangular(L),
        InverseTriangular(L @ np.tril(solution.LB)),
        problem.X,
        T,
        problem.noise,
        passes.weights,
        problem.kind.training,
        problem.kind.power,
        passes.groups,
        alpha,
        0.5 * (S + S.T),
    )
    made = AugmentedPredictive(
        rows, P, features, change, beta, problem.integrate, process.mean_function, scale
    )
    return made, solution
