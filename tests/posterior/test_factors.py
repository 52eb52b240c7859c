from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.posterior import Dense, InverseTriangular


@pytest.fixture
def triangle():
    rng = np.random.default_rng(0)
    L = np.asfortranarray(rng.standard_normal((5, 5)))
    L[np.diag_indices(5)] = 2.0 + rng.random(5)
    return L  # its upper triangle is full of numbers that must not matter


@pytest.mark.parametrize("extra", [0, 2])
def test_inverse_triangular(triangle, extra):
    factor = InverseTriangular(triangle)
    inverse = np.linalg.inv(np.tril(triangle))
    Phi = np.random.default_rng(1).standard_normal((7, 5 + extra))
    kept = Phi.copy()
    assert_allclose(factor.apply(Phi), inverse @ Phi[:, :5].T, rtol=1e-11, atol=1e-13)
    assert_array_equal(Phi, kept)
    V = np.random.default_rng(2).standard_normal((5, 3))
    assert_allclose(factor.pull(V), inverse.T @ V, rtol=1e-11, atol=1e-13)
    assert_allclose(factor.gram(), inverse.T @ inverse, rtol=1e-11, atol=1e-13)
    assert_allclose(
        factor.apply(Phi, overwrite=True), inverse @ kept[:, :5].T, rtol=1e-11, atol=1e-13
    )


def test_inverse_triangular_works_in_the_memory_it_is_given(triangle):
    Phi = np.random.default_rng(1).standard_normal((7, 5))
    image = InverseTriangular(triangle).apply(Phi, overwrite=True)
    assert np.shares_memory(image, Phi)
    assert np.shares_memory(InverseTriangular(triangle).L, triangle)


def test_dense():
    rng = np.random.default_rng(3)
    M, Phi, V = (rng.standard_normal(s) for s in [(4, 6), (7, 6), (4, 3)])
    factor = Dense(M)
    assert_allclose(factor.apply(Phi), M @ Phi.T)
    assert_allclose(factor.pull(V), M.T @ V)
    assert_allclose(factor.gram(), M.T @ M)


def test_states_keep_the_triangle_only(triangle):
    state = InverseTriangular(triangle).to_state()
    assert state["packed"].shape == (15,)
    again = InverseTriangular.from_state(state)
    assert_array_equal(again.L, np.tril(triangle))
    assert again.L.flags.f_contiguous
    empty = InverseTriangular.from_state(InverseTriangular(np.empty((0, 0))).to_state())
    assert empty.n_rows == 0


def test_bad_factors_are_refused():
    with pytest.raises(ValueError, match="square"):
        InverseTriangular(np.ones((2, 3)))
    with pytest.raises(ValueError, match="diagonal"):
        InverseTriangular(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="matrix"):
        Dense(np.ones(3))
    with pytest.raises(ValueError, match="NaN"):
        Dense([[np.nan]])
    with pytest.raises(ValueError, match="not of shape"):
        InverseTriangular.from_state({"order": 3, "packed": np.ones(5)})
