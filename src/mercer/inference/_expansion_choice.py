"""Cross-validation along a regularisation path: how well held-out rows are predicted.

Each fold is solved for all penalties at once, each solution from the one before. A held-out row is
judged by its log density under the posterior of the fold, error bars and noise included: where the
noise is open it is estimated from the residuals of the fold's own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._expansion_posterior import Spread, spread_of, spread_under
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._losses import unit_loss
from mercer.inference._margin_calibration import Calibration
from mercer.inference._residual_noise import Noise
from mercer.likelihoods import Gaussian, Likelihood

__all__ = [
    "HeldOut",
    "NoiseModel",
    "folds_of",
    "held_out",
    "held_out_functions",
    "margin_spread",
    "pieces_of",
    "posterior_spread",
    "ridge_of",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rows of the functions in use that are held at once, in bytes.
_BLOCK_BYTES = 16 * 2**20
# Less than this part of the rows' weight is no freedom to estimate noise from.
_FREEDOM = 1e-3


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


def ridge_of(prior: str, scale: float, size: int, free: int) -> Floats | None:
    """Return the curvature of minus the log prior of `size` coefficients, then `free` zeros.

    None where there is none: Laplacian and feature-selection priors are replaced by tangents.
    """
    if prior != "weight_decay":
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


def margin_spread(
    problem: ExpansionProblem,
    solution: Expansion,
    model: NoiseModel,
    lam: float,
    calibration: Calibration,
) -> Spread:
    """Return the spread of the coefficients of margins in the units of the link.

    There is none where these tell nothing of the labels.
    """
    if calibration.bars[0] == 0.0:
        return Spread(None, 0)
    scale = calibration.bars[0] / lam
    ridge = ridge_of(model.prior, scale, len(solution.indices), problem.n_free)
    return posterior_spread(
        problem, solution, model.now, ridge, calibration.centre(solution.latent)
    )


def held_out_functions(problem: ExpansionProblem, test: Indices, indices: Indices) -> Floats:
    """Return functions at rows that are held out, (t, k + r), the free ones last."""
    A = problem.columns.rows(test).take(indices)
    return A if problem.H is None else np.hstack([A, problem.H[test]])


@dataclass(frozen=True)
class NoiseModel:
    """The likelihood of a solution: what is given of it, or follows from its residuals.

    noise : Noise, of which something may be open; None for labels
    now : the likelihood whose loss is minimised
    prior : the name of the prior
    prior_scale : s, if it is given, with which the penalty determines open noise
    variances : (n,) of Gaussian noise, where each row has its own, and `now` is of their unit
    """

    noise: Noise | None
    now: Likelihood
    prior: str = "laplacian"
    prior_scale: float | None = None
    variances: Floats | None = None

    @property
    def unit(self) -> float:
        """The unit of the loss that is minimised."""
        return _unit(self.now)

    def of(self, problem: ExpansionProblem, solution: Expansion, lam: float) -> Likelihood | None:
        """Return the likelihood of a solution; None if there are no residuals to tell it from."""
        noise = self.noise
        if noise is None or not (noise.is_open or noise.shapes_the_loss):
            return self.now
        if self.prior_scale is not None and noise.is_open:
            noise = replace(noise, spec=noise.with_unit(self._unit_at(lam)))
            if not noise.shapes_the_loss:
                return noise.spec
        weights = _weights(problem)
        total = float(np.sum(weights))
        freedom = total - self._used(problem, solution, lam)
        if freedom <= _FREEDOM * total:
            return None
        return noise.estimate(problem.loss.y - solution.latent, weights, freedom)

    def of_all(self, problem: ExpansionProblem, solution: Expansion) -> Likelihood:
        """Return the likelihood of a solution's residuals, as if nothing were estimated beside."""
        assert self.noise is not None
        weights = _weights(problem)
        residual = problem.loss.y - solution.latent
        return self.noise.estimate(residual, weights, float(np.sum(weights)))

    def scale(self, likelihood: Likelihood, lam: float) -> float:
        """Return the prior's scale s that has this penalty under a likelihood."""
        if self.prior_scale is not None:
            return self.prior_scale
        unit = _unit(likelihood)
        if self.prior == "weight_decay":  # unit/s^2 is what counts
            return float(np.sqrt(unit) * np.sqrt(self.unit)) / lam
        return unit / lam

    def log_density(
        self, likelihood: Likelihood, y: Floats, mean: Floats, var: Floats, rows: Indices
    ) -> Floats:
        """Return the log density of targets at some rows, given moments of the function there."""
        if self.variances is None:
            return likelihood.log_predictive(y, mean, var)
        return np.asarray(Gaussian(self.variances[rows]).smoothed(y, mean, var)[0])

    def penalty(self, scale: float) -> float:
        """Return the penalty of a prior's scale, under the likelihood that is minimised."""
        return self.unit / scale

    def _unit_at(self, lam: float) -> float:
        """Return the unit with which a given prior scale has this penalty."""
        assert self.prior_scale is not None
        if self.prior == "weight_decay":
            return lam * self.prior_scale * (lam * self.prior_scale / self.unit)
        return lam * self.prior_scale

    def _used(self, problem: ExpansionProblem, solution: Expansion, lam: float) -> float:
        """Return how many coefficients the rows have determined."""
        size = len(solution.indices)
        if self.prior != "weight_decay":
            return size + problem.n_free
        # the trace of the smoother, k - tr(ridge cov), in units of the loss
        curved = np.maximum(problem.curvature(solution.latent), 0.0)
        if problem.loss.kind == "linear":  # it has kinks, and the Fisher information instead
            guess = self.of_all(problem, solution)
            curved = problem.weighted(_unit(guess) * guess.fisher(solution.latent))
        ridge = ridge_of(self.prior, np.sqrt(self.unit) / lam, size, problem.n_free)
        assert ridge is not None
        pieces = pieces_of(problem, solution.indices)
        spread = spread_of(((Phi, curved[rows]) for rows, Phi in pieces()), len(ridge), ridge)
        return spread.rank - float(np.sum(ridge * np.diagonal(spread.covariance())))


def _weights(problem: ExpansionProblem) -> Floats:
    return np.ones(problem.n) if problem.weights is None else problem.weights


def _unit(likelihood: Likelihood) -> float:
    if likelihood.is_of_labels:
        return 1.0
    return unit_loss(likelihood, np.ones(1)).loss.unit


class HeldOut(NamedTuple):
    """What solutions along a path say of the held-out rows of a fold.

    logs : (q, t) log densities at each of q penalties; -infinity if a solution is no model, or the
        loss no likelihood
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
        A, A_test = Phi[:, own], Phi_test[:, own]
        if problem.H is not None and train.H is not None:
            A, A_test = np.hstack([A, train.H]), np.hstack([A_test, problem.H[test]])
        mean[q] = problem.mean[test] + A_test @ np.concatenate([solution.coef, solution.beta])
        likelihood = model.of(train, solution, float(lam)) if train.loss.is_likelihood else None
        if likelihood is None:
            continue
        ridge = ridge_of(model.prior, model.scale(likelihood, float(lam)), len(own), train.n_free)
        rows = train.loss.y, solution.latent, train.weights
        spread = spread_under(likelihood, lambda A=A: [(slice(None), A)], *rows, A.shape[1], ridge)
        logs[q] = model.log_density(likelihood, y, mean[q], spread.var(A_test), test)
    return HeldOut(logs, mean, np.array([float(len(indices)) for indices in used]))
