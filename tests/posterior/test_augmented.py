"""Predictions for which each point joins the inducing inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import load
from mercer.inference import exact
from mercer.inference._sparse_predictive import augmented, predictive
from mercer.kernels import RBF
from mercer.posterior import AugmentedPredictive, SolvedRows

from ..inference.sparse_dense import (
    ALL,
    MEANS,
    SCALE,
    dense,
    exact_problem,
    input_differences,
    make,
)

X_NEW = np.random.default_rng(8).normal(size=(7, 2))


def fit(*args, **kwargs):
    p, mean = make(*args, **kwargs)
    return p, mean, augmented(p, mean, SCALE)[0]


def refitted(p, mean, X):
    """Return mean and variance at the rows of X, each added to the inducing inputs."""
    moments = []
    for x in X:
        made = predictive(replace(p, Z=np.vstack([p.Z, x])), mean, SCALE)[0]
        moments.append([part[0] for part in made.mean_and_var(x[None])])
    return [np.array(part) for part in zip(*moments, strict=True)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", ALL)
def test_it_is_a_refit_with_the_point_added(name, mean, weighted):
    p, function, made = fit(name, mean, weighted)
    expected = refitted(p, function, X_NEW)
    for got, wanted in zip(made.mean_and_var(X_NEW), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(made.mean(X_NEW), made.mean_and_var(X_NEW)[0])
    np.testing.assert_array_equal(made.var(X_NEW), made.mean_and_var(X_NEW)[1])


@pytest.mark.parametrize("name", ALL)
def test_solved_rows_know_the_covariance_given_the_inducing_variables(name):
    p, _, made = fit(name, weighted=True)
    rows = made.rows
    assert isinstance(rows, SolvedRows)
    point = rows.point(X_NEW[:2])
    rho = rows.rho(p.X, p.kernel(p.X, p.Z), X_NEW[:2], point)
    B = np.random.default_rng(0).normal(size=(len(p.Y), 2, 3))
    got = rows.over_lambda(rho, point.delta, B)
    for t in range(2):
        Lambda = dense(replace(p, Z=np.vstack([p.Z, X_NEW[t]]))).Lambda
        np.testing.assert_allclose(got[:, t], np.linalg.solve(Lambda, B[:, t]), rtol=1e-7)


def test_solved_rows_refuse_what_is_not_of_one_length():
    state = fit()[2].rows.to_state()
    for name, text in (("noise", "40 rows want"), ("alpha", "7 inducing inputs want")):
        with pytest.raises(ValueError, match=text):
            SolvedRows(**(state | {name: state[name][1:]}))


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=7),
    m=st.integers(1, 6),
    name=st.sampled_from(ALL),
)
def test_any_shapes(seed, sizes, m, name):
    """More and fewer blocks than inducing inputs, too."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    p, function, made = fit(name, n=len(groups), m=m, seed=seed, groups=groups)
    expected = refitted(p, function, X_NEW[:2])
    for got, wanted in zip(made.mean_and_var(X_NEW[:2]), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mean", MEANS)
def test_sor_and_dtc_are_the_same_augmented(mean):
    (_, _, sor), (_, _, dtc) = fit("sor", mean), fit("dtc", mean)
    for got, wanted in zip(sor.mean_and_var(X_NEW), dtc.mean_and_var(X_NEW), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_far_from_the_data_the_prior_returns(name):
    _, _, made = fit(name)
    np.testing.assert_allclose(made.var(np.full((1, 2), 60.0)), 1.3 * SCALE[None] ** 2, rtol=1e-12)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", ALL)
def test_inducing_inputs_change_nothing(name, mean):
    p, function, made = fit(name, mean, True)
    plain = predictive(p, function, SCALE)[0]
    for got, wanted in zip(made.mean_and_var(p.Z), plain.mean_and_var(p.Z), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-8)
    assert all(np.all(np.isfinite(part)) for part in made.gradients(p.Z))


@pytest.mark.parametrize("name", ALL)
def test_rows_as_inducing_inputs_give_the_exact_marginals(name):
    p, function = make(name, "integrated", True, kernel=1.3 * RBF([0.3, 0.4]))
    p = replace(p, Z=p.X)
    truth = exact.posterior(exact_problem(p), function, SCALE)[0]
    made = augmented(p, function, SCALE)[0].mean_and_var(X_NEW)
    for got, wanted in zip(made, truth.mean_and_var(X_NEW), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", ALL)
def test_input_gradients(name, mean):
    _, _, made = fit(name, mean, True)
    slopes = made.gradients(X_NEW)
    for got, function in zip(slopes, (made.mean, made.var), strict=True):
        expected = input_differences(function, X_NEW)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["vfe", "pitc", "pep"])
def test_any_blocks_of_points_and_rows_give_the_same(name, monkeypatch):
    _, _, made = fit(name, "integrated", True)
    whole, slopes = made.mean_and_var(X_NEW), made.gradients(X_NEW)
    monkeypatch.setattr("mercer.posterior.augmented._ENTRIES", 900)
    monkeypatch.setattr("mercer.posterior._augmentation.ENTRIES", 100)
    monkeypatch.setattr("mercer.posterior._solved_rows.ENTRIES", 100)
    made = AugmentedPredictive.from_state(
        made.to_state() | {"rows": type(made.rows).from_state(made.rows.to_state())}
    )
    for got, wanted in zip(made.mean_and_var(X_NEW), whole, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9)
    for got, wanted in zip(made.gradients(X_NEW), slopes, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-9)


def test_a_large_offset_is_left_to_the_mean():
    p, function, _ = fit("dtc", "integrated")
    made = augmented(replace(p, Y=p.Y + 1e6), function, SCALE)[0]
    near = augmented(p, function, SCALE)[0]
    np.testing.assert_allclose(
        made.mean(X_NEW) - 1e6 * SCALE, near.mean(X_NEW), rtol=1e-5, atol=1e-6
    )


def test_points_have_no_joint_distribution():
    _, _, made = fit("fitc")
    one = made.cov(X_NEW[:1])
    np.testing.assert_array_equal(one[0], made.var(X_NEW[:1]))
    assert made.sample(X_NEW[:1], 5, 0).shape == (1, 5, 2)
    with pytest.raises(ValueError, match=r"of 7 points .* inducing='query'"):
        made.cov(X_NEW)
    with pytest.raises(ValueError, match="one row"):
        made.sample(X_NEW)


@pytest.mark.parametrize("name", ["dtc", "fitc", "pitc"])
@pytest.mark.parametrize("mean", MEANS)
def test_saving(name, mean, tmp_path):
    _, _, made = fit(name, mean, True)
    made.save(tmp_path / "augmented")
    back = load(tmp_path / "augmented")
    for got, wanted in zip(back.mean_and_var(X_NEW), made.mean_and_var(X_NEW), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert "7 inducing inputs, 40 training rows" in back.describe() and back.n_outputs == 2


def test_what_is_refused():
    _, _, made = fit("dtc", "estimated")
    with pytest.raises(ValueError, match="regressors of `features`"):
        AugmentedPredictive(made.rows, 2)
    state = made.rows.to_state()
    with pytest.raises(ValueError, match="40 rows want as many"):
        type(made.rows)(**(state | {"noise": np.ones(3)}))
    with pytest.raises(ValueError, match="3 inducing inputs want triangles"):
        type(made.rows)(**(state | {"Z": made.rows.Z[:3]}))


@pytest.mark.parametrize("name", ["dtc", "fitc", "pitc"])
def test_predictions_next_to_an_inducing_input_are_those_there(name):
    p, _, made = fit(name, "estimated")
    there = made.mean_and_var(p.Z)
    for away in 10.0 ** np.arange(-12, -6):
        for got, wanted in zip(made.mean_and_var(p.Z + away), there, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["vfe", "fitc", "pep"])
def test_a_row_that_joins_is_known_where_the_noise_is_next_to_none(name):
    """What it leaves of its own variance is rounding, which may be negative."""
    p, mean = make(name, n=12, kernel=1.3 * RBF([0.3, 0.4]))
    p = replace(p, Z=p.X[:6], noise=np.full(12, 1e-18))
    mu, var = augmented(p, mean, SCALE)[0].mean_and_var(p.X)
    assert np.all(np.isfinite(mu)) and np.all(var >= 0)
    if name == "fitc":
        np.testing.assert_allclose(mu, SCALE * p.Y, rtol=1e-6, atol=1e-6)
        assert np.all(var < 1e-12)
