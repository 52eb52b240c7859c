"""New points that are independent of each other, given the inducing variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.posterior import Posterior
from mercer.posterior.predictive import InputGradients, Predictive
from mercer.registry import storable

__all__ = ["IndependentPredictive"]

Floats = NDArray[np.float64]


@storable
class IndependentPredictive(Predictive):
    """The predictions of a posterior with a joint covariance that goes through its basis alone.

    Under the test conditional of FIC points are independent given u (UV Remark 7): what the basis
    leaves unexplained of their covariance, K** - Q**, is kept on its diagonal only. Marginals are
    those of the posterior.

    Parameters
    ----------
    process : Posterior
        One of a single sparse fit: w = 1, A is of K_uu^-1 and B of what the data leave.
    """

    def __init__(self, process: Posterior) -> None:
        if process.weight != 1 or process.is_coupled:
            raise ValueError("a posterior with w = 1 and independent outputs is wanted")
        self.process = process

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return self.process.n_outputs

    @property
    def scale(self) -> Floats:
        """The units of the outputs (P,)."""
        return self.process.scale

    def mean(self, X: Any) -> Floats:
        """Return the mean at the rows of X, shape (n, P)."""
        return self.process.mean(X)

    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, P)."""
        return self.process.var(X)

    def mean_and_var(self, X: Any) -> tuple[Floats, Floats]:
        """Return `mean(X)` and `var(X)`, which share work."""
        return self.process.mean_and_var(X)

    def cov(self, X: Any) -> Floats:
        """Return the joint covariance at the rows of X, (n, n, P)."""
        cov = self.process.replace(A=None, weight=0).cov(X)
        rows = np.arange(len(cov))
        cov[rows, rows] = self.var(X)
        return cov

    def gradients(self, X: Any) -> InputGradients:
        """Return the derivatives of mean and variance in the inputs, each (n, d, P)."""
        return self.process.gradients(X)

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's argument."""
        return {"process": self.process}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> IndependentPredictive:
        """Rebuild from `to_state`."""
        return cls(**state)

    def describe(self) -> str:
        """Return a few lines of text on what this is made of."""
        return "New points independent given the basis of\n" + self.process.describe()
