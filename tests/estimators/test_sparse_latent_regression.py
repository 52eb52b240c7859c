"""SparseGPRegressor with noise that is not Gaussian, and with counts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from mercer import GPRegressor, SparseGPRegressor, load, save
from mercer.errors import MercerWarning, UndeterminedWarning
from mercer.evidence.sparse_latent import SparseLatentObjective
from mercer.kernels import RBF, Matern
from mercer.likelihoods import (
    Custom,
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    MixtureNoise,
    Poisson,
    StudentT,
)
from mercer.params import Parameter
from mercer.posterior import IndependentPredictive
from mercer.testing import check_regressor

from .data import quiet_fit, waves

N = 50
X, F, Y, GROSS, COUNTS = waves(N, 8.0)
NEW = np.linspace(0.5, 7.5, 9)[:, None]
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, N)
ROUGH = 0.8 * Matern(1.1, nu=1.5)


def log_sech(y, f):
    return -np.log(np.pi) - np.log(np.cosh(y - f))


def sech_var(f):
    return np.full(np.shape(f), np.pi**2 / 4.0)


LIKELIHOODS = {
    "StudentT": StudentT(4.0, 0.2),
    "Poisson": Poisson(),
    "Huber": Huber(0.2, 1.0),
    "Custom": Custom(
        log_sech, log_concave=True, conditional_mean=np.array, conditional_var=sech_var
    ),
    "Gaussian": Gaussian(0.1),
    "Laplace": Laplace(0.3),
    "EpsilonInsensitive": EpsilonInsensitive(0.1, 0.3),
    "MixtureNoise": MixtureNoise([0.9, 0.1], [0.0, 0.0], [0.3, 4.0]),
}
PAIRS = [
    *((name, "laplace") for name in ("StudentT", "Poisson", "Huber", "Custom", "Gaussian")),
    *((name, "ep") for name in ("Laplace", "Poisson", "EpsilonInsensitive", "MixtureNoise")),
]


def targets(name):
    return COUNTS if name == "Poisson" else GROSS


def held(name, kernel=ROUGH, **options):
    return SparseGPRegressor(
        kernel, LIKELIHOODS[name], optimizer=None, random_state=0, **{"mean": "zero", **options}
    )


# --- as the dense one -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "inference"), PAIRS)
def test_with_every_row_inducing_it_is_the_whole_process(name, inference):
    y = targets(name)
    whole = GPRegressor(
        ROUGH, LIKELIHOODS[name], inference=inference, optimizer=None, mean="zero"
    ).fit(X, y, WEIGHTS)
    for approximation in ("fitc", "dtc"):
        sparse = held(name, inference=inference, approximation=approximation).fit(X, y, WEIGHTS)
        assert sparse.inference_ == inference and sparse.approximation_ == approximation
        value = whole.log_marginal_likelihood_value_
        assert sparse.log_marginal_likelihood_value_ == pytest.approx(value, abs=1e-3)
        (mean, std), (wanted, spread) = (
            m.predict(NEW, return_std=True, latent=True) for m in (sparse, whole)
        )
        np.testing.assert_allclose(mean, wanted, atol=1e-3)
        np.testing.assert_allclose(std, spread, atol=1e-3)
    np.testing.assert_allclose(sparse.loo().mean, whole.loo().mean, atol=1e-2)


@pytest.mark.parametrize(
    ("likelihood", "engine"),
    [
        (StudentT(), "laplace"),
        (Poisson(), "laplace"),
        (Laplace(), "ep"),
        (Huber(), "ep"),
        (MixtureNoise([0.5, 0.5], [0.0, 1.0], [1.0, 2.0]), "ep"),
        (None, "sparse"),
    ],
    ids=lambda v: repr(v)[:20],
)
def test_the_engine_that_is_taken_by_itself(likelihood, engine):
    y = COUNTS if isinstance(likelihood, Poisson) else GROSS
    model = SparseGPRegressor(ROUGH, likelihood, n_inducing=6, optimizer=None, random_state=0)
    quiet_fit(model, X, y)
    assert model.inference_ == engine
    assert model.approximation_ == ("pic" if engine == "sparse" else "fitc")
    assert hasattr(model, "evidence_bounds_") == (engine == "sparse")
    assert len(model.inducing_) == 6
    assert hasattr(model, "posterior_") == (engine != "sparse")


# --- the evidence ---------------------------------------------------------------------------------


@pytest.mark.parametrize("approximation", ["fitc", "dtc"])
@pytest.mark.parametrize(
    ("name", "inference"), [("StudentT", "laplace"), ("Poisson", "laplace"), ("Laplace", "ep")]
)
def test_the_gradient_of_the_evidence(name, inference, approximation):
    options = {"inference": inference, "approximation": approximation, "mean": "constant"}
    model = held(name, n_inducing=7, **options).fit(X, targets(name), WEIGHTS)
    assert isinstance(model._objective(), SparseLatentObjective)
    theta, step = model.theta_ + 0.05, 1e-4
    _, got = model.log_marginal_likelihood(theta, eval_gradient=True)
    steps = step * np.eye(theta.size)
    ahead, behind = (
        np.array([model.log_marginal_likelihood(theta + sign * own) for own in steps])
        for sign in (1.0, -1.0)
    )
    np.testing.assert_allclose(got, (ahead - behind) / (2 * step), rtol=1e-3, atol=1e-3)
    assert len(model.standard_errors()) == theta.size


def test_a_search_moves_inducing_inputs_and_its_evidence_is_that_of_the_fit():
    options = {"n_inducing": 6, "max_iter": 8, "random_state": 0}
    kept, moved = (
        quiet_fit(
            SparseGPRegressor(likelihood=Poisson(), **options, learn_inducing=learned), X, COUNTS
        )
        for learned in (False, True)
    )
    assert moved.history_["theta"].shape[1] == moved.theta_.size + moved.inducing_.size
    assert not np.allclose(kept.inducing_, moved.inducing_)
    value = moved.log_marginal_likelihood_value_
    assert moved.log_marginal_likelihood(moved.theta_) == pytest.approx(value, rel=1e-7)


# --- fits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", [StudentT(), Laplace()], ids=["StudentT", "Laplace"])
def test_outliers_lead_it_no_more_astray_than_the_dense_one(likelihood):
    options = {"n_inducing": 15, "learn_inducing": False, "random_state": 0}
    sparse = quiet_fit(SparseGPRegressor(likelihood=likelihood, **options), X, GROSS)
    dense = quiet_fit(GPRegressor(likelihood=likelihood), X, GROSS)
    own, wanted = (np.sqrt(np.mean((m.predict(X, latent=True) - F) ** 2)) for m in (sparse, dense))
    assert own < 1.1 * wanted + 0.02 and own < 0.2
    density = sparse.log_predictive_density(X, GROSS).mean()
    assert density == pytest.approx(dense.log_predictive_density(X, GROSS).mean(), abs=0.05)


def test_weights_are_repeated_rows():
    times = np.arange(N) % 3
    rows = np.repeat(np.arange(N), times)
    weighted = held("Poisson", n_inducing=6).fit(X, COUNTS, times)
    repeated = held("Poisson", n_inducing=6).fit(X[rows], COUNTS[rows])
    value = repeated.log_marginal_likelihood_value_
    assert weighted.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), rtol=1e-6)


def test_known_variances_by_an_engine_are_those_of_the_closed_form():
    noise = np.linspace(0.05, 0.3, N)
    options = {"optimizer": None, "inducing": NEW, "mean": "zero", "approximation": "fitc"}
    engine, closed = (
        SparseGPRegressor(ROUGH, Gaussian(noise), inference=name, **options).fit(X, Y)
        for name in ("laplace", "auto")
    )
    assert (engine.inference_, closed.inference_) == ("laplace", "sparse")
    value = closed.log_marginal_likelihood_value_
    assert engine.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-6)
    for got, wanted in zip(
        *(m.predict(NEW + 0.2, return_std=True) for m in (engine, closed)), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_new_points_that_are_independent_given_u():
    one, other = (
        held("StudentT", n_inducing=5, joint=joint).fit(X, GROSS)
        for joint in ("independent", "exact")
    )
    assert isinstance(one.predictive_, IndependentPredictive) and hasattr(one, "posterior_")
    means, covariances = zip(
        *(m.predict(NEW, return_cov=True, latent=True) for m in (one, other)), strict=True
    )
    np.testing.assert_allclose(*means)
    np.testing.assert_allclose(*map(np.diagonal, covariances))
    assert not np.allclose(*covariances)
    assert one.log_marginal_likelihood(one.theta_) == pytest.approx(
        one.log_marginal_likelihood_value_, rel=1e-7
    )


def test_a_model_can_be_saved_and_goes_on_warm(tmp_path):
    model = SparseGPRegressor(
        ROUGH,
        StudentT(Parameter(4.0, fixed=True), 0.2),
        n_inducing=6,
        max_iter=3,
        random_state=0,
        warm_start=True,
    )
    quiet_fit(model, X, GROSS)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_allclose(again.loo().log_density, model.loo().log_density, rtol=1e-9)
    points, theta = model.inducing_, model.theta_
    quiet_fit(model.set_params(optimizer=None), X, GROSS)
    np.testing.assert_allclose(model.inducing_, points)
    np.testing.assert_allclose(model.theta_, theta)


def test_another_noise_leaves_no_bounds_of_the_fit_before():
    model = SparseGPRegressor(ROUGH, optimizer=None, n_inducing=6, mean="zero").fit(X, Y)
    assert hasattr(model, "evidence_bounds_")
    quiet_fit(model.set_params(likelihood=StudentT(4.0, 0.2)), X, Y)
    assert not hasattr(model, "evidence_bounds_") and model.unexplained_ > 0
    clone(model)


def test_points_to_be_predicted_as_inducing_inputs():
    model = held("Poisson", inducing="query").fit(X, COUNTS, query=NEW)
    np.testing.assert_array_equal(model.inducing_, NEW)


# --- what is said and refused ---------------------------------------------------------------------


def test_too_few_inducing_inputs_are_told_of():
    with pytest.warns(MercerWarning, match=r"2 inducing inputs leave \d+% of .* to 8 say"):
        held("StudentT", 2.0 * RBF(0.02), n_inducing=2).fit(X, GROSS)


def test_counts_that_are_all_nought():
    with pytest.warns(UndeterminedWarning, match="all counts are 0"):
        SparseGPRegressor(ROUGH, Poisson(), n_inducing=5).fit(X, np.zeros(N))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"inference": "vi"}, "inference must be one of 'auto', 'laplace', 'ep', got 'vi'"),
        ({"approximation": "pitc"}, "'fitc', 'dtc', 'sor', got 'pitc'"),
        ({"approximation": "sod"}, "got 'sod'"),
        ({"augment": True}, "augment=True goes with Gaussian noise"),
        ({"normalize_y": True}, "normalize_y=True goes with Gaussian noise"),
        ({"likelihood": Laplace(), "inference": "laplace"}, "use inference='ep'"),
    ],
)
def test_refusals(options, text):
    model = SparseGPRegressor(**{"likelihood": StudentT(), "optimizer": None, **options})
    with pytest.raises(ValueError, match=text):
        model.fit(X, GROSS)


def test_columns_of_targets_are_refused():
    with pytest.raises(ValueError, match="y has 2 columns"):
        held("StudentT").fit(X, np.column_stack([GROSS, GROSS]))


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (SparseGPRegressor(1.0 * RBF(1.0), Poisson(), n_inducing=8, optimizer=None), (X, COUNTS)),
        (SparseGPRegressor(likelihood=StudentT(5.0, 0.3), n_inducing=8, max_iter=3), ()),
    ],
    ids=["Poisson", "StudentT"],
)
def test_the_rules_of_regressors(model, data):
    report = check_regressor(model, *data)
    assert len(report.held) >= 20
