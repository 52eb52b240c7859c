"""Labels of any type, soft labels, weights, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.gaussian_process import kernels as sk

from mercer import GPClassifier
from mercer.errors import TooLargeError
from mercer.estimators.labels import codes_of, hard_targets, soft_targets
from mercer.inference._coupled_loo import leave_one_out as coupled
from mercer.kernels import RBF, Tanh
from mercer.likelihoods import Gaussian, Logistic, Probit, SoftLabels, Softmax

from .classes import KERNEL, THREE, TWO, X_NEW, X, fixed, one_hot

PARTS = {
    "softmax": (THREE, {}),
    "one vs rest": (THREE, {"multi_class": "one_vs_rest"}),
    "one vs rest, ep": (THREE, {"multi_class": "one_vs_rest", "inference": "ep"}),
    "step": (TWO, {"likelihood": Probit(0.0), "inference": "ep"}),
} | {
    f"{likelihood}, {engine}": (TWO, {"likelihood": likelihood, "inference": engine})
    for likelihood in ("logistic", "probit")
    for engine in ("laplace", "ep", "vi", "map")
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", [True, "cross_entropy", "mixture"])
def test_one_hot_soft_labels_are_hard_ones(part, kind):
    y, options = PARTS[part]
    if (part, kind == "mixture") in (("softmax", True), ("step", False)):
        pytest.skip("refused")
    A, y = X[:24], y[:24]
    hard = fixed(**options).fit(A, y)
    soft = fixed(**options, soft_labels=kind, classes=np.unique(y)).fit(A, one_hot(y))
    np.testing.assert_array_equal(soft.classes_, hard.classes_)
    np.testing.assert_allclose(soft.predict_proba(X_NEW), hard.predict_proba(X_NEW), atol=1e-10)
    value = hard.log_marginal_likelihood_value_
    assert soft.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-10, nan_ok=True)


def test_cross_entropy_is_repeated_labels():
    """A row (0.75, 0.25) of weight 4 is three labels of one class and one of the other."""
    P = np.repeat([[0.75, 0.25], [0.0, 1.0], [0.5, 0.5]], [10, 10, 10], axis=0)
    A = X[:30]
    soft = fixed(soft_labels=True).fit(A, P, np.full(30, 4.0))
    rows = np.repeat(np.arange(30), 4)
    labels = np.concatenate([[0] * int(4 * p) + [1] * int(4 * (1 - p)) for p in P[:, 0]])
    hard = fixed().fit(A[rows], labels)
    np.testing.assert_allclose(soft.predict_proba(X_NEW), hard.predict_proba(X_NEW), atol=1e-5)


def test_even_rows_say_nothing_in_a_mixture_and_something_as_shares():
    P = one_hot(TWO)
    P[::3] = 0.5
    kept = np.arange(45) % 3 != 0
    mixed = fixed(soft_labels="mixture").fit(X, P)
    without = fixed().fit(X[kept], TWO[kept])
    np.testing.assert_allclose(mixed.predict_proba(X_NEW), without.predict_proba(X_NEW), atol=1e-5)
    shares = fixed(soft_labels=True).fit(X, P)
    assert np.max(np.abs(shares.predict_proba(X_NEW) - mixed.predict_proba(X_NEW))) > 0.01


def test_densities_of_soft_labels():
    P = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    model = fixed(soft_labels=True, classes=["a", "b", "c"]).fit(X, one_hot(THREE))
    logs = model.predict_log_proba(X_NEW[:2])
    np.testing.assert_allclose(
        model.log_predictive_density(X_NEW[:2], P), np.sum(P * logs, axis=1), rtol=1e-9
    )
    np.testing.assert_allclose(
        model.log_predictive_density(X_NEW[:2], ["c", "a"]), [logs[0, 2], logs[1, 0]]
    )
    mixed = fixed(soft_labels="mixture").fit(X, one_hot(THREE))
    wanted = np.log(np.sum(P * mixed.predict_proba(X_NEW[:2]), axis=1))
    np.testing.assert_allclose(mixed.log_predictive_density(X_NEW[:2], P), wanted)
    with pytest.raises(ValueError, match="6 rows and y has 2"):
        model.log_predictive_density(X_NEW, P)


def test_names_of_the_columns():
    Y = one_hot(THREE)
    assert soft_targets(Y).classes.tolist() == [0, 1, 2]
    for frame in (pd.DataFrame, pl.DataFrame):
        named = frame({"oak": Y[:, 0], "ash": Y[:, 1], "elm": Y[:, 2]})
        assert soft_targets(named).classes.tolist() == ["oak", "ash", "elm"]
    assert soft_targets(Y, ("x", "y", "z")).classes.tolist() == ["x", "y", "z"]
    columns = pd.DataFrame(Y, columns=[3, 1, 2])
    assert soft_targets(columns).classes.tolist() == [3, 1, 2]
    rounded = np.round(np.full((2, 3), 1 / 3), 7)
    np.testing.assert_allclose(soft_targets(rounded).Y.sum(axis=1), 1.0, atol=1e-15)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_are_matched_to_the_classes_by_name(frame):
    p = np.where(X[:, 0] > np.median(X[:, 0]), 0.9, 0.1)
    named = frame({"yes": p, "no": 1 - p})
    model = fixed(soft_labels=True, classes=["no", "yes"]).fit(X, named)
    plain = fixed(soft_labels=True, classes=["no", "yes"]).fit(X, np.column_stack([1 - p, p]))
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    densities = [
        model.log_predictive_density(X, named[order]) for order in (["yes", "no"], ["no", "yes"])
    ]
    np.testing.assert_array_equal(*densities)
    unnamed = soft_targets(frame(np.column_stack([1 - p, p])), ["no", "yes"])
    np.testing.assert_allclose(unnamed.Y[:, 1], p)
    numbers = soft_targets(frame({"1": p, "0": 1 - p}), [0, 1])
    np.testing.assert_allclose(numbers.Y[:, 1], p)
    with pytest.raises(ValueError, match=r"\['yes', 'no'\] and classes are \['ja', 'nein'\]"):
        soft_targets(named, ["ja", "nein"])


@pytest.mark.parametrize(
    "names",
    [
        ["column_0", "column_1"],
        [True, False],
        [2.0, 5.0],
        ["0.1", "0.2"],
        ["1.0", "2.0"],
        pd.to_datetime(["2020-01-01", "2021-01-01"]),
    ],
)
def test_columns_of_any_name_are_matched(names):
    Y = pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], columns=names)
    backwards = np.array(list(names)[::-1], dtype=object)
    np.testing.assert_allclose(soft_targets(Y, backwards).Y, Y.to_numpy()[:, ::-1])
    if names[0] in ("0.1", "1.0"):  # classes that are numbers, columns that are their text
        numbers = [float(name) for name in backwards]
        np.testing.assert_allclose(soft_targets(Y, numbers).Y, Y.to_numpy()[:, ::-1])


@pytest.mark.parametrize(
    ("Y", "classes", "text"),
    [
        (np.ones(4), None, r"shape \(4,\).*np.column_stack\(\[1 - p, p\]\)"),
        (np.ones((4, 1)), None, "at least two classes"),
        ([[0.5, 0.6]], None, r"row 0 is \[0.5, 0.6\], with sum 1.1"),
        ([[0.5, 0.5], [1.5, -0.5], [2, 2]], None, r"row 1 .*and 1 more are as wrong"),
        ([[np.nan, 1.0]], None, "row 0"),
        ([["a", "b"]], None, "matrix of numbers"),
        ([[0.5, 0.5]], ["a"], "classes must name the 2 columns"),
        ([[0.5, 0.5]], ["a", "a"], "each by a name of its own"),
        (pd.DataFrame([[0.5, 0.5]]), [1, 0], "the same numbers in another order"),
        (pd.DataFrame([[0.5, 0.5]]), [1.0, 0.0], "the same numbers in another order"),
        (pd.DataFrame([[0.5, 0.5]], columns=["a", "a"]), None, "each by a name of its own"),
    ],
)
def test_bad_soft_labels(Y, classes, text):
    with pytest.raises(ValueError, match=text):
        soft_targets(Y, classes)


def test_labels_that_cannot_be_sorted():
    with pytest.raises(ValueError, match="cannot be sorted together, int, str"):
        hard_targets(np.array(["a", 1, "b", 2] * 3, dtype=object))


def test_one_class_is_named():
    with pytest.raises(ValueError, match=r"one class only, .*'a'.* at least two"):
        GPClassifier().fit(X[:4], ["a"] * 4)
    with pytest.raises(ValueError, match=r"one class only.*weight 0 do not count"):
        GPClassifier().fit(X[:4], ["a", "a", "b", "b"], sample_weight=[1, 1, 0, 0])


def test_a_class_of_weight_0_is_not_there():
    w = (THREE != "mid").astype(float)
    model = fixed().fit(X, THREE, w)
    assert model.classes_.tolist() == ["low", "top"] and hasattr(model, "posterior_")
    np.testing.assert_array_equal(model.y_train_.shape, (int(w.sum()), 2))


def test_codes():
    assert codes_of(["b", "a"], np.array(["a", "b"]), 2).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        codes_of(["b", "a"], np.array(["a", "b"]), 3)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"inference": "exact"}, "inference must be one of 'laplace'"),
        ({"multi_class": "ovo"}, "multi_class must be one of"),
        ({"soft_labels": "yes"}, "soft_labels must be False, True"),
        ({"classes": ["a", "b"]}, "leave it out"),
        ({"hyperprior": "wide"}, "hyperprior must be one of"),
        ({"optimizer": "adam"}, "optimizer must be one of"),
        ({"n_restarts": -1}, "n_restarts must be a whole number from 0"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1"),
        ({"warm_start": 1}, "warm_start must be True or False"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"verbose": "x"}, "verbose must be a whole number"),
        ({"random_state": "x"}, "random_state must be a whole number"),
        ({"kernel": "rbf"}, "kernel must be None"),
        ({"kernel": Tanh()}, "not a Mercer kernel"),
        ({"kernel": sk.RBF() + sk.WhiteKernel()}, "WhiteKernel.*leave it out"),
        ({"likelihood": "gaussian"}, "likelihood must be 'logistic', 'probit', 'softmax'"),
        ({"likelihood": Gaussian(1.0)}, "likelihood must be"),
        ({"likelihood": Logistic}, "brackets"),
        ({"likelihood": SoftLabels(Logistic())}, "soft_labels='cross_entropy'"),
        ({"likelihood": Softmax(4)}, r"Softmax.* and y has 3 classes"),
        ({"likelihood": "softmax", "multi_class": "one_vs_rest"}, "cannot be 'one_vs_rest'"),
        ({"likelihood": "probit", "multi_class": "softmax"}, "there is 'one_vs_rest'"),
        ({"likelihood": "softmax", "inference": "ep"}, "couples.*use inference='laplace'"),
        ({"likelihood": "probit", "inference": "bounds"}, "not Logistic"),
        ({"likelihood": Probit(0.0)}, "0 for some latent values.*use inference='ep'"),
        ({"likelihood": Probit(0.0), "inference": "vi"}, "use inference='ep'"),
        ({"mean": "quadratic"}, "mean must be"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError, match=text):
        GPClassifier(**options).fit(X, THREE)


def test_softmax_has_no_mixture():
    model = GPClassifier(likelihood="softmax", soft_labels="mixture")
    with pytest.raises(ValueError, match=r"mixture.*use multi_class='one_vs_rest'"):
        model.fit(X, one_hot(THREE))


@pytest.mark.parametrize(
    ("y", "options"),
    [(TWO, {}), (TWO, {"likelihood": "softmax"}), (THREE, {"multi_class": "one_vs_rest"})],
    ids=["two", "softmax of two", "rest"],
)
def test_leave_one_out_of_the_mode_is_that_of_laplace(y, options):
    mode, wanted = (
        fixed(inference=name, **options).fit(X, y, sample_weight=np.arange(45) % 4).loo()
        for name in ("map", "laplace")
    )
    np.testing.assert_allclose(mode.proba, wanted.proba, rtol=1e-6)
    np.testing.assert_allclose(mode.log_density, wanted.log_density, rtol=1e-6)


def test_leave_one_out_of_a_softmax_is_around_the_mean_that_predicts():
    """Of three classes "laplace" has its mean moved from the mode, "map" has not."""
    names = "map", "laplace"
    left = {name: fixed(inference=name).fit(X, THREE).loo().proba[:8] for name in names}
    refitted = {name: np.empty((8, 3)) for name in names}
    for i in range(8):
        rest = np.arange(45) != i
        for name in names:
            model = fixed(inference=name).fit(X[rest], THREE[rest])
            refitted[name][i] = model.predict_proba(X[i : i + 1])[0]
    for own, other in (names, names[::-1]):
        gap = np.mean(np.abs(left[own] - refitted[own]))
        assert gap < 0.2 * np.mean(np.abs(left[own] - refitted[other]))


def test_leave_one_out_has_the_rows_that_were_fitted():
    weights = np.arange(45) % 4
    left = fixed().fit(X, THREE, sample_weight=weights).loo()
    kept = weights > 0
    wanted = fixed().fit(X[kept], THREE[kept], sample_weight=weights[kept]).loo()
    np.testing.assert_array_equal(left.proba, wanted.proba)
    assert left.log_density.shape == (np.sum(kept),)


def test_leave_one_out_starts_from_the_fit(monkeypatch):
    model = fixed().fit(X, THREE)
    starts = []
    monkeypatch.setattr(
        "mercer.estimators.class_evidence.leave_one_out",
        lambda problem, start, at_mode: (starts.append(start), coupled(problem, start))[1],
    )
    model.loo()
    np.testing.assert_array_equal(starts[0], model._starts[0][0])


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_the_mode_has_no_evidence(y):
    model = fixed(inference="map").fit(X, y)
    with pytest.raises(ValueError, match="no evidence"):
        model.log_marginal_likelihood()
    assert np.isnan(model.log_marginal_likelihood_value_)


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = fixed().fit(X, TWO)
    before = dict(vars(model))
    for bad_x, bad_y in ((X, ["a"] * 45), (X[:, :1], TWO), (X, TWO[:-1])):
        with pytest.raises(ValueError):
            model.fit(bad_x, bad_y)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())


def test_theta_of_a_wrong_length():
    with pytest.raises(ValueError, match=r"theta must have shape \(3,\), got \(2,\)"):
        fixed().fit(X, TWO).log_marginal_likelihood(np.zeros(2))


def test_too_many_rows_are_refused_at_once(monkeypatch):
    monkeypatch.setattr("mercer.estimators.memory.available_memory", lambda: 2**30)
    n = 6000
    many = np.arange(2.0 * n).reshape(n, 2)
    with pytest.raises(TooLargeError, match=r"6,000 rows.*SparseGPClassifier is made"):
        GPClassifier(KERNEL).fit(many, np.arange(n) % 10)
    with pytest.raises(TooLargeError, match="2 classes"):
        GPClassifier(RBF(), inference="vi").fit(many, np.arange(n) % 2)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("names", [[0, 1], ["a", "b"]], ids=["numbers", "text"])
def test_rows_without_a_label_are_named(missing, names):
    y = [names[c] for c in np.arange(45) % 2]
    y[2] = y[40] = missing
    text = r"no label, in rows 2, 40 \(counted.*leave.*TransductiveGPClassifier\(unlabeled=None\)"
    for given in (y, np.array(y, dtype=object), pd.Series(y), pd.Series(y).to_frame()):
        with pytest.raises(ValueError, match=text):
            fixed().fit(X, given)


def test_probabilities_instead_of_labels_are_told_of_soft_labels():
    with pytest.raises(ValueError, match=r"y should be a 1d array.*\(\d+, 3\).*soft_labels=True"):
        GPClassifier().fit(X, one_hot(THREE))
