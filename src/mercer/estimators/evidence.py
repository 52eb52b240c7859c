"""What a fitted exact model says of its hyperparameters and of its own training rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.evidence import Data, Objective, hessian, standard_errors
from mercer.inference import leave_one_out
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian
from mercer.means import Mean
from mercer.posterior import Posterior

__all__ = ["ExactEvidence", "LeaveOneOut"]

Floats = NDArray[np.float64]


class LeaveOneOut(NamedTuple):
    """Each row predicted from all the others, at the fitted hyperparameters.

    mean, std : the prediction of a new observation at the row
    log_density : the log density of the row's target under it
    """

    mean: Floats
    std: Floats
    log_density: Floats

    def __repr__(self) -> str:
        return f"LeaveOneOut({len(self.mean)} rows, log_density {self.log_density.sum():.4g})"


class ExactEvidence:
    """Adds the evidence, leave-one-out and standard errors to a regressor of exact inference."""

    kernel_: Kernel
    likelihood_: Gaussian
    mean_: Mean
    posterior_: Posterior
    y_train_: Floats
    sample_weight_: Floats | None
    jitter_: float
    log_marginal_likelihood_value_: float
    _criterion: str
    _shaped: Callable[[Floats], Floats]

    def _objective(self) -> Objective:
        """Return the objective of the last fit, at its optimum."""
        check_is_fitted(self, "posterior_")
        points = self.posterior_.basis.points
        if len(points) != len(self.y_train_):
            raise ValueError(
                f"`posterior_` has {len(points)} basis points and the fit had "
                f"{len(self.y_train_)} rows: from another posterior than the fitted one the model "
                "predicts, but the evidence, leave-one-out and standard errors are those of the "
                "fit; ask for them before `posterior_` is replaced"
            )
        data = Data(points, self.y_train_, self.sample_weight_, self.posterior_.scale)
        objective = Objective(self.kernel_, self.likelihood_, self.mean_, data, self._criterion)
        objective.jitter = self.jitter_
        return objective

    @property
    def theta_(self) -> Floats:
        """The fitted hyperparameters [kernel_, likelihood_, mean_] as one flat vector."""
        return np.concatenate([self.kernel_.theta, self.likelihood_.theta, self.mean_.theta])

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """Return the log evidence at theta, and its gradient if asked for.

        Parameters
        ----------
        theta : array of shape (p,), optional
            [kernel_, likelihood_, mean_], as `theta_`; the fitted one without it.
        eval_gradient : bool, default False
            Whether to return the gradient too.
        """
        objective = self._objective()
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        theta = self.theta_ if theta is None else np.asarray(theta, dtype=float)
        if theta.shape != self.theta_.shape:
            raise ValueError(f"theta must have shape {self.theta_.shape}, got {theta.shape}")
        split = theta.size - self.mean_.theta.size
        mean = None
        if self.mean_.estimate != "integrate":
            mean = self.mean_.with_theta(theta[split:])
        value, gradient = objective.log_evidence(theta[:split], mean, eval_gradient)
        return (value, gradient) if eval_gradient else value

    def loo(self) -> LeaveOneOut:
        """Predict each training row from all the others, in closed form.

        Equal to refitting without the row at the fitted hyperparameters, coefficients of the mean
        found again. Two cases are not the same as refitting: a row whose noise variance was given
        is predicted with that variance, and where a noise covariance was given the noise of the
        other rows tells of the row's own. Rows of weight 0 are no training rows. O(n^3) time, once.

        Returns
        -------
        LeaveOneOut
            `mean`, `std` and `log_density`, each of shape (n,) or (n, P).
        """
        objective = self._objective()
        problem = objective.problem(self.kernel_, self.likelihood_)
        _, left = leave_one_out(problem, self.sample_weight_)
        scale = self.posterior_.scale
        residual = left.residual * scale
        std = np.sqrt(left.variance)[:, None] * scale
        density = -0.5 * (residual / std) ** 2 - np.log(std) - 0.5 * np.log(2.0 * np.pi)
        mean = self.y_train_ - residual
        return LeaveOneOut(self._shaped(mean), self._shaped(std), self._shaped(density))

    def standard_errors(self) -> dict[str, float]:
        """Return the standard error of each free hyperparameter, by name, in units of `theta_`.

        From the curvature of the objective at its optimum; 2p evaluations. For a positive
        hyperparameter it is the error of its logarithm: 0.1 is about ten per cent.
        """
        names, errors = self._objective().parameter_names, standard_errors(self.hessian())
        return dict(zip(names, errors.tolist(), strict=True))

    def hessian(self) -> Floats:
        """Return the second derivatives of what was maximised, hyperpriors included, at the fit.

        Over [kernel_, likelihood_], in units of `theta_`; 2p evaluations.
        """
        objective = self._objective()
        return hessian(objective.evaluate, objective.theta)
