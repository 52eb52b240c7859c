"""Processes side by side, and outputs that go together at a point."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import load, save
from mercer.inference import exact, softmax
from mercer.inference.exact import ExactProblem
from mercer.kernels import RBF, Matern, Precomputed
from mercer.means import Zero
from mercer.posterior import PrecomputedPredictive, Stacked
from mercer.posterior.outputs import output_moments

RNG = np.random.default_rng(2)
X, X_NEW = RNG.normal(size=(12, 2)), RNG.normal(size=(5, 2))


def regression(kernel, y):
    problem = ExactProblem(kernel, X, y[:, None], np.full(12, 0.1))
    return exact.posterior(problem, Zero(), np.ones(1))[0]


@pytest.fixture
def members():
    return [regression(RBF(0.9), np.sin(X[:, 0])), regression(2.0 * Matern(1.3), X[:, 1])]


@pytest.fixture
def coupled():
    Y = np.eye(3)[RNG.integers(0, 3, 12)]
    problem = softmax.SoftmaxProblem(2.0 * RBF(0.9), X, Y, np.zeros((12, 3)))
    return softmax.posterior(problem, Zero())[0]


def test_each_output_is_a_member(members):
    both = Stacked(members)
    assert both.n_outputs == 2 and "2 independent" in both.describe() and "2" in repr(both)
    mean, var = both.mean_and_var(X_NEW)
    np.testing.assert_array_equal(both.scale, [1.0, 1.0])
    for p, member in enumerate(members):
        np.testing.assert_allclose(mean[:, p], member.mean(X_NEW)[:, 0])
        np.testing.assert_allclose(both.mean(X_NEW)[:, p], mean[:, p])
        np.testing.assert_allclose(var[:, p], member.var(X_NEW)[:, 0])
        np.testing.assert_allclose(both.var(X_NEW)[:, p], var[:, p])
        np.testing.assert_allclose(both.cov(X_NEW)[:, :, p], member.cov(X_NEW)[:, :, 0])
        for got, wanted in zip(both.gradients(X_NEW), member.gradients(X_NEW), strict=True):
            np.testing.assert_allclose(got[:, :, p], wanted[:, :, 0])


def test_draws_are_independent_with_the_right_spread(members):
    draws = Stacked(members).sample(X_NEW, 4000, 1)
    assert draws.shape == (5, 4000, 2)
    for p, member in enumerate(members):
        np.testing.assert_allclose(np.cov(draws[:, :, p]), member.cov(X_NEW)[:, :, 0], atol=0.15)
    assert abs(np.corrcoef(draws[0].T)[0, 1]) < 0.08


def test_pruning_adds_the_losses(members):
    small, loss = Stacked(members).prune(6)
    assert loss == pytest.approx(sum(member.prune(6)[1] for member in members))
    assert [member.n_basis for member in small.members] == [6, 6]


def test_stacks_are_saved(members, tmp_path):
    save(Stacked(members), tmp_path / "stack")
    back = load(tmp_path / "stack")
    np.testing.assert_array_equal(back.var(X_NEW), Stacked(members).var(X_NEW))


def test_what_cannot_be_stacked(members, coupled):
    with pytest.raises(ValueError, match=r"one output are wanted, got \[1, 3\]"):
        Stacked([members[0], coupled])
    with pytest.raises(ValueError, match="one or more"):
        Stacked([])
    rows = np.array([[0.0], [1.0]])
    problem = ExactProblem(Precomputed(np.eye(2)), rows, np.ones((2, 1)), np.ones(2))
    table = PrecomputedPredictive(exact.posterior(problem, Zero(), np.ones(1))[0])
    with pytest.raises(ValueError, match="only a Posterior can be pruned"):
        Stacked([table]).prune(1)


# --- outputs at a point -----------------------------------------------------------------------


@pytest.mark.parametrize("prune", [None, 5])
def test_coupled_outputs_against_the_whole_covariance(coupled, prune):
    process = coupled if prune is None else coupled.prune(prune)[0]
    mean, cov = output_moments(process, X_NEW)
    np.testing.assert_allclose(mean, process.mean(X_NEW), atol=1e-12)
    whole = process.cov(X_NEW)
    np.testing.assert_allclose(cov, np.array([whole[i, :, i] for i in range(5)]), atol=1e-12)
    assert np.max(np.abs(cov[:, 0, 1])) > 1e-3  # they are coupled


def test_many_rows_go_in_blocks(coupled, monkeypatch):
    plain = output_moments(coupled, X_NEW)
    monkeypatch.setattr("mercer.posterior.outputs._BLOCK_BYTES", 1)
    for got, wanted in zip(output_moments(coupled, X_NEW), plain, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-14)


def test_independent_outputs_have_diagonal_covariances(members):
    mean, cov = output_moments(Stacked(members), X_NEW)
    np.testing.assert_allclose(mean, Stacked(members).mean(X_NEW))
    np.testing.assert_array_equal(cov[:, 0, 1], 0.0)
    np.testing.assert_allclose(np.einsum("ipp->ip", cov), Stacked(members).var(X_NEW))


def test_coupled_outputs_of_a_kernel_matrix(coupled):
    kernel = coupled.kernel
    Y = np.eye(3)[np.arange(12) % 3]
    plain = softmax.SoftmaxProblem(kernel, X, Y, np.zeros((12, 3)))
    rows = np.arange(12.0)[:, None]
    table = softmax.SoftmaxProblem(Precomputed(kernel(X)), rows, Y, np.zeros((12, 3)))
    by_inputs = output_moments(softmax.posterior(plain, Zero())[0], X_NEW)
    process = PrecomputedPredictive(softmax.posterior(table, Zero())[0])
    given = np.hstack([kernel(X_NEW, X), kernel.diag(X_NEW)[:, None]])
    for got, wanted in zip(output_moments(process, given), by_inputs, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-9)
