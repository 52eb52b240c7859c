"""Slopes of the evidence against differences: every likelihood, each engine that takes it."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPClassifier, GPRegressor, likelihoods
from mercer.evidence import engines_that_take
from mercer.kernels import RBF
from mercer.likelihoods import (
    Custom,
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Logistic,
    MixtureNoise,
    Poisson,
    Probit,
    SoftLabels,
    Softmax,
    StudentT,
)
from mercer.likelihoods.labels import Binary
from mercer.params import Parameter

N = 9
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
F = np.sin(X[:, 0]) + 0.3 * X[:, 1]
NOISY = F + 0.2 * RNG.standard_t(3, N)
COUNTS = RNG.poisson(np.exp(F)).astype(float)
CLASSES = np.argsort(np.argsort(F + 0.8 * RNG.normal(size=N))) // 3
SHARES = np.where(np.arange(N) % 3, np.round(RNG.uniform(0.1, 0.9, N), 2), CLASSES > 0)
WEIGHTS = np.where(np.arange(N) == 4, 2.0, 1.0)


def log_sech(y, f):
    return -np.logaddexp(4.0 * (y - f), 4.0 * (f - y)) + np.log(8.0 / np.pi)


def log_of_two_peaks(y, f):
    return np.logaddexp(-2.0 * (y - f - 0.5) ** 2, -2.0 * (y - f + 0.5) ** 2)


EXAMPLES = [
    Gaussian(0.2),
    Gaussian(np.linspace(0.1, 0.4, N)),
    Laplace(0.3),
    EpsilonInsensitive(0.1, 0.3),
    Huber(0.3, 1.0),
    StudentT(4.0, 0.3),
    Poisson(),
    MixtureNoise([0.7, 0.3], [-0.2, 0.4], [0.3, 0.6]),
    Custom(log_sech, log_concave=True),
    Custom(log_of_two_peaks, unimodal=False),
    Logistic(),
    Probit(Parameter(0.7)),
    Probit(0.0),
    SoftLabels(Logistic()),
    SoftLabels(Logistic(), "mixture"),
    SoftLabels(Probit(Parameter(0.7)), "mixture"),
    Softmax(3),
]
PAIRS = [
    pytest.param(likelihood, engine, classes, id=f"{likelihood!r:.40}-{engine}-{classes}")
    for likelihood in EXAMPLES
    for engine in [*engines_that_take(likelihood), *["exact"] * isinstance(likelihood, Gaussian)]
    for classes in ((2, 3) if isinstance(likelihood, Binary) else (3,))
]


def test_every_likelihood_is_among_them():
    public = {getattr(likelihoods, name) for name in likelihoods.__all__}
    assert {type(likelihood) for likelihood in EXAMPLES} == public - {likelihoods.Likelihood}


def fitted(likelihood, engine, classes):
    options = {"inference": engine, "optimizer": None}
    if isinstance(likelihood, SoftLabels):
        options |= {"soft_labels": likelihood.kind, "likelihood": likelihood.likelihood}
        y = np.column_stack([1.0 - SHARES, SHARES])
    elif isinstance(likelihood, Softmax | Binary):
        options |= {"likelihood": likelihood}
        options |= {"multi_class": "one_vs_rest"} if isinstance(likelihood, Binary) else {}
        y = np.minimum(CLASSES, classes - 1)
    else:
        y = COUNTS if isinstance(likelihood, Poisson) else NOISY
        model = GPRegressor(1.3 * RBF(0.9), likelihood, mean="constant", **options)
        return model.fit(X, y, sample_weight=WEIGHTS)
    return GPClassifier(1.3 * RBF(0.9), mean="constant", **options).fit(X, y, WEIGHTS)


@pytest.mark.parametrize(("likelihood", "engine", "classes"), PAIRS)
def test_the_gradient_is_that_of_the_evidence(likelihood, engine, classes):
    model = fitted(likelihood, engine, classes)
    theta = model.theta_  # no optimum, and what each evaluation starts from
    if engine == "map":
        with pytest.raises(ValueError, match="no evidence"):
            model.log_marginal_likelihood(theta, eval_gradient=True)
        return
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood(theta), rel=1e-8)
    step = 1e-4
    steps = step * np.eye(theta.size)
    ends = [[model.log_marginal_likelihood(theta + s * e) for s in (1, -1)] for e in steps]
    slopes = np.array([(up - down) / (2 * step) for up, down in ends])
    # EP's sites are right to 1e-6, and its adjoints with them
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-5)
