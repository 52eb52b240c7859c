"""The coupled softmax: starts, extremes, jitter, storage, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import load, means, save
from mercer.errors import NotPositiveDefiniteError
from mercer.inference import laplace, softmax
from mercer.inference._coupled import CoupledSites
from mercer.inference._problem import LatentProblem
from mercer.inference.softmax import SoftmaxProblem
from mercer.kernels import RBF
from mercer.likelihoods import Logistic
from mercer.posterior import Dense, InverseTriangular
from mercer.posterior.factor_set import FactorSet
from mercer.posterior.factors import RowBlock

from .softmax_cases import make, value_of, with_gram


def test_warm_starts():
    p = make(60, C=4)
    cold = softmax.solve(p)
    near = replace(p, kernel=p.kernel.with_theta(p.kernel.theta + 0.01))
    warm, there = softmax.solve(near, cold.state), softmax.solve(near)
    assert warm.log_evidence == pytest.approx(there.log_evidence, rel=1e-10)
    assert warm.n_iterations < there.n_iterations
    for bad in (np.full((60, 4), np.nan), np.zeros(3), 1e200 * cold.state, -1e8 * cold.state):
        assert softmax.solve(p, bad).log_evidence == pytest.approx(cold.log_evidence, rel=1e-10)


@given(
    n=st.integers(1, 10),
    C=st.integers(2, 5),
    seed=st.integers(0, 10_000),
    size=st.floats(-10, 10),
    width=st.floats(-3, 3),
    repeated=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_any_kernel_gives_numbers(n, C, seed, size, width, repeated):
    p = make(n, C, seed, kernel=10.0**size * RBF(10.0**width))
    if repeated:
        p = replace(p, X=np.repeat(p.X[:1], n, axis=0))
    s, adjoints = softmax.evidence(p)
    assert np.isfinite(s.log_evidence) and s.log_evidence <= 1e-9
    assert np.all(np.isfinite(s.latent))
    # A step d = (1 + W K)^-1 r is a difference that rounds by eps |W K|, and K d by |K| times that;
    # W is less than 1, and |K| at most n times its variance. Beyond 1 that hides the step.
    rounding = np.finfo(float).eps * (n * 10.0**size) ** 2
    assert s.status == "converged" or rounding > 1.0
    assert np.all(np.isfinite(np.tril(adjoints.K))) and np.all(np.isfinite(adjoints.mean))
    process, _ = softmax.posterior(p, means.Zero())
    mean, var = process.mean_and_var(np.linspace(-3, 3, 10).reshape(5, 2))
    assert np.all(np.isfinite(mean)) and np.all(var >= 0)
    assert np.all(var <= 10.0**size * (1 + 1e-6))


@pytest.mark.parametrize("variance", [1.0, 1e4, 1e8])
def test_separable_data(variance):
    X = np.linspace(-1, 1, 30)[:, None]
    Y = np.eye(3)[np.digitize(X[:, 0], [-0.4, 0.3])]
    p = SoftmaxProblem(variance * RBF(0.5), X, Y, np.zeros((30, 3)))
    s = softmax.solve(p)
    assert s.status == "converged"
    np.testing.assert_array_equal(np.argmax(s.latent, axis=1), np.argmax(Y, axis=1))


def test_problems_that_are_none():
    p = make(5)
    for Y in (np.zeros((4, 3)), np.ones((5, 1)), np.ones(5)):
        with pytest.raises(ValueError, match="Y must have a row for each of the 5 rows"):
            replace(p, Y=Y)
    for Y in (np.ones((5, 3)), 1.5 * p.Y - 1 / 6, np.full((5, 3), np.nan)):
        with pytest.raises(ValueError, match="must be a distribution"):
            replace(p, Y=Y)
    with pytest.raises(ValueError, match=r"mean must be finite, of shape \(5, 3\)"):
        replace(p, mean=np.zeros((5, 2)))
    with pytest.raises(ValueError, match="weights must be 5 finite numbers"):
        replace(p, weights=-np.ones(5))
    with pytest.raises(NotPositiveDefiniteError):
        softmax.solve(with_gram(p, p.kernel(p.X) - 50 * np.eye(5)))


def test_jitter_is_that_of_the_problem():
    p = make(10)
    s = softmax.solve(replace(p, jitter=0.25))
    assert s.jitter == 0.25
    direct = value_of(with_gram(p, p.kernel(p.X) + 0.25 * np.eye(10)))
    assert s.log_evidence == pytest.approx(direct, rel=1e-12)


def test_jitter_that_only_some_classes_need():
    """The Gram matrix is the same for all of them in the end."""
    K = make(10).kernel(make(10).X)
    values, vectors = np.linalg.eigh(K)
    values[0] = -1e-9
    K = np.asfortranarray((vectors * values) @ vectors.T)
    pi = np.full((10, 3), 1e-9)
    pi[:, 2] = 1.0 - 2e-9
    weights = np.full(10, 1e10)
    sites = CoupledSites(K, pi, weights)
    assert sites.jitter > 0
    again = CoupledSites(K.copy(order="F"), pi, weights, jitter=sites.jitter)
    assert again.jitter == 0.0
    assert again.log_determinant == pytest.approx(sites.log_determinant, rel=1e-12)


def test_a_posterior_is_saved_and_sampled(tmp_path):
    p = make(12)
    process, _ = softmax.posterior(p, means.Constant(0.0, estimate=None))
    save(process, tmp_path / "classes.mercer")
    again = load(tmp_path / "classes.mercer")
    X = np.random.default_rng(1).normal(size=(3, 2))
    np.testing.assert_array_equal(again.cov(X), process.cov(X))
    draws = process.sample(X, 20_000, rng=0)
    S = process.cov(X)
    centred = draws - process.mean(X)[:, None, :]
    np.testing.assert_allclose(np.einsum("isp,jsq->ipjq", centred, centred) / 20_000, S, atol=0.08)
    step = 1e-6
    gradients = process.gradients(X)
    for k in range(2):
        e = step * np.eye(2)[k]
        rise = (process.var(X + e) - process.var(X - e)) / (2 * step)
        np.testing.assert_allclose(gradients.var[:, k], rise, atol=1e-6)


def test_blocks_of_rows():
    """A factor with zeros around it, and what is made of several."""
    rng = np.random.default_rng(0)
    L = np.asfortranarray(np.tril(rng.normal(size=(3, 3))) + 3 * np.eye(3))
    Phi = np.ascontiguousarray(rng.normal(size=(4, 3)))
    padded = [
        RowBlock(InverseTriangular(L), 0, 6),
        RowBlock(Dense(rng.normal(size=(3, 3))), 2, 6),
        RowBlock(InverseTriangular(L), 3, 6),
    ]
    plain = [Dense(np.vstack([F.apply(np.eye(3))])) for F in padded]
    V = rng.normal(size=(6, 4))
    for F, G in zip(padded, plain, strict=True):
        assert (F.n_rows, F.n_columns) == (6, 3) and F.nbytes > 0
        np.testing.assert_allclose(F.apply(Phi), G.apply(Phi), atol=1e-14)
        np.testing.assert_allclose(F.pull(V), G.pull(V), atol=1e-14)
        np.testing.assert_allclose(F.gram(), G.gram(), atol=1e-14)
    one, two = FactorSet("A", padded, 3, 3), FactorSet("A", plain, 3, 3)
    np.testing.assert_allclose(one.products(Phi), two.products(Phi), atol=1e-14)
    np.testing.assert_allclose(one.norms(Phi), two.norms(Phi), atol=1e-14)
    for p in range(3):
        np.testing.assert_allclose(one.half_gradient(Phi, p), two.half_gradient(Phi, p), atol=1e-14)
    with pytest.raises(ValueError, match="3 rows from row 4 on do not fit into 6 rows"):
        RowBlock(InverseTriangular(L), 4, 6)


def test_a_problem_is_only_read():
    p = make(weights=True, mean=True)
    for array in (p.X, p.Y, p.mean, p.weights):
        array.setflags(write=False)
    first, second = softmax.evidence(p), softmax.evidence(p)
    assert first[0].log_evidence == second[0].log_evidence
    np.testing.assert_array_equal(np.tril(first[1].K), np.tril(second[1].K))


@pytest.mark.parametrize("amplitude", [1e6, 3.2e7, 1e8])
def test_a_preconditioner_lost_to_rounding_is_no_end(amplitude):
    """Two classes are the logistic with twice the kernel, also where single precision fails."""
    X = np.sort(np.random.default_rng(2).uniform(-3, 3, (30, 1)), axis=0)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    Y = np.column_stack([y < 0, y > 0]).astype(float)
    kernel = amplitude * RBF(1.0)
    solution = softmax.solve(softmax.SoftmaxProblem(kernel, X, Y, np.zeros((30, 2))))
    problem = LatentProblem(2.0 * kernel, X, y, Logistic(), np.zeros(30))
    assert solution.status == "converged"
    assert solution.log_evidence == pytest.approx(laplace.solve(problem).log_evidence, abs=1e-5)
