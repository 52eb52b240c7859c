"""The classifier of rows of which some have no label."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.model_selection import GridSearchCV

from mercer import GPClassifier, TransductiveGPClassifier, load, save
from mercer.errors import ConvergenceWarning, JitterWarning, MercerWarning, UndeterminedWarning
from mercer.estimators import transductive_fit
from mercer.estimators.transductive_rows import unmarked
from mercer.inference import transductive
from mercer.kernels import RBF, Callable
from mercer.likelihoods import Logistic, Probit, Softmax

KERNEL = 4.0 * RBF(0.25)


def moons(n=80, known=4, seed=0, noise=0.06):
    """Two moons, and labels that are -1 but for a few rows of each."""
    X, true = make_moons(n, noise=noise, random_state=seed)
    rng = np.random.default_rng(seed)
    y = np.full(n, -1)
    for c in (0, 1):
        y[rng.choice(np.flatnonzero(true == c), known, replace=False)] = c
    return X, y, true


def blobs(n=60, seed=1):
    X, true = make_blobs(n, centers=[[0, 0], [2, 0], [1, 1.7]], cluster_std=0.45, random_state=seed)
    return X, np.where(np.arange(n) < 12, true, -1), true


X, Y, TRUE = moons()


def fixed(kernel=KERNEL, **options):
    return TransductiveGPClassifier(kernel, optimizer=None, **options)


# --- what it finds --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["em", "joint"])
@pytest.mark.parametrize("likelihood", ["logistic", "probit", "softmax"])
def test_fewer_errors_than_without_the_other_rows(method, likelihood):
    wrong, alone = 0, 0
    for seed in range(4):
        X, y, true = moons(100, 3, seed=seed)
        known = y >= 0
        model = fixed(likelihood=likelihood, method=method).fit(X, y)
        supervised = GPClassifier(KERNEL, likelihood, optimizer=None).fit(X[known], y[known])
        wrong += np.sum(model.transduction_ != true)
        alone += np.sum(supervised.predict(X) != true)
        np.testing.assert_array_equal(model.transduction_[known], y[known])
        np.testing.assert_array_equal(model.predict(X[~known]), model.transduction_[~known])
    assert alone > 20 and wrong < 0.5 * alone


@pytest.mark.parametrize("method", ["em", "joint"])
def test_three_classes(method):
    X, y, true = blobs()
    names = np.array(["ash", "birch", "cedar"])
    model = fixed(3.0 * RBF(0.5), method=method, unlabeled="?").fit(X, np.append(names, "?")[y])
    assert np.mean(model.transduction_ == names[true]) > 0.9
    assert model.likelihood_ == Softmax(3) and model.posterior_.n_outputs == 3
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.label_distributions_[:12], np.eye(3)[true[:12]])


def test_what_is_reported():
    model = fixed().fit(X, Y)
    known = Y >= 0
    problem = transductive.TransductiveProblem(KERNEL, X, Y, Logistic(), np.zeros((80, 1)))
    solution = transductive.solve(problem)
    assert model.description_length_ == pytest.approx(-solution.objective)
    assert model.description_length_ == pytest.approx(-model.history_["value"][-1])
    np.testing.assert_allclose(model.label_distributions_, solution.probabilities, atol=1e-9)
    np.testing.assert_array_equal(model.label_distributions_[known], np.eye(2)[Y[known]])
    best = np.argmax(model.label_distributions_, axis=1)
    np.testing.assert_array_equal(model.transduction_, best)
    temperature, values = model.history_["temperature"], model.history_["value"]
    assert temperature[-1] == 0 and np.all(np.diff(temperature) <= 0)
    same = np.diff(temperature) == 0
    assert np.all(np.diff(values)[same] >= -1e-9)
    assert model.kernel_ == KERNEL and model.likelihood_ == Logistic()
    assert (model.status_, model.n_sweeps_, model.n_iter_, model.jitter_) == ("fixed", 0, 1, 0.0)
    np.testing.assert_array_equal(model.theta_, KERNEL.theta)
    hard = fixed(labels="hard").fit(X, Y)
    assert model.description_length_ <= hard.description_length_ + 1e-9


@pytest.mark.parametrize("method", ["em", "joint"])
@pytest.mark.parametrize("options", [{}, {"kernel": None, "mean": "constant"}], ids=["held", "fit"])
def test_with_all_labels_it_is_the_plain_classifier(method, options):
    if not options:
        options = {"kernel": KERNEL, "optimizer": None}
    for (X, _, true), inference in ((moons(40), "laplace"), (blobs(30), "map")):
        said = r"no row is marked .* by unlabeled=-1.* GPClassifier" + (
            r"\(inference='map'\)\. " if inference == "map" else r"\. "
        )
        with pytest.warns(MercerWarning, match=said):
            model = TransductiveGPClassifier(method=method, **options).fit(X, true)
        plain = GPClassifier(inference=inference, **options).fit(X, true)
        np.testing.assert_array_equal(model.transduction_, true)
        np.testing.assert_array_equal(model.theta_, plain.theta_)
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=2e-4)
        np.testing.assert_allclose(model.predict_latent(X), plain.predict_latent(X), atol=1e-6)


# --- marks and types ------------------------------------------------------------------------------


def marked(mark, dtype=object):
    out = np.array(Y, dtype=dtype)
    out[Y < 0] = mark
    return out


@pytest.mark.parametrize(
    ("mark", "y"),
    [
        (-1, Y),
        (None, marked(None)),
        (np.nan, marked(np.nan, float)),
        (None, marked(np.nan, float)),
        (np.nan, marked(None)),
        (None, pd.Series(marked(None)).astype("Int64")),
        (7, marked(7, int)),
        ("none", marked("none")),
        (-1, pl.Series(Y.tolist())),
        (None, pl.Series([None if c < 0 else c for c in Y.tolist()])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_marks_of_any_type(mark, y):
    model = fixed(unlabeled=mark).fit(X, y)
    wanted = fixed().fit(X, Y)
    np.testing.assert_array_equal(model.transduction_, wanted.transduction_)
    np.testing.assert_array_equal(model.classes_, [0, 1])
    assert model.classes_.dtype.kind in "if"


def test_labels_of_any_type():
    wanted = fixed().fit(X, Y).transduction_
    for names in (["no", "yes"], [False, True], [3, 10]):
        y = [None if c < 0 else names[c] for c in Y]
        model = fixed(unlabeled=None).fit(X, y)
        np.testing.assert_array_equal(model.transduction_, np.array(names)[wanted])
        assert model.predict(X[:3]).dtype == model.classes_.dtype == model.transduction_.dtype


def test_a_mark_that_was_turned_into_text():
    y = ["a" if c == 0 else "b" if c == 1 else -1 for c in Y]
    wanted = fixed().fit(X, Y).transduction_
    for given in (y, tuple(y), np.array(y, dtype=object)):
        model = fixed().fit(X, given)
        np.testing.assert_array_equal(model.transduction_, np.array(["a", "b"])[wanted])
    text = "'-1', while rows without a label are marked by unlabeled=-1.*set unlabeled='-1'"
    with pytest.raises(ValueError, match=text):
        fixed().fit(X, np.array(y))
    np.testing.assert_array_equal(
        fixed(unlabeled="-1").fit(X, np.array(y)).transduction_, model.transduction_
    )


def test_marks_are_told_from_labels():
    assert unmarked(np.array([1, -1, 2]), -1).tolist() == [True, False, True]
    assert unmarked(np.array(["-1", "a"]), -1).tolist() == [True, True]
    assert unmarked(np.array([0.0, np.nan]), -1).tolist() == [True, True]
    assert unmarked(np.array([pd.NA, "a", None], dtype=object), np.nan).tolist() == [0, 1, 0]


def test_missing_values_among_text():
    """A list of text and NaN is no array of text, in which NaN would be a class."""
    wanted = fixed().fit(X, Y).transduction_
    for mark in (None, np.nan):
        model = fixed(unlabeled=mark).fit(X, [np.nan if c < 0 else "ab"[c] for c in Y])
        np.testing.assert_array_equal(model.transduction_, np.array(["a", "b"])[wanted])


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
@pytest.mark.parametrize("names", [[0, 1, -1], ["a", "b", -1]], ids=["numbers", "text"])
@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_labels_that_are_not_the_mark(kind, names, missing):
    y = np.array(names, dtype=object)[Y].tolist()
    y[3] = y[7] = missing
    with pytest.raises(ValueError, match=r"in rows 3, 7 .*unlabeled=-1.*set unlabeled=None"):
        fixed().fit(X, kind(y) if kind is not np.array else np.array(y, dtype=object))


def test_one_class_left():
    """Labels -1 and 1 are common, and -1 is the default mark."""
    y = np.where(TRUE == 0, -1, 1)
    text = r"one class only, 1: 40 rows are without a label, marked as unlabeled=-1.*If -1 is the "
    with pytest.raises(ValueError, match=text + r".*unlabeled=None"):
        fixed().fit(X, y)
    with pytest.warns(MercerWarning, match="no row is marked .* by unlabeled=None"):
        model = fixed(unlabeled=None).fit(X, y)
    np.testing.assert_array_equal(model.classes_, [-1, 1])
    with pytest.raises(ValueError, match="no row with a label: 80 rows are without"):
        fixed().fit(X, np.full(80, -1))
    with pytest.raises(ValueError, match="one class only"):
        fixed().fit(X, np.ones(80, dtype=int))


def test_what_is_refused():
    for options, text in (
        ({"method": "svm"}, "method"),
        ({"labels": "soft"}, "labels"),
        ({"n_sweeps": -1}, "n_sweeps"),
        ({"n_sweeps": 1.5}, "n_sweeps"),
        ({"likelihood": "poisson"}, "likelihood"),
        ({"likelihood": Probit(0.0)}, "Probit"),
        ({"hyperprior": "x"}, "hyperprior"),
        ({"max_iter": 0}, "max_iter"),
    ):
        model = fixed().set_params(**options)
        with pytest.raises(ValueError, match=text):
            model.fit(X, Y)
        assert not hasattr(model, "classes_")
    blob, y, _ = blobs()
    with pytest.raises(ValueError, match=r"'probit' is of two classes, and y has 3.*'logistic'"):
        fixed(likelihood="probit").fit(blob, y)
    with pytest.raises(ValueError, match="NaN"):
        fixed().fit(X, np.where(np.arange(80) == 3, np.nan, Y))
    with pytest.raises(ValueError, match="target y is None"):
        fixed().fit(X, None)
    with pytest.raises(ValueError, match="weight"):
        fixed().fit(X, Y, sample_weight=-np.ones(80))


# --- weights, frames, other kernels ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["em", "joint"])
def test_weights(method):
    counts = 1 + np.arange(80) % 2
    heavy = fixed(method=method).fit(X, Y, sample_weight=counts)
    rows = np.repeat(np.arange(80), counts)
    twice = fixed(method=method).fit(X[rows], Y[rows])
    assert heavy.description_length_ == pytest.approx(twice.description_length_, abs=1e-5)
    np.testing.assert_array_equal(heavy.transduction_[rows], twice.transduction_)
    np.testing.assert_allclose(heavy.predict_proba(X), twice.predict_proba(X), atol=1e-5)


def test_marked_rows_of_weight_0_are_none():
    with pytest.warns(MercerWarning, match="no row is marked as without a label"):
        fixed().fit(X, Y, sample_weight=np.where(Y < 0, 0.0, 1.0))


@pytest.mark.parametrize("kernel", [KERNEL, "precomputed"], ids=["rbf", "precomputed"])
def test_rows_of_weight_0_are_left_out_and_predicted(kernel):
    weights = np.where(np.arange(80) % 5 == 0, 0.0, 1.0)
    kept = weights > 0
    given = KERNEL(X) if kernel == "precomputed" else X
    model = fixed(kernel).fit(given, Y, sample_weight=weights)
    wanted = fixed().fit(X[kept], Y[kept])
    assert len(model.transduction_) == len(model.label_distributions_) == 80
    np.testing.assert_array_equal(model.transduction_[kept], wanted.transduction_)
    np.testing.assert_array_equal(model.transduction_[~kept], wanted.predict(X[~kept]))
    proba = wanted.predict_proba(X[~kept])
    np.testing.assert_allclose(model.label_distributions_[~kept], proba, atol=1e-7)


def test_a_kernel_matrix():
    wanted = fixed().fit(X, Y)
    model = fixed("precomputed").fit(KERNEL(X), Y)
    np.testing.assert_array_equal(model.transduction_, wanted.transduction_)
    new = X[:5] + 0.1
    block = np.column_stack([KERNEL(new, X), KERNEL.diag(new)])
    np.testing.assert_allclose(model.predict_proba(block), wanted.predict_proba(new), atol=1e-7)


def test_kernels_of_objects_and_of_named_columns():
    frame = pd.DataFrame({"x": X[:, 0], "noise": np.arange(80.0), "z": X[:, 1]})
    model = fixed(KERNEL.on(["x", "z"])).fit(frame, pd.Series(Y))
    wanted = fixed().fit(X, Y)
    np.testing.assert_allclose(model.predict_latent(frame), wanted.predict_latent(X), atol=1e-7)
    assert list(model.feature_names_in_) == ["x", "noise", "z"]
    words = ["tea", "teas", "cup", "cups", "tear", "cut"]
    model = fixed(3.0 * Callable(shared)).fit(words, ["t", -1, "c", -1, -1, -1])
    assert model.transduction_.tolist() == ["t", "t", "c", "c", "t", "c"]


def shared(a, b):
    return len(set(a) & set(b)) / np.sqrt(len(set(a)) * len(set(b)))


def test_repeated_rows_and_long_length_scales():
    with pytest.warns(UndeterminedWarning, match="was given the class"):
        model = fixed(RBF(30.0)).fit(np.repeat(X, 2, axis=0), np.repeat(Y, 2))
    assert np.all(np.isfinite(model.predict_proba(X))) and model.jitter_ == 0
    np.testing.assert_array_equal(model.transduction_[::2], model.transduction_[1::2])


def test_searches_that_stopped_and_jitter_are_told():
    problem = transductive.TransductiveProblem(KERNEL, X, Y, Logistic(), np.zeros((80, 1)))
    solution = transductive.solve(problem)
    with pytest.warns(JitterWarning, match="0.001 was added to the diagonal.* rows may repeat, or"):
        transductive_fit._warn(solution._replace(jitter=1e-3))
    with pytest.warns(ConvergenceWarning, match="stopped before it had settled"):
        transductive_fit._warn(solution._replace(status="stopped"))


# --- hyperparameters ------------------------------------------------------------------------------


def test_hyperparameters_of_the_rows_with_labels_come_first():
    known = Y >= 0
    kernel = 4.0 * RBF(0.4)
    model = TransductiveGPClassifier(kernel, n_sweeps=0).fit(X, Y)
    plain = GPClassifier(kernel).fit(X[known], Y[known])
    np.testing.assert_allclose(model.theta_, plain.theta_, atol=1e-4)
    assert model.n_sweeps_ == 0 and model.status_ == plain.status_


@pytest.mark.parametrize("method", ["em", "joint"])
def test_then_labels_and_hyperparameters_in_turn(method):
    X, y, true = moons(60, known=8)
    kernel = 4.0 * RBF(0.4)
    first = TransductiveGPClassifier(kernel, method=method, n_sweeps=0).fit(X, y)
    model = TransductiveGPClassifier(kernel, method=method).fit(X, y)
    assert 1 <= model.n_sweeps_ <= 5
    codes = model.transduction_

    def held(kernel):
        problem = transductive.TransductiveProblem(kernel, X, codes, Logistic(), np.zeros((60, 1)))
        return transductive.evidence(problem, codes)[0].log_evidence

    # at the end the evidence of the labels that were found is at a top
    best = held(model.kernel_)
    assert best > held(first.kernel_)
    for step in 0.05 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]):
        assert held(model.kernel_.with_theta(model.kernel_.theta + step)) < best
    assert np.mean(model.transduction_ == true) > 0.9


def test_the_default_kernel_is_in_the_units_of_all_rows():
    model = TransductiveGPClassifier(max_iter=20, n_sweeps=1).fit(X, Y)
    far = TransductiveGPClassifier(max_iter=20, n_sweeps=1).fit(1e3 * X + 7, Y)
    np.testing.assert_array_equal(model.transduction_, far.transduction_)
    ratio = far.kernel_.kernel.length_scale / model.kernel_.kernel.length_scale
    np.testing.assert_allclose(ratio, 1e3, rtol=0.02)


def test_ctrl_c_keeps_what_there_is():
    def stop(start, count, value, best):
        if count == 3:
            raise KeyboardInterrupt

    model = TransductiveGPClassifier(4.0 * RBF(0.5), verbose=stop)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, Y)
    assert model.status_ == "interrupted" and model.n_sweeps_ == 0
    assert len(model.transduction_) == 80


def test_warm_start():
    model = TransductiveGPClassifier(4.0 * RBF(0.4), n_sweeps=1, warm_start=True).fit(X, Y)
    theta = model.theta_
    model.set_params(optimizer=None).fit(X, Y)
    np.testing.assert_array_equal(model.theta_, theta)
    assert not np.array_equal(theta, model.kernel.theta)


# --- as any estimator -----------------------------------------------------------------------------


def test_saving_and_pruning(tmp_path):
    for model in (fixed(unlabeled=None).fit(X, marked(None)), fixed(RBF()).fit(*blobs()[:2])):
        inputs = X if model.classes_.size == 2 else blobs()[0]
        save(model, tmp_path / "model.mercer")
        back = load(tmp_path / "model.mercer")
        assert back.get_params()["unlabeled"] == model.unlabeled
        np.testing.assert_array_equal(back.predict_proba(inputs), model.predict_proba(inputs))
        np.testing.assert_array_equal(back.transduction_, model.transduction_)
        assert back.description_length_ == model.description_length_
        small, loss = model.predictive_.prune(40)
        assert small.n_basis == 40 and loss > 0
        error = np.abs(small.mean(inputs) - model.predictive_.mean(inputs))
        assert np.median(error) < 0.5


def test_in_a_search():
    grid = {"kernel__RBF__length_scale": [0.01, 0.25], "method": ["em", "joint"]}
    found = GridSearchCV(clone(fixed()), grid, cv=[(np.arange(80), np.flatnonzero(Y >= 0))])
    found.fit(X, Y)
    assert found.best_score_ == 1.0
