"""GPClassifier against scikit-learn's, against itself by another way, and its identities."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import GPClassifier, load, save
from mercer.errors import BoundWarning
from mercer.kernels import RBF, Callable
from mercer.likelihoods import Logistic, Probit, Softmax
from mercer.likelihoods.class_probabilities import bounded
from mercer.params import Parameter
from mercer.posterior import Posterior, Stacked

from .classes import KERNEL, THREE, TWO, X_NEW, X, fixed, one_hot, quiet_fit


def test_against_scikit_learn():
    theirs = GaussianProcessClassifier(3.0 * sk.RBF([1.1, 0.8]), optimizer=None).fit(X, TWO)
    ours = fixed().fit(X, TWO)
    value = ours.log_marginal_likelihood_value_
    assert value == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-6)
    inner = theirs.base_estimator_
    K = inner.kernel_(X_NEW, X)
    latent = K @ (inner.y_train_ - inner.pi_)
    np.testing.assert_allclose(ours.predict_latent(X_NEW), latent, rtol=1e-5, atol=1e-6)
    # theirs approximates the average of the logistic function
    np.testing.assert_allclose(
        ours.predict_proba(X_NEW), theirs.predict_proba(X_NEW), rtol=0, atol=5e-3
    )
    np.testing.assert_array_equal(ours.predict(X_NEW), theirs.predict(X_NEW))
    theta = ours.theta_ + 0.2
    got = ours.log_marginal_likelihood(theta, eval_gradient=True)
    wanted = theirs.log_marginal_likelihood(theta, eval_gradient=True)
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-6)
    np.testing.assert_allclose(got[1], wanted[1], rtol=1e-4, atol=1e-5)


def test_the_search_finds_what_scikit_learns_does():
    theirs = GaussianProcessClassifier(3.0 * sk.RBF([1.1, 0.8]), n_restarts_optimizer=0).fit(X, TWO)
    ours = quiet_fit(GPClassifier(3.0 * sk.RBF([1.1, 0.8])), X, TWO)
    assert ours.log_marginal_likelihood_value_ >= theirs.log_marginal_likelihood_value_ - 1e-3
    assert ours.status_ == "converged" and ours.n_iter_ >= 1
    assert ours.history_["theta"].shape == (len(ours.history_["value"]), 3)


def test_two_classes_of_a_softmax_are_the_logistic_with_twice_the_kernel():
    two, one = fixed(KERNEL, "softmax").fit(X, TWO), fixed(2.0 * KERNEL).fit(X, TWO)
    assert two.log_marginal_likelihood_value_ == pytest.approx(one.log_marginal_likelihood_value_)
    F = two.predict_latent(X_NEW)
    np.testing.assert_allclose(F[:, 1] - F[:, 0], one.predict_latent(X_NEW), atol=1e-6)
    np.testing.assert_allclose(two.predict_proba(X_NEW), one.predict_proba(X_NEW), atol=1e-6)
    np.testing.assert_allclose(two.loo().proba, one.loo().proba, atol=1e-6)
    np.testing.assert_allclose(two.loo().log_density, one.loo().log_density, atol=1e-5)


@pytest.mark.parametrize("multi_class", ["softmax", "one_vs_rest"])
def test_permuting_classes_changes_nothing(multi_class):
    plain = fixed(multi_class=multi_class).fit(X, THREE)
    names = {"low": "z", "mid": "a", "top": "m"}
    moved = fixed(multi_class=multi_class).fit(X, [names[label] for label in THREE])
    order = np.searchsorted(moved.classes_, [names[label] for label in plain.classes_])
    np.testing.assert_allclose(
        moved.predict_proba(X_NEW)[:, order], plain.predict_proba(X_NEW), atol=1e-5
    )
    assert moved.log_marginal_likelihood_value_ == pytest.approx(
        plain.log_marginal_likelihood_value_
    )


def test_one_vs_rest_is_each_class_against_the_rest():
    model = fixed(likelihood="probit", inference="ep").fit(X, THREE)
    assert isinstance(model.predictive_, Stacked) and not hasattr(model, "posterior_")
    assert [type(part) for part in model.posteriors_] == [Posterior] * 3
    alone = [
        fixed(likelihood="probit", inference="ep").fit(X, label == THREE)
        for label in model.classes_
    ]
    P = np.column_stack([part.predict_proba(X_NEW)[:, 1] for part in alone])
    wanted = P / P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X_NEW), wanted, atol=1e-9)
    total = sum(part.log_marginal_likelihood_value_ for part in alone)
    assert model.log_marginal_likelihood_value_ == pytest.approx(total)
    left = np.column_stack([part.loo().proba[:, 1] for part in alone])
    np.testing.assert_allclose(model.loo().proba, left / left.sum(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.parametrize(
    ("options", "kind", "likelihood"),
    [
        ({}, Posterior, Softmax),
        ({"multi_class": "one_vs_rest"}, Stacked, list),
        ({"likelihood": "softmax"}, Posterior, Softmax),
        ({"likelihood": Softmax(3)}, Posterior, Softmax),
        ({"likelihood": Logistic()}, Posterior, Softmax),
        ({"likelihood": Probit(0.5)}, Stacked, list),
        ({"inference": "vi"}, Stacked, list),
        ({"inference": "map"}, Posterior, Softmax),
        ({"inference": "map", "multi_class": "one_vs_rest"}, Stacked, list),
    ],
)
def test_what_is_done_with_three_classes(options, kind, likelihood):
    model = fixed(**options).fit(X, THREE)
    assert type(model.predictive_) is kind and type(model.likelihood_) is likelihood
    assert model.score(X, THREE) > 0.7


def test_a_step_takes_ep():
    model = fixed(likelihood=Probit(0.0), inference="ep").fit(X, TWO)
    assert model.score(X, TWO) == 1.0


def test_learnable_noise_of_a_probit():
    likelihood = Probit(Parameter(0.7, bounds=(0.2, 3.0)))
    model = quiet_fit(GPClassifier(3.0 * RBF(1.0), likelihood, inference="ep"), X, THREE)
    assert len(model.theta_) == 3 * 3
    assert len({link.noise_std for link in model.likelihood_}) == 3
    names = list(model.standard_errors())
    assert names[0] == "low.kernel.variance" and names[-1] == "top.likelihood.noise_std"
    H = model.hessian()
    assert np.all(H[:3, 3:] == 0.0) and np.any(H[:3, :3])


@pytest.mark.parametrize("multi_class", ["softmax", "one_vs_rest"])
def test_a_mean_is_searched_for_too(multi_class):
    y = np.random.default_rng(4).choice(["low", "mid", "top"], size=len(X), p=[0.8, 0.1, 0.1])
    held = RBF(Parameter(1.0, fixed=True))
    options = {"kernel": 0.5 * held, "multi_class": multi_class}
    plain = quiet_fit(GPClassifier(**options), X, y)
    model = quiet_fit(GPClassifier(mean="constant", **options), X, y)
    assert model.log_marginal_likelihood_value_ > plain.log_marginal_likelihood_value_
    far = model.predict_proba([[50.0, 50.0]])[0]
    assert model.classes_[np.argmax(far)] == "low"
    np.testing.assert_allclose(plain.predict_proba([[50.0, 50.0]])[0], 1.0 / 3.0, atol=1e-4)


def test_engines_agree_where_labels_say_enough():
    models = [
        fixed(inference=inference).fit(X, TWO) for inference in ("laplace", "ep", "vi", "bounds")
    ]
    exact = models[1].predict_proba(X_NEW)
    for model in models:
        np.testing.assert_allclose(model.predict_proba(X_NEW), exact, atol=0.06)
    laplace, ep, vi, bounds = (model.log_marginal_likelihood_value_ for model in models)
    assert bounds <= vi <= ep + 1e-3
    assert abs(laplace - ep) < 1.5


# --- starts and ends of the search --------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_separable_labels_do_not_run_to_a_bound(classes):
    x = np.linspace(-3.0, 3.0, 40)[:, None]
    y = np.digitize(x[:, 0], [0.1] if classes == 2 else [-1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", BoundWarning)
        model = GPClassifier().fit(x, y)
    variance = model.kernel_.parameters["variance"].value
    assert 1.0 < variance < 100.0
    assert model.score(x, y) == 1.0


def test_labels_at_random_are_left_unexplained():
    rng = np.random.default_rng(1)
    A, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)
    P = quiet_fit(GPClassifier(), A, y).predict_proba(rng.normal(size=(200, 2)))
    assert np.mean(np.abs(P - 0.5)) < 0.1


def test_hyperpriors_can_be_left_out():
    default, without = (quiet_fit(GPClassifier(hyperprior=h), X, TWO) for h in ("default", None))
    assert default.kernel_.parameters["variance"].prior is not None
    assert without.kernel_.parameters["variance"].prior is None
    assert without.log_marginal_likelihood_value_ >= default.log_marginal_likelihood_value_ - 1e-6


@pytest.mark.parametrize("multi_class", ["softmax", "one_vs_rest"])
def test_warm_starts(multi_class):
    model = GPClassifier(2.0 * RBF(3.0), multi_class=multi_class, warm_start=True)
    first = quiet_fit(model, X, THREE).log_marginal_likelihood_value_
    cold = model.n_iter_
    again = quiet_fit(model, X, THREE)
    assert again.n_iter_ < cold
    assert again.log_marginal_likelihood_value_ == pytest.approx(first, abs=1e-2)
    quiet_fit(model, X, TWO)  # another number of classes begins anew
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])


def test_a_second_fit_of_another_kind_leaves_nothing_behind():
    model = fixed(likelihood="probit", inference="ep").fit(X, THREE)
    model.fit(X, TWO)
    assert hasattr(model, "posterior_") and not hasattr(model, "posteriors_")
    model.fit(X, THREE)
    assert hasattr(model, "posteriors_") and not hasattr(model, "posterior_")
    with pytest.raises(AttributeError, match="posteriors_ is the list"):
        model.posterior_  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        model.nothing  # noqa: B018


# --- inputs of other kinds ----------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"multi_class": "one_vs_rest"}])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_precomputed(options, y):
    plain = fixed(**options).fit(X, y)
    table = GPClassifier("precomputed", optimizer=None, **options).fit(KERNEL(X), y)
    rows = np.hstack([KERNEL(X_NEW, X), KERNEL.diag(X_NEW)[:, None]])
    np.testing.assert_allclose(table.predict_proba(rows), plain.predict_proba(X_NEW), atol=1e-5)
    np.testing.assert_allclose(table.loo().proba, plain.loo().proba, atol=1e-5)
    w = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.0)
    some, all_of = fixed(**options).fit(X, y, w), table.fit(KERNEL(X), y, w)
    np.testing.assert_allclose(all_of.predict_proba(rows), some.predict_proba(X_NEW), atol=1e-5)
    with pytest.raises(ValueError, match=r"needs 45 columns.*1 more: k\(x, x\); got 45"):
        table.predict(KERNEL(X_NEW, X))


def test_rows_that_are_no_numbers():
    def shared_letters(a, b):
        return float(len(set(a) & set(b)))

    words = ["abc", "abd", "xyz", "xyw", "abe", "xzw"]
    model = GPClassifier(Callable(shared_letters), optimizer=None).fit(words, [0, 0, 1, 1, 0, 1])
    np.testing.assert_array_equal(model.predict(["ab", "zw"]), [0, 1])


def test_in_pipelines_and_grids():
    pipe = make_pipeline(StandardScaler(), GPClassifier(KERNEL, optimizer=None))
    grid = {"gpclassifier__kernel__RBF__length_scale": [0.5, 1.0, 2.0]}
    search = GridSearchCV(pipe, grid, cv=3, scoring="neg_log_loss").fit(X, TWO)
    assert search.best_score_ > -0.6


def test_pruned_models_keep_their_evidence(tmp_path):
    model = fixed().fit(X, THREE)
    before = model.predict_proba(X_NEW)
    evidence, left = model.log_marginal_likelihood(model.theta_), model.loo()
    model.posterior_, _ = model.posterior_.prune(30)
    np.testing.assert_allclose(model.predict_proba(X_NEW), before, atol=0.05)
    assert model.log_marginal_likelihood(model.theta_) == evidence
    np.testing.assert_array_equal(model.loo().proba, left.proba)
    assert np.all(np.isfinite(model.hessian()))
    save(model, tmp_path / "small")
    np.testing.assert_array_equal(load(tmp_path / "small").X_train_, X)
    np.testing.assert_array_equal(
        load(tmp_path / "small").predict_proba(X_NEW), model.predict_proba(X_NEW)
    )


@pytest.mark.parametrize("multi_class", ["softmax", "one_vs_rest"])
def test_the_training_inputs_are_kept_once(multi_class, tmp_path):
    model = fixed(multi_class=multi_class).fit(X, THREE, sample_weight=np.arange(45) % 5)
    assert model.X_train_ is model._posteriors()[0].basis.points
    np.testing.assert_array_equal(model.X_train_, X[np.arange(45) % 5 > 0])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.X_train_ is again._posteriors()[0].basis.points


def test_leave_one_out_of_a_mode_is_that_by_laplaces_method():
    """Whatever engine the likelihood prefers: another does not start from the mode."""

    class Own(Logistic):
        preferred_inference = "ep"

    wanted = fixed().fit(X, TWO).loo()
    found = fixed(likelihood=Own(), inference="map").fit(X, TWO).loo()
    np.testing.assert_allclose(found.proba, wanted.proba, atol=1e-6)


def test_densities_of_labels():
    model = fixed().fit(X, THREE)
    P = model.predict_proba(X)
    wanted = np.sum(one_hot(THREE) * np.log(P), axis=1)
    np.testing.assert_allclose(model.log_predictive_density(X, THREE), wanted)
    with pytest.raises(
        ValueError, match=r"none of the model's classes, 'none' among them.*low.*top"
    ):
        model.log_predictive_density(X[:1], ["none"])


def test_probabilities_of_very_many_classes_add_up():
    P = np.zeros((2, 3000))
    P[0, 7] = 1.0
    P[1] = 1.0 / 3000
    found = bounded(P)
    assert np.all(np.abs(found.sum(axis=1) - 1.0) <= 1e-12)
    assert np.all((found >= 1e-15) & (found <= 1.0 - 1e-15))
