"""What a sparse regressor keeps of a fit, and what it says of it later."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.inducing import block_units
from mercer.estimators.prepare_sparse import PreparedSparse
from mercer.estimators.regressor_evidence import FittedEvidence
from mercer.estimators.search import warn_of_fit, warn_of_unexplained
from mercer.estimators.sparse_latent import unexplained_by
from mercer.evidence import Data, LatentObjective, Optimum
from mercer.evidence.guarded import Fitted, Guarded
from mercer.evidence.optimum import Report, tell
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.evidence.sparse_latent import SparseLatentObjective
from mercer.inference._approximations import Approximation, approximation
from mercer.inference._sparse_predictive import augmented, nystrom, predictive
from mercer.inference.sparse import SparseProblem, evidence_bounds
from mercer.posterior import IndependentPredictive, Posterior, Predictive
from mercer.posterior.factors import frozen

__all__ = ["SparseFit"]


class SparseFit(FittedEvidence):
    """Adds the end of a fit to a sparse regressor, and its evidence."""

    approximation: str
    augment: bool
    posterior_: Posterior
    inducing_: Any
    unexplained_: float
    evidence_bounds_: tuple[float, float]
    _predictive: Predictive | None

    def _finish(self, prepared: PreparedSparse, optimum: Optimum, report: Report | None) -> None:
        objective = prepared.objective
        objective.hold_jitter(optimum.jitter)
        tell(report, f"making the posterior of {len(objective.data.Y)} rows")
        fit = objective.fitted(optimum.theta)
        self._keep(objective, fit, optimum, prepared.multioutput)
        self.inducing_, self._scale = fit.posterior.basis.points, fit.posterior.scale
        self.X_train_ = frozen(np.asarray(objective.data.X))
        self._criterion, self._start = objective.criterion, objective.start
        for name in ("posterior_", "evidence_bounds_"):  # of a fit before
            self.__dict__.pop(name, None)
        warn_of_fit(objective, fit, searched=optimum.status != "fixed")
        kind = self._finish_noise(prepared, optimum, fit, report)
        self._kind = (kind.name, kind.power, kind.test)
        self.approximation_ = kind.name
        if objective.inference == "exact":
            self.approximation_ = "sod"
        elif self.approximation == "nystrom":
            self.approximation_ = "nystrom"
        if self._predictive is None:
            self.posterior_ = fit.posterior
        tell(report, "done")

    def _finish_noise(
        self, prepared: PreparedSparse, optimum: Optimum, fit: Fitted, report: Report | None
    ) -> Approximation:
        """Keep what predicts and what is left unexplained; return the approximation."""
        objective, whole = prepared.objective, prepared.whole
        if whole is None:
            assert isinstance(objective, SparseLatentObjective)
            self._groups = self._predictive = None
            self.unexplained_ = unexplained_by(self, objective, optimum.theta)
            return objective.kind
        if objective is not whole:  # exact inference
            noise = whole.likelihood.with_theta(fit.likelihood.theta)
            problem = whole.problem(fit.kernel, noise, whole.inducing)
        else:
            problem = whole.problem(*whole.unpack(optimum.theta))
        self._groups = whole.groups
        self._predictive = self._beyond(problem, prepared.labels)
        tell(report, "bounding the exact evidence")
        self._certify(problem, whole.constant())
        return whole.kind

    def _beyond(self, problem: SparseProblem, labels: Any) -> Predictive | None:
        """Return what predicts where the posterior over the inducing inputs is not all there is."""
        mean, scale = self.mean_, self._scale
        if self.augment:
            return augmented(problem, mean, scale)[0]
        if self.approximation == "nystrom":
            return nystrom(problem, mean, scale)[0]
        if problem.kind.test == "blocks":
            units = None
            if problem.kernel.is_numeric:
                units = block_units(problem.kernel, problem.X, problem.weights)
            return predictive(problem, mean, scale, labels, units)[0]
        return None

    def _certify(self, problem: SparseProblem, constant: float) -> None:
        """Bound the exact evidence, and warn where most of the signal is left unexplained."""
        lower, upper, left = evidence_bounds(problem)
        lower, upper = float(lower + constant), float(upper + constant)
        self.evidence_bounds_ = lower, upper
        total = len(problem.Y) if problem.weights is None else np.sum(problem.weights)
        self.unexplained_ = float(left / total)
        signal, noise = float(np.mean(self.kernel_.diag(problem.X))), float(np.mean(problem.noise))
        more = f"; the exact log evidence is between {lower:.4g} and {upper:.4g}"
        sizes = len(self.inducing_), len(problem.Y)
        warn_of_unexplained(self, self.unexplained_, signal, noise, *sizes, more)

    def _absent(self, name: str) -> str | None:
        if "approximation_" not in self.__dict__:
            return None
        if name == "posterior_":
            how = "augment=True" if self.augment else f"approximation={self.approximation_!r}"
            taken = ", which 'auto' has taken," if self.approximation == "auto" else ""
            return (
                f"there is no posterior_ with {how}{taken} where new points need the training rows "
                "too: predictive_ is what predicts. approximation='vfe' with augment=False has one"
            )
        if name == "evidence_bounds_":
            return (
                "evidence_bounds_ are had with Gaussian noise and inference='auto' alone; this fit "
                f"is by inference={self.inference_!r} of {type(self.likelihood_).__name__}, with "
                "log_marginal_likelihood_value_ for its evidence"
            )
        return None

    @property
    def predictive_(self) -> Predictive:
        """The fitted process, as predictions ask it; a `posterior_` that was put there, if any."""
        self._models()  # which raises where there is none
        posterior = self.__dict__.get("posterior_")
        if posterior is None:
            assert self._predictive is not None
            return self._predictive
        return IndependentPredictive(posterior) if self._kind[2] == "independent" else posterior

    def _objective(self) -> Guarded:
        self._models()
        if self.inference_ == "exact":
            return super()._objective()
        name, power, test = self._kind
        kind = approximation(name, power, "independent" if test == "independent" else "exact")
        objective: SparseObjective | SparseLatentObjective
        inducing = InducingInputs(self.inducing_)
        if self.inference_ == "sparse":
            data = Data(self.X_train_, self.y_train_, self.sample_weight_, self._scale)
            model = self.kernel_, self.likelihood_, self.mean_
            objective = SparseObjective(*model, data, inducing, kind, self._groups)
        else:
            dense = super()._objective()
            assert isinstance(dense, LatentObjective)
            objective = SparseLatentObjective.of(dense, inducing, kind)
            objective.start = self._start
        objective.jitter = self.jitter_
        return objective
