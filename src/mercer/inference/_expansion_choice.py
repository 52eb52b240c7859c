"""Cross-validation along a regularisation path: how well held-out rows are predicted.

Each fold is solved for all penalties at once, each solution from the one before. A held-out row is
judged by its log density under the posterior of the fold, error bars and noise included: where the
noise is open it is estimated from the residuals of the fold's own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._calibration import is_calibrated
from mercer.inference._expansion_noise import NoiseModel
from mercer.inference._expansion_posterior import spread_under
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._expansion_spread import ridge_of

__all__ = ["HeldOut", "folds_of", "held_out", "held_out_functions"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def folds_of(
    kinds: Indices, count: int, rng: np.random.Generator, labels: Indices | None = None
) -> Indices:
    """Return the fold (n,) of each row; rows of a kind, numbered from 0, are in one fold.

    There are at most as many folds as kinds. Each has its share of every label (n,), if these are
    given: that of the first row of a kind counts, and their names make no difference.
    """
    different = int(np.max(kinds, initial=-1)) + 1
    order = rng.permutation(different)
    if labels is not None:
        own = labels[np.unique(kinds, return_index=True)[1]][order]
        _, first, numbers = np.unique(own, return_index=True, return_inverse=True)
        order = order[np.argsort(first[numbers], kind="stable")]
    place = np.empty(different, dtype=np.intp)
    place[order] = np.arange(different)
    return np.asarray(place[kinds] % max(1, min(count, different)))


def held_out_functions(problem: ExpansionProblem, test: Indices, indices: Indices) -> Floats:
    """Return functions at rows that are held out, (t, k + r), the free ones last."""
    A = problem.columns.rows(test).take(indices)
    return A if problem.H is None else np.hstack([A, problem.H[test]])


class HeldOut(NamedTuple):
    """What solutions along a path say of the held-out rows of a fold.

    logs : (q, t) log densities at each of q penalties; -infinity if a solution is no model, or
        latent values are calibrated
    mean : (q, t) the function there
    active : (q,) how many functions were in use
    """

    logs: Floats
    mean: Floats
    active: Floats


def held_out(
    problem: ExpansionProblem,
    test: Indices,
    train: ExpansionProblem,
    solutions: Sequence[Expansion],
    penalties: Floats,
    model: NoiseModel,
) -> HeldOut:
    """Return what solutions of a fold say of its held-out rows.

    Parameters
    ----------
    problem : that of all rows
    test : (t,) the rows that are held out
    train : the problem of the others
    solutions, penalties : a path of these
    model : the likelihood of a solution
    """
    used = [solution.indices for solution in solutions]
    union = np.unique(np.concatenate([*used, np.empty(0, dtype=np.intp)])).astype(np.intp)
    Phi, Phi_test = train.columns.take(union), problem.columns.rows(test).take(union)
    y, shape = problem.loss.y[test], (len(solutions), len(test))
    logs, mean = np.full(shape, -np.inf), np.empty(shape)
    for q, (solution, lam) in enumerate(zip(solutions, penalties, strict=True)):
        own = np.searchsorted(union, solution.indices)
        A, A_test = Phi, Phi_test
        if len(own) < len(union):
            A, A_test = Phi[:, own], Phi_test[:, own]
        if problem.H is not None and train.H is not None:
            A, A_test = np.hstack([A, train.H]), np.hstack([A_test, problem.H[test]])
        mean[q] = problem.mean[test] + A_test @ np.concatenate([solution.coef, solution.beta])
        # to the rows of all folds, later
        later = is_calibrated(train.loss.is_of_labels, train.loss.is_likelihood, model.prior)
        likelihood = None if later else model.of(train, solution, float(lam))
        if likelihood is None:
            continue
        ridge = ridge_of(model.prior, model.scale(likelihood, float(lam)), len(own), train.n_free)
        rows = train.loss.y, solution.latent, train.weights
        spread = spread_under(likelihood, lambda A=A: [(slice(None), A)], *rows, A.shape[1], ridge)
        logs[q] = model.log_density(likelihood, y, mean[q], spread.var(A_test), test)
    return HeldOut(logs, mean, np.array([float(len(indices)) for indices in used]))
