"""The on-line engine against the paper's own recursion over whole streams, point by point."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Logistic, Probit
from mercer.linalg.recursion import Rules, empty_arrays, recursion

from .online_dense import Textbook, gaussian_site, moments_site, probit_site, rbf

LENGTHS, VARIANCE = np.array([0.9, 1.3]), 1.4
KERNEL = VARIANCE * RBF(LENGTHS)
LIKELIHOODS = {
    "gaussian": (Gaussian(0.3), gaussian_site(0.3)),
    "probit": (Probit(0.7), probit_site(0.7)),
    "logistic": (Logistic(), moments_site(lambda y, f: 1 / (1 + np.exp(-y * f)), lambda y: [])),
}


def k(X, Z):
    return rbf(X, Z, LENGTHS, VARIANCE)


def stream(kind, seed=0, n=120, P=1):
    """Return rows, some of which all but repeat others, and points to be asked about."""
    rng = np.random.default_rng(seed)
    X = 1.5 * rng.normal(size=(n, 2))
    again = rng.choice(n, n // 3, replace=False)
    X[again] = X[rng.integers(0, n, n // 3)] + 0.02 * rng.normal(size=(n // 3, 2))
    Y = np.sin(2.0 * X[:, :1] + np.arange(P)) + 0.3 * rng.normal(size=(n, P))
    return X, np.where(Y > 0, 1.0, -1.0) if kind != "gaussian" else Y, 2.0 * rng.normal(size=(6, 2))


def pair(kind, max_basis, tol, P=1, **rules):
    likelihood, site = LIKELIHOODS[kind]
    got = OnlineProcess(KERNEL, likelihood, max_basis=max_basis, tol=tol, n_outputs=P, **rules)
    return got, Textbook(k, site, 2, max_basis, tol, P=P, **rules)


def agree(got, expected, new, tol=1e-8):
    rows = np.lexsort(got.points.T), np.lexsort(expected.B.T)
    np.testing.assert_array_equal(got.points[rows[0]], expected.B[rows[1]])
    posterior = got.posterior()
    mean, cov = posterior.mean(new), posterior.cov(new)
    for p in range(len(expected.C)):
        m, V = expected.at(new, p)
        np.testing.assert_allclose(mean[:, p], m, rtol=tol, atol=tol)
        # outputs with a covariance each come back as one that has blocks, (n, P, n, P)
        own = cov[:, :, p] if cov.ndim == 3 else cov[:, p, :, p]
        np.testing.assert_allclose(own, V, rtol=tol, atol=tol)
        if cov.ndim == 4:
            others = np.arange(len(expected.C)) != p
            np.testing.assert_allclose(cov[:, p][:, :, others], 0.0, atol=1e-12)
    assert got.log_evidence == pytest.approx(expected.log_evidence, rel=1e-9, abs=1e-9)
    assert got.projection_loss == pytest.approx(expected.loss, rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("criterion", ["mean", "kl"])
@pytest.mark.parametrize("novelty", ["geometry", "mean"])
@pytest.mark.parametrize("kind", ["gaussian", "probit"])
def test_whole_streams(kind, novelty, criterion):
    for seed, max_basis, tol in [(0, 8, 0.15), (1, 15, 0.02), (2, 3, 0.2)]:
        X, Y, new = stream(kind, seed)
        got, expected = pair(kind, max_basis, tol, novelty=novelty, criterion=criterion)
        got.learn(X, Y)
        for x, y in zip(X, Y, strict=True):
            expected.learn(x, y)
        assert min(expected.counts.values()) > 5, expected.counts
        agree(got, expected, new)


@pytest.mark.parametrize("kind", ["gaussian", "probit"])
def test_row_by_row(kind):
    X, Y, new = stream(kind, seed=5, n=40)
    got, expected = pair(kind, 5, 0.01, criterion="kl")
    losses = [0.0]
    for x, y in zip(X, Y, strict=True):
        m, V = expected.at(x[None])
        before = got.learn(x[None], y[None])
        expected.learn(x, y)
        assert before.mean[0, 0] == pytest.approx(m[0], abs=1e-9)
        assert before.var[0, 0] == pytest.approx(V[0, 0], rel=1e-8)
        agree(got, expected, new)
        losses.append(got.projection_loss)
    assert np.all(np.diff(losses) >= 0)


@pytest.mark.parametrize("criterion", ["mean", "kl"])
@pytest.mark.parametrize("novelty", ["geometry", "mean"])
@pytest.mark.parametrize("kind", ["gaussian", "probit", "logistic"])
def test_of_several_outputs_the_one_that_loses_most_counts(kind, novelty, criterion):
    X, Y, new = stream(kind, seed=3, n=60, P=3)
    got, expected = pair(kind, 7, 0.1, P=3, novelty=novelty, criterion=criterion)
    got.learn(X, Y)
    for x, y in zip(X, Y, strict=True):
        expected.learn(x, y)
    assert min(expected.counts.values()) > 3, expected.counts
    agree(got, expected, new, 1e-7)
    # the rule matters here: the sum over outputs, or the first, chooses others
    alone = pair(kind, 7, 0.1, novelty=novelty, criterion=criterion)[0]
    alone.learn(X, Y[:, :1])
    assert sorted(alone.points[:, 0]) != sorted(expected.B[:, 0])


@pytest.mark.parametrize("criterion", ["mean", "kl"])
def test_the_minimax_rule_is_the_brute_force_choice(criterion):
    """(SOGP 4.8) from scores written out for each output, of a process that stays as it is."""
    X, Y, _ = stream("probit", seed=7, n=15, P=4)
    got, expected = pair("probit", 15, 1e-3, P=4, criterion=criterion)
    got.learn(X, Y)
    for x, y in zip(X, Y, strict=True):
        expected.learn(x, y)
    chosen = set()
    while got.n_basis > 2:
        table = np.empty((4, got.n_basis))
        for p in range(4):
            for i in range(got.n_basis):
                if criterion == "mean":
                    table[p, i] = abs(expected.alpha[p][i]) / expected.Q[i, i]
                else:
                    full = [expected.at(expected.B, o) for o in range(4)]
                    table[p, i] = expected.without(i)._costs(full, expected.B)[p]
        i = int(np.argmin(np.max(table, axis=0)))
        chosen.add(i == int(np.argmin(np.sum(table, axis=0))))
        gone, before = expected.B[i], {tuple(b) for b in got.points}
        expected.delete(i)
        got.prune(got.n_basis - 1)
        assert before - {tuple(b) for b in got.points} == {tuple(gone)}
    assert False in chosen  # adding the outputs up would have chosen others
    assert got.projection_loss == pytest.approx(expected.loss, rel=1e-7)


@pytest.mark.parametrize("kind", ["gaussian", "probit"])
def test_to_remove_the_point_that_was_added_last_is_the_reduced_update(kind):
    X, Y, new = stream(kind, seed=4, n=9)
    X[8] = [0.3, -2.0]  # away from the others: C has the digits that gamma leaves it
    added, _ = pair(kind, 9, 0.0)
    reduced, _ = pair(kind, 9, 0.0)
    added.learn(X[:8], Y[:8])
    reduced.learn(X[:8], Y[:8])
    added.learn(X[8:], Y[8:])
    assert added.n_basis == 9
    added.arrays.source[:9] = np.arange(9)
    recursion().remove(added.arrays, 8)
    reduced.rules = reduced.rules._replace(tol=10.0)  # nothing is new
    reduced.learn(X[8:], Y[8:])
    assert reduced.n_basis == 8
    a, b = added.arrays, reduced.arrays
    for name in ("mu", "alpha", "curvature"):
        np.testing.assert_allclose(
            getattr(a, name)[:, :8], getattr(b, name)[:, :8], rtol=1e-9, atol=1e-11
        )
    for name in ("S", "P"):
        x, y = getattr(a, name)[0, :8, :8], getattr(b, name)[0, :8, :8]
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10 * np.max(np.abs(y)))
    np.testing.assert_allclose(a.Q[:8, :8], b.Q[:8, :8], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(a.sums, b.sums, rtol=1e-9)
    m, V = reduced.posterior().mean(new), reduced.posterior().cov(new)
    assert np.all(np.isfinite(m))
    assert np.all(np.isfinite(V))


def test_pruning_is_by_the_criterion_and_tells_its_cost():
    X, Y, new = stream("gaussian", n=30)
    for criterion in ("mean", "kl"):
        got, expected = pair("gaussian", 30, 1e-3, criterion=criterion)
        got.learn(X, Y)
        for x, y in zip(X, Y, strict=True):
            expected.learn(x, y)
        before, start = got.projection_loss, got.n_basis
        assert start > 15
        cost = got.prune(6)
        while len(expected.B) > 6:
            expected.delete(int(np.argmin(expected.scores())))
        agree(got, expected, new)
        assert cost == pytest.approx(got.projection_loss - before)
        assert got.prune(6) == 0.0
        got.learn(X, Y)  # and it goes on
        assert got.n_basis == min(start, 30)


def test_a_point_is_new_by_units_of_the_kernel():
    """The tolerance is a part of k(x, x), and of its root where it is about the mean."""
    X, Y, _ = stream("gaussian", n=60)
    for novelty in ("geometry", "mean"):
        sizes = set()
        for unit in (1e-4, 1.0, 1e5):
            process = OnlineProcess(
                (VARIANCE * unit**2) * RBF(LENGTHS),
                Gaussian(0.3 * unit**2),
                max_basis=60,
                tol=0.05,
                novelty=novelty,
            )
            process.learn(X, Y * unit)
            sizes.add(process.n_basis)
        assert len(sizes) == 1
        assert 3 < sizes.pop() < 50


def test_no_point_is_closer_to_the_others_than_the_floor():
    arrays = empty_arrays(3, 0, 1, 1)
    for novelty in (0, 1):
        arrays.whole[0] = 0
        rules = Rules(2, 0, novelty, 0.0, 0.5, 1.0)
        for i, x in enumerate((0.0, 0.1, 3.0)):
            arrays.k[: arrays.m] = np.exp(-0.5 * (x - np.array([0.0, 3.0])[: arrays.m]) ** 2)
            gamma = recursion().predict(arrays, 1.0, 1e-10)
            arrays.q[:], arrays.r[:] = 5.0, -0.3
            recursion().learn(arrays, rules, 1.0, gamma, i)
        assert list(arrays.source[: arrays.m]) == [0, 2]
