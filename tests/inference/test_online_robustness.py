"""On-line learning of awkward streams: duplicates, extremes, near-singular bases, any shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import means
from mercer.inference import _online_rows
from mercer.inference._tilted import Tilted
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF, Exponential, Linear, Polynomial
from mercer.likelihoods import Gaussian, Laplace, Logistic, Probit, StudentT
from mercer.linalg._recursion_twins import CHECK_EVERY
from mercer.posterior import Basis, Dense, Posterior

from .online_dense import exact, gaussian_site, rbf


def sane(process, before, X, skipped=0):
    """No NaN and no negative variance, before or after, at the rows or far away."""
    assert np.all(np.isfinite(before.mean))
    assert np.all(before.var >= 0)
    assert np.sum(~np.isfinite(before.log_density)) == skipped
    posterior = process.posterior()
    points = process.points if process.n_basis else X[:0]
    away = np.vstack([X[:5], X[-5:], points, np.full((1, X.shape[1]), 1e3)])
    mean, var = posterior.mean_and_var(away)
    assert np.all(np.isfinite(mean))
    assert np.all(var >= 0)
    assert np.all(var <= 1.0 + np.max(process.kernel.diag(away)) * (1 + 1e-6))
    assert np.isfinite(process.log_evidence)
    assert np.isfinite(process.projection_loss)
    assert process.projection_loss >= 0
    assert process.n_basis <= process.rules.max_basis


@pytest.mark.parametrize("criterion", ["mean", "kl"])
@pytest.mark.parametrize("likelihood", [Gaussian(0.1), Probit(0.5), StudentT(4.0, 0.3)])
def test_a_single_point(likelihood, criterion):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 2)), np.where(rng.normal(size=(200, 1)) > 0, 1.0, -1.0)
    process = OnlineProcess(RBF(1.0), likelihood, max_basis=1, criterion=criterion)
    before = process.learn(X, Y)
    sane(process, before, X)
    assert process.n_basis == 1


@pytest.mark.parametrize("likelihood", [Gaussian(0.5), Probit(0.5)])
def test_a_row_again_and_again(likelihood):
    """Copies of one input never make a second point; with Gaussian noise they are its average."""
    rng = np.random.default_rng(1)
    X, Y = np.full((3000, 2), 0.3), 1.0 + rng.normal(size=(3000, 1))
    if isinstance(likelihood, Probit):
        Y = np.where(Y > 0, 1.0, -1.0)
    process = OnlineProcess(2.0 * RBF(1.0), likelihood, max_basis=10)
    before = process.learn(X, Y)
    sane(process, before, X)
    assert process.n_basis == 1
    assert process.projection_loss < 1e-9
    if isinstance(likelihood, Gaussian):
        var = 1 / (1 / 2.0 + 3000 / 0.5)
        mean, own = process.posterior().mean_and_var(X[:1])
        assert own[0, 0] == pytest.approx(var, rel=1e-9)
        assert mean[0, 0] == pytest.approx(var * np.sum(Y) / 0.5, rel=1e-9)


@pytest.mark.parametrize("likelihood", [Gaussian(0.5), Probit(0.5), Probit(0.0), Logistic()])
def test_alternating_labels_at_one_place(likelihood):
    X, Y = np.zeros((1000, 1)), np.where(np.arange(1000) % 2, 1.0, -1.0)[:, None]
    process = OnlineProcess(RBF(1.0), likelihood)
    before = process.learn(X, Y)
    sane(process, before, X)
    assert abs(process.posterior().mean(X[:1])[0, 0]) < 0.2


@pytest.mark.parametrize("y", [0.0, 3.0])
def test_a_constant_stream(y):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (2000, 1))
    process = OnlineProcess(RBF(1.0), Gaussian(0.01), max_basis=15, criterion="kl")
    before = process.learn(X, np.full((2000, 1), y))
    sane(process, before, X)
    np.testing.assert_allclose(process.posterior().mean(X)[:, 0], y, atol=0.05)


@pytest.mark.parametrize("criterion", ["mean", "kl"])
@pytest.mark.parametrize("likelihood", [Gaussian(0.1), Laplace(0.3), StudentT(3.0, 0.3)])
def test_a_change_of_scale_by_a_million(likelihood, criterion):
    rng = np.random.default_rng(0)
    X = 1.5 * rng.normal(size=(600, 2))
    Y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(600, 1))
    Y[200:400] *= 1e6
    process = OnlineProcess(RBF(1.0), likelihood, max_basis=20, criterion=criterion)
    before = process.learn(X, Y)
    sane(process, before, X)
    if isinstance(likelihood, Gaussian) and criterion == "mean":
        # targets of 1e6 are learned, and forgotten as others come
        assert np.max(np.abs(before.mean[210:400])) > 1e4
    assert np.max(np.abs(before.mean[:200])) < 10


def test_units_in_which_variances_have_no_squares():
    rng = np.random.default_rng(0)
    X = 1.5 * rng.normal(size=(300, 2))
    Y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(300, 1))
    small = OnlineProcess(RBF(1.0), Gaussian(0.01), max_basis=40)
    small.learn(X, Y)
    large = OnlineProcess(1e138 * RBF(1.0), Gaussian(1e136), max_basis=40)
    large.learn(X, 1e69 * Y)
    np.testing.assert_allclose(
        1e-69 * large.posterior().mean(X), small.posterior().mean(X), rtol=1e-6, atol=1e-9
    )
    for size in (1e160, 1e-150):
        process = OnlineProcess(size * RBF(1.0), Gaussian(1e-2 * size), max_basis=40)
        with pytest.raises(ValueError, match="other units"):
            process.require_units(X)
        before = process.learn(X, np.sqrt(size) * Y)
        assert process.n_basis == 0
        assert np.all(np.isfinite(before.mean)) and np.all(before.var >= 0.0)
    # small variances do beside noise, and so do rows of which the prior is certain
    process = OnlineProcess(1e-150 * RBF(1.0), Gaussian(0.1), max_basis=40)
    assert not np.any(np.isnan(process.learn(X, Y).log_density))
    process = OnlineProcess(Linear(0.0), Gaussian(0.1), max_basis=40)
    assert not np.any(np.isnan(process.learn(0.0 * X, Y).log_density))


@pytest.mark.parametrize("likelihood", [Gaussian(0.1), Laplace(0.3), Probit(0.5)])
@pytest.mark.parametrize("size", [1e40, 1e80, 1e300])
def test_a_row_that_is_too_large_is_skipped_and_the_others_are_learned(likelihood, size):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 2)), np.where(rng.normal(size=(300, 1)) > 0, 1.0, -1.0)
    wrong = 200
    large = X.copy()
    large[wrong] = size
    rest = np.arange(300) != wrong
    process, other = (OnlineProcess(Polynomial(2, 1.0), likelihood, max_basis=10) for _ in "ab")
    before = process.learn(large, Y)
    sane_rest = other.learn(X[rest], Y[rest])
    assert np.flatnonzero(np.isnan(before.log_density)) == [wrong]
    assert np.all(np.isfinite(before.mean)) and np.all(before.var >= 0.0)
    assert before.mean[wrong] == 0.0 and before.var[wrong] == 1e140
    np.testing.assert_allclose(before.mean[rest], sane_rest.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(process.posterior().mean(X), other.posterior().mean(X), rtol=1e-8)


def test_a_mean_that_is_too_large_is_no_prediction():
    X, Y = np.array([[1.0], [2.0], [1e305]]), np.ones((3, 1))
    process = OnlineProcess(RBF(1.0), Gaussian(0.1), means.Linear(0.0, [1e10]))
    before = process.learn(X, Y)
    np.testing.assert_array_equal(np.isnan(before.log_density), [False, False, True])
    assert np.all(np.isfinite(before.mean)) and np.all(np.isfinite(before.var))


def test_a_variance_that_is_no_number_is_one_that_is_too_large():
    kernel = Polynomial(1, 0.0).on([0]) * Polynomial(1, 0.0).on([1])
    X = np.array([[1e200, 0.0], [1.0, 2.0]])  # inf times 0
    process = OnlineProcess(kernel, Gaussian(0.1))
    process.require_units(X)
    before = process.learn(X, np.ones((2, 1)))
    np.testing.assert_array_equal(np.isnan(before.log_density), [True, False])
    with pytest.raises(ValueError, match=r"more than 1e\+140 at all rows"):
        process.require_units(X[:1])


def test_functions_that_are_too_large_are_skipped():
    """Weights alone are learned, of functions whose squares are no doubles."""
    basis = Basis(Polynomial(4, 1.0), np.ones((1, 1)))
    posterior = Posterior(basis, np.zeros((1, 1)), B=Dense(np.eye(1)), weight=0)
    process, other = (OnlineProcess.from_posterior(posterior, Gaussian(0.1)) for _ in "ab")
    before = process.learn(np.array([[1.0], [1e30], [2.0]]), np.ones((3, 1)))
    np.testing.assert_array_equal(np.isnan(before.log_density), [False, True, False])
    other.learn(np.array([[1.0], [2.0]]), np.ones((2, 1)))
    np.testing.assert_allclose(
        process.posterior().mean(np.ones((1, 1))), other.posterior().mean(np.ones((1, 1)))
    )


@pytest.mark.parametrize(("target", "weight", "scale"), [(1e14, 1.6, 1e-3), (1e17, 1.6, 0.1)])
def test_no_row_of_log_concave_noise_raises_a_variance(target, weight, scale):
    """Far out their log density has digits for no difference, and quadrature makes some up."""
    X = np.linspace(-2.0, 2.0, 21)[:, None]
    process = OnlineProcess(RBF(1.0), Laplace(scale), max_basis=30)
    process.learn(X[1:], np.sin(X[1:]))
    before = process.posterior().var(X)
    process.learn(X[:1], np.array([[target]]), [weight])
    # but for what the projection costs; it was tens and hundreds of times as large
    assert np.all(process.posterior().var(X) <= 2.0 * before)
    y, mean, var = np.array([target]), np.zeros(1), np.full(1, 0.1)
    assert Tilted(Laplace(scale), y, np.array([weight])).moments(mean, var)[2][0] <= 0.0


def test_rows_before_one_that_ends_a_call_count():
    """A kernel of the user's may raise: what it had been asked of before was learned."""

    class Once(RBF):
        def __call__(self, X, Z=None):
            if np.any(X > 100.0):
                raise ValueError("of its own")
            return super().__call__(X, Z)

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 1)), rng.normal(size=(300, 1))
    X[200] = 1000.0
    process = OnlineProcess(Once(1.0), Gaussian(0.1), max_basis=10)
    with pytest.raises(ValueError, match="of its own"):
        process.learn(X, Y)
    assert process.n_seen == 128 and process.arrays.sums[2] == 128.0


@pytest.mark.parametrize("likelihood", [Laplace(0.3), Probit(0.5)])
def test_rows_of_any_weight_are_learned_in_their_order(likelihood, monkeypatch):
    """Those that the compiled loop takes and those that it does not: as if it took none."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)), np.where(rng.normal(size=(60, 1)) > 0, 1.0, -1.0)
    weights = rng.choice([0.0, 0.3, 1.0, 2.0, 150.0], 60)
    compiled = OnlineProcess(RBF(1.0), likelihood, max_basis=10)
    found = compiled.learn(X, Y, weights)
    monkeypatch.setattr(type(likelihood), "compiled_site", lambda self: None)
    single = OnlineProcess(RBF(1.0), likelihood, max_basis=10)
    wanted = single.learn(X, Y, weights)
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(compiled.points, single.points)
    np.testing.assert_allclose(compiled.log_evidence, single.log_evidence, rtol=1e-8)


@pytest.mark.parametrize("criterion", ["mean", "kl"])
@pytest.mark.parametrize("forget", [0.0, 0.01])
@pytest.mark.parametrize("noise", [1e-10, 1e-14])
def test_noise_that_is_all_but_none(noise, criterion, forget):
    rng = np.random.default_rng(0)
    X = 1.5 * rng.normal(size=(1500, 2))
    X[1::2] = X[::2] + 1e-5 * rng.normal(size=(750, 2))
    Y = np.sin(2 * X[:, :1])
    process = OnlineProcess(
        RBF(1.0), Gaussian(noise), max_basis=30, criterion=criterion, forget=forget
    )
    before = process.learn(X, Y)
    sane(process, before, X)


def test_noise_that_is_all_but_none_is_interpolation():
    X = np.linspace(-3, 3, 7)[:, None]
    Y = np.sin(X)
    process = OnlineProcess(RBF(1.0), Gaussian(1e-10))
    process.learn(X, Y)
    mean, var = process.posterior().mean_and_var(X)
    np.testing.assert_allclose(mean, Y, atol=1e-7)
    assert np.all(var < 1e-9)


@pytest.mark.parametrize("criterion", ["mean", "kl"])
@pytest.mark.parametrize("kernel", [RBF(1.0), Exponential(1.0), Linear(1.0)])
def test_kernels_of_few_dimensions_and_many(kernel, criterion):
    """A linear kernel has rank d + 1: points beyond add nothing, and nothing is lost."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    Y = X @ [[1.0], [2.0], [-1.0]] + 0.5 + 0.1 * rng.normal(size=(400, 1))
    process = OnlineProcess(kernel, Gaussian(0.01), max_basis=25, criterion=criterion)
    before = process.learn(X, Y)
    assert np.all(np.isfinite(before.log_density))
    assert np.all(before.var >= 0)
    if isinstance(kernel, Linear):
        assert process.n_basis == 4
        assert process.projection_loss < 1e-6
        H = np.c_[np.ones(400), X]
        weights = np.linalg.solve(H.T @ H + 0.01 * np.eye(4), H.T @ Y)
        np.testing.assert_allclose(process.posterior().mean(X), H @ weights, atol=1e-6)


# --- near-duplicates, for long --------------------------------------------------------------------


def near_duplicates(rng, n, centres):
    X = centres[rng.integers(0, len(centres), n)]
    X = X + 10.0 ** rng.uniform(-7, -1, (n, 1)) * rng.normal(size=X.shape)
    return X, np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(n, 1))


def worst(process):
    """The largest entry of Q K - 1, with K from the points themselves."""
    m, points = process.n_basis, process.points
    K = rbf(points, points)
    return np.max(np.abs(process.arrays.Q[:m, :m] @ K - np.eye(m)))


def stay_sound(criterion, rows, chunk):
    rng = np.random.default_rng(0)
    centres = rng.uniform(-3, 3, (60, 2))
    process = OnlineProcess(RBF(1.0), Gaussian(0.01), max_basis=25, criterion=criterion)
    for _ in range(rows // chunk):
        X, Y = near_duplicates(rng, chunk, centres)
        before = process.learn(X, Y)
        assert worst(process) < 1e-6
        assert np.all(np.isfinite(before.log_density))
        assert np.all(before.var >= 0)
    sane(process, before, X)
    return process


@pytest.mark.parametrize("criterion", ["mean", "kl"])
def test_near_duplicates_do_not_spoil_the_inverse_gram_matrix(criterion):
    process = stay_sound(criterion, 20_000, 500)
    A, m = process.arrays, process.n_basis
    np.testing.assert_allclose(A.P[0, :m, :m] @ A.S[0, :m, :m], np.eye(m), atol=1e-5)
    np.testing.assert_allclose(A.alpha[:, :m], A.mu[:, :m] @ A.Q[:m, :m], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["mean", "kl"])
def test_nor_do_a_million(criterion):
    stay_sound(criterion, 1_000_000, 10_000)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", ["Q", "P"])
def test_what_is_spoilt_is_made_anew_on_the_way(name, compiled, monkeypatch):
    calls = []
    old = _online_rows.refresh
    monkeypatch.setattr(_online_rows, "refresh", lambda A: calls.append(1) or old(A))
    if not compiled:
        monkeypatch.setattr(Gaussian, "compiled_site", lambda self: None)
    rng = np.random.default_rng(0)
    X = 3 * rng.normal(size=(600, 2))
    Y = np.sin(X[:, :1])
    process = OnlineProcess(RBF(1.0), Gaussian(0.1), max_basis=10, tol=1e-3, criterion="mean")
    process.learn(X[:30], Y[:30])
    assert not calls
    getattr(process.arrays, name)[..., :10, :10] *= 1 + 1e-4
    process.arrays.whole[1] = CHECK_EVERY - 3
    process.learn(X, Y)
    assert len(calls) == 1
    assert worst(process) < 1e-10


@pytest.mark.parametrize("length", [3.0, 10.0, 30.0])
def test_a_smooth_kernel_does_not_spoil_it_either(length):
    """All points were new when they came, and yet each may be determined by the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    Y = np.sin(X[:, :1]) * X[:, 1:] + 0.1 * rng.normal(size=(1500, 1))
    process = OnlineProcess(RBF(length), Gaussian(0.01), max_basis=50)
    before = process.learn(X, Y)
    m, K = process.n_basis, rbf(process.points, process.points, length)
    np.testing.assert_allclose(process.arrays.Q[:m, :m] @ K, np.eye(m), atol=1e-6)
    np.testing.assert_allclose(
        process.arrays.P[0, :m, :m] @ process.arrays.S[0, :m, :m], np.eye(m), atol=1e-6
    )
    sane(process, before, X)
    K = rbf(X, X, length)
    mean, _, _ = exact(K, np.full(1500, 0.01), Y, K[:100], K[:100, :100])
    np.testing.assert_allclose(process.posterior().mean(X[:100]), mean, atol=0.1)


# --- any shape ------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 60),
    d=st.integers(1, 4),
    P=st.integers(1, 3),
    max_basis=st.integers(1, 12),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    length=st.sampled_from([1e-3, 1.0, 1e3]),
    noise=st.sampled_from([1e-10, 1e-3, 10.0]),
    tol=st.sampled_from([0.0, 1e-6, 1e-2, 2.0]),
    criterion=st.sampled_from(["mean", "kl"]),
    novelty=st.sampled_from(["geometry", "mean"]),
    forget=st.sampled_from([0.0, 0.1, 0.9]),
    likelihood=st.sampled_from(["gaussian", "probit"]),
    seed=st.integers(0, 10_000),
)
def test_any_shape_and_scale(
    n, d, P, max_basis, scale, length, noise, tol, criterion, novelty, forget, likelihood, seed
):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(n, d)).round(int(rng.integers(0, 3)))  # with ties
    X[:, 0] = X[0, 0] if rng.random() < 0.2 else X[:, 0]
    Y = rng.normal(size=(n, P))
    Y = np.where(Y > 0, 1.0, -1.0) if likelihood == "probit" else Y
    process = OnlineProcess(
        RBF(length * scale),
        Gaussian(noise) if likelihood == "gaussian" else Probit(noise),
        max_basis=max_basis,
        tol=tol,
        criterion=criterion,
        novelty=novelty,
        forget=forget,
        n_outputs=P,
    )
    before = process.learn(X, Y, rng.choice([0.0, 1.0, 2.0], n))
    sane(process, before, X)
    assert process.n_seen == n
    points = {tuple(x) for x in X}
    assert all(tuple(x) in points for x in process.points)


def test_before_any_row_it_is_the_prior():
    process = OnlineProcess(2.0 * RBF(1.0), Gaussian(0.1), n_outputs=2)
    X = np.array([[0.0], [1.0]])
    posterior = process.posterior()
    np.testing.assert_allclose(posterior.mean(X), 0.0)
    np.testing.assert_allclose(posterior.cov(X)[:, :, 0], rbf(X, X, 1.0, 2.0))
    before = process.learn(X[:1], np.array([[0.5, -0.5]]))
    expected = gaussian_site(0.1)(0.5, 0.0, 2.0)[0] + gaussian_site(0.1)(-0.5, 0.0, 2.0)[0]
    assert before.log_density[0] == pytest.approx(expected)
    assert process.learn(X[:0], np.empty((0, 2))).mean.shape == (0, 2)


@pytest.mark.parametrize("criterion", ["mean", "kl"])
def test_targets_whose_squares_overflow_leave_the_basis_its_size(criterion):
    """Found by a write past the end of the arrays, of which nobody was told."""
    rng = np.random.default_rng(0)
    X = 3.0 * rng.normal(size=(20, 1))
    process = OnlineProcess(1e-3 * RBF(1.0), Gaussian(1e-3), max_basis=3, criterion=criterion)
    process.learn(X, 5e152 * rng.normal(size=(20, 1)))
    assert process.n_basis == 3
    assert set(process.arrays.source[:3]) <= set(range(23))
