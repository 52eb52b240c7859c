"""Sparse evidence where digits are easily lost: inducing inputs that crowd, targets far from 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg.lapack import dtrcon

from mercer.inference import exact, sparse
from mercer.inference._approximations import approximation
from mercer.inference._sparse_rows import row_solution
from mercer.inference.sparse import SparseProblem, evidence, evidence_bounds, solve
from mercer.kernels import RBF

from .sparse_dense import MEANS, exact_problem, make


def crowded(name, noise):
    """Return a problem whose inducing inputs stand far closer than a length scale."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 10, (300, 1)), axis=0)
    y = np.sin(X) + np.sqrt(noise) * rng.normal(size=X.shape)
    Z = np.linspace(0, 10, 60)[:, None]
    kernel, jitter, groups = 2.0 * RBF(1.5), 1e-9, np.arange(300) // 50
    return SparseProblem(
        kernel, X, y, np.full(300, noise), Z, approximation(name, 0.3), jitter=jitter, groups=groups
    )


@pytest.mark.parametrize("noise", [1e-4, 1e-2])
@pytest.mark.parametrize("name", ["sor", "dtc", "vfe", "fitc", "pep", "pitc"])
def test_derivatives_with_crowded_inducing_inputs(name, noise):
    p = crowded(name, noise)
    adjoints = evidence(p, inputs=True)[1]
    h = 1e-4

    def slope(up, down):
        return (solve(up).log_evidence - solve(down).log_evidence) / (2 * h)

    def at(change):
        kernel = p.kernel.with_theta(p.kernel.theta + change)
        return replace(p, kernel=kernel)

    for i, e in enumerate(np.eye(2)):
        found = slope(at(h * e), at(-h * e))
        assert adjoints.theta[i] == pytest.approx(found, rel=1e-3, abs=0.02)
    found = slope(replace(p, noise=p.noise * np.exp(h)), replace(p, noise=p.noise * np.exp(-h)))
    assert adjoints.noise == pytest.approx(found, rel=1e-3, abs=0.02)


@pytest.mark.parametrize("name", ["sor", "dtc", "vfe", "fitc", "pep", "pitc"])
def test_derivatives_in_inducing_inputs_that_crowd(monkeypatch, name):
    monkeypatch.setattr(sparse, "_LOSS", 0.0)
    p = crowded(name, 1e-2)
    p = replace(p, Z=np.linspace(0, 4, 12)[:, None], jitter=1e-8)  # which leave most of the rows
    got = evidence(p, inputs=True)[1].Z[:, 0]
    h = 1e-3 * np.eye(12)[:, :, None]  # below this the values' rounding is seen
    expected = [
        (solve(replace(p, Z=p.Z + e)).log_evidence - solve(replace(p, Z=p.Z - e)).log_evidence)
        for e in h
    ]
    expected = np.array(expected) / 2e-3
    np.testing.assert_allclose(got, expected, atol=1e-5 * np.max(np.abs(expected)))
    assert np.max(np.abs(expected)) > 1.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", ["sor", "dtc", "vfe", "fitc", "pep", "pitc"])
def test_both_ways_to_a_derivative_agree(monkeypatch, name, mean, weighted):
    p, _ = make(name, mean, weighted)
    found = []
    for loss in (0.0, np.inf):  # K_uu^-1 applied to each row, and multiplied out
        monkeypatch.setattr(sparse, "_LOSS", loss)
        found.append(evidence(p, inputs=True)[1])
    for got, expected in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("mean", ["estimated", "integrated"])
@pytest.mark.parametrize("name", ["vfe", "fitc", "pitc"])
def test_targets_far_from_zero(name, mean, held):
    near, _ = make(name, mean)
    near = replace(near, beta=solve(near).beta, integrate=False) if held else near
    constant = np.zeros((near.H.shape[1], 2))
    constant[np.flatnonzero(np.ptp(near.H, axis=0) == 0)[0]] = 1e7
    moved = replace(near, Y=near.Y + near.H @ constant)
    moved = replace(moved, beta=near.beta + constant) if held else moved
    a, b = solve(near), solve(moved)
    assert b.log_evidence == pytest.approx(a.log_evidence, abs=1e-5)
    np.testing.assert_allclose(b.beta - constant, a.beta, atol=1e-6)
    np.testing.assert_allclose(b.alpha, a.alpha, rtol=1e-5, atol=1e-6)
    for got, expected in zip(row_solution(moved, b), row_solution(near, a), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-6)
    lower, upper, _ = evidence_bounds(moved)
    assert lower - 1e-5 <= exact.solve(exact_problem(near)).log_evidence <= upper + 1e-5


def test_many_rows_lose_more_than_one(monkeypatch):
    p, _ = make("dtc")
    L = solve(p).L
    precision = np.max(1.0 / p.noise)
    lost = 1.3 * precision * np.finfo(float).eps / dtrcon(L, uplo="L")[0] ** 2  # of one row
    monkeypatch.setattr(sparse, "_LOSS", 1.5 * lost)
    assert sparse._is_safe(p, L)
    monkeypatch.setattr(sparse, "_ROWS", 2.0)
    assert not sparse._is_safe(p, L)
