"""Rows and options that are hard on a Laplacian process, and what it says of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.metrics import log_loss

import mercer
from mercer import (
    GPRegressor,
    LaplacianProcessClassifier,
    LaplacianProcessRegressor,
    OnlineGPRegressor,
    RelevanceVectorRegressor,
)
from mercer.cli.summary import with_options
from mercer.errors import ConvergenceWarning, MercerWarning, UndeterminedWarning
from mercer.estimators import laplacian_warnings
from mercer.inference._l1_generation import Generation
from mercer.inference._l1_simplex import UnsolvedError
from mercer.inference._online_takeover import likeliest_factor
from mercer.kernels import RBF, Callable
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace
from mercer.likelihoods.spread import far_from_others

KERNEL = RBF(0.6)
NOISES = [Gaussian(), Laplace(), Huber(), EpsilonInsensitive()]


def rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(2.0 * X[:, 0]) + 0.2 * rng.standard_normal(n)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("huge", [1e10, 1e69])
def test_one_huge_target_is_fitted(noise, huge):
    X, y = rows()
    y[3] = huge
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LaplacianProcessRegressor(KERNEL, noise, optimizer=None, n_penalties=6).fit(X, y)
    told = "".join(str(w.message) for w in caught)
    assert "because of 1.7% of the targets" in told or (model.n_active_ and noise is NOISES[0])
    assert model.status_ == "certified"
    assert np.all(np.isfinite(model.predict(X, return_std=True)))


@pytest.mark.parametrize("noise", NOISES[1:], ids=repr)
@pytest.mark.parametrize("normalize", [False, True])
def test_outliers_that_make_all_of_the_noise_are_told_of(noise, normalize):
    """It is not said that the inputs tell nothing, which they do."""
    X, y = rows(200)
    y[::20] += np.where(np.arange(10) % 2, 1e4, -2e4)
    options = {"optimizer": None, "normalize_y": normalize}
    with pytest.warns(MercerWarning, match="the noise is that of outliers") as caught:
        model = LaplacianProcessRegressor(RBF(50.0), noise, **options).fit(X, y)
    text = str(caught[0].message)
    assert len(caught) == 1 and f"({model.n_active_} functions are in use)" in text
    assert "% of the targets" in text
    half = np.median(np.abs(y - np.median(y)))
    assert f"half of all are within {half:.3g}. " in text
    said = with_options(text)
    assert said.endswith("noise with heavier tails: --method relevance --robust")


@pytest.mark.parametrize(
    "noise",
    [*NOISES[:2], *(pytest.param(noise, marks=pytest.mark.slow) for noise in NOISES[2:])],
    ids=repr,
)
def test_wide_noise_without_outliers_is_not_called_theirs(noise):
    X, y = rows(200)
    for wild in (np.sign(y) * y**2, np.random.default_rng(1).laplace(size=200)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            LaplacianProcessRegressor(KERNEL, noise, optimizer=None).fit(X, wild)
        assert not any("that of outliers" in str(w.message) for w in caught)


def test_targets_beyond_doubles_are_told_of_by_their_size():
    X, y = rows()
    y[3] = 1e80
    with pytest.raises(ValueError, match=r"the targets are as large as 1e.80 and vary by .*e.79"):
        LaplacianProcessRegressor(KERNEL).fit(X, y)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("prior", ["laplacian", "weight_decay"])
def test_constant_targets_have_one_warning(noise, prior):
    X, _ = rows(30)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LaplacianProcessRegressor(KERNEL, noise, prior=prior).fit(X, np.full(30, 7.0))
    assert [w.category for w in caught] == [UndeterminedWarning]
    assert "the targets are constant" in str(caught[0].message)
    assert model.predict(X) == pytest.approx(7.0) and model.n_active_ == 0


def test_the_zone_is_learned_with_a_given_scale_of_the_prior():
    X, y = rows()
    options = {"prior_scale": 1.0, "optimizer": None}
    model = LaplacianProcessRegressor(KERNEL, EpsilonInsensitive(), **options).fit(X, y)
    found, r = model.likelihood_, np.abs(y - model.predict(X))
    freedom = 60 - model.n_active_ - 1

    def cost(e):  # minus the log likelihood of the residuals, a row
        over = np.sum(np.maximum(r - e, 0.0)) / freedom
        return np.log(found.scale + e) + over / found.scale

    best = min(np.linspace(0.0, 1.0, 2001), key=cost)
    # that of the last solution but one, whose loss it shapes
    assert found.epsilon == pytest.approx(best, rel=0.15)
    start = 0.1 * np.std(y)  # as it began
    assert cost(found.epsilon) < cost(start) - 0.01


def test_a_likelihood_is_no_text():
    X, y = rows()
    for model in (LaplacianProcessRegressor, GPRegressor):
        for name, written in (("laplace", "Laplace"), ("student_t", "StudentT"), ("x", "Laplace")):
            text = rf"got '{name}'; write mercer.likelihoods.{written}\(\) in the place"
            with pytest.raises(ValueError, match=text):
                model(likelihood=name).fit(X, y)


def test_a_gap_that_is_nearly_tol_is_shown_as_more(monkeypatch):
    X, y = rows()
    found = LaplacianProcessRegressor(KERNEL, Gaussian(0.04), prior_scale=1.0, optimizer=None)
    from mercer.inference import laplacian

    whole = laplacian.solve

    def nearly(*args, **options):
        one = whole(*args, **options)
        return one._replace(dual=one.objective * (1.0 - 1.0004e-6), status="stopped")

    monkeypatch.setattr(laplacian, "solve", nearly)
    with pytest.warns(ConvergenceWarning, match="tol is 1e-06, and the gap .* is just above that"):
        found.fit(X, y)


# --- kernels that are no Mercer kernels -----------------------------------------------------------


def leaning(a, b):
    """Return a function that is not symmetric."""
    return float(np.exp(-((a[0] - b[0]) ** 2)) * (1.0 + 0.5 * np.tanh(a[0] - 2.0 * b[0])))


def test_functions_that_are_not_symmetric_are_those_of_the_centres(tmp_path):
    X, y = rows()
    kernel = Callable(leaning, is_mercer=False)
    options = {"prior_scale": 0.5, "optimizer": None}
    model = LaplacianProcessRegressor(kernel, Gaussian(0.04), **options).fit(X, y)
    own = X[model.basis_indices_]
    by_hand = [sum(c * leaning(x, z) for c, z in zip(model.coef_, own, strict=True)) for x in X]
    np.testing.assert_allclose(model.predict(X), np.array(by_hand) + model.mean_.value, rtol=1e-8)
    assert model.status_ == "certified" and model.score(X, y) > 0.8
    # the optimality conditions, over all of them
    Phi = np.array([[leaning(x, z) for z in X] for x in X])
    slopes = Phi.T @ (y - model.predict(X))
    assert np.max(np.abs(slopes)) <= 0.04 / 0.5 * (1 + 1e-4)
    mercer.save(model, tmp_path / "model.mercer")
    back = mercer.load(tmp_path / "model.mercer", objects={"leaning": leaning})
    np.testing.assert_array_equal(model.predict(X), back.predict(X))


def test_a_matrix_may_be_indefinite():
    X, y = rows()
    K = np.tanh(X @ X.T - 1.0)
    assert np.min(np.linalg.eigvalsh(K)) < -1.0
    model = LaplacianProcessRegressor("precomputed").fit(K, y)
    assert model.status_ == "certified" and model.predict(K).shape == (60,)


# --- the posterior --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error", category=MercerWarning)
def test_posteriors_are_pruned_at_a_cost_that_the_rows_feel():
    X, y = rows()
    model = LaplacianProcessRegressor(KERNEL, optimizer=None).fit(X, y)
    v = model.likelihood_.noise
    small, loss = model.posterior_.prune(model.n_active_ - 1)
    before, after = model.posterior_.mean(X)[:, 0], small.mean(X)[:, 0]
    assert loss >= np.sum((before - after) ** 2) / (2 * v) > 0
    labels = LaplacianProcessClassifier(KERNEL, optimizer=None).fit(X, y > 0)
    few, cost = labels.posterior_.prune(2)  # no noise is asked for
    assert few.n_basis == 2 and cost > labels.posterior_.prune(labels.n_active_ - 1)[1] > 0


def test_a_stream_that_leaves_the_region_teaches_nothing_unless_it_is_lifted():
    X, y = rows()
    model = LaplacianProcessRegressor(KERNEL, optimizer=None, mean="zero").fit(X, y)
    far, there = np.linspace(20.0, 21.0, 8)[:, None], np.full(8, 5.0)
    weights, lifted = (
        OnlineGPRegressor.from_posterior(model.posterior_, model.likelihood_, **options)
        for options in ({}, {"lift": True, "max_basis": 40})
    )
    for going in (weights, lifted):
        going.partial_fit(far, there)
    np.testing.assert_allclose(weights.predict(far), 0.0, atol=1e-6)
    assert np.max(weights.predict(far, return_std=True, latent=True)[1]) < 1e-6
    assert np.max(np.abs(lifted.predict(far) - 5.0)) < 1.0
    np.testing.assert_allclose(weights.predict(X), model.predict(X), atol=1e-6)


def test_a_fit_of_which_nothing_is_proved_is_not_told_to_raise_tol(monkeypatch):
    sound, calls = Generation.solve, []

    def failing(self, lam):
        calls.append(lam)
        if len(calls) > 1:  # after that of the Laplacian prior
            raise UnsolvedError("the linear programme was not solved: Unknown")
        return sound(self, lam)

    monkeypatch.setattr(Generation, "solve", failing)
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = LaplacianProcessRegressor(
        RBF(1.0), Laplace(0.1), prior="feature_selection", prior_scale=1.0, optimizer=None
    )
    with pytest.warns(
        ConvergenceWarning, match="proved is 1; standardise columns.*a smaller prior_scale"
    ) as caught:
        model.fit(X, X[:, 0])
    said = with_options(str(caught[0].message))
    assert said.endswith("a smaller --prior-scale, or another --kernel or --likelihood")
    assert model.status_ == "stopped" and model.n_active_ > 0


def test_targets_that_gaussian_noise_does_not_stand_are_told_of():
    X, y = rows()
    y[3] = 100.0
    with pytest.warns(MercerWarning, match="far from all others") as caught:
        LaplacianProcessRegressor(KERNEL, optimizer=None).fit(X, y)
    assert len(caught) == 1


def test_functions_as_many_as_single_rows_are_told_of():
    X, y = rows()
    with pytest.warns(MercerWarning, match=r"functions follow 60 rows") as caught:
        model = LaplacianProcessRegressor(RBF(0.02), optimizer=None).fit(X, y)
    assert f"{model.n_active_ + 1} functions" in str(caught[0].message)  # that of the mean is one


@pytest.mark.parametrize(("prior", "scale"), [("laplacian", 1e6), ("weight_decay", 1e6)])
def test_noise_far_above_what_is_left_is_told_of(prior, scale):
    X, y = rows()
    options = {"prior": prior, "prior_scale": scale, "optimizer": None, "n_folds": 3}
    with pytest.warns(MercerWarning, match="prior_scale is so large"):
        model = LaplacianProcessRegressor(KERNEL, **options).fit(X, y)
    assert model.likelihood_.noise > 10 * np.mean((y - model.predict(X)) ** 2)


@pytest.mark.parametrize("prior", ["laplacian", "weight_decay"])
def test_noise_of_large_prior_scales_is_finite(prior):
    X, y = rows(30)
    options = {"prior": prior, "prior_scale": 1e70, "optimizer": None, "n_penalties": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LaplacianProcessRegressor(KERNEL, Laplace(), **options).fit(X, y)
    assert np.all(np.isfinite(model.predict(X, return_std=True)))


@pytest.mark.parametrize("kind", [LaplacianProcessRegressor, RelevanceVectorRegressor])
def test_a_step_is_not_called_far_from_all_others(kind, recwarn):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100, 1))
    y = 10.0 * (X[:, 0] > 0.6) + 0.05 * rng.standard_normal(100)
    kind(RBF(0.1), optimizer=None).fit(X, y)
    assert not any("far from all others" in str(w.message) for w in recwarn)
    recwarn.clear()


def test_large_targets_that_are_followed_with_the_others_are_not_outliers():
    X = np.linspace(-3.0, 3.0, 100)[:, None]
    y = np.exp(0.6 * np.exp(0.6 * X[:, 0]))
    assert far_from_others(y, np.ones(100)).any()
    LaplacianProcessRegressor(RBF(1.0), Gaussian(0.01), optimizer=None).fit(X, y)


def test_a_small_cluster_that_is_followed_is_not_one_of_outliers():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(0, 1, (184, 1)), rng.uniform(5, 5.5, (16, 1))])
    y = 10.0 * (X[:, 0] > 3) + 0.05 * rng.standard_normal(200)
    assert far_from_others(y, np.ones(200)).sum() == 16
    LaplacianProcessRegressor(RBF(1.0), optimizer=None).fit(X, y)


def test_far_targets_that_functions_follow_to_the_cost_of_the_others():
    X, y = rows(30)
    order = np.argsort(X[:, 0])
    y[order[10:13]] = 100.0
    with pytest.warns(MercerWarning, match="from all others, and the fit follows these"):
        model = LaplacianProcessRegressor(RBF(1.0), optimizer=None).fit(X, y)
    near = y < 50
    assert model.n_active_ and np.mean((y - model.predict(X))[near] ** 2) > np.var(y[near])


def test_far_targets_are_not_blamed_where_no_function_may_follow_them():
    X, y = rows()
    y[3] = 100.0
    options = {"prior_scale": 1e-9, "optimizer": None}
    with pytest.warns(MercerWarning, match="larger prior_scale"):
        LaplacianProcessRegressor(KERNEL, Gaussian(0.04), **options).fit(X, y)


@pytest.mark.parametrize("far", [25.0, 40.0, 50.0])
def test_one_target_that_makes_all_of_the_noise(far):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 1))
    y = np.sin(6.0 * X[:, 0]) + 0.2 * rng.standard_normal(200)
    y[7] = far
    words = "the noise is that of outliers|from all others, and the Gaussian noise is theirs"
    with pytest.warns(MercerWarning, match=words):
        LaplacianProcessRegressor(RBF(0.2), optimizer=None).fit(X, y)


def test_a_far_target_of_known_variance_is_no_outlier():
    X, y = rows()
    y[3], noise = 100.0, np.full(60, 0.04)
    noise[3] = 1e4
    LaplacianProcessRegressor(KERNEL, Gaussian(noise), optimizer=None).fit(X, y)


def test_outliers_of_one_output_do_not_hide_what_is_wrong_with_another(monkeypatch):
    monkeypatch.setattr(laplacian_warnings, "_warn_of_outliers", lambda *given: given[2] == 0)
    X, y = rows()
    with pytest.warns(MercerWarning, match="functions follow 60 rows"):
        LaplacianProcessRegressor(RBF(0.02), optimizer=None).fit(X, np.column_stack([y, y]))


def test_what_is_right_is_not_told_of():
    X, y = rows()
    LaplacianProcessRegressor(KERNEL, prior_scale=1.0, optimizer=None).fit(X, y)
    LaplacianProcessRegressor(RBF(0.02), Gaussian(0.04), optimizer=None).fit(X[:19], y[:19])


@pytest.mark.parametrize(
    ("noise", "size"), [(Gaussian(0.01), "variance"), (Laplace(0.1), "scale")], ids=repr
)
def test_noise_that_was_given_is_not_asked_for(noise, size):
    X, y = rows()
    with pytest.warns(MercerWarning, match=f"Try a larger noise {size}, or a wider kernel"):
        LaplacianProcessRegressor(RBF(0.02), noise, optimizer=None).fit(X, y)


def test_what_heavy_labels_leave_unproved_of_the_others_is_told_of():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    y = X[:, 0] + 0.7 * rng.standard_normal(30) > 0
    weights = np.where(rng.random(30) < 0.7, 1e9, 1.0)
    model = LaplacianProcessClassifier(RBF(1.0), prior_scale=100.0)
    with pytest.warns(ConvergenceWarning, match="the gap that is proved is"):
        model.fit(X, y, sample_weight=weights)
    assert model.gap_ > model.tol and model.status_ == "stopped"


@pytest.mark.parametrize("seed", [0, 2])
def test_classes_far_apart_are_told_by_their_probabilities(seed):
    """The curvature of a probit vanishes there, and error bars would be infinite."""
    X, y = make_blobs(200, centers=2, random_state=seed, cluster_std=0.6)
    model = LaplacianProcessClassifier(
        likelihood="quadratic_soft_margin", n_penalties=10, n_folds=3
    ).fit(X[::2], y[::2])
    p = model.predict_proba(X[1::2])
    assert model.score(X[1::2], y[1::2]) > 0.97
    assert log_loss(y[1::2], p) < 0.1
    _, std = model.predict_latent(X[1::2], return_std=True)
    assert np.max(std) < 100.0


def test_a_lifted_function_may_be_of_any_size():
    """Weights have priors of their own, and a kernel of variance 1 says nothing of large ones."""
    X, y = rows()
    far = np.linspace(20.0, 24.0, 40)[:, None]
    found = []
    for units in (1.0, 1e4):
        model = LaplacianProcessRegressor(KERNEL, optimizer=None, mean="zero").fit(X, units * y)
        given = model.posterior_, model.likelihood_
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            OnlineGPRegressor.from_posterior(*given, max_basis=60, lift=True)
        told = ["error bars away from its basis are too narrow" in str(w.message) for w in caught]
        assert any(told) == (units > 1.0)
        lifted = OnlineGPRegressor.from_posterior(*given, max_basis=60, lift="scaled")
        lifted.partial_fit(far, units * np.sin(far[:, 0]))
        found.append(lifted.predict(far) / units)
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)
    assert np.max(np.abs(found[0] - np.sin(far[:, 0]))) < 0.2
    empty = LaplacianProcessRegressor(KERNEL, prior_scale=1e-9, optimizer=None)
    with pytest.warns(MercerWarning, match="all coefficients are 0"):
        empty.fit(X, y)
    with pytest.warns(MercerWarning, match="nothing tells how large functions are"):
        OnlineGPRegressor.from_posterior(empty.posterior_, empty.likelihood_, lift="scaled")
    with pytest.raises(ValueError, match="lift must be True, False or 'scaled', got 'much'"):
        OnlineGPRegressor.from_posterior(*given, lift="much")


def test_noise_of_a_white_kernel_is_a_start():
    X, y = rows()
    white = sklearn_kernels.WhiteKernel
    wanted = LaplacianProcessRegressor(KERNEL, optimizer=None).fit(X, y)
    for level in (1.0, 10.0):
        kernel = sklearn_kernels.RBF(float(KERNEL.length_scale)) + white(level)
        model = LaplacianProcessRegressor(kernel, optimizer=None).fit(X, y)
        assert model.likelihood_.noise == pytest.approx(wanted.likelihood_.noise)
    kernel = sklearn_kernels.RBF(1.0) + white(0.3, noise_level_bounds="fixed")
    assert LaplacianProcessRegressor(kernel, optimizer=None).fit(X, y).likelihood_.noise == 0.3


@pytest.mark.parametrize(
    ("count", "size", "unlike"), [(2, 4.0, False), (2, 1e4, True), (8, 3.0, True), (8, 1e4, True)]
)
def test_few_points_tell_little_of_how_large_a_function_is(count, size, unlike):
    X, y = rows()
    centres = np.linspace(-3, 3, count)[:, None]
    model = LaplacianProcessRegressor(RBF(1.0), centres=centres, optimizer=None, mean="zero")
    model.fit(X, size * y)
    few, factor = model.posterior_.n_basis < 5, likeliest_factor(model.posterior_)
    assert few == (count == 2) and (4.0 < factor < 16.0 if size < 10.0 else factor > 16.0)
    for lift, text in (("scaled", "fewer than 5 points"), (True, "error bars away")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            OnlineGPRegressor.from_posterior(
                model.posterior_, model.likelihood_, max_basis=20, lift=lift
            )
        told = any(text in str(each.message) for each in caught)
        assert told == (few if lift == "scaled" else unlike)
