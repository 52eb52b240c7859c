"""The factorisation in single precision, beside its formula in double."""

import numpy as np
import pytest

from mercer.inference import _mode, laplace
from mercer.inference._problem import LatentProblem
from mercer.inference._single import single
from mercer.kernels import RBF
from mercer.likelihoods import Logistic


def matrices(n=150, size=1.0):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2))
    K = size * RBF(1.0)(X)
    return X, np.asfortranarray(np.tril(K)), K, rng.uniform(0.0, 0.3, size=n)


@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("size", [1e-60, 1.0, 1e60])
def test_solves_to_single_precision(columns, size):
    _, lower, K, precision = matrices()
    v = size * np.random.default_rng(0).normal(size=(len(K), *columns))
    s = np.sqrt(precision)
    B = np.eye(len(K)) + s[:, None] * K * s
    wanted = s.reshape(-1, *[1] * len(columns)) * np.linalg.solve(B, (s * v.T).T)
    found = single(lower, precision).solve(v)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-5 * np.max(np.abs(wanted)))


def test_no_factor_where_single_precision_does_not_hold_it():
    _, lower, _, precision = matrices(size=1e60)
    assert single(lower, precision) is None


@pytest.mark.parametrize("size", [1.0, 1e6, 1e60])
def test_mode_does_not_depend_on_it(size, monkeypatch):
    X, _, _, _ = matrices()
    y = np.where(np.sin(3.0 * X[:, 0]) > 0, 1.0, -1.0)
    problem = LatentProblem(size * RBF(1.0), X, y, Logistic(), np.zeros(len(X)))
    wanted = laplace.solve(problem)
    monkeypatch.setattr(_mode, "_SINGLE", 0)
    found = laplace.solve(problem)
    assert found.status == wanted.status
    assert found.log_evidence == pytest.approx(wanted.log_evidence, rel=1e-9)
    np.testing.assert_allclose(found.latent, wanted.latent, rtol=1e-6, atol=1e-6)


def test_shrinks_without_the_matrix():
    _, lower, K, precision = matrices()
    v = np.random.default_rng(0).normal(size=len(K))
    wanted = np.linalg.solve(np.eye(len(K)) + precision[:, None] * K, v)
    found = single(lower, precision, np.empty(K.shape, order="F")).shrink(v)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-5 * np.max(np.abs(wanted)))


@pytest.mark.parametrize("least", [1.0, 1e-2, 1e-15, 1e-45, 1e-60, 0.0])
def test_uneven_roots_drown_nothing(least):
    """Single precision has no number next to another that is 1e45 times as large."""
    X, lower, K, _ = matrices()
    rng = np.random.default_rng(0)
    root = rng.uniform(0.3, 0.5, size=len(K))
    root[::10] *= least
    v, solver = rng.normal(size=len(K)), single(lower, root**2)
    wanted = np.linalg.solve(np.eye(len(K)) + root[:, None] ** 2 * K, v)
    shrunk = solver.shrink(v)
    assert shrunk is not None or least < 1e-20  # dear only where it has to be
    problem = LatentProblem(RBF(1.0), X, np.ones(len(X)), Logistic(), np.zeros(len(X)))
    by_search = _mode._Search(problem, lower).shrink(v, solver)
    for found in (by_search,) if shrunk is None else (by_search, shrunk):
        np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-5 * np.max(np.abs(wanted)))


@pytest.mark.parametrize("far", [10.0, 100.0, 300.0])
def test_mode_where_some_labels_are_certain(far, monkeypatch):
    """The roots of rows whose prior mean is far away are next to nothing."""
    X, _, _, _ = matrices()
    y = np.where(np.sin(3.0 * X[:, 0]) > 0, 1.0, -1.0)
    problem = LatentProblem(RBF(1.0), X, y, Logistic(), far * y * (np.arange(len(X)) % 2))
    wanted = laplace.solve(problem)
    monkeypatch.setattr(_mode, "_SINGLE", 0)
    found = laplace.solve(problem)
    assert found.status == wanted.status == "converged"
    assert found.n_factorisations <= wanted.n_factorisations
    np.testing.assert_allclose(found.latent, wanted.latent, rtol=0.0, atol=1e-9)
