"""FIC, and the other predictions of a sparse fit that are a Posterior or made of one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer import load
from mercer.inference import exact
from mercer.inference._approximations import approximation
from mercer.inference._sparse_predictive import predictive
from mercer.kernels import RBF
from mercer.posterior import IndependentPredictive, Posterior

from ..inference.sparse_dense import (
    ALL,
    MEANS,
    SCALE,
    exact_problem,
    input_differences,
    make,
    predict,
)

X_NEW = np.random.default_rng(5).normal(size=(9, 2))


def fit(*args, joint="exact", **kwargs):
    p, mean = make(*args, joint=joint, **kwargs)
    return p, mean, predictive(p, mean, SCALE)[0]


def fic(*args, **kwargs):
    return fit("fitc", *args, joint="independent", **kwargs)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", ALL)
def test_posteriors_are_the_big_forms(name, mean, weighted):
    p, function, made = fit(name, mean, weighted)
    assert isinstance(made, Posterior)
    mu, cov = predict(p, function, X_NEW)
    np.testing.assert_allclose(made.mean(X_NEW), mu, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(made.cov(X_NEW), cov, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(made.var(X_NEW), np.einsum("iip->ip", cov), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
def test_fic_is_the_big_form(mean, weighted):
    p, function, made = fic(mean, weighted)
    assert isinstance(made, IndependentPredictive)
    mu, cov = predict(p, function, X_NEW)
    np.testing.assert_allclose(made.mean(X_NEW), mu, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(made.cov(X_NEW), cov, rtol=1e-7, atol=1e-9)
    both = made.mean_and_var(X_NEW)
    np.testing.assert_allclose(both[0], mu, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(both[1], np.einsum("iip->ip", cov), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(made.var(X_NEW), both[1], rtol=1e-12)


def test_fic_is_an_exact_gp_with_the_covariance_of_remark_7():
    """Q + diag(K - Q) over rows and new points together, conditioned on the rows."""
    p, _, made = fic()
    both = np.vstack([p.X, X_NEW])
    Kbu = p.kernel(both, p.Z)
    Q = Kbu @ np.linalg.solve(p.kernel(p.Z), Kbu.T)
    C = Q + np.diag(np.diag(p.kernel(both) - Q))
    n = len(p.X)
    inner = np.linalg.inv(C[:n, :n] + np.diag(p.noise))
    np.testing.assert_allclose(made.mean(X_NEW), C[n:, :n] @ inner @ p.Y * SCALE, rtol=1e-8)
    cov = C[n:, n:] - C[n:, :n] @ inner @ C[:n, n:]
    np.testing.assert_allclose(made.cov(X_NEW)[:, :, 1], cov * SCALE[1] ** 2, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", ["zero", "estimated", "integrated"])
@pytest.mark.parametrize("name", [*ALL, "fic"])
def test_rows_as_inducing_inputs_give_the_exact_process(name, mean, weighted):
    joint = "independent" if name == "fic" else "exact"
    p, function = make("fitc" if name == "fic" else name, mean, weighted, joint=joint)
    p = replace(p, kernel=1.3 * RBF([0.3, 0.4]), Z=p.X)
    made = predictive(p, function, SCALE)[0]
    truth = exact.posterior(exact_problem(p), function, SCALE)[0]
    np.testing.assert_allclose(made.mean(X_NEW), truth.mean(X_NEW), rtol=1e-6, atol=1e-7)
    if name != "sor":
        np.testing.assert_allclose(made.var(X_NEW), truth.var(X_NEW), rtol=1e-6, atol=1e-7)
    if name not in ("sor", "fic"):
        np.testing.assert_allclose(made.cov(X_NEW), truth.cov(X_NEW), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("mean", MEANS)
def test_sor_and_dtc_share_the_mean_and_dtc_is_never_surer(mean):
    (_, _, sor), (_, _, dtc) = fit("sor", mean), fit("dtc", mean)
    np.testing.assert_allclose(sor.mean(X_NEW), dtc.mean(X_NEW), rtol=1e-12)
    assert np.all(dtc.var(X_NEW) >= sor.var(X_NEW) * (1 - 1e-12))
    far = np.full((1, 2), 60.0)
    if mean != "integrated":
        assert np.all(sor.var(far) < 1e-12)


@pytest.mark.parametrize("name", [*ALL[1:], "fic"])
def test_far_from_the_data_the_prior_returns(name):
    _, _, made = fic() if name == "fic" else fit(name)
    far = np.full((1, 2), 60.0)
    np.testing.assert_allclose(made.var(far), 1.3 * SCALE[None] ** 2, rtol=1e-12)
    np.testing.assert_allclose(made.mean(far), 0.0, atol=1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_input_gradients(mean):
    _, _, made = fic(mean, True)
    slopes = made.gradients(X_NEW)
    np.testing.assert_allclose(
        slopes.mean, input_differences(made.mean, X_NEW), rtol=1e-5, atol=1e-7
    )
    np.testing.assert_allclose(slopes.var, input_differences(made.var, X_NEW), rtol=1e-5, atol=1e-7)


def test_draws_have_the_covariance():
    _, _, made = fic("integrated")
    draws = made.sample(X_NEW[:4], 20_000, 3)
    assert draws.shape == (4, 20_000, 2)
    for p in range(2):
        cov = made.cov(X_NEW[:4])[:, :, p]
        np.testing.assert_allclose(np.cov(draws[:, :, p]), cov, atol=0.05 * SCALE[p] ** 2)
    np.testing.assert_allclose(draws.mean(axis=1), made.mean(X_NEW[:4]), atol=0.08)
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1, got 0"):
        made.sample(X_NEW, 0)


def test_saving(tmp_path):
    _, _, made = fic("integrated")
    made.save(tmp_path / "fic")
    back = load(tmp_path / "fic")
    np.testing.assert_array_equal(back.cov(X_NEW), made.cov(X_NEW))
    np.testing.assert_array_equal(back.scale, SCALE)
    assert "independent" in back.describe() and back.n_outputs == 2


def test_a_degenerate_posterior_is_refused():
    _, _, sor = fit("sor")
    with pytest.raises(ValueError, match="w = 1"):
        IndependentPredictive(sor)
    with pytest.raises(ValueError, match="deterministic"):
        approximation("sor", joint="independent")
