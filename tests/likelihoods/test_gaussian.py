"""Gaussian noise: closed forms against quadrature, weights against repeated rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mercer.likelihoods import Gaussian, Likelihood
from mercer.params import LogNormal, Parameter
from mercer.registry import from_json, to_json

rng = np.random.default_rng(0)
Y = rng.normal(size=(4, 2))
F = rng.normal(size=(4, 2))
VAR = 10 ** rng.uniform(-4, 2, size=(4, 2))
COV = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]])

# -------------------------------------------------------------- closed forms against quadrature


@pytest.mark.parametrize("noise", [1e-6, 0.3, 50.0])
def test_closed_forms_against_the_defaults(noise):
    likelihood = Gaussian(noise)
    base = super(Gaussian, likelihood)
    for got, want, unit in zip(
        likelihood.smoothed(Y, F, VAR),
        base.smoothed(Y, F, VAR),
        (1.0, np.sqrt(VAR), VAR),
        strict=True,
    ):
        # log Z itself is of size 1e5 here, so that its own rounding is 1e-11.
        np.testing.assert_allclose(got * unit, want * unit, rtol=1e-10, atol=1e-8)
    got, want = likelihood.log_predictive(Y, F, VAR), base.log_predictive(Y, F, VAR)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-8)
    for method in ("predictive_mean", "predictive_var"):
        got, want = (getattr(o, method)(F, VAR) for o in (likelihood, base))
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)
    got, want = (o.predictive_cdf(Y, F, VAR) for o in (likelihood, base))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("noise", [1e-4, 2.0])
def test_quantiles_against_the_defaults(noise):
    likelihood = Gaussian(noise)
    level = np.array([0.025, 0.5, 0.8])
    mean, var = np.array([[0.3], [-20.0]]), np.array([[0.5], [3.0]])
    got = likelihood.quantile(mean, var, level)
    assert got.shape == (2, 3)
    want = super(Gaussian, likelihood).quantile(mean, var, level)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        got, stats.norm.ppf(level, mean, np.sqrt(var + noise)), rtol=1e-12, atol=1e-12
    )


def test_nothing_is_left_to_the_defaults():
    generic = [
        "smoothed",
        "log_predictive",
        "predictive_mean",
        "predictive_var",
        "predictive_cdf",
        "quantile",
    ]
    assert all(getattr(Gaussian, m) is not getattr(Likelihood, m) for m in generic)


def test_densities_against_scipy():
    noise = 0.37
    likelihood = Gaussian(noise)
    want = stats.norm.logpdf(Y, F, np.sqrt(noise))
    np.testing.assert_allclose(likelihood.log_density(Y, F), want, rtol=1e-13)
    cdf = stats.norm.cdf(Y, F, np.sqrt(noise))
    np.testing.assert_allclose(likelihood.conditional_cdf(Y, F), cdf, rtol=1e-13)
    want = stats.norm.logpdf(Y, F, np.sqrt(noise + VAR))
    np.testing.assert_allclose(likelihood.log_predictive(Y, F, VAR), want, rtol=1e-13)
    np.testing.assert_allclose(
        likelihood.predictive_cdf(Y, F, VAR),
        stats.norm.cdf(Y, F, np.sqrt(noise + VAR)),
        rtol=1e-13,
    )


@pytest.mark.filterwarnings("error")
def test_new_observations_without_variance():
    # All of the mass is at the mean.
    likelihood, y = Gaussian([0.0, 0.0]), np.array([-1.0, 0.0, 2.0])
    want = [-np.inf, np.inf, -np.inf]
    np.testing.assert_array_equal(likelihood.log_predictive(y, 0.0, 0.0), want)
    np.testing.assert_array_equal(likelihood.predictive_cdf(y, 0.0, 0.0), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(likelihood.conditional_cdf(y, 0.0), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(likelihood.quantile(3.0, 0.0, [0.1, 0.9]), [3.0, 3.0])
    # Other rows are as they are alone.
    mixed = likelihood.log_predictive(0.5, 0.0, [0.0, 4.0])
    np.testing.assert_array_equal(mixed, [-np.inf, likelihood.log_predictive(0.5, 0.0, 4.0)])
    mixed = likelihood.predictive_cdf(0.5, 0.0, [0.0, 4.0])
    np.testing.assert_array_equal(mixed, [1.0, likelihood.predictive_cdf(0.5, 0.0, 4.0)])


@pytest.mark.filterwarnings("error")
def test_residuals_whose_squares_overflow():
    assert Gaussian(1e300).log_predictive(1e160, 0.0, 0.0) == pytest.approx(-5e19, rel=1e-14)
    assert Gaussian(1e300).log_density(1e160, 0.0) == pytest.approx(-5e19, rel=1e-14)
    tiny = Gaussian(1e-300).log_predictive(1e-170, 0.0, 0.0)
    assert tiny == pytest.approx(-0.5 * np.log(2e-300 * np.pi), rel=1e-14)
    assert Gaussian(1.0).log_predictive(1e200, 0.0, 0.0) == -np.inf


def test_derivatives_by_differences():
    likelihood, h = Gaussian(0.37), 1e-4
    first, second, third = likelihood.derivatives(Y, F)
    below, at, above = (likelihood.log_density(Y, F + s * h) for s in (-1, 0, 1))
    # A parabola: differences are exact but for rounding, eps/h and eps/h^2 times its size of 20.
    np.testing.assert_allclose(first, (above - below) / (2 * h), rtol=0, atol=1e-10)
    np.testing.assert_allclose(second, (above - 2 * at + below) / h**2, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(third, np.zeros((4, 2)))
    np.testing.assert_allclose(likelihood.fisher(F), -second, rtol=1e-14)


def test_samples():
    likelihood = Gaussian(0.25)
    f = np.full((100, 50), 3.0)
    draws = likelihood.sample(f, np.random.default_rng(1))
    assert draws.shape == f.shape
    assert stats.kstest(draws.ravel(), stats.norm(3.0, 0.5).cdf).pvalue > 0.01
    np.testing.assert_array_equal(draws, likelihood.sample(f, np.random.default_rng(1)))


# ------------------------------------------------------------------------------------ parameters


def test_scalar_noise_is_log_theta():
    likelihood = Gaussian(0.25)
    np.testing.assert_allclose(likelihood.theta, [np.log(0.25)], rtol=1e-15)
    assert likelihood.parameter_names == ["noise"]
    new = likelihood.with_theta([1.0])
    assert new.noise == pytest.approx(np.e, rel=1e-15) and likelihood.noise == 0.25
    assert likelihood.new_variance == 0.25 and likelihood.covariance is None


def test_parameters_are_kept():
    p = Parameter(0.25, bounds=(0.1, 1.0), prior=LogNormal(0.0, 1.0))
    likelihood = Gaussian(p)
    np.testing.assert_allclose(likelihood.bounds, [np.log([0.1, 1.0])], rtol=1e-15)
    assert likelihood.log_prior() == LogNormal(0.0, 1.0).log_density(np.array([0.25]))[0]
    assert Gaussian(Parameter(0.25, fixed=True)).theta.shape == (0,)
    moved = likelihood.with_theta([-1.0])
    assert moved.parameters["noise"].bounds == (0.1, 1.0)
    # A parameter put in later is made logarithmic too.
    other = likelihood.with_parameters(noise=Parameter(2.0))
    np.testing.assert_allclose(other.theta, [np.log(2.0)], rtol=1e-15)


@pytest.mark.parametrize("noise", [None, [0.1, 0.2], COV, Parameter(1.0, fixed=True)])
def test_nothing_free(noise):
    likelihood = Gaussian(noise)
    assert likelihood.theta.shape == (0,) and likelihood.bounds.shape == (0, 2)
    assert likelihood.with_theta([]) == likelihood


@pytest.mark.parametrize(
    "noise",
    [None, 0.3, Parameter(0.3, bounds=(0.1, np.inf), fixed=True), np.array([0.1, 0.0]), COV],
)
def test_storage_and_equality(noise):
    likelihood = Gaussian(noise)
    back = from_json(to_json(likelihood))
    assert back == likelihood
    np.testing.assert_array_equal(back.noise, likelihood.noise)
    assert likelihood != Gaussian(0.123)
    assert repr(likelihood).startswith("Gaussian(noise=")


def test_equality_of_arrays():
    assert Gaussian([0.1, 0.2]) == Gaussian(np.array([0.1, 0.2]))
    assert Gaussian([0.1, 0.2]) != Gaussian([0.1, 0.3])
    assert Gaussian([0.1, 0.2]) != Gaussian(None)


def test_arrays_are_copied_and_read_only():
    for given_noise in (np.array([0.1, 0.2, 0.3]), COV.copy()):
        likelihood = Gaussian(given_noise)
        before = np.array(likelihood.noise)
        given_noise[0] = 9.0
        likelihood.variances(3)[:] = 9.0
        np.testing.assert_array_equal(likelihood.noise, before)
        with pytest.raises(ValueError, match="read-only"):
            likelihood.noise[0] = 9.0


def test_unknown_noise_says_so():
    likelihood = Gaussian()
    assert likelihood.noise is None
    for call in (
        lambda: likelihood.new_variance,
        lambda: likelihood.variances(3),
        lambda: likelihood.log_density(0.0, 0.0),
        lambda: likelihood.predictive_var(0.0, 1.0),
    ):
        with pytest.raises(ValueError, match="not chosen yet"):
            call()


@pytest.mark.parametrize(
    ("noise", "match"),
    [
        (-1.0, "noise must be positive"),
        (0.0, "noise must be positive"),
        (np.nan, "noise must be a positive variance"),
        (np.inf, "noise must be a positive variance"),
        ("loud", "noise must be a positive variance"),
        (Parameter(-1.0), "noise must be positive"),
        (Parameter([0.1, 0.2]), "noise must be one number"),
        ([0.1, -0.2], "must not be negative, got .*-0.2"),
        ([0.1, np.nan], "noise must be finite"),
        ([], "array of shape"),
        (["a", "b"], "noise must hold numbers"),
        (np.ones((2, 3)), "must be square"),
        (np.ones((2, 2, 2)), "array of shape"),
        ([[1.0, 0.2], [0.3, 1.0]], "must be symmetric"),
        ([[1.0, 0.2], [0.2, -1.0]], "must not be negative"),
        ([[1.0, 2.0], [2.0, 1.0]], "no covariance"),
        ([[0.0, 0.5], [0.5, 1.0]], "no covariance"),
        ([[1.0, np.inf], [np.inf, 1.0]], "noise must be finite"),
    ],
)
def test_bad_noise(noise, match):
    with pytest.raises(ValueError, match=match):
        Gaussian(noise)


def test_asymmetry_by_rounding_is_mended():
    noisy = COV.copy()
    noisy[0, 1] *= 1 + 1e-15
    C = Gaussian(noisy).covariance
    np.testing.assert_array_equal(C, C.T)


# -------------------------------------------------------------------------------- rows and weights


def test_variances():
    np.testing.assert_array_equal(Gaussian(0.5).variances(3), [0.5, 0.5, 0.5])
    np.testing.assert_array_equal(Gaussian(0.5).variances(2, [2.0, 0.25]), [0.25, 2.0])
    rows = Gaussian([0.1, 0.4])
    np.testing.assert_array_equal(rows.variances(2, np.array([1.0, 2.0])), [0.1, 0.2])
    assert rows.new_variance == 0.25
    full = Gaussian(COV)
    np.testing.assert_array_equal(full.variances(3), np.diag(COV))
    np.testing.assert_array_equal(full.covariance, COV)
    assert full.new_variance == pytest.approx(np.mean([2.0, 1.0, 0.7]), rel=1e-15)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: Gaussian([0.1, 0.2]).variances(3), "given for 2 rows .* but there are 3"),
        (lambda: Gaussian(COV).variances(4), r"given for 3 rows \(shape \(3, 3\)\)"),
        (lambda: Gaussian(COV).variances(3, np.ones(3)), "weights cannot be combined"),
        (lambda: Gaussian(COV).weight_constant(3, np.ones(3)), "weights cannot be combined"),
        (lambda: Gaussian(1.0).variances(3, [1.0, 2.0]), "weights must be 3 positive numbers"),
        (lambda: Gaussian(1.0).variances(2, [1.0, 0.0]), "leave out the rows of weight 0"),
        (lambda: Gaussian(1.0).variances(2, [1.0, -1.0]), "positive"),
        (lambda: Gaussian(1.0).variances(2, [1.0, np.nan]), "positive"),
        (lambda: Gaussian([0.0, 1.0]).weight_constant(2, [2.0, 1.0]), "must have weight 1"),
        (lambda: Gaussian(1.0).pull_variances(np.ones((2, 2))), "one entry a row"),
        (lambda: Gaussian(1.0).subset([0, 1]), "boolean mask"),
        (lambda: Gaussian(1.0).subset(np.ones((2, 2), bool)), "boolean mask"),
        (lambda: Gaussian([1.0, 2.0]).subset([True]), "given for 2 rows"),
        (lambda: Gaussian(COV).log_density(np.zeros(3), np.zeros(3)), "couples the rows"),
        (lambda: Gaussian(COV).smoothed(np.zeros(3), 0.0, 1.0), "couples the rows"),
        (lambda: Gaussian([1.0, 2.0]).log_density(np.zeros(3), 0.0), "given for 2 rows"),
        (lambda: Gaussian([0.0, 2.0]).fisher(np.zeros(2)), "variance 0 has no density"),
    ],
)
def test_bad_rows_and_weights(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_rows_have_their_own_variance():
    noise = np.array([0.1, 0.5, 2.0, 4.0])
    likelihood = Gaussian(noise)
    for y, f, var, s in (
        (Y, F, VAR, noise[:, None]),
        (Y[:, 0], F[:, 0], VAR[:, 0], noise),
    ):
        np.testing.assert_allclose(
            likelihood.log_density(y, f), stats.norm.logpdf(y, f, np.sqrt(s)), rtol=1e-13
        )
        np.testing.assert_allclose(
            likelihood.smoothed(y, f, var)[0], stats.norm.logpdf(y, f, np.sqrt(s + var)), rtol=1e-13
        )
        np.testing.assert_allclose(likelihood.smoothed(y, f, var)[2], -1 / (s + var), rtol=1e-13)
        np.testing.assert_allclose(likelihood.fisher(f) * s, np.ones(y.shape), rtol=1e-13)
        np.testing.assert_allclose(likelihood.derivatives(y, f)[0], (y - f) / s, rtol=1e-13)
    # New observations have the mean of the variances, whatever their number.
    mean = noise.mean()
    want = stats.norm.logpdf(0.3, 0.0, np.sqrt(1 + mean))
    np.testing.assert_allclose(likelihood.log_predictive([0.3] * 7, 0.0, 1.0), want, rtol=1e-13)


def test_subset():
    keep = np.array([True, False, True])
    assert Gaussian([0.1, 0.2, 0.3]).subset(keep) == Gaussian([0.1, 0.3])
    assert Gaussian(COV).subset(keep) == Gaussian(COV[np.ix_(keep, keep)])
    assert Gaussian(0.5).subset(keep) == Gaussian(0.5)
    assert Gaussian().subset(keep) == Gaussian()


def log_evidence(X, y, variances):
    """Dense and obvious: log N(y; 0, K + D) with K a squared-exponential kernel."""
    K = 1.7 * np.exp(-0.5 * (X[:, None] - X[None, :]) ** 2)
    return stats.multivariate_normal(np.zeros(len(y)), K + np.diag(variances)).logpdf(y)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.floats(0.01, 10.0),
    st.booleans(),
    st.integers(0, 1000),
)
def test_weights_are_repeated_rows(weights, noise, per_row, seed):
    rng = np.random.default_rng(seed)
    w = np.array(weights)
    n = w.size
    X, y = rng.normal(size=n), rng.normal(size=n)
    s = noise * rng.uniform(0.5, 2.0, n) if per_row else np.full(n, noise)
    likelihood = Gaussian(s if per_row else noise)
    weighted = log_evidence(X, y, likelihood.variances(n, w)) + likelihood.weight_constant(n, w)
    repeated = log_evidence(np.repeat(X, w), np.repeat(y, w), np.repeat(s, w))
    # The repeated matrix has a condition number up to 20 * 1.7 / 0.005: a few thousand eps.
    np.testing.assert_allclose(weighted, repeated, rtol=1e-10, atol=1e-9)


def test_weight_constant_by_the_powers_of_a_density():
    # Fractional weights too: p(y | f)^w = c N(y; f, s/w), at any y and f.
    w, s = np.array([0.3, 1.0, 2.6]), np.array([0.2, 0.0, 1.5])
    y, f = np.array([0.1, -1.0, 2.0]), np.array([0.4, 0.2, 0.3])
    rows = [0, 2]
    powers = w[rows] * stats.norm.logpdf(y, f, np.sqrt(np.where(s > 0, s, 1)))[rows]
    wider = stats.norm.logpdf(y[rows], f[rows], np.sqrt((s / w)[rows]))
    got = Gaussian(s).weight_constant(3, w)
    assert got == pytest.approx(np.sum(powers - wider), rel=1e-12)


def test_weights_of_one_do_nothing():
    for likelihood in (Gaussian(0.4), Gaussian([0.4, 0.0])):
        assert likelihood.weight_constant(2) == 0.0
        assert likelihood.weight_constant(2, np.ones(2)) == 0.0
        assert not np.any(likelihood.weight_constant_gradient(2, np.ones(2)))
    assert Gaussian(COV).weight_constant(3) == 0.0
    assert Gaussian(COV).weight_constant_gradient(3).shape == (0,)


@pytest.mark.parametrize("weights", [None, np.array([0.5, 2.0, 3.0])])
def test_gradients_of_the_noise(weights):
    likelihood, h = Gaussian(0.37), 1e-6
    g = np.array([0.3, -1.2, 2.0])

    def along(theta):
        moved = likelihood.with_theta([theta])
        return g @ moved.variances(3, weights), moved.weight_constant(3, weights)

    at = likelihood.theta[0]
    above, below = np.array(along(at + h)), np.array(along(at - h))
    slope = (above - below) / (2 * h)
    np.testing.assert_allclose(likelihood.pull_variances(g, weights), slope[:1], rtol=1e-8)
    np.testing.assert_allclose(
        likelihood.weight_constant_gradient(3, weights), slope[1:], rtol=1e-8, atol=1e-9
    )


@pytest.mark.parametrize("noise", [[0.1, 0.2, 0.3], Parameter(0.3, fixed=True)])
def test_gradients_of_held_noise_are_empty(noise):
    likelihood = Gaussian(noise)
    assert likelihood.pull_variances(np.ones(3), np.ones(3)).shape == (0,)
    assert likelihood.weight_constant_gradient(3, np.ones(3)).shape == (0,)
