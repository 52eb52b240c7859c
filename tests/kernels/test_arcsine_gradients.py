"""The derivatives of the arcsine kernel far from 0, where the books' formula cancels."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mercer.kernels import ArcSine

SCALE = 0.7


def dot(a, b):
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(1))


def exact_slopes(x, y, scale=SCALE):
    """dk/dx and dk/d log scale: the textbook's formulas in fractions, rounded at the very end."""
    x, y, s = [Fraction(v) for v in x], [Fraction(v) for v in y], Fraction(scale)
    u, v, w = s * dot(x, y), s * dot(x, x), s * dot(y, y)
    r = np.sqrt(float((1 + 2 * v) * (1 + 2 * w) - 4 * u * u))
    inner = [s * (q - 2 * u * p / (1 + 2 * v)) for p, q in zip(x, y, strict=True)]
    scaled = u * (1 - v / (1 + 2 * v) - w / (1 + 2 * w))
    return np.array([4 / np.pi * float(g) / r for g in inner]), 4 / np.pi * float(scaled) / r


def places(far, d):
    rng = np.random.default_rng(d)
    return {
        "around a point": far + rng.normal(size=(8, d)),
        "close together": far + 1e-3 * rng.normal(size=(8, d)),
        "on a ray": far * rng.uniform(0.1, 1.0, (8, 1)) * np.ones(d),
        "everywhere": far * rng.normal(size=(8, d)),
        "one at 0": np.vstack([np.zeros(d), far + rng.normal(size=(7, d))]),
    }


@pytest.mark.parametrize("far", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("place", list(places(1.0, 1)))
def test_input_gradients_far_from_0(far, d, place):
    X = places(far, d)[place]
    Z = X[::-1].copy()
    k = ArcSine(SCALE)
    for i in range(8):
        for j in range(8):
            G = np.zeros((8, 8))
            G[i, j] = 1.0
            pulled = k.pullback(X, Z, G)
            for found, x, y in [(pulled.X[i], X[i], Z[j]), (pulled.Z[j], Z[j], X[i])]:
                exact = exact_slopes(x, y)[0]
                # rounding of the one vector that is rounded, never a part of |x|^2
                np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-13 * max(abs(exact)))


@pytest.mark.parametrize("far", [1e3, 1e6])
@pytest.mark.parametrize("d", [1, 3])
def test_sums_of_many_terms(far, d):
    rng = np.random.default_rng(0)
    X, Z, G = (
        far + rng.normal(size=(20, d)),
        far + rng.normal(size=(30, d)),
        rng.normal(size=(20, 30)),
    )
    exact = np.array([[exact_slopes(x, z)[0] for z in Z.tolist()] for x in X.tolist()])
    want, size = np.einsum("ij,ijk->ik", G, exact), np.einsum("ij,ijk->ik", abs(G), abs(exact))
    assert np.all(abs(ArcSine(SCALE).pullback(X, Z, G).X - want) < 1e-12 * size)
    S = G[:, :20] + G[:, :20].T
    exact = np.array([[exact_slopes(x, z)[0] for z in X.tolist()] for x in X.tolist()])
    want, size = np.einsum("ij,ijk->ik", S, exact), np.einsum("ij,ijk->ik", abs(S), abs(exact))
    assert np.all(abs(ArcSine(SCALE).pullback(X, None, S).X - 2 * want) < 1e-12 * size)


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_the_formula_for_one_column(far):
    # With one column dk/dx = 4/pi s (x' + 2 s (x' - x)) / (r (1 + 2v)), in which nothing cancels.
    s, t = 2.0, 1.5
    k = ArcSine(s)
    found = k.pullback([[far]], [[far + t]], [[1.0]]).X[0, 0]
    r = np.sqrt(1 + 2 * s * (1 + far**2) + 2 * s * (1 + (far + t) ** 2) + 4 * s**2 * t**2)
    exact = 4 / np.pi * s * ((1 + 2 * s) * t + far) / (r * (1 + 2 * s * (1 + far**2)))
    assert found == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("far", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("d", [1, 2])
def test_scale_gradient_far_from_0(far, d):
    X = places(far, d)["around a point"]
    k = ArcSine(SCALE)
    for i in range(8):
        for j in range(8):
            G = np.zeros((8, 8))
            G[i, j] = 1.0
            assert k.pullback(X, X.copy(), G).theta[0] == pytest.approx(
                exact_slopes(X[i], X[j])[1], rel=1e-12
            )
