"""The likelihood of a solution: what is given of it, or follows from its residuals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer.inference._expansion_posterior import spread_of
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._expansion_spread import pieces_of, ridge_of
from mercer.inference._residual_noise import Noise
from mercer.inference._unit_loss import unit_loss
from mercer.likelihoods import Gaussian, Likelihood
from mercer.priors import CoefficientPrior, Laplacian, WeightDecay

__all__ = ["NoiseModel", "unit_of"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Less than this part of the rows' weight is no freedom to estimate noise from.
_FREEDOM = 1e-3


@dataclass(frozen=True)
class NoiseModel:
    """The likelihood of a solution: what is given of it, or follows from its residuals.

    noise : Noise, of which something may be open; None for labels
    now : the likelihood whose loss is minimised
    prior : the kind of the prior
    prior_scale : s, if it is given, with which the penalty determines open noise
    variances : (n,) of Gaussian noise, where each row has its own, and `now` is of their unit
    """

    noise: Noise | None
    now: Likelihood
    prior: type[CoefficientPrior] = Laplacian
    prior_scale: float | None = None
    variances: Floats | None = None

    @property
    def unit(self) -> float:
        """The unit of the loss that is minimised."""
        return unit_of(self.now)

    def of(self, problem: ExpansionProblem, solution: Expansion, lam: float) -> Likelihood | None:
        """Return the likelihood of a solution; None if there are no residuals to tell it from."""
        noise = self.noise
        if noise is None or not (noise.is_open or noise.shapes_the_loss):
            return self.now
        if self.prior_scale is not None and noise.is_open:
            unit = self._unit_at(lam)
            if not len(solution.indices) and self.prior is not WeightDecay:
                unit = max(unit, self._unit_of_nothing(problem, solution))
            noise = replace(noise, spec=noise.with_unit(unit))
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
        unit = unit_of(likelihood)
        if self.prior is WeightDecay:  # unit/s^2 is what counts
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
        if self.prior is WeightDecay:
            return lam * self.prior_scale * (lam * self.prior_scale / self.unit)
        return lam * self.prior_scale

    def _unit_of_nothing(self, problem: ExpansionProblem, solution: Expansion) -> float:
        """Return the unit by the residuals of a solution without functions; 0 if none is left.

        All larger penalties have that solution too, so that a given prior scale allows more noise.
        """
        assert self.noise is not None
        weights = _weights(problem)
        total = float(np.sum(weights))
        freedom = total - problem.n_free
        if freedom <= _FREEDOM * total:
            return 0.0
        residual = problem.loss.y - solution.latent
        return unit_of(self.noise.estimate(residual, weights, freedom))

    def _used(self, problem: ExpansionProblem, solution: Expansion, lam: float) -> float:
        """Return how many coefficients the rows have determined."""
        size = len(solution.indices)
        if self.prior is not WeightDecay:
            return size + problem.n_free
        # the trace of the smoother, k - tr(ridge cov), in units of the loss
        curved = np.maximum(problem.curvature(solution.latent), 0.0)
        if problem.loss.kind == "linear":  # it has kinks, and the Fisher information instead
            guess = self.of_all(problem, solution)
            curved = problem.weighted(unit_of(guess) * guess.fisher(solution.latent))
        ridge = ridge_of(self.prior, np.sqrt(self.unit) / lam, size, problem.n_free)
        assert ridge is not None
        pieces = pieces_of(problem, solution.indices)
        spread = spread_of(((Phi, curved[rows]) for rows, Phi in pieces()), len(ridge), ridge)
        return spread.rank - float(np.sum(ridge * np.diagonal(spread.covariance())))


def _weights(problem: ExpansionProblem) -> Floats:
    return np.ones(problem.n) if problem.weights is None else problem.weights


def unit_of(likelihood: Likelihood) -> float:
    """Return the unit of the loss of a likelihood."""
    if likelihood.is_of_labels:
        return 1.0
    return unit_loss(likelihood, np.ones(1)).loss.unit
