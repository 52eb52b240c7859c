"""The evidence with all functions held: its value, and its derivative in their values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from mercer.inference._columns import ArrayColumns
from mercer.inference._relevance_held import held
from mercer.inference.relevance import RelevanceProblem
from mercer.priors import Flat, GammaPrecision


def case(hyperprior=None, noise=None, weighted=True):
    rng = np.random.default_rng(3)
    Phi = rng.normal(size=(14, 3))
    y = Phi @ [1.0, -0.6, 0.4] + 0.3 * rng.standard_normal(14)
    w = np.where(np.arange(14) % 5 == 0, 0.0, rng.uniform(0.5, 2.0, 14)) if weighted else None

    def problem(Phi):
        prior = Flat() if hyperprior is None else hyperprior
        return RelevanceProblem(ArrayColumns(Phi), y, np.full(14, 0.1), w, prior, noise=noise)

    return problem, Phi, y, w


def test_precisions_and_noise_are_those_of_the_highest_evidence():
    """Against a search over the density of the targets itself."""
    problem, Phi, y, _ = case(weighted=False)
    found = held(problem(Phi), np.ones(3), 1.0)

    def value(t):
        cov = np.exp(t[3]) * np.eye(14) + (Phi * np.exp(-t[:3])) @ Phi.T
        return -multivariate_normal(np.full(14, 0.1), cov).logpdf(y)

    best = minimize(value, np.zeros(4), method="BFGS")
    assert found.value == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(np.log(found.precisions), best.x[:3], atol=1e-3)
    assert np.log(found.noise) == pytest.approx(best.x[3], abs=1e-3)


@pytest.mark.parametrize("noise", [None, 0.2])
@pytest.mark.parametrize("hyperprior", [None, GammaPrecision(0.5, 0.3)], ids=["flat", "gamma"])
def test_the_derivative_in_the_functions_values(hyperprior, noise):
    problem, Phi, *_ = case(hyperprior, noise)
    found = held(problem(Phi), np.ones(3), 0.1)
    rng = np.random.default_rng(0)
    for _ in range(3):
        along, step = rng.normal(size=Phi.shape), 1e-4
        up, down = (held(problem(Phi + s * along), np.ones(3), 0.1).value for s in (step, -step))
        assert np.sum(found.columns * along) == pytest.approx((up - down) / (2 * step), rel=1e-5)
    assert np.all(found.columns[::5] == 0)  # rows without a weight


def test_many_functions_keep_their_precisions():
    rng = np.random.default_rng(1)
    Phi, y = rng.normal(size=(130, 110)), rng.normal(size=130)
    problem = RelevanceProblem(ArrayColumns(Phi), y, np.zeros(130), None, Flat())
    s = rng.uniform(1.0, 2.0, 110)
    found = held(problem, s, 0.3)
    np.testing.assert_array_equal(found.precisions, s)
    cov = 0.3 * np.eye(130) + (Phi / s) @ Phi.T
    wanted = multivariate_normal(np.zeros(130), cov).logpdf(y)
    assert found.noise == 0.3 and found.value == pytest.approx(wanted, abs=1e-8)
