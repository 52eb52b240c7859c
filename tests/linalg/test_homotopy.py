"""The compiled homotopy against its NumPy twin."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from mercer.linalg import _homotopy_twins as twins
from mercer.linalg.homotopy import empty_homotopy

compiled = pytest.importorskip("mercer.linalg._homotopy")


def followed(module, G, c, d, lam, grid, active=(), signs=(), most=10_000):
    A = empty_homotopy(len(c))
    A.active[: len(active)] = active
    A.sign[list(active)] = signs
    A.whole[0] = len(active)
    module.factorise(A, G, 1e-13)
    module.aim(A, c, d, lam, 0)
    out = np.zeros((len(grid), len(c)))
    bound = lam * (1 + 1e-11) + 1e-14 * np.abs(c)
    ended = module.follow(A, G, c, d, lam, bound, 1.0, grid, out, 1e-13, most)
    return A, out, ended


def case(seed, n, m):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, m)) + rng.normal(size=(n, 1))
    y = rng.normal(size=n)
    return np.ascontiguousarray(A.T @ A), A.T @ y, rng


def test_signatures():
    for name in ("factorise", "aim", "follow"):
        assert list(inspect.signature(getattr(compiled, name).py_func).parameters) == list(
            inspect.signature(getattr(twins, name)).parameters
        )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("shape", [(30, 12), (8, 20)])
@pytest.mark.parametrize("most", [10_000, 5])
def test_the_same_as_the_twin(seed, shape, most):
    G, c, rng = case(seed, *shape)
    lam = 0.03 * np.abs(c).max() * rng.uniform(0.2, 1.0, len(c))
    lam[0] = 0.0
    grid = np.array([0.9, 0.5, 0.1, 0.0])
    ours = followed(compiled, G, c, -c, lam, grid, [0], [0.0], most)
    twin = followed(twins, G, c, -c, lam, grid, [0], [0.0], most)
    np.testing.assert_allclose(ours[1], twin[1], atol=1e-10)
    assert ours[2] == pytest.approx(twin[2], abs=1e-12)
    for name in ("whole", "active", "sign", "place", "leaves"):
        k = ours[0].whole[0] if name == "active" else None
        assert getattr(ours[0], name)[:k].tolist() == getattr(twin[0], name)[:k].tolist()
    k = ours[0].whole[0]
    np.testing.assert_allclose(np.tril(ours[0].L[:k, :k]), np.tril(twin[0].L[:k, :k]), atol=1e-9)
    np.testing.assert_allclose(ours[0].v0, twin[0].v0, atol=1e-9)


def test_dependent_columns_in_both():
    G, c, _ = case(3, 20, 6)
    twice = np.concatenate([np.arange(6), [2, 4]])
    G, c = np.ascontiguousarray(G[np.ix_(twice, twice)]), c[twice]
    lam = np.full(8, 0.01 * np.abs(c).max())
    start = ([2, 6, 4], [1.0, 1.0, 1.0])
    results = [followed(m, G, c, np.zeros(8), lam, np.zeros(1), *start) for m in (compiled, twins)]
    for A, _, ended in results:
        assert ended == 0.0
        assert A.whole[0] <= 6
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-10)
