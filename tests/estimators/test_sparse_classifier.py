"""SparseGPClassifier against GPClassifier, its search, and what it refuses."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mercer import GPClassifier, SparseGPClassifier, load, save
from mercer.errors import ConvergenceWarning, MercerWarning, TooLargeError, UndeterminedWarning
from mercer.estimators import memory
from mercer.estimators.search import warn_of_fit
from mercer.evidence.sparse_latent import SparseLatentObjective
from mercer.kernels import RBF, Matern
from mercer.likelihoods import Logistic, Softmax

from .classes import THREE, TWO, X_NEW, X, one_hot, quiet_fit

ROUGH = 3.0 * Matern([1.1, 0.8], nu=1.5)
WEIGHTS = np.random.default_rng(2).uniform(0.5, 2.0, len(X))


def held(kernel=ROUGH, **options):
    return SparseGPClassifier(kernel, optimizer=None, random_state=0, **options)


@pytest.mark.parametrize("approximation", ["fitc", "dtc", "sor"])
@pytest.mark.parametrize(
    ("inference", "likelihood"), [("laplace", "logistic"), ("ep", "probit"), ("bounds", "logistic")]
)
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_with_every_row_inducing_it_is_the_whole_process(y, inference, likelihood, approximation):
    options = {"likelihood": likelihood, "inference": inference}
    sparse = held(approximation=approximation, **options).fit(X, y, WEIGHTS)
    whole = GPClassifier(ROUGH, optimizer=None, multi_class="one_vs_rest", **options)
    whole.fit(X, y, WEIGHTS)
    value = whole.log_marginal_likelihood_value_
    assert sparse.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(sparse.predict_latent(X_NEW), whole.predict_latent(X_NEW), atol=1e-5)
    np.testing.assert_array_equal(sparse.predict(X_NEW), whole.predict(X_NEW))
    if approximation != "sor":
        np.testing.assert_allclose(
            sparse.predict_proba(X_NEW), whole.predict_proba(X_NEW), atol=1e-6
        )
    np.testing.assert_allclose(sparse.loo().proba, whole.loo().proba, atol=1e-5)
    theta = sparse.theta_ + 0.1
    one, other = (m.log_marginal_likelihood(theta, eval_gradient=True) for m in (sparse, whole))
    assert one[0] == pytest.approx(other[0], rel=1e-7)
    np.testing.assert_allclose(one[1], other[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("inference", ["laplace", "ep", "bounds"])
def test_a_search_moves_inducing_inputs(inference):
    options = {"n_inducing": 5, "inference": inference, "max_iter": 8, "random_state": 0}
    kept, moved = (
        quiet_fit(SparseGPClassifier(**options, learn_inducing=learned), X, TWO)
        for learned in (False, True)
    )
    assert kept.history_["value"].max() > kept.history_["value"][0]
    assert moved.history_["theta"].shape[1] == moved.theta_.size + moved.inducing_.size
    assert kept.inducing_.shape == moved.inducing_.shape == (5, 2)
    assert not np.allclose(kept.inducing_, moved.inducing_)
    value = moved.log_marginal_likelihood_value_
    assert moved.log_marginal_likelihood(moved.theta_) == pytest.approx(value, rel=1e-7)
    assert moved.score(X, TWO) > 0.8 and moved.loo().proba.shape == (len(X), 2)


def test_each_class_has_inducing_inputs_of_its_own():
    options = {"n_inducing": 4, "max_iter": 3, "random_state": 0}
    model = quiet_fit(SparseGPClassifier(**options, learn_inducing=True), X, THREE)
    assert [points.shape for points in model.inducing_] == [(4, 2)] * 3
    assert not np.allclose(model.inducing_[0], model.inducing_[1])
    proba = model.predict_proba(X_NEW)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert set(model.sample_y(X_NEW, 3).ravel()) <= set(THREE)
    objectives = model._objectives()
    assert all(isinstance(each, SparseLatentObjective) for each in objectives)
    assert len(model.standard_errors()) == model.theta_.size == 9


def test_classes_may_be_searched_at_once():
    options = {"n_inducing": 5, "max_iter": 3, "random_state": 0}
    one, two = (quiet_fit(SparseGPClassifier(**options, n_jobs=n), X, THREE) for n in (1, 2))
    np.testing.assert_allclose(one.theta_, two.theta_, rtol=1e-8)


def test_a_model_can_be_saved(tmp_path):
    model = held(n_inducing=6).fit(X, THREE)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict_proba(X_NEW), model.predict_proba(X_NEW))
    np.testing.assert_allclose(again.loo().proba, model.loo().proba, rtol=1e-9)
    np.testing.assert_array_equal(again.inducing_[2], model.inducing_[2])


@pytest.mark.parametrize("kind", ["cross_entropy", "mixture"])
def test_soft_labels_that_are_hard_are_labels(kind):
    soft = held(n_inducing=6, soft_labels=kind).fit(X, one_hot(TWO))
    hard = held(n_inducing=6).fit(X, TWO)
    np.testing.assert_allclose(soft.predict_proba(X_NEW), hard.predict_proba(X_NEW), atol=1e-6)


@pytest.mark.parametrize("inducing", ["kmeans", "random", "cholesky", "greedy", "pursuit"])
def test_inducing_inputs_by_a_strategy(inducing):
    model = held(n_inducing=6, inducing=inducing).fit(X, TWO)
    assert model.inducing_.shape == (6, 2)
    again = held(n_inducing=6, inducing=inducing).fit(X[::-1], TWO[::-1])
    value = model.log_marginal_likelihood_value_
    assert again.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-8)


def test_inducing_inputs_that_are_given():
    model = held(inducing=X[:7]).fit(X, TWO)
    np.testing.assert_array_equal(model.inducing_, X[:7])
    with pytest.raises(ValueError, match="must have the 2 columns of X, got 1"):
        held(inducing=X[:7, :1]).fit(X, TWO)


def test_weights_are_repeated_rows():
    times = np.arange(len(X)) % 3
    rows = np.repeat(np.arange(len(X)), times)
    weighted = held(n_inducing=6).fit(X, TWO, times)
    repeated = held(n_inducing=6).fit(X[rows], TWO[rows])
    value = repeated.log_marginal_likelihood_value_
    assert weighted.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(
        weighted.predict_proba(X_NEW), repeated.predict_proba(X_NEW), atol=1e-7
    )


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_a_warm_start_goes_on(y):
    options = {"n_inducing": 5, "max_iter": 3, "random_state": 0, "warm_start": True}
    model = quiet_fit(SparseGPClassifier(**options, learn_inducing=True), X, y)
    theta, points = model.theta_, model.inducing_
    quiet_fit(model.set_params(optimizer=None), X, y)
    np.testing.assert_allclose(model.theta_, theta)
    np.testing.assert_allclose(model.inducing_, points)
    quiet_fit(model.set_params(n_inducing=6), X, y)
    assert np.shape(model.inducing_)[-2:] == (6, 2)


@pytest.mark.parametrize("approximation", ["fitc", "dtc"])
@pytest.mark.parametrize(
    ("inference", "likelihood"), [("laplace", "logistic"), ("ep", "probit"), ("bounds", "logistic")]
)
def test_the_gradient_of_the_evidence(inference, likelihood, approximation):
    options = {"likelihood": likelihood, "inference": inference, "mean": "constant"}
    model = held(n_inducing=6, approximation=approximation, **options).fit(X, TWO, WEIGHTS)
    theta, step = model.theta_ + 0.1, 1e-4
    _, got = model.log_marginal_likelihood(theta, eval_gradient=True)
    steps = step * np.eye(theta.size)
    ahead, behind = (
        np.array([model.log_marginal_likelihood(theta + sign * own) for own in steps])
        for sign in (1.0, -1.0)
    )
    np.testing.assert_allclose(got, (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("inference", ["laplace", "bounds"])
def test_probabilities_are_nearly_those_of_all_rows(inference):
    rng = np.random.default_rng(4)
    A = rng.uniform(-2.0, 2.0, (600, 2))
    chance = 1.0 / (1.0 + np.exp(-4.0 * np.sin(2.0 * A[:, 0]) - 2.0 * A[:, 1]))
    y = rng.uniform(size=600) < chance
    rows, new = slice(0, 300), slice(300, 600)
    sparse, whole = (
        quiet_fit(model, A[rows], y[rows])
        for model in (
            SparseGPClassifier(n_inducing=30, inference=inference, random_state=0),
            GPClassifier(inference=inference),
        )
    )
    own, wanted = (m.log_predictive_density(A[new], y[new]).mean() for m in (sparse, whole))
    assert own == pytest.approx(wanted, abs=0.01) and wanted < -0.2
    assert np.mean(np.abs(sparse.predict_proba(A[new]) - whole.predict_proba(A[new]))) < 0.02


def test_points_to_be_predicted_as_inducing_inputs():
    model = held(inducing="query").fit(X, THREE, query=X_NEW)
    assert all(np.array_equal(points, X_NEW) for points in model.inducing_)


def test_too_few_inducing_inputs_are_told_of():
    short = 40.0 * RBF(0.02)
    with pytest.warns(MercerWarning, match=r"3 inducing inputs leave 100% of the .* to 12 say"):
        model = held(short, n_inducing=3).fit(X, TWO)
    assert model.unexplained_ == pytest.approx(40.0, rel=0.1)
    assert held(n_inducing=45).fit(X, TWO).unexplained_ < 1e-6
    with pytest.warns(MercerWarning, match=r"classes 'low', 'mid', 'top' against the rest: 3 ind"):
        assert len(held(short, n_inducing=3).fit(X, THREE).unexplained_) == 3


def test_memory_is_asked_for(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2**12)
    with pytest.raises(TooLargeError, match=r"with 20 inducing inputs to 45 rows .* Take fewer"):
        held(n_inducing=20).fit(X, TWO)


def test_the_process_is_over_the_inducing_inputs():
    model = held(n_inducing=9).fit(X, TWO)
    assert model.posterior_ is model.predictive_ and model.posterior_.n_basis == 9
    small, loss = model.posterior_.prune(5)
    assert small.n_basis == 5 and loss > 0
    parts = held(n_inducing=9).fit(X, THREE)
    assert not hasattr(parts, "posterior_") and len(parts.posteriors_) == 3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"inference": "vi"}, "inference must be one of 'laplace', 'ep', 'bounds', got 'vi'"),
        ({"approximation": "vfe"}, "approximation must be one of 'fitc', 'dtc', 'sor'"),
        ({"likelihood": "softmax"}, "one function at a time; give likelihood='logistic'"),
        ({"likelihood": Softmax(2)}, "one function at a time"),
        ({"kernel": "precomputed"}, "has no inputs that could be inducing"),
        ({"n_inducing": 0}, "n_inducing"),
        ({"n_inducing": None}, "n_inducing must be a whole number from 1"),
        ({"learn_inducing": 1}, "learn_inducing must be True or False"),
        ({"inducing": "query"}, "go together"),
        ({"inducing": "quarry"}, "inducing must be one of"),
        (
            {"inference": "bounds", "likelihood": "probit"},
            "use inference='laplace' or inference='ep'$",
        ),
    ],
)
def test_refusals(options, text):
    with pytest.raises(ValueError, match=text):
        SparseGPClassifier(**{"kernel": RBF(), **options}).fit(X, TWO)


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c"]])
def test_one_row_of_each_class_tells_nothing(labels):
    rows = np.arange(float(len(labels)))[:, None]
    with pytest.warns(UndeterminedWarning, match="no class has more than one row") as caught:
        SparseGPClassifier(random_state=0).fit(rows, labels)
    assert sum("no class has more" in str(w.message) for w in caught) == 1


def test_where_the_posteriors_of_classes_against_the_rest_are():
    model = quiet_fit(SparseGPClassifier(RBF(), n_inducing=5, optimizer=None), X, THREE)
    with pytest.raises(AttributeError, match="posteriors_ is the list of them"):
        _ = model.posterior_


@pytest.mark.parametrize("move", [False, np.False_, True])
def test_inducing_inputs_move_if_they_are_to(move):
    A = np.random.default_rng(0).uniform(-2.0, 2.0, (60, 2))
    settings = {"n_inducing": 5, "max_iter": 2, "random_state": 0}
    model = SparseGPClassifier(learn_inducing=move, **settings)
    quiet_fit(model, A, np.hypot(*A.T) < 1.3)
    assert model.history_["theta"].shape[1] - model.theta_.size == (10 if move else 0)


def test_whether_inducing_inputs_move_is_said():
    with pytest.raises(ValueError, match="learn_inducing"):
        SparseGPClassifier(learn_inducing=None).fit([[0.0], [1.0]], [0, 1])


def test_parameters_that_are_set_after_a_fit_do_not_change_it():
    A = np.random.default_rng(0).uniform(-2.0, 2.0, (40, 2))
    labels = np.hypot(*A.T) < 1.3
    sparse = SparseGPClassifier(n_inducing=5, optimizer=None, random_state=0).fit(A, labels)
    dense = GPClassifier(optimizer=None).fit(A, labels)
    for model, other in ((sparse, {"approximation": "dtc"}), (dense, {"inference": "ep"})):
        before = model.log_marginal_likelihood(model.theta_), model.loo().log_density
        model.set_params(**other)
        assert model.log_marginal_likelihood(model.theta_) == pytest.approx(before[0], rel=1e-9)
        np.testing.assert_allclose(model.loo().log_density, before[1], rtol=1e-6, atol=1e-9)


def test_engines_that_are_advised_take_inducing_inputs():
    solution = SimpleNamespace(status="stopped")
    fit = SimpleNamespace(likelihood=Logistic(), jitter=0.0, solution=solution)
    objective = SimpleNamespace(inference="laplace", inducing=None)
    with pytest.warns(ConvergenceWarning, match=r"another engine of 'ep', 'bounds'$"):
        warn_of_fit(objective, fit, searched=False)
