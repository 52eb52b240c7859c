"""The function of the flat parameter vector that a committee maximises.

As `objective`, for parts of the rows that are taken to be independent: the sum of their log
evidences under one kernel, one noise and one mean. Each part is one exact problem; they run at once
on Mercer's threads, and no more matrices exist than threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import blas_for, map_tiles
from mercer.errors import NotPositiveDefiniteError
from mercer.evidence.guarded import Guarded, LeftOut
from mercer.evidence.objective import Data, Objective
from mercer.inference.exact import ExactProblem, conditioned, evidence, posterior, solve
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian
from mercer.likelihoods.normal import LOG_2PI
from mercer.linalg import solve_lower
from mercer.means import Mean
from mercer.posterior import Posterior

__all__ = ["CommitteeObjective", "FittedCommittee"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class FittedCommittee(NamedTuple):
    """A committee at some parameters.

    kernel, likelihood, mean : the model
    members : the posterior process of each part of the rows
    log_evidence : the sum of the members', hyperpriors left out
    jitter : what is on the diagonals of their covariances
    """

    kernel: Kernel
    likelihood: Gaussian
    mean: Mean
    members: list[Posterior]
    log_evidence: float
    jitter: float


class _Said(NamedTuple):
    """What a member says of coefficients g of the mean: its log evidence, rest - |c - R g|^2/2."""

    R: Floats  # (<= r, r)
    c: Floats  # (<= r, P)
    rest: float
    jitter: float


class _Pulled(NamedTuple):
    """A member's log evidence, with derivatives in the kernel's theta, the noise and the mean."""

    value: float
    theta: Floats
    noise: Floats
    mean: Floats


class _Solved(NamedTuple):
    """The coefficients of the mean, the sum of log evidences there, and the jitter it took."""

    beta: Floats  # (r, P), in the kernel's units
    value: float
    jitter: float


class CommitteeObjective(Guarded):
    """sum_k log p(Y_k | theta) + log p(theta) over members k, as a function of theta.

    theta holds the free parameters of the kernel, then those of the likelihood. Coefficients of
    the mean that are estimated are those of all members together, in each evaluation: members
    with means of their own would not have one prior. That costs a factorisation more, a third of
    the time of an evaluation with its gradient.

    Parameters
    ----------
    kernel, likelihood, mean : the model at its start
    data : Data
    assignment : (n,) array of int
        The member that each row belongs to.
    bounds : array of shape (p, 2), optional
        The interval of each component; the kernel's and likelihood's own without it.
    """

    data: Data
    inference = "committee"
    criterion = "evidence"

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Gaussian,
        mean: Mean,
        data: Data,
        assignment: Indices,
        bounds: Floats | None = None,
    ) -> None:
        if likelihood.covariance is not None:
            raise ValueError(
                "a full noise covariance couples the members of a committee, which are taken to be "
                "independent; use GPRegressor"
            )
        if mean.estimate == "integrate":
            raise ValueError(
                "coefficients of the mean that are integrated out couple the members of a "
                f"committee, got {mean!r}; use estimate='ml', or GPRegressor"
            )
        if np.shape(assignment) != (len(data.Y),):
            raise ValueError(
                f"assignment must name the member of each of {len(data.Y)} rows, got shape "
                f"{np.shape(assignment)}"
            )
        super().__init__(kernel, {"likelihood": likelihood}, data.X, bounds)
        self.likelihood, self.mean, self.data = likelihood, mean, data
        self.assignment = np.asarray(assignment)
        self.rows = [np.flatnonzero(self.assignment == k) for k in np.unique(self.assignment)]
        self.latent = data.Y / data.scale
        self._H: Floats | None = None  # well conditioned regressors H T, if any are estimated
        if mean.estimate is not None:
            H, self._T = conditioned(mean.features(data.X))
            self._H = H if H.shape[1] else None

    def unpack(self, theta: ArrayLike) -> tuple[Kernel, Gaussian]:
        """Return the kernel and the likelihood with these parameters."""
        kernel, likelihood = self._with(theta)
        return kernel, likelihood

    def constant(self, likelihood: Gaussian) -> float:
        """Return what the engine's evidence lacks: weights' normalisers and the outputs' units."""
        data = self.data
        n, outputs = data.Y.shape
        units = data.total_weight * float(np.sum(np.log(data.scale)))
        if data.weights is None:
            return -units
        return float(outputs * likelihood.weight_constant(n, data.weights) - units)

    # --- members --------------------------------------------------------------------------------

    def _problem(
        self, kernel: Kernel, likelihood: Gaussian, target: Floats, rows: Indices
    ) -> ExactProblem:
        """Return the problem of the member that has these rows; `target` is of all rows."""
        noise = likelihood.variances(len(target), self.data.weights)[rows]
        return ExactProblem(kernel, self.data.X[rows], target[rows], noise, jitter=self.jitter)

    def _target(self, mean: Mean | None = None) -> Floats:
        """Return the targets less the known part of the mean, or less all of the one given."""
        data, outputs = self.data, self.data.Y.shape[1]
        if mean is None and self._H is not None:
            return np.asarray((data.Y - self.mean.fixed_part(data.X, outputs)) / data.scale)
        whole = self.mean if mean is None else mean
        return np.asarray((data.Y - whole(data.X, outputs)) / data.scale)

    def _said(self, kernel: Kernel, likelihood: Gaussian, target: Floats, rows: Indices) -> _Said:
        n, outputs = len(rows), target.shape[1]
        factor = solve(self._problem(kernel, likelihood, target, rows)).factor
        H = np.empty((n, 0)) if self._H is None else self._H[rows]
        with blas_for(n):
            white = solve_lower(factor.L, np.asfortranarray(target[rows]))
            Q, R = np.linalg.qr(solve_lower(factor.L, np.asfortranarray(H)))
        c = Q.T @ white
        rest = -0.5 * float(np.sum((white - Q @ c) ** 2))
        rest -= 0.5 * outputs * (factor.log_determinant() + n * LOG_2PI)
        return _Said(R, c, rest, factor.jitter)

    def _solve(self, kernel: Kernel, likelihood: Gaussian, target: Floats) -> _Solved:
        """Return the coefficients that suit all members best, and the evidence there."""
        said = map_tiles(lambda rows: self._said(kernel, likelihood, target, rows), self.rows)
        jitter = max(each.jitter for each in said)
        if self.jitter is None:
            # Decided by the first evaluation and kept, one for all, so that the objective stays
            # continuous.
            self.jitter = jitter
            if jitter > 0:
                return self._solve(kernel, likelihood, target)
        R, c = np.concatenate([s.R for s in said]), np.concatenate([s.c for s in said])
        value, beta = sum(s.rest for s in said), np.zeros((0, target.shape[1]))
        if self._H is not None:
            # regressors that depend on others get the smallest coefficients, as in `exact`
            gamma = np.linalg.lstsq(R, c, rcond=max(self._H.shape) * np.finfo(float).eps)[0]
            value -= 0.5 * float(np.sum((c - R @ gamma) ** 2))
            beta = self._T @ gamma
        return _Solved(beta, value, jitter)

    def _residual(self, kernel: Kernel, likelihood: Gaussian) -> Floats:
        """Return the targets less the mean, its coefficients estimated."""
        target = self._target()
        if self._H is None and self.jitter is not None:
            return target
        beta = self._solve(kernel, likelihood, target).beta  # which decides on jitter too
        if self._H is None:
            return target
        return np.asarray(target - self.mean.features(self.data.X) @ beta)

    def _pulled(
        self, kernel: Kernel, likelihood: Gaussian, target: Floats, rows: Indices
    ) -> _Pulled:
        problem = self._problem(kernel, likelihood, target, rows)
        solution, adjoints = evidence(problem)
        pulled = kernel.pullback(problem.X, None, adjoints.K, inputs=False).theta
        value = solution.log_evidence
        return _Pulled(value, adjoints.factor * pulled, adjoints.noise, adjoints.mean)

    def _sum(
        self, kernel: Kernel, likelihood: Gaussian, target: Floats
    ) -> tuple[float, Floats, Floats]:
        """Return the sum of log evidences, its gradient, and that in the mean's values (n, P)."""
        data = self.data
        parts = map_tiles(lambda rows: self._pulled(kernel, likelihood, target, rows), self.rows)
        noise, mean = np.empty(len(target)), np.empty(target.shape)
        for rows, part in zip(self.rows, parts, strict=True):
            noise[rows], mean[rows] = part.noise, part.mean
        dlikelihood = likelihood.pull_variances(noise, data.weights)
        if data.weights is not None:
            extra = likelihood.weight_constant_gradient(len(target), data.weights)
            dlikelihood = dlikelihood + target.shape[1] * extra
        dkernel = np.sum([part.theta for part in parts], axis=0)
        value = sum(part.value for part in parts) + self.constant(likelihood)
        return value, np.concatenate([dkernel, dlikelihood]), mean

    def _jitter_for(self, theta: Floats) -> float:
        kernel, likelihood = self.unpack(theta)
        jitter, self.jitter = self.jitter, None
        try:
            return self._solve(kernel, likelihood, self._target()).jitter
        finally:
            self.jitter = jitter

    # --- the function ---------------------------------------------------------------------------

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient; raises where a covariance cannot be factorised."""
        kernel, likelihood = self.unpack(theta)
        target = self._residual(kernel, likelihood)
        # the value is stationary in the coefficients, which may be held therefore
        value, gradient, _ = self._sum(kernel, likelihood, target)
        prior = np.concatenate([kernel.log_prior_gradient(), likelihood.log_prior_gradient()])
        return value + kernel.log_prior() + likelihood.log_prior(), gradient + prior

    def value(self, theta: Floats) -> float:
        """Return the value alone, in less than half the time; -inf where there is none."""
        kernel, likelihood = self.unpack(theta)
        try:
            value = self._solve(kernel, likelihood, self._target()).value
        except NotPositiveDefiniteError:
            return -np.inf
        value += self.constant(likelihood) + kernel.log_prior() + likelihood.log_prior()
        self._last_good = (theta, value)
        return value

    def fitted(self, theta: Floats) -> FittedCommittee:
        """Return the model at theta with its members; raises where there is none."""
        kernel, likelihood = self.unpack(theta)
        mean, scale = self.mean, self.data.scale
        beta, value, jitter = self._solve(kernel, likelihood, self._target())
        if self._H is not None:
            mean = mean.with_coefficients(beta * scale)
        target = self._target(mean)

        def member(rows: Indices) -> Posterior:
            return posterior(self._problem(kernel, likelihood, target, rows), mean, scale)[0]

        members = map_tiles(member, self.rows)
        value += self.constant(likelihood)
        return FittedCommittee(kernel, likelihood, mean, members, value, jitter)

    def log_evidence(self, theta: ArrayLike, gradient: bool = False) -> tuple[float, Floats | None]:
        """Return the sum of log evidences without hyperpriors, and its gradient if asked for.

        theta = [kernel, likelihood, mean]: coefficients of the mean are held at what is given.
        Those that are not known yet are estimated.
        """
        own, coefficients = np.split(np.asarray(theta, dtype=float), [self.theta.size])
        kernel, likelihood = self.unpack(own)
        mean = self.mean.with_theta(coefficients)
        held = mean.estimate is None or mean.coefficients is not None
        target = self._target(mean) if held else self._residual(kernel, likelihood)
        if not gradient:
            problems = (self._problem(kernel, likelihood, target, rows) for rows in self.rows)
            values = map_tiles(lambda problem: solve(problem).log_evidence, list(problems))
            return sum(values) + self.constant(likelihood), None
        value, slopes, dmean = self._sum(kernel, likelihood, target)
        if held and mean.theta.size:
            more = mean.pullback(self.data.X, dmean / self.data.scale)
            slopes = np.concatenate([slopes, more])
        return value, slopes

    def left_out(self) -> LeftOut:
        """Predict each row from all the others, at the start; of one member alone."""
        if len(self.rows) > 1:
            raise ValueError(
                f"a committee of {len(self.rows)} members has no leave-one-out in closed form; use "
                "cross-validation"
            )
        return Objective(self.kernel, self.likelihood, self.mean, self.data).left_out()

    def under(self, kernel: Kernel, likelihood: Any, theta: ArrayLike) -> CommitteeObjective:
        """Return the objective of another kernel and likelihood."""
        return CommitteeObjective(kernel, likelihood, self.mean, self.data, self.assignment)

    def __copy__(self) -> CommitteeObjective:
        """Return an objective with the same jitter."""
        model = self.kernel, self.likelihood, self.mean
        new = CommitteeObjective(*model, self.data, self.assignment, self.bounds)
        new.jitter, new._last_good = self.jitter, self._last_good
        return new
