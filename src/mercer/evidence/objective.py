"""The function of the flat parameter vector that a fit maximises.

It chains engine -> kernel pullback -> transforms -> hyperpriors. The engine gives the derivatives
in K, in the noise variances and in the mean; the kernel and the likelihood pull them back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.evidence.calibration import warn_if_miscalibrated
from mercer.evidence.guarded import Fitted, Guarded, LeftOut
from mercer.inference import leave_one_out, log_density, loo
from mercer.inference.exact import Adjoints, ExactProblem, Solution, evidence, posterior, solve
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian
from mercer.likelihoods.normal import log_normal
from mercer.means import Mean

__all__ = ["CRITERIA", "Data", "Objective"]

Floats = NDArray[np.float64]

CRITERIA = ("evidence", "loo")


@dataclass(frozen=True)
class Data:
    """The rows of a regression problem, as the engines take them.

    X : inputs, n rows, those of weight 0 removed
    Y : (n, P) targets in the user's units
    weights : (n,) powers of the likelihood, or None
    scale : (P,) the units in which the kernel sees the outputs
    """

    X: Any
    Y: Floats
    weights: Floats | None
    scale: Floats

    @property
    def total_weight(self) -> float:
        """The number of rows, counted with their weights."""
        return float(len(self.Y) if self.weights is None else np.sum(self.weights))


class Objective(Guarded):
    """log p(Y | theta) + log p(theta), or the leave-one-out density, as a function of theta.

    theta holds the free parameters of the kernel, then those of the likelihood. Coefficients of
    the mean are estimated or integrated out inside each evaluation and are not part of it.

    Parameters
    ----------
    kernel, likelihood, mean : the model at its start
    data : Data
    criterion : {"evidence", "loo"}
    bounds : array of shape (p, 2), optional
        The interval of each component; the kernel's and likelihood's own without it.
    """

    data: Data
    inference = "exact"

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Gaussian,
        mean: Mean,
        data: Data,
        criterion: str = "evidence",
        bounds: Floats | None = None,
    ) -> None:
        if criterion not in CRITERIA:
            raise ValueError(f"the criterion must be one of {CRITERIA}, got {criterion!r}")
        super().__init__(kernel, {"likelihood": likelihood}, data.X, bounds)
        self.likelihood, self.mean = likelihood, mean
        self.data, self.criterion = data, criterion
        self.latent = np.asarray(data.Y / data.scale)
        self._workspace: Floats | None = None

    def unpack(self, theta: ArrayLike) -> tuple[Kernel, Gaussian]:
        """Return the kernel and the likelihood with these parameters."""
        kernel, likelihood = self._with(theta)
        return kernel, likelihood

    def problem(
        self, kernel: Kernel, likelihood: Gaussian, mean: Mean | None = None
    ) -> ExactProblem:
        """Return the engine's problem; with `mean` given its coefficients are held."""
        data = self.data
        n, outputs = data.Y.shape
        covariance = likelihood.covariance
        noise = likelihood.variances(n, data.weights) if covariance is None else covariance
        if mean is not None or self.mean.estimate is None:
            fixed = (self.mean if mean is None else mean)(data.X, outputs)
            return ExactProblem(
                kernel, data.X, (data.Y - fixed) / data.scale, noise, jitter=self.jitter
            )
        return ExactProblem(
            kernel,
            data.X,
            (data.Y - self.mean.fixed_part(data.X, outputs)) / data.scale,
            noise,
            self.mean.features(data.X),
            self.mean.estimate == "integrate",
            self.jitter,
        )

    def constant(self, likelihood: Gaussian) -> float:
        """Return what the engine's evidence lacks: weights' normalisers and the outputs' units."""
        data = self.data
        n, outputs = data.Y.shape
        # Integrated coefficients have a flat prior in the user's units too, and take r rows each.
        counted = data.total_weight
        if self.mean.estimate == "integrate":
            counted -= self.mean.features(data.X[:1]).shape[1]
        units = counted * float(np.sum(np.log(data.scale)))
        if data.weights is None:
            return -units
        return float(outputs * likelihood.weight_constant(n, data.weights) - units)

    def constant_of_search(self, likelihood: Gaussian) -> float:
        """Return the part of `constant` that values of a search have.

        Beside weights and noise that is fixed it is one number, and left out: the weights may be
        inverse variances, in small units 1e16 together, beside which a search would have no digits.
        """
        is_fixed = self.data.weights is not None and not likelihood.theta.size
        return 0.0 if is_fixed else self.constant(likelihood)

    def _jitter_for(self, theta: Floats) -> float:
        problem = replace(self.problem(*self.unpack(theta)), jitter=None)
        return solve(problem, self._workspace).factor.jitter

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient; raises where Q cannot be factorised."""
        kernel, likelihood = self.unpack(theta)
        problem = self.problem(kernel, likelihood)
        if self.criterion == "evidence":
            solution, adjoints = evidence(problem, self._work())
            value = solution.log_evidence
        else:
            solution, value, adjoints = loo(problem, self.data.weights, self._work())
        gradient = self._pull(kernel, likelihood, adjoints, self.criterion == "evidence")
        prior = np.concatenate([kernel.log_prior_gradient(), likelihood.log_prior_gradient()])
        return self._complete(value, kernel, likelihood, solution), gradient + prior

    def value(self, theta: Floats) -> float:
        """Return the value alone, in about half the time; -inf where Q cannot be factorised."""
        kernel, likelihood = self.unpack(theta)
        problem = self.problem(kernel, likelihood)
        try:
            if self.criterion == "evidence":
                solution = solve(problem, self._work())
                value = solution.log_evidence
            else:
                solution, left = leave_one_out(problem, self.data.weights, self._work())
                value = log_density(left, self.data.weights)
        except NotPositiveDefiniteError:
            return -np.inf
        value = self._complete(value, kernel, likelihood, solution)
        self._last_good = (theta, value)
        return value

    def _work(self) -> Floats:
        """Return the n x n workspace."""
        if self._workspace is None:
            n = len(self.data.Y)
            self._workspace = np.empty((n, n), order="F")
        return self._workspace

    def _complete(
        self, value: float, kernel: Kernel, likelihood: Gaussian, solution: Solution
    ) -> float:
        """Add constants and hyperpriors to the engine's value, and keep the jitter it took."""
        # Decided by the first evaluation and kept, so that the objective stays continuous.
        if self.jitter is None:
            self.jitter = solution.factor.jitter
        if self.criterion == "evidence":
            value += self.constant_of_search(likelihood)
        else:
            value -= self.data.total_weight * float(np.sum(np.log(self.data.scale)))
        return value + kernel.log_prior() + likelihood.log_prior()

    def _pull(
        self, kernel: Kernel, likelihood: Gaussian, adjoints: Adjoints, of_evidence: bool = True
    ) -> Floats:
        """Chain the engine's adjoints to theta; the evidence has the weights' constant too."""
        data = self.data
        pulled = kernel.pullback(data.X, None, adjoints.K, inputs=False).theta
        dkernel = adjoints.factor * pulled
        dlikelihood = likelihood.pull_variances(adjoints.noise, data.weights)
        if of_evidence and data.weights is not None:
            n, outputs = data.Y.shape
            extra = likelihood.weight_constant_gradient(n, data.weights)
            dlikelihood = dlikelihood + outputs * extra
        return np.concatenate([dkernel, dlikelihood])

    def fitted(self, theta: Floats) -> Fitted:
        """Return the model at theta with its posterior; raises where Q cannot be factorised."""
        kernel, likelihood = self.unpack(theta)
        problem = self.problem(kernel, likelihood)
        process, solution = posterior(problem, self.mean, self.data.scale)
        # integrated coefficients are part of the process, not of its mean
        mean = self.mean if self.mean.estimate == "integrate" else process.mean_function
        value = solution.log_evidence + self.constant(likelihood)
        return Fitted(kernel, likelihood, mean, process, value, solution.factor.jitter, solution)

    def left_out(self) -> LeftOut:
        """Predict each row from all the others, in closed form, at the start."""
        data = self.data
        _, left = leave_one_out(self.problem(self.kernel, self.likelihood), data.weights)
        residual = left.residual * data.scale
        std = np.sqrt(left.variance)[:, None] * data.scale
        return LeftOut(data.Y - residual, std, log_normal(residual, std**2))

    def under(self, kernel: Kernel, likelihood: Any, theta: ArrayLike) -> Objective:
        """Return the objective of another kernel and likelihood."""
        return Objective(kernel, likelihood, self.mean, self.data, self.criterion)

    def warn_of_outputs(self, fit: Fitted) -> None:
        """Warn of outputs that do not go together."""
        if self.data.Y.shape[1] > 1:
            problem = self.problem(fit.kernel, fit.likelihood)
            warn_if_miscalibrated(problem, fit.solution, self.data.weights)

    def __copy__(self) -> Objective:
        """Return an objective with the same jitter and a workspace of its own."""
        new = Objective(
            self.kernel, self.likelihood, self.mean, self.data, self.criterion, self.bounds
        )
        new.jitter, new._last_good = self.jitter, self._last_good
        return new

    def release(self) -> None:
        """Give back the n x n workspace."""
        self._workspace = None

    def log_evidence(self, theta: ArrayLike, gradient: bool = False) -> tuple[float, Floats | None]:
        """Return log p(Y | theta) without hyperpriors, and its gradient if asked for.

        theta = [kernel, likelihood, mean]: coefficients of the mean are held at what is given,
        unless they are integrated out. Those that are not known yet are estimated.
        """
        own, coefficients = np.split(np.asarray(theta, dtype=float), [self.theta.size])
        kernel, likelihood = self.unpack(own)
        mean = self.mean.with_theta(coefficients)
        held = mean.estimate is None or (mean.estimate == "ml" and mean.coefficients is not None)
        problem = self.problem(kernel, likelihood, mean if held else None)
        constant = self.constant(likelihood)
        if not gradient:
            return solve(problem).log_evidence + constant, None
        solution, adjoints = evidence(problem)
        parts = [self._pull(kernel, likelihood, adjoints)]
        if held and mean.theta.size:
            parts.append(mean.pullback(self.data.X, adjoints.mean / self.data.scale))
        return solution.log_evidence + constant, np.concatenate(parts)
