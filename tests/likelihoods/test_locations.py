"""The most probable location of several observations (BKM 9 to 13): what each noise averages by."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace


def most_probable(likelihood, y):
    """Return the ends of the set of f that maximise sum_i log p(y_i | f), a concave function."""
    grid = np.unique(np.concatenate([y, *[k for k in likelihood.knots(y).T]]))
    total = likelihood.log_density(y[:, None], grid).sum(axis=0)
    best = grid[total >= total.max() - 1e-9]
    return best.min(), best.max()


def root_of_slopes(likelihood, y):
    low, high = y.min(), y.max()
    for _ in range(200):
        middle = 0.5 * (low + high)
        up = likelihood.derivatives(y, middle)[0].sum() > 0
        low, high = (middle, high) if up else (low, middle)
    return 0.5 * (low + high)


Y = np.array([-7.3, -1.2, -0.4, 0.1, 0.3, 0.5, 0.9, 1.6, 55.0])


def test_gaussian_noise_leads_to_the_mean():
    # (BKM 9)
    assert root_of_slopes(Gaussian(0.3), Y) == pytest.approx(Y.mean(), rel=1e-12)


def test_laplacian_noise_leads_to_the_median():
    # (BKM 10, 11)
    assert most_probable(Laplace(0.3), Y) == (np.median(Y), np.median(Y))
    even = Y[:-1]
    assert most_probable(Laplace(0.3), even) == (even[3], even[4])


def test_hubers_noise_leads_to_a_trimmed_mean():
    # (BKM 12): as many are beyond the threshold above as below, so the mean of the others.
    s, k = 1.0, 2.0
    at = root_of_slopes(Huber(s, k), Y)
    inside = np.abs(Y - at) <= k * s
    assert np.sum(Y > at + k * s) == np.sum(Y < at - k * s) == 1
    assert at == pytest.approx(Y[inside].mean(), rel=1e-12)
    # the more general condition: excess above and below pull with the threshold's force
    skew = np.append(Y, [40.0, 70.0])
    at = root_of_slopes(Huber(s, k), skew)
    inside = np.abs(skew - at) <= k * s
    more = np.sum(skew > at + k * s) - np.sum(skew < at - k * s)
    assert at == pytest.approx(skew[inside].mean() + k * s * more / inside.sum(), rel=1e-12)


def test_insensitive_noise_leads_to_a_midpoint():
    # (BKM 13): the middle of the two extreme observations within epsilon
    e = 3.0
    low, high = most_probable(EpsilonInsensitive(e, 0.5), Y)
    at = 0.5 * (low + high)
    inside = Y[np.abs(Y - at) <= e]
    assert np.sum(Y > at + e) == np.sum(Y < at - e) == 1
    assert at == pytest.approx(0.5 * (inside.min() + inside.max()), rel=1e-12)
    # with all of them within, that of the whole
    low, high = most_probable(EpsilonInsensitive(40.0, 0.5), Y)
    assert 0.5 * (low + high) == pytest.approx(0.5 * (Y.min() + Y.max()), rel=1e-12)


def test_robust_locations_ignore_gross_errors():
    spoilt = np.where(Y == 55.0, 1e9, Y)
    for likelihood in (Laplace(0.3), EpsilonInsensitive(0.2, 0.3), Huber(0.3, 1.0)):
        a, b = root_of_slopes(likelihood, Y), root_of_slopes(likelihood, spoilt)
        assert a == pytest.approx(b, abs=1e-6)
