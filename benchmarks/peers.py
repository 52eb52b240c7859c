"""The peers, set up as their own documentation advises, for the same model as Mercer's.

constant * RBF with a length scale for each column, plus noise; zero mean unless told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.report import Options

# Mercer's for standardised data
LENGTH_BOUNDS = (1e-3, 1e3)
VARIANCE_BOUNDS = (1e-4, 1e4)
NOISE_BOUNDS = (1e-6, 1e2)


def has_gpytorch(options: Options) -> bool:
    """Whether GPyTorch is to be raced, and can be."""
    return "gpytorch" not in options.without and find_spec("gpytorch") is not None


def sklearn_regressor(lengths: Any, noise: float, **settings: Any) -> Any:
    """Return scikit-learn's regressor with all noise in the kernel.

    The bounds are Mercer's for standardised data: scikit-learn's own stop short of what some sets
    need, and its lower one on the noise, 1e-5, stops others.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0, VARIANCE_BOUNDS) * RBF(lengths, LENGTH_BOUNDS)
    kernel = kernel + WhiteKernel(noise, NOISE_BOUNDS)
    return GaussianProcessRegressor(kernel, alpha=0.0, **settings)


class GPyTorch:
    """GPyTorch's exact GP in double precision, with Mercer's lower bound on the noise."""

    def __init__(
        self, X: Any, y: Any, lengths: Any, noise: float, constant_mean: bool = False
    ) -> None:
        import gpytorch
        import torch

        lengths = np.atleast_1d(lengths)

        class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
            def __init__(self, X: Any, y: Any, likelihood: Any) -> None:
                super().__init__(X, y, likelihood)
                means = gpytorch.means
                self.mean_module = means.ConstantMean() if constant_mean else means.ZeroMean()
                self.covar_module = gpytorch.kernels.ScaleKernel(
                    gpytorch.kernels.RBFKernel(ard_num_dims=lengths.size)
                )

            def forward(self, X: Any) -> Any:
                return gpytorch.distributions.MultivariateNormal(
                    self.mean_module(X), self.covar_module(X)
                )

        self.torch, self.gpytorch = torch, gpytorch
        self.X = torch.tensor(np.asarray(X), dtype=torch.float64)
        self.y = torch.tensor(np.asarray(y), dtype=torch.float64)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=gpytorch.constraints.GreaterThan(NOISE_BOUNDS[0])
        ).double()
        self.model = Model(self.X, self.y, self.likelihood).double()
        self.model.covar_module.outputscale = 1.0
        self.model.covar_module.base_kernel.lengthscale = torch.tensor(lengths)[None]
        self.likelihood.noise = noise
        self.evidence = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self.model)

    @contextmanager
    def cholesky(self) -> Iterator[None]:
        """Have everything computed by Cholesky factorisations, nothing by conjugate gradients."""
        settings = self.gpytorch.settings
        with (
            settings.fast_computations(False, False, False),
            settings.max_cholesky_size(10**9),
            settings.cholesky_jitter(double_value=1e-10),
        ):
            yield

    def evaluate(self) -> float:
        """Return the log evidence, with its gradient computed."""
        self.model.train()
        self.likelihood.train()
        self.model.zero_grad()
        value = self.evidence(self.model(self.X), self.y) * len(self.y)
        value.backward()
        return float(value.detach())

    def evaluate_by_cholesky(self) -> float:
        """Return the log evidence by Cholesky, with its gradient computed."""
        with self.cholesky():
            return self.evaluate()

    def fit(self, max_iter: int = 200) -> None:
        """Maximise the evidence by L-BFGS with line search, on the Cholesky path."""
        optimizer = self.torch.optim.LBFGS(
            self.model.parameters(),
            max_iter=max_iter,
            max_eval=5 * max_iter,
            history_size=10,
            tolerance_grad=1e-6,
            tolerance_change=1e-10,
            line_search_fn="strong_wolfe",
        )
        self.model.train()
        self.likelihood.train()

        def closure() -> Any:
            optimizer.zero_grad()
            loss = -self.evidence(self.model(self.X), self.y)
            loss.backward()
            return loss

        with self.cholesky():
            optimizer.step(closure)

    def predict(self, X: Any) -> tuple[Any, Any]:
        """Return mean and standard deviation of new observations."""
        self.model.eval()
        self.likelihood.eval()
        inputs = self.torch.tensor(np.asarray(X), dtype=self.torch.float64)
        with self.torch.no_grad(), self.cholesky():
            predicted = self.likelihood(self.model(inputs))
            return predicted.mean.numpy(), predicted.variance.sqrt().numpy()
