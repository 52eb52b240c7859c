"""The spread of a solution's coefficients, from the functions in use at all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from mercer.inference._calibration import Calibration, surest
from mercer.inference._columns import taken_in_pieces
from mercer.inference._expansion_posterior import Spread, spread_under
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._expansion_reduced import Reduced
from mercer.likelihoods import Likelihood
from mercer.priors import CoefficientPrior, WeightDecay

__all__ = ["calibrated_spread", "pieces_of", "posterior_spread", "ridge_of"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rows of the functions in use that are held at once, in bytes.
_BLOCK_BYTES = 16 * 2**20


def ridge_of(prior: type[CoefficientPrior], scale: float, size: int, free: int) -> Floats | None:
    """Return the curvature of minus the log prior of `size` coefficients, then `free` zeros.

    None where there is none: Laplacian and feature-selection priors are replaced by tangents.
    """
    if prior is not WeightDecay:
        return None
    return np.concatenate([np.full(size, 2.0 / scale**2), np.zeros(free)])  # of (BKM 99)


def pieces_of(
    problem: ExpansionProblem, indices: Indices
) -> Callable[[], Iterator[tuple[slice, Floats]]]:
    """Return what yields blocks of rows, and the functions in use there, the free ones last."""
    size = max(1, len(indices) + problem.n_free)
    step = max(size, _BLOCK_BYTES // (8 * size))

    def pieces() -> Iterator[tuple[slice, Floats]]:
        for start in range(0, problem.n, step):
            rows = slice(start, min(start + step, problem.n))
            Phi = problem.columns.rows(np.arange(rows.start, rows.stop)).take(indices)
            yield rows, Phi if problem.H is None else np.hstack([Phi, problem.H[rows]])

    return pieces


def posterior_spread(
    problem: ExpansionProblem,
    solution: Expansion,
    likelihood: Likelihood,
    ridge: Floats | None,
    latent: Floats | None = None,
) -> Spread:
    """Return the spread of a solution's coefficients, the free ones last.

    `latent` (n,) stands for the function at the rows where that is calibrated.
    """
    pieces = pieces_of(problem, solution.indices)
    f = solution.latent if latent is None else latent
    size = len(solution.indices) + problem.n_free
    return spread_under(likelihood, pieces, problem.loss.y, f, problem.weights, size, ridge)


def calibrated_spread(
    problem: ExpansionProblem,
    solution: Expansion,
    link: Likelihood,
    prior: type[CoefficientPrior],
    lam: float,
    calibration: Calibration,
) -> Spread:
    """Return the spread of the coefficients of margins in the units of the link.

    There is none where these tell nothing of the labels. Curvatures are those at latent values
    that tell a label with a probability of (N + 1)/(N + 2) at the most, N the weight of all rows:
    beyond it they vanish, and the error bars of labels that are far apart would be infinite. Nor
    is the function more uncertain than that before there are labels, as one whose coefficients
    hardly decay would be: a calibration to bars that drown all held-out labels fits no others.
    """
    if calibration.bars[0] == 0.0:
        return Spread(None, 0)
    y, total = problem.loss.y, problem.n if problem.weights is None else np.sum(problem.weights)
    sure = surest(link, float(total))
    scale = calibration.bars[0] / lam
    if prior is WeightDecay:
        scale = min(scale, sure * np.sqrt(2.0 / _mean_square(problem, solution.indices)))
    ridge = ridge_of(prior, scale, len(solution.indices), problem.n_free)
    latent = y * np.minimum(y * calibration.centre(solution.latent), sure)
    return posterior_spread(problem, solution, link, ridge, latent)


def _mean_square(problem: ExpansionProblem, indices: Indices) -> float:
    """Return the mean over the rows of the sum of squares of functions in use.

    They are those without their part in functions that have no penalty, which take that up.
    """
    columns = Reduced(problem).problem.columns
    weights = problem.weighted(np.ones(problem.n))
    total = sum(float(np.sum(weights @ A**2)) for _, A in taken_in_pieces(columns, indices))
    return total / float(np.sum(weights)) or 1.0
