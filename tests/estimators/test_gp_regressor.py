"""GPRegressor: agreement with scikit-learn, predictions, means, weights, units and options."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from mercer import GPRegressor, means
from mercer.errors import BoundWarning, ConvergenceWarning, JitterWarning, TooLargeError
from mercer.kernels import RBF, Callable, Flipped, Linear, Matern, Periodic, Tanh
from mercer.likelihoods import Gaussian
from mercer.params import Parameter


def make(n=40, d=3, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, -1] + noise * rng.normal(size=n)


X, Y = make()
X_NEW = np.random.default_rng(9).normal(size=(7, 3))


def fixed(kernel=None, noise=0.2, **kwargs):
    kernel = 1.7 * RBF([1.0, 2.0, 0.7]) if kernel is None else kernel
    return GPRegressor(kernel, Gaussian(noise), mean="zero", optimizer=None, **kwargs)


PAIRS = [
    (1.7 * RBF([1.0, 2.0, 0.7]), 1.7 * sk.RBF([1.0, 2.0, 0.7])),
    (0.5 * Matern(1.3, nu=1.5), 0.5 * sk.Matern(1.3, nu=1.5)),
    (Matern(1.3, nu=0.7), sk.Matern(1.3, nu=0.7)),
    (RBF(2.0) + 0.5 * Linear(0.49), sk.RBF(2.0) + 0.5 * sk.DotProduct(0.7)),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=repr)
def test_agrees_with_scikit_learn(ours, theirs):
    model = fixed(ours).fit(X, Y)
    peer = GaussianProcessRegressor(theirs + sk.WhiteKernel(0.2), alpha=0.0, optimizer=None)
    peer.fit(X, Y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        peer.log_marginal_likelihood_value_, rel=1e-8
    )
    for return_what in ("return_std", "return_cov"):
        for a, b in zip(
            model.predict(X_NEW, **{return_what: True}),
            peer.predict(X_NEW, **{return_what: True}),
            strict=True,
        ):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_evidence_gradient_agrees_with_scikit_learn():
    model = fixed().fit(X, Y)
    kernel = 1.7 * sk.RBF([1.0, 2.0, 0.7]) + sk.WhiteKernel(0.2)
    peer = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, Y)
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    peer_value, peer_gradient = peer.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    assert value == pytest.approx(peer_value, rel=1e-8)
    np.testing.assert_allclose(gradient, peer_gradient, rtol=1e-8, atol=1e-8)


def test_takes_scikit_learn_kernels():
    theirs = 1.7 * sk.RBF([1.0, 2.0, 0.7]) + sk.WhiteKernel(0.2)
    model = GPRegressor(theirs, mean="zero", optimizer=None).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_NEW), fixed().fit(X, Y).predict(X_NEW), rtol=1e-12)


def test_finds_at_least_the_evidence_that_scikit_learn_finds():
    kernel = 1.0 * sk.RBF([1.0] * 3) + sk.WhiteKernel(0.1)
    peer = GaussianProcessRegressor(kernel, alpha=0.0, n_restarts_optimizer=2, random_state=0)
    peer.fit(X, Y)
    model = GPRegressor(1.0 * RBF([1.0] * 3), Gaussian(0.1), mean="zero").fit(X, Y)
    assert model.log_marginal_likelihood_value_ >= peer.log_marginal_likelihood_value_ - 1e-3


# --- predictions ------------------------------------------------------------------------------


def test_default_model_predicts_well_and_its_errors_are_honest():
    X, y = make(300, noise=0.2)
    X_test, y_test = make(500, seed=1, noise=0.2)
    model = GPRegressor().fit(X, y)
    mean, std = model.predict(X_test, return_std=True)
    assert np.sqrt(np.mean((mean - y_test) ** 2)) < 0.24
    for coverage in (0.5, 0.9, 0.95):
        lo, hi = model.predict_interval(X_test, coverage)
        # three standard errors of a binomial over 500 rows
        width = 3 * np.sqrt(coverage * (1 - coverage) / 500)
        assert np.mean((lo <= y_test) & (y_test <= hi)) == pytest.approx(coverage, abs=width)
    np.testing.assert_allclose(
        model.log_predictive_density(X_test, y_test), norm.logpdf(y_test, mean, std), rtol=1e-10
    )


def test_latent_spread_lacks_the_noise():
    model = fixed().fit(X, Y)
    _, std = model.predict(X_NEW, return_std=True)
    _, latent = model.predict(X_NEW, return_std=True, latent=True)
    np.testing.assert_allclose(std**2 - latent**2, 0.2, rtol=1e-10)
    _, cov = model.predict(X_NEW, return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-10)


def test_input_gradients():
    model = fixed().fit(X, Y)
    gradient = model.predict_gradient(X_NEW)
    step = 1e-5
    for k in range(3):
        E = step * np.eye(3)[k]
        up, down = (model.predict(X_NEW + s * E, return_std=True) for s in (1, -1))
        for ours, a, b in zip(gradient, up, down, strict=True):
            np.testing.assert_allclose(ours[:, k], (a - b) / (2 * step), rtol=1e-5, atol=1e-8)


def test_samples_have_the_predicted_moments():
    model = fixed().fit(X, Y)
    mean, cov = model.predict(X_NEW, return_cov=True)
    draws = model.sample_y(X_NEW, 20_000, random_state=1)
    assert draws.shape == (7, 20_000)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.04)
    np.testing.assert_allclose(np.cov(draws), cov, atol=0.06)
    np.testing.assert_array_equal(draws, model.sample_y(X_NEW, 20_000, random_state=1))


def test_unfitted_model_predicts_from_its_prior():
    model = GPRegressor(2.0 * RBF(), Gaussian(0.5))
    mean, std = model.predict(X_NEW, return_std=True)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(std, np.sqrt(2.5))
    assert GPRegressor().sample_y(X_NEW, 4).shape == (7, 4)


# --- means, weights, noise --------------------------------------------------------------------


def test_estimated_means_shift_with_the_targets():
    base = GPRegressor(RBF(), Gaussian(0.2), optimizer=None).fit(X, Y)
    moved = GPRegressor(RBF(), Gaussian(0.2), optimizer=None).fit(X, Y + 100.0)
    np.testing.assert_allclose(moved.predict(X_NEW), base.predict(X_NEW) + 100.0, rtol=1e-10)
    assert moved.mean_.value == pytest.approx(base.mean_.value + 100.0)


def test_linear_mean_finds_a_plane():
    y = 3.0 + X @ [1.0, -2.0, 0.5]
    model = GPRegressor(0.01 * RBF(), Gaussian(1e-4), mean="linear", optimizer=None).fit(X, y)
    np.testing.assert_allclose(model.mean_.coefficients[:, 0], [3.0, 1.0, -2.0, 0.5], atol=1e-6)
    far = 100.0 * X_NEW
    np.testing.assert_allclose(model.predict(far), 3.0 + far @ [1.0, -2.0, 0.5], rtol=1e-6)


def test_function_as_mean():
    def trend(X):
        return 10.0 * X[:, 0]

    model = fixed().set_params(mean=trend).fit(X, Y + trend(X))
    np.testing.assert_allclose(
        model.predict(X_NEW), fixed().fit(X, Y).predict(X_NEW) + trend(X_NEW), rtol=1e-10
    )


def test_integrating_the_mean_out_widens_the_error_bars():
    estimated = GPRegressor(RBF(), Gaussian(0.2), optimizer=None).fit(X, Y)
    integrated = GPRegressor(
        RBF(), Gaussian(0.2), mean=means.Constant(estimate="integrate"), optimizer=None
    ).fit(X, Y)
    np.testing.assert_allclose(estimated.predict(X_NEW), integrated.predict(X_NEW), rtol=1e-9)
    assert np.all(
        integrated.predict(X_NEW, return_std=True)[1] > estimated.predict(X_NEW, return_std=True)[1]
    )


@pytest.mark.parametrize("mean", ["zero", "constant", means.Linear(estimate="integrate")])
def test_weights_repeat_and_remove_rows(mean):
    weights = np.ones(40)
    weights[5], weights[7] = 2.0, 0.0
    rows = np.append(np.delete(np.arange(40), 7), 5)
    weighted = GPRegressor(mean=mean).fit(X, Y, sample_weight=weights)
    repeated = GPRegressor(mean=mean).fit(X[rows], Y[rows])
    assert weighted.log_marginal_likelihood_value_ == pytest.approx(
        repeated.log_marginal_likelihood_value_, rel=1e-9
    )
    assert weighted.likelihood_.noise == pytest.approx(repeated.likelihood_.noise, rel=1e-5)
    np.testing.assert_allclose(weighted.predict(X_NEW), repeated.predict(X_NEW), rtol=1e-5)


def test_known_noise_variances_are_held():
    noise = np.linspace(0.01, 1.0, 40)
    model = GPRegressor(RBF(), Gaussian(noise), mean="zero", optimizer=None).fit(X, Y)
    peer = GaussianProcessRegressor(sk.RBF(), alpha=noise, optimizer=None).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_NEW), peer.predict(X_NEW), rtol=1e-8)
    _, latent = model.predict(X_NEW, return_std=True, latent=True)
    np.testing.assert_allclose(latent, peer.predict(X_NEW, return_std=True)[1], rtol=1e-8)
    weights = np.ones(40)
    weights[3] = 0.0
    keep = weights > 0
    dropped = GPRegressor(RBF(), Gaussian(noise), optimizer=None).fit(X, Y, sample_weight=weights)
    removed = GPRegressor(RBF(), Gaussian(noise[keep]), optimizer=None).fit(X[keep], Y[keep])
    np.testing.assert_allclose(dropped.predict(X_NEW), removed.predict(X_NEW), rtol=1e-12)


def test_weighted_rows_of_known_noise_are_repeated_rows():
    noise = np.linspace(0.01, 1.0, 40)
    weights = np.ones(40)
    weights[[3, 30]] = 2.0, 3.0
    rows = np.repeat(np.arange(40), weights.astype(int))
    weighted = GPRegressor(RBF(), Gaussian(noise), optimizer=None).fit(X, Y, weights)
    repeated = GPRegressor(RBF(), Gaussian(noise[rows]), optimizer=None).fit(X[rows], Y[rows])
    for a, b in zip(
        weighted.predict(X_NEW, return_std=True),
        repeated.predict(X_NEW, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_rows_can_be_dropped_under_a_full_noise_covariance():
    S = 0.1 * np.eye(40) + 0.05
    weights = np.ones(40)
    weights[5] = 0.0
    keep = weights > 0
    dropped = GPRegressor(RBF(), Gaussian(S), optimizer=None).fit(X, Y, weights)
    removed = GPRegressor(RBF(), Gaussian(S[np.ix_(keep, keep)]), optimizer=None)
    removed.fit(X[keep], Y[keep])
    np.testing.assert_allclose(dropped.predict(X_NEW), removed.predict(X_NEW), rtol=1e-12)
    with pytest.raises(ValueError, match="full noise covariance"):
        GPRegressor(RBF(), Gaussian(S), optimizer=None).fit(X, Y, 2.0 * weights)


def test_full_noise_covariance():
    S = 0.1 * np.eye(40) + 0.05
    model = GPRegressor(RBF(), Gaussian(S), mean="zero", optimizer=None).fit(X, Y)
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    K_new = np.exp(-0.5 * np.sum((X_NEW[:, None] - X[None]) ** 2, axis=2))
    np.testing.assert_allclose(model.predict(X_NEW), K_new @ np.linalg.solve(K + S, Y), rtol=1e-9)


# --- leave-one-out, evidence ------------------------------------------------------------------


LOO_MEANS = ["zero", "constant", "linear", means.Linear(estimate="integrate")]


@pytest.mark.parametrize("mean", LOO_MEANS, ids=str)
@pytest.mark.parametrize("outputs", [1, 2])
def test_leave_one_out_equals_refitting(mean, outputs):
    weights = np.ones(40)
    weights[4], weights[9] = 3.0, 0.5
    y = Y if outputs == 1 else np.column_stack([Y, 3.0 * Y**2])
    model = fixed().set_params(mean=mean, normalize_y=True).fit(X, y, sample_weight=weights)
    left = model.loo()
    for i in (0, 4, 9, 39):
        keep = np.arange(40) != i
        part = GPRegressor(
            model.kernel_, model.likelihood_, mean=mean, optimizer=None, normalize_y=False
        )
        # the same units as the fit to all rows
        scale = model.posterior_.scale
        offset = model.mean_(X) if isinstance(mean, str) and mean == "zero" else np.zeros((40, 1))
        part.fit(X[keep], ((y.reshape(40, -1) - offset) / scale)[keep], weights[keep])
        predicted, std = part.predict(X[[i]], return_std=True)
        np.testing.assert_allclose(left.mean[i], (predicted * scale + offset[[i]])[0].squeeze())
        np.testing.assert_allclose(left.std[i], (std * scale)[0].squeeze(), rtol=1e-9)
    np.testing.assert_allclose(left.log_density, norm.logpdf(y, left.mean, left.std), rtol=1e-10)


@pytest.mark.parametrize("mean", LOO_MEANS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_as_objective(mean, weighted):
    weights = np.linspace(0.5, 2.0, 40) if weighted else None
    options = {"mean": mean, "hyperprior": None}
    by_evidence = GPRegressor(1.0 * RBF(), **options).fit(X, Y, weights)
    start = by_evidence.kernel_, by_evidence.likelihood_
    by_loo = GPRegressor(*start, objective="loo", **options).fit(X, Y, weights)

    def density(model):
        return np.sum((1.0 if weights is None else weights) * model.loo().log_density)

    assert density(by_loo) > density(by_evidence) + 1e-4
    # and what was maximised is what `loo` reports
    assert by_loo.history_["value"].max() == pytest.approx(density(by_loo), rel=1e-9)


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_evidence_gradient_runs_over_kernel_noise_and_mean(mean):
    model = GPRegressor(1.3 * RBF([1.0, 2.0, 0.7]), Gaussian(0.2), mean=mean, optimizer=None)
    model.fit(X, Y)
    theta = model.theta_ + 0.1
    _, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert gradient.shape == theta.shape
    step = 1e-5
    for i, e in enumerate(step * np.eye(theta.size)):
        up, down = (model.log_marginal_likelihood(theta + s * e) for s in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6)


def test_evidence_at_the_fit():
    model = GPRegressor().fit(X, Y)
    assert model.log_marginal_likelihood() == pytest.approx(
        model.log_marginal_likelihood(model.theta_), rel=1e-10
    )
    # the mean's coefficients are at their maximum
    _, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert abs(gradient[-1]) < 1e-8


def test_standard_errors_do_not_see_the_penalty(monkeypatch):
    from mercer.errors import NotPositiveDefiniteError

    model = GPRegressor().fit(X, Y)

    def fail(*_):
        raise NotPositiveDefiniteError("no")

    monkeypatch.setattr("mercer.evidence.objective.evidence", fail)
    with pytest.raises(NotPositiveDefiniteError):
        model.standard_errors()


def test_standard_errors():
    X, y = make(150)
    model = GPRegressor(1.0 * RBF(), hyperprior=None).fit(X, y)
    errors = model.standard_errors()
    assert list(errors) == ["kernel.variance", "kernel.RBF.length_scale", "likelihood.noise"]
    # the noise of n rows is known to about sqrt(2/n) in its logarithm
    assert errors["likelihood.noise"] == pytest.approx(np.sqrt(2 / 150), rel=0.2)


# --- several outputs, units -------------------------------------------------------------------


def test_outputs_are_independent_and_share_the_kernel():
    two = np.column_stack([Y, 5.0 * np.cos(X[:, 1])])
    both = fixed().fit(X, two)
    for p in range(2):
        one = fixed().fit(X, two[:, p])
        for a, b in zip(
            both.predict(X_NEW, return_std=True), one.predict(X_NEW, return_std=True), strict=True
        ):
            np.testing.assert_allclose(a[:, p], b, rtol=1e-9)
    separate = [fixed().fit(X, two[:, p]).log_marginal_likelihood_value_ for p in range(2)]
    assert both.log_marginal_likelihood_value_ == pytest.approx(sum(separate), rel=1e-10)
    assert both.predict(X_NEW, return_cov=True)[1].shape == (7, 7, 2)
    assert both.sample_y(X_NEW, 3).shape == (7, 2, 3)
    assert both.loo().mean.shape == (40, 2)
    assert both.predict_gradient(X_NEW).std.shape == (7, 3, 2)


def test_default_kernel_treats_outputs_of_different_units_alike():
    two = np.column_stack([Y, np.sin(X[:, 0])])
    small = GPRegressor().fit(X, two * [1.0, 1e-6])
    large = GPRegressor().fit(X, two * [1.0, 1e6])
    np.testing.assert_allclose(
        small.predict(X_NEW)[:, 1] * 1e12, large.predict(X_NEW)[:, 1], rtol=1e-5
    )


def test_given_noise_is_in_the_units_of_the_targets_for_several_outputs_too():
    two = np.column_stack([100.0 * Y, 50.0 * Y])
    model = GPRegressor(None, Gaussian(np.full(40, 25.0))).fit(X, two)
    _, std = model.predict(X_NEW, return_std=True)
    _, latent = model.predict(X_NEW, return_std=True, latent=True)
    np.testing.assert_allclose(std**2 - latent**2, 25.0, rtol=1e-6)


@pytest.mark.parametrize("scale_x", [1e-8, 1e8])
@pytest.mark.parametrize("scale_y", [1e-8, 1e8])
def test_default_model_does_not_depend_on_units(scale_x, scale_y):
    plain = GPRegressor().fit(X, Y)
    scaled = GPRegressor().fit(X * scale_x, Y * scale_y)
    for a, b in zip(
        plain.predict(X_NEW, return_std=True),
        scaled.predict(X_NEW * scale_x, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(b, a * scale_y, rtol=1e-4)
    np.testing.assert_allclose(
        scaled.kernel_.kernel.length_scale, plain.kernel_.kernel.length_scale * scale_x, rtol=1e-3
    )
    np.testing.assert_allclose(
        scaled.log_marginal_likelihood_value_,
        plain.log_marginal_likelihood_value_ - 40 * np.log(scale_y),
        rtol=1e-6,
    )


def test_normalised_targets_as_in_scikit_learn():
    y = 100.0 + 7.0 * Y
    peer = GaussianProcessRegressor(
        sk.RBF() + sk.WhiteKernel(0.2), alpha=0.0, optimizer=None, normalize_y=True
    ).fit(X, y)
    model = GPRegressor(RBF(), Gaussian(0.2), mean="zero", optimizer=None, normalize_y=True)
    model.fit(X, y)
    for a, b in zip(
        model.predict(X_NEW, return_std=True), peer.predict(X_NEW, return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-8)


# --- kernels of other kinds -------------------------------------------------------------------


def test_precomputed_kernel():
    K = RBF()(X)
    model = GPRegressor("precomputed", Gaussian(0.2), mean="zero", optimizer=None).fit(K, Y)
    peer = fixed(RBF()).fit(X, Y)
    cross, new = RBF()(X_NEW, X), RBF()(X_NEW)
    np.testing.assert_allclose(model.predict(cross), peer.predict(X_NEW), rtol=1e-10)
    with_diagonal = np.hstack([cross, np.ones((7, 1))])
    for a, b in zip(
        model.predict(with_diagonal, return_std=True),
        peer.predict(X_NEW, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    _, cov = model.predict(np.hstack([cross, new]), return_cov=True)
    np.testing.assert_allclose(cov, peer.predict(X_NEW, return_cov=True)[1], atol=1e-10)
    with pytest.raises(ValueError, match=r"k\(x, x\)"):
        model.predict(cross, return_std=True)
    with pytest.raises(ValueError, match="square"):
        model.fit(K[:, :5], Y)
    with pytest.raises(ValueError, match="symmetric"):
        model.fit(np.triu(K), Y)


def test_precomputed_kernel_with_a_mean_weights_and_samples():
    K = RBF()(X)
    weights = np.ones(40)
    weights[3], weights[8] = 0.0, 2.0
    model = GPRegressor("precomputed", Gaussian(0.2), optimizer=None).fit(K, Y + 5.0, weights)
    peer = GPRegressor(RBF(), Gaussian(0.2), optimizer=None).fit(X, Y + 5.0, weights)
    rows = np.hstack([RBF()(X_NEW, X), RBF()(X_NEW)])
    np.testing.assert_allclose(model.predict(rows[:, :40]), peer.predict(X_NEW), rtol=1e-10)
    np.testing.assert_allclose(model.predictive_.cov(rows), peer.predictive_.cov(X_NEW), atol=1e-10)
    assert model.sample_y(rows, 3).shape == (7, 3)
    model.set_params(kernel=RBF())  # what was fitted stays fitted
    np.testing.assert_allclose(model.predict(rows[:, :40]), peer.predict(X_NEW), rtol=1e-10)
    with pytest.raises(ValueError, match="no inputs for the mean"):
        GPRegressor("precomputed", mean="linear").fit(K, Y)


def test_scikit_learns_periodic_kernel_is_refused_where_it_is_no_covariance():
    """It takes |x - x'| inside the sine, which is indefinite for several columns."""
    with pytest.raises(ValueError, match="not a Mercer kernel"):
        GPRegressor(sk.ExpSineSquared()).fit(X, Y)
    column = X[:, :1]
    model = GPRegressor(sk.ExpSineSquared(1.3, 2.0) + sk.WhiteKernel(0.2), optimizer=None)
    peer = GaussianProcessRegressor(
        sk.ExpSineSquared(1.3, 2.0) + sk.WhiteKernel(0.2), alpha=0.0, optimizer=None
    )
    model.set_params(mean="zero").fit(column, Y)
    peer.fit(column, Y)
    np.testing.assert_allclose(model.predict(column), peer.predict(column), rtol=1e-8)


def test_kernel_over_any_objects():
    words = ["a", "ab", "abc", "b", "bc", "c"]

    def shared(u, v):
        return float(len(set(u) & set(v)))

    model = GPRegressor(Callable(shared), Gaussian(0.1), mean="zero", optimizer=None)
    model.fit(words, np.arange(6.0))
    K = np.array([[shared(u, v) for v in words] for u in words])
    expected = K[:2] @ np.linalg.solve(K + 0.1 * np.eye(6), np.arange(6.0))
    np.testing.assert_allclose(model.predict(words[:2]), expected, rtol=1e-10)


def test_indefinite_kernel_names_the_two_ways_out():
    with pytest.raises(ValueError, match=r"Flipped.*LaplacianProcess"):
        GPRegressor(Tanh()).fit(X, Y)
    model = GPRegressor(Flipped(Tanh()), optimizer=None).fit(X, Y)
    assert np.all(np.isfinite(model.predict(X_NEW)))


# --- the search -------------------------------------------------------------------------------


def test_history_status_and_warm_start():
    model = GPRegressor(warm_start=True).fit(X, Y)
    first = len(model.history_["value"])
    assert model.history_["theta"].shape == (first, 5)
    assert model.status_ == "converged"
    evidence = model.log_marginal_likelihood_value_
    model.fit(X, Y)
    assert len(model.history_["value"]) < first
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, rel=1e-4)


def test_interrupted_fit_keeps_the_best_so_far(monkeypatch):
    from mercer.evidence import Objective

    plain, calls = Objective.__call__, []

    def interrupted(self, theta):
        calls.append(theta)
        if len(calls) == 7:  # three to choose the start, then the fourth of the search
            raise KeyboardInterrupt
        return plain(self, theta)

    monkeypatch.setattr(Objective, "__call__", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = GPRegressor().fit(X, Y)
    assert model.status_ == "interrupted" and len(model.history_["value"]) == 3
    assert np.all(np.isfinite(model.predict(X_NEW)))


def test_too_small_a_budget_warns():
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        GPRegressor(max_iter=1).fit(X, Y)


def test_parameters_at_bounds_are_named():
    kernel = RBF(Parameter(1.0, bounds=(0.5, 1.1)))
    with pytest.warns(BoundWarning, match="length_scale at its upper bound"):
        GPRegressor(kernel).fit(X, 0.01 * X[:, 0])


def test_fixed_hyperparameters_stay():
    kernel = Parameter(2.0, fixed=True) * RBF(Parameter(1.5, fixed=True))
    model = GPRegressor(kernel, Gaussian(Parameter(0.3, fixed=True))).fit(X, Y)
    assert model.kernel_.variance == 2.0 and model.likelihood_.noise == 0.3
    assert model.status_ == "fixed"


def test_hyperprior_moves_the_fit_and_can_be_left_out():
    with_prior, without = GPRegressor().fit(X, Y), GPRegressor(hyperprior=None).fit(X, Y)
    assert (
        without.log_marginal_likelihood_value_ >= with_prior.log_marginal_likelihood_value_ - 1e-6
    )
    assert not np.allclose(with_prior.theta_, without.theta_, rtol=1e-3)


def test_callable_optimizer_and_restarts():
    def stay(function, start, bounds):
        return start, function(start)[0]

    model = GPRegressor(RBF(2.0), Gaussian(0.3), optimizer=stay).fit(X, Y)
    assert model.kernel_.length_scale == pytest.approx(2.0)
    best = GPRegressor(n_restarts=2, random_state=0).fit(X, Y)
    assert (
        best.log_marginal_likelihood_value_
        >= GPRegressor().fit(X, Y).log_marginal_likelihood_value_ - 0.5
    )


def test_periodic_signal_is_extrapolated():
    t = np.linspace(0, 10, 80)[:, None]
    y = np.exp(np.sin(2 * np.pi * t[:, 0] / 2.5))
    y += 0.05 * np.random.default_rng(0).normal(size=80)
    # a start from which the gradient is hundreds of units long: one step of that length would
    # leave the right period for good
    model = GPRegressor(1.0 * Periodic(1.0, 2.4), Gaussian(1e-3)).fit(t, y)
    ahead = np.linspace(20, 25, 30)[:, None]
    np.testing.assert_allclose(
        model.predict(ahead), np.exp(np.sin(2 * np.pi * ahead[:, 0] / 2.5)), atol=0.15
    )
    error = model.standard_errors()["kernel.Periodic.periodicity"]
    assert error < 1e-3
    assert np.log(model.kernel_.kernel.periodicity) == pytest.approx(np.log(2.5), abs=3 * error)


@pytest.mark.parametrize("cycles", [1, 3, 6, 15])
def test_default_model_finds_fast_signals_too(cycles):
    """From one length scale alone, six cycles over the inputs were fitted as noise."""
    x = np.linspace(0, 10, 150)[:, None]
    y = np.sin(2 * np.pi * cycles * x[:, 0] / 10)
    y += 0.1 * np.random.default_rng(0).normal(size=150)
    assert GPRegressor().fit(x, y).score(x, y) > 0.97


def test_length_scales_in_the_wrong_units_are_pointed_out():
    raw = X * [10.0, 5e4, 3e3]
    with pytest.warns(ConvergenceWarning, match="no two rows are near each other"):
        GPRegressor(RBF([1.0] * 3)).fit(raw, Y)


def test_leave_one_out_prints_short():
    assert repr(fixed().fit(X, Y).loo()).startswith("LeaveOneOut(40 rows, log_density ")


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"inference": "magic"}, "inference must be one of"),
        ({"objective": "aic"}, "objective must be one of"),
        ({"hyperprior": "wide"}, "hyperprior must be one of"),
        ({"optimizer": "adam"}, "optimizer must be one of"),
        ({"n_restarts": -1}, "n_restarts must be a whole number from 0"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1"),
        ({"n_restarts": True}, "n_restarts must be a whole number"),
        ({"n_jobs": "x"}, "n_jobs must be a whole number"),
        ({"verbose": "x"}, "verbose must be a whole number"),
        ({"normalize_y": "no"}, "normalize_y must be one of"),
        ({"random_state": "x"}, "random_state must be a whole number"),
        ({"kernel": "rbf"}, "kernel must be None"),
        ({"kernel": abs}, r"Callable\(f\)"),
        ({"likelihood": "gaussian"}, "likelihood must be None or a Gaussian"),
        ({"mean": "quadratic"}, "mean must be"),
        ({"kernel": RBF([1.0, 2.0])}, "2 values of length_scale, but the inputs have 3"),
        ({"kernel": RBF().on(5)}, "column 5"),
        ({"likelihood": Gaussian(np.ones(7))}, "7"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError, match=text):
        GPRegressor(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("bad_x", "bad_y", "text"),
    [
        (np.full((4, 2), np.nan), np.zeros(4), "NaN"),
        (np.zeros((4, 2)), [0.0, 1.0, np.inf, 2.0], "infinity"),
        (np.zeros((4, 2)), np.zeros(3), "inconsistent"),
        (np.zeros(4), np.zeros(4), "2D array"),
        (np.zeros((0, 2)), np.zeros(0), "0 sample"),
    ],
)
def test_bad_data(bad_x, bad_y, text):
    with pytest.raises(ValueError, match=text):
        GPRegressor().fit(bad_x, bad_y)


def test_unfitted_models_check_their_options_too():
    with pytest.raises(ValueError, match="inference must be one of"):
        GPRegressor(inference="magic").predict(X_NEW)


def test_bad_weights_and_calls():
    with pytest.raises(ValueError, match="negative"):
        GPRegressor().fit(X, Y, sample_weight=-np.ones(40))
    with pytest.raises(ValueError, match="at least one non-zero"):
        GPRegressor().fit(X, Y, sample_weight=np.zeros(40))
    model = fixed().fit(X, Y)
    for coverage in (95, 0, "0.9"):
        with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
            model.predict_interval(X_NEW, coverage=coverage)
    with pytest.raises(ValueError, match=r"shape \(40,\)"):
        GPRegressor().fit(X, Y, sample_weight=np.ones(39))
    with pytest.raises(ValueError, match="not both"):
        model.predict(X_NEW, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="y must have shape"):
        model.log_predictive_density(X_NEW, Y)
    with pytest.raises(ValueError, match="theta must have shape"):
        model.log_marginal_likelihood(np.zeros(2))
    with pytest.raises(ValueError, match="twice"):
        GPRegressor(sk.RBF() + sk.WhiteKernel(), Gaussian(0.1)).fit(X, Y)


def test_a_fit_that_cannot_fit_into_memory_is_refused_at_once(monkeypatch):
    import time

    monkeypatch.setattr("mercer.estimators.memory.available_memory", lambda: 2**34)
    started = time.perf_counter()
    with pytest.raises(TooLargeError, match=r"200,000 rows.*SparseGPRegressor.*OnlineGPRegressor"):
        GPRegressor().fit(np.zeros((200_000, 1)), np.zeros(200_000))
    assert time.perf_counter() - started < 5.0


def test_jitter_warns_once_and_is_kept():
    X = np.repeat(np.linspace(0, 1, 15), 2)[:, None]
    model = GPRegressor(RBF(), Gaussian(np.zeros(30)), mean="zero", optimizer=None)
    with pytest.warns(JitterWarning, match="jitter_") as caught:
        model.fit(X, np.sin(X[:, 0]))
    assert len(caught) == 1 and model.jitter_ > 0
