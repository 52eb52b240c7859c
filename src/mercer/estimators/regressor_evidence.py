"""What a fitted model says of its hyperparameters and of its own training rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.iterative_options import Iterative
from mercer.estimators.process import FittedProcess
from mercer.estimators.resolve import named_engine
from mercer.estimators.search import history_of
from mercer.evidence import (
    Data,
    LatentData,
    LatentObjective,
    Objective,
    Optimum,
    engines_that_take,
    hessian,
    standard_errors,
)
from mercer.evidence.guarded import Fitted, Guarded
from mercer.likelihoods import Gaussian

if TYPE_CHECKING:
    from mercer.evidence.committee import FittedCommittee

__all__ = ["FittedEvidence", "LeaveOneOut"]

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


class FittedEvidence(FittedProcess):
    """Adds the evidence, leave-one-out and standard errors to a regressor."""

    inference: str | Iterative = "auto"
    likelihood: Any
    inference_: str
    X_train_: Any
    y_train_: Floats
    sample_weight_: Floats | None
    jitter_: float
    log_marginal_likelihood_value_: float
    status_: str
    n_iter_: int
    history_: dict[str, Floats]
    log_marginal_likelihood_std_error_: float
    _iterative: Iterative
    _seed: int
    _criterion: str
    _multioutput: bool
    _scale: Floats
    _start: list[Floats]
    _shaped: Callable[[Floats], Floats]

    def _keep(
        self, objective: Guarded, fit: Fitted | FittedCommittee, optimum: Optimum, multioutput: bool
    ) -> None:
        """Keep the model that a fit ends with, its targets, and how the search went."""
        self.kernel_, self.likelihood_, self.mean_ = fit.kernel, fit.likelihood, fit.mean
        self.inference_, self._multioutput = objective.inference, multioutput
        self.y_train_, self.sample_weight_ = objective.data.Y, objective.data.weights
        self.jitter_ = fit.jitter
        self.log_marginal_likelihood_value_ = fit.log_evidence
        self.status_ = optimum.status
        self.n_iter_ = max(1, optimum.n_iterations)
        self.history_ = history_of(optimum)

    def _objective(self) -> Guarded:
        """Return the objective of the last fit, at its optimum."""
        check_is_fitted(self, "posterior_")
        if self.inference_ == "map":
            raise ValueError(
                "inference='map' has no evidence, leave-one-out or standard errors: it finds the "
                f"mode of the function alone; {' and '.join(_with_evidence(self.likelihood_))} "
                f"have them for {type(self.likelihood_).__name__}"
            )
        # The rows of the fit, not the basis of `posterior_`, which may have been replaced since.
        model = self.kernel_, self.likelihood_, self.mean_
        objective: Objective | LatentObjective
        if self.inference_ in ("exact", "iterative"):
            data = Data(self.X_train_, self.y_train_, self.sample_weight_, self._scale)
            objective = Objective(*model, data, self._criterion)
            if self.inference_ == "iterative":
                from mercer.estimators.prepare_iterative import iterative_again

                objective = iterative_again(objective, self._iterative, self._seed)
        else:
            rows = LatentData(self.X_train_, self.y_train_[:, 0], self.sample_weight_)
            objective = LatentObjective(*model, rows, self.inference_)
            objective.start = self._start
        objective.jitter = self.jitter_
        return objective

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """Return the log evidence at theta, and its gradient if asked for.

        That of the engine: exact, an approximation, with "vi" a lower bound, and with "iterative"
        an estimate.

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
        value, gradient = objective.log_evidence(theta, eval_gradient)
        return (value, gradient) if eval_gradient else value

    def loo(self) -> LeaveOneOut:
        """Predict each training row from all the others, in closed form.

        Exact inference: equal to refitting without the row at the fitted hyperparameters,
        coefficients of the mean found again. Two cases are not the same as refitting: a row whose
        noise variance was given is predicted with that variance, and where a noise covariance was
        given the noise of the other rows tells of the row's own.

        The other engines: the row's own part is taken out of the Gaussian that they have found,
        and the other rows' parts are held, as are the coefficients of the mean. That is close to
        refitting, where no row decides the fit alone. "map" has none.

        There is an entry for each row of `X_train_` and `y_train_`, in their order. Rows of weight
        0 are not among them: `predict` answers for these, which are left out already. O(n^3) time,
        once.

        Returns
        -------
        LeaveOneOut
            `mean`, `std` and `log_density`, each of shape (n,), or (n, P) for several outputs, n
            the rows of `X_train_`.
        """
        left = self._objective().left_out()
        return LeaveOneOut(*(self._shaped(column) for column in left))

    def standard_errors(self) -> dict[str, float]:
        """Return the standard error of each free hyperparameter, by name, in units of `theta_`.

        From the curvature of the objective at its optimum; 2p evaluations. For a positive
        hyperparameter it is the error of its logarithm: 0.1 is about ten per cent.
        """
        names, errors = self._objective().parameter_names, standard_errors(self.hessian())
        return dict(zip(names, errors.tolist(), strict=True))

    def hessian(self) -> Floats:
        """Return the second derivatives of what was maximised, hyperpriors included, at the fit.

        Over what the search went over, in units of `theta_`: [kernel_, likelihood_] for exact
        inference, all of `theta_` for the other engines. 2p evaluations.
        """
        objective = self._objective()
        if self.inference_ == "iterative":
            objective.value(objective.theta)  # which tells whether probes have a part in it
            if getattr(objective, "is_estimate", False):
                raise ValueError(
                    "inference='iterative' has estimated the evidence, and differences of an "
                    "estimate are no second derivatives; use inference='exact', or raise the rank "
                    "of Iterative(...) until the estimate is exact"
                )
        return hessian(objective.evaluate, objective.theta, directions=objective.directions)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: takes several outputs under Gaussian noise."""
        tags = super().__sklearn_tags__()
        one_matrix = named_engine(self.inference) in ("auto", "exact", "iterative")
        tags.target_tags.multi_output = one_matrix and (
            self.likelihood is None or isinstance(self.likelihood, Gaussian)
        )
        return tags


def _with_evidence(likelihood: Any) -> list[str]:
    """Return the options by which a likelihood has an evidence."""
    names = [name for name in engines_that_take(likelihood) if name != "map"]
    return [f"inference={name!r}" for name in names]
