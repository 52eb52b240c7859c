"""The function of the flat parameter vector that a sparse fit maximises under any likelihood.

As `latent`, on the engines for inducing variables: theta goes on with the inducing inputs where
these are learned together with the hyperparameters (UV 9).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.evidence.engines import engine_for
from mercer.evidence.latent import LatentData, LatentObjective
from mercer.evidence.sparse import InducingInputs
from mercer.inference._approximations import Approximation
from mercer.inference._sparse_latent import SparseLatentProblem, require_prior
from mercer.kernels import Kernel
from mercer.means import Mean
from mercer.params import Parametrised

__all__ = ["SparseLatentObjective"]

Floats = NDArray[np.float64]


class SparseLatentObjective(LatentObjective):
    """log q(y | theta, Z) + log p(theta) by an approximate engine under a sparse prior.

    theta holds the free parameters of the kernel, then those of the likelihood, then the
    coefficients of the mean where these are estimated, then the inducing inputs where these are
    learned. Each evaluation starts from what the one before has found: O(n m^2) time a step of the
    engine, O(n m) memory.

    Parameters
    ----------
    kernel, likelihood, mean : the model at its start
        Coefficients of the mean that are to be found start from the data.
    data : LatentData
    inference : {"laplace", "ep", "bounds"}
        The engine.
    inducing : InducingInputs
    kind : Approximation
        "sor", "dtc" or "fitc".
    bounds : array of shape (p, 2), optional
        The interval of each component of theta; the parts' own without it.
    """

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Any,
        mean: Mean,
        data: LatentData,
        inference: str,
        inducing: InducingInputs,
        kind: Approximation,
        bounds: Floats | None = None,
    ) -> None:
        require_prior(kind)
        self.inducing, self.kind = inducing, kind
        super().__init__(kernel, likelihood, mean, data, inference, bounds)

    @classmethod
    def of(
        cls, dense: LatentObjective, inducing: InducingInputs, kind: Approximation
    ) -> SparseLatentObjective:
        """Return the objective of the same model and rows through inducing variables."""
        model = dense.kernel, dense.likelihood, dense.mean
        bounds = np.concatenate([dense.bounds, inducing.bounds])
        return cls(*model, dense.data, dense.inference, inducing, kind, bounds)

    def _engine_for(self, likelihood: Any, inference: str) -> Any:
        return engine_for(likelihood, inference, sparse=True)

    def _further(self) -> dict[str, Parametrised]:
        return {"inducing": self.inducing}

    def _again(self) -> Self:
        model = self.kernel, self.likelihood, self.mean
        return type(self)(*model, self.data, self.inference, self.inducing, self.kind, self.bounds)

    def under(self, kernel: Kernel, likelihood: Any, theta: ArrayLike) -> SparseLatentObjective:
        """Return the objective of another kernel and likelihood, inducing inputs held."""
        held = InducingInputs(self.inducing_at(theta).points)
        model = kernel, likelihood, self.unpack(theta)[2]
        return SparseLatentObjective(*model, self.data, self.inference, held, self.kind)

    @property
    def least_gain(self) -> float:
        """What ten iterations must gain for a search to go on."""
        return self.inducing.least_gain

    def inducing_at(self, theta: ArrayLike) -> InducingInputs:
        """Return the inducing inputs with these parameters."""
        inducing: InducingInputs = self._with(theta)[3]
        return inducing

    def problem(
        self,
        kernel: Kernel,
        likelihood: Any,
        mean: Mean,
        inducing: InducingInputs | None = None,
    ) -> SparseLatentProblem:
        """Return the engine's problem, without `inducing` for the inducing inputs of the start."""
        data = self.data
        return SparseLatentProblem(
            kernel,
            data.X,
            data.y,
            likelihood,
            mean(data.X)[:, 0],
            data.weights,
            self.jitter,
            Z=(self.inducing if inducing is None else inducing).points,
            kind=self.kind,
        )

    def unexplained(self, theta: ArrayLike) -> float:
        """Return the mean of diag(K - Q): what u leaves of the latent function at a row."""
        problem = self.problem(*self._with(theta))
        return float(np.mean(problem.prior().basis.residual))

    def log_evidence(self, theta: ArrayLike, gradient: bool = False) -> tuple[float, Floats | None]:
        """Return log q(y | theta, Z), or the bound on it, without hyperpriors; and its gradient.

        theta = [kernel, likelihood, mean]: the inducing inputs stay where they are.
        """
        theta = np.asarray(theta, dtype=float)
        size = self.theta.size - self.inducing.theta.size
        if theta.shape != (size,):
            raise ValueError(
                f"theta must have shape ({size},), without inducing inputs, got {theta.shape}"
            )
        value, slopes = super().log_evidence(np.concatenate([theta, self.inducing.theta]), gradient)
        return value, None if slopes is None else slopes[:size]

    def _adjoints(self, problem: Any) -> tuple[Any, Any]:
        inputs = self.inducing.learned
        solution, adjoints = self.engine.evidence(problem, self.state, inputs=inputs)
        return solution, adjoints

    def _pull(self, parts: list[Any], adjoints: Any) -> Floats:
        rows = self._pull_rows(parts, adjoints)
        return np.concatenate([adjoints.theta, *rows, parts[3].pull(adjoints.Z)])
