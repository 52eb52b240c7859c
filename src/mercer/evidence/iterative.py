"""The function of the flat parameter vector that an iterative fit maximises.

As `objective`, on the engine of conjugate gradients. Value and gradient are two estimates, of the
log evidence and of its derivatives. Probes and pivots are held during a search, so that errors
change little from point to point; but the one is not the derivative of the other, and at a low rank
they differ by as much as the probes leave open. A search may end where a step along the gradient
gains nothing in the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.evidence.guarded import Fitted, LeftOut
from mercer.evidence.objective import Data, Objective
from mercer.inference.iterative import (
    IterativeAdjoints,
    IterativeProblem,
    IterativeSolution,
    Settings,
    evidence,
    posterior,
    solve,
)
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian
from mercer.means import Mean

__all__ = ["IterativeObjective"]

Floats = NDArray[np.float64]


class IterativeObjective(Objective):
    """log p(Y | theta) + log p(theta), the former estimated, as a function of theta.

    Parameters
    ----------
    kernel, likelihood, mean : the model at its start
    data : Data
    settings : Settings
    seed : int
        For pivots and probes.
    bounds : array of shape (p, 2), optional
        The interval of each component; the kernel's and likelihood's own without it.
    """

    inference = "iterative"

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Gaussian,
        mean: Mean,
        data: Data,
        settings: Settings,
        seed: int,
        bounds: Floats | None = None,
    ) -> None:
        if likelihood.covariance is not None:
            raise ValueError(
                "a full noise covariance couples the rows, which only exact inference can hold; "
                "use inference='exact'"
            )
        super().__init__(kernel, likelihood, mean, data, bounds=bounds)
        self.settings, self.seed = settings, seed
        # The pivots of the first evaluation, once it has estimated anything.
        self.pivots: NDArray[np.intp] | None = None
        self.jitter = 0.0
        #: Told of the steps of the solve that a fit ends with.
        self.progress: Callable[[str], None] | None = None

    @property
    def is_estimate(self) -> bool:
        """Whether probes have had a part in the last evaluation."""
        return self.pivots is not None

    def estimated(
        self, kernel: Kernel, likelihood: Gaussian, mean: Mean | None = None
    ) -> IterativeProblem:
        """Return the engine's problem; with `mean` given its coefficients are held."""
        dense = self.problem(kernel, likelihood, mean)
        return IterativeProblem(
            kernel,
            dense.X,
            dense.Y,
            dense.noise,
            dense.H,
            dense.integrate,
            seed=self.seed,
            settings=self.settings,
            pivots=self.pivots,
        )

    def _jitter_for(self, theta: Floats) -> float:
        return 0.0  # nothing is factorised that could need any

    def _forget(self) -> None:
        self.pivots = None

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient; raises where the kernel is no covariance."""
        kernel, likelihood = self.unpack(theta)
        problem = self.estimated(kernel, likelihood)
        solution, adjoints = evidence(problem, self._memory())
        prior = np.concatenate([kernel.log_prior_gradient(), likelihood.log_prior_gradient()])
        gradient = self._chain(likelihood, adjoints) + prior
        return self._completed(solution, kernel, likelihood), gradient

    def value(self, theta: Floats) -> float:
        """Return the value alone; -inf where the kernel is no covariance."""
        kernel, likelihood = self.unpack(theta)
        try:
            solution = solve(self.estimated(kernel, likelihood), self._memory())
        except NotPositiveDefiniteError:
            return -np.inf
        value = self._completed(solution, kernel, likelihood)
        self._last_good = (theta, value)
        return value

    def _memory(self) -> Floats | None:
        """Return the n x n array for K, if that is to be stored."""
        return self._work().T if self.settings.stored else None

    def _completed(
        self, solution: IterativeSolution, kernel: Kernel, likelihood: Gaussian
    ) -> float:
        """Add constants and hyperpriors to the engine's value, and keep its pivots."""
        if self.pivots is None and not solution.is_exact:
            self.pivots = solution.pivots
        value = solution.log_evidence + self.constant_of_search(likelihood)
        return value + kernel.log_prior() + likelihood.log_prior()

    def _chain(self, likelihood: Gaussian, adjoints: IterativeAdjoints) -> Floats:
        """Chain the engine's derivatives to theta, the weights' constant included."""
        if not likelihood.theta.size:  # variances that are known
            return adjoints.theta
        data = self.data
        dlikelihood = likelihood.pull_variances([adjoints.log_noise / likelihood.new_variance])
        if data.weights is not None:
            n, outputs = data.Y.shape
            extra = likelihood.weight_constant_gradient(n, data.weights)
            dlikelihood = dlikelihood + outputs * extra
        return np.concatenate([adjoints.theta, dlikelihood])

    def fitted(self, theta: Floats) -> Fitted:
        """Return the model at theta with its posterior, on pivots of its own."""
        kernel, likelihood = self.unpack(theta)
        self._forget()
        problem = self.estimated(kernel, likelihood)
        given = problem, self.mean, self.data.scale, self._memory(), self.progress
        process, solution = posterior(*given)
        self.release()
        mean = self.mean if self.mean.estimate == "integrate" else process.mean_function
        value = solution.log_evidence + self.constant(likelihood)
        return Fitted(kernel, likelihood, mean, process, value, 0.0, solution)

    def left_out(self) -> LeftOut:
        """Refuse: it takes the diagonal of an inverse that is never made."""
        raise ValueError(
            "inference='iterative' has no leave-one-out in closed form, since that takes the "
            "diagonal of the inverse covariance; use inference='exact', or cross-validation"
        )

    def under(self, kernel: Kernel, likelihood: Any, theta: ArrayLike) -> IterativeObjective:
        """Return the objective of another kernel and likelihood."""
        model = kernel, likelihood, self.mean
        return IterativeObjective(*model, self.data, self.settings, self.seed)

    def warn_of_outputs(self, fit: Fitted) -> None:
        """Say nothing: leave-one-out, by which outputs are held against each other, is not had."""

    def __copy__(self) -> IterativeObjective:
        """Return an objective with the same pivots and a workspace of its own."""
        model = self.kernel, self.likelihood, self.mean
        new = IterativeObjective(*model, self.data, self.settings, self.seed, self.bounds)
        new.pivots, new._last_good = self.pivots, self._last_good
        return new

    def log_evidence(self, theta: ArrayLike, gradient: bool = False) -> tuple[float, Floats | None]:
        """Return the estimate of log p(Y | theta), without hyperpriors, and its gradient.

        theta = [kernel, likelihood, mean], as `Objective.log_evidence` takes it.
        """
        own, coefficients = np.split(np.asarray(theta, dtype=float), [self.theta.size])
        kernel, likelihood = self.unpack(own)
        mean = self.mean.with_theta(coefficients)
        held = mean.estimate is None or (mean.estimate == "ml" and mean.coefficients is not None)
        problem = self.estimated(kernel, likelihood, mean if held else None)
        constant = self.constant(likelihood)
        if not gradient:
            return solve(problem, self._memory()).log_evidence + constant, None
        solution, adjoints = evidence(problem, self._memory())
        parts = [self._chain(likelihood, adjoints)]
        if held and mean.theta.size:
            parts.append(mean.pullback(self.data.X, adjoints.mean / self.data.scale))
        return solution.log_evidence + constant, np.concatenate(parts)
