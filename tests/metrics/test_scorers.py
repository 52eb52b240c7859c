"""Scorers: what they are by hand, through wrappers, and for distributions that are not Gaussian."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, poisson, t
from sklearn import gaussian_process as sk
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import GPClassifier, GPRegressor, compat, metrics
from mercer.estimators.regressor import BayesianRegressor
from mercer.kernels import RBF, Matern
from mercer.likelihoods import Gaussian
from mercer.metrics import get_scorer, get_scorer_names
from mercer.metrics.predictions import predictions

from ..conformance import discovery
from ..conformance.examples import ESTIMATORS


def make(n=60, seed=0, outputs=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    signal = np.sin(X[:, 0]) if outputs is None else np.sin(X[:, :1] * np.arange(1, outputs + 1))
    return X, signal + 0.2 * rng.normal(size=signal.shape)


def fixed(**options):
    return GPRegressor(RBF(1.5), Gaussian(0.04), optimizer=None, **options)


X, Y = make()
X_NEW, Y_NEW = make(30, seed=1)


def by_hand(name, mean, std, y, y_train):
    low, high = mean - norm.ppf(0.975) * std, mean + norm.ppf(0.975) * std
    return {
        "neg_log_predictive_density": norm.logpdf(y, mean, std).mean(),
        "neg_mean_standardised_log_loss": (
            norm.logpdf(y, mean, std) - norm.logpdf(y, y_train.mean(0), y_train.std(0))
        ).mean(),
        "neg_crps": -metrics.crps(y, mean, std),
        "neg_calibration_error": -metrics.calibration_error(metrics.pit(y, mean, std)),
        "coverage_95": metrics.coverage(y, low, high),
        "neg_interval_width_95": -metrics.interval_width(low, high),
        "neg_interval_score_95": -metrics.interval_score(y, low, high),
    }[name]


@pytest.mark.parametrize("name", get_scorer_names())
def test_scores_by_hand(name):
    model = fixed().fit(X, Y)
    want = by_hand(name, *model.predict(X_NEW, return_std=True), Y_NEW, Y)
    assert get_scorer(name)(model, X_NEW, Y_NEW) == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("name", get_scorer_names())
def test_scores_of_several_outputs_are_averaged(name):
    (A, B), (A_new, B_new) = make(outputs=2), make(30, seed=1, outputs=2)
    model = fixed().fit(A, B)
    want = by_hand(name, *model.predict(A_new, return_std=True), B_new, B)
    assert get_scorer(name)(model, A_new, B_new) == pytest.approx(want, rel=1e-10)
    # one model an output, with the same hyperparameters, is the same model
    several = MultiOutputRegressor(make_pipeline(fixed())).fit(A, B)
    assert get_scorer(name)(several, A_new, B_new) == pytest.approx(want, rel=1e-10)
    with pytest.raises(ValueError, match=r"one column for each of 2 outputs, got \(30,\)"):
        get_scorer(name)(several, A_new, B_new[:, 0])


@pytest.mark.parametrize("name", get_scorer_names())
def test_weights_repeat_and_remove_rows(name):
    model, scorer = fixed().fit(X, Y), get_scorer(name)
    weights = np.arange(30) % 3
    repeated = np.repeat(X_NEW, weights, axis=0), np.repeat(Y_NEW, weights)
    assert scorer(model, X_NEW, Y_NEW, sample_weight=weights) == pytest.approx(
        scorer(model, *repeated), rel=1e-10
    )


@pytest.mark.parametrize("name", get_scorer_names())
def test_pipelines_and_searches_are_looked_into(name):
    scorer = get_scorer(name)
    scaler = StandardScaler().fit(X)
    inner = fixed().fit(scaler.transform(X), Y)
    want = scorer(inner, scaler.transform(X_NEW), Y_NEW)
    pipeline = make_pipeline(StandardScaler(), "passthrough", fixed()).fit(X, Y)
    assert scorer(pipeline, X_NEW, Y_NEW) == pytest.approx(want, rel=1e-10)
    search = GridSearchCV(pipeline, {"gpregressor__n_restarts": [0]}, cv=2).fit(X, Y)
    assert scorer(search, X_NEW, Y_NEW) == pytest.approx(want, rel=1e-10)


def test_the_baseline_is_of_the_weighted_training_targets():
    weights = np.arange(60) % 3
    model = fixed().fit(X, Y, sample_weight=weights)
    train = np.repeat(Y, weights)
    want = by_hand(
        "neg_mean_standardised_log_loss", *model.predict(X_NEW, return_std=True), Y_NEW, train
    )
    assert metrics.neg_mean_standardised_log_loss(model, X_NEW, Y_NEW) == pytest.approx(want)


def regressors():
    classes = discovery.subclasses_of(RegressorMixin, BayesianRegressor)
    return [ESTIMATORS[cls][0].subject if cls in ESTIMATORS else cls() for cls in classes]


@pytest.mark.filterwarnings("ignore::UserWarning")  # of searches that are cut short
@pytest.mark.parametrize("model", regressors(), ids=lambda model: type(model).__name__)
def test_every_regressor_has_a_baseline(model):
    folds, scoring = KFold(2), metrics.neg_mean_standardised_log_loss
    found = cross_validate(
        model, X, Y, cv=folds, scoring=scoring, error_score="raise", return_estimator=True
    )
    for k, (train, test) in enumerate(folds.split(X)):
        moments = found["estimator"][k].predict(X[test], return_std=True)
        want = metrics.mean_standardised_log_loss(Y[test], *moments, Y[train])
        assert found["test_score"][k] == pytest.approx(-want, rel=1e-8)


def test_models_of_scikit_learn():
    model = BayesianRidge().fit(X, Y)
    mean, std = model.predict(X_NEW, return_std=True)
    for name in get_scorer_names():
        if name != "neg_mean_standardised_log_loss":
            want = by_hand(name, mean, std, Y_NEW, Y)
            assert get_scorer(name)(model, X_NEW, Y_NEW) == pytest.approx(want, rel=1e-10)
    with pytest.raises(ValueError, match="BayesianRidge has not kept the targets"):
        metrics.neg_mean_standardised_log_loss(model, X_NEW, Y_NEW)
    with pytest.raises(ValueError, match="LinearRegression predicts no spread"):
        metrics.neg_crps(LinearRegression().fit(X, Y), X_NEW, Y_NEW)


@pytest.mark.parametrize("kind", [sk.GaussianProcessRegressor, compat.GaussianProcessRegressor])
@pytest.mark.parametrize("outputs", [None, 2])
def test_the_baseline_of_normalised_targets_is_in_their_units(kind, outputs):
    (A, B), (A_new, B_new) = make(outputs=outputs), make(30, seed=1, outputs=outputs)
    B, B_new = 1000.0 + 50.0 * B, 1000.0 + 50.0 * B_new
    kernel = sk.kernels.RBF(1.5) + sk.kernels.WhiteKernel(0.1)
    for normalize in (False, True):
        model = kind(kernel, optimizer=None, normalize_y=normalize).fit(A, B)
        moments = model.predict(A_new, return_std=True)
        want = by_hand("neg_mean_standardised_log_loss", *moments, B_new, B)
        assert metrics.neg_mean_standardised_log_loss(model, A_new, B_new) == pytest.approx(want)


class Heavy(RegressorMixin, BaseEstimator):
    """Predicts Student's distribution with 4 degrees of freedom around a straight line."""

    def fit(self, X, y):
        self.slope_ = float(X[:, 0] @ y / (X[:, 0] @ X[:, 0]))
        return self

    def at(self, X):
        return t(4, loc=self.slope_ * X[:, 0], scale=0.5)

    def predict(self, X, return_std=False):
        mean = self.slope_ * X[:, 0]
        return (mean, np.full(len(X), 0.5 * np.sqrt(2.0))) if return_std else mean

    def predict_interval(self, X, coverage=0.95):
        return self.at(X).interval(coverage)

    def log_predictive_density(self, X, y):
        return self.at(X).logpdf(y)


def test_distributions_that_are_not_gaussian():
    model = Heavy().fit(X, Y)
    there = model.at(X_NEW)
    assert metrics.neg_log_predictive_density(model, X_NEW, Y_NEW) == pytest.approx(
        there.logpdf(Y_NEW).mean()
    )
    low, high = there.interval(0.9)
    assert get_scorer("coverage_90")(model, X_NEW, Y_NEW) == metrics.coverage(Y_NEW, low, high)
    assert get_scorer("neg_interval_width_90")(model, X_NEW, Y_NEW) == pytest.approx(
        -np.mean(high - low)
    )
    assert metrics.neg_calibration_error(model, X_NEW, Y_NEW) == pytest.approx(
        -metrics.calibration_error(there.cdf(Y_NEW)), abs=1e-12
    )
    exact = [
        0.5 * (quad(lambda z: t.cdf(z, 4) ** 2, -np.inf, z)[0]
               + quad(lambda z: t.sf(z, 4) ** 2, z, np.inf)[0])
        for z in (Y_NEW - model.predict(X_NEW)) / 0.5
    ]  # fmt: skip
    assert metrics.neg_crps(model, X_NEW, Y_NEW) == pytest.approx(-np.mean(exact), rel=2e-3)


class Skewed(Gaussian):
    """Not Gaussian where the mean is above 1: there it predicts an exponential."""

    def _far(self, mean):
        return np.asarray(mean) > 1.0

    def predictive_cdf(self, y, mean, var):
        there = np.where(y > mean, 1.0 - np.exp(-np.maximum(y - mean, 0.0)), 0.0)
        return np.where(self._far(mean), there, super().predictive_cdf(y, mean, var))

    def quantile(self, mean, var, level):
        there = mean - np.log1p(-np.asarray(level))
        return np.where(self._far(mean), there, super().quantile(mean, var, level))


class Counts(Heavy):
    """Predicts Poisson's distribution."""

    def at(self, X):
        return poisson(np.exp(0.5 + X[:, 0]))

    def predict_cdf(self, X, y):
        return self.at(X).cdf(y)


class CountsByIntervals(Counts):
    predict_cdf = property()


def test_coverage_and_calibration_of_counts_mean_the_same_intervals():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(400, 1))
    model = Counts().fit(rows, np.ones(400))
    y = model.at(rows).rvs(random_state=rng).astype(float)
    distances = []
    for level in np.arange(1, 20) / 20:
        low, high = model.predict_interval(rows, level)
        want = np.mean((low <= y) & (y <= high))
        assert get_scorer(f"coverage_{round(100 * level)}")(model, rows, y) == pytest.approx(want)
        distances.append(abs(want - level))
    assert metrics.neg_calibration_error(model, rows, y) == pytest.approx(-np.mean(distances))
    # and so of a model that has no distribution function to ask
    bare = CountsByIntervals().fit(rows, np.ones(400))
    assert metrics.neg_calibration_error(bare, rows, y) == pytest.approx(-np.mean(distances))


def test_every_row_has_its_own_distribution():
    rows = np.linspace(0.0, 6.0, 30)[:, None]
    model = GPRegressor(RBF(2.0), Gaussian(0.04), mean="zero", optimizer=None)
    model.fit(rows, 0.5 * rows[:, 0])
    model.likelihood_ = Skewed(0.04)
    y = model.predict(rows) + 1.0
    far = model.predict(rows) > 1.0
    assert not far[:5].any() and far.any()
    low, high = model.predict_interval(rows, 0.9)
    assert get_scorer("coverage_90")(model, rows, y) == metrics.coverage(y, low, high)
    ranks = model.predict_cdf(rows, y)
    np.testing.assert_allclose(ranks[far], 1.0 - np.exp(-1.0))
    assert metrics.neg_calibration_error(model, rows, y) == pytest.approx(
        -metrics.calibration_error(ranks)
    )
    # of an exponential from the mean on: |y - m| - 3/2 + 2 exp(-(y - m))
    crps = predictions(model, rows, y).crps()
    np.testing.assert_allclose(crps[far], 2.0 * np.exp(-1.0) - 0.5, rtol=1e-5)
    mean, std = model.predict(rows, return_std=True)
    near = metrics.crps(y[~far], mean[~far], std[~far])
    np.testing.assert_allclose(np.mean(crps[~far]), near, rtol=1e-5)


def test_models_that_are_not_fitted_have_scores_of_their_prior():
    model = GPRegressor(RBF(), Gaussian(0.1))
    moments = model.predict(X_NEW, return_std=True)
    assert metrics.neg_calibration_error(model, X_NEW, Y_NEW) == pytest.approx(
        -metrics.calibration_error(metrics.pit(Y_NEW, *moments))
    )


# --- in scikit-learn --------------------------------------------------------------------------


def test_cross_validation():
    model = make_pipeline(StandardScaler(), fixed())
    scores = cross_val_score(model, X, Y, cv=3, scoring=mercer.metrics.neg_log_predictive_density)
    want = [
        model.fit(np.delete(X, s, 0), np.delete(Y, s))[-1]
        .log_predictive_density(model[:-1].transform(X[s]), Y[s])
        .mean()
        for s in (slice(0, 20), slice(20, 40), slice(40, 60))
    ]
    np.testing.assert_allclose(scores, want, rtol=1e-8)
    scoring = {name: get_scorer(name) for name in (*get_scorer_names(), "coverage_50")} | {
        "r2": "r2"
    }
    several = cross_validate(model, X, Y, cv=3, scoring=scoring, return_train_score=True)
    np.testing.assert_allclose(several["test_neg_log_predictive_density"], want, rtol=1e-8)
    assert all(np.all(np.isfinite(values)) for values in several.values())


def test_searches_with_several_metrics():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), fixed()),
        {"gpregressor__kernel": [RBF(1.5), Matern(1.5), RBF(0.01)]},
        scoring={"density": metrics.neg_log_predictive_density, "crps": metrics.neg_crps},
        refit="density",
        cv=3,
    ).fit(X, Y)
    assert search.best_params_["gpregressor__kernel"] != RBF(0.01)
    assert set(search.cv_results_) > {"mean_test_density", "mean_test_crps"}
    assert search.score(X_NEW, Y_NEW) == pytest.approx(
        metrics.neg_log_predictive_density(search.best_estimator_, X_NEW, Y_NEW)
    )


@pytest.mark.parametrize("scoring", [metrics.neg_crps, {"crps": metrics.neg_crps, "r2": "r2"}])
def test_searches_pass_weights_on_without_routing(scoring):
    weights = np.arange(60) % 3
    search = GridSearchCV(fixed(), {"n_restarts": [0]}, scoring=scoring, cv=2, refit="crps")
    search.fit(X, Y, sample_weight=weights)
    half = slice(30, 60)
    model = fixed().fit(X[half], Y[half], sample_weight=weights[half])
    want = metrics.neg_crps(model, X[:30], Y[:30], sample_weight=weights[:30])
    name = "split0_test_crps" if isinstance(scoring, dict) else "split0_test_score"
    assert search.cv_results_[name][0] == pytest.approx(want, rel=1e-8)


def test_scorers_are_values():
    for name in get_scorer_names():
        scorer = get_scorer(name)
        assert repr(scorer) == name == scorer.__name__
        again = pickle.loads(pickle.dumps(scorer))
        assert again(fixed().fit(X, Y), X_NEW, Y_NEW) == scorer(fixed().fit(X, Y), X_NEW, Y_NEW)
        asking = scorer.set_score_request(sample_weight=True)
        assert asking is not scorer and get_scorer(name)._request is None
    assert get_scorer("neg_crps") is metrics.neg_crps
    assert clone(metrics.neg_crps, safe=False) is not None


@pytest.mark.parametrize(
    "name", ["crps", "coverage", "coverage_0", "coverage_100", "coverage_95.5", "r2", None, 3]
)
def test_unknown_names(name):
    with pytest.raises(ValueError, match=r"there is no scorer .*; the scorers are neg_log_pred"):
        get_scorer(name)


LABELS = np.where(Y > 0, "up", "down")


def classifier():
    return GPClassifier(4.0 * RBF(1.5), optimizer=None)


@pytest.mark.parametrize("labels", [LABELS, (Y > 0).astype(int)], ids=["text", "codes"])
def test_labels_of_any_type(labels):
    model = classifier().fit(X, labels)
    wanted = np.log(model.predict_proba(X)[np.arange(60), (Y > 0).astype(int)])
    score = metrics.neg_log_predictive_density
    assert score(model, X, labels) == pytest.approx(wanted.mean(), rel=1e-12)
    weights = np.arange(60) % 4
    assert score(model, X, labels, sample_weight=weights) == pytest.approx(
        np.average(wanted, weights=weights), rel=1e-12
    )
    pipe = make_pipeline(StandardScaler(), classifier())
    search = GridSearchCV(pipe, {"gpclassifier__max_iter": [1, 2]}, scoring=score, cv=3)
    assert np.all(np.isfinite(search.fit(X, labels).cv_results_["mean_test_score"]))


@pytest.mark.parametrize("name", get_scorer_names()[1:])
@pytest.mark.parametrize("labels", [LABELS, (Y > 0).astype(int)], ids=["text", "codes"])
def test_metrics_of_numbers_refuse_classifiers(name, labels):
    model = classifier().fit(X, labels)
    with pytest.raises(ValueError, match=r"GPClassifier is a classifier, .* is for regressors"):
        get_scorer(name)(model, X, labels)


def test_classifiers_without_densities():
    model = LogisticRegression().fit(X, LABELS)
    with pytest.raises(ValueError, match=r"no log_predictive_density.*'neg_log_loss'"):
        metrics.neg_log_predictive_density(model, X, LABELS)
