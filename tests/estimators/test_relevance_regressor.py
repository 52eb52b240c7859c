"""`RelevanceVectorRegressor`: what it solves, predicts and keeps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import mercer
from mercer import OnlineGPRegressor, RelevanceVectorRegressor
from mercer.errors import MercerWarning
from mercer.kernels import RBF, Callable, Linear, Tanh
from mercer.likelihoods import StudentT
from mercer.means import Constant
from mercer.priors import GammaPrecision

from .relevance_data import HELD, rows, waves


def overlap(a, b):
    return float(len(set(a) & set(b)))


# --- what is solved -------------------------------------------------------------------------------


def test_predictions_are_those_of_the_gaussian_process_of_the_functions():
    """(BKM 127, 129, 130), and UV Remark 15: covariance Phi S^-1 Phi'."""
    X, y = rows()
    w = np.linspace(0.5, 2.0, 80)
    model = RelevanceVectorRegressor(mean=Constant(2.0, estimate=None), **HELD).fit(X, y, w)
    v = model.noise_variance_
    X_new = np.linspace(-3, 3, 7)[:, None]
    both = np.vstack([X, X_new])
    Phi = RBF(1.0)(both, model.relevance_)
    K = (Phi / model.precisions_) @ Phi.T
    Q = K[:80, :80] + np.diag(v / w)
    gain = np.linalg.solve(Q, K[:80, 80:]).T
    np.testing.assert_allclose(model.predict(X_new), 2.0 + gain @ (y - 2.0), rtol=1e-8)
    cov = K[80:, 80:] - gain @ K[:80, 80:]
    got = model.predict(X_new, return_cov=True, latent=True)[1]
    np.testing.assert_allclose(got, cov, atol=1e-10)
    std = model.predict(X_new, return_std=True)[1]
    np.testing.assert_allclose(std**2, np.diag(cov) + v, rtol=1e-8)
    np.testing.assert_array_equal(model.relevance_, X[model.relevance_indices_])
    np.testing.assert_allclose(
        Phi[:80] @ model.weights_ + 2.0, model.predict(X, latent=True), rtol=1e-10
    )


def test_the_evidence_is_in_the_targets_units():
    """ln N(y; m, v + Phi S^-1 Phi'), the mean's own variance included, in whatever units."""
    X, y = rows()
    for scale in (1.0, 1e3):
        model = RelevanceVectorRegressor().fit(X, scale * y)
        Phi = model.kernel_(X, model.relevance_)
        cov = (Phi / model.precisions_) @ Phi.T + model.noise_variance_ * np.eye(80)
        # the constant has a precision of its own, about the mean of the targets
        top = max(
            multivariate_normal(np.full(80, scale * y.mean()), cov + s).logpdf(scale * y)
            for s in scale**2 * np.append(0.0, np.logspace(-8, 2, 400))
        )
        assert model.log_marginal_likelihood_value_ == pytest.approx(top, abs=2e-2)


@pytest.mark.parametrize("algorithm", ["fixed_point", "em", "greedy"])
def test_algorithms_reach_about_the_same_evidence(algorithm):
    X, y = rows(40)
    fast = RelevanceVectorRegressor(**HELD).fit(X, y)
    other = RelevanceVectorRegressor(algorithm=algorithm, **HELD).fit(X, y)
    reached = fast.log_marginal_likelihood_value_
    assert other.log_marginal_likelihood_value_ == pytest.approx(reached, abs=4.0)
    assert np.all(np.diff(other.history_["steps"]) >= -1e-9)


def test_the_width_is_found():
    """As good as the best of a fine grid, but for what the charge for functions is worth."""
    X, y = rows(150, seed=1)
    model = RelevanceVectorRegressor().fit(X, y)
    grid = [
        RelevanceVectorRegressor(RBF(width), optimizer=None)
        .fit(X, y)
        .log_marginal_likelihood_value_
        for width in np.geomspace(0.05, 4.0, 14)
    ]
    assert model.log_marginal_likelihood_value_ > max(grid) - 6.0
    assert len(model.history_["value"]) == len(model.history_["theta"]) > 10
    f = np.sinc(X[:, 0]) + 2.0
    assert np.sqrt(np.mean((model.predict(X) - f) ** 2)) < 0.04


def test_noise_is_not_explained_by_narrow_functions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.standard_normal(100)
    model = RelevanceVectorRegressor().fit(X, y)
    assert model.n_relevance_ < 15 and 0.6 < model.noise_variance_ < 1.3


def test_columns_that_do_not_matter_have_long_length_scales():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (120, 3))
    y = np.sin(2.0 * X[:, 1]) + 0.1 * rng.standard_normal(120)
    scales = RelevanceVectorRegressor().fit(X, y).kernel_.length_scale
    assert scales[1] < 0.3 * min(scales[0], scales[2])


def test_centres_move_up_the_evidence():
    X, y = rows()
    still = RelevanceVectorRegressor(**HELD).fit(X, y)
    moved = RelevanceVectorRegressor(learn_centres=True, **HELD).fit(X, y)
    assert moved.log_marginal_likelihood_value_ > still.log_marginal_likelihood_value_ + 0.1
    assert moved.kernel_ == RBF(1.0)
    assert not np.any(np.isin(moved.relevance_, X))
    assert len(moved.relevance_indices_) == len(moved.relevance_)


# --- functions ------------------------------------------------------------------------------------


def test_several_kernels_and_functions_of_the_users():
    X, y = rows()
    y = y + np.sin(X[:, 0])
    kernels = [RBF(0.5), Tanh(0.5), Linear()]
    model = RelevanceVectorRegressor(kernels, functions=waves, optimizer=None).fit(X, y)
    parts = [k(X, own) for k, own in zip(kernels, model.relevance_, strict=True)]
    parts.append(waves(X)[:, model.function_indices_])
    by_hand = np.hstack(parts) @ model.weights_ + model.mean_.value
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-9)
    assert 0 in model.function_indices_
    assert model.n_relevance_ == len(model.weights_) == len(model.precisions_)
    assert model.kernel_ == kernels and model.theta_.size >= 4
    gradient = model.predict_gradient(X[:5]).mean[:, 0]
    step = 1e-5
    wanted = (model.predict(X[:5] + step) - model.predict(X[:5] - step)) / (2 * step)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-6)


def test_several_kernels_are_saved(tmp_path):
    X, y = rows()
    model = RelevanceVectorRegressor([RBF(0.5), Tanh(0.5)], optimizer=None, augment=True).fit(X, y)
    mercer.save(model, tmp_path / "a.mercer")
    again = mercer.load(tmp_path / "a.mercer")
    for got, wanted in zip(
        again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def test_functions_alone_and_given_centres():
    X, y = rows()
    alone = RelevanceVectorRegressor(functions=waves, centres=np.empty((0, 1))).fit(X, y)
    assert alone.relevance_.size == 0 and len(alone.weights_) == len(alone.function_indices_) > 0
    grid = np.linspace(-3, 3, 9)[:, None]
    model = RelevanceVectorRegressor(centres=grid, **HELD).fit(X, y)
    np.testing.assert_array_equal(model.relevance_, grid[model.relevance_indices_])


def test_objects_and_precomputed_kernels():
    words = ["apple", "pear", "banana", "cherry", "grape", "melon", "fig"]
    y = np.array([float(len(word)) for word in words])
    model = RelevanceVectorRegressor(Callable(overlap), noise=0.1).fit(words, y)
    assert np.all(np.isfinite(model.predict(words, return_std=True)))
    X, y = rows()
    K = RBF(1.0)(X)
    plain = RelevanceVectorRegressor(**HELD).fit(X, y)
    made = RelevanceVectorRegressor("precomputed").fit(K, y)
    np.testing.assert_allclose(made.predict(K[:5]), plain.predict(X[:5]), rtol=1e-9)
    assert set(made.relevance_indices_) == set(plain.relevance_indices_)


# --- noise ----------------------------------------------------------------------------------------


def test_outliers_are_told():
    X, y = rows()
    y[::10] += 2.0
    model = RelevanceVectorRegressor(robust=True, **HELD).fit(X, y)
    weights = model.outlier_weights_
    assert weights.shape == (80,) and np.max(weights[::10]) < 0.1 < np.median(weights)
    assert isinstance(model.likelihood_, StudentT) and model.likelihood_.df == 4.0
    assert model.likelihood_.scale**2 == pytest.approx(model.noise_variance_)
    f = 2.0 + np.sinc(X[:, 0])
    plain = RelevanceVectorRegressor(**HELD).fit(X, y)
    error, before = (np.mean((m.predict(X) - f) ** 2) for m in (model, plain))
    assert error < 0.3 * before
    # rows that are given twice, and rows of no weight, are told of too
    twice, w = np.r_[np.arange(80), 0, 3], np.r_[np.ones(81), 0.0]
    again = RelevanceVectorRegressor(robust=True, **HELD).fit(X[twice], y[twice], w)
    assert (
        again.outlier_weights_[80] == again.outlier_weights_[0] and again.outlier_weights_[81] == 0
    )


def test_known_noise_and_its_prior():
    X, y = rows()
    assert RelevanceVectorRegressor(noise=0.5, **HELD).fit(X, y).noise_variance_ == pytest.approx(
        0.5
    )
    # a prior of many rows' worth, about a variance of 1
    held = RelevanceVectorRegressor(noise_prior=(1e4, 1e4), **HELD).fit(X, y)
    assert held.noise_variance_ == pytest.approx(1.0, rel=0.02)
    units = RelevanceVectorRegressor(noise_prior=(1e4, 1e4), normalize_y=True, **HELD).fit(X, y)
    assert units.noise_variance_ == pytest.approx(1.0, rel=0.02)


def test_outputs_have_noise_and_functions_of_their_own():
    X, y = rows()
    Y = np.column_stack([y, 10.0 * np.sin(X[:, 0]) + np.random.default_rng(1).normal(size=80)])
    both = RelevanceVectorRegressor(**HELD).fit(X, Y)
    mean, std = both.predict(X[:6], return_std=True)
    for p in range(2):
        alone = RelevanceVectorRegressor(**HELD).fit(X, Y[:, p])
        np.testing.assert_allclose(both.noise_variance_[p], alone.noise_variance_, rtol=1e-9)
        np.testing.assert_allclose(both.weights_[p], alone.weights_, rtol=1e-7)
        wanted = alone.predict(X[:6], return_std=True)
        np.testing.assert_allclose(mean[:, p], wanted[0], rtol=1e-9)
        np.testing.assert_allclose(std[:, p], wanted[1], rtol=1e-9)
    with pytest.raises(AttributeError, match="posteriors_ is the list"):
        both.posterior_  # noqa: B018


def test_a_hyperprior_asks_for_less():
    X, y = rows()
    flat = RelevanceVectorRegressor(hyperprior="flat", **HELD).fit(X, y)
    tight = RelevanceVectorRegressor(hyperprior=GammaPrecision(50.0, 0.5), **HELD).fit(X, y)
    # s is about a/b = 100, which leaves weights of 0.1
    assert np.max(np.abs(tight.weights_)) < 0.5 < np.max(np.abs(flat.weights_))


# --- far from data --------------------------------------------------------------------------------


def test_error_bars_far_away():
    """With augmentation they are those of the prior; without, of noise and mean, with a warning."""
    X, y = rows()
    plain = RelevanceVectorRegressor(**HELD).fit(X, y)
    far = np.array([[50.0]])
    with pytest.warns(MercerWarning, match="far from every relevance vector.*augment=True"):
        std = plain.predict(far, return_std=True)[1]
    assert std[0] < 2.0 * np.sqrt(plain.noise_variance_)
    healed = RelevanceVectorRegressor(augment=True, **HELD).fit(X, y)
    mean, std = healed.predict(far, return_std=True, latent=True)
    assert mean[0] == pytest.approx(plain.predict(far)[0])
    assert std[0] ** 2 > np.median(1.0 / plain.precisions_)
    assert std[0] ** 2 == pytest.approx(np.median(1.0 / plain.precisions_), rel=0.05)
    near, before = healed.predict(X, return_std=True), plain.predict(X, return_std=True)
    assert np.all(np.abs(near[0] - before[0]) < before[1])
    with pytest.raises(AttributeError, match="augment=False has one"):
        healed.posterior_  # noqa: B018
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain.predict(X, return_std=True)
        line = RelevanceVectorRegressor(Linear(), optimizer=None).fit(X, y + 3.0 * X[:, 0])
        line.predict(far, return_std=True)
        own = RelevanceVectorRegressor(RBF(0.8), functions=_line, optimizer=None)
        own.fit(X, y + 3.0 * X[:, 0]).predict(far, return_std=True)  # a line says something there
    several = RelevanceVectorRegressor([RBF(1e-4), RBF(0.8)], noise=0.01, optimizer=None)
    with pytest.warns(MercerWarning, match="1 of 21 points are far from every"):
        several.fit(X, y).predict(np.vstack([X[:20] + 1e-3, far]), return_std=True)


def _line(Z):
    return Z[:, :1]


# --- afterwards -----------------------------------------------------------------------------------


def test_pruning_and_going_on():
    X, y = rows()
    model = RelevanceVectorRegressor(RBF(0.3), optimizer=None).fit(X, y)
    small, loss = model.posterior_.prune(5, model.noise_variance_)
    assert small.n_basis == 5 and loss >= 0
    online = OnlineGPRegressor.from_posterior(model.posterior_, model.likelihood_)
    before = online.predict(X[:1])[0]
    online.partial_fit(np.repeat(X[:1], 50, axis=0), np.full(50, 5.0))
    assert online.predict(X[:1])[0] > before + 0.1


@pytest.mark.parametrize("algorithm", ["fast", "fixed_point", "em", "greedy", "variational"])
def test_functions_too_large_are_refused_and_too_small_ones_left_out(algorithm):
    x = np.random.default_rng(0).uniform(-3, 3, (30, 1))
    y = np.sin(x[:, 0])
    given = {"algorithm": algorithm, "optimizer": None, "max_steps": 20}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        warnings.simplefilter("error", RuntimeWarning)
        for size in (1e80, 1e200):
            model = RelevanceVectorRegressor(RBF(1.0), functions=lambda X, c=size: c * X, **given)
            with pytest.raises(ValueError, match="other units"):
                model.fit(x, y)
        for size in (1e-160, 1e-200):
            model = RelevanceVectorRegressor(RBF(1.0), functions=lambda X, c=size: c * X, **given)
            assert len(model.fit(x, y).function_indices_) == 0
        with pytest.raises(ValueError, match=r"from 1e-40 to 1e\+40"):
            RelevanceVectorRegressor(RBF(1.0), **given).fit(x, 1e-80 * y)


def test_a_sum_whose_linear_term_hides_the_others():
    """Far from 0 a section of RBF + Linear is all but constant; as two kernels they compete."""
    X, y = rows()
    far = X + 1e4
    with pytest.warns(MercerWarning, match="hides its other terms: centre the columns, or give"):
        hidden = RelevanceVectorRegressor(RBF(0.8) + Linear(), optimizer=None).fit(far, y)
    assert hidden.n_relevance_ == 0
    both = RelevanceVectorRegressor([RBF(0.8), Linear()], optimizer=None).fit(far, y)
    assert both.score(far, y) > 0.8
    noise = np.random.default_rng(0).normal(size=len(y))
    with pytest.warns(
        MercerWarning, match="no relevance vector was kept for target 1: .*the targets"
    ):
        RelevanceVectorRegressor(RBF(5.0), optimizer=None).fit(X, np.column_stack([X, noise]))
