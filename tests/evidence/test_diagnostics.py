"""Whether warnings of a search are true of the kernel that was fitted."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import GPClassifier, GPRegressor, means
from mercer.errors import BoundWarning, ConvergenceWarning
from mercer.evidence import Data, Objective, diagnostics, maximise
from mercer.evidence.diagnostics import warn_if_noise_does_better
from mercer.evidence.noise_alone import evidence_of_noise
from mercer.evidence.optimum import Optimum
from mercer.kernels import RBF, Constant, Linear, Periodic
from mercer.likelihoods import Gaussian
from mercer.params import Parameter

RNG = np.random.default_rng(3)
T = RNG.uniform(0, 10, size=(100, 1))
WAVE = np.sin(2 * np.pi * T[:, 0] / 2.5) + 0.1 * RNG.standard_normal(100)
NOISE = RNG.standard_normal(100)


def texts_of(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(w.message) for w in caught]


def test_terms_without_length_scales_get_no_advice_on_them():
    kernel = RBF(Parameter(0.5, fixed=True)) + 1.0 * Linear()
    with pytest.warns(BoundWarning) as caught:
        GPRegressor(kernel).fit(T, WAVE)
    (text,) = [str(w.message) for w in caught]
    assert "kernel.Scaled.variance at its lower bound: this term of the kernel explains" in text
    assert text.endswith("leave it out, or, if there is a signal, try n_restarts=5")
    (text,) = texts_of(GPRegressor(1.0 * RBF(Parameter(0.5, fixed=True))), T, NOISE)
    assert text.endswith("n_restarts=5 or a shorter length_scale")


def test_a_term_that_counts_is_not_called_nothing():
    variance = Parameter(2.0, bounds=(0.4, 3.0))
    (text,) = texts_of(GPRegressor(variance * RBF(Parameter(0.5, fixed=True))), T, 0.7 * WAVE)
    assert "kernel.variance at its lower bound: widen its bounds" in text
    labels = np.where(np.cos(T[:, 0]) + RNG.standard_normal(100) > 0, "a", "b")
    found = texts_of(GPClassifier(variance * RBF(Parameter(9.0, fixed=True))), T, labels)
    assert all("explains nothing" not in text for text in found)


def test_a_share_is_of_what_varies():
    """Far from 0 the linear kernel is large and yet nearly constant."""
    (text,) = texts_of(GPRegressor(1.0 * Linear()), T + 2000.0, NOISE)
    assert "explains nothing" in text


def test_steep_slopes_are_not_called_unrelated_neighbours():
    kernel = Linear(length_scale=Parameter(1.0, bounds=(0.5, 2.0)))
    (text,) = texts_of(GPRegressor(kernel), T, 30.0 * T[:, 0] + WAVE)
    assert "length_scale at its lower bound: widen its bounds" in text
    assert "neighbours" not in text


# --- noise alone --------------------------------------------------------------------------------


def test_a_period_far_from_the_right_one_is_pointed_out():
    model = GPRegressor(1.0 * Periodic())
    with pytest.warns(
        ConvergenceWarning, match=r"noise alone is 2\d\d more.*n_restarts=5.*periods above"
    ):
        model.fit(1000.0 * T, WAVE)
    again = GPRegressor(1.0 * Periodic(), n_restarts=5, random_state=0)
    assert texts_of(again, 1000.0 * T, WAVE) == []
    # a period or a few
    assert again.kernel_.kernel.periodicity / 2500.0 == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("noise", [0.3, RNG.uniform(0.5, 2.0, 30)], ids=["free", "known"])
@pytest.mark.parametrize("weights", [None, RNG.uniform(0.5, 2.0, 30)], ids=["plain", "weighted"])
@pytest.mark.parametrize("mean", [means.Zero(), means.Linear(), means.Constant(2.0, estimate=None)])
def test_the_evidence_of_noise_is_that_of_a_kernel_of_zeros(mean, weights, noise):
    X, Y = T[:30], np.column_stack([WAVE, 3.0 * NOISE])[:30] + 3.0
    likelihood = Gaussian(noise) if weights is None else Gaussian(noise).weighted(weights)
    data = Data(X, Y, weights, np.array([1.0, 2.0]))
    objective = Objective(Constant(0.0), likelihood, mean, data)
    best = maximise(objective).value if objective.theta.size else objective.value(objective.theta)
    assert evidence_of_noise(objective, likelihood) == pytest.approx(best, abs=1e-4)


def test_a_little_less_than_noise_alone_is_no_matter():
    data = Data(T, NOISE[:, None], None, np.ones(1))
    objective = Objective(RBF(1.0), Gaussian(1.0), means.Zero(), data)
    alone = evidence_of_noise(objective, objective.likelihood)
    warn_if_noise_does_better(objective, Optimum(objective.theta, alone - 1.9, "converged", ""))
    with pytest.warns(ConvergenceWarning, match="does worse than without a kernel"):
        warn_if_noise_does_better(objective, Optimum(objective.theta, alone - 2.1, "converged", ""))


def test_the_evidence_that_is_told_has_the_constants_that_a_search_leaves_out():
    weights = np.full(len(T), 2.0)
    data = Data(T, NOISE[:, None], weights, np.full(1, 3.0))
    objective = Objective(RBF(1.0), Gaussian(Parameter(0.5, fixed=True)), means.Zero(), data)
    likelihood = objective.likelihood
    left_out = objective.constant(likelihood)
    assert left_out != 0.0 == objective.constant_of_search(likelihood)
    alone = evidence_of_noise(objective, likelihood)
    # by each row's density to the power 2, in the users' units
    latent = NOISE / 3.0
    whole = np.sum(2.0 * (-0.5 * latent**2 / 0.5 - 0.5 * np.log(2 * np.pi * 0.5) - np.log(3.0)))
    assert alone + left_out == pytest.approx(whole, rel=1e-10)
    told = f"found is {whole - 5.0:.6g}, and that of noise alone is 5 more"
    with pytest.warns(ConvergenceWarning, match=told):
        warn_if_noise_does_better(objective, Optimum(objective.theta, alone - 5.0, "converged", ""))


def test_noise_alone_is_not_weighed_where_another_criterion_was_maximised(monkeypatch):
    """It costs a least-squares problem, and there is nothing to compare it with."""
    monkeypatch.setattr(diagnostics, "evidence_of_noise", lambda *_: pytest.fail("weighed"))
    data = Data(T, NOISE[:, None], None, np.ones(1))
    objective = Objective(RBF(1.0), Gaussian(1.0), means.Zero(), data, "loo")
    warn_if_noise_does_better(objective, Optimum(objective.theta, -1e3, "converged", ""))
