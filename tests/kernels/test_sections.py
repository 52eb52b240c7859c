"""Features, the equivalent process, and flipped spectra."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import (
    RBF,
    Callable,
    EquivalentGP,
    Exponential,
    Features,
    Flipped,
    Linear,
    Polynomial,
    Precomputed,
    Sum,
    Tanh,
)

from .cases import SIGMA, bumps, bumps_jacobian, shared_letters

rng = np.random.default_rng(0)
X = rng.normal(size=(6, 2))


# --- features -------------------------------------------------------------------------------------


def test_features_of_the_coordinates_are_linear():
    """(BKM 41) with f the identity and Sigma = 1 is the linear kernel."""
    np.testing.assert_array_equal(Features(np.array)(X), Linear()(X))
    squares = Features(lambda A: np.stack([A[:, 0] ** 2, A[:, 1] ** 2, A[:, 0] * A[:, 1]], axis=1))
    weights = np.diag([1.0, 1.0, 2.0])
    np.testing.assert_allclose(Features(squares.f, weights)(X), Polynomial(2, 0.0)(X), atol=1e-12)


def test_differences_agree_with_the_jacobian():
    G = rng.normal(size=(6, 6))
    exact = Features(bumps, SIGMA, jacobian=bumps_jacobian).pullback(100.0 * X, X, G)
    differences = Features(bumps, SIGMA).pullback(100.0 * X, X, G)
    np.testing.assert_allclose(differences.X, exact.X, rtol=1e-7, atol=1e-5)
    np.testing.assert_allclose(differences.Z, exact.Z, rtol=1e-7, atol=1e-5)


def test_what_features_refuse():
    for Sigma, message in (
        (np.ones((2, 3)), "square"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive semi-definite"),
        (np.array([[np.nan]]), "square matrix of numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            Features(bumps, Sigma)
    with pytest.raises(ValueError, match="f must be a function"):
        Features(3)
    with pytest.raises(ValueError, match="jacobian must be a function"):
        Features(bumps, jacobian=3)
    with pytest.raises(ValueError, match=r"f must return an array of shape \(6, 2\), got \(6, 3\)"):
        Features(bumps, np.eye(2))(X)
    with pytest.raises(ValueError, match=r"f must return an array of shape \(6, q\), got \(6,\)"):
        Features(lambda A: A[:, 0])(X)
    with pytest.raises(ValueError, match="f returned NaN"):
        Features(lambda A: A * np.nan)(X)
    with pytest.raises(ValueError, match="jacobian must return"):
        Features(bumps, jacobian=bumps).pullback(X, None, np.ones((6, 6)))


# --- the equivalent process -----------------------------------------------------------------------


def test_equivalent_process_is_the_covariance_of_the_expansion():
    """(BKM 113) with coefficients of variance 1, by simulation."""
    points = rng.normal(size=(4, 2))
    k = EquivalentGP(Tanh(0.7, 0.2), points)
    theta = rng.choice([-1.0, 1.0], size=(200_000, 4))  # neither Gaussian nor Laplacian
    draws = theta @ Tanh(0.7, 0.2)(points, X[:3]) / np.sqrt(4)
    np.testing.assert_allclose(draws.T @ draws / len(draws), k(X[:3]), atol=0.02)


def test_equivalent_process_over_words():
    words = ["ab", "bcd", "ace"]
    k = EquivalentGP(Callable(shared_letters), words)
    K = Callable(shared_letters)(words)
    np.testing.assert_allclose(k(words), K @ K / 3)
    assert not k.is_numeric


def test_what_sections_refuse():
    for make in (EquivalentGP, Flipped):
        with pytest.raises(ValueError, match="takes a kernel, got 'rbf'"):
            make("rbf", X)
        with pytest.raises(ValueError, match="must have rows and columns"):
            make(RBF(), X[0])
        with pytest.raises(ValueError, match="at least one row"):
            make(RBF(), X[:0])
        with pytest.raises(ValueError, match="NaN"):
            make(RBF(), X * np.nan)
        with pytest.raises(ValueError, match="points of 2 columns, but the inputs have 3"):
            make(RBF(), X)(np.ones((2, 3)))


# --- flipped spectra ------------------------------------------------------------------------------


def test_flipped_needs_anchors():
    k = Flipped(Tanh(1.0, -0.5))
    assert k.is_mercer
    for call in (
        lambda: k(X),
        lambda: (2.0 * k + RBF()).gram_lower(X),
        lambda: k.diag(X),
        lambda: k.pullback(X, None, np.ones((6, 6))),
    ):
        with pytest.raises(ValueError, match="Flipped has no anchors yet"):
            call()


def test_anchors_reach_every_part():
    k = 2.0 * Flipped(Tanh(1.0, -0.5)) + Flipped(Tanh(), anchors=X[:2]) * Flipped(Tanh()).on(1)
    anchored = k.anchored(X)
    assert isinstance(anchored, Sum)
    parts = anchored.kernels
    np.testing.assert_array_equal(parts[0].kernel.anchors, X)
    np.testing.assert_array_equal(parts[1].kernels[0].anchors, X[:2])
    np.testing.assert_array_equal(parts[1].kernels[1].kernel.anchors, X[:, [1]])
    assert k.kernels[0].kernel.anchors is None
    assert RBF().anchored(X) == RBF()
    nested = EquivalentGP(Flipped(Tanh()), X).anchored(X)
    assert nested.kernel == Flipped(Tanh(), X)


def test_flipped_mercer_kernel_is_itself_on_the_anchors():
    k = Exponential(0.7)
    np.testing.assert_allclose(Flipped(k, X)(X), k(X), atol=1e-12)
    # elsewhere it is what the anchors explain
    Z = rng.normal(size=(4, 2))
    explained = k(Z, X) @ np.linalg.solve(k(X), k(X, Z))
    np.testing.assert_allclose(Flipped(k, X)(Z), explained, atol=1e-12)


def test_the_spectrum_is_computed_once_for_each_value_of_the_parameters(monkeypatch):
    calls = []
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda K: calls.append(1) or eigh(K))
    k = Flipped(Tanh(1.0, -0.5), X)
    first = k(X)
    k.diag(X), k.pullback(X, None, np.ones((6, 6))), k(X[:2])
    assert len(calls) == 1
    moved = k.with_theta(k.theta + 0.3)
    assert not np.allclose(moved(X), first)
    assert len(calls) == 2
    np.testing.assert_allclose(moved.with_theta(k.theta)(X), first, rtol=1e-12)
    held = k.anchored(X[:3])
    np.testing.assert_array_equal(held(X), first)


@pytest.mark.parametrize("make", [lambda: RBF(3.0), lambda: Tanh(0.3, -0.2)])
def test_derivatives_where_eigenvalues_vanish(make):
    """Repeated anchors and a long length scale: the spectrum falls through the tolerance."""
    A = np.random.default_rng(3).normal(size=(40, 2))
    A[5] = A[6]
    G = np.random.default_rng(4).normal(size=(40, 40))
    G = G + G.T
    k = Flipped(make(), A)
    values = np.abs(np.linalg.eigvalsh(make()(A)))
    assert values.min() < 1e-14 * values.max()
    step = 1e-5
    for i, slope in enumerate(k.pullback(A, None, G, inputs=False).theta):
        e = np.zeros(k.theta.size)
        e[i] = step
        rise = np.sum(G * (k.with_theta(k.theta + e)(A) - k.with_theta(k.theta - e)(A)))
        np.testing.assert_allclose(slope, rise / (2.0 * step), rtol=1e-4)


def test_derivatives_where_sections_leave_the_range_of_the_anchors():
    """K_AA = D S D, with a diagonal D of the length scales, turns but keeps its rank, 2 of 4.

    The sections at other points, numbers 4 to 6 of the table, are not in its range.
    """
    local = np.random.default_rng(5)
    B = local.normal(size=(4, 2))
    table = local.normal(size=(7, 7))
    table = table + table.T
    table[:4, :4] = B @ np.diag([1.0, -1.0]) @ B.T
    A = np.hstack([local.normal(size=(4, 2)), np.arange(4.0)[:, None]])
    Z = np.hstack([X[:3], np.arange(4.0, 7.0)[:, None]])
    inner = EquivalentGP(RBF([0.7, 1.9]), X[:1]).on([0, 1]) * Precomputed(table).on(2)
    k = Flipped(inner, A)
    assert k._spectrum().root.shape == (4, 2)
    G = np.random.default_rng(6).normal(size=(3, 3))
    gradient = k.pullback(Z, Z[::-1], G, inputs=False)
    for i, e in enumerate(1e-5 * np.eye(2)):
        up, down = k.with_theta(k.theta + e), k.with_theta(k.theta - e)
        rise = np.sum(G * (up(Z, Z[::-1]) - down(Z, Z[::-1])))
        np.testing.assert_allclose(gradient.theta[i], rise / 2e-5, rtol=1e-6)


def test_a_kernel_of_zeros_flips_to_zeros():
    k = Flipped(Linear(), np.zeros((3, 2)))
    np.testing.assert_array_equal(k(X), 0.0)
