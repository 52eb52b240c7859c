"""Functions without a penalty, taken out as far as they can be."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference._columns import ArrayColumns, KernelColumns
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference.laplacian import PRIORS, largest_penalty, solve
from mercer.kernels import RBF

from .expansion_cases import (
    NOISES,
    Case,
    values_at,
)

each_noise = pytest.mark.parametrize("name", NOISES)


def test_an_offset_of_the_targets_changes_nothing():
    case, far = Case("gaussian", free=True), 1e7
    problem, moved = case.problem(), Case("gaussian", free=True)
    moved.y = case.y + far
    there = moved.problem()
    for prior in PRIORS:
        near, found = solve(problem, prior, 0.5), solve(there, prior, 0.5)
        assert found.status == near.status == "certified"
        assert found.objective == pytest.approx(near.objective, rel=1e-7)
        assert abs(found.objective - found.dual) <= 1e-9 * found.objective
        np.testing.assert_allclose(found.latent - far, near.latent, atol=1e-7)
        np.testing.assert_allclose(found.beta - [far, 0], near.beta, atol=1e-6)


@each_noise
@pytest.mark.parametrize("prior", PRIORS)
def test_columns_that_are_nearly_constant_beside_a_free_constant(name, prior):
    case = Case(name)
    rows = case.x[:, None]
    H = np.ones((len(rows), 1))
    problem = ExpansionProblem.of(KernelColumns(RBF(1e4), rows), NOISES[name], case.y, H=H)
    found = solve(problem, prior, 0.1 * largest_penalty(problem))
    assert found.status == "certified"


def test_targets_that_free_functions_pass_through():
    x = np.linspace(-1, 1, 20)
    H = np.c_[np.ones(20), x]
    Phi = np.exp(-((x[:, None] - x) ** 2))
    problem = ExpansionProblem.of(ArrayColumns(Phi), NOISES["gaussian"], 1e6 + 3 * x, H=H)
    for prior in PRIORS:
        found = solve(problem, prior, 0.1)
        assert found.status == "certified"
        np.testing.assert_allclose(found.beta, [1e6, 3], rtol=1e-9)
        assert not len(found.indices)


def test_one_outlier_does_not_cost_the_digits_of_the_others():
    case, moved = Case("laplace", free=True), Case("laplace", free=True)
    at = int(np.argmax(case.y))
    case.y[at], moved.y[at] = 1e3, 1e5
    found, far = solve(case.problem(), lam=0.5), solve(moved.problem(), lam=0.5)
    others = np.delete(np.arange(len(case.y)), at)
    np.testing.assert_allclose(far.latent[others], found.latent[others], atol=1e-9)


def test_free_functions_that_depend_on_each_other():
    case, twice = Case("huber", free=True), Case("huber", free=True)
    twice.H = np.c_[twice.H, twice.H @ [1e3, 2.0]]
    for prior in PRIORS:
        found, other = solve(case.problem(), prior, 0.5), solve(twice.problem(), prior, 0.5)
        assert other.status == "certified"
        assert other.objective == pytest.approx(found.objective, rel=1e-9)
        np.testing.assert_allclose(values_at(other, twice), other.latent, atol=1e-9)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("one_class", [False, True])
def test_labels_that_free_functions_tell_apart(prior, one_class):
    case = Case("logistic", n=80, free=True)
    case.y = np.ones(80) if one_class else np.where(case.x > 0.01, 1.0, -1.0)
    found = solve(case.problem(), prior, 0.1)
    assert found.status == "certified"
    assert found.objective <= 1e-9 * 80
