"""`mercer.certificate` of fitted regressors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import means
from mercer.inference.certificate import Certificate
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, StudentT


def rows(n=60, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    Y = np.sin(2 * X[:, :1] + np.arange(outputs)) + 0.2 * rng.normal(size=(n, outputs)) + 7.0
    return X, Y[:, 0] if outputs == 1 else Y


def held(**options):
    """Return an exact regressor without a search."""
    return mercer.GPRegressor(1.0 * RBF(0.8), Gaussian(0.04), optimizer=None, **options)


def sparse(approximation, **options):
    chosen = {"n_inducing": 8, "random_state": 0, "optimizer": None, "learn_inducing": False}
    return mercer.SparseGPRegressor(
        1.0 * RBF(0.8), Gaussian(0.04), approximation=approximation, **(chosen | options)
    )


def committee():
    return mercer.BayesianCommitteeRegressor(RBF(), n_members=3, optimizer=None, random_state=0)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_an_exact_regressor_has_no_gap(outputs, normalize):
    X, y = rows(outputs=outputs)
    model = held(normalize_y=normalize).fit(X, y)
    for found in (
        mercer.certificate(model),
        mercer.certificate(model, X, y),
        mercer.certificate(model.predictive_, X, y, noise=model.likelihood_),
        mercer.certificate(model.predictive_, X, y, noise=0.04),
    ):
        assert isinstance(found, Certificate)
        assert found.gap < 1e-15
        assert found.fitted_error.shape == (outputs,)
        assert np.all(found.fitted_error < 1e-7)


def test_the_default_model_in_its_own_units():
    X, y = rows(outputs=2)
    y = y * np.array([1e3, 1e-3])
    model = mercer.GPRegressor().fit(X, y)
    found = mercer.certificate(model)
    assert found.gap < 1e-15
    np.testing.assert_array_less(found.fitted_error, 1e-8 * np.std(y, axis=0))


@pytest.mark.parametrize("approximation", ["sod", "sor", "dtc", "fitc", "pitc", "vfe", "pep"])
@pytest.mark.parametrize("normalize", [False, True])
def test_what_is_certified_of_sparse_regressors_holds(approximation, normalize):
    X, y = rows()
    model = sparse(approximation, normalize_y=normalize).fit(X, y)
    found = mercer.certificate(model, X, y)
    if approximation != "sod":
        assert mercer.certificate(model).gap == pytest.approx(found.gap, rel=1e-9)
    # y less the mean that was estimated is what the exact process is to
    mean = model.predictive_.mean_function
    wide = means.Function(lambda X: mean(X, 1)[:, 0])
    scale = float(model.predictive_.scale[0])
    exact = mercer.GPRegressor(
        scale**2 * model.kernel_, Gaussian(0.04 * scale**2), optimizer=None, mean=wide
    ).fit(X, y)
    difference = model.predict(X, latent=True) - exact.predict(X, latent=True)
    error = float(np.sqrt(np.mean(difference**2)))
    assert 1e-6 < error <= found.fitted_error[0]
    new = np.random.default_rng(3).uniform(-3, 3, (100, 2))
    difference = model.predict(new, latent=True) - exact.predict(new, latent=True)
    assert np.max(np.abs(difference)) <= found.function_error[0]  # k(x, x) = 1
    assert 0 < found.gap < 2


def test_weights_come_from_the_fit_or_from_the_caller():
    X, y = rows()
    w = np.arange(60.0) % 3
    model = held().fit(X, y, sample_weight=w)
    assert mercer.certificate(model).gap < 1e-15
    assert mercer.certificate(model, X, y, sample_weight=w).gap < 1e-15
    assert mercer.certificate(model, X, y).gap > 1e-4  # another problem
    with pytest.raises(ValueError, match="sample_weight goes with X and y"):
        mercer.certificate(model, sample_weight=w)
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        mercer.certificate(model, X, y, sample_weight=w[:5])


def test_variances_of_rows_with_and_without_weights():
    X, y = rows()
    noise = np.random.default_rng(1).uniform(0.01, 0.2, 60)
    w = np.arange(60.0) % 3
    model = mercer.GPRegressor(1.0 * RBF(0.8), Gaussian(noise), optimizer=None)
    model.fit(X, y, sample_weight=w)
    assert mercer.certificate(model).gap < 1e-15
    assert mercer.certificate(model, X, y, sample_weight=w).gap < 1e-15
    found = mercer.certificate(model.predictive_, X, y, noise=noise, sample_weight=w)
    assert found.gap < 1e-15


def test_pruned_posteriors_and_frames():
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = held().fit(frame, y)
    assert mercer.certificate(model, frame, pd.Series(y)).gap < 1e-15
    gaps = [
        mercer.certificate(model.posterior_.prune(m)[0], frame, y, noise=0.04).gap
        for m in (40, 20, 5)
    ]
    assert 0 < gaps[0] < gaps[1] < gaps[2]


def test_precomputed_kernels():
    X, y = rows()
    K = RBF(0.8)(X)
    model = mercer.GPRegressor("precomputed", Gaussian(0.04), optimizer=None).fit(K, y)
    for found in (mercer.certificate(model), mercer.certificate(model, K, y)):
        assert found.gap < 1e-15
        plain = mercer.certificate(
            mercer.GPRegressor(RBF(0.8), Gaussian(0.04), optimizer=None).fit(X, y)
        )
        assert found.upper == pytest.approx(plain.upper, rel=1e-9)


def test_a_posterior_that_was_saved(tmp_path):
    X, y = rows()
    model = sparse("fitc").fit(X, y)
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert mercer.certificate(again, X, y).gap == mercer.certificate(model, X, y).gap


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sparse("pic"), "BlockPredictive is not"),
        (lambda: sparse("fitc", augment=True), "AugmentedPredictive is not"),
        (lambda: committee(), "CommitteePredictive is not"),
        (lambda: held(mean=means.Constant(estimate="integrate")), "integrated out"),
        (
            lambda: mercer.GPRegressor(RBF(), StudentT(4.0, 0.3), optimizer=None),
            "Gaussian noise that is independent",
        ),
    ],
)
def test_models_without_a_certificate_say_why(make, message):
    X, y = rows()
    model = make().fit(X, y)
    with pytest.raises(ValueError, match=message):
        mercer.certificate(model, X, y)


def test_a_noise_covariance_is_refused():
    X, y = rows()
    covariance = 0.04 * np.eye(60) + 0.01
    model = mercer.GPRegressor(RBF(), Gaussian(covariance), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="independent from row to row"):
        mercer.certificate(model)


def test_what_is_missing_is_named():
    X, y = rows()
    model = sparse("fitc")
    with pytest.raises(ValueError, match="is not fitted"):
        mercer.certificate(model, X, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="does not keep all of its training rows"):
        mercer.certificate(sparse("sod").fit(X, y))
    with pytest.raises(ValueError, match="X and y are wanted"):
        mercer.certificate(model.predictive_, noise=0.04)
    with pytest.raises(ValueError, match="X and y are wanted"):
        mercer.certificate(model, X)
    with pytest.raises(ValueError, match=r"noise=model\.likelihood_"):
        mercer.certificate(model.predictive_, X, y)
    pipe = make_pipeline(StandardScaler(), sparse("fitc")).fit(X, y)
    with pytest.raises(ValueError, match="got a Pipeline"):
        mercer.certificate(pipe, X, y)
    with pytest.raises(ValueError, match="dual must be one of"):
        mercer.certificate(model, X, y, dual="none")
    with pytest.raises(ValueError, match="NaN"):
        mercer.certificate(model, X, np.full(60, np.nan))
