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
        # rows that rounding leaves on the ray
        "on the diagonal": far * rng.uniform(0.1, 1.0, (8, 1)) * np.ones(d),
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


# ------------------------------------------------------------------------------------ near a ray


def exact_lengths(x, y, scale=SCALE):
    """dk/d log(length scales) at length scales of 1."""
    x, y, s = [Fraction(v) for v in x], [Fraction(v) for v in y], Fraction(scale)
    u, p, q = s * dot(x, y), 1 + 2 * s * dot(x, x), 1 + 2 * s * dot(y, y)
    r = np.sqrt(float(p * q - 4 * u * u))
    inner = [2 * s * (a * b - u * (a * a / p + b * b / q)) for a, b in zip(x, y, strict=True)]
    return np.array([-4 / np.pi * float(g) / r for g in inner])


def conditioned(exact, x, y):
    """The exact answer, and how far it goes if every number in x and y moves by an ulp."""
    rng = np.random.default_rng(0)
    at = exact(x, y)
    moves = [
        exact(*(np.nextafter(v, rng.choice([-np.inf, np.inf], v.shape)) for v in (x, y)))
        for _ in range(20)
    ]
    return at, max(np.max(np.abs(m - at)) for m in moves)


def pairs_near_a_ray(far):
    rng = np.random.default_rng(1)
    rows = far * rng.uniform(-1.0, 1.0, (8, 1)) * [1.0, 0.3, 0.7]
    return [(x, y) for x in rows for y in rows if x is not y]


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_input_gradients_near_a_ray_are_those_of_rows_an_ulp_away(far):
    # Across the ray the derivative is |x|^2 times what rounding has left of a direction there.
    for x, y in pairs_near_a_ray(far):
        exact, spread = conditioned(lambda x, y: exact_slopes(x, y)[0], x, y)
        found = ArcSine(SCALE).pullback(x[None], y[None], [[1.0]]).X[0]
        assert np.max(np.abs(found - exact)) < 10.0 * spread + 1e-13 * np.max(np.abs(exact))


@pytest.mark.parametrize("far", [1.0, 1e3, 1e6, 1e9])
def test_length_scale_gradients_near_a_ray(far):
    # Nothing of this is left in the length scales.
    k = ArcSine(SCALE, np.ones(3))
    for x, y in pairs_near_a_ray(far):
        found = k.pullback(x[None], y[None], [[1.0]], inputs=False).theta[1:]
        exact = exact_lengths(x, y)
        np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-13 * max(abs(exact)))


@pytest.mark.parametrize("far", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("place", list(places(1.0, 1)))
def test_length_scale_gradients_far_from_0(far, d, place):
    X = places(far, d)[place]
    k = ArcSine(SCALE, np.ones(d))
    for x, y in zip(X, X[::-1], strict=True):
        found = k.pullback(x[None], y[None], [[1.0]]).theta[1:]
        exact, spread = conditioned(exact_lengths, x, y)
        assert np.max(np.abs(found - exact)) < 10.0 * spread + 1e-13 * np.max(np.abs(exact))
