"""Certificates of processes, however they were made."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.inference import APPROXIMATIONS, _expansion, certificate, exact, sparse
from mercer.inference._expansion import basis_factor
from mercer.inference._sparse_predictive import nystrom
from mercer.inference.certificate import DUALS, certify
from mercer.inference.exact import ExactProblem
from mercer.inference.sparse import SparseProblem
from mercer.kernels import RBF, Precomputed, Tanh
from mercer.means import Constant, Linear, Zero
from mercer.posterior import (
    Basis,
    Dense,
    IndependentPredictive,
    Posterior,
    PrecomputedPredictive,
    Stacked,
    prior,
)

from . import quadratic_dense as dense
from .dense import rbf

S2 = 0.05
KERNEL = RBF(0.8)
SCALE = np.array([1.0, 1.0])
SPARSE = ["sor", "dtc", "fitc", "vfe", "pep"]


def posteriors(X, Y, s2=S2, weights=None, scale=SCALE, mean=None):
    """Return a posterior of each kind, by name."""
    n = len(X)
    mean = Zero() if mean is None else mean
    H = None if isinstance(mean, Zero) else mean.features(X)
    targets = Y / scale
    noise = np.broadcast_to(s2, n)
    over = noise if weights is None else noise / weights
    made = {
        "exact": exact.posterior(ExactProblem(KERNEL, X, targets, over, H), mean, scale)[0],
    }
    made["pruned"] = made["exact"].prune(6)[0]
    Z = np.random.default_rng(7).normal(size=(6, X.shape[1]))
    for name in SPARSE:
        problem = SparseProblem(
            KERNEL, X, targets, np.array(noise), Z, APPROXIMATIONS[name], H, weights=weights
        )
        made[name] = sparse.posterior(problem, mean, scale)[0]
    made["independent"] = IndependentPredictive(made["fitc"])
    problem = SparseProblem(
        KERNEL, X, targets, np.array(noise), Z, APPROXIMATIONS["dtc"], H, weights=weights
    )
    made["nystrom"] = nystrom(problem, mean, scale)[0]
    return made


NAMES = ["exact", "pruned", *SPARSE, "independent", "nystrom"]


def truth(posterior, X, Y, s2=S2):
    """Return L(f), L_min, and the exact fitted values, all dense."""
    process = posterior.process if isinstance(posterior, IndependentPredictive) else posterior
    points, alpha = process.basis.points, process.alpha
    F, K = rbf(X, points, 0.8) @ alpha, rbf(X, X, 0.8)
    norm = np.sum(alpha * (rbf(points, points, 0.8) @ alpha))
    upper = -np.sum(Y * F) + 0.5 * (s2 * norm + np.sum(F**2))
    return upper, dense.L_min(K, Y, s2), F, K @ dense.optimum(K, Y, s2)


@pytest.mark.parametrize("dual", DUALS)
@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_for_every_kind_of_posterior(name, dual):
    X, Y, _ = dense.data()
    posterior = posteriors(X, Y)[name]
    found = certify(posterior, X, Y, S2, dual=dual)
    upper, least, F, exact_F = truth(posterior, X, Y)
    assert found.upper == pytest.approx(upper, rel=1e-10)
    assert found.lower <= least + 1e-11 * abs(least)
    true_gap = 2 * (upper - least) / (abs(upper) + abs(least))
    assert true_gap - 1e-12 <= found.gap <= 2
    rms = np.sqrt(np.mean((F - exact_F) ** 2, axis=0))
    assert np.all(rms <= found.fitted_error + 1e-12)
    Xs = np.random.default_rng(9).normal(size=(200, 2))
    K = rbf(X, X, 0.8)
    there = posterior.mean(Xs) - rbf(Xs, X, 0.8) @ dense.optimum(K, Y, S2)
    assert np.all(np.abs(there) <= found.function_error + 1e-11)  # k(x, x) = 1
    assert found.log_posterior_loss == pytest.approx(np.sum(found.excess) / S2)
    assert found.excess.shape == (2,)
    if dual != "residual" and name != "exact":
        # steps ended where at most a twentieth of the excess was left to be taken
        assert np.sum(found.excess) * 0.95 <= (upper - least) * (1 + 1e-6) + 1e-12


@pytest.fixture
def low_rank(monkeypatch):
    """Hold the preconditioner to a few columns, so that these few rows take several steps."""
    monkeypatch.setattr(certificate, "_RANK", 5)


def test_refining_takes_steps_until_little_is_left_to_gain(low_rank, monkeypatch):
    X, Y, K = dense.data(n=60)
    least = dense.L_min(K, Y, S2)
    posterior = posteriors(X, Y)["dtc"]
    rough, *better = (certify(posterior, X, Y, S2, max_steps=k) for k in (0, 1, 2, 4, 8))
    gaps = [rough.gap, *(found.gap for found in better)]
    assert np.all(np.diff(gaps) <= 0)
    assert gaps[-1] < 0.5 * gaps[0]
    settled = certify(posterior, X, Y, S2)
    assert 3 < settled.n_products < 51
    assert 0.95 * np.sum(settled.excess) <= settled.upper - least <= np.sum(settled.excess)
    monkeypatch.setattr(certificate, "_SHARE", 0.9)
    assert certify(posterior, X, Y, S2).n_products < settled.n_products


def test_a_basis_of_some_size_is_the_preconditioner_itself(monkeypatch):
    X, Y, _ = dense.data(n=60)
    posterior = posteriors(X, Y)["dtc"]
    V = basis_factor(posterior.basis, X)
    cross, points = rbf(X, posterior.basis.points, 0.8), posterior.basis.points
    np.testing.assert_allclose(
        V @ V.T, cross @ np.linalg.solve(rbf(points, points, 0.8), cross.T), rtol=1e-9, atol=1e-10
    )
    monkeypatch.setattr(certificate, "_OWN", (6, 6))
    made = []
    monkeypatch.setattr(
        certificate, "basis_factor", lambda *given: made.append(given) or basis_factor(*given)
    )
    own = certify(posterior, X, Y, S2)
    assert len(made) == 1
    assert own.n_products > 3
    monkeypatch.setattr(certificate, "_OWN", (7, 9))
    rows = certify(posterior, X, Y, S2)
    assert len(made) == 1
    assert own.upper == rows.upper
    np.testing.assert_allclose(own.excess, rows.excess, rtol=0.06)  # both within a twentieth


def test_the_residual_alone_against_its_formula(low_rank):
    X, Y, K = dense.data()
    posterior = posteriors(X, Y)["fitc"]
    found = certify(posterior, X, Y, S2, dual="residual")
    upper, _, F, _ = truth(posterior, X, Y)
    a = (Y - F) / S2
    star = dense.L_star(K, Y, a, S2)
    assert found.gap == pytest.approx(dense.gap(upper, star, Y, S2), rel=1e-9)
    assert found.lower == pytest.approx(-0.5 * np.sum(Y**2) - S2 * star, rel=1e-11)
    assert (found.dual, found.n_products) == ("residual", 1)
    refined = certify(posterior, X, Y, S2, dual="refined", max_steps=2)
    assert (refined.dual, refined.n_products) == ("refined", 3)
    assert refined.gap < found.gap
    still = certify(posterior, X, Y, S2, dual="refined", max_steps=0)
    assert still.gap == pytest.approx(found.gap, rel=1e-12)
    best = certify(posterior, X, Y, S2)
    assert best.gap <= refined.gap


@pytest.mark.parametrize("dual", DUALS)
@pytest.mark.parametrize("noise", [1e-4, 0.05, 10.0])
def test_an_exact_posterior_has_no_gap_but_rounding(noise, dual):
    X, Y, _ = dense.data(n=80)
    posterior = posteriors(X, Y, noise)["exact"]
    found = certify(posterior, X, Y, noise, dual=dual)
    assert found.gap < 1e-15
    assert np.all(found.fitted_error < 1e-7)
    if dual == "best":
        assert found.n_products == 1


def test_a_basis_that_is_the_rows_takes_no_matrix(monkeypatch):
    X, Y, _ = dense.data()
    posterior = posteriors(X, Y)["exact"]

    def refuse(basis):
        raise AssertionError("a matrix of n^2")

    monkeypatch.setattr(_expansion, "_gram_factor", refuse)
    assert certify(posterior, X, Y, S2).gap < 1e-15


def test_what_the_rows_do_not_see_is_in_the_error_of_the_function():
    X, Y, K = dense.data()
    points = np.vstack([X, [[100.0, 100.0]]])
    alpha = np.vstack([dense.optimum(K, Y, S2), [[3.0, -2.0]]])
    found = certify(Posterior(Basis(KERNEL, points), alpha), X, Y, S2)
    np.testing.assert_allclose(found.excess, 0.5 * S2 * np.array([9.0, 4.0]), rtol=1e-8)
    np.testing.assert_allclose(found.function_error, [3.0, 2.0], rtol=1e-8)
    wanted = np.array([3.0, 2.0]) * np.sqrt(S2 / len(X))
    np.testing.assert_allclose(found.fitted_error, wanted, rtol=1e-8)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 20),
    st.integers(0, 12),
    st.sampled_from([1e-3, 0.1, 10.0]),
    st.sampled_from([1e-3, 1.0, 1e3]),
    st.integers(0, 10**6),
)
def test_bounds_hold_for_arbitrary_expansions(n, m, noise, size, seed):
    rng = np.random.default_rng(seed)
    X, Y, K = dense.data(n=n, seed=seed)
    Y, alpha = size * Y, size * rng.normal(size=(m, 2))
    posterior = Posterior(Basis(KERNEL, rng.normal(size=(m, 2)) if m else None), alpha)
    found = certify(posterior, X, Y, noise)
    least = dense.L_min(K, Y, noise)
    tiny = 1e-9 * (abs(found.upper) + abs(least))
    assert found.lower - tiny <= least <= found.upper + tiny
    assert 0 <= found.gap <= 2
    difference = posterior.mean(X) - K @ dense.optimum(K, Y, noise)
    rms = np.sqrt(np.mean(difference**2, axis=0))
    assert np.all(rms <= found.fitted_error * (1 + 1e-6) + 1e-9 * size)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_repeated_rows(name):
    X, Y, _ = dense.data(n=20)
    w = np.arange(20) % 3  # the first row is not there at all
    rows = np.repeat(np.arange(20), w)
    posterior = posteriors(X[w > 0], Y[w > 0], weights=w[w > 0].astype(float))[name]
    found = certify(posterior, X, Y, S2, w)
    again = certify(posterior, X[rows], Y[rows], S2)
    assert found.upper == pytest.approx(again.upper, rel=1e-11)
    if name == "exact":
        assert found.gap < 1e-15
        return
    one = certify(posterior, X, Y, S2, w, dual="residual")
    other = certify(posterior, X[rows], Y[rows], S2, dual="residual")
    assert one.lower == pytest.approx(other.lower, rel=1e-10)
    np.testing.assert_allclose(one.fitted_error, other.fitted_error, rtol=1e-8)
    np.testing.assert_allclose(one.function_error, other.function_error, rtol=1e-8)
    assert found.gap <= one.gap


class Equal:
    """Compares certificates number by number."""

    def __init__(self, wanted):
        self.wanted = wanted

    def __eq__(self, found):
        for name in ("lower", "upper", "gap", "excess", "fitted_error", "function_error"):
            ours, theirs = getattr(found, name), getattr(self.wanted, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, err_msg=name)
        return True

    __hash__ = None


def test_rows_of_weight_zero_are_not_there():
    X, Y, _ = dense.data()
    kept = np.arange(len(X)) % 3 > 0
    posterior = posteriors(X, Y)["fitc"]
    noise = np.random.default_rng(1).uniform(0.01, 0.3, len(X))
    found = certify(posterior, X, Y, S2, kept.astype(float))
    assert found == Equal(certify(posterior, X[kept], Y[kept], S2))
    found = certify(posterior, X, Y, noise, kept.astype(float))
    assert found == Equal(certify(posterior, X[kept], Y[kept], noise[kept]))


def test_variances_of_rows_are_weights():
    X, Y, _ = dense.data()
    noise = np.random.default_rng(1).uniform(0.01, 0.3, len(X))
    s2 = 1.0 / np.mean(1.0 / noise)
    made = posteriors(X, Y, noise)
    assert certify(made["exact"], X, Y, noise).gap < 1e-15
    found = certify(made["fitc"], X, Y, noise)
    same = certify(made["fitc"], X, Y, s2, s2 / noise)
    assert found == Equal(same)
    equal = certify(made["fitc"], X, Y, np.full(len(X), S2))
    assert equal == Equal(certify(made["fitc"], X, Y, S2))
    w = np.random.default_rng(2).uniform(0.5, 2, len(X))
    both = certify(made["fitc"], X, Y, noise, w)
    assert both.gap == pytest.approx(certify(made["fitc"], X, Y, s2, w * s2 / noise).gap, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_offsets_and_units_of_targets_go_with_the_mean_and_the_scale(name):
    X, Y, _ = dense.data()
    scale, offset = np.array([100.0, 0.01]), np.array([1e4, -3.0])
    plain = certify(posteriors(X, Y)[name], X, Y, S2)
    posterior = posteriors(X, Y * scale, scale=scale)[name]
    moved = certify(posterior, X, Y * scale, S2)
    assert moved.upper == pytest.approx(plain.upper, rel=1e-11)
    np.testing.assert_allclose(moved.gap, plain.gap, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(moved.fitted_error, plain.fitted_error * scale, rtol=1e-5, atol=1e-6)
    if name in ("independent", "nystrom"):
        return
    shifted = posterior.replace(mean=Constant(offset, estimate=None))
    far = certify(shifted, X, Y * scale + offset, S2)
    assert far.upper == pytest.approx(plain.upper, rel=1e-8)
    np.testing.assert_allclose(far.gap, plain.gap, rtol=1e-4, atol=1e-15)


def test_a_mean_that_was_estimated_is_left_out_of_the_function():
    X, Y, _ = dense.data()
    Y = Y + 3.0 + X @ np.array([[1.0, -2.0], [0.5, 0.0]])
    made = posteriors(X, Y, mean=Linear(estimate="ml"))
    assert certify(made["exact"], X, Y, S2).gap < 1e-15
    found = certify(made["dtc"], X, Y, S2)
    rest = Y - made["dtc"].mean_function(X, 2)
    upper, least, _, _ = truth(made["dtc"], X, rest)
    assert found.upper == pytest.approx(upper, rel=1e-10)
    assert found.lower <= least + 1e-11 * abs(least)


def test_the_prior_and_targets_that_are_nothing():
    X, Y, K = dense.data()
    found = certify(prior(KERNEL, n_outputs=2), X, Y, S2)
    assert (found.upper, found.gap) == (0.0, 2.0)
    assert found.lower <= dense.L_min(K, Y, S2) * (1 - 1e-14)  # which is negative, and is rounded
    nothing = certify(prior(KERNEL, n_outputs=2), X, 0.0 * Y, S2)
    assert (nothing.lower, nothing.upper, nothing.gap) == (0.0, 0.0, 0.0)
    assert not np.any(nothing.fitted_error)


def test_a_basis_whose_points_repeat():
    X, Y, K = dense.data()
    points = np.vstack([X[:3], X[:3]])
    alpha = np.random.default_rng(0).normal(size=(6, 2))
    twice = certify(Posterior(Basis(KERNEL, points), alpha), X, Y, S2)
    once = certify(Posterior(Basis(KERNEL, X[:3]), alpha[:3] + alpha[3:]), X, Y, S2)
    assert twice.upper == pytest.approx(once.upper, rel=1e-8)
    assert twice.gap >= once.gap * (1 - 1e-8)  # jitter adds to it
    assert twice.lower <= dense.L_min(K, Y, S2) * (1 - 1e-14)


def test_precomputed_matrices():
    X, Y, K = dense.data()
    numbers = np.arange(float(len(X)))[:, None]
    problem = ExactProblem(Precomputed(K), numbers, Y, np.full(len(X), S2))
    posterior, _ = exact.posterior(problem, Zero(), SCALE)
    found = certify(PrecomputedPredictive(posterior), K, Y, S2)
    assert found.gap < 1e-15
    assert found.upper == pytest.approx(dense.L_min(K, Y, S2), rel=1e-11)
    with pytest.raises(ValueError, match=r"the kernel matrix \(40, 40\) that was fitted"):
        certify(PrecomputedPredictive(posterior), K[:10], Y[:10], S2)


def test_what_has_no_certificate_is_refused_with_the_reason():
    X, Y, _ = dense.data()
    with pytest.raises(ValueError, match="a Stacked is not"):
        certify(Stacked([prior(KERNEL), prior(KERNEL)]), X, Y, S2)
    mean = Linear(estimate="integrate")
    noise = np.full(len(X), S2)
    problem = ExactProblem(KERNEL, X, Y, noise, mean.features(X), integrate=True)
    integrated, _ = exact.posterior(problem, mean, SCALE)
    with pytest.raises(ValueError, match="integrated out"):
        certify(integrated, X, Y, S2)
    coupled = Posterior(Basis(KERNEL, X), np.zeros((40, 2)), B=[Dense(np.eye(40)[:2])] * 2)
    with pytest.raises(ValueError, match="coupled"):
        certify(coupled, X, Y, S2)
    with pytest.raises(ValueError, match="no covariance"):
        certify(Posterior(Basis(Tanh(), X), np.zeros((40, 2))), X, Y, S2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Y": np.zeros((40, 1))}, r"shape \(40, 2\) are wanted.*\(40, 1\)"),
        ({"Y": np.full((40, 2), np.nan)}, "finite targets"),
        ({"noise": 0.0}, "positive variance"),
        ({"noise": np.ones(3)}, "or 40 of them"),
        ({"noise": np.full(40, np.inf)}, "positive variance"),
        ({"weights": np.zeros(40)}, "not all of them 0"),
        ({"weights": -np.ones(40)}, "not negative"),
        ({"weights": np.ones(39)}, "40 numbers"),
        ({"dual": "subset"}, "dual must be one of 'best', 'residual', 'refined'"),
        ({"max_steps": -1}, "max_steps must be a whole number"),
        ({"max_steps": 2.5}, "max_steps must be a whole number"),
        ({"X": np.zeros((40, 3)), "kernel": True}, "columns"),
        ({"X": np.zeros((0, 2))}, "at least one row"),
    ],
)
def test_bad_arguments(change, message):
    X, Y, _ = dense.data()
    posterior = posteriors(X, Y)["dtc"]
    if change.pop("kernel", False):
        posterior = Posterior(Basis(RBF([1.0, 2.0]), X), np.zeros((40, 2)))
    arguments = {"X": X, "Y": Y, "noise": S2} | change
    with pytest.raises(ValueError, match=message):
        certify(posterior, **arguments)
