"""The softmax of several latent values."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods import Logistic, Softmax
from mercer.registry import from_json, to_json

rng = np.random.default_rng(0)
F = rng.normal(size=(6, 4)) * 2
HARD = np.eye(4)[rng.integers(0, 4, 6)]
SOFT = rng.dirichlet(np.ones(4), 6)
IT = Softmax(4)

targets = pytest.mark.parametrize("Y", [HARD, SOFT], ids=["one-hot", "soft"])


def naive(Y, F):
    P = np.exp(F) / np.exp(F).sum(axis=1, keepdims=True)
    return (Y * np.log(P)).sum(axis=1), P


def curvature(F):
    """Minus the Hessian of each row, diag(P) - P P'."""
    return np.array([np.diag(p) - np.outer(p, p) for p in naive(0.0, F)[1]])


@targets
def test_density_and_probabilities(Y):
    value, P = naive(Y, F)
    np.testing.assert_allclose(IT.log_density(Y, F), value, rtol=1e-13)
    np.testing.assert_allclose(IT.probabilities(F), P, rtol=1e-13)


@targets
def test_gradient_by_differences(Y):
    got, h = Y - IT.probabilities(F), 1e-5
    for c in range(4):
        step = h * np.eye(4)[c]
        want = (IT.log_density(Y, F + step) - IT.log_density(Y, F - step)) / (2 * h)
        np.testing.assert_allclose(got[:, c], want, rtol=0, atol=1e-9)


def test_curvature_by_differences():
    """Minus the gradient's derivative, which is that of the probabilities."""
    V, h = rng.normal(size=(6, 4)), 1e-5
    want = (IT.probabilities(F + h * V) - IT.probabilities(F - h * V)) / (2 * h)
    got = IT.curvature_times(IT.probabilities(F), V)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9)


def test_curvature_is_the_fisher_information():
    P, V = IT.probabilities(F), rng.normal(size=(6, 4))
    g = np.eye(4)[:, None, :] - P  # the gradient for each class: (class, n, C)
    want = np.einsum("nk,knc,knd,nd->nc", P, g, g, V)
    np.testing.assert_allclose(IT.curvature_times(P, V), want, atol=1e-14)


def test_products_with_the_curvature():
    P, W = IT.probabilities(F), curvature(F)
    V, T = rng.normal(size=(6, 4)), rng.normal(size=(6, 4, 3))
    np.testing.assert_allclose(IT.curvature_times(P, V), np.einsum("ncd,nd->nc", W, V), atol=1e-14)
    np.testing.assert_allclose(
        IT.curvature_times(P, T), np.einsum("ncd,ndk->nck", W, T), atol=1e-14
    )


def test_pull_curvature_by_differences():
    S = rng.normal(size=(6, 4, 4))
    S = S + S.transpose(0, 2, 1)
    got, h = IT.pull_curvature(IT.probabilities(F), S), 1e-5
    for c in range(4):
        step = h * np.eye(4)[c]
        rise = curvature(F + step) - curvature(F - step)
        np.testing.assert_allclose(got[:, c], np.sum(S * rise, axis=(1, 2)) / (2 * h), atol=1e-9)


def test_two_classes_are_the_logistic():
    two, f = Softmax(2), rng.normal(size=(7, 2)) * 3
    y = np.where(rng.uniform(size=7) < 0.5, 1.0, -1.0)
    Y = two.one_hot((y > 0).astype(int))
    margin = f[:, 1] - f[:, 0]
    close = {"rtol": 1e-12, "atol": 1e-15}  # next to 1, a probability has no more digits
    np.testing.assert_allclose(two.log_density(Y, f), Logistic().log_density(y, margin), **close)
    first, second, _ = Logistic().derivatives(y, margin)
    P = two.probabilities(f)
    np.testing.assert_allclose((Y - P)[:, 1], first, **close)
    V = np.tile([0.0, 1.0], (7, 1))
    np.testing.assert_allclose(two.curvature_times(P, V)[:, 1], -second, **close)


def test_a_shift_and_a_permutation_change_nothing():
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(
        IT.log_density(SOFT[:, order], F[:, order]), IT.log_density(SOFT, F), rtol=1e-13
    )
    np.testing.assert_allclose(IT.log_density(SOFT, F + 100.0), IT.log_density(SOFT, F), rtol=1e-12)


def test_extremes():
    far = np.array([[1e200, 0.0, 0.0, -1e200], [-1e3, 1e3, 0.0, 0.0]])
    P = IT.probabilities(far)
    np.testing.assert_allclose(P, [[1, 0, 0, 0], [0, 1, 0, 0]], atol=1e-300)
    np.testing.assert_array_equal(IT.log_density(np.eye(4)[[0, 1]], far), [0.0, 0.0])
    assert IT.log_density(np.eye(4)[[1]], far[:1])[0] == -1e200
    np.testing.assert_allclose(IT.curvature_times(P, F[:2]), 0.0, atol=1e-300)


def test_samples():
    draws = IT.sample(np.repeat(F[:1], 50_000, axis=0), np.random.default_rng(1))
    frequency = np.bincount(draws, minlength=4) / draws.size
    np.testing.assert_allclose(frequency, IT.probabilities(F[:1])[0], atol=0.01)
    again = IT.sample(np.repeat(F[:1], 50_000, axis=0), np.random.default_rng(1))
    np.testing.assert_array_equal(draws, again)


def test_parameters_and_storage():
    assert IT.theta.shape == (0,) and IT.with_theta([]) == IT
    assert from_json(to_json(IT)) == IT != Softmax(3)
    assert repr(IT) == "Softmax(n_classes=4)"
    assert hash(IT) == hash(Softmax(4))
    np.testing.assert_array_equal(IT.initial(HARD), np.zeros((6, 4)))
    np.testing.assert_array_equal(IT.targets(SOFT), SOFT)
    assert IT.is_log_concave and IT.has_curvature and IT.is_positive


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: Softmax(1), "n_classes must be a whole number of at least 2, got 1"),
        (lambda: Softmax(2.5), "n_classes must be"),
        (lambda: Softmax(True), "n_classes must be"),
        (lambda: Softmax("three"), "n_classes must be"),
        (lambda: IT.log_density(HARD[:, :3], F), r"Y must be numbers of shape \(n, 4\)"),
        (lambda: IT.log_density(HARD, F[:, 0]), r"F must be numbers of shape \(n, 4\)"),
        (lambda: IT.log_density(HARD, np.full((6, 4), np.nan)), "F must be finite"),
        (lambda: IT.log_density(2 * HARD, F), "adding up to 1"),
        (lambda: IT.log_density(HARD[:4], F), "rows"),
        (lambda: IT.targets([[1.5, -0.5, 0.0, 0.0]]), "at least 0 and adding up to 1"),
        (lambda: IT.targets([["a", "b", "c", "d"]]), "Y must be numbers"),
        (lambda: IT.one_hot([0, 4]), "integers from 0 to 3"),
        (lambda: IT.one_hot([0.5]), "integers from 0 to 3"),
    ],
)
def test_bad_arguments(call, match):
    with pytest.raises(ValueError, match=match):
        call()
