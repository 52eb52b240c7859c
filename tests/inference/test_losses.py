"""Unit losses: conjugates against numerical maximisation, derivatives against differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from mercer.inference._losses_labels import LogisticLoss, QuadraticSoftMargin, SoftMargin
from mercer.inference._losses_numbers import Absolute, Clipped, Insensitive, Squares
from mercer.inference._unit_loss import unit_loss
from mercer.likelihoods import (
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Logistic,
    StudentT,
)

LABELS = np.array([1.0, -1.0, 1.0, -1.0])
TARGETS = np.array([0.3, -1.7, 2.0, 0.0])
LOSSES = {
    "squares": Squares(TARGETS),
    "absolute": Absolute(TARGETS),
    "insensitive": Insensitive(TARGETS, 1.0, 0.4),
    "clipped": Clipped(TARGETS, 1.0, 0.7),
    "logistic": LogisticLoss(LABELS),
    "soft_margin": SoftMargin(LABELS),
    "quadratic_soft_margin": QuadraticSoftMargin(LABELS),
}
# of one row, as the papers print them
FORMULAS = {
    "squares": lambda y, f: (y - f) ** 2 / 2,
    "absolute": lambda y, f: abs(y - f),
    "insensitive": lambda y, f: max(0.0, abs(y - f) - 0.4),
    "clipped": lambda y, f: (
        (y - f) ** 2 / 2 if abs(y - f) <= 0.7 else 0.7 * abs(y - f) - 0.7**2 / 2
    ),
    "logistic": lambda y, f: np.log(1 + np.exp(-y * f)),
    "soft_margin": lambda y, f: max(0.0, 1 - y * f),
    "quadratic_soft_margin": lambda y, f: max(0.0, 1 - y * f) ** 2,
}
each = pytest.mark.parametrize("name", LOSSES)


@each
def test_values(name):
    loss, f = LOSSES[name], np.array([0.1, 0.5, -3.0, 1.2])
    expected = [FORMULAS[name](y, v) for y, v in zip(loss.y, f, strict=True)]
    np.testing.assert_allclose(loss.values(f), expected, rtol=1e-14)


@each
def test_pull_and_curvature_are_derivatives(name):
    loss, f, h = LOSSES[name], np.array([0.11, 0.53, -3.02, 1.27]), 1e-5
    slope = (loss.values(f + h) - loss.values(f - h)) / (2 * h)
    np.testing.assert_allclose(loss.pull(f), -slope, atol=1e-9)
    bend = (loss.pull(f - h) - loss.pull(f + h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(f), bend, atol=1e-8)


@each
@given(share=st.floats(0.02, 0.98))
@settings(max_examples=15, deadline=None)
def test_conjugate_is_the_greatest_difference(name, share):
    loss = LOSSES[name]
    low, high = (np.clip(b, -3.0, 3.0) for b in loss.reach())
    u = low + share * (high - low)
    got = loss.conjugate(-u)
    for i, y in enumerate(loss.y):
        found = minimize_scalar(
            lambda f, y=y, v=-u[i]: FORMULAS[name](y, f) - v * f,
            bounds=(-30.0, 30.0),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert got[i] == pytest.approx(-found.fun, abs=2e-7)


@each
def test_conjugate_is_infinite_out_of_reach(name):
    loss = LOSSES[name]
    low, high = loss.reach()
    for bound in (low, high):
        if np.all(np.isfinite(bound)):
            out = bound + np.where(bound == high, 1e-3, -1e-3)
            assert np.all(np.isinf(loss.conjugate(-out)))
            assert np.all(np.isfinite(loss.conjugate(-bound)))


@each
@given(f=st.floats(-50, 50), share=st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_a_line_of_the_conjugate_never_exceeds_the_loss(name, f, share):
    loss = LOSSES[name]
    low, high = (np.clip(b, -9.0, 9.0) for b in loss.reach())
    v = -(low + share * (high - low))
    values = loss.values(np.full(4, f))
    assert np.all(v * f - loss.conjugate(v) <= values + 1e-12 * (1 + values + 50 * np.abs(v)))


@pytest.mark.parametrize(
    "noise",
    [
        Gaussian(0.3),
        Laplace(0.3),
        EpsilonInsensitive(0.2, 0.3),
        Huber(0.3, 1.5),
        Logistic(),
        Gaussian([0.1, 0.2, 0.3, 0.4]),
    ],
    ids=lambda noise: type(noise).__name__,
)
def test_a_likelihood_is_its_loss_over_the_unit(noise):
    y = LABELS if isinstance(noise, Logistic) else TARGETS
    loss, factor = unit_loss(noise, y)
    f, g = np.array([0.1, 0.5, -3.0, 1.2]), np.array([1.0, -0.2, 0.4, 0.0])
    nats = noise.log_density(y, g) - noise.log_density(y, f)
    weight = 1.0 if factor is None else factor
    got = weight * (loss.values(f) - loss.values(g)) / loss.unit
    np.testing.assert_allclose(got, nats, rtol=1e-12)


def test_the_rows_of_a_loss():
    loss = LOSSES["insensitive"].rows([2, 0])
    assert (loss.zone, loss.y.tolist()) == (0.4, [2.0, 0.3])


@pytest.mark.parametrize(
    ("noise", "y", "words"),
    [
        (Laplace(), TARGETS, "scale of the noise is not chosen yet"),
        (Gaussian(), TARGETS, "noise of the noise is not chosen yet"),
        (Gaussian(np.eye(4)), TARGETS, "a covariance of the rows"),
        (Gaussian([1.0, 0.0, 1.0, 1.0]), TARGETS, "got a 0 among them"),
        (StudentT(), TARGETS, "got StudentT"),
        ("hinge", LABELS, "got 'hinge'"),
        ("soft_margin", TARGETS, "labels must be -1 and 1, got"),
        (Laplace(1.0), np.array([np.nan]), "NaN or infinity"),
        (Laplace(1.0), np.ones((2, 2)), "shape \\(2, 2\\)"),
    ],
)
def test_bad_input(noise, y, words):
    with pytest.raises(ValueError, match=words):
        unit_loss(noise, y)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Insensitive(TARGETS, 1.0, -1.0),
        lambda: Clipped(TARGETS, 1.0, 0.0),
        lambda: Absolute(TARGETS, 0.0),
        lambda: Absolute(TARGETS, 1.0, 0.5),
    ],
)
def test_bad_parameters(make):
    with pytest.raises(ValueError, match="got"):
        make()
