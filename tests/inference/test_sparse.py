"""The sparse engine against dense formulas, finite differences, and the paper's identities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.inference import _sparse_rows, exact, sparse
from mercer.inference._approximations import approximation
from mercer.inference._sparse_rows import row_solution
from mercer.inference.sparse import evidence, evidence_bounds, solve
from mercer.kernels import RBF

from .sparse_dense import ALL, MEANS, dense, exact_problem, make, weight_constant


def log_evidence(p, **changes):
    return solve(replace(p, **changes)).log_evidence


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", ALL)
def test_evidence_is_that_of_the_big_form(name, mean, weighted):
    p, _ = make(name, mean, weighted)
    expected = dense(p)
    solution = solve(p)
    assert solution.log_evidence == pytest.approx(expected.log_evidence, rel=1e-11)
    if p.H is not None:
        np.testing.assert_allclose(solution.beta, expected.beta, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", ALL)
def test_derivatives_are_those_of_the_big_form(name, mean, weighted):
    p, _ = make(name, mean, weighted, n=18, m=4)
    start = np.concatenate([p.kernel.theta, [0.0], p.Z.ravel()])

    def at(t):
        kernel, noise = p.kernel.with_theta(t[:3]), p.noise * np.exp(t[3])
        return replace(p, kernel=kernel, noise=noise, Z=t[4:].reshape(p.Z.shape))

    def difference(e):
        return dense(at(start + e)).log_evidence - dense(at(start - e)).log_evidence

    _, adjoints = evidence(p, inputs=True)
    got = np.concatenate([adjoints.theta, [adjoints.noise], adjoints.Z.ravel()])
    expected = np.array([difference(1e-5 * e) for e in np.eye(start.size)]) / 2e-5
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6 * np.max(np.abs(expected)))
    assert evidence(p)[1].Z is None


@pytest.mark.parametrize("name", ALL)
def test_derivatives_in_coefficients_that_are_held(name):
    p, _ = make(name, "held", True)
    _, adjoints = evidence(p)
    expected = np.zeros_like(p.beta)
    for i, j in np.ndindex(p.beta.shape):
        E = np.zeros_like(p.beta)
        E[i, j] = 1e-4
        up, down = (log_evidence(p, beta=p.beta + s * E) for s in (1, -1))
        expected[i, j] = (up - down) / 2e-4
    np.testing.assert_allclose(adjoints.beta, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", ALL)
def test_residuals_of_the_rows(name, mean):
    p, _ = make(name, mean, True)
    expected = dense(p)
    rows = row_solution(p, solve(p))
    np.testing.assert_allclose(rows.residuals, expected.inverse @ expected.R, rtol=1e-8, atol=1e-9)
    H = np.empty((40, 0)) if p.H is None else p.H
    np.testing.assert_allclose(rows.regressors, expected.inverse @ H, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("entries", [1, 30, 70, 10_000])
@pytest.mark.parametrize("name", ALL)
def test_any_split_of_the_rows_gives_the_same_answer(name, entries, monkeypatch):
    p, _ = make(name, "integrated", True)
    whole, adjoints = evidence(p, inputs=True)
    rows = row_solution(p, whole)
    monkeypatch.setattr(_sparse_rows, "_ENTRIES", entries)
    split, others = evidence(p, inputs=True)
    assert split.log_evidence == pytest.approx(whole.log_evidence, rel=1e-12)
    for got, expected in zip(others, adjoints, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10)
    for got, expected in zip(row_solution(p, split), rows, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", ["zero", "estimated", "integrated"])
@pytest.mark.parametrize("name", ALL)
def test_rows_as_inducing_inputs_give_the_exact_evidence(name, mean, weighted):
    p, _ = make(name, mean, weighted, kernel=1.3 * RBF([0.3, 0.4]))
    p = replace(p, Z=p.X)
    expected = exact.solve(exact_problem(p)).log_evidence + 2 * weight_constant(p)
    assert log_evidence(p) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", ["zero", "estimated", "integrated"])
def test_bounds_enclose_the_exact_evidence(mean, weighted):
    for m in (3, 10, 25):
        p, _ = make("vfe", mean, weighted, m=m)
        truth = exact.solve(exact_problem(p)).log_evidence + 2 * weight_constant(p)
        lower, upper, left = evidence_bounds(p)
        assert lower <= truth <= upper
        cross, own = p.kernel(p.X, p.Z), p.kernel(p.Z)
        unexplained = np.diagonal(p.kernel(p.X) - cross @ np.linalg.solve(own, cross.T))
        assert left == pytest.approx(
            unexplained @ (np.ones(len(p.Y)) if p.weights is None else p.weights)
        )
        assert lower == pytest.approx(log_evidence(p))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 25),
    m=st.integers(1, 12),
    noise=st.floats(1e-3, 3.0),
    weighted=st.booleans(),
)
def test_bounds_of_any_problem(seed, n, m, noise, weighted):
    p, _ = make("vfe", n=n, m=m, seed=seed, weighted=weighted, noise=np.full(n, noise))
    truth = exact.solve(exact_problem(p)).log_evidence + 2 * weight_constant(p)
    lower, upper, _ = evidence_bounds(p)
    slack = 1e-6 * (1 + abs(truth))
    assert lower <= truth + slack and truth <= upper + slack


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 30), m=st.integers(2, 12))
def test_the_bound_grows_over_nested_inducing_sets(seed, n, m):
    p, _ = make("vfe", n=n, m=m, seed=seed)
    values = [log_evidence(p, Z=p.Z[:k]) for k in range(1, m + 1)]
    assert np.all(np.diff(values) >= -1e-6 * (1 + np.abs(values[1:])))


@pytest.mark.parametrize("mean", MEANS)
def test_power_ep_joins_vfe_to_fitc(mean):
    p, _ = make("vfe", mean, True)
    for power, name in ((0.0, "vfe"), (1.0, "fitc")):
        ends = [
            evidence(replace(p, kind=approximation(*args)), inputs=True)
            for args in (("pep", power), (name,))
        ]
        assert ends[0][0].log_evidence == pytest.approx(ends[1][0].log_evidence, rel=1e-12)
        np.testing.assert_allclose(ends[0][1].Z, ends[1][1].Z, rtol=1e-9, atol=1e-10)
    near = log_evidence(p, kind=approximation("pep", 1e-7))
    assert near == pytest.approx(log_evidence(p), rel=1e-5)


def test_blocks_of_one_point_are_fitc_and_one_block_is_exact():
    p, _ = make("pitc", "integrated")
    fitc = approximation("fitc")
    singles = evidence(replace(p, groups=np.arange(40)), inputs=True)
    others = evidence(replace(p, kind=fitc), inputs=True)
    assert singles[0].log_evidence == pytest.approx(others[0].log_evidence, rel=1e-12)
    np.testing.assert_allclose(singles[1].theta, others[1].theta, rtol=1e-8)
    np.testing.assert_allclose(singles[1].Z, others[1].Z, rtol=1e-7, atol=1e-9)
    truth = exact.solve(exact_problem(p)).log_evidence
    assert log_evidence(p, groups=np.zeros(40, int)) == pytest.approx(truth, rel=1e-11)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_blocks_of_any_sizes(seed, sizes):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    p, _ = make("pitc", n=len(groups), m=4, seed=seed, groups=groups)
    p = replace(p, jitter=1e-9)
    assert log_evidence(p) == pytest.approx(dense(p).log_evidence, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_coincident_inducing_inputs_change_nothing(name):
    p, _ = make(name, "estimated")
    twice = replace(p, Z=np.vstack([p.Z, p.Z[:3], p.Z[:1]]))
    solution, adjoints = evidence(twice, inputs=True)
    assert solution.jitter > 0 and np.all(np.isfinite(adjoints.Z))
    assert solution.log_evidence == pytest.approx(log_evidence(p), rel=1e-6)


@pytest.mark.parametrize("m", [1, 12, 30])
@pytest.mark.parametrize("name", ALL)
def test_few_and_many_inducing_inputs(name, m):
    p, _ = make(name, n=12, m=m, kernel=1.3 * RBF([0.3, 0.4]))
    assert log_evidence(p) == pytest.approx(dense(p).log_evidence, rel=1e-7)


def test_one_row():
    for name in ALL:
        p, _ = make(name, n=1, m=2)
        assert log_evidence(p) == pytest.approx(dense(p).log_evidence, rel=1e-10)


@pytest.mark.parametrize("name", ALL)
def test_a_weight_of_two_is_a_row_twice(name):
    p, _ = make(name, "integrated")
    w = np.where(np.arange(40) % 3 == 0, 2, 1)
    doubled = {f: np.repeat(getattr(p, f), w, axis=0) for f in ("X", "Y", "noise", "H", "groups")}
    expected = log_evidence(p, **doubled)
    assert log_evidence(p, weights=w.astype(float)) == pytest.approx(expected, rel=1e-9)


def test_regressors_that_depend_on_others():
    p, _ = make("fitc")
    H = np.ones((40, 2))
    one = solve(replace(p, H=H[:, :1]))
    both = solve(replace(p, H=H))
    np.testing.assert_allclose(H @ both.beta, H[:, :1] @ one.beta, rtol=1e-8)
    assert both.log_evidence == pytest.approx(one.log_evidence)
    with pytest.raises(ValueError, match="linearly independent"):
        solve(replace(p, H=H, integrate=True))


def test_what_a_problem_must_have():
    p, _ = make("pitc")
    with pytest.raises(ValueError, match="'pitc' needs groups"):
        replace(p, groups=None)
    with pytest.raises(ValueError, match="at least one inducing input"):
        replace(p, Z=p.Z[:0])
    assert sparse.solve(p).jitter == 0.0
