"""`RelevanceVectorClassifier`: what it solves, predicts and keeps, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import mercer
from mercer import RelevanceVectorClassifier
from mercer.errors import MercerWarning
from mercer.kernels import RBF, Tanh
from mercer.likelihoods import Probit, Softmax
from mercer.priors import GammaPrecision

HELD = {"kernel": RBF(1.0), "optimizer": None}


def rows(n=90, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    level = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.standard_normal(n)
    return X, np.array(["low", "middle", "high"])[np.digitize(level, [0.4, 1.5][: classes - 1])]


def test_weights_are_the_mode_and_the_evidence_is_laplaces():
    """(BKM 136 to 138) by hand, with a search for the mode of its own."""
    X, y = rows()
    w = np.linspace(0.5, 2.0, 90)
    model = RelevanceVectorClassifier(mean="zero", **HELD).fit(X, y, w)
    t = np.where(y == model.classes_[1], 1.0, -1.0)
    Phi, s = RBF(1.0)(X, model.relevance_), model.precisions_

    def loss(theta):
        return -w @ log_expit(t * (Phi @ theta)) + 0.5 * s @ theta**2

    mode = minimize(loss, np.zeros(len(s)), tol=1e-12)
    np.testing.assert_allclose(model.weights_, mode.x, rtol=1e-4, atol=1e-5)
    p = expit(Phi @ model.weights_)
    H = np.diag(s) + Phi.T @ ((w * p * (1 - p))[:, None] * Phi)
    evidence = -loss(model.weights_) + 0.5 * np.sum(np.log(s)) - 0.5 * np.linalg.slogdet(H)[1]
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, abs=1e-6)
    mean, std = model.predict_latent(X[:5], return_std=True)
    np.testing.assert_allclose(mean, Phi[:5] @ model.weights_, rtol=1e-9)
    var = np.einsum("ij,jk,ik->i", Phi[:5], np.linalg.inv(H), Phi[:5])
    np.testing.assert_allclose(std**2, var, rtol=1e-6)


def test_probabilities_integrate_over_the_weights():
    X, y = rows()
    model = RelevanceVectorClassifier(**HELD).fit(X, y)
    mean, std = model.predict_latent(X[:6], return_std=True)
    draws = np.random.default_rng(0).standard_normal((200_000, 1))
    wanted = np.mean(expit(mean + std * draws), axis=0)
    got = model.predict_proba(X[:6])
    np.testing.assert_allclose(got[:, 1], wanted, atol=3e-3)
    np.testing.assert_allclose(got.sum(axis=1), 1.0)
    assert np.mean(model.predict(X) == y) > 0.8 and model.n_relevance_ < 15


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "multinomial"])
def test_several_classes(multi_class, tmp_path):
    X, y = rows(120, classes=3)
    model = RelevanceVectorClassifier(multi_class=multi_class, **HELD).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (120, 3) and np.mean(model.predict(X) == y) > 0.75
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    if multi_class == "multinomial":
        assert isinstance(model.likelihood_, Softmax) and model.posterior_.is_coupled
        assert model.weights_.shape == (model.n_relevance_, 3)
        np.testing.assert_allclose(model.weights_.sum(axis=1), 0.0, atol=1e-8)
        np.testing.assert_allclose(
            model.predict_latent(X),
            RBF(1.0)(X, model.relevance_) @ model.weights_ + model.mean_.value,
            rtol=1e-8,
        )
    else:
        assert len(model.posteriors_) == len(model.weights_) == len(model.relevance_) == 3
    mercer.save(model, tmp_path / "a.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "a.mercer").predict_proba(X), proba)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "multinomial"])
def test_length_scales_are_found(multi_class):
    X, y = rows(70, classes=3)
    X = np.hstack([X, np.random.default_rng(5).normal(size=(70, 1))])
    held = RelevanceVectorClassifier(RBF([3.0, 3.0, 3.0]), multi_class=multi_class, optimizer=None)
    found = RelevanceVectorClassifier(multi_class=multi_class, tol=0.1).fit(X, y)
    assert np.mean(found.predict(X) == y) > 0.7
    before = held.fit(X, y).log_marginal_likelihood_value_
    assert found.log_marginal_likelihood_value_ > before - 6.0
    scales = found.kernel_.length_scale
    assert scales[2] > 1.3 * min(scales[:2])


def test_labels_at_random_are_left_alone():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    with pytest.warns(MercerWarning, match="no relevance vector was kept: by the evidence"):
        model = RelevanceVectorClassifier().fit(X, y)
    assert model.n_relevance_ == 0
    p = model.predict_proba(rng.normal(size=(200, 2)))[:, 1]
    assert np.quantile(p, 0.1) > 0.1 and np.quantile(p, 0.9) < 0.9


def test_class_weights():
    X, y = rows()
    counts = {label: int(np.sum(y == label)) for label in np.unique(y)}
    even = {label: 90 / (2 * count) for label, count in counts.items()}
    balanced = RelevanceVectorClassifier(class_weight="balanced", **HELD).fit(X, y)
    given = RelevanceVectorClassifier(class_weight=even, **HELD).fit(X, y)
    by_rows = RelevanceVectorClassifier(**HELD).fit(X, y, [even[label] for label in y])
    wanted = balanced.predict_proba(X)
    np.testing.assert_allclose(given.predict_proba(X), wanted)
    np.testing.assert_allclose(by_rows.predict_proba(X), wanted)
    one = {"low": 20.0}
    more = RelevanceVectorClassifier(class_weight=one, **HELD).fit(X, y)
    low = list(more.classes_).index("low")
    assert np.mean(more.predict_proba(X)[:, low]) > np.mean(wanted[:, low]) + 0.05


def test_separable_classes_and_a_remedy():
    X = np.linspace(-1, 1, 20)[:, None]
    y = X[:, 0] > 0
    plain = RelevanceVectorClassifier(**HELD).fit(X, y)
    assert plain.score(X, y) == 1.0 and np.all(np.isfinite(plain.predict_proba(X)))
    assert plain.n_relevance_ >= 1
    mild = RelevanceVectorClassifier(hyperprior=GammaPrecision(1.0, 1.0), **HELD).fit(X, y)
    assert mild.score(X, y) == 1.0
    assert mild.predict_proba([[0.3]])[0, 1] < plain.predict_proba([[0.3]])[0, 1]


@pytest.mark.parametrize("name", ["twice", "same columns", "two rows"])
def test_odd_data(name):
    X, y = rows(20)
    X, y = {
        "twice": (np.repeat(X[:5], 4, axis=0), np.tile(["a", "b"], 10)),
        "same columns": (np.hstack([X, X, np.ones((20, 1))]), y),
        "two rows": (np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])),
    }[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        model = RelevanceVectorClassifier().fit(X, y)
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_probabilities_far_away():
    X, y = rows(classes=3)
    far = np.array([[40.0, 40.0]])
    plain = RelevanceVectorClassifier(**HELD).fit(X, y)
    with pytest.warns(MercerWarning, match="far from every relevance vector"):
        std = plain.predict_latent(far, return_std=True)[1]
    healed = RelevanceVectorClassifier(augment=True, **HELD).fit(X, y)
    grown = healed.predict_latent(far, return_std=True)[1]
    assert np.all(grown > 2.0 * std)
    s = [np.median(1.0 / own) for own in plain.precisions_]
    np.testing.assert_allclose(grown[0] ** 2, std[0] ** 2 + s, rtol=1e-6)
    near, before = healed.predict_latent(X), plain.predict_latent(X, return_std=True)
    assert np.mean(np.abs(near - before[0]) < before[1]) > 0.95


def test_several_kernels_and_the_probit():
    X, y = rows()
    model = RelevanceVectorClassifier([RBF(1.0), Tanh(0.5)], "probit", optimizer=None).fit(X, y)
    assert isinstance(model.likelihood_, Probit) and len(model.relevance_) == 2
    parts = [k(X, own) for k, own in zip(model.kernel_, model.relevance_, strict=True)]
    wanted = np.hstack(parts) @ model.weights_ + model.mean_.value
    np.testing.assert_allclose(model.predict_latent(X), wanted, rtol=1e-9)


def test_centres_move():
    X, y = rows()
    still = RelevanceVectorClassifier(**HELD).fit(X, y)
    moved = RelevanceVectorClassifier(learn_centres=True, **HELD).fit(X, y)
    assert moved.log_marginal_likelihood_value_ >= still.log_marginal_likelihood_value_
    assert not np.all(np.isin(moved.relevance_, X))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "greedy"}, "algorithm must be one of"),
        ({"multi_class": "softmax"}, "multi_class must be one of"),
        ({"multi_class": "multinomial", "augment": True}, "goes with 'one_vs_rest'"),
        ({"multi_class": "multinomial", "algorithm": "em"}, "goes with 'one_vs_rest'"),
        ({"multi_class": "multinomial", "likelihood": "probit"}, "goes with 'one_vs_rest'"),
        ({"class_weight": "even"}, "class_weight must be None"),
        ({"class_weight": {"none": 2.0}}, "the classes are"),
        ({"class_weight": {"low": -2.0}}, "must be positive"),
        ({"likelihood": "normal"}, "likelihood must be"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_refusals(options, words):
    X, y = rows(30, classes=3)
    with pytest.raises(ValueError, match=words):
        RelevanceVectorClassifier(**options).fit(X, y)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 4))]
)
def test_labels_of_separable_classes_are_those_of_the_mode(seed):
    X = np.random.default_rng(seed).normal(size=(60, 1))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = RelevanceVectorClassifier(multi_class="multinomial").fit(X, y)
    assert np.mean(np.argmax(model.predict_latent(X), axis=1) == y) == 1.0
    assert model.score(X, y) >= 0.95


def test_probabilities_of_separable_classes_know_the_labels():
    # One class against the rest; with a floor of precisions at a deviation of 10,000 it is 0.48,
    # and 0.20 at a deviation of 100.
    rng = np.random.default_rng(0)

    def rings(n):
        y = rng.integers(0, 3, n)
        radius, angle = y + 1 + 0.2 * rng.normal(size=n), rng.uniform(0, 2 * np.pi, n)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y

    X, y = rings(120)
    model = RelevanceVectorClassifier(RBF(1.2), optimizer=None).fit(X, y)
    X, y = rings(500)
    assert -np.mean(np.log(model.predict_proba(X)[np.arange(500), y])) < 0.17


def test_classes_that_are_far_apart_are_told_apart_for_sure():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(100, 2)), rng.normal(size=(100, 2)) + 8.0])
    y = np.repeat([0, 1], 100)
    model = RelevanceVectorClassifier().fit(X, y)
    assert -np.mean(model.log_predictive_density(X, y)) < 0.06  # 0.17 with a deviation of 100
