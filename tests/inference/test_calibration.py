"""Slopes and offsets for margins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, ndtr

from mercer.inference._calibration import Calibration, calibrate, narrowing, size_of, surest
from mercer.likelihoods import Logistic, Probit
from mercer.priors import FeatureSelection, Laplacian

RNG = np.random.default_rng(2)
F = RNG.normal(size=400)
W = RNG.uniform(0.5, 2.0, 400)


@pytest.mark.parametrize(("link", "function"), [(Logistic(), expit), (Probit(), ndtr)])
def test_it_is_the_likeliest_of_smoothed_labels(link, function):
    y = np.where(RNG.uniform(size=400) < function(2.0 * F - 0.7), 1.0, -1.0)
    narrow = RNG.uniform(1.0, 1.5, 400)
    found = calibrate(link, F, y, W, narrow)
    up, down = np.sum(W[y > 0]), np.sum(W[y < 0])
    t = np.where(y > 0, (up + 1) / (up + 2), 1 / (down + 2))

    def cost(x):
        p = np.clip(function((x[0] * F + x[1]) / narrow), 1e-15, 1 - 1e-15)
        return -W @ (t * np.log(p) + (1 - t) * np.log1p(-p))

    best = minimize(cost, [1.0, 0.0], tol=1e-10)
    assert found == pytest.approx(tuple(best.x), abs=2e-4)
    assert calibrate(link, F, y, W) == pytest.approx((2.0, -0.7), abs=0.5)
    # units of the margins change nothing
    other = calibrate(link, 1e6 * F, y, W, narrow)
    assert (1e6 * other[0], other[1]) == pytest.approx(found, rel=1e-6)


def test_labels_that_can_be_separated_have_a_finite_slope():
    y = np.where(F > 0.1, 1.0, -1.0)
    slope, offset = calibrate(Logistic(), F, y, np.ones(400))
    assert 1.0 < slope < 1e4 and np.isfinite(offset)


def test_margins_that_are_wrong_have_no_slope():
    y = np.where(F > 0, -1.0, 1.0)
    slope, offset = calibrate(Probit(), F, y, np.ones(400))
    assert slope == 0.0
    share = (np.sum(y > 0) + 0.0) / 400
    assert ndtr(offset) == pytest.approx(share, abs=0.01)
    assert calibrate(Logistic(), np.zeros(400), y, np.ones(400))[0] == 0.0


def test_weights_are_rows_again():
    y = np.where(F + RNG.normal(size=400) > 0, 1.0, -1.0)
    w = np.ones(400)
    w[:50] = 3.0
    again = np.concatenate([np.arange(400), np.repeat(np.arange(50), 2)])
    got, wanted = (
        calibrate(Logistic(), F, y, w),
        calibrate(Logistic(), F[again], y[again], w[again] * 0 + 1),
    )
    assert got == pytest.approx(wanted, rel=1e-9)


def test_narrowing_is_that_of_averages():
    z = RNG.standard_normal(400_000)
    v = np.array([0.0, 0.5, 3.0])
    exact = [np.mean(ndtr(0.8 + np.sqrt(each) * z)) for each in v]
    np.testing.assert_allclose(ndtr(0.8 / narrowing(Probit(), v)), exact, atol=2e-3)
    exact = [np.mean(expit(0.8 + np.sqrt(each) * z)) for each in v]
    np.testing.assert_allclose(expit(0.8 / narrowing(Logistic(), v)), exact, atol=1e-2)


@pytest.mark.parametrize(("link", "function"), [(Logistic(), expit), (Probit(), ndtr)])
@pytest.mark.parametrize("total", [0.5, 10.0, 1e6, 1e20])
def test_the_surest_label_is_what_as_many_labels_tell(link, function, total):
    most = surest(link, total)
    assert np.isfinite(most)
    assert function(-most) == pytest.approx(1.0 / (total + 2.0), rel=1e-9)


@pytest.mark.parametrize("link", [Logistic(), Probit()])
@pytest.mark.parametrize("slope", [0.0, 0.7, 1e6])
def test_offsets_of_a_borrowed_calibration_give_labels_their_shares(link, slope):
    rng = np.random.default_rng(0)
    margin, weights = rng.normal(size=80), rng.uniform(0.5, 2.0, 80)
    y = np.where(rng.random(80) < 0.2, 1.0, -1.0)
    own = Calibration(slope, 5.0, (0.5 * slope, -3.0)).sharing(link, margin, y, weights)
    assert own.slope == slope and own.bars[0] == 0.5 * slope
    wanted = np.average(y > 0, weights=weights)
    for latent in (own.latent(margin), own.centre(margin)):
        found = np.average(np.exp(link.log_density(np.ones(80), latent)), weights=weights)
        assert found == pytest.approx(wanted, abs=2e-3 if slope > 1.0 else 1e-9)
    one = np.ones(80)  # labels that are all the same have no share to go by
    assert own.sharing(link, margin, one, weights) == own


def test_functions_of_any_size_are_calibrated_alike():
    rng = np.random.default_rng(0)
    f, weights = rng.normal(size=50), rng.uniform(0.5, 2.0, 50)
    sizes = [size_of(units * f, weights, FeatureSelection) for units in (1.0, 1e4)]
    assert sizes[1] == pytest.approx(1e4 * sizes[0])
    assert sizes[0] == pytest.approx(np.sqrt(np.sum(weights * f**2) / np.sum(weights)))
    assert size_of(1e4 * f, weights, Laplacian) == size_of(0.0 * f, None, FeatureSelection) == 1.0
    one = Calibration(2.0, 0.3, (1.5, -0.1))
    near = one.of(1e4)
    np.testing.assert_allclose(near.latent(1e4 * f), one.latent(f))
    np.testing.assert_allclose(near.centre(1e4 * f), one.centre(f))
