"""Noise from residuals: likeliest values by brute force, and what is given stays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.inference._residual_noise import Noise
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace
from mercer.params import Parameter

RNG = np.random.default_rng(1)
R = RNG.laplace(0.0, 0.7, 200)
W = RNG.uniform(0.5, 2.0, 200)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        (Gaussian(), ["noise"]),
        (Laplace(), ["scale"]),
        (Huber(threshold=1.1), ["scale"]),
        (EpsilonInsensitive(0.4), ["scale"]),
        (EpsilonInsensitive(), ["epsilon", "scale"]),
        (EpsilonInsensitive(scale=0.5), ["epsilon"]),
    ],
    ids=repr,
)
def test_open_noise_is_the_likeliest(spec, names):
    noise = Noise(spec, 1.0)
    found = noise.estimate(R, W, float(np.sum(W)))
    start = noise.begun()

    def cost(logs):
        values = dict(zip(names, np.exp(logs), strict=True))
        if names == ["noise"]:
            likelihood = Gaussian(values["noise"])
        else:
            likelihood = start.from_state(start.to_state() | values)
        return -W @ likelihood.log_density(R, np.zeros(200))

    best = minimize(cost, np.log([0.3] * len(names)), method="Nelder-Mead", tol=1e-12)
    got = -W @ found.log_density(R, np.zeros(200))
    assert got <= best.fun + 1e-6 * abs(best.fun)


def test_coefficients_take_freedom():
    noise = Noise(Gaussian(), 1.0)
    found = noise.estimate(R, np.ones(200), 160.0)
    assert found.noise == pytest.approx(np.sum(R**2) / 160.0)
    found = Noise(Laplace(), 1.0).estimate(R, np.ones(200), 160.0)
    assert found.scale == pytest.approx(np.sum(np.abs(R)) / 160.0)


def test_what_is_given_stays():
    for spec in (Gaussian(0.3), Gaussian(Parameter(0.3)), Laplace(0.2), Huber(0.4)):
        noise = Noise(spec, 1.0)
        assert not noise.is_open and not noise.shapes_the_loss
        assert noise.begun() == spec
        assert noise.estimate(R, W, 100.0) == spec
    noise = Noise(EpsilonInsensitive(0.4), 1.0)
    assert noise.is_open and not noise.shapes_the_loss
    assert noise.estimate(R, W, 100.0).epsilon == 0.4
    assert Noise(Huber(), 1.0).shapes_the_loss
    assert Noise(EpsilonInsensitive(scale=0.4), 1.0).shapes_the_loss
    assert not Noise(EpsilonInsensitive(scale=0.4), 1.0).is_open


def test_a_unit_gives_the_noise():
    assert Noise(Gaussian(), 1.0).with_unit(0.2).noise == 0.2
    assert Noise(Laplace(), 1.0).with_unit(0.2).scale == 0.2
    found = Noise(Huber(threshold=2.0), 1.0).with_unit(0.25)
    assert found.scale == 0.5 and found.threshold == 2.0


@pytest.mark.parametrize("spec", [Gaussian(), Laplace(), Huber(), EpsilonInsensitive()], ids=repr)
def test_no_residuals_leave_the_least_noise(spec):
    noise = Noise(spec, 10.0)
    found = noise.estimate(np.zeros(5), np.ones(5), 3.0)
    assert all(float(p.value) >= 0 for p in found.parameters.values())
    assert 0 < np.sqrt(float(found.conditional_var(0.0))) < 1e-4
