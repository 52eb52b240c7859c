"""OnlineGPClassifier: labels as they come, and expectation propagation by sweeps."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as sk

from mercer import GPClassifier, OnlineGPClassifier, SparseGPClassifier, load, means, save
from mercer.errors import ConvergenceWarning, UndeterminedWarning
from mercer.estimators import PrequentialClasses
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF, Tanh
from mercer.likelihoods import Gaussian, Logistic, Probit, Softmax

KERNEL = 3.0 * RBF(1.0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
SCORE = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * RNG.normal(size=60)
TWO = np.where(SCORE > 0.3, "yes", "no")
THREE = np.array(["ash", "birch", "cedar"])[np.digitize(SCORE, [-0.2, 0.8])]
NEW = RNG.normal(size=(9, 2))
NAMES = {"two": (TWO, ["no", "yes"]), "three": (THREE, ["ash", "birch", "cedar"])}


def streaming(likelihood="probit", **options):
    return OnlineGPClassifier(KERNEL, likelihood, **({"max_basis": 80, "tol": 0.0} | options))


def same(a, b):
    np.testing.assert_array_equal(a.predict_proba(NEW), b.predict_proba(NEW))
    for left, right in zip(a.predict_latent(NEW, True), b.predict_latent(NEW, True), strict=True):
        np.testing.assert_array_equal(left, right)
    assert (a.log_evidence_, a.n_seen_) == (b.log_evidence_, b.n_seen_)
    np.testing.assert_array_equal(a.classes_, b.classes_)


def near(a, b):
    """The same but for rounding: kernels round by how many values are found at once."""
    np.testing.assert_allclose(a.predict_proba(NEW), b.predict_proba(NEW), rtol=0, atol=1e-8)
    np.testing.assert_allclose(a.log_evidence_, b.log_evidence_, rtol=1e-8)
    assert a.n_seen_ == b.n_seen_
    np.testing.assert_array_equal(a.basis_, b.basis_)


# --- what it computes ---------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["probit", "logistic"])
@pytest.mark.parametrize("y", [TWO, THREE], ids=NAMES)
def test_sweeps_come_to_expectation_propagation(likelihood, y):
    model = streaming(likelihood, n_sweeps=100, optimizer=None).fit(X, y)
    options = {"inference": "ep", "multi_class": "one_vs_rest", "optimizer": None}
    whole = GPClassifier(KERNEL, likelihood, **options).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(NEW), whole.predict_proba(NEW), atol=1e-5)
    once = streaming(likelihood, optimizer=None).fit(X, y)
    assert model.log_evidence_ == once.log_evidence_
    assert np.max(np.abs(once.predict_proba(NEW) - whole.predict_proba(NEW))) > 1e-3


def test_there_is_a_warning_where_sweeps_end_before_the_sites_have_settled():
    with pytest.warns(ConvergenceWarning, match=r"n_sweeps=2.*off by 0\.\d+.*Raise n_sweeps"):
        model = streaming(n_sweeps=2, optimizer=None).fit(X, THREE)
    assert model.status_ == "complete"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        streaming(n_sweeps=30, optimizer=None).fit(X, THREE)
        streaming(n_sweeps=4, optimizer=None).fit(X, THREE)  # off by 3e-5: not worth a word
        streaming(n_sweeps=2, recycle="heuristic", optimizer=None).fit(X, THREE)


def test_functions_of_several_classes_are_independent():
    model = streaming().partial_fit(X, THREE, NAMES["three"][1])
    _, std = model.predict_latent(NEW, return_std=True)
    _, cov = model.predict_latent(NEW, return_cov=True)
    assert cov.shape == (9, 3, 9, 3)
    for p in range(3):
        np.testing.assert_allclose(np.diagonal(cov[:, p, :, p]), std[:, p] ** 2, rtol=1e-8)
        for other in {0, 1, 2} - {p}:
            np.testing.assert_array_equal(cov[:, p, :, other], 0.0)


def test_one_label_matches_moments():
    """After one row the process has the moments of the posterior, by brute force."""
    model = streaming().partial_fit(X[:1], ["yes"], classes=["no", "yes"])
    f = np.linspace(-20.0, 20.0, 20001)
    p = np.exp(-0.5 * f**2 / 3.0) * ndtr(f)
    p /= p.sum()
    mean, std = model.predict_latent(X[:1], return_std=True)
    np.testing.assert_allclose(mean[0], p @ f, rtol=1e-8)
    np.testing.assert_allclose(std[0] ** 2, p @ f**2 - (p @ f) ** 2, rtol=1e-8)
    np.testing.assert_allclose(model.log_evidence_, np.log(0.5))


def test_classes_are_processes_against_the_rest_on_one_basis():
    model = streaming(max_basis=15).partial_fit(X, THREE, classes=NAMES["three"][1])
    Y = np.where(THREE[:, None] == np.unique(THREE), 1.0, -1.0)
    process = OnlineProcess(KERNEL, Probit(), max_basis=15, tol=0.0, n_outputs=3)
    process.learn(X, Y)
    np.testing.assert_array_equal(model.predict_latent(NEW), process.posterior().mean(NEW))
    assert model.n_basis_ == 15
    mean, std = model.predict_latent(NEW, return_std=True)
    own = ndtr(mean / np.sqrt(1.0 + std**2))
    np.testing.assert_allclose(
        model.predict_proba(NEW), own / own.sum(axis=1, keepdims=True), atol=1e-12
    )


def test_hyperparameters_of_two_classes_are_those_of_a_whole_fit():
    model = OnlineGPClassifier(KERNEL).fit(X, TWO)
    whole = GPClassifier(KERNEL, "probit").fit(X, TWO)
    np.testing.assert_allclose(model.theta_, whole.theta_, rtol=1e-3, atol=1e-3)


def test_classes_share_what_is_learned():
    model = OnlineGPClassifier(mean="constant").fit(X, THREE)
    assert model.mean_.coefficients.shape == (1, 3)
    assert model.kernel_.theta.shape == (3,)
    assert np.mean(model.predict(X) == THREE) > 0.8
    whole = GPClassifier(likelihood="probit", inference="ep").fit(X, THREE)
    gap = np.abs(model.predict_proba(NEW) - whole.predict_proba(NEW))
    assert np.mean(gap) < 0.1


def test_the_step_learns_separable_labels():
    y = np.where(X[:, 0] > 0, 1, 0)
    model = streaming(Probit(0.0), optimizer=None).fit(X, y)
    assert np.mean(model.predict(X) == y) > 0.95
    chosen = OnlineGPClassifier(likelihood=Probit(0.0), max_iter=5, n_init=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        chosen.fit(X[:30], y[:30])
    assert np.mean(chosen.predict(X) == y) > 0.7


def test_labels_that_contradict_a_step_are_learned():
    """A variance is never 0, so that no label is quite impossible."""
    model = OnlineGPClassifier(RBF(), Probit(0.0), classes=[0, 1])
    rows = np.zeros((400, 1))
    model.partial_fit(rows[:60], np.ones(60, int))
    before = model.predict_proba([[0.0]])
    assert before[0, 1] > 0.9
    model.partial_fit(rows[:1], [0])
    assert model.predict_proba([[0.0]])[0, 1] < before[0, 1]
    model.partial_fit(rows, np.tile([0, 1], 200))
    assert np.all(np.isfinite(model.predict_proba([[0.0]])))


# --- streams ------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_any_chunks_are_one(data):
    y, names = NAMES[data.draw(st.sampled_from(["two", "three"]))]
    cuts = data.draw(st.lists(st.integers(1, 59), unique=True, max_size=10))
    weights = np.random.default_rng(data.draw(st.integers(0, 9))).choice([0.0, 1.0, 2.0], 60)
    make = data.draw(
        st.sampled_from(
            [
                streaming(max_basis=10),
                streaming("logistic", max_basis=10),
                OnlineGPClassifier(n_init=25, max_iter=3),
            ]
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one = clone(make).partial_fit(X, y, names, weights)
        model = clone(make)
        for part in np.split(np.arange(60), sorted(cuts)):
            model.partial_fit(X[part], y[part], names, weights[part])
    near(model, one)


def test_classes_are_told_first():
    with pytest.raises(ValueError, match="classes must be given to the first call"):
        streaming().partial_fit(X, TWO)
    model = streaming(classes=["yes", "no"]).partial_fit(X[:1], TWO[:1])
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])
    model.partial_fit(X, TWO, classes=["no", "yes"])
    with pytest.raises(ValueError, match="since the first call"):
        model.partial_fit(X, TWO, classes=["no", "perhaps"])
    with pytest.raises(
        ValueError, match=r"none of the model's classes, 'birch'.*\['no', 'yes'\], and stay so"
    ):
        model.partial_fit(X, THREE)
    assert model.n_seen_ == 61
    for wrong in (["no"], ["no", "no"], [["no", "yes"]], [1, "no", None]):
        with pytest.raises(ValueError, match="classes must be"):
            streaming().partial_fit(X, TWO, classes=wrong)


def test_a_class_without_rows():
    model = streaming(classes=["ash", "birch", "cedar", "oak"], optimizer=None).fit(X, THREE)
    P = model.predict_proba(X)
    assert P.shape == (60, 4)
    assert np.max(P[:, 3]) < 0.4


def test_rows_wait_until_the_kernel_can_be_chosen():
    model = OnlineGPClassifier(n_init=40)
    model.partial_fit(X[:39], TWO[:39], classes=["no", "yes"])
    with pytest.raises(NotFittedError, match="39 of the first n_init=40 rows"):
        model.predict(NEW)
    told = model.learn(X[39:45], TWO[39:45])
    np.testing.assert_array_equal(np.isnan(told.log_density), [True] + [False] * 5)
    assert model.n_seen_ == 45


def test_rows_of_one_class_choose_nothing():
    model = OnlineGPClassifier(n_init=20, classes=[0, 1])
    with pytest.warns(UndeterminedWarning, match="all of one class"):
        model.partial_fit(X[:20], np.ones(20, int))
    assert model.predict(X[:1])[0] == 1
    assert np.all(np.isfinite(model.predict_proba(NEW)))


def test_predictions_come_before_learning():
    for y, names in NAMES.values():
        model = streaming()
        told = model.learn(X, y, names)
        assert isinstance(told, PrequentialClasses)
        np.testing.assert_allclose(told.proba[0], 1.0 / len(names), atol=1e-12)
        part = streaming().partial_fit(X[:30], y[:30], names)
        np.testing.assert_allclose(told.proba[30], part.predict_proba(X[30:31])[0], atol=1e-9)
        own = part.log_predictive_density(X[30:31], y[30:31])
        np.testing.assert_allclose(told.log_density[30], own[0], rtol=1e-8)
    weightless = model.learn(X[:2], y[:2], sample_weight=[0.0, 1.0])
    np.testing.assert_array_equal(np.isnan(weightless.log_density), [True, False])
    two = streaming()
    np.testing.assert_allclose(
        np.sum(two.learn(X, TWO, ["no", "yes"]).log_density), two.log_evidence_, rtol=1e-9
    )


def test_weights_are_copies():
    weights = np.random.default_rng(1).integers(0, 3, 60)
    model = streaming().partial_fit(X, TWO, ["no", "yes"], weights)
    rows = np.repeat(np.arange(60), weights)
    wanted = streaming().partial_fit(X[rows], TWO[rows], ["no", "yes"])
    np.testing.assert_allclose(model.predict_proba(NEW), wanted.predict_proba(NEW), atol=1e-7)


@pytest.mark.parametrize("max_basis", [1, 5])
def test_alternating_labels_at_one_place(max_basis):
    rows = np.zeros((1000, 2))
    model = streaming(max_basis=max_basis, classes=[0, 1]).partial_fit(rows, np.arange(1000) % 2)
    P = model.predict_proba(rows[:1])
    np.testing.assert_allclose(P, 0.5, atol=0.05)
    assert model.n_basis_ == 1


def test_a_constant_stream_becomes_sure():
    model = streaming(classes=[0, 1]).partial_fit(np.zeros((2000, 2)), np.ones(2000, int))
    P = model.predict_proba(np.zeros((1, 2)))
    assert 0.99 < P[0, 1] < 1.0


# --- from posteriors, keeping, refusals ---------------------------------------------------------


def test_from_posteriors():
    first, rest = slice(0, 35), slice(35, 60)
    options = {"inference": "ep", "optimizer": None}
    whole = GPClassifier(KERNEL, "probit", **options).fit(X[first], TWO[first])
    sparse = SparseGPClassifier(KERNEL, "probit", n_inducing=8, **options).fit(X[first], TWO[first])
    for fitted in (whole, sparse):
        model = OnlineGPClassifier.from_posterior(
            fitted.posterior_, "probit", 40, classes=fitted.classes_, tol=0.0
        )
        np.testing.assert_allclose(model.predict_proba(NEW), fitted.predict_proba(NEW), atol=1e-7)
        model.partial_fit(X[rest], TWO[rest])
        assert np.mean(model.predict(X) == TWO) > 0.8
    sor = SparseGPClassifier(KERNEL, "probit", approximation="sor", n_inducing=8, **options)
    sor.fit(X[first], TWO[first])
    for lift in (False, True):
        model = OnlineGPClassifier.from_posterior(
            sor.posterior_, Probit(), 20 if lift else None, classes=["no", "yes"], lift=lift
        )
        model.partial_fit(X[rest], TWO[rest])
        assert model.n_basis_ == (20 if lift else 8)
    three = streaming(max_basis=15).partial_fit(X, THREE, NAMES["three"][1])
    again = OnlineGPClassifier.from_posterior(three.posterior_, "probit", classes=three.classes_)
    np.testing.assert_allclose(again.predict_proba(NEW), three.predict_proba(NEW), atol=1e-7)
    rest_each = GPClassifier(KERNEL, "probit", multi_class="one_vs_rest", **options).fit(X, THREE)
    given = rest_each.posteriors_, rest_each.likelihood_
    again = OnlineGPClassifier.from_posterior(*given, classes=rest_each.classes_, tol=0.0)
    near = again.predict_proba(NEW) - rest_each.predict_proba(NEW)
    assert isinstance(given[1], list) and np.max(np.abs(near)) < 1e-6
    for unequal in ([], ("probit", "logistic")):
        with pytest.raises(ValueError, match="one for all classes, or a list of equal ones"):
            OnlineGPClassifier.from_posterior(given[0], unequal, classes=rest_each.classes_)
    softmax = GPClassifier(KERNEL, optimizer=None).fit(X, THREE)
    with pytest.raises(ValueError, match="coupled"):
        OnlineGPClassifier.from_posterior(softmax.posterior_, "logistic", classes=softmax.classes_)
    for wrong in (["no"], ["yes", "no"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="classes must"):
            OnlineGPClassifier.from_posterior(whole.posterior_, "probit", classes=wrong)


@pytest.mark.parametrize("y", [TWO, THREE], ids=NAMES)
def test_a_saved_model_goes_on_bit_by_bit(tmp_path, y):
    names = np.unique(y)
    model = streaming(max_basis=12).partial_fit(X[:35], y[:35], names)
    path = tmp_path / "model.mercer"
    save(model, path)
    wanted = streaming(max_basis=12).partial_fit(X[:35], y[:35], names)
    wanted.partial_fit(X[35:], y[35:])
    for again in (load(path), pickle.loads(pickle.dumps(model))):
        same(again, model)
        same(again.partial_fit(X[35:], y[35:]), wanted)


def test_prune():
    model = streaming().partial_fit(X, THREE, NAMES["three"][1])
    loss = model.prune(20)
    assert model.n_basis_ == 20 and loss > 0
    assert np.mean(model.predict(X) == THREE) > 0.8


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kernel": "precomputed"}, "GPClassifier for kernel='precomputed'"),
        ({"kernel": Tanh()}, "Mercer"),
        ({"kernel": 1.0 * sk.RBF() + sk.WhiteKernel()}, "WhiteKernel"),
        ({"likelihood": "softmax"}, "likelihood must be 'logistic', 'probit'"),
        ({"likelihood": Softmax(2)}, "likelihood must be 'logistic', 'probit'"),
        ({"likelihood": Gaussian(0.1)}, "likelihood must be"),
        ({"mean": means.Constant(estimate="integrate")}, "flat prior"),
        ({"classes": ["no"]}, "classes must be"),
        ({"max_basis": 0}, "max_basis"),
        ({"forget": 0.1, "n_sweeps": 2}, "partly lost"),
    ],
)
def test_refusals(options, text):
    model = OnlineGPClassifier(**({"kernel": KERNEL, "classes": ["no", "yes"]} | options))
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=text):
            call(X, TWO)
    assert not hasattr(model, "classes_")


def test_links_by_name_or_as_they_are():
    for link in ("logistic", Logistic()):
        model = streaming(link).partial_fit(X, TWO, ["no", "yes"])
        assert isinstance(model.likelihood_, Logistic)
