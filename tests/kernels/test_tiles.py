"""The cutting into tiles: any size and any number of threads give the same matrices."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer.kernels import (
    RBF,
    Flipped,
    Kernel,
    Linear,
    Polynomial,
    RationalQuadratic,
    Tanh,
    assembly,
)
from mercer.kernels.tiles import scratch

from .cases import inputs
from .marks import every


def everything(k, X, Z, G, S, inputs):
    """All that a kernel can be asked, as a list of arrays."""
    cross, one = k.pullback(X, Z, G, inputs=inputs), k.pullback(X, None, S, inputs=inputs)
    diagonal = k.pullback_diag(X, S[0], inputs=inputs)
    products = k.times(X, Z, np.random.default_rng(7).normal(size=(len(Z), 2)))
    V = np.random.default_rng(8).normal(size=(len(X), 2))
    grams = [k.gram_times(X, V, squared=squared) for squared in (False, True)]
    arrays = [
        products,
        *grams,
        k(X),
        k(X, Z),
        np.tril(k.gram_lower(X)),
        k.diag(X),
        *cross,
        *one,
        *diagonal,
    ]
    return [a for a in arrays if a is not None]


@every
@pytest.mark.parametrize("tile", [1, 3, 5])
def test_small_tiles(case, tile, monkeypatch):
    X, Z = inputs(case, 11, 0), inputs(case, 7, 1)
    rng = np.random.default_rng(0)
    G, S = rng.normal(size=(11, 7)), rng.normal(size=(11, 11))
    S = S + S.T
    arguments = (case.kernel, X, Z, G, S, case.inputs != "words")
    whole = everything(*arguments)
    monkeypatch.setattr(assembly, "TILE", tile)
    for a, b in zip(everything(*arguments), whole, strict=True):
        np.testing.assert_allclose(
            a, b, rtol=1e-10, atol=1e-10 * (1.0 + np.max(np.abs(b), initial=0))
        )


@every
@pytest.mark.parametrize("tile", [1, 3, 256])
def test_blocks_are_pieces_of_the_matrix_in_their_order(case, tile, monkeypatch):
    X, Z = inputs(case, 5, 0), inputs(case, 40, 1)
    expected = case.kernel(X, Z)
    monkeypatch.setattr(assembly, "TILE", tile)
    blocks = case.kernel.map_blocks(lambda rows, K: (rows, K.copy()), X, Z)
    assert [rows.start for rows, _ in blocks] == [0, *(rows.stop for rows, _ in blocks[:-1])]
    found = np.concatenate([K for _, K in blocks], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@every
def test_times_is_the_matrix_times_the_weights(case):
    X, Z = inputs(case, 11, 0), inputs(case, 7, 1)
    V = np.random.default_rng(0).normal(size=(7, 3))
    V.flags.writeable = False
    expected = case.kernel(X, Z) @ V
    size = 1.0 + np.max(np.abs(expected))
    np.testing.assert_allclose(case.kernel.times(X, Z, V), expected, rtol=1e-12, atol=1e-12 * size)
    assert case.kernel.times(X[:0], Z, V).shape == (0, 3)
    np.testing.assert_array_equal(case.kernel.times(X, Z[:0], V[:0]), np.zeros((11, 3)))


@pytest.mark.parametrize("spread", [1.0, 1e76, 1e300])
@pytest.mark.parametrize("d", [1, 64, 65])
def test_times_where_rows_are_far_apart_or_have_many_columns(spread, d):
    rng = np.random.default_rng(0)
    X, V = spread * rng.normal(size=(9, d)), rng.normal(size=(9, 1))
    for kernel in (RBF(2.0), RationalQuadratic(3.0, 0.2), RBF(np.geomspace(1e-3, 1e3, d))):
        np.testing.assert_allclose(kernel.times(X, X, V), kernel(X) @ V, rtol=1e-12, atol=1e-14)


KERNELS = {
    "rbf": 2.0 * RBF([0.5, 1.0, 2.0]),
    "dot": Polynomial(3, 0.5) + Linear(0.3, [1.0, 2.0, 3.0]),
    "deep": RationalQuadratic(1.0, 0.7).on([0, 2]) * Tanh(0.3, 0.1) + RBF(2.0) ** 2,
}


@pytest.mark.parametrize("n", [40, 600])
@pytest.mark.parametrize("name", KERNELS)
def test_any_number_of_threads_gives_the_same_bits(name, n):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(n, 3)), rng.normal(size=(300, 3))
    G, S = rng.normal(size=(n, 300)), rng.normal(size=(n, n))
    S = S + S.T
    results = []
    for threads in (1, 2, 2):
        with threadpool_limits(threads):
            results.append(everything(KERNELS[name], X, Z, G, S, True))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_threads_and_kernels_in_one_piece():
    """Their matrix products run on the BLAS's own threads, so the last bits may differ."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 2)), rng.normal(size=(40, 2))
    k = Flipped(Tanh(0.7, -0.4), X[:50]) * RBF(2.0)
    G, S = rng.normal(size=(300, 40)), rng.normal(size=(300, 300))
    S = S + S.T
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(everything(k.with_theta(k.theta), X, Z, G, S, True))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9 * np.max(np.abs(b)))


def test_more_rows_than_a_tile():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(assembly.TILE + 3, 2))
    k = RBF([0.7, 1.9])
    scaled = X / [0.7, 1.9]
    squares = np.sum(scaled**2, axis=1)
    expected = np.exp(-0.5 * (squares[:, None] + squares - 2.0 * scaled @ scaled.T))
    np.testing.assert_allclose(k(X), expected, atol=1e-12)


def test_a_failing_tile_raises_in_the_caller(monkeypatch):
    monkeypatch.setattr(assembly, "TILE", 2)

    class Broken(RBF):
        def _block(self, A, B):
            if 3.0 in B:
                raise RuntimeError("tile of 3")
            return super()._block(A, B)

    X = np.arange(12.0)[:, None]
    with pytest.raises(RuntimeError, match="tile of 3"):
        Broken()(X)


def test_a_subclass_must_say_what_it_is():
    class Bare(Kernel):
        def __init__(self):
            self._set()

    X = np.zeros((2, 1))
    for call in (
        lambda: Bare()(X),
        lambda: Bare().diag(X),
        lambda: Bare().pullback(X, None, np.ones((2, 2))),
        lambda: Bare().pullback_diag(X, np.ones(2)),
    ):
        with pytest.raises(NotImplementedError, match="Bare must define"):
            call()


@pytest.mark.parametrize("symmetric", [True, False])
def test_derivatives_in_the_inputs_are_added_up_band_by_band(symmetric, monkeypatch):
    monkeypatch.setattr(assembly, "TILE", 60)
    X = np.random.default_rng(0).normal(size=(600, 400))
    Z, G = None if symmetric else X.copy(), np.ones((600, 600))
    k = Linear()
    k.pullback(X, Z, G)
    tracemalloc.start()
    gradient = k.pullback(X, Z, G)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # the result (2 X), the derivatives of the band that is added and of the one that is computed
    # (2 X each), and a tile or two a thread; all tiles kept together would be 10 X or 20 X more
    assert peak < 8 * X.nbytes
    total = np.broadcast_to(X.sum(axis=0), X.shape)
    np.testing.assert_allclose(gradient.X, total * (2.0 if symmetric else 1.0), rtol=1e-9)


@every
def test_rows_may_be_read_only(case):
    X, Z = inputs(case, 11, 0), inputs(case, 7, 1)
    rng = np.random.default_rng(0)
    G, S = rng.normal(size=(11, 7)), np.eye(11)
    expected = everything(case.kernel, X, Z, G, S, case.inputs != "words")
    frozen = [np.array(a) for a in (X, Z, G, S)]
    for a in frozen:
        a.flags.writeable = False
    found = everything(case.kernel, *frozen, case.inputs != "words")
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_memory_is_lent_again_only_when_no_view_of_it_is_left():
    first = scratch(4, 5)
    where = first.__array_interface__["data"][0]
    first[:] = 7.0
    view = first.reshape(-1)[3:9].T
    del first
    others = [scratch(4, 5) for _ in range(20)]
    for other in others:
        other[:] = 0.0
    np.testing.assert_array_equal(view, 7.0)
    assert where not in [other.__array_interface__["data"][0] for other in others]
    del view, other, others
    again = [scratch(2, 2) for _ in range(8)]
    assert where in [a.__array_interface__["data"][0] for a in again]
    assert scratch(300, 300).shape == (300, 300)
