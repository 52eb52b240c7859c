"""How Laplacian processes choose noise, prior scale and kernel, and what that is worth."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import LaplacianProcessClassifier, LaplacianProcessRegressor
from mercer.cli.summary import with_options
from mercer.errors import ConvergenceWarning, MercerWarning, UndeterminedWarning
from mercer.estimators import laplacian_kernel
from mercer.estimators.laplacian_rows import merged
from mercer.evidence.pattern_search import free_directions, search_kernel
from mercer.kernels import RBF, Matern, Tanh
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace
from mercer.params import Parameter


def function(X):
    return np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2


def rows(n, seed, draw):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, function(X) + draw(rng, n)


def normal(rng, n):
    return 0.3 * rng.standard_normal(n)


def student(rng, n):
    return 0.2 * rng.standard_t(3, n)


@pytest.mark.parametrize(
    ("noise", "draw"),
    [
        (None, normal),
        (Laplace(), lambda rng, n: rng.laplace(0.0, 0.25, n)),
        (Huber(), student),
        (EpsilonInsensitive(0.2), lambda rng, n: rng.uniform(-0.5, 0.5, n)),
    ],
    ids=["gaussian", "laplace", "huber", "insensitive"],
)
def test_intervals_hold_what_they_are_to_hold(noise, draw):
    held = []
    few = {"n_folds": 3, "n_penalties": 12}
    for seed in range(3 if noise is None else 2):
        X, y = rows(90, seed, draw)
        model = LaplacianProcessRegressor(RBF([1.0, 2.0]), noise, optimizer=None, **few).fit(X, y)
        new, observed = rows(500, 100 + seed, draw)
        low, high = model.predict_interval(new, 0.9)
        held.append(np.mean((low <= observed) & (observed <= high)))
        assert model.n_active_ < 60
    assert abs(np.mean(held) - 0.9) < 0.05


def test_the_penalty_is_near_the_best_there_is():
    X, y = rows(150, 0, normal)
    new, observed = rows(4000, 1, normal)
    kernel = RBF([1.0, 2.0])
    model = LaplacianProcessRegressor(kernel, optimizer=None).fit(X, y)
    path = model.path_
    assert np.all(np.diff(path["penalty"]) < 0) and path["n_active"][0] < 1
    best = int(np.argmax(path["value"]))
    assert 0 < best < len(path["value"]) - 1
    assert path["penalty"][best] == pytest.approx(model.likelihood_.noise / model.prior_.scale)
    density = np.mean(model.log_predictive_density(new, observed))
    others = []
    for penalty in path["penalty"][1:]:
        noise = model.likelihood_.noise
        other = LaplacianProcessRegressor(
            kernel, Gaussian(noise), prior_scale=noise / penalty, optimizer=None
        ).fit(X, y)
        others.append(np.mean(other.log_predictive_density(new, observed)))
    assert density > max(others) - 0.05
    # what was held out says what is to be expected
    assert path["value"][best] == pytest.approx(density, abs=0.15)


def test_what_is_given_is_kept_and_what_is_open_follows():
    X, y = rows(120, 0, normal)
    kernel = RBF([1.0, 2.0])
    free = LaplacianProcessRegressor(kernel, optimizer=None).fit(X, y)
    assert free.likelihood_.noise == pytest.approx(0.09, rel=0.6)
    given = LaplacianProcessRegressor(kernel, Gaussian(0.09), optimizer=None).fit(X, y)
    assert given.likelihood_ == Gaussian(0.09) and given.prior_.scale > 0
    scale = free.prior_.scale
    other = LaplacianProcessRegressor(kernel, prior_scale=scale, optimizer=None).fit(X, y)
    assert other.prior_.scale == scale
    assert other.likelihood_.noise == pytest.approx(free.likelihood_.noise, rel=0.6)
    held = LaplacianProcessRegressor(kernel, Laplace(Parameter(0.2)), optimizer=None).fit(X, y)
    assert held.likelihood_.scale == 0.2


@pytest.mark.parametrize(
    ("noise", "wanted"),
    [  # by the residuals of the mean, or of the median, with a degree of freedom less
        (Gaussian(), lambda r: Gaussian(np.sum((r - np.mean(r)) ** 2) / (len(r) - 1))),
        (Laplace(), lambda r: Laplace(np.sum(np.abs(r - np.median(r))) / (len(r) - 1))),
    ],
    ids=["gaussian", "laplace"],
)
def test_noise_beside_a_prior_scale_too_small_for_any_function(noise, wanted):
    # No penalty from the largest of the path on has a function: the noise may be as it is.
    X, y = rows(60, 0, normal)
    model = LaplacianProcessRegressor(RBF([1.0, 2.0]), noise, prior_scale=1e-5, optimizer=None)
    with pytest.warns(MercerWarning, match="all coefficients are 0"):
        model.fit(X, y)
    for name, value in wanted(y).parameters.items():
        assert getattr(model.likelihood_, name) == pytest.approx(float(value.value), rel=1e-6)
    assert model.prior_.scale == 1e-5 and model.status_ == "certified"
    low, high = model.predict_interval(X, 0.9)
    assert np.mean((low <= y) & (y <= high)) > 0.8


def test_a_prior_scale_too_large_for_the_path_is_told_of():
    X, y = rows(60, 0, normal)
    options = {"prior_scale": 1e5, "optimizer": None, "n_folds": 3}
    with pytest.warns(MercerWarning, match="noise and error bars are too large") as caught:
        LaplacianProcessRegressor(RBF([1.0, 2.0]), n_penalties=12, **options).fit(X, y)
    said = [with_options(str(one.message)) for one in caught]
    assert any(text.endswith("too large. Give a smaller --prior-scale, or none") for text in said)


@pytest.mark.parametrize("prior", ["weight_decay", "feature_selection"])
def test_other_priors_choose_their_scale(prior):
    X, y = rows(80, 0, normal)
    few = {"n_folds": 3, "n_penalties": 12}
    model = LaplacianProcessRegressor(RBF([1.0, 2.0]), prior=prior, optimizer=None, **few).fit(X, y)
    assert model.score(X, y) > 0.9
    assert 0.03 < model.likelihood_.noise < 0.2
    again = LaplacianProcessRegressor(
        RBF([1.0, 2.0]),
        model.likelihood_,
        prior=prior,
        prior_scale=model.prior_.scale,
        optimizer=None,
    ).fit(X, y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-3, atol=1e-3)


def test_outliers_do_not_move_a_robust_fit():
    X, y = rows(120, 2, normal)
    y[:6] += 30.0
    new = rows(500, 3, normal)[0]
    for noise in (Huber(), Laplace()):
        model = LaplacianProcessRegressor(RBF([1.0, 2.0]), noise, optimizer=None).fit(X, y)
        assert np.sqrt(np.mean((model.predict(new) - function(new)) ** 2)) < 0.45
    # which squares do not survive
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        model = LaplacianProcessRegressor(RBF([1.0, 2.0]), optimizer=None).fit(X, y)
    assert np.sqrt(np.mean((model.predict(new) - function(new)) ** 2)) > 0.5


@pytest.mark.filterwarnings("ignore:the search for hyperparameters stopped early")
def test_units_of_inputs_and_targets_change_nothing():
    X, y = rows(60, 4, normal)
    few = {"max_iter": 4, "n_folds": 3, "n_penalties": 12}
    plain = LaplacianProcessRegressor(**few).fit(X, y)
    other = LaplacianProcessRegressor(**few).fit(X * [1000.0, 0.01] + 7.0, 500.0 * y)
    got = other.predict(X * [1000.0, 0.01] + 7.0, return_std=True)
    for a, b in zip(got, plain.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a / 500.0, b, rtol=2e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore:the search for hyperparameters stopped early")
def test_a_kernel_is_searched_from_the_values_it_has():
    X, y = rows(80, 5, normal)
    start = 3.0 * Matern(Parameter([0.2, 0.2]), nu=2.5)
    with pytest.warns(MercerWarning, match="41 functions follow 80 rows"):
        held = LaplacianProcessRegressor(start, optimizer=None).fit(X, y)
    assert held.kernel_ == start and not len(held.history_["value"])
    found = LaplacianProcessRegressor(start, max_iter=12, n_folds=3, n_penalties=12).fit(X, y)
    values = found.history_["value"]
    assert found.n_iter_ == len(values) <= 12
    assert np.max(values) > values[0] + 0.1
    # the variance is one with the scale of the coefficients, which is chosen
    assert found.kernel_.parameters["variance"].value == pytest.approx(3.0)
    fixed = RBF(Parameter(1.0, fixed=True))
    assert LaplacianProcessRegressor(fixed, n_folds=2).fit(X, y).kernel_ == fixed


def test_a_function_without_noise_is_found_by_a_wide_kernel():
    """That shows after many penalties; a narrow one would have a function for each row."""
    X = np.random.default_rng(0).uniform(-2, 2, (300, 2))
    model = LaplacianProcessRegressor(random_state=0).fit(X, function(X))
    new = np.random.default_rng(1).uniform(-2, 2, (300, 2))
    assert model.status_ == "certified" and model.n_active_ < 60
    assert np.std(model.predict(new) - function(new)) < 0.02 * np.std(function(new))


def test_the_directions_of_a_search():
    assert free_directions(RBF([1.0, 2.0]), True, True).tolist() == [[1.0], [1.0]]
    assert free_directions(2.0 * RBF([1.0, 2.0]), False, True).shape == (3, 2)
    assert free_directions(2.0 * RBF([1.0, 2.0]), False, False).shape == (3, 3)
    assert free_directions(Tanh(1.0, 0.3), False, True).shape == (2, 2)


def test_a_pattern_search_finds_a_maximum_within_bounds():
    kernel = RBF([1.0, 1.0])
    bounds = np.array([[-1.0, 2.0], [-5.0, 5.0]])

    def value(k):
        return -((k.theta[0] - 3.0) ** 2) - (k.theta[1] + 1.0) ** 2

    end = search_kernel(kernel, np.eye(2), bounds, value, 60, [], None)
    assert end.status == "converged" and end.kernel.theta[0] == 2.0
    assert abs(end.kernel.theta[1] + 1.0) < 0.3
    short = search_kernel(kernel, np.eye(2), bounds, value, 3, [np.array([1.9, -1.0])], None)
    assert short.status == "stopped" and len(short.values) <= 6
    assert short.kernel.theta[0] >= 1.9

    def broken(k):
        if k.theta[0] > 0.5:
            raise KeyboardInterrupt
        return 0.0

    with pytest.warns(UserWarning, match="best hyperparameters so far"):
        assert search_kernel(kernel, np.eye(2), bounds, broken, 9, [], None).status == "interrupted"


def test_rows_are_merged_in_an_order_of_their_own():
    X = np.array([[1.0], [0.0], [1.0], [0.0], [1.0]])
    Y = np.array([[2.0], [5.0], [2.0], [5.0], [3.0]])
    own = merged(X, Y, np.array([1.0, 1.0, 2.0, 0.5, 1.0]), np.arange(5) + 10, None)
    np.testing.assert_array_equal(own.X[:, 0], [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(own.Y[:, 0], [5.0, 2.0, 3.0])
    np.testing.assert_array_equal(own.weights, [1.5, 3.0, 1.0])
    np.testing.assert_array_equal(own.first, [11, 10, 14])
    np.testing.assert_array_equal(own.kinds, [0, 1, 1])
    np.testing.assert_array_equal(own.centres, [0, 1])
    part = own.take(np.array([1, 2]))
    np.testing.assert_array_equal(part.kinds, [0, 0])
    some = own.some(2, np.random.default_rng(0))
    assert len(np.unique(some.X)) == 1 and len(own.some(9, np.random.default_rng(0)).Y) == 3


def waves(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(2.0 * X[:, 0]) + 0.2 * rng.standard_normal(n)


@pytest.mark.parametrize(
    "noise", [Laplace(), EpsilonInsensitive(0.1), EpsilonInsensitive()], ids=repr
)
def test_noise_with_kinks_is_estimated_under_weight_decay(noise):
    X, y = waves()
    few = {"n_folds": 3, "n_penalties": 11}
    model = LaplacianProcessRegressor(
        RBF(0.6), noise, prior="weight_decay", optimizer=None, **few
    ).fit(X, y)
    assert np.all(np.isfinite(model.path_["value"][:5]))
    assert np.sqrt(np.mean((model.predict(X) - np.sin(2.0 * X[:, 0])) ** 2)) < 0.12
    size = np.sqrt(model.likelihood_.conditional_var(np.zeros(1))[0])
    assert 0.14 < size < 0.28


@pytest.mark.parametrize("prior", ["laplacian", "weight_decay", "feature_selection"])
def test_rows_of_no_weight_are_said_to_tell_nothing_of_noise(prior):
    X, y = waves()
    model = LaplacianProcessRegressor(RBF(0.6), prior=prior, optimizer=None, n_penalties=5)
    with pytest.warns(UndeterminedWarning, match="weigh 1 together") as found:
        model.fit(X, y, np.full(80, 1.0 / 80.0))
    assert not any("nothing in the inputs" in str(w.message) for w in found)
    if prior != "weight_decay":
        assert model.likelihood_.noise == pytest.approx(np.var(y), rel=1e-6)


@pytest.mark.parametrize("prior", ["laplacian", "weight_decay"])
@pytest.mark.parametrize("scale", [None, 0.5])
@pytest.mark.parametrize("noise", [Huber(), EpsilonInsensitive()], ids=repr)
def test_objectives_are_those_of_the_noise_that_is_kept(noise, scale, prior):
    X, y = waves(50)
    options = {"prior": prior, "prior_scale": scale, "optimizer": None, "mean": "zero"}
    options |= {"n_penalties": 9, "n_folds": 2}
    model = LaplacianProcessRegressor(RBF(0.6), noise, **options).fit(X, y)
    held = LaplacianProcessRegressor(
        RBF(0.6), model.likelihood_, **options | {"prior_scale": model.prior_.scale}
    ).fit(X, y)
    assert scale is None or model.prior_.scale == scale
    assert model.objective_ == pytest.approx(held.objective_, rel=1e-5)
    f = model.predict(X)
    best = model.likelihood_.log_density(y, y)  # for which nothing is counted
    lost = float(np.sum(best - model.likelihood_.log_density(y, f)))
    size = np.abs(model.coef_) / model.prior_.scale
    lost += float(np.sum(size if prior == "laplacian" else size**2))
    assert model.objective_ == pytest.approx(lost, rel=1e-6)


@pytest.mark.parametrize("noise", [None, Laplace(), Huber()], ids=repr)
def test_the_path_of_weight_decay_begins_where_next_to_nothing_is_fitted(noise):
    X, y = waves(50)
    first = []
    for size, weight in ((1.0, 1.0), (1e4, 1.0), (1.0, 1e4)):
        model = LaplacianProcessRegressor(
            RBF(0.6), noise, prior="weight_decay", optimizer=None, n_penalties=9, n_folds=2
        )
        model.fit(X, size * y, np.full(50, weight))
        first.append(model.path_["value"][0] + np.log(size))
        assert np.argmax(model.path_["value"]) > 0
    np.testing.assert_allclose(first, first[0], atol=0.05)


@pytest.mark.parametrize("noise", [None, Laplace(), Huber()], ids=repr)
def test_the_size_of_the_kernel_makes_no_difference(noise):
    X, y = waves()
    one, other = (
        LaplacianProcessRegressor(c * RBF(0.6), noise, optimizer=None, n_folds=2).fit(X, y)
        for c in (1.0, 2.0**-44)
    )
    assert one.n_active_ > 0
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-3, atol=1e-4)


def test_open_huber_noise_has_the_units_of_the_targets():
    X, y = waves()
    model = LaplacianProcessRegressor(RBF(0.6), Huber(), optimizer=None, n_folds=2)
    found = [
        model.fit(X, c * y).likelihood_.scale / c  # of the model as it is then
        for c in (1.0, 2.0**-13, 2.0**13)
    ]
    np.testing.assert_allclose(found, found[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("prior", "sd"),
    [("laplacian", 0.03), ("feature_selection", 0.03), ("feature_selection", 1e-3)],
)
def test_little_noise_is_found(prior, sd):
    """Shrinkage leaves more: feature selection, which does not shrink, finds its own."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (120, 1))
    y = np.sin(2.0 * X[:, 0]) + sd * rng.standard_normal(120)
    model = LaplacianProcessRegressor(prior=prior, random_state=0).fit(X, y)
    assert np.sqrt(model.likelihood_.noise) == pytest.approx(sd, rel=0.5)
    new = np.linspace(-2.8, 2.8, 200)[:, None]
    mean, std = model.predict(new, return_std=True)
    assert np.max(np.abs(mean - np.sin(2.0 * new[:, 0])) / std) < 3.0


def test_a_path_ends_where_rounding_leaves_no_proof_and_the_fit_is_certified():
    """Without noise held-out rows like penalties best that are too small for any proof."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (200, 1))
    y = np.sin(2.0 * X[:, 0])
    model = LaplacianProcessRegressor(RBF(1.0), Huber(), optimizer=None, n_penalties=60).fit(X, y)
    assert model.status_ == "certified"
    new = np.linspace(-2.9, 2.9, 100)[:, None]
    assert np.max(np.abs(model.predict(new) - np.sin(2.0 * new[:, 0]))) < 2e-3


def test_kernels_for_labels_are_compared_by_shorter_paths(monkeypatch):
    counts, chosen = {}, laplacian_kernel.choose

    def counting(columns, targets, options, judge):
        counts.setdefault(targets.of_labels, set()).add(options.n_penalties)
        return chosen(columns, targets, options, judge=judge)

    monkeypatch.setattr(laplacian_kernel, "choose", counting)
    X = np.random.default_rng(0).uniform(-3, 3, (40, 1))
    options = {"n_folds": 2, "max_iter": 1}
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        LaplacianProcessRegressor(RBF(1.0), **options).fit(X, np.sin(X[:, 0]))
        LaplacianProcessClassifier(RBF(1.0), **options).fit(X, X[:, 0] > 0)
    assert counts == {False: {30}, True: {17}}


def test_noise_does_not_collapse_where_functions_could_follow_single_rows():
    """Residuals of a kernel that is much too narrow are next to none."""
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-3, 3, (80, 2)), rng.uniform(-3, 3, (500, 2))
    y, observed = (np.sin(x[:, 0]) + 0.2 * rng.normal(size=len(x)) for x in (X, new))
    options = {"prior": "feature_selection", "optimizer": None}
    with warnings.catch_warnings(action="ignore", category=MercerWarning):
        model = LaplacianProcessRegressor(RBF(0.3), **options).fit(X, y)
    low, high = model.predict_interval(new, coverage=0.95)
    assert np.mean((low < observed) & (observed < high)) > 0.9


def test_noise_of_feature_selection_is_that_of_its_own_residuals():
    rng = np.random.default_rng(20)
    X = rng.normal(size=(1200, 3))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=1200))[:200]
    kernel = RBF([2.023, 8.989, 98.59])
    model = LaplacianProcessRegressor(kernel, prior="feature_selection", optimizer=None)
    model.fit(X[:200], y)
    left = np.sum((y - model.predict(X[:200])) ** 2) / (200 - model.n_active_ - 1)
    assert model.likelihood_.noise == pytest.approx(left, rel=0.1)
