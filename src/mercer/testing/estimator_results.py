"""Rules for what the fit of any estimator leaves: its process, and its evidence if it has one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.posterior import Posterior, Predictive
from mercer.testing.compare import close, expect, identical, refused, slope
from mercer.testing.estimator_case import EstimatorCase, functions, offers, quietly
from mercer.testing.rules import Rules

__all__ = ["RESULTS"]

RESULTS: Rules[EstimatorCase] = Rules()


@RESULTS.add(functions)
def rule_predictive(case: EstimatorCase) -> None:
    """`predictive_` is a Predictive that says what predictions say; so is `posterior_`, if any."""
    model, X = case.model, case.X_new
    latent = case.latent(model)
    assert latent is not None
    mean, std = (np.reshape(part, (len(X), -1)) for part in latent(X, return_std=True))
    names: dict[str, type] = {"predictive_": Predictive}
    if hasattr(model, "posterior_"):
        names["posterior_"] = Posterior
    for name, kind in names.items():
        process: Any = getattr(model, name, None)
        expect(isinstance(process, kind), f"a {kind.__name__} as {name}", process)
        close(f"mean of {name}", process.mean(X), mean, 1e-9, 1e-10 * case.size)
        close(f"variance of {name}", process.var(X), std**2, 1e-7, 1e-12 * case.size**2)
        outputs = mean.shape[1]
        expect(process.n_outputs == outputs, f"{outputs} as n_outputs of {name}", process.n_outputs)
        expect(process.describe(), f"a description of {name}", "nothing")


def _prunable(case: EstimatorCase) -> list[Any]:
    """Return the process of a fit, if it can be pruned; of a committee, say, it cannot be."""
    found = [getattr(case.model, name, None) for name in ("predictive_", "posterior_")]
    return [process for process in found if hasattr(process, "prune")]


def _prunes(case: EstimatorCase) -> str:
    return "" if _prunable(case) else "its process cannot be pruned"


@RESULTS.add(_prunes)
def rule_prune(case: EstimatorCase) -> None:
    """Pruning to all points changes nothing at no loss; fewer points lose more, never less."""
    process, X = _prunable(case)[0], case.X_new
    m = max(1, getattr(process, "n_basis", len(case.X)))
    noise = getattr(getattr(case.model, "likelihood_", None), "new_variance", None)
    same, loss = process.prune(m, noise)
    expect(loss == 0.0, "no loss for keeping all points", loss)
    identical("the mean with all points kept", same.mean(X), process.mean(X))
    before = 0.0
    for kept in (max(1, m - 1), max(1, m // 2), max(1, m // 4)):
        small, loss = process.prune(kept, noise)
        left = getattr(small, "n_basis", kept)
        expect(left <= kept, f"at most {kept} points", left)
        expect(np.isfinite(loss) and loss >= before - 1e-9, f"a loss of {before:g} or more", loss)
        var = small.var(X)
        expect(np.all(np.isfinite(var)) and np.all(var >= 0), "finite variances", var)
        before = loss


@RESULTS.add(offers("log_marginal_likelihood", "log_marginal_likelihood_value_"))
def rule_evidence(case: EstimatorCase) -> None:
    """`log_marginal_likelihood` at the fit is the value kept, and its gradient its derivative."""
    accuracy, error = case.accuracy, case.accuracy.evidence
    for what, model in case.evidence_fits().items():
        kept, theta = model.log_marginal_likelihood_value_, model.theta_
        evidence = model.log_marginal_likelihood
        if np.isnan(kept):
            refused(f"the evidence of {what}, which has none", evidence, "evidence")
            continue
        close(f"evidence, {what}", evidence(theta), kept, error, error)
        close(f"evidence without theta, {what}", evidence(), kept, 1e-12)
        near = theta + 0.05 * np.cos(np.arange(theta.size))
        value, gradient = quietly(evidence, near, eval_gradient=True)
        close(f"evidence with its gradient, {what}", value, evidence(near), 1e-10, 1e-10)
        wanted = slope(evidence, near, accuracy.step)
        close(f"gradient of the evidence, {what}", gradient, wanted, *accuracy.gradient)
