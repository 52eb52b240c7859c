"""Columns of an expansion against the matrix they are columns of."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference._columns import ArrayColumns, JoinedColumns, KernelColumns
from mercer.kernels import RBF, Callable, Tanh

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(400, 3)), rng.normal(size=(30, 3))


def ahead(a, b):
    """Return a kernel that is not symmetric."""
    return 1.0 / (1.0 + np.exp(2.0 * (a - b.T)))


def kinds():
    phi = rng.normal(size=(400, 700))
    squares = np.sum((X[:, None] - Z) ** 2, axis=2)
    own = np.sum((X[:, None] - X) ** 2, axis=2)
    words = np.array(["a" * (i % 7) for i in range(400)], dtype=object)
    lengths = np.array([len(w) for w in words], dtype=float)
    letters = Callable(lambda a, b: 1.0 / (1.0 + abs(len(a) - len(b))))
    one_way = Callable(ahead, is_mercer=False, vectorised=True)
    many = rng.normal(size=(1500, 1))
    joined = JoinedColumns([ArrayColumns(phi), KernelColumns(RBF(2.0), X, Z)])
    return {
        "array": (ArrayColumns(phi), phi),
        "kernel": (KernelColumns(RBF(2.0), X, Z), np.exp(-squares / 8)),
        "own": (KernelColumns(RBF(2.0), X), np.exp(-own / 8)),
        "tanh": (KernelColumns(Tanh(2.0, 1.0), X, Z), np.tanh(2.0 * X @ Z.T + 1.0)),
        "objects": (
            KernelColumns(letters, words, words[:9]),
            1 / (1 + np.abs(lengths[:, None] - lengths[:9])),
        ),
        "one way": (KernelColumns(one_way, X[:, :1], Z[:, :1]), ahead(X[:, :1], Z[:, :1])),
        "one way, own": (KernelColumns(one_way, many), ahead(many, many)),
        "one way, part": (KernelColumns(2.0 * one_way, X[:, :1]), 2 * ahead(X[:, :1], X[:, :1])),
        "joined": (joined, np.column_stack([phi, np.exp(-squares / 8)])),
    }


@pytest.mark.parametrize("name", list(kinds()))
def test_columns(name):
    columns, Phi = kinds()[name]
    assert (columns.n, columns.size) == Phi.shape
    some = np.array([columns.size - 1, 0, 5, 3])
    taken = columns.take(some)
    assert taken.flags.f_contiguous
    np.testing.assert_allclose(taken, Phi[:, some], atol=1e-12)
    assert columns.take(some[:0]).shape == (columns.n, 0)
    V = rng.normal(size=(columns.n, 2))
    np.testing.assert_allclose(columns.products(V), Phi.T @ V, atol=1e-10)
    part = np.unique(np.array([0, 1, 4, columns.size - 2, columns.size - 1]))
    few = columns.some(part)
    assert (few.n, few.size) == (columns.n, len(part))
    np.testing.assert_allclose(few.products(V), Phi[:, part].T @ V, atol=1e-10)
    np.testing.assert_allclose(few.take(np.array([1, 0])), Phi[:, part[[1, 0]]], atol=1e-12)
    assert columns.some(part[:1]).size == 1
    kept = np.array([7, 1, 300])
    fewer = columns.rows(kept)
    assert (fewer.n, fewer.size) == (3, columns.size)
    np.testing.assert_allclose(fewer.products(V[:3]), Phi[kept].T @ V[:3], atol=1e-10)
    np.testing.assert_allclose(fewer.take(some), Phi[np.ix_(kept, some)], atol=1e-12)


def test_what_is_refused():
    with pytest.raises(ValueError, match="matrix"):
        ArrayColumns(np.zeros(3))
    with pytest.raises(ValueError, match="NaN"):
        ArrayColumns(np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="rows"):
        JoinedColumns([ArrayColumns(np.zeros((2, 1))), ArrayColumns(np.zeros((3, 1)))])
    with pytest.raises(ValueError, match="join"):
        JoinedColumns([])


def test_which_matrices_are_symmetric():
    X = np.random.default_rng(0).normal(size=(5, 2))
    columns = KernelColumns(RBF(1.0), X)
    assert columns.is_symmetric
    np.testing.assert_allclose(columns.take(np.arange(5)), columns.take(np.arange(5)).T)
    assert not columns.rows(np.arange(3)).is_symmetric
    assert not KernelColumns(RBF(1.0), X, X[:4]).is_symmetric
    lopsided = Callable(lambda a, b: np.array([[x[0] for _ in b] for x in a]), is_mercer=False)
    assert not KernelColumns(lopsided, X).is_symmetric
