"""Engines for other likelihoods than Gaussian noise keep the rules.

Given Gaussian noise they are exact, and held to the rules of `mercer.testing`. Those that take none
are named here, and held to differences, and to a posterior that can be saved.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from mercer.inference import LatentProblem
from mercer.inference._approximations import approximation
from mercer.inference.softmax import SoftmaxProblem
from mercer.inference.sparse import SparseProblem
from mercer.inference.sparse_laplace import SparseLatentProblem
from mercer.inference.transductive import TransductiveProblem
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Logistic
from mercer.means import Zero
from mercer.posterior import Posterior, load, save
from mercer.testing import engine_rules
from mercer.testing.compare import close, slope

from . import discovery
from .gaussian_engines import (
    ByIterations,
    Mode,
    OfParameters,
    OnAllRows,
    OnGaussianNoise,
    Sparse,
    all_rows_inducing,
    by_iterations,
    outputs_all_rows_inducing,
    outputs_of,
    outputs_on_all_rows,
)

ENGINES = {m.__name__.rpartition(".")[2]: m for m in discovery.latent_engines()}

# An engine that is not named takes a `LatentProblem`.
ADAPTED = {
    "iterative": ByIterations,
    "map": Mode,
    "low_rank": OnAllRows,
    "sparse": Sparse,
    "sparse_ep": OfParameters,
    "sparse_laplace": OfParameters,
}
PROBLEMS = {
    "iterative": by_iterations,
    "low_rank": outputs_on_all_rows,
    "sparse": all_rows_inducing,
    "sparse_ep": outputs_all_rows_inducing,
    "sparse_laplace": outputs_all_rows_inducing,
}
WITH_REGRESSORS = ["iterative", "sparse"]
NO_EVIDENCE = "its value is the joint density at the mode, and not an evidence"
OF_PARAMETERS = "its adjoints are those of parameters, which are held to differences below"
EXCUSED = {
    ("iterative", "rule_adjoint_of_the_gram_matrix"): OF_PARAMETERS,
    ("iterative", "rule_adjoint_of_the_noise"): OF_PARAMETERS,
    ("map", "rule_evidence"): NO_EVIDENCE,
    ("map", "rule_weights"): NO_EVIDENCE,
    ("sparse", "rule_adjoint_of_the_gram_matrix"): OF_PARAMETERS,
    ("sparse", "rule_adjoint_of_the_noise"): OF_PARAMETERS,
    ("sparse", "rule_adjoint_of_the_mean"): OF_PARAMETERS,
    ("sparse_ep", "rule_adjoint_of_the_gram_matrix"): OF_PARAMETERS,
    ("sparse_laplace", "rule_adjoint_of_the_gram_matrix"): OF_PARAMETERS,
}

KERNEL, X = 1.7 * RBF([0.8, 1.5]), np.random.default_rng(0).normal(size=(8, 2))
CODES = np.array([0, 1, 2, 1, 0, 2, 2, 1])
LABELS = np.where(CODES > 0, 1.0, -1.0)
HELD = np.minimum(CODES, 1)


class Other(NamedTuple):
    """An engine that takes no Gaussian noise: why, and a problem that it takes."""

    reason: str
    problem: Any
    options: dict[str, Any] = {}  # noqa: RUF012  (of `evidence`; never changed)


OTHERS = {
    "bounds": Other(
        "its bounds are those of the logistic function",
        LatentProblem(KERNEL, X, LABELS, Logistic(), 0.3 * X[:, 0]),
    ),
    "sparse_bounds": Other(
        "its bounds are those of the logistic function",
        SparseLatentProblem(KERNEL, X, LABELS, Logistic(), 0.3 * X[:, 0], Z=X[:4] + 0.1),
    ),
    "softmax": Other(
        "its latent functions are coupled, one a class",
        SoftmaxProblem(KERNEL, X, np.eye(3)[CODES], 0.3 * X[:, [0, 1, 0]]),
    ),
    "transductive": Other(
        "it finds labels, and has an evidence of those that are held alone",
        TransductiveProblem(
            KERNEL, X, np.where(np.arange(8) < 5, HELD, -1), Logistic(), 0.3 * X[:, :1]
        ),
        {"labels": HELD},
    ),
}


def rules():
    for name, engine in ENGINES.items():
        if name in OTHERS:
            continue
        adapted, make = ADAPTED.get(name, OnGaussianNoise)(engine), PROBLEMS.get(name, outputs_of)
        for rule in engine_rules(adapted, problem=make, regressors=name in WITH_REGRESSORS):
            if (name, rule.name) not in EXCUSED:
                yield pytest.param(rule, id=f"{name}-{rule.name}")


@pytest.mark.parametrize("rule", list(rules()))
def test_with_gaussian_noise(rule):
    rule()


def test_the_lists_are_of_engines_that_exist():
    assert {*ADAPTED, *PROBLEMS, *OTHERS, *(name for name, _ in EXCUSED)} <= set(ENGINES)
    assert len(ENGINES) > len(OTHERS)


@pytest.mark.parametrize("name", OTHERS)
def test_adjoints_by_differences(name):
    engine, (_, problem, options) = ENGINES[name], OTHERS[name]

    def value(**moved):
        solution, _ = engine.evidence(replace(problem, **moved), **options)
        return solution.log_evidence

    _, adjoints = engine.evidence(problem, **options)
    if hasattr(adjoints, "theta"):
        gradient = adjoints.theta
    else:
        gradient = adjoints.factor * KERNEL.pullback(X, None, adjoints.K, inputs=False).theta
    wanted = slope(lambda theta: value(kernel=KERNEL.with_theta(theta)), KERNEL.theta)
    close("dL/dtheta of the kernel", gradient, wanted, 1e-5, 1e-6)
    wanted = slope(lambda mean: value(mean=mean), problem.mean)
    close("dL/d mean", np.reshape(adjoints.mean, wanted.shape), wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("name", ["sparse", "sparse_bounds", "sparse_ep", "sparse_laplace"])
def test_adjoints_of_parameters_by_differences(name):
    """In the kernel's, the noise's and the inducing inputs."""
    engine, noise, Z = ENGINES[name], np.full(8, 0.3), X[:4] + 0.1
    problem = SparseLatentProblem(KERNEL, X, LABELS, Gaussian(0.3), np.zeros(8), Z=Z)
    if name == "sparse":
        problem = SparseProblem(KERNEL, X, LABELS[:, None], noise, Z, approximation("fitc"))
    elif name in OTHERS:
        problem = OTHERS[name].problem

    def value(**moved):
        return engine.solve(replace(problem, **moved)).log_evidence

    _, adjoints = engine.evidence(problem, inputs=True)
    wanted = slope(lambda theta: value(kernel=KERNEL.with_theta(theta)), KERNEL.theta)
    close("dL/dtheta of the kernel", adjoints.theta, wanted, 1e-5, 1e-6)
    close("dL/dZ", adjoints.Z, slope(lambda Z: value(Z=Z), Z), 1e-5, 1e-6)
    if name == "sparse":
        wanted = slope(lambda factor: value(noise=np.exp(factor) * noise), 0.0)
        close("dL/d log noise", adjoints.noise, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("name", OTHERS)
def test_a_posterior_that_can_be_saved(name, tmp_path):
    process, _ = ENGINES[name].posterior(OTHERS[name].problem, Zero())
    assert isinstance(process, Posterior)
    save(process, tmp_path / "process.mercer")
    again, new = load(tmp_path / "process.mercer"), np.vstack([X, X + 0.3])
    np.testing.assert_array_equal(again.mean(new), process.mean(new))
    np.testing.assert_array_equal(again.var(new), process.var(new))
    var = process.var(new)
    assert np.all((var >= 0) & (var <= 1.7 * (1 + 1e-9)))


def test_gaussian_noise_is_refused():
    with pytest.raises(ValueError, match="must be Logistic"):
        ENGINES["bounds"].solve(replace(OTHERS["bounds"].problem, likelihood=Gaussian(0.1)))
    with pytest.raises(ValueError, match=r"likelihood must be Logistic\(\), Probit"):
        replace(OTHERS["transductive"].problem, likelihood=Gaussian(0.1))
