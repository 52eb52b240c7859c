"""Gram matrices of Mercer kernels are positive semi-definite, whatever the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.kernels import (
    RBF,
    ArcSine,
    Categorical,
    Constant,
    EquivalentGP,
    Exponential,
    Features,
    Flipped,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Tanh,
)


def waves(X):
    return np.hstack([np.sin(X), np.cos(X), X])


# Each takes the rows and a scale, from which parameters in the units of the rows are made.
MERCER = {
    "rbf": lambda X, s: RBF(s),
    "rbf-ard": lambda X, s: RBF(np.geomspace(s, 10.0 * s, X.shape[1])),
    "exponential": lambda X, s: Exponential(s),
    "matern32": lambda X, s: Matern(s, nu=1.5),
    "matern52": lambda X, s: Matern(s, nu=2.5),
    "matern-other": lambda X, s: Matern(s, nu=0.9),
    "rational": lambda X, s: RationalQuadratic(s, alpha=0.3),
    "periodic": lambda X, s: Periodic(0.8, 2.0 * s),
    "constant": lambda X, s: Constant(s),
    "linear": lambda X, s: Linear(s, length_scale=s),
    "polynomial": lambda X, s: Polynomial(3, 0.5, length_scale=s),
    "arcsine": lambda X, s: ArcSine(2.0, length_scale=s),
    "categorical": lambda X, s: Categorical(np.linspace(0.0, 1.0, X.shape[1])),
    "features": lambda X, s: Features(waves),
    "equivalent": lambda X, s: EquivalentGP(Tanh(1.0, -0.5, length_scale=s), X[:5]),
    "flipped": lambda X, s: Flipped(Tanh(1.0, -0.5, length_scale=s), X),
    "flipped-few": lambda X, s: Flipped(Tanh(1.0, -0.5, length_scale=s), X[:3]),
    "scaled": lambda X, s: s * RBF(s),
    "sum": lambda X, s: RBF(s) + Linear(0.1, length_scale=s),
    "product": lambda X, s: RBF(s) * Polynomial(2, 0.0, length_scale=s),
    "power": lambda X, s: Exponential(s) ** 0.4,
    "on": lambda X, s: Matern(s).on(0) + Categorical(0.5),
}


@st.composite
def rows(draw):
    """Rows of any scale and place, some repeated, some columns constant or whole numbers."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 10.0 ** draw(st.integers(-3, 3))
    X = rng.normal(size=(n, d)) + draw(st.sampled_from([0.0, 5.0]))
    if draw(st.booleans()):
        X[:, 0] = 1.0
    if draw(st.booleans()):
        X[:, -1] = np.round(X[:, -1])
    if draw(st.booleans()):
        X = X[rng.integers(0, n, n)]
    return scale * X, scale


@pytest.mark.parametrize("name", MERCER)
@settings(max_examples=25, deadline=None)
@given(data=rows(), factor=st.sampled_from([0.1, 1.0, 30.0]))
def test_gram_matrices(name, data, factor):
    X, scale = data
    k = MERCER[name](X, factor * scale)
    assert k.is_mercer
    K = k(X)
    assert np.all(np.isfinite(K))
    np.testing.assert_array_equal(K, K.T)
    size = np.max(np.abs(K))
    np.testing.assert_allclose(k.diag(X), np.diagonal(K), rtol=1e-9, atol=1e-12 * size)
    assert np.linalg.eigvalsh(K)[0] >= -1e-11 * len(X) * size
    # Cauchy and Schwarz
    d = np.sqrt(k.diag(X))
    assert np.all(np.abs(K) <= np.outer(d, d) * (1.0 + 1e-9) + 1e-11 * size)


def test_tanh_is_not():
    X = np.array([[0.0], [1.0], [2.0]])
    assert np.linalg.eigvalsh(Tanh(1.0, -1.0)(X))[0] < -0.1


@settings(max_examples=25, deadline=None)
@given(data=rows(), factor=st.sampled_from([0.3, 3.0]))
def test_a_flipped_kernel_is_the_absolute_value_on_its_anchors(data, factor):
    X, scale = data
    inner = Tanh(1.0, -0.5, length_scale=factor * scale)
    values, E = np.linalg.eigh(inner(X))
    absolute = (E * np.abs(values)) @ E.T
    size = np.max(np.abs(values))
    np.testing.assert_allclose(Flipped(inner, X)(X), absolute, atol=1e-9 * size)
    assert Flipped(inner).anchored(X) == Flipped(inner, X)
