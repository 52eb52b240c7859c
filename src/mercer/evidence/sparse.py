"""The function of the flat parameter vector that a sparse fit maximises.

As `objective`, on the engine for inducing variables: theta goes on with the inducing inputs where
these are learned together with the hyperparameters (UV 9).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.evidence.guarded import Fitted, Guarded, LeftOut
from mercer.evidence.objective import Data
from mercer.inference._approximations import Approximation
from mercer.inference._sparse_loo import leave_one_out
from mercer.inference.sparse import (
    SparseAdjoints,
    SparseProblem,
    SparseSolution,
    evidence,
    posterior,
    solve,
)
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian
from mercer.means import Mean
from mercer.params import Parameter, Parametrised

__all__ = ["InducingInputs", "SparseObjective"]

Floats = NDArray[np.float64]

# In nats.
_LEAST_GAIN = 0.1


class InducingInputs(Parametrised):
    """Inducing inputs as a part of a model.

    Parameters
    ----------
    points : array of shape (m, d), or what the kernel takes
        Where they are.
    widths : array of shape (d,), optional
        Units in which a search moves them, for each column: its standard deviation. Without it
        they stay where they are.
    """

    def __init__(self, points: Any, widths: ArrayLike | None = None) -> None:
        self._points = np.asarray(points)
        self._widths = None if widths is None else np.asarray(widths, dtype=float)
        if self._widths is None:
            self._set()
            return
        scaled = Parameter((self._points / self._widths).ravel(), transform="identity")
        self._set(position=scaled)

    @property
    def learned(self) -> bool:
        """Whether they are part of theta."""
        return self._widths is not None

    @property
    def points(self) -> Any:
        """Where they are, (m, d)."""
        if self._widths is None:
            return self._points
        position = self._parameters["position"].value
        return np.reshape(position, self._points.shape) * self._widths

    @property
    def least_gain(self) -> float:
        """What ten iterations must gain for a search to go on, if they are part of theta.

        They can be moved for hundreds of iterations to next to no avail.
        """
        return _LEAST_GAIN if self.learned else 0.0

    def pull(self, gradient: Floats | None) -> Floats:
        """Chain dL/dZ, (m, d), to dL/dtheta."""
        if self._widths is None or gradient is None:
            return np.empty(0)
        return np.ravel(gradient * self._widths)


class SparseObjective(Guarded):
    """log q(Y | theta, Z) + log p(theta) under a sparse approximation.

    Parameters
    ----------
    kernel, likelihood, mean : the model at its start
    data : Data
    inducing : InducingInputs
    kind : Approximation
    groups : (n,) array, optional
        The blocks that rows belong to, for "pitc" and "pic"; see `SparseProblem`.
    bounds : array of shape (p, 2), optional
        The interval of each component of theta; the parts' own without it.
    """

    data: Data
    inference = "sparse"
    criterion = "evidence"

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Gaussian,
        mean: Mean,
        data: Data,
        inducing: InducingInputs,
        kind: Approximation,
        groups: NDArray[np.intp] | None = None,
        bounds: Floats | None = None,
    ) -> None:
        if likelihood.covariance is not None:
            raise ValueError(
                "a full noise covariance couples the rows, which only exact inference can hold; "
                "use GPRegressor"
            )
        others = {"likelihood": likelihood, "inducing": inducing}
        super().__init__(kernel, others, data.X, bounds)
        self.likelihood, self.mean, self.inducing = likelihood, mean, inducing
        self.data, self.kind, self.groups = data, kind, groups
        self.latent = data.Y / data.scale

    def unpack(self, theta: ArrayLike) -> tuple[Kernel, Gaussian, InducingInputs]:
        """Return the kernel, the likelihood and the inducing inputs with these parameters."""
        kernel, likelihood, inducing = self._with(theta)
        return kernel, likelihood, inducing

    @property
    def least_gain(self) -> float:
        """What ten iterations must gain for a search to go on."""
        return self.inducing.least_gain

    def problem(
        self,
        kernel: Kernel,
        likelihood: Gaussian,
        inducing: InducingInputs,
        mean: Mean | None = None,
    ) -> SparseProblem:
        """Return the engine's problem; with `mean` given its coefficients are held."""
        data = self.data
        n, outputs = data.Y.shape
        model = self.mean if mean is None else mean
        estimated = model.estimate is not None
        fixed = model.fixed_part(data.X, outputs) if estimated else model(data.X, outputs)
        beta = None
        if estimated and mean is not None:
            assert mean.coefficients is not None
            beta = np.broadcast_to(
                mean.coefficients / data.scale, (len(mean.coefficients), outputs)
            )
        return SparseProblem(
            kernel,
            data.X,
            (data.Y - fixed) / data.scale,
            likelihood.variances(n),
            inducing.points,
            self.kind,
            model.features(data.X) if estimated else None,
            self.mean.estimate == "integrate" and mean is None,
            beta,
            data.weights,
            self.groups,
            self.jitter,
        )

    def constant(self) -> float:
        """Return what the engine's evidence lacks: the outputs' units."""
        counted = self.data.total_weight
        if self.mean.estimate == "integrate":
            counted -= self.mean.features(self.data.X[:1]).shape[1]
        return -counted * float(np.sum(np.log(self.data.scale)))

    def _jitter_for(self, theta: Floats) -> float:
        jitter, self.jitter = self.jitter, None
        try:
            return solve(self.problem(*self.unpack(theta))).jitter
        finally:
            self.jitter = jitter

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient; raises where K_uu cannot be factorised."""
        parts = self.unpack(theta)
        solution, adjoints = evidence(self.problem(*parts), inputs=self.inducing.learned)
        prior = np.concatenate([part.log_prior_gradient() for part in parts])
        return self._complete(solution, parts), self._pull(parts, adjoints) + prior

    def value(self, theta: Floats) -> float:
        """Return the value alone, in about half the time; -inf where there is none."""
        parts = self.unpack(theta)
        try:
            value = self._complete(solve(self.problem(*parts)), parts)
        except NotPositiveDefiniteError:
            return -np.inf
        self._last_good = (theta, value)
        return value

    def _complete(self, solution: SparseSolution, parts: tuple[Any, ...]) -> float:
        if self.jitter is None:
            self.jitter = solution.jitter
        priors = sum(float(part.log_prior()) for part in parts)
        return solution.log_evidence + self.constant() + priors

    def _pull(self, parts: tuple[Any, ...], adjoints: SparseAdjoints) -> Floats:
        _, likelihood, inducing = parts
        dlikelihood = self._pull_noise(likelihood, adjoints)
        return np.concatenate([adjoints.theta, dlikelihood, inducing.pull(adjoints.Z)])

    @staticmethod
    def _pull_noise(likelihood: Gaussian, adjoints: SparseAdjoints) -> Floats:
        if not likelihood.theta.size:  # variances that are known
            return np.empty(0)
        return likelihood.pull_variances([adjoints.noise / likelihood.new_variance])

    def fitted(self, theta: Floats) -> Fitted:
        """Return the model at theta with its posterior; raises where there is none."""
        parts = self.unpack(theta)
        process, solution = posterior(self.problem(*parts), self.mean, self.data.scale)
        mean = self.mean if self.mean.estimate == "integrate" else process.mean_function
        value = solution.log_evidence + self.constant()
        return Fitted(parts[0], parts[1], mean, process, value, solution.jitter, solution)

    def log_evidence(self, theta: ArrayLike, gradient: bool = False) -> tuple[float, Floats | None]:
        """Return log q(Y | theta, Z) without hyperpriors, and its gradient if asked for.

        theta = [kernel, likelihood, mean]: inducing inputs stay where they are, and coefficients of
        the mean are held at what is given, unless they are integrated out.
        """
        sizes = self.kernel.theta.size, self.likelihood.theta.size
        own, more, coefficients = np.split(np.asarray(theta, dtype=float), np.cumsum(sizes))
        kernel, likelihood = self.kernel.with_theta(own), self.likelihood.with_theta(more)
        mean = self.mean.with_theta(coefficients)
        held = mean.estimate is None or (mean.estimate == "ml" and mean.coefficients is not None)
        problem = self.problem(kernel, likelihood, self.inducing, mean if held else None)
        if not gradient:
            return solve(problem).log_evidence + self.constant(), None
        solution, adjoints = evidence(problem)
        parts = [adjoints.theta, self._pull_noise(likelihood, adjoints)]
        if held and mean.theta.size:
            beta = adjoints.beta / self.data.scale
            assert mean.coefficients is not None
            several = mean.coefficients.shape[1] > 1
            parts.append(np.ravel(beta if several else beta.sum(axis=1)))
        return solution.log_evidence + self.constant(), np.concatenate(parts)

    def left_out(self) -> LeftOut:
        """Predict each row from all the others, in closed form, at the start: O(n m^2)."""
        if self.kind.training == "blocks":
            raise ValueError(
                f"approximation={self.kind.name!r} joins the rows of a block, so that it has no "
                "leave-one-out in closed form ('auto' takes 'pic' for many rows); use "
                "approximation='vfe' or 'fitc', or cross-validation"
            )
        data = self.data
        problem = self.problem(self.kernel, self.likelihood, self.inducing)
        left = leave_one_out(problem)
        std = np.sqrt(left.variance)[:, None] * data.scale
        residual = left.residual * data.scale
        density = -0.5 * (residual / std) ** 2 - np.log(std) - 0.5 * np.log(2.0 * np.pi)
        return LeftOut(data.Y - residual, std, density)

    def under(self, kernel: Kernel, likelihood: Any, theta: ArrayLike) -> SparseObjective:
        """Return the objective of another kernel and likelihood, inducing inputs held."""
        held = InducingInputs(self.unpack(theta)[2].points)
        model = kernel, likelihood, self.mean
        return SparseObjective(*model, self.data, held, self.kind, self.groups)

    def __copy__(self) -> SparseObjective:
        """Return an objective with the same jitter."""
        new = SparseObjective(
            self.kernel,
            self.likelihood,
            self.mean,
            self.data,
            self.inducing,
            self.kind,
            self.groups,
            self.bounds,
        )
        new.jitter, new._last_good = self.jitter, self._last_good
        return new
