"""`LaplacianProcessClassifier`: its probabilities, several classes, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit, ndtr
from sklearn.datasets import load_iris

import mercer
from mercer import LaplacianProcessClassifier, means
from mercer.errors import ConvergenceWarning, MercerWarning, UndeterminedWarning
from mercer.kernels import RBF, Callable, Tanh
from mercer.likelihoods import Logistic, Probit
from mercer.priors import Laplacian

KERNEL = RBF(1.0)
LOSSES = ("logistic", "soft_margin", "quadratic_soft_margin")
BRIEF = {"n_folds": 2, "n_penalties": 8}


def latent(X):
    return 2.0 * X[:, 0] + 1.5 * X[:, 1] ** 2 - 1.5


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(rng.uniform(size=n) < expit(latent(X)), "yes", "no")


def letters(a, b):
    return float(len(set(a) & set(b)))


@pytest.mark.parametrize(
    ("loss", "function"),
    [
        ("logistic", lambda y, f: np.logaddexp(0.0, -y * f)),
        ("soft_margin", lambda y, f: np.maximum(1.0 - y * f, 0.0)),
        ("quadratic_soft_margin", lambda y, f: np.maximum(1.0 - y * f, 0.0) ** 2),
    ],
)
def test_the_objective_is_that_of_the_loss(loss, function):
    X, y = rows()
    w = np.linspace(0.5, 2.0, 200)
    model = LaplacianProcessClassifier(KERNEL, loss, prior_scale=2.0, optimizer=None, mean="zero")
    model.fit(X, y, w)
    f = KERNEL(X, X[model.basis_indices_]) @ model.coef_
    sign = np.where(y == "yes", 1.0, -1.0)
    wanted = w @ function(sign, f) + np.sum(np.abs(model.coef_)) / 2.0
    assert model.objective_ == pytest.approx(wanted, rel=1e-7)
    assert model.gap_ <= 1e-6 and model.dual_objective_ <= model.objective_
    assert model.prior_ == Laplacian(2.0)
    if loss == "logistic":
        assert model.calibration_ is None and model.likelihood_ == Logistic()
        slope, offset = 1.0, 0.0
    else:
        assert model.likelihood_ == (Logistic() if loss == "soft_margin" else Probit())
        slope, offset = model.calibration_[0]
        assert slope > 0
    mean = model.predict_latent(X)
    np.testing.assert_allclose(mean, slope * f + offset, rtol=1e-8, atol=1e-10)


def test_error_bars_are_the_curvature_of_the_link():
    X, y = rows()
    model = LaplacianProcessClassifier(KERNEL, optimizer=None).fit(X, y)
    A = np.hstack([KERNEL(X, X[model.basis_indices_]), np.ones((200, 1))])
    sign, f = np.where(y == "yes", 1.0, -1.0), model.predict_latent(X)
    step = 1e-4
    log = model.likelihood_.log_density
    W = -(log(sign, f + step) - 2 * log(sign, f) + log(sign, f - step)) / step**2
    cov = np.linalg.inv(A.T @ (W[:, None] * A))
    std = model.predict_latent(X, return_std=True)[1]
    np.testing.assert_allclose(std**2, np.einsum("ij,jk,ik->i", A, cov, A), rtol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_probabilities_are_calibrated(loss):
    X, y = rows(400, seed=3)
    model = LaplacianProcessClassifier(RBF(1.5), loss, optimizer=None).fit(X, y)
    new, labels = rows(8000, seed=4)
    p = model.predict_proba(new)[:, 1]
    truth = expit(latent(new))
    assert np.mean(np.abs(p - truth)) < 0.07
    hit = labels == "yes"
    for low in np.arange(0.0, 1.0, 0.2):
        inside = (p >= low) & (p < low + 0.2)
        if np.sum(inside) > 300:
            assert abs(np.mean(hit[inside]) - np.mean(p[inside])) < 0.1
    best = -np.mean(np.log(np.where(hit, truth, 1 - truth)))
    assert -np.mean(model.log_predictive_density(new, labels)) < best + 0.04
    assert model.n_active_ < 60


def test_several_classes_are_each_against_the_rest():
    X, _ = rows(150)
    y = np.digitize(latent(X), [-1.5, 1.0])
    model = LaplacianProcessClassifier(KERNEL, optimizer=None, n_folds=3).fit(X, y)
    P = model.predict_proba(X)
    assert P.shape == (150, 3) and model.score(X, y) > 0.9
    alone = []
    for c in range(3):
        # folds have their share of each class: the prior scale is that of the whole fit
        scale = model.prior_[c].scale
        one = LaplacianProcessClassifier(KERNEL, prior_scale=scale, optimizer=None)
        alone.append(one.fit(X, y == c).predict_proba(X)[:, 1])
        np.testing.assert_array_equal(one.basis_indices_, model.basis_indices_[c])
    alone = np.column_stack(alone)
    np.testing.assert_allclose(P, alone / alone.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7)
    assert len(model.posteriors_) == 3 and model.predict_latent(X).shape == (150, 3)
    assert model.n_active_ == sum(map(len, model.coef_))


@pytest.mark.filterwarnings("ignore:the search for hyperparameters stopped early")
def test_the_default_finds_the_columns_that_matter():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 3)) * [1.0, 100.0, 0.01]
    y = X[:, 0] + 50.0 * X[:, 2] > 0.2
    model = LaplacianProcessClassifier(max_iter=3, **BRIEF).fit(X, y)
    scales = model.kernel_.length_scale / [1.0, 100.0, 0.01]
    assert scales[1] > 2.0 * max(scales[0], scales[2])
    assert model.score(X, y) > 0.95


@pytest.mark.filterwarnings("ignore:the search for hyperparameters stopped early")
def test_kernels_of_any_kind():
    X, y = rows(100)
    for kernel in (Tanh(0.5, 0.2), RBF(1.0)):
        model = LaplacianProcessClassifier(kernel, "soft_margin", max_iter=2, **BRIEF).fit(X, y)
        assert model.score(X, y) > 0.7
    matrix = LaplacianProcessClassifier("precomputed", prior_scale=1.0).fit(KERNEL(X), y)
    same = LaplacianProcessClassifier(KERNEL, prior_scale=1.0, optimizer=None).fit(X, y)
    got, wanted = matrix.predict_proba(KERNEL(X)), same.predict_proba(X)
    np.testing.assert_allclose(got, wanted, atol=1e-6)
    words = ["abcd", "bcda", "aeg", "fgab", "cd", "gfe", "bdf", "ace", "bc", "fa"]
    marks = np.array(["a" in word for word in words])
    model = LaplacianProcessClassifier(Callable(letters), prior_scale=5.0).fit(words, marks)
    assert model.predict_proba(["ab"]).shape == (1, 2)


def test_weights_are_rows_again_and_the_order_is_none():
    X, y = rows(80)
    w = np.ones(80)
    w[5:15], w[40:44] = 2.0, 0.0
    again = np.random.default_rng(0).permutation(np.repeat(np.arange(80), w.astype(int)))
    for loss in LOSSES:
        model = LaplacianProcessClassifier(KERNEL, loss, optimizer=None, **BRIEF).fit(X, y, w)
        other = LaplacianProcessClassifier(KERNEL, loss, optimizer=None, **BRIEF)
        other.fit(X[again], y[again])
        np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))


def test_a_saved_model_predicts_the_same(tmp_path):
    X, y = rows(80)
    three = np.where(X[:, 0] > 1.0, "more", y)
    for targets, loss in ((y, "soft_margin"), (three, "quadratic_soft_margin")):
        model = LaplacianProcessClassifier(KERNEL, loss, optimizer=None, **BRIEF).fit(X, targets)
        mercer.save(model, tmp_path / "model.mercer")
        back = mercer.load(tmp_path / "model.mercer")
        np.testing.assert_array_equal(model.predict_proba(X), back.predict_proba(X))
        np.testing.assert_array_equal(model.calibration_, back.calibration_)


@pytest.mark.filterwarnings("ignore:the search for hyperparameters stopped early")
def test_labels_that_can_be_separated_and_few_rows():
    X = np.linspace(-2, 2, 16)[:, None]
    y = X[:, 0] > 0.1
    for loss in LOSSES:
        model = LaplacianProcessClassifier(likelihood=loss, max_iter=2, n_penalties=8).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), y)
        assert np.all(np.isfinite(model.predict_latent(X, return_std=True)))
    with pytest.warns(UndeterminedWarning, match="too few"):
        model = LaplacianProcessClassifier().fit(X[[0, 15]], ["a", "b"])
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_probit_margins_have_probit_probabilities():
    X, y = rows(100)
    model = LaplacianProcessClassifier(KERNEL, "quadratic_soft_margin", optimizer=None).fit(X, y)
    mean, std = model.predict_latent(X, return_std=True)
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], ndtr(mean / np.sqrt(1 + std**2)), atol=1e-8
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"likelihood": "probit"}, "likelihood must be one of 'logistic', 'soft_margin'"),
        ({"likelihood": Probit()}, "likelihood must be one of 'logistic', 'soft_margin'"),
        ({"likelihood": Logistic}, "brackets"),
        ({"prior": "none"}, "prior must be one of"),
        ({"prior_scale": -1.0}, "prior_scale must be a positive number"),
        ({"optimizer": "adam"}, "optimizer must be one of"),
    ],
    ids=str,
)
def test_options_that_are_none_are_refused(options, text):
    X, y = rows(30)
    with pytest.raises(ValueError, match=text):
        LaplacianProcessClassifier(**options).fit(X, y)
    assert LaplacianProcessClassifier(KERNEL, Logistic(), prior_scale=1.0, optimizer=None).fit(
        X, y
    ).classes_.tolist() == ["no", "yes"]


def tilt(X):
    return 3.0 * X[:, 0]


def ones(X):
    return np.ones((len(X), 1))


@pytest.mark.parametrize("loss", LOSSES[1:])
@pytest.mark.parametrize(
    "mean",
    [
        means.Linear(0.5, [3.0, 0.0], estimate=None),
        means.Function(tilt),
        means.Functions(ones, rest=means.Function(tilt)),
    ],
    ids=["linear", "function", "partly"],
)
def test_fixed_means_are_calibrated_with_the_margins(loss, mean):
    X, y = rows(80)
    model = LaplacianProcessClassifier(KERNEL, loss, prior_scale=1.0, optimizer=None, mean=mean)
    model.fit(X, y)
    slope, offset = model.calibration_[0]
    new = np.array([[50.0, 50.0], [-60.0, 40.0]])  # where no kernel reaches
    given, found = mean.fixed_part(new)[:, 0], model.predict_latent(new)
    if mean.estimate is None:
        np.testing.assert_allclose(found, slope * mean(new)[:, 0] + offset)
    else:  # beside a constant that is estimated
        np.testing.assert_allclose(np.diff(found), slope * np.diff(given))


def test_fixed_means_of_several_classes_are_those_of_each():
    X = rows(90)[0]
    y = np.digitize(X[:, 0], [-0.4, 0.4])
    mean = means.Linear([-1.0, 0.5, -2.0], [[-2.0, 0.0, 2.0], [0.0, 0.3, 0.0]], estimate=None)
    for loss in LOSSES:
        model = LaplacianProcessClassifier(KERNEL, loss, prior_scale=1.0, optimizer=None, mean=mean)
        model.fit(X, y)
        new = np.array([[50.0, 50.0]])
        wanted = mean(new)[0]
        if model.calibration_ is not None:
            wanted = model.calibration_[:, 0] * wanted + model.calibration_[:, 1]
        np.testing.assert_allclose(model.predict_latent(new)[0], wanted)


def iris(half):
    X, kinds = load_iris(return_X_y=True)
    mine = np.random.default_rng(1).permutation(150)[75 * half : 75 * (half + 1)]
    return X[mine], kinds[mine]


def rare(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 2))
    return X, rng.uniform(size=500) < expit(1.6 * X[:, 0] - 4.6)


def overlapping(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 2))
    return X, rng.uniform(size=200) < expit(2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1])


@pytest.mark.parametrize("make", [iris, pytest.param(rare, marks=pytest.mark.slow), overlapping])
def test_margins_are_as_probable_as_the_logistic_loss_has_them(make):
    # Error bars and slopes that follow each other without end made probabilities of 1/2 of
    # classes that are apart, and of rare ones.
    X, y = make(0)
    new, labels = make(1)
    loss, rates = {}, np.mean(y[:, None] == np.unique(y), axis=0)
    for likelihood in LOSSES:
        few = {"optimizer": None, "n_penalties": 14, "n_folds": 4}
        model = LaplacianProcessClassifier(RBF(2.0), likelihood, **few)
        with warnings.catch_warnings():
            if make is rare:
                warnings.filterwarnings("ignore", "as far as functions of this kernel can tell")
                warnings.filterwarnings("ignore", "all coefficients are 0")
            model.fit(X, y)
        loss[likelihood] = -np.mean(model.log_predictive_density(new, labels))
        assert np.max(np.abs(np.mean(model.predict_proba(X), axis=0) - rates)) < 0.06
    for likelihood in LOSSES[1:]:
        assert loss[likelihood] < 1.1 * loss["logistic"] + 0.02


@pytest.mark.parametrize("likelihood", LOSSES[1:])
def test_margins_of_too_few_functions_are_calibrated_too(likelihood):
    X, y = rows(60)
    options = {"prior_scale": 10.0, "max_active": 2, "optimizer": None}
    with pytest.warns(ConvergenceWarning, match="raise max_active") as caught:
        model = LaplacianProcessClassifier(KERNEL, likelihood, **options).fit(X, y)
    assert len(caught) == 1  # and nothing of weights
    assert model.status_ == "stopped" and model.n_active_ <= 2
    assert model.calibration_.shape == (1, 2)
    rate = np.mean(y == "yes")
    assert np.mean(model.predict_proba(X)[:, 1]) == pytest.approx(rate, abs=0.06)


def test_classes_that_cannot_be_held_out_are_not_calibrated():
    X, y = np.array([[0.0], [1.0], [2.0]]), ["a", "b", "c"]
    model = LaplacianProcessClassifier(KERNEL, "soft_margin", optimizer=None, n_folds=2)
    with pytest.warns(MercerWarning) as caught:
        model.fit(X, y)
    assert any(w.category is UndeterminedWarning for w in caught)
    assert model.calibration_.shape == (3, 2)
    assert np.sum(np.all(model.calibration_ == [1.0, 0.0], axis=1)) == 1
    np.testing.assert_allclose(np.sum(model.predict_proba(X), axis=1), 1.0)


def test_a_class_that_is_the_likelier_one_nowhere_has_its_share():
    """No function lowers a soft margin then, but for what rounding makes of penalties."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-5, 5, (80, 1)), rng.random(80) < 0.1
    with pytest.warns(
        UndeterminedWarning, match="one of the two classes is the likelier one everywhere"
    ):
        model = LaplacianProcessClassifier(RBF(4.0), "soft_margin", optimizer=None).fit(X, y)
    assert model.status_ == "certified" and model.n_active_ == 0 and model.path_ is None
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], np.mean(y), atol=0.03)


def log_losses(make, prior, **options):
    """Return minus the log probabilities of new labels."""
    (X, y), (new, labels) = make(0), make(1)
    model = LaplacianProcessClassifier(prior=prior, optimizer=None, **options).fit(X, y)
    assert (model.calibration_ is not None) == (prior == "feature_selection")
    return -model.log_predictive_density(new, labels)


def apart(seed):
    y = np.repeat([0, 1], 40)
    return np.random.default_rng(seed).normal(size=(80, 2)) + 8.0 * y[:, None], y


def ring(seed):
    X = np.random.default_rng(seed).normal(size=(150, 2))
    return X, np.sum(X**2, axis=1) > 1.4


@pytest.mark.parametrize("prior", ["laplacian", "feature_selection"])
def test_logistic_probabilities_of_classes_that_can_be_told_apart(prior):
    """Under feature selection nothing bounds the function, nor the error bars about it."""
    losses = log_losses(apart, prior, kernel=RBF(4.0))
    assert np.mean(losses) < 0.1 and np.max(losses) < 0.7
    losses = log_losses(ring, prior, kernel=RBF(1.0))
    assert np.mean(losses) < 0.12 and np.max(losses) < 7.0


def test_feature_selection_finds_a_half_plane_of_weighted_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y, weights = X[:, 0] > 0, np.random.default_rng(1).exponential(size=100)
    model = LaplacianProcessClassifier(RBF(1.0), prior="feature_selection", optimizer=None)
    model.fit(X, y, sample_weight=weights)
    assert 0 < model.n_active_ < 20
    assert model.score(X, y) > 0.9


def test_two_rows_and_all_that_is_given_leave_nothing_to_warn_of():
    model = LaplacianProcessClassifier(RBF(1.0), prior="feature_selection", prior_scale=3.0)
    model.set_params(optimizer=None).fit([[-5.0, -5.0], [5.0, 5.0]], [0, 1])  # warnings are errors
    assert model.n_active_ == 1 and model.calibration_ is None


def test_feature_selection_of_a_given_scale_is_calibrated_too():
    X, y = apart(0)
    model = LaplacianProcessClassifier(RBF(4.0), prior="feature_selection", prior_scale=3.0)
    model.set_params(optimizer=None).fit(X, y)
    assert model.prior_.scale == 3.0 and model.calibration_.shape == (1, 2)
    assert np.mean(-model.log_predictive_density(X, y)) < 0.1


@pytest.mark.parametrize("likelihood", LOSSES)
def test_functions_of_folds_of_any_size_have_one_calibration(likelihood):
    """Under feature selection nothing bounds them, and that of one fold drowned the others."""
    rng = np.random.default_rng(200)
    X, new = rng.normal(size=(200, 2)), rng.normal(size=(1000, 2))
    y, labels = X[:, 0] * X[:, 1] > 0, new[:, 0] * new[:, 1] > 0
    options = {"prior": "feature_selection", "optimizer": None, "tol": 1e-4}
    model = LaplacianProcessClassifier(RBF(1.0), likelihood, **options).fit(X, y)
    assert model.score(X, y) > 0.95 and model.score(new, labels) > 0.9
    assert np.mean(-model.log_predictive_density(new, labels)) < 0.25


@pytest.mark.parametrize("likelihood", LOSSES[1:])
def test_coefficients_that_hardly_decay_are_not_sure(likelihood):
    """Error bars that drown all held-out labels would be made up for by slopes without end."""
    rng = np.random.default_rng(29)

    def draw(n):
        X = rng.normal(size=(n, 5))
        return X, rng.random(n) < expit(3.0 * np.sin(2.0 * X[:, 0]))

    (X, y), (new, labels) = draw(20), draw(1000)
    model = LaplacianProcessClassifier(RBF(1.5), likelihood, prior="weight_decay", optimizer=None)
    model.fit(X, y)
    assert np.mean(-model.log_predictive_density(new, labels)) < 1.0
