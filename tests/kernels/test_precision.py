"""Digits where formulas as they stand in books lose them: large orders, far and huge inputs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mercer.kernels import RBF, ArcSine, Exponential, Matern, Periodic, RationalQuadratic
from mercer.kernels.bessel import matern_slope, matern_value

# ----------------------------------------------------------------------------------------- Matérn

ORDERS = [0.05, 0.8, 1.0, 1.5, 7.3, 24.0, 26.0, 30.0, 49.0, 51.0, 60.0, 100.0, 200.0, 1000.0]
DISTANCES = np.array([1e-13, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 13.0, 20.0])

# nu, r, k and dk/d(r^2), with mpmath at 40 digits: z = sqrt(2 nu) r,
# 2**(1-nu)/gamma(nu) z**nu besselk(nu, z) and -2**(1-nu)/gamma(nu) nu z**(nu-1) besselk(nu-1, z)
GOLDEN = [
    (0.05, 1e-13, 0.9558420687965091, -2.207896560174545e23),
    (0.05, 0.3, 0.2195694775787358, -0.4271615434272549),
    (0.05, 3, 0.04490314620834051, -0.003309654077555856),
    (0.8, 1e-13, 1.0, -300261.0017545687),
    (0.8, 0.3, 0.8307810107496931, -1.145462009428007),
    (0.8, 3, 0.04343783871960054, -0.0085331813095424),
    (7.3, 1e-13, 1.0, -0.5793650793650794),
    (7.3, 0.3, 0.949432925450188, -0.5447830794083118),
    (7.3, 3, 0.01828214685033712, -0.006752377529915824),
    (30, 1e-13, 1.0, -0.5172413793103448),
    (30, 0.3, 0.9545520413005627, -0.4929157696431059),
    (30, 3, 0.01309063475142117, -0.005918010208170281),
    (51, 1e-13, 1.0, -0.51),
    (51, 0.3, 0.9551579788535854, -0.4866751276914614),
    (51, 3, 0.01229800414010276, -0.005775333417063476),
    (200, 1e-13, 1.0, -0.5025125628140704),
    (200, 0.3, 0.9557862612032748, -0.4801849475658166),
    (200, 3, 0.01141898977142929, -0.005612809355356883),
    (1000, 1e-13, 1.0, -0.5005005005005005),
    (1000, 0.3, 0.9559553915814348, -0.4784345586243582),
    (1000, 3, 0.0111713857086034, -0.005566273194802404),
]


def mixture(s, nu):
    """k(s) and k'(s) as a mixture of RBF kernels: the mean of exp(-nu s/(2u)), u ~ Gamma(nu, 1).

    By the trapezoidal rule in y = log(u/nu), which converges exponentially.
    """
    low, high = (-40.0 / min(nu, 1.0), 8.0) if nu < 20.0 else (-12.0 / nu**0.5, 12.0 / nu**0.5)
    y = np.linspace(low, high, 40001)
    weights = np.exp(nu * (y - np.expm1(y)))
    weights /= weights.sum()
    with np.errstate(under="ignore", over="ignore"):
        precision = np.minimum(0.5 * np.exp(-y), 1e300)
        parts = weights * np.exp(-np.multiply.outer(s, precision))
        return parts.sum(axis=-1), -(parts * precision).sum(axis=-1)


@pytest.mark.parametrize("nu", ORDERS)
def test_matern_of_any_order(nu):
    s = DISTANCES**2
    value, slope = mixture(s, nu)
    # one rounding of an exponent of 200, a squared distance of 400
    np.testing.assert_allclose(matern_value(s, nu), value, rtol=2e-13)
    seen = slice(None) if nu > 2.0 else slice(5, None)  # what the slope's integral has near u = 0
    np.testing.assert_allclose(matern_slope(s, nu)[seen], slope[seen], rtol=5e-13)
    assert matern_value(np.zeros(1), nu)[0] == 1.0


@pytest.mark.parametrize(("nu", "r", "value", "slope"), GOLDEN)
def test_matern_golden(nu, r, value, slope):
    s = np.array([float(r) ** 2])
    np.testing.assert_allclose(matern_value(s, float(nu)), value, rtol=2e-14)
    np.testing.assert_allclose(matern_slope(s, float(nu)), slope, rtol=2e-14)


@pytest.mark.parametrize("nu", [3.0, 20.0, 49.0, 60.0, 100.0, 200.0, 1e4])
def test_matern_is_positive(nu):
    X = np.random.default_rng(0).uniform(0.0, 10.0, (100, 1))
    K = Matern(1.0, nu=nu)(X)
    assert np.all(np.diagonal(K) == 1.0)
    assert np.linalg.eigvalsh(K)[0] > -1e-13


@pytest.mark.parametrize("nu", ORDERS)
def test_matern_gradients(nu):
    rng = np.random.default_rng(1)
    X, Z, G = rng.normal(size=(6, 2)), rng.normal(size=(4, 2)), rng.normal(size=(6, 4))
    k = Matern([0.7, 1.9], nu=nu)
    pulled = k.pullback(X, Z, G)
    h = 1e-6

    def loss(theta=k.theta, X=X):
        return np.sum(G * k.with_theta(theta)(X, Z))

    for i, e in enumerate(np.eye(2)):
        rise = loss(k.theta + h * e) - loss(k.theta - h * e)
        assert pulled.theta[i] == pytest.approx(rise / (2 * h), rel=1e-6, abs=1e-8)
        rise = np.sum(G * (k(X + h * e, Z) - k(X - h * e, Z)), axis=1)
        np.testing.assert_allclose(pulled.X[:, i], rise / (2 * h), rtol=1e-6, atol=1e-8)


def test_matern_tends_to_rbf():
    s = DISTANCES[:-3] ** 2
    np.testing.assert_allclose(matern_value(s, 1e14), np.exp(-0.5 * s), rtol=1e-11)
    np.testing.assert_array_equal(matern_value(np.array([1e5, 1e200]), 1e9), 0.0)


# ---------------------------------------------------------------------------------------- arcsine


def exact_arcsine(x, y, scale):
    """Return k with r^2 in fractions: what is left to round is the arctangent."""

    def dot(a, b):
        return sum((Fraction(p) * Fraction(q) for p, q in zip(a, b, strict=True)), Fraction(1))

    u, v, w = (Fraction(scale) * t for t in (dot(x, y), dot(x, x), dot(y, y)))
    r2 = (1 + 2 * v) * (1 + 2 * w) - 4 * u * u
    return 2.0 / np.pi * np.arctan2(2.0 * float(u), np.sqrt(float(r2)))


@pytest.mark.parametrize("far", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("place", ["around a point", "on a ray", "everywhere", "near and far"])
def test_arcsine_far_from_0(far, d, place):
    rng = np.random.default_rng(d)
    X = {
        "around a point": far + rng.normal(size=(40, d)),
        "on a ray": far * rng.uniform(0.1, 1.0, (40, 1)) * [1.0, 0.3, 0.7][:d],
        "everywhere": far * rng.normal(size=(40, d)),
        "near and far": far ** rng.uniform(0.0, 1.0, (40, 1)) * rng.normal(size=(40, d)),
    }[place]
    X[0] = 0.0
    k = ArcSine(0.7)
    K = k(X)
    exact = [[exact_arcsine(x, y, 0.7) for y in X.tolist()] for x in X.tolist()]
    np.testing.assert_allclose(K, exact, rtol=1e-13, atol=1e-14)
    assert np.linalg.eigvalsh(K)[0] > -1e-13
    np.testing.assert_allclose(k.diag(X), np.diagonal(K), rtol=1e-14)


DIRECTIONS = np.array([[3.0, 1.0], [1.0, 2.0], [-1.0, 4.0], [3.0, -2.0]])


@pytest.mark.parametrize("far", [1e60, 1e78, 1e155, 1e300])
@pytest.mark.parametrize("scale", [None, 1e-10, 1e10, [2.0, 2.0]])
@pytest.mark.filterwarnings("error")
def test_arcsine_of_directions(far, scale):
    # Far out k is 1 - 2/pi times the angle between rows, whose derivative is across a row.
    x, y = DIRECTIONS.T
    angles = np.arctan2(y, x)
    between = angles[:, None] - angles
    X, k = far * DIRECTIONS, ArcSine(0.7, scale)
    np.testing.assert_allclose(k(X), 1.0 - 2.0 / np.pi * np.abs(between), rtol=0, atol=1e-15)
    np.testing.assert_allclose(k.diag(X), 1.0, rtol=1e-15)
    ordinary = DIRECTIONS * (0.1 if scale is None else 0.1 * np.min(scale))
    np.testing.assert_allclose(k(np.vstack([X, ordinary]))[4:, 4:], k(ordinary), rtol=1e-14)

    pulled = k.pullback(X, X, np.ones((4, 4)))
    across = np.stack([-y, x], axis=1) / (x**2 + y**2)[:, None]
    slopes = -2.0 / np.pi * np.sign(between).sum(axis=1)[:, None] * across
    np.testing.assert_allclose(pulled.X * far, slopes, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(pulled.Z * far, slopes, rtol=1e-12, atol=1e-15)
    # A length scale of all columns turns no row; nor does the variance of the weights.
    lengths = [] if scale is None else -2.0 * np.sum(slopes * DIRECTIONS, axis=0)
    wanted = [0.0, *lengths] if np.ndim(scale) else np.zeros(1 + np.size(lengths) // 2)
    np.testing.assert_allclose(pulled.theta, wanted, rtol=1e-13, atol=1e-14)
    of_diag = k.pullback_diag(X, np.ones(4))
    assert np.all(np.abs(of_diag.X) < 1e-50) and np.all(np.abs(of_diag.theta) < 1e-50)


@pytest.mark.parametrize("far", [1e80, 1e200, 1e300])
@pytest.mark.filterwarnings("error")
def test_arcsine_in_one_column_far_out(far):
    X = np.array([[far], [0.5 * far], [-far], [0.3]])
    k = ArcSine(0.7, 1.0)
    limit = exact_arcsine([0.3], [1e15], 0.7)
    wanted = [1.0, 1.0, -1.0, limit], [1.0, 1.0, -1.0, limit], [-1.0, -1.0, 1.0, -limit]
    np.testing.assert_allclose(k(X)[:3], wanted, rtol=1e-14)
    pulled = k.pullback(X, X, np.ones((4, 4)))
    assert np.all(np.isfinite(pulled.theta)) and np.all(np.abs(pulled.X[:3]) < 1e-50)


# --------------------------------------------------------------------------------------- periodic


def test_periodic_many_periods_away():
    p = 0.75  # periods and phases that are exact in binary
    phase = np.array([[0.0], [0.125], [0.5]])
    turns = np.array([[0.0], [2.0**45], [-(2.0**44)]])
    k = Periodic(0.8, p)
    np.testing.assert_allclose(k(phase + p * turns), k(phase), rtol=1e-14)
    one = np.ones((3, 3))
    np.testing.assert_allclose(
        k.pullback(phase + p * turns, phase, one).X, k.pullback(phase, phase, one).X, atol=1e-13
    )


# --------------------------------------------------------------------------- distances beyond 1e154


@pytest.mark.parametrize(
    "make",
    [
        RBF,
        Exponential,
        lambda scale: Matern(scale, nu=1.5),
        lambda scale: Matern(scale, nu=2.5),
        lambda scale: Matern(scale, nu=0.8),
        lambda scale: Matern(scale, nu=60.0),
        RationalQuadratic,
    ],
)
@pytest.mark.parametrize("scale", [1.0, [1.0, 2.0], 1e-8])
@pytest.mark.filterwarnings("error")
def test_distances_whose_squares_overflow(make, scale):
    X = np.array(
        [[0.0, 0.0], [1e-8, 0.0], [1e160, 0.0], [1e160, 1e170], [-1e308, 1e308], [1e150, 0]]
    )
    k = make(scale)
    K = k(X)
    assert np.all(np.isfinite(K)) and np.all(np.abs(K[2:] - np.eye(6)[2:]) < 1e-60)
    pulled = k.pullback(X, None, np.ones((6, 6)))
    near = k.pullback(X[:2], None, np.ones((2, 2)))
    lengths = slice(0, np.size(scale))
    np.testing.assert_allclose(pulled.theta[lengths], near.theta[lengths], atol=1e-60)
    np.testing.assert_allclose(pulled.X, np.vstack([near.X, np.zeros((4, 2))]), atol=1e-60)
