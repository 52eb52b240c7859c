"""The precisions that hyperpriors give to single coefficients, against dense searches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.params import Gamma
from mercer.priors import (
    CustomHyperprior,
    Flat,
    GammaPrecision,
    LaplacianMixture,
    NormalDeviation,
)


def two_peaks(s):
    t = np.log(s)
    return -t + np.logaddexp(-0.5 * (t + 3.0) ** 2, 0.5 - 2.0 * (t - 4.0) ** 2)


CUSTOM = CustomHyperprior(two_peaks)
MIXTURE = LaplacianMixture(Gamma(2.0, 1.0))
logs = st.floats(-14.0, 14.0)
qualities = st.floats(-3.0, 4.0)


def objective(prior, s, S, Q):
    """As the docstring writes it."""
    return 0.5 * (np.log(s) - np.log(s + S) + Q**2 / (s + S)) + prior.log_hyper(s)


def by_grid(prior, S, Q):
    """Return the greatest value over 1e-24 <= s <= 1e24, in steps of 0.3% and then less."""
    t = np.linspace(-55.0, 55.0, 36_001)
    for _ in range(2):
        values = objective(prior, np.exp(t), S, Q)
        best = int(np.argmax(values))
        low, high = t[max(best - 1, 0)], t[min(best + 1, len(t) - 1)]
        t = np.linspace(low, high, 401)
    return float(np.max(values))


def check(prior, S, Q):
    s, gain = prior.best_precision(S, Q)
    assert s.shape == gain.shape == np.shape(S)
    want = by_grid(prior, S, Q)
    scale = 1e-9 * (1.0 + Q**2 / S)
    if want > scale:
        assert float(gain) == pytest.approx(want, abs=scale)
        assert float(objective(prior, s, S, Q)) == pytest.approx(float(gain), abs=scale)
    elif want < -scale:
        assert s == np.inf and gain == 0.0


@settings(max_examples=60, deadline=None)
@given(logs, qualities, logs, st.floats(-10.0, 3.0))
def test_gamma(log_S, log_q, log_b, log_a):
    S = np.exp(log_S)
    check(GammaPrecision(np.exp(log_a), np.exp(log_b)), S, np.sqrt(S) * np.exp(0.5 * log_q))


@settings(max_examples=25, deadline=None)
@given(logs, qualities, st.floats(-6.0, 6.0))
def test_normal_deviation(log_S, log_q, log_width):
    S = np.exp(log_S)
    check(NormalDeviation(np.exp(log_width)), S, np.sqrt(S) * np.exp(0.5 * log_q))


@settings(max_examples=25, deadline=None)
@given(logs, qualities, st.sampled_from([CUSTOM, MIXTURE, GammaPrecision(0.0, 2.0)]))
def test_others(log_S, log_q, prior):
    S = np.exp(log_S)
    check(prior, S, np.sqrt(S) * np.exp(0.5 * log_q))


def test_flat_in_closed_form():
    S, Q = np.array([2.0, 2.0, 0.5, 3.0]), np.array([3.0, 1.0, -4.0, np.sqrt(3.0)])
    s, gain = Flat().best_precision(S, Q)
    inside = Q**2 > S * (1 + 1e-12)
    np.testing.assert_array_equal(np.isfinite(s), inside)
    np.testing.assert_allclose(s[inside], (S**2 / (Q**2 - S))[inside], rtol=1e-13)
    want = objective(Flat(), s[inside], S[inside], Q[inside])
    np.testing.assert_allclose(gain[inside], want, rtol=1e-12)
    np.testing.assert_array_equal(gain[~inside], 0.0)
    for same in (GammaPrecision(0.0, 0.0), CustomHyperprior(lambda s: -np.log(s))):
        other, value = same.best_precision(S, Q)
        np.testing.assert_allclose(other, s, rtol=1e-7)
        np.testing.assert_allclose(value, gain, rtol=1e-9, atol=1e-12)


def test_vague_gamma_is_next_to_flat():
    S = np.geomspace(0.1, 100.0, 9)
    Q = np.sqrt(S * np.linspace(0.5, 9.0, 9))
    s, gain = GammaPrecision(1e-9, 1e-9).best_precision(S, Q)
    flat, flat_gain = Flat().best_precision(S, Q)
    np.testing.assert_allclose(s, flat, rtol=1e-5)
    np.testing.assert_allclose(gain, flat_gain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("prior", [Flat(), GammaPrecision(), NormalDeviation(), MIXTURE, CUSTOM])
def test_shapes_and_columns_that_are_explained(prior):
    s, gain = prior.best_precision(np.ones((2, 3)), 4.0)
    assert s.shape == gain.shape == (2, 3) and np.all(gain == gain[0, 0]) and gain[0, 0] > 0
    s, gain = prior.best_precision([0.0, 1.0], [1.0, 4.0])  # S = 0: nothing of it is left
    assert s[0] == np.inf and gain[0] == 0.0 and np.isfinite(s[1])
    s, gain = prior.best_precision(np.empty(0), np.empty(0))
    assert s.shape == gain.shape == (0,)


@pytest.mark.parametrize("prior", [Flat(), GammaPrecision(), NormalDeviation(), MIXTURE, CUSTOM])
def test_sparsities_at_the_ends_of_what_a_double_holds(prior):
    # Of a function that is 0 but for rounding; nothing is to overflow, and it is to stay out.
    s, gain = prior.best_precision([1e-300, 5e-324, 1.0, 1e200], [1e-160, 0.0, 4.0, 1e99])
    assert np.all(gain >= 0.0) and np.all(s > 0.0)
    assert np.all(gain[[0, 1, 3]] == 0.0) and gain[2] > 0.0


# --- the update -------------------------------------------------------------------------------


def test_update_of_gamma_is_the_papers():
    """(BKM 134, as corrected)"""
    s, mu2, xi = np.array([0.5, 3.0]), np.array([0.2, 1e-3]), np.array([1.1, 0.3])
    a, b = 0.3, 0.05
    want = (1 - s * xi + 2 * a) / (mu2 + 2 * b)
    np.testing.assert_allclose(GammaPrecision(a, b).update(s, mu2, xi), want, rtol=1e-14)
    np.testing.assert_allclose(Flat().update(s, mu2, xi), (1 - s * xi) / mu2, rtol=1e-14)
    assert Flat().update(1.0, 0.0, 0.5) == np.inf


@pytest.mark.parametrize("prior", [NormalDeviation(0.6), MIXTURE, CUSTOM, GammaPrecision(2.0, 0.1)])
def test_update_solves_its_equation(prior):
    s, mu2 = np.array([0.1, 0.5, 3.0, 40.0]), np.array([2.0, 0.2, 0.01, 1e-3])
    xi = 0.7 / s
    new = prior.update(s, mu2, xi)
    np.testing.assert_allclose(1 - s * xi + 2 * prior.slope(new), new * mu2, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("prior", [Flat(), GammaPrecision(0.5, 0.1), NormalDeviation(2.0), MIXTURE])
def test_update_stays_at_the_best_precision(prior):
    """Of one coefficient mu = Q/(s + S) and Xi = 1/(s + S)."""
    S, Q = np.array([0.5, 2.0, 9.0]), np.array([3.0, 4.0, 20.0])
    s, _ = prior.best_precision(S, Q)
    again = prior.update(s, (Q / (s + S)) ** 2, 1 / (s + S))
    np.testing.assert_allclose(again, s, rtol=1e-7)
