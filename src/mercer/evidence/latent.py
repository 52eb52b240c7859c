"""The function of the flat parameter vector that a fit maximises under any likelihood.

As `objective`, which is for Gaussian noise, but on the engines that approximate the posterior of a
latent function: their evidence, or their bound on it, with the adjoints that they give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.evidence.directions import Directions
from mercer.evidence.engines import arrays_of, best_engine, engine_for, state_of
from mercer.evidence.guarded import Fitted, Guarded, LeftOut
from mercer.evidence.mean_start import begun_mean, mean_directions
from mercer.inference import LatentLeftOut, LatentProblem
from mercer.kernels import Kernel
from mercer.likelihoods import Softmax
from mercer.likelihoods.observed import observed_mean, observed_training_var
from mercer.means import Mean
from mercer.params import Parametrised
from mercer.posterior import Posterior

if TYPE_CHECKING:
    from mercer.inference.softmax import SoftmaxProblem

__all__ = ["LatentData", "LatentObjective"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LatentData:
    """The rows of a problem with a latent function, as the engines take them.

    X : inputs, n rows, those of weight 0 removed
    y : (n,) targets, counts, or labels -1 and 1; (n, C) distributions over classes for `Softmax`
    weights : (n,) powers of the likelihood, or None
    """

    X: Any
    y: Floats
    weights: Floats | None = None

    @property
    def Y(self) -> Floats:
        """The targets in columns, (n, P)."""
        return _columns(self.y)


class LatentObjective(Guarded):
    """log p(y | theta) + log p(theta) by an approximate engine, as a function of theta.

    theta holds the free parameters of the kernel, then those of the likelihood, then the
    coefficients of the mean where these are estimated. Each evaluation starts from what the one
    before has found.

    Parameters
    ----------
    kernel, likelihood, mean : the model at its start
        Coefficients of the mean that are to be found start from the data.
    data : LatentData
    inference : {"laplace", "ep", "vi", "bounds", "map"}
        The engine; `Softmax` has "laplace" and "map" alone. "map" has no evidence: it is searched
        by that of another engine (`judge`), or by its joint density
        (:func:`mercer.evidence.ascend`).
    bounds : array of shape (p, 2), optional
        The interval of each component of theta; the parts' own without it.
    """

    criterion = "evidence"

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Any,
        mean: Mean,
        data: LatentData,
        inference: str,
        bounds: Floats | None = None,
    ) -> None:
        self.engine = self._engine_for(likelihood, inference)
        if mean.estimate == "integrate":
            raise ValueError(
                f"the coefficients of {mean!r} can be integrated out under Gaussian noise alone; "
                "give the mean estimate='ml', by which they are found with the hyperparameters"
            )
        #: Plausible latent values, by the likelihood's `initial`, (n, P).
        self.latent = _columns(likelihood.initial(data.y))
        mean = begun_mean(mean, data.X, self.latent, data.weights)
        others = {"likelihood": likelihood, "mean": mean, **self._further()}
        super().__init__(kernel, others, data.X, bounds)
        self.likelihood, self.mean = likelihood, mean
        self.data, self.inference = data, inference
        #: What the engine starts from; the state of its last solution.
        self.state: Any = None
        # The best value, where it was found, and the state there: the search's last point may be
        # another, and a density that is not log-concave has several modes.
        self._best: tuple[float, Floats, Any] | None = None

    def _engine_for(self, likelihood: Any, inference: str) -> Any:
        """Return the engine's module, or say why there is none."""
        return engine_for(likelihood, inference)

    def _further(self) -> dict[str, Parametrised]:
        """Return the parts that come after the mean."""
        return {}

    @property
    def directions(self) -> Directions:
        """The steps that suit the search: those of the mean's coefficients are mixed."""
        mixed = mean_directions(self.mean, self.data.X, self.latent)
        return Directions(self.theta.size, mixed, self._before_mean)

    @property
    def _before_mean(self) -> int:
        """The number of components of theta before those of the mean."""
        return int(self.kernel.theta.size + self.likelihood.theta.size)

    def draw_theta(self, rng: np.random.Generator) -> Floats:
        """Return a random start; the mean begins as it is, since the data say where that is."""
        drawn = [part.draw_theta(rng) for part in (self.kernel, self.likelihood)]
        return np.concatenate([*drawn, self.theta[self._before_mean :]])

    def _forget(self) -> None:
        super()._forget()
        self.state = self._best = None

    def unpack(self, theta: ArrayLike) -> tuple[Kernel, Any, Mean]:
        """Return the kernel, the likelihood and the mean with these parameters."""
        kernel, likelihood, mean = self._with(theta)[:3]
        return kernel, likelihood, mean

    def problem(
        self, kernel: Kernel, likelihood: Any, mean: Mean
    ) -> LatentProblem | SoftmaxProblem:
        """Return the engine's problem."""
        data = self.data
        prior = mean(data.X, self.latent.shape[1])
        if isinstance(likelihood, Softmax):
            from mercer.inference.softmax import SoftmaxProblem

            return SoftmaxProblem(kernel, data.X, data.y, prior, data.weights, self.jitter)
        return LatentProblem(
            kernel, data.X, data.y, likelihood, prior[:, 0], data.weights, self.jitter
        )

    # --- the value ----------------------------------------------------------------------------

    def log_evidence(self, theta: ArrayLike, gradient: bool = False) -> tuple[float, Floats | None]:
        """Return log p(y | theta), or the bound on it, without hyperpriors; and its gradient."""
        parts = self._with(theta)
        return self._slopes(parts) if gradient else (self._height(parts), None)

    def _height(self, parts: list[Any]) -> float:
        """Return the log evidence of these parts."""
        self._require_evidence()
        solution = self.engine.solve(self.problem(*parts), self.state)
        return float(self._kept(solution).log_evidence)

    def _slopes(self, parts: list[Any]) -> tuple[float, Floats]:
        """Return the log evidence of these parts, and its derivatives in theta."""
        self._require_evidence()
        solution, adjoints = self._adjoints(self.problem(*parts))
        return float(self._kept(solution).log_evidence), self._pull(parts, adjoints)

    def _adjoints(self, problem: Any) -> tuple[Any, Any]:
        """Return the engine's solution, and the adjoints of its evidence."""
        solution, adjoints = self.engine.evidence(problem, self.state)
        return solution, adjoints

    def _require_evidence(self) -> None:
        if self.inference == "map":
            raise ValueError(
                "inference='map' finds the mode of the latent function, which has no evidence; "
                "other engines have one"
            )

    def _kept(self, solution: Any) -> Any:
        """Return the solution, having kept what the next evaluation starts from."""
        if not np.isfinite(solution.log_evidence):
            raise NotPositiveDefiniteError(
                f"the log evidence is no finite number, {solution.log_evidence}"
            )
        self.state = solution.state
        # Decided by the first evaluation and kept, so that the objective stays continuous.
        if self.jitter is None:
            self.jitter = solution.jitter
        return solution

    def _pull(self, parts: list[Any], adjoints: Any) -> Floats:
        """Chain the engine's adjoints to theta."""
        kernel = (
            adjoints.factor * parts[0].pullback(self.data.X, None, adjoints.K, inputs=False).theta
        )
        return np.concatenate([kernel, *self._pull_rows(parts, adjoints)])

    def _pull_rows(self, parts: list[Any], adjoints: Any) -> tuple[Floats, Floats]:
        """Chain the adjoints that a row has by itself, to the likelihood and to the mean."""
        _, likelihood, mean = parts[:3]
        own = adjoints.likelihood if likelihood.theta.size else np.empty(0)
        return own, mean.pullback(self.data.X, _columns(adjoints.mean))

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient; raises where there is none."""
        parts = self._with(theta)
        value, gradient = self._slopes(parts)
        prior = np.concatenate([part.log_prior_gradient() for part in parts])
        value += sum(part.log_prior() for part in parts)
        self._remember(theta, value)
        return value, gradient + prior

    def value(self, theta: Floats) -> float:
        """Return the value alone, minus infinity where there is none."""
        parts = self._with(theta)
        try:
            value = self._height(parts)
        except NotPositiveDefiniteError:
            return -np.inf
        value += sum(float(part.log_prior()) for part in parts)
        self._last_good = (theta, value)
        self._remember(theta, value)
        return value

    def _remember(self, theta: Floats, value: float) -> None:
        if self._best is None or value > self._best[0]:
            self._best = value, np.array(theta), self.state

    def _jitter_for(self, theta: Floats) -> float:
        problem = replace(self.problem(*self._with(theta)), jitter=None)
        return float(self.engine.solve(problem, self.state).jitter)

    # --- what comes of it ---------------------------------------------------------------------

    def posterior(self, theta: ArrayLike) -> tuple[Posterior, Any]:
        """Return the posterior process at theta, and the engine's solution."""
        parts = self._with(theta)
        if self._best is not None and np.array_equal(theta, self._best[1]):
            self.state = self._best[2]
        # Of the engines for one function that for "map" is another; a softmax has one for both.
        where = {"at_mode": self.inference == "map"} if isinstance(parts[1], Softmax) else {}
        problem = self.problem(*parts)
        posterior, solution = self.engine.posterior(problem, parts[2], self.state, **where)
        self.state = solution.state
        return posterior, solution

    def judge(self) -> Self:
        """Return the objective whose evidence can be searched.

        This one, but for "map": then that of the engine which would be taken by itself.
        """
        if self.inference != "map":
            return self
        model = self.kernel, self.likelihood, self.mean
        return type(self)(*model, self.data, best_engine(self.likelihood), self.bounds)

    def fitted(self, theta: Floats) -> Fitted:
        """Return the model at theta with its posterior; raises where there is none."""
        posterior, solution = self.posterior(theta)
        value = np.nan if self.inference == "map" else float(solution.log_evidence)
        return Fitted(*self.unpack(theta), posterior, value, solution.jitter, solution)

    def leave_one_out(self, theta: ArrayLike) -> LatentLeftOut:
        """Predict each row from all the others, in closed form, at theta."""
        if not hasattr(self.engine, "leave_one_out"):
            raise ValueError(
                f"inference={self.inference!r} with {type(self.likelihood).__name__} has no "
                "leave-one-out in closed form; 'laplace', 'ep' and 'vi' have it for a likelihood "
                "of one latent function"
            )
        problem = self.problem(*self._with(theta))
        left: LatentLeftOut = self.engine.leave_one_out(problem, self.state)[1]
        return left

    def left_out(self) -> LeftOut:
        """Predict each row from all the others, in closed form, at the start."""
        left = self.leave_one_out(self.theta)
        mean = observed_mean(self.likelihood, left.mean, left.variance)
        std = np.sqrt(observed_training_var(self.likelihood, left.mean, left.variance))
        return LeftOut(_columns(mean), _columns(std), _columns(left.log_density))

    @property
    def start(self) -> list[Floats]:
        """What the engine starts from, as arrays that can be kept; none at first."""
        return arrays_of(self.state)

    @start.setter
    def start(self, arrays: Sequence[ArrayLike]) -> None:
        self.state = state_of(self.inference, arrays)

    def under(self, kernel: Kernel, likelihood: Any, theta: ArrayLike) -> LatentObjective:
        """Return the objective of another kernel and likelihood, the mean as it is at theta."""
        mean = self.unpack(theta)[2]
        return LatentObjective(kernel, likelihood, mean, self.data, self.inference)

    def __copy__(self) -> Self:
        """Return an objective with the same jitter and start."""
        new = self._again()
        new.jitter, new._last_good, new.state = self.jitter, self._last_good, self.state
        return new

    def _again(self) -> Self:
        """Return an objective that was made as this one."""
        model = self.kernel, self.likelihood, self.mean
        return type(self)(*model, self.data, self.inference, self.bounds)


def _columns(values: ArrayLike) -> Floats:
    """Return values of shape (n,) or (n, P) as (n, P)."""
    values = np.asarray(values, dtype=float)
    return values.reshape(len(values), -1)
