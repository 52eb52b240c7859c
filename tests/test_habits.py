"""scikit-learn habits: searches over kernels, routed weights, frames, workers."""

from __future__ import annotations

import threading

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from mercer import GPRegressor, load, metrics, save
from mercer.compute import threads
from mercer.estimators.nested import column_names
from mercer.kernels import RBF, Callable, Categorical, Flipped, Linear, Matern, Tanh
from mercer.likelihoods import Gaussian
from mercer.means import Constant


def make(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=n)


X, Y = make()
WEIGHTS = np.random.default_rng(5).integers(0, 4, size=60).astype(float)
FRAME = pd.DataFrame(X, columns=["age", "height"])


def fixed(kernel=None, **options):
    kernel = RBF() if kernel is None else kernel
    return GPRegressor(kernel, Gaussian(0.01), optimizer=None, **options)


# --- nested parameters ------------------------------------------------------------------------


def test_search_over_kernels():
    grid = {"kernel": [RBF(), Matern(nu=2.5), 2.0 * RBF() + Linear(), RBF(1e-3), None]}
    search = GridSearchCV(GPRegressor(max_iter=5, optimizer=None), grid, cv=3).fit(X, Y)
    assert search.best_params_["kernel"] != RBF(1e-3)
    assert list(search.cv_results_["param_kernel"]) == grid["kernel"]
    assert search.best_estimator_.kernel is search.best_params_["kernel"]


def test_search_by_path():
    kernel = 1.0 * RBF() + Linear()
    model = make_pipeline(StandardScaler(), fixed(kernel))
    grid = {
        "gpregressor__kernel__Scaled__RBF__length_scale": [1e-3, 1.0],
        "gpregressor__likelihood__noise": [0.01, 100.0],
    }
    search = GridSearchCV(model, grid, cv=3, scoring=metrics.neg_log_predictive_density).fit(X, Y)
    assert search.best_params_ == {
        "gpregressor__kernel__Scaled__RBF__length_scale": 1.0,
        "gpregressor__likelihood__noise": 0.01,
    }
    assert model[-1].kernel is kernel and kernel == 1.0 * RBF() + Linear()
    assert search.best_estimator_[-1].kernel_ == kernel


def test_set_params_replaces_and_never_changes():
    kernel, noise = 2.0 * RBF(), Gaussian(0.5)
    model = GPRegressor(kernel, noise, mean=Constant())
    before = model.get_params()
    assert before["kernel__RBF__length_scale"] == 1.0 and before["likelihood__noise"] == 0.5
    assert model.set_params(kernel__RBF__length_scale=3.0, likelihood__noise=0.1) is model
    model.set_params(mean__estimate="integrate", n_restarts=2)
    assert (model.kernel, model.likelihood) == (2.0 * RBF(3.0), Gaussian(0.1))
    assert (model.mean, model.n_restarts) == (Constant(estimate="integrate"), 2)
    assert (kernel, noise) == (2.0 * RBF(), Gaussian(0.5))
    model.set_params(kernel__nu=0.5, kernel=Matern())
    assert model.kernel == Matern(nu=0.5)
    model.set_params(**before)
    assert model.get_params() == before
    assert model.set_params() is model


def test_names_that_cannot_be_set():
    model = GPRegressor(2.0 * RBF())
    with pytest.raises(ValueError, match=r"Scaled has no parameter 'lenght'.*: variance, RBF, RB"):
        model.set_params(n_restarts=3, kernel__lenght=2.0)
    assert model.n_restarts == 0  # all or nothing
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        model.set_params(colour__of=2.0)
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        model.set_params(colour=2.0)
    for kernel in (None, "precomputed"):
        with pytest.raises(ValueError, match=f"since kernel is {kernel!r}, which has no param"):
            GPRegressor(kernel).set_params(kernel__length_scale=2.0)


def test_kernels_of_scikit_learn_are_varied_as_they_are_there():
    model = clone(GPRegressor(sk.RBF())).set_params(kernel__length_scale=3.0)
    assert model.kernel == sk.RBF(3.0)


def test_clones_and_reprs():
    model = GPRegressor(2.0 * RBF([1.0, 2.0]), Gaussian(0.5), mean=Constant())
    copied = clone(model)
    assert copied is not model and copied.kernel is model.kernel
    for shown in (repr(model), model._repr_html_()):
        assert "2 * RBF(length_scale=[1, 2])" in shown
    assert joblib.hash(model) == joblib.hash(copied)


# --- metadata routing -------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def folds():
    return KFold(3).split(X)


def expected(weighted_fit, weighted_score, score):
    out = []
    for train, test in folds():
        w = WEIGHTS[train] if weighted_fit else None
        model = fixed().fit(X[train], Y[train], sample_weight=w)
        out.append(score(model, X[test], Y[test], WEIGHTS[test] if weighted_score else None))
    return np.array(out)


def r2(model, X, y, sample_weight):
    return model.score(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize(("to_fit", "to_score"), [(True, True), (False, True), (True, False)])
def test_routed_weights_of_the_models_own_score(routing, to_fit, to_score):
    model = fixed().set_fit_request(sample_weight=to_fit).set_score_request(sample_weight=to_score)
    want = expected(to_fit, to_score, r2)
    params = {"sample_weight": WEIGHTS}
    scores = cross_validate(model, X, Y, cv=KFold(3), params=params)["test_score"]
    np.testing.assert_allclose(scores, want, rtol=1e-8)
    if not to_score:
        return  # scikit-learn's Pipeline.score refuses weights that its last step does not ask for
    piped = make_pipeline(StandardScaler(with_mean=False, with_std=False), model)
    piped[0].set_fit_request(sample_weight=False)
    scores = cross_val_score(piped, X, Y, cv=KFold(3), params=params)
    np.testing.assert_allclose(scores, want, rtol=1e-8)
    search = GridSearchCV(piped, {"gpregressor__n_restarts": [0]}, cv=KFold(3))
    search.fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], want.mean(), rtol=1e-8)
    weights = WEIGHTS if to_fit else None
    np.testing.assert_allclose(
        search.predict(X), fixed().fit(X, Y, sample_weight=weights).predict(X), rtol=1e-8
    )


@pytest.mark.parametrize("to_score", [True, False])
@pytest.mark.parametrize("name", metrics.get_scorer_names())
def test_routed_weights_of_scorers(routing, name, to_score):
    scorer = metrics.get_scorer(name)
    asking = scorer.set_score_request(sample_weight=to_score)
    model = fixed().set_fit_request(sample_weight=True)
    want = expected(True, to_score, scorer)
    params = {"sample_weight": WEIGHTS}
    scores = cross_val_score(model, X, Y, cv=KFold(3), scoring=asking, params=params)
    np.testing.assert_allclose(scores, want, rtol=1e-8)
    both = {"asked": asking, "other": metrics.neg_crps.set_score_request(sample_weight="no_such")}
    search = GridSearchCV(
        make_pipeline(model), {"gpregressor__n_restarts": [0]}, scoring=both, refit="asked", cv=3
    )
    search.fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(search.cv_results_["mean_test_asked"], want.mean(), rtol=1e-8)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_other"], expected(True, False, metrics.neg_crps).mean()
    )


def test_weights_that_nobody_asked_for_are_an_error(routing):
    model = fixed().set_fit_request(sample_weight=True)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_val_score(model, X, Y, scoring=metrics.neg_crps, params={"sample_weight": WEIGHTS})
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_val_score(
            fixed(),
            X,
            Y,
            scoring=metrics.neg_crps.set_score_request(sample_weight=True),
            params={"sample_weight": WEIGHTS},
        )


# --- named columns ----------------------------------------------------------------------------


def test_names_become_numbers():
    names = ["a", "b", "c"]
    kernel = RBF([1.0, 2.0]).on(["c", "a"]) + 2.0 * Linear().on("b") * Matern().on(1) ** 2
    assert kernel.with_columns(names) == (
        RBF([1.0, 2.0]).on([2, 0]) + 2.0 * Linear().on(1) * Matern().on(1) ** 2
    )
    assert Flipped(Tanh().on("c")).with_columns(names) == Flipped(Tanh().on(2))
    assert RBF().on("a").on(["b", "a"]).with_columns(names) == RBF().on(1).on([1, 0])
    known = RBF() + Linear().on(1)
    assert known.with_columns(names) is known and known.with_columns(None) is known
    assert RBF.from_json(kernel.to_json()) == kernel
    assert repr(RBF().on("a")) == "RBF(length_scale=1).on(['a'])"


def test_names_that_are_not_there():
    kernel = 2.0 * RBF().on("age")
    with pytest.raises(ValueError, match="no column of that name; their columns: 'a', 'b'"):
        kernel.with_columns(["a", "b"])
    with pytest.raises(ValueError, match="more than one column of that name"):
        kernel.with_columns(["age", "age"])
    with pytest.raises(ValueError, match="'age', but the inputs have no column names: give a fr"):
        kernel.with_columns(None)
    with pytest.raises(ValueError, match=r"by name, \['age'\].*not known yet"):
        kernel(X)
    for columns in (["a", 0], ["a", "a"], [True], [None]):
        with pytest.raises(ValueError, match="columns must"):
            RBF().on(columns)


def test_names_of_frames():
    assert column_names(FRAME) == column_names(pl.DataFrame(FRAME)) == ["age", "height"]
    assert column_names(pd.DataFrame(X)) is column_names(X) is column_names([[1.0]]) is None


@pytest.mark.parametrize("frame", [FRAME, pl.DataFrame(FRAME)], ids=["pandas", "polars"])
def test_kernels_on_named_columns(frame, tmp_path):
    kernel = RBF().on("age") + 0.1 * Linear().on(["height", "age"])
    numbered = RBF().on(0) + 0.1 * Linear().on([1, 0])
    model, reference = fixed(kernel).fit(frame, Y), fixed(numbered).fit(X, Y)
    assert model.kernel is kernel and model.kernel_ == reference.kernel_
    np.testing.assert_array_equal(model.predict(frame), reference.predict(X))
    save(model, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    assert again.kernel == kernel
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(
        fixed(kernel).predict(frame, return_std=True)[1],
        fixed(numbered).predict(X, return_std=True)[1],
    )
    with pytest.raises(ValueError, match="no column names"):
        fixed(kernel).fit(X, Y)
    with pytest.raises(ValueError, match=r"'weight', but .* their columns: 'age', 'height'"):
        fixed(RBF().on("weight")).fit(frame, Y)


def test_named_columns_in_pipelines_and_searches():
    scaler = StandardScaler().set_output(transform="pandas")
    search = GridSearchCV(
        make_pipeline(scaler, fixed()),
        {"gpregressor__kernel": [RBF().on("age"), RBF().on("height")]},
        cv=3,
        scoring=metrics.neg_crps,
    ).fit(FRAME, Y)
    assert search.best_params_["gpregressor__kernel"] == RBF().on("age")


def test_named_columns_of_text():
    frame = FRAME.assign(town=np.where(X[:, 1] > 0, "Ulm", "Bonn"))
    kernel = RBF().on("age") * Callable(same_town).on("town")
    model = fixed(kernel).fit(frame, Y)
    codes = np.column_stack([X[:, 0], X[:, 1] > 0])
    reference = fixed(RBF().on(0) * Categorical(0.0).on(1)).fit(codes, Y)
    np.testing.assert_allclose(model.predict(frame), reference.predict(codes), rtol=1e-8)


def same_town(a, b):
    return float(a[0] == b[0])


# --- workers ----------------------------------------------------------------------------------


def cores():
    return threads._cores()


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_workers_share_the_cores(n_jobs):
    def count(model, X, y):  # within a worker: a nested function is sent as it is
        from mercer.compute import thread_count

        model.predict(X, return_std=True)
        return float(thread_count())

    with joblib.parallel_config(backend="loky", n_jobs=n_jobs):
        seen = cross_val_score(fixed(), X, Y, cv=4, scoring=count)
    if n_jobs == 1:
        assert set(seen) == {2.0}
    else:
        assert set(seen) == {max(1, joblib.cpu_count() // n_jobs)}


@pytest.mark.parametrize("inner", [1, 2])
def test_workers_obey_a_share_that_is_given(inner):
    def count(model, X, y):
        from mercer.compute import thread_count

        return float(thread_count())

    with joblib.parallel_config(backend="loky", n_jobs=2, inner_max_num_threads=inner):
        seen = cross_val_score(fixed(), X, Y, cv=2, scoring=count)
    assert np.all(seen == min(inner, cores()))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_searches_on_several_workers(backend):
    grid = {"kernel": [RBF(), Matern(nu=2.5), RBF(1e-3)]}
    serial = GridSearchCV(fixed(), grid, cv=2, scoring=metrics.neg_crps).fit(X, Y)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        search = GridSearchCV(fixed(), grid, cv=2, scoring=metrics.neg_crps).fit(X, Y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], serial.cv_results_["mean_test_score"], rtol=1e-8
    )


@pytest.mark.usefixtures("two_threads")
def test_threads_share_one_pool():
    """However many threads fit, Mercer's own are one fewer than the cores, and the BLAS has one."""
    A, b = make(900, seed=3)
    seen = []

    class Watched(RBF):
        def _block(self, A, B):
            blas = [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]
            names = [thread.name for thread in threading.enumerate()]
            seen.append((max(blas), sum(name.startswith("mercer") for name in names)))
            return super()._block(A, B)

    with joblib.parallel_config(backend="threading", n_jobs=2):
        cross_val_score(fixed(Watched()), A, b, cv=2, scoring=metrics.neg_crps)
    assert seen and max(blas for blas, _ in seen) == 1
    assert 1 <= max(helpers for _, helpers in seen) <= max(1, cores() - 1)
