"""The bounds on the exact evidence written out, regressors that depend, and rows left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer.inference._approximations import approximation
from mercer.inference._sparse_loo import leave_one_out
from mercer.inference._sparse_rows import row_solution
from mercer.inference.sparse import evidence, evidence_bounds, solve
from mercer.kernels import RBF

from .sparse_dense import dense, make, weight_constant


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["vfe", "fitc", "pitc"])
def test_upper_bound_by_its_formula(name, weighted):
    """-ln det(Q + noise)/2 - y'(Q + noise + t)^-1 y/2, t = tr(K - Q); weights divide both."""
    p, _ = make(name, weighted=weighted, m=4)
    p = p if p.weights is None else replace(p, weights=10.0 * p.weights)
    narrow = dense(replace(p, kind=approximation("dtc"), groups=None))
    w = np.ones(len(p.Y)) if p.weights is None else p.weights
    t = w @ np.diagonal(p.kernel(p.X) - narrow.Q)
    wide = np.linalg.inv(narrow.Q + narrow.Lambda + np.diag(t / w))
    value = -0.5 * np.sum(p.Y * (wide @ p.Y)) + p.n_outputs * weight_constant(p)
    value -= 0.5 * p.n_outputs * np.linalg.slogdet(2 * np.pi * (narrow.Q + narrow.Lambda))[1]
    assert evidence_bounds(p)[1:] == pytest.approx((value, t), rel=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_regressors_that_depend_but_for_rounding(seed):
    """The smallest of all coefficients that do."""
    p, _ = make("fitc")
    H = np.random.default_rng(seed).normal(size=(40, 2))
    both = np.column_stack([H, H @ [0.3, 0.7]])
    some, all_ = solve(replace(p, H=H)), solve(replace(p, H=both))
    np.testing.assert_allclose(both @ all_.beta, H @ some.beta, rtol=1e-8, atol=1e-9)
    assert np.max(np.abs(all_.beta)) < 2.0 * np.max(np.abs(some.beta))
    assert all_.log_evidence == pytest.approx(some.log_evidence, rel=1e-10)
    with pytest.raises(ValueError, match="3 regressors of which only 2 are linearly"):
        solve(replace(p, H=both, integrate=True))


def test_rows_of_a_block_are_not_left_out_one_by_one():
    with pytest.raises(ValueError, match=r"rows that are independent .* of 'pitc' are not"):
        leave_one_out(make("pitc")[0])


@pytest.mark.parametrize("integrate", [False, True])
@pytest.mark.parametrize("name", ["vfe", "fitc"])
def test_a_row_that_alone_determines_a_coefficient_cannot_be_left_out(name, integrate):
    p, _ = make(name)
    H = np.column_stack([np.ones(40), np.arange(40) == 7])
    with pytest.raises(ValueError, match="row 7 cannot be left out"):
        leave_one_out(replace(p, H=H, integrate=integrate))
    held = replace(p, H=H, beta=np.zeros((2, 2)))  # there is nothing to be determined then
    assert np.all(np.isfinite(leave_one_out(held).residual))


@pytest.mark.parametrize("name", ["sor", "vfe", "fitc", "pep"])
def test_rows_as_inducing_inputs_and_next_to_no_noise(name):
    """What is left of their variance is rounding, and none of it may be negative."""
    p, _ = make(name, n=12, kernel=1.3 * RBF([0.3, 0.4]))
    p = replace(p, Z=p.X, noise=np.full(12, 1e-18))
    solution, adjoints = evidence(p, inputs=True)
    assert solution.statistics.residual >= 0.0
    assert np.isfinite(solution.log_evidence) and np.all(np.isfinite(adjoints.theta))
    assert np.all(np.isfinite(row_solution(p, solution).residuals))
    left = leave_one_out(p)
    assert np.all(np.isfinite(left.residual)) and np.all(left.variance > 0)
