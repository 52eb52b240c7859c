"""The Nyström approximation, which is no probabilistic model."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from mercer import load
from mercer.errors import MercerWarning
from mercer.inference import exact
from mercer.inference._sparse_predictive import nystrom
from mercer.kernels import RBF
from mercer.posterior import NystromPredictive

from ..inference.sparse_dense import MEANS, SCALE, exact_problem, input_differences, make, predict

X_NEW = np.random.default_rng(7).normal(size=(9, 2))


def fit(*args, m=25, **kwargs):
    p, mean = make("dtc", *args, m=m, **kwargs)
    return p, mean, nystrom(p, mean, SCALE)[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
def test_it_is_the_big_form(mean, weighted):
    p, function, made = fit(mean, weighted)
    mu, cov = predict(p, function, X_NEW, "nystrom")
    assert np.all(np.linalg.eigvalsh(cov[:, :, 0]) > 0)  # with so many inducing inputs
    np.testing.assert_allclose(made.mean(X_NEW), mu, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(made.cov(X_NEW), cov, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(made.var(X_NEW), np.einsum("iip->ip", cov), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("mean", ["zero", "estimated", "integrated"])
def test_rows_as_inducing_inputs_give_the_exact_process(mean):
    p, function = make("dtc", mean, True, kernel=1.3 * RBF([0.3, 0.4]))
    p = replace(p, Z=p.X)
    made = nystrom(p, function, SCALE)[0]
    truth = exact.posterior(exact_problem(p), function, SCALE)[0]
    np.testing.assert_allclose(made.mean(X_NEW), truth.mean(X_NEW), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(made.cov(X_NEW), truth.cov(X_NEW), rtol=1e-6, atol=1e-7)


def test_negative_variances_are_cut_off_with_a_warning():
    p, function, made = fit(m=3)
    some = np.vstack([X_NEW[:5], X_NEW[5:] + 5.0])
    _, cov = predict(p, function, some, "nystrom")
    raw = np.einsum("iip->ip", cov)
    negative = int(np.sum(raw[:, 0] < 0))
    assert 0 < negative < len(some)
    with pytest.warns(MercerWarning, match=f"{negative} of 9 variances"):
        var = made.var(some)
    np.testing.assert_allclose(var, np.maximum(raw, 0), rtol=1e-7, atol=1e-9)
    with pytest.warns(MercerWarning, match="no probabilistic model"):
        joint = made.cov(some)
    assert np.linalg.eigvalsh(joint[:, :, 0])[0] > -1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slopes = made.gradients(some)
    assert np.all(slopes.var[raw[:, 0] < 0] == 0)


def test_far_from_the_data_the_prior_returns():
    _, _, made = fit()
    np.testing.assert_allclose(made.var(np.full((1, 2), 60.0)), 1.3 * SCALE[None] ** 2, rtol=1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_input_gradients(mean):
    _, _, made = fit(mean, True)
    slopes = made.gradients(X_NEW)
    np.testing.assert_allclose(
        slopes.mean, input_differences(made.mean, X_NEW), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(slopes.var, input_differences(made.var, X_NEW), rtol=1e-4, atol=1e-6)


def test_any_blocks_of_points_give_the_same(monkeypatch):
    _, _, made = fit("integrated")
    var, slopes = made.var(X_NEW), made.gradients(X_NEW)
    monkeypatch.setattr("mercer.posterior.nystrom._ENTRIES", 80)
    # variances are small differences of terms whose sums round differently in other products
    terms = np.sum(made.kernel(X_NEW, made.X) ** 2 / made.noise, axis=1)
    rounding = 16 * np.finfo(float).eps * terms[:, None] * SCALE**2
    assert np.all(np.abs(made.var(X_NEW) - var) <= rounding) and np.all(rounding < 1e-10 * var)
    np.testing.assert_allclose(made.gradients(X_NEW).var, slopes.var, rtol=1e-10, atol=1e-12)


def test_draws_have_the_covariance():
    _, _, made = fit("integrated")
    draws = made.sample(X_NEW[:4], 20_000, 3)
    for p in range(2):
        cov = made.cov(X_NEW[:4])[:, :, p]
        np.testing.assert_allclose(np.cov(draws[:, :, p]), cov, atol=0.05 * SCALE[p] ** 2)


def test_saving(tmp_path):
    _, _, made = fit("integrated", True)
    made.save(tmp_path / "nystrom")
    back = load(tmp_path / "nystrom")
    np.testing.assert_array_equal(back.cov(X_NEW), made.cov(X_NEW))
    np.testing.assert_array_equal(back.scale, SCALE)
    assert "40 rows" in back.describe() and back.n_outputs == 2


def test_what_is_refused():
    p, function = make("fitc")
    with pytest.raises(ValueError, match=r"training rows of 'sor' or 'dtc', got .*'fitc'"):
        nystrom(p, function, SCALE)
    state = fit()[2].to_state()
    with pytest.raises(ValueError, match="40 rows and 0 regressors want"):
        NystromPredictive(**(state | {"noise": np.ones(3)}))


def test_the_joint_covariance_has_the_variances_on_its_diagonal():
    """Where its negative part is cut off, too."""
    _, _, made = fit(m=3)
    new = X_NEW + np.where(np.arange(9) < 5, 0.0, 3.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        var, cov = made.var(new), made.cov(new)
    assert np.any(var == 0) and np.any(var > 0)
    np.testing.assert_allclose(np.einsum("iip->ip", cov), var, rtol=1e-9, atol=1e-12)
