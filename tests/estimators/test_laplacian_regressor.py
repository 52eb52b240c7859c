"""`LaplacianProcessRegressor`: what it solves, predicts and keeps, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mercer
from mercer import LaplacianProcessRegressor, means
from mercer.errors import ConvergenceWarning, MercerWarning, TooLargeError, UndeterminedWarning
from mercer.evidence import expansion_choice
from mercer.kernels import RBF, Callable, Tanh
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, StudentT
from mercer.priors import FeatureSelection, Laplacian, WeightDecay

KERNEL = RBF(0.7)
HELD = {"kernel": KERNEL, "likelihood": Gaussian(0.04), "prior_scale": 0.5, "optimizer": None}


def rows(n=80, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, 2.0 + np.sinc(X[:, 0]) + noise * rng.standard_normal(n)


def bumps(X):
    return np.column_stack([np.sin(X[:, 0]), X[:, 0], np.cos(3.0 * X[:, 0])])


def overlap(a, b):
    return float(len(set(a) & set(b)))


def laplacian_kernel(x, z):
    return float(np.exp(-np.abs(x[0] - z[0])))


# --- what is solved -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noise", [Gaussian(0.04), Laplace(0.2), Huber(0.2), EpsilonInsensitive(0.1, 0.2)], ids=repr
)
def test_the_objective_is_minus_the_log_posterior_in_nats(noise):
    X, y = rows()
    w = np.linspace(0.5, 2.0, 80)
    model = LaplacianProcessRegressor(KERNEL, noise, prior_scale=0.5, optimizer=None)
    model.fit(X, y, w)
    np.testing.assert_array_equal(model.posterior_.basis.points, X[model.basis_indices_])
    f = model.predict(X, latent=True)
    by_hand = KERNEL(X, X[model.basis_indices_]) @ model.coef_ + model.mean_.value
    np.testing.assert_allclose(f, by_hand, rtol=1e-10)
    top = noise.log_density(0.0, 0.0)  # constants are left out
    wanted = w @ (top - noise.log_density(y, f)) + np.sum(np.abs(model.coef_)) / 0.5
    assert model.objective_ == pytest.approx(wanted, rel=1e-9)
    assert model.dual_objective_ <= model.objective_
    assert model.gap_ <= 1e-6 and model.status_ == "certified"
    assert model.n_active_ == len(model.coef_) == len(model.basis_indices_) < 40
    assert np.all(model.coef_ != 0)
    assert model.prior_ == Laplacian(0.5) and model.likelihood_ == noise
    assert model.path_ is None


@pytest.mark.parametrize(
    ("prior", "kind"), [("weight_decay", WeightDecay), ("feature_selection", FeatureSelection)]
)
def test_other_priors(prior, kind):
    X, y = rows()
    model = LaplacianProcessRegressor(**HELD, prior=prior).fit(X, y)
    assert model.prior_ == kind(0.5)
    f = model.predict(X, latent=True)
    wanted = np.sum((y - f) ** 2) / 0.08 + np.sum(model.prior_.gamma(model.coef_))
    assert model.objective_ == pytest.approx(wanted, rel=1e-6)
    plain = LaplacianProcessRegressor(**HELD).fit(X, y)
    if prior == "weight_decay":
        assert model.n_active_ == 80
        # the Gaussian process that it is
        K = 0.125 * KERNEL(X) @ KERNEL(X) + 1e6
        new = np.linspace(-2, 2, 5)[:, None]
        cross = 0.125 * KERNEL(new, X) @ KERNEL(X) + 1e6
        centred = y - y.mean()
        mean = cross @ np.linalg.solve(K + 0.04 * np.eye(80), centred) + y.mean()
        np.testing.assert_allclose(model.predict(new), mean, atol=1e-4)
        inner = 0.125 * KERNEL(new, X) @ KERNEL(X, new) + 1e6
        var = inner - cross @ np.linalg.solve(K + 0.04 * np.eye(80), cross.T)
        std = model.predict(new, return_std=True, latent=True)[1]
        np.testing.assert_allclose(std, np.sqrt(np.diagonal(var)), rtol=1e-3)
    else:
        assert model.n_active_ <= plain.n_active_


def test_standard_deviations_are_those_of_the_corrected_equation():
    X, y = rows()
    model = LaplacianProcessRegressor(**HELD, mean="zero").fit(X, y)
    K = KERNEL(X, X[model.basis_indices_])
    new = np.linspace(-3, 3, 7)[:, None]
    k = KERNEL(new, X[model.basis_indices_])
    # (BKM 112) with the factor that it lacks
    var = 0.04 + 0.04 * np.einsum("ij,ij->i", k, np.linalg.solve(K.T @ K, k.T).T)
    std = model.predict(new, return_std=True)[1]
    np.testing.assert_allclose(std, np.sqrt(var), rtol=1e-7)
    assert model.posterior_.weight == 0 and model.posterior_.n_outputs == 1


def test_centres_and_functions_that_are_given():
    X, y = rows()
    centres = np.linspace(-3, 3, 7)[:, None]
    model = LaplacianProcessRegressor(**HELD, centres=centres).fit(X, y)
    assert set(model.basis_indices_) <= set(range(7)) and not len(model.function_indices_)
    np.testing.assert_array_equal(model.posterior_.basis.points, centres[model.basis_indices_])
    both = LaplacianProcessRegressor(**HELD, centres=centres, functions=bumps).fit(X, y)
    m = len(both.basis_indices_)
    f = KERNEL(X, centres[both.basis_indices_]) @ both.coef_[:m] + both.mean_.value
    f += bumps(X)[:, both.function_indices_] @ both.coef_[m:]
    np.testing.assert_allclose(both.predict(X), f, rtol=1e-9)
    assert both.objective_ <= model.objective_ * (1 + 1e-6)
    alone = LaplacianProcessRegressor(
        likelihood=Gaussian(0.04), prior_scale=10.0, centres=np.empty((0, 1)), functions=bumps
    )
    alone.fit(X, y - 0.5 * X[:, 0])
    assert 1 in alone.function_indices_ and not len(alone.basis_indices_)
    coef = dict(zip(alone.function_indices_, alone.coef_, strict=True))
    assert coef[1] == pytest.approx(-0.5, abs=0.1)
    slope = alone.predict_gradient(X[:3]).mean[:, 0]
    step = (alone.predict(X[:3] + 1e-5) - alone.predict(X[:3] - 1e-5)) / 2e-5
    np.testing.assert_allclose(slope, step, rtol=1e-5)


def test_rows_of_weight_0_keep_the_numbers_of_the_others():
    X, y = rows()
    w = np.ones(80)
    w[:30] = 0.0
    model = LaplacianProcessRegressor(**HELD).fit(X, y, w)
    assert np.all(model.basis_indices_ >= 30)
    np.testing.assert_array_equal(model.posterior_.basis.points, X[model.basis_indices_])


def test_known_variances_of_the_rows():
    X, y = rows()
    v = np.linspace(0.02, 0.2, 80)
    options = {"prior_scale": 0.5, "optimizer": None}
    model = LaplacianProcessRegressor(KERNEL, Gaussian(v), **options).fit(X, y)
    same = LaplacianProcessRegressor(KERNEL, Gaussian(1.0), **options).fit(X, y, 1.0 / v)
    np.testing.assert_allclose(model.predict(X), same.predict(X), rtol=1e-6)
    got = model.predict(X, return_std=True, latent=True)[1]
    np.testing.assert_allclose(got, same.predict(X, return_std=True, latent=True)[1], rtol=1e-6)
    assert model.likelihood_.new_variance == pytest.approx(np.mean(v))
    assert model.objective_ == pytest.approx(same.objective_, rel=1e-6)
    chosen = LaplacianProcessRegressor(KERNEL, Gaussian(v), optimizer=None).fit(X, y)
    assert 0.01 < chosen.prior_.scale < 100 and chosen.path_ is not None


# --- kernels of any kind --------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Tanh(1.0, 0.5), Callable(laplacian_kernel)], ids=repr)
def test_kernels_that_are_no_covariances_or_functions(kernel):
    X, y = rows()
    model = LaplacianProcessRegressor(kernel, optimizer=None).fit(X, y)
    assert np.all(np.isfinite(model.predict(X, return_std=True)[1]))
    assert model.score(X, y) > 0.3


def test_inputs_that_are_no_numbers():
    words = ["abcd", "bcda", "aeg", "fgab", "cd", "gfe", "bdf", "ace", "bc", "fa"]
    y = np.array([float(len(word)) + ("a" in word) for word in words])
    model = LaplacianProcessRegressor(Callable(overlap), Gaussian(0.1), prior_scale=5.0)
    model.fit(words, y)
    assert model.predict(["abg"]).shape == (1,) and model.n_active_ > 0


def test_a_precomputed_kernel_is_that_of_the_inputs():
    X, y = rows()
    new = np.linspace(-3, 3, 5)[:, None]
    w = np.where(np.arange(80) % 7 == 3, 0.0, 1.0)
    model = LaplacianProcessRegressor(**HELD).fit(X, y, w)
    matrix = LaplacianProcessRegressor(**HELD | {"kernel": "precomputed"}).fit(KERNEL(X), y, w)
    # the order of the columns is another, and so may be the rounding
    np.testing.assert_allclose(
        matrix.predict(KERNEL(new, X), return_std=True), model.predict(new, return_std=True), 1e-7
    )
    np.testing.assert_array_equal(np.sort(matrix.basis_indices_), np.sort(model.basis_indices_))
    cov = matrix.predict(KERNEL(new, X), return_cov=True)[1]
    np.testing.assert_allclose(cov, model.predict(new, return_cov=True)[1], rtol=1e-6, atol=1e-9)
    assert matrix.sample_y(KERNEL(new, X), 3).shape == (5, 3)
    with pytest.raises(ValueError, match="columns of the matrix are all the functions"):
        LaplacianProcessRegressor("precomputed", functions=bumps).fit(KERNEL(X), y)


# --- several targets ------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [None, Laplace(), Huber()], ids=repr)
def test_several_targets_are_separate_fits(noise):
    X, y = rows(60)
    Y = np.column_stack([y, 50.0 * np.cos(X[:, 0]) + y[::-1]])
    options = {"kernel": KERNEL, "likelihood": noise, "optimizer": None}
    options |= {"n_folds": 2, "n_penalties": 8}
    both = LaplacianProcessRegressor(**options).fit(X, Y)
    new = np.linspace(-3, 3, 5)[:, None]
    got, ends = both.predict(new, return_std=True), both.predict_interval(new)
    for p in range(2):
        alone = LaplacianProcessRegressor(**options).fit(X, Y[:, p])
        wanted = alone.predict(new, return_std=True)
        np.testing.assert_allclose(got[0][:, p], wanted[0], rtol=1e-6)
        np.testing.assert_allclose(got[1][:, p], wanted[1], rtol=1e-6)
        np.testing.assert_allclose(ends[1][:, p], alone.predict_interval(new)[1], rtol=1e-6)
        assert both.prior_[p].scale == pytest.approx(alone.prior_.scale, rel=1e-6)
        assert len(both.coef_[p]) == alone.n_active_
    assert both.n_active_ == sum(map(len, both.coef_))
    assert not hasattr(both, "posterior_") and len(both.posteriors_) == 2
    with pytest.raises(AttributeError, match="posteriors_ is the list"):
        both.posterior_  # noqa: B018
    with pytest.raises(ValueError, match="a ratio of its own"):
        LaplacianProcessRegressor(KERNEL, EpsilonInsensitive()).fit(X, Y)


def test_normalised_targets_have_noise_in_their_units():
    X, y = rows()
    options = {"kernel": KERNEL, "likelihood": Gaussian(0.1), "optimizer": None}
    plain = LaplacianProcessRegressor(**options, normalize_y=True).fit(X, y)
    other = LaplacianProcessRegressor(**options, normalize_y=True).fit(X, 1000.0 * y - 5.0)
    assert plain.predictive_.scale == pytest.approx([np.std(y)])
    np.testing.assert_allclose(other.predict(X), 1000.0 * plain.predict(X) - 5.0, rtol=1e-7)
    # coefficients are those of the function, as the mean's are, and the prior's scale is not
    f = KERNEL(X, X[other.basis_indices_]) @ other.coef_ + other.mean_.value
    np.testing.assert_allclose(other.predict(X), f, rtol=1e-9)
    assert other.prior_.scale == pytest.approx(plain.prior_.scale, rel=1e-6)
    Y = np.column_stack([y, 1000.0 * y - 5.0])
    both = LaplacianProcessRegressor(**options, normalize_y=True).fit(X, Y)
    np.testing.assert_allclose(both.coef_[1], 1000.0 * both.coef_[0], rtol=1e-6)


# --- empty and odd --------------------------------------------------------------------------------


def test_a_small_prior_scale_leaves_the_mean_and_the_noise():
    X, y = rows()
    with pytest.warns(MercerWarning, match="all coefficients are 0"):
        model = LaplacianProcessRegressor(**HELD | {"prior_scale": 1e-6}).fit(X, y)
    assert model.n_active_ == 0 and model.coef_.shape == (0,)
    mean, std = model.predict(X[:3], return_std=True)
    np.testing.assert_allclose(mean, np.mean(y), rtol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(0.04 + 0.04 / 80), rtol=1e-9)
    with pytest.warns(MercerWarning, match="all coefficients are 0"):
        model = LaplacianProcessRegressor(**HELD | {"prior_scale": 1e-6}, mean="zero").fit(X, y)
    np.testing.assert_allclose(model.predict(X[:3], return_std=True), [[0.0] * 3, [0.2] * 3])
    assert model.predict_gradient(X[:3]).mean.shape == (3, 1)


def test_constant_targets_and_few_rows():
    X, _ = rows(20)
    for data in ((X, np.full(20, 3.0)), (X[:1], np.array([3.0]))):
        with pytest.warns(MercerWarning) as caught:
            model = LaplacianProcessRegressor().fit(*data)
        assert [w.category for w in caught] == [UndeterminedWarning]
        np.testing.assert_allclose(model.predict(X[:2]), 3.0, rtol=1e-9)
        assert np.all(model.predict(X[:2], return_std=True)[1] > 0)
    with pytest.warns(MercerWarning, match="all coefficients are 0"):
        LaplacianProcessRegressor(**HELD).fit(X[:1], [3.0])
    with pytest.warns(UndeterminedWarning) as caught:
        LaplacianProcessRegressor(KERNEL, prior="feature_selection").fit(X, np.full(20, 3.0))
    assert len(caught) == 1


def test_a_constant_target_beside_others_does_not_end_the_search():
    X, y = rows(60)
    options = {"kernel": RBF(5.0), "n_folds": 2, "n_penalties": 8}
    alone = LaplacianProcessRegressor(**options).fit(X, y)
    with pytest.warns(UndeterminedWarning) as caught:
        both = LaplacianProcessRegressor(**options).fit(X, np.column_stack([y, np.full(60, 3.0)]))
    assert len(caught) == 1
    assert both.kernel_ == alone.kernel_ != RBF(5.0)


def test_repeated_inputs_and_constant_columns():
    X, y = rows(60)
    X = np.column_stack([np.round(X, 0), np.full(60, 4.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LaplacianProcessRegressor(n_folds=2).fit(X, y)
    assert len(np.unique(X[model.basis_indices_], axis=0)) == model.n_active_


@pytest.mark.parametrize("noise", [Laplace(), EpsilonInsensitive(0.1, 1.0)])
@pytest.mark.parametrize("seed", [3, 5])
def test_a_median_that_ties_hold_has_no_functions(noise, seed):
    """The first penalty is rounding, and below it programmes cannot be told apart, or solved."""
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-5, 5, (80, 1)), rng.poisson(0.5, 80).astype(float)
    assert np.mean(y == 0) > 0.5
    for units in (1.0, 1e-6):
        own = replaced(noise, units)
        with pytest.warns(UndeterminedWarning, match="so many targets are the same"):
            model = LaplacianProcessRegressor(RBF(4.0), own, optimizer=None).fit(X, units * y)
        assert model.status_ == "certified" and not len(model.basis_indices_)
        # of a zone any constant to its edge is as near
        np.testing.assert_allclose(model.predict(X[:2]), 0.0, atol=0.1000001 * units)
        if isinstance(noise, Laplace):
            left = np.mean(np.abs(units * y))
            assert model.likelihood_.scale == pytest.approx(left, rel=0.05)


def test_one_sided_ties_leave_no_path_of_programmes(monkeypatch):
    """What a programme leaves of violations is no penalty that a path could begin with."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-5, 5, (300, 1))
    y = np.where(rng.random(300) < 0.25, rng.poisson(2, 300) + 1.0, 0.0)
    monkeypatch.setattr(expansion_choice, "scored_path", None)
    with pytest.warns(UndeterminedWarning, match="so many targets are the same"):
        model = LaplacianProcessRegressor(RBF(1.0), Laplace(), mean=None, optimizer=None).fit(X, y)
    assert model.status_ == "certified" and not len(model.basis_indices_)


def test_targets_of_which_most_are_the_same_are_told_of_where_no_function_is_in_use():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 10, (60, 1)), rng.poisson(0.3, 60).astype(float)
    model = LaplacianProcessRegressor(RBF(0.5), Laplace(0.3), optimizer=None)
    with pytest.warns(UndeterminedWarning, match="so many targets are the same"):
        model.fit(X, y)
    assert model.path_ is not None and not model.n_active_
    with pytest.warns(MercerWarning, match="all coefficients are 0.*a larger prior_scale"):
        model.set_params(prior_scale=1e-3).fit(X, y)


@pytest.mark.parametrize("case", ["wide", "heavy"])
def test_small_slopes_of_targets_without_ties_are_no_rounding(case):
    """Wide kernels are nearly constant, and one heavy row can pull no more than the others."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-5, 5, (120, 1))
    y, weights = X[:, 0] + 0.5 * rng.normal(size=120), np.ones(120)
    if case == "heavy":
        weights[0] = 1e9
    kernel, noise = (RBF(3e4), Laplace()) if case == "wide" else (RBF(1.0), Laplace(0.1))
    model = LaplacianProcessRegressor(kernel, noise, optimizer=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=weights)
    assert model.n_active_ and np.mean(np.abs(model.predict(X) - y)) < 0.6


def replaced(noise, units):
    """The same noise of targets in other units."""
    if isinstance(noise, Laplace):
        return noise
    return EpsilonInsensitive(units * float(noise.epsilon), units * float(noise.scale))


# --- saving, determinism, interrupts --------------------------------------------------------------


def test_a_saved_model_predicts_the_same(tmp_path):
    X, y = rows()
    Y = np.column_stack([y, -y])
    options = {"functions": bumps, "mean": "linear", "optimizer": None}
    for targets in (y, Y):
        model = LaplacianProcessRegressor(KERNEL, **options).fit(X, targets)
        path = tmp_path / "model.mercer"
        mercer.save(model, path)
        back = mercer.load(path, objects={"bumps": bumps})
        for a, b in zip(
            model.predict(X, return_std=True), back.predict(X, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(a, b)
        for kept, own in zip(np.ravel(back.path_), np.ravel(model.path_), strict=True):
            assert kept.keys() == own.keys()
            for name, values in own.items():
                np.testing.assert_array_equal(kept[name], values)
        assert back.prior_ == model.prior_
        small, loss = (back.predictive_).prune(2, 0.04)
        assert loss >= 0 and np.all(np.isfinite(small.var(X)))


@pytest.mark.filterwarnings("ignore:the search for hyperparameters stopped early")
def test_the_order_of_rows_and_repeated_fits_change_nothing():
    X, y = rows(50)
    order = np.random.default_rng(1).permutation(50)
    few = {"max_iter": 2, "n_folds": 2, "n_penalties": 8}
    first = LaplacianProcessRegressor(KERNEL, Laplace(), **few).fit(X, y)
    again = LaplacianProcessRegressor(KERNEL, Laplace(), **few).fit(X, y)
    other = LaplacianProcessRegressor(KERNEL, Laplace(), **few).fit(X[order], y[order])
    np.testing.assert_array_equal(first.predict(X), again.predict(X))
    np.testing.assert_array_equal(first.predict(X), other.predict(X))
    np.testing.assert_array_equal(order[other.basis_indices_], first.basis_indices_)


def test_max_active_stops_with_a_gap():
    X, y = rows()
    with pytest.warns(ConvergenceWarning, match="raise max_active, or tol"):
        model = LaplacianProcessRegressor(**HELD, max_active=3).fit(X, y)
    assert model.n_active_ <= 3 and model.status_ == "stopped" and model.gap_ > 1e-6


@pytest.mark.parametrize(
    ("noise", "max_active", "match"),
    [
        (EpsilonInsensitive(), 2, "found with max_active=2 is so wide.*; raise max_active, or"),
        (EpsilonInsensitive(5.0, 0.1), None, "EpsilonInsensitive is so wide.*; give a smaller"),
        (EpsilonInsensitive(5.0, 0.1), 2, "EpsilonInsensitive is so wide.*; give a smaller"),
    ],
)
def test_a_zone_with_all_targets_in_it(noise, max_active, match):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (60, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    with pytest.warns(UndeterminedWarning, match=match):
        model = LaplacianProcessRegressor(KERNEL, noise, max_active=max_active).fit(X, y)
    assert model.n_active_ == 0


@pytest.mark.parametrize("noise", [None, Laplace(), Huber()], ids=repr)
def test_max_active_takes_part_in_the_choice(noise):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (100, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.2 * rng.standard_normal(100)
    options = {"kernel": RBF([1.0, 2.0]), "likelihood": noise, "optimizer": None}
    model = LaplacianProcessRegressor(**options, max_active=10).fit(X, y)
    assert 3 < model.n_active_ <= 10
    assert model.status_ == "certified" and model.score(X, y) > 0.7
    # a path is the same as far as it has room
    value, n_active = model.path_["value"], model.path_["n_active"]
    few = np.isfinite(value)
    assert not np.all(few) and np.all(n_active <= 10)
    if noise != Huber():  # whose scale settles elsewhere
        whole = LaplacianProcessRegressor(**options).fit(X, y)
        k = int(np.sum(few))
        np.testing.assert_allclose(whole.path_["value"][:k], value[few], rtol=1e-3)


def test_a_search_that_stops_early_says_so():
    X, y = rows(40)
    with pytest.warns(ConvergenceWarning, match=r"stopped early \(max_iter=2 .* raise max_iter"):
        model = LaplacianProcessRegressor(KERNEL, max_iter=2).fit(X, y)
    assert model.status_ == "certified" and model.n_iter_ == 2


@pytest.mark.filterwarnings("ignore:the search for hyperparameters stopped early")
def test_stages_are_told(capsys):
    X, y = rows(40)
    LaplacianProcessRegressor(verbose=1, max_iter=3).fit(X, y)
    said = capsys.readouterr().err
    for stage in ("length scales", "comparing kernels", "evaluation 1", "penalty", "solving"):
        assert stage in said
    seen = []
    LaplacianProcessRegressor(KERNEL, max_iter=3, verbose=lambda *a: seen.append(a)).fit(X, y)
    assert [a[:2] for a in seen] == [(1, k + 1) for k in range(len(seen))] and seen


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"prior": "horseshoe"}, "prior must be one of 'laplacian'"),
        ({"prior_scale": 0.0}, "prior_scale must be a positive number"),
        ({"prior_scale": "large"}, "prior_scale must be a number"),
        ({"tol": 0.0}, "tol must lie between"),
        ({"max_active": 0}, "max_active must be a whole number from 1"),
        ({"n_folds": 1}, "n_folds must be a whole number from 2"),
        ({"n_penalties": 1}, "n_penalties"),
        ({"optimizer": "lbfgs"}, "optimizer must be one of 'search', None"),
        ({"functions": [1.0]}, "functions must be a function of X"),
        ({"functions": lambda X: X[:, 0]}, r"must return shape \(40, q\)"),
        ({"functions": lambda X: X / 0.0 * 0.0}, "finite numbers"),
        ({"likelihood": StudentT(4.0, 1.0)}, "takes noise of the kinds"),
        ({"likelihood": Gaussian(np.eye(40))}, "full noise covariance"),
        ({"likelihood": Gaussian(np.arange(40.0))}, "must be positive, got a 0"),
        ({"centres": np.ones((3, 2)), "kernel": RBF([1.0])}, "centres must have the columns of X"),
        ({"centres": np.ones((3, 2)), "kernel": RBF(1.0)}, r"of X, 1, got shape \(3, 2\)"),
        ({"centres": np.ones((3, 2))}, "centres must have the columns of X"),
        ({"centres": 5}, "centres must be rows like those of X, got 5"),
        ({"prior": "weight_decay", "max_active": 5}, "all functions are in use; leave max_active"),
        ({"random_state": "x"}, "random_state"),
        ({"verbose": -1}, "verbose"),
        ({"centres": np.empty((0, 1))}, "there must be functions"),
    ],
    ids=lambda given: given if isinstance(given, str) else ", ".join(given),
)
def test_options_that_are_none_are_refused(options, text):
    X, y = rows(40)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=text):
        LaplacianProcessRegressor(**options).fit(X, y)


def test_what_has_no_room_is_refused_at_once(monkeypatch):
    X, y = rows(40)
    monkeypatch.setattr("mercer.estimators.memory.available_memory", lambda: 1000)
    with pytest.raises(TooLargeError, match="weight_decay"):
        LaplacianProcessRegressor(**HELD, prior="weight_decay").fit(X, y)
    with pytest.raises(TooLargeError, match="20 inducing inputs"):
        LaplacianProcessRegressor(**HELD, max_active=20).fit(X, y)


def test_a_mean_of_the_users():
    X, y = rows()
    model = LaplacianProcessRegressor(**HELD, mean=means.Constant(2.0, estimate=None)).fit(X, y)
    assert model.mean_.value == 2.0 and model.posterior_.n_features == 0
    plane = LaplacianProcessRegressor(**HELD, mean="linear").fit(X, y + 3.0 * X[:, 0])
    assert plane.mean_.slope == pytest.approx([3.0], abs=0.1)


def cosine(X):
    return 5.0 * np.cos(X[:, 0])


def slope(X):
    return X[:, :1]


def test_the_fixed_part_of_a_mean_with_coefficients_is_kept():
    X, y = rows()
    mean = means.Functions(slope, rest=means.Function(cosine))
    model = LaplacianProcessRegressor(**HELD, mean=mean).fit(X, y + cosine(X))
    plain = LaplacianProcessRegressor(**HELD, mean=means.Functions(slope)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X) + cosine(X), atol=1e-6)


def test_several_targets_have_a_fixed_mean_each():
    X, y = rows()
    mean = means.Constant([0.0, 3.0], estimate=None)
    model = LaplacianProcessRegressor(**HELD, mean=mean).fit(X, np.column_stack([y, y + 3.0]))
    np.testing.assert_allclose(model.predict(X[:5]) @ [-1.0, 1.0], 3.0, atol=1e-6)
