"""Means and engines with one defect each."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from mercer.inference import exact
from mercer.means import Constant, Linear, Zero
from mercer.posterior import Dense
from mercer.registry import storable

# --- means: a plane but for one thing ---------------------------------------------------------


@storable
class WrongSlope(Linear):
    """The gradient forgets the slopes."""

    def gradient(self, X, n_outputs=None):
        return 0.0 * super().gradient(X, n_outputs)


@storable
class WrongPullback(Linear):
    """dL/dtheta stands in the wrong order."""

    def pullback(self, X, G):
        return super().pullback(X, G)[::-1]


@storable
class FlatMean(Linear):
    """One output has no axis."""

    def __call__(self, X, n_outputs=None):
        return super().__call__(X, n_outputs)[:, 0]


@storable
class MoreThanItsParts(Linear):
    """There is a constant beside the features."""

    def __call__(self, X, n_outputs=None):
        return super().__call__(X, n_outputs) + 1.0


@storable
class OtherCoefficients(Linear):
    """Coefficients are rounded."""

    def with_coefficients(self, beta):
        return super().with_coefficients(np.round(beta, 1))


@storable
class WrongFeatureSlope(Linear):
    """The features' derivative has the wrong sign."""

    def pull_features(self, X, G):
        return -super().pull_features(X, G)


@storable
class WritesIntoRowsMean(Linear):
    """Rows are centred in place."""

    def __call__(self, X, n_outputs=None):
        X -= 0.0
        return super().__call__(X, n_outputs)


MEANS: dict[str, Any] = {
    "rule_shapes": FlatMean(1.0, [2.0, -1.0]),
    "rule_parts": MoreThanItsParts(1.0, [2.0, -1.0]),
    "rule_coefficients": OtherCoefficients(1.0, [2.0, -1.0]),
    "rule_pull_features": WrongFeatureSlope(1.0, [2.0, -1.0]),
    "rule_rows_are_only_read": WritesIntoRowsMean(1.0, [2.0, -1.0]),
    "rule_gradient": WrongSlope(1.0, [2.0, -1.0]),
    "rule_pullback": WrongPullback(1.0, [2.0, -1.0]),
}


# --- engines: the exact one but for one thing -------------------------------------------------


def _evidence(**changes):
    def evidence(problem):
        solution, adjoints = exact.evidence(problem)
        new = {name: change(getattr(adjoints, name)) for name, change in changes.items()}
        return solution, adjoints._replace(**new)

    return evidence


def _engine(**functions):
    own = {"solve": exact.solve, "evidence": exact.evidence, "posterior": exact.posterior}
    return SimpleNamespace(**own | functions)


def _without_constant(problem):
    solution = exact.solve(problem)
    return solution._replace(log_evidence=solution.log_evidence + 1.0)


def _too_sure(problem, mean, scale):
    posterior, solution = exact.posterior(problem, mean, scale)
    m = posterior.n_basis
    A = Dense(1.05 * np.linalg.inv(np.linalg.cholesky(problem.kernel(problem.X))) @ np.eye(m))
    return posterior.replace(A=A), solution


def _loses_units(problem, mean, scale):
    return exact.posterior(problem, mean, np.ones_like(scale))


def _writes(problem):
    problem.Y[...] = problem.Y - problem.Y.mean(axis=0)
    return exact.evidence(problem)


def _sees_the_first_row(problem):
    solution = exact.solve(problem)
    return solution._replace(log_evidence=solution.log_evidence + float(problem.Y[0, 0]))


def _counts_outputs(problem):
    solution = exact.solve(problem)
    extra = 0.5 * (problem.Y.shape[1] - 1)
    return solution._replace(log_evidence=solution.log_evidence + extra)


def _counts_rows(problem):
    solution = exact.solve(problem)
    return solution._replace(log_evidence=solution.log_evidence + 0.1 * len(problem.Y))


def _any_covariance(problem):
    try:
        return exact.solve(problem)
    except ValueError:
        return SimpleNamespace(log_evidence=float("nan"))


def _too_wide(problem, mean, scale):
    posterior, solution = exact.posterior(problem, mean, scale)
    m = posterior.n_basis
    return posterior.replace(A=None, B=Dense(np.eye(m))), solution


def _forgets_regressors(problem, mean, scale):
    _, solution = exact.posterior(problem, mean, scale)
    return exact.posterior(replace(problem, H=None, integrate=False), Zero(), scale)[0], solution


def _sure_of_its_coefficients(problem, mean, scale):
    posterior, solution = exact.posterior(problem, mean, scale)
    return posterior.replace(B=None), solution


def _coefficients_without_units(problem, mean, scale):
    posterior, solution = exact.posterior(problem, mean, scale)
    known = posterior.mean_function.coefficients
    if known is None:
        return posterior, solution
    return posterior.replace(mean=mean.with_coefficients(known / scale)), solution


def _constant_regressors(problem, mean, scale):
    """New rows are taken to have the regressors of the first one."""
    posterior, solution = exact.posterior(problem, mean, scale)
    known = posterior.mean_function.coefficients
    if known is None:
        return posterior, solution
    value = np.ravel(mean.with_coefficients(known)(problem.X[:1], len(scale)))
    return posterior.replace(mean=Constant(value, estimate=None)), solution


ENGINES: dict[str, Any] = {
    "rule_evidence": _engine(solve=_without_constant),
    "rule_solution": _engine(solve=_without_constant),
    "rule_adjoint_of_the_gram_matrix": _engine(evidence=_evidence(factor=lambda f: -f)),
    "rule_adjoint_of_the_noise": _engine(evidence=_evidence(noise=lambda g: 2.0 * g)),
    "rule_adjoint_of_the_mean": _engine(evidence=_evidence(mean=lambda g: -g)),
    "rule_posterior": _engine(posterior=_too_sure),
    "rule_posterior_with_regressors": [
        _engine(posterior=_forgets_regressors),
        _engine(posterior=_sure_of_its_coefficients),
        _engine(posterior=_coefficients_without_units),
        _engine(posterior=_constant_regressors),
    ],
    "rule_posterior_units": _engine(posterior=_loses_units),
    "rule_purity": _engine(evidence=_writes),
    "rule_outputs_are_independent": _engine(solve=_counts_outputs),
    "rule_order_of_rows": _engine(solve=_sees_the_first_row),
    "rule_posterior_variance": _engine(posterior=_too_wide),
    "rule_weights": _engine(solve=_counts_rows),
    "rule_indefinite_covariance": _engine(solve=_any_covariance),
}
