"""What a fitted classifier says of its hyperparameters and of its own training rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.classification import objectives_for
from mercer.estimators.process import FittedProcess
from mercer.evidence import LatentData, LatentObjective, hessian, standard_errors
from mercer.inference._coupled_loo import leave_one_out
from mercer.inference.softmax import SoftmaxProblem
from mercer.likelihoods import Likelihood
from mercer.likelihoods.class_probabilities import link_probabilities, softmax_probabilities

__all__ = ["ClassEvidence", "LeftOutClasses"]

Floats = NDArray[np.float64]


class LeftOutClasses(NamedTuple):
    """Each row predicted from all the others, at the fitted hyperparameters.

    proba : (n, C) the probabilities of the classes
    log_density : (n,) the log of the probability of the row's own label
    """

    proba: Floats
    log_density: Floats

    def __repr__(self) -> str:
        return f"LeftOutClasses({len(self.proba)} rows, log_density {self.log_density.sum():.4g})"


class ClassEvidence(FittedProcess):
    """Adds the evidence, leave-one-out and standard errors to a classifier of latent functions."""

    classes_: NDArray[Any]
    X_train_: Any
    y_train_: Floats
    sample_weight_: Floats | None
    log_marginal_likelihood_value_: float
    _kind: str
    _engine: str
    _soft: bool
    _jitters: list[float]
    _starts: list[list[Floats]]
    _links: list[Likelihood]

    def _objectives(self) -> list[LatentObjective]:
        """Return the objectives of the last fit, at their optima."""
        check_is_fitted(self, "classes_")
        # The rows of the fit, not the basis of a posterior, which may have been replaced since.
        data = LatentData(self.X_train_, self.y_train_, self.sample_weight_)
        model = self.kernel_, self.likelihood_, self.mean_
        # What the fit was told, whatever the parameters have been set to since.
        every = objectives_for(self._kind, *model, data, self._engine, self._soft)
        objectives = self._as_fitted(every)
        for objective, jitter, start in zip(objectives, self._jitters, self._starts, strict=True):
            objective.hold_jitter(jitter)
            objective.start = start
        return objectives

    def _as_fitted(self, objectives: list[LatentObjective]) -> list[LatentObjective]:
        """Return the objectives of all rows in the form in which they were fitted."""
        return objectives

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """Return the log evidence at theta as the engine has it, and its gradient if asked for.

        With one class against the rest it is the sum over the classes, each a problem of two.

        Parameters
        ----------
        theta : array of shape (p,), optional
            [kernel_, likelihood_, mean_], as `theta_`; the fitted one without it.
        eval_gradient : bool, default False
            Whether to return the gradient too.
        """
        objectives = self._objectives()
        known = not np.isnan(self.log_marginal_likelihood_value_)
        if theta is None and not eval_gradient and known:
            return self.log_marginal_likelihood_value_
        theta = self.theta_ if theta is None else np.asarray(theta, dtype=float)
        if theta.shape != self.theta_.shape:
            raise ValueError(f"theta must have shape {self.theta_.shape}, got {theta.shape}")
        ends = np.cumsum([o.theta.size for o in objectives])[:-1]
        found = [
            objective.log_evidence(own, eval_gradient)
            for objective, own in zip(objectives, np.split(theta, ends), strict=True)
        ]
        value = float(sum(each for each, _ in found))
        if not eval_gradient:
            return value
        return value, np.concatenate([gradient for _, gradient in found])

    def loo(self) -> LeftOutClasses:
        """Predict each training row from all the others, in closed form.

        At the fitted hyperparameters, with what the other rows were found to say held: refitting
        without the row would move that a little too. One more solution of the engine, O(n^3) time.
        Of soft labels the density is the expected one. With "map" it is that of Laplace's method
        around the mode, which is where "laplace" stays but for a softmax of three or more classes.

        There is an entry for each row of `X_train_` and `y_train_`, in their order. Rows of weight
        0 are not among them: `predict_proba` answers for these, which are left out already.

        Returns
        -------
        LeftOutClasses
            `proba` of shape (n, C) and `log_density` of shape (n,), n the rows of `X_train_`.
        """
        objectives = self._objectives()
        if self._kind == "softmax":
            problem = objectives[0].problem(self.kernel_, self.likelihood_, self.mean_)
            assert isinstance(problem, SoftmaxProblem)
            at_mode = objectives[0].inference == "map"
            left_out = leave_one_out(problem, objectives[0].state, at_mode)
            proba = softmax_probabilities(*left_out).values
        else:
            left = [_judge(o).leave_one_out(o.theta) for o in objectives]
            mean, var = (
                np.column_stack([getattr(each, name) for each in left])
                for name in ("mean", "variance")
            )
            proba = link_probabilities(self._links, mean, var).values
        return LeftOutClasses(proba, np.sum(self.y_train_ * np.log(proba), axis=1))

    def standard_errors(self) -> dict[str, float]:
        """Return the standard error of each free hyperparameter, by name, in units of `theta_`.

        From the curvature of the objective at its optimum; 2p evaluations. For a positive
        hyperparameter it is the error of its logarithm: 0.1 is about ten per cent. With one class
        against the rest the names begin with the class.
        """
        errors: dict[str, float] = {}
        for label, objective in zip(self._part_names(), self._objectives(), strict=True):
            own = standard_errors(_hessian(objective)).tolist()
            names = (f"{label}{name}" for name in objective.parameter_names)
            errors.update(zip(names, own, strict=True))
        return errors

    def hessian(self) -> Floats:
        """Return the second derivatives of what was maximised, hyperpriors included, at the fit.

        In units of `theta_`; 2p evaluations. Classes against the rest have nothing to do with each
        other.
        """
        blocks = [_hessian(objective) for objective in self._objectives()]
        H = np.zeros((self.theta_.size, self.theta_.size))
        at = 0
        for block in blocks:
            H[at : at + len(block), at : at + len(block)] = block
            at += len(block)
        return H

    def _part_names(self) -> list[str]:
        """Return what to begin the names of each part's parameters with."""
        if not self._has_parts:
            return [""]
        return [f"{label}." for label in self.classes_.tolist()]


def _judge(objective: LatentObjective) -> LatentObjective:
    """Return the objective that has leave-one-out: for "map", that by Laplace's method.

    No other engine, whichever the likelihood prefers, starts from a mode.
    """
    if objective.inference != "map":
        return objective
    model = objective.kernel, objective.likelihood, objective.mean
    judge = LatentObjective(*model, objective.data, "laplace", objective.bounds)
    judge.jitter, judge.state = objective.jitter, objective.state
    return judge


def _hessian(objective: LatentObjective) -> Floats:
    return hessian(objective.evaluate, objective.theta, directions=objective.directions)
