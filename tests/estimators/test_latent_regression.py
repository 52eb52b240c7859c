"""GPRegressor with noise that is not Gaussian: fits, and what they offer afterwards."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from mercer import GPRegressor, load, save
from mercer.errors import ConvergenceWarning, UndeterminedWarning
from mercer.estimators.preparation import prepare
from mercer.kernels import RBF
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

from .data import quiet_fit, waves

N = 60
X, F, Y, GROSS, COUNTS = waves(N, 10.0)
NEW = np.linspace(0.5, 9.5, 13)[:, None]

# Parameters that are held keep the tests quick.
KERNEL = Parameter(0.7, fixed=True) * RBF(1.5)
HELD = KERNEL.with_params(RBF__length_scale=Parameter(1.5, fixed=True))
STUDENT = StudentT(Parameter(3.0, fixed=True), 0.15)
MODELS = {
    "laplace": GPRegressor(KERNEL, STUDENT),
    "ep": GPRegressor(KERNEL, Laplace(0.2)),
    "vi": GPRegressor(KERNEL, Poisson()),
}


def targets(name):
    return COUNTS if name == "vi" else GROSS


@pytest.fixture(scope="module", params=list(MODELS))
def fitted(request):
    return quiet_fit(clone(MODELS[request.param]), X, targets(request.param))


# --- it fits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("likelihood", "limit"),
    [
        (StudentT(), 0.06),
        (StudentT(Parameter(3.0, fixed=True)), 0.06),
        (Laplace(), 0.2),
        (Huber(), 0.2),
        (EpsilonInsensitive(), 0.2),
    ],
    ids=lambda v: repr(v)[:30],
)
@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_a_fifth_of_gross_outliers(likelihood, limit, unit):
    y = unit * (GROSS + 20.0)
    model = quiet_fit(GPRegressor(likelihood=likelihood), X, y)
    error = np.sqrt(np.mean((model.predict(X, latent=True) / unit - 20.0 - F) ** 2))
    gaussian = quiet_fit(GPRegressor(), X, y)
    led_astray = np.sqrt(np.mean((gaussian.predict(X) / unit - 20.0 - F) ** 2))
    assert error < limit
    assert led_astray > 3.0 * error
    assert model.status_ == "converged"


def test_counts():
    model = quiet_fit(GPRegressor(likelihood=Poisson()), X, COUNTS)
    assert model.inference_ == "vi"
    rate = model.predict(X)
    assert np.mean(np.abs(rate / np.exp(1.0 + F) - 1.0)) < 0.35
    np.testing.assert_allclose(
        model.predict(X, latent=True), model.posterior_.mean(X)[:, 0], rtol=1e-12
    )
    assert np.all(rate > np.exp(model.predict(X, latent=True)))  # the mean is above the median
    low, high = model.predict_interval(X, coverage=0.9)
    assert np.all((low == np.floor(low)) & (high == np.floor(high)) & (low >= 0))
    assert np.mean((low <= COUNTS) & (COUNTS <= high)) > 0.8
    draws = model.sample_y(NEW, 4)
    assert np.all((draws >= 0) & (draws == np.floor(draws)))
    with pytest.raises(ValueError, match="whole numbers of at least 0, got -1"):
        GPRegressor(likelihood=Poisson()).fit(X, COUNTS - 1.0)


def test_the_engines_agree():
    found = {
        engine: quiet_fit(
            GPRegressor(KERNEL, Poisson(), inference=engine, optimizer=None), X, COUNTS
        )
        for engine in ("laplace", "ep", "vi", "map")
    }
    means = {name: model.predict(NEW, latent=True) for name, model in found.items()}
    np.testing.assert_allclose(means["ep"], means["vi"], atol=0.02)
    np.testing.assert_allclose(means["laplace"], means["vi"], atol=0.1)
    np.testing.assert_allclose(means["map"], means["laplace"], rtol=1e-6)
    values = [found[e].log_marginal_likelihood_value_ for e in ("laplace", "ep", "vi")]
    assert np.ptp(values) < 0.1
    assert np.isnan(found["map"].log_marginal_likelihood_value_)


@pytest.mark.parametrize("engine", ["laplace", "ep", "vi"])
def test_gaussian_noise_by_another_engine_is_exact(engine):
    exact = quiet_fit(GPRegressor(1.0 * RBF(1.5), mean="zero"), X, Y)
    other = quiet_fit(GPRegressor(1.0 * RBF(1.5), mean="zero", inference=engine), X, Y)
    assert other.inference_ == engine and exact.inference_ == "exact"
    assert other.log_marginal_likelihood_value_ == pytest.approx(
        exact.log_marginal_likelihood_value_, abs=1e-3
    )
    for mine, theirs in zip(other.predict(NEW, True), exact.predict(NEW, True), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=3e-3)
    known = Gaussian(np.linspace(0.01, 0.1, N))
    pair = [
        quiet_fit(GPRegressor(KERNEL, known, mean="zero", inference=e), X, Y)
        for e in ("exact", engine)
    ]
    for mine, theirs in zip(pair[1].loo(), pair[0].loo(), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-3)


def test_other_densities():
    mixture = MixtureNoise(
        [0.8, 0.2],
        Parameter([0.0, 0.0], fixed=True),
        Parameter([0.1, 5.0], fixed=True),
    )
    model = quiet_fit(GPRegressor(KERNEL, mixture, optimizer=None), X, GROSS)
    assert model.inference_ == "ep"
    assert np.sqrt(np.mean((model.predict(X) - F) ** 2)) < 0.1

    def log_sech(y, f):
        return -np.logaddexp((y - f) / 0.1, (f - y) / 0.1) - np.log(0.1 * np.pi / 2)

    custom = Custom(log_sech, log_concave=True, width=0.1)
    model = quiet_fit(GPRegressor(KERNEL, custom, optimizer=None), X, GROSS)
    assert model.inference_ == "laplace"
    with pytest.raises(NotImplementedError, match="Custom has no conditional_mean"):
        model.predict(X)
    assert np.sqrt(np.mean((model.predict(X, latent=True) - F) ** 2)) < 0.15


# --- what a fit offers ----------------------------------------------------------------------------


def test_evidence_and_its_gradient(fitted):
    theta = fitted.theta_
    assert theta.size == fitted.hessian().shape[0] == len(fitted.standard_errors())
    value, gradient = fitted.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(fitted.log_marginal_likelihood(), rel=1e-8)
    np.testing.assert_allclose(gradient, 0.0, atol=0.05)  # the optimum; no hyperpriors here
    assert np.all(np.isfinite(list(fitted.standard_errors().values())))
    with pytest.raises(ValueError, match="theta must have shape"):
        fitted.log_marginal_likelihood(theta[:1])


def test_leave_one_out(fitted):
    left = fitted.loo()
    y = fitted.y_train_[:, 0]
    held = clone(fitted).set_params(
        kernel=fitted.kernel_, likelihood=fitted.likelihood_, mean=_held(fitted), optimizer=None
    )
    for i in (3, 30):
        others = np.arange(N) != i
        again = quiet_fit(clone(held), X[others], y[others])
        mean, std = again.predict(X[i : i + 1], return_std=True)
        density = again.log_predictive_density(X[i : i + 1], y[i : i + 1])
        assert left.mean[i] == pytest.approx(mean[0], abs=0.1 * std[0])
        assert left.std[i] == pytest.approx(std[0], rel=0.1)
        assert left.log_density[i] == pytest.approx(density[0], abs=0.1)


def _held(model):
    return type(model.mean_)(model.mean_.value, estimate=None)


def test_saving_and_pickling(fitted, tmp_path):
    save(fitted, tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict(NEW), fitted.predict(NEW))
        assert again.likelihood_ == fitted.likelihood_ and again.inference_ == fitted.inference_
        np.testing.assert_array_equal(again.loo().mean, fitted.loo().mean)
        assert again.log_marginal_likelihood(again.theta_) == pytest.approx(
            fitted.log_marginal_likelihood_value_, rel=1e-8
        )


def test_bounds_from_the_data_are_not_kept(fitted):
    scale = fitted.likelihood_.parameters.get("scale")
    assert scale is None or scale.bounds is None


@pytest.mark.parametrize("name", list(MODELS))
def test_weights_are_repetitions(name):
    y, weights = targets(name), np.arange(N) % 3
    model = clone(MODELS[name]).set_params(optimizer=None, mean="zero")
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.log_marginal_likelihood_value_ == pytest.approx(
        repeated.log_marginal_likelihood_value_, rel=1e-6
    )
    for mine, theirs in zip(weighted.predict(NEW, True), repeated.predict(NEW, True), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    plain = clone(model).fit(X, y, sample_weight=np.ones(N))
    np.testing.assert_array_equal(plain.predict(NEW), clone(model).fit(X, y).predict(NEW))


@pytest.mark.parametrize("name", list(MODELS))
def test_precomputed(name):
    y = targets(name)
    options = {"likelihood": MODELS[name].likelihood, "optimizer": None}
    plain = GPRegressor(KERNEL, **options).fit(X, y)
    model = GPRegressor("precomputed", **options).fit(KERNEL(X), y)
    columns = np.hstack([KERNEL(NEW, X), KERNEL.diag(NEW)[:, None]])
    for mine, theirs in zip(model.predict(columns, True), plain.predict(NEW, True), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8)


def test_pruning_leaves_the_evidence_as_it_was():
    model = quiet_fit(clone(MODELS["laplace"]), X, GROSS)
    before, left = model.predict(NEW), model.loo()
    model.posterior_, loss = model.posterior_.prune(30)
    assert loss < 1e-2
    np.testing.assert_allclose(model.predict(NEW), before, atol=1e-2)
    np.testing.assert_array_equal(model.loo(), left)


@pytest.mark.parametrize("noise", [Laplace(0.2), Huber(0.1), EpsilonInsensitive(0.1, 0.1)], ids=str)
def test_map_keeps_all_training_inputs_in_their_order(noise, tmp_path):
    model = quiet_fit(GPRegressor(HELD, noise, inference="map", optimizer=None), X, GROSS)
    assert not np.array_equal(model.posterior_.basis.points, X)
    save(model, tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        np.testing.assert_array_equal(each.X_train_, X)
        np.testing.assert_array_equal(each.y_train_[:, 0], GROSS)


# --- the search -----------------------------------------------------------------------------------


def test_warm_starts():
    model = quiet_fit(clone(MODELS["laplace"]).set_params(warm_start=True), X, GROSS)
    first = model.history_["value"]
    quiet_fit(model, X, GROSS)
    assert len(model.history_["value"]) < len(first)
    assert model.history_["value"][0] == pytest.approx(np.max(first), abs=1e-4)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_restarts(n_jobs):
    model = clone(MODELS["vi"]).set_params(n_restarts=2, n_jobs=n_jobs, random_state=0)
    quiet_fit(model, X, COUNTS)
    plain = quiet_fit(clone(MODELS["vi"]), X, COUNTS)
    assert model.log_marginal_likelihood_value_ >= plain.log_marginal_likelihood_value_ - 1e-4


def test_interruption_keeps_the_best():
    def interrupt(start, count, value, best):
        if count == 3:
            raise KeyboardInterrupt

    model = clone(MODELS["laplace"]).set_params(verbose=interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted after 3"):
        model.fit(X, GROSS)
    assert model.status_ == "interrupted"
    assert len(model.history_["value"]) == 3 and np.all(np.isfinite(model.predict(NEW)))


def test_verbose(capsys):
    quiet_fit(clone(MODELS["vi"]).set_params(verbose=1, max_iter=2), X, COUNTS)
    assert "mercer: evaluation 1: " in capsys.readouterr().err


def test_in_scikit_learn():
    search = GridSearchCV(
        clone(MODELS["laplace"]).set_params(optimizer=None),
        {"likelihood__scale": [0.05, 0.2], "inference": ["laplace", "vi"]},
        cv=2,
        error_score="raise",
    ).fit(X, GROSS)
    assert search.best_params_["likelihood__scale"] in (0.05, 0.2)
    scores = cross_val_score(clone(MODELS["vi"]).set_params(optimizer=None), X, COUNTS, cv=3)
    assert scores.shape == (3,)


def test_the_mode_and_its_hyperparameters():
    model = GPRegressor(HELD, Laplace(), inference="map", objective="joint", max_iter=20)
    quiet_fit(model, X, GROSS)
    assert model.inference_ == "map" and model.status_ == "converged"
    assert np.sqrt(np.mean((model.predict(X) - F) ** 2)) < 0.2
    assert np.all(np.diff(model.history_["value"]) > -1e-6)
    for call in (model.loo, model.hessian, model.standard_errors, model.log_marginal_likelihood):
        with pytest.raises(ValueError, match=r"'map' has no evidence.*'ep' and inference='vi'"):
            call()


@pytest.mark.filterwarnings("ignore::mercer.errors.JitterWarning")
@pytest.mark.filterwarnings("ignore::mercer.errors.BoundWarning")
def test_the_joint_density_loses_the_function_and_says_so():
    with pytest.warns(ConvergenceWarning, match=r"function is lost.*objective='evidence'"):
        GPRegressor(likelihood=Laplace(), inference="map", objective="joint").fit(X, GROSS)


def test_the_mode_has_the_hyperparameters_of_the_evidence():
    found = quiet_fit(GPRegressor(likelihood=Laplace()), X, GROSS)
    model = quiet_fit(GPRegressor(likelihood=Laplace(), inference="map"), X, GROSS)
    assert found.inference_ == "ep" and model.inference_ == "map"
    np.testing.assert_allclose(model.theta_, found.theta_, rtol=1e-10)
    assert np.sqrt(np.mean((model.predict(X) - F) ** 2)) < 0.2


def test_data_that_say_nothing():
    with pytest.warns(UndeterminedWarning, match="the targets are constant"):
        model = GPRegressor(likelihood=StudentT()).fit(X, np.full(N, 5.0))
    np.testing.assert_allclose(model.predict(X), 5.0, rtol=1e-6)
    with pytest.warns(UndeterminedWarning, match="there is only one row"):
        model = GPRegressor(likelihood=Poisson()).fit([[1.0]], [3.0])
    assert model.predict([[1.0]])[0] > 0
    model = quiet_fit(GPRegressor(likelihood=Poisson()), X, np.zeros(N))
    assert np.all(model.predict(X) < 0.5)


def test_bounds_hold_a_warm_start():
    # the second targets are far smaller than the first: the start is outside what they suggest
    model = GPRegressor(1.0 * RBF(), StudentT(Parameter(4.0, fixed=True)), warm_start=True)
    quiet_fit(model, X, 1e6 * GROSS)
    last = model.theta_
    prepared = prepare(model, X, GROSS, None)
    low, high = prepared.objective.bounds.T
    np.testing.assert_array_equal(prepared.objective.theta, last)
    assert np.all((low < last) & (last < high))
    # what is fitted has no bounds but the user's
    assert prepared.objective.likelihood.parameters["scale"].bounds is None
