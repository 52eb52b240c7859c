"""Compiled averages of one observation: against brute force, `smoothed`, differences and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mercer.likelihoods import Gaussian, Logistic, MixtureNoise, Probit, StudentT
from mercer.linalg.smoothing import SITES

from ..likelihoods import oracle
from ..likelihoods.densities import (
    CASES,
    gaussian,
    huber,
    insensitive,
    mixture,
    poisson,
    probit,
    student,
)

compiled = pytest.importorskip("mercer.linalg._smoothing")

COMPILED = [case for case in CASES if case.likelihood.compiled_site() is not None]
every = pytest.mark.parametrize("case", COMPILED, ids=str)

MEANS = [-30.0, -7.0, -0.2, 0.4, 2.5, 30.0]
VARIANCES = [1e-6, 0.05, 0.99, 1.01, 20.0, 1e4]


def site(likelihood, y, mean, var):
    """log Z, q and r of each row by the compiled code, shape (3, n)."""
    name, p = likelihood.compiled_site()
    p.setflags(write=False)  # what is read only may stand in such memory
    rows = np.broadcast_arrays(y, mean, var)
    kind = SITES.index(name)
    flat = zip(*(np.ravel(a).tolist() for a in rows), strict=True)
    return np.array([compiled.smoothed(kind, p, *row) for row in flat]).T


def grid(case, means=MEANS, variances=VARIANCES):
    rows = [(y, m, v) for y in case.ys for m in means for v in variances]
    return rows, np.array(rows).T


def in_units(result, var):
    """The derivatives in units of the Gaussian's width, where that is below 1."""
    unit = np.minimum(1.0, np.sqrt(var))
    return np.stack([result[0], result[1] * unit, result[2] * unit**2])


def agree(got, want, tolerance):
    """Hold all entries to a tolerance that is absolute up to 1 and relative beyond."""
    error = np.abs(got - want) / np.maximum(1.0, np.abs(want))
    worst = np.unravel_index(np.argmax(np.where(np.isnan(error), np.inf, error)), error.shape)
    assert error[worst] <= tolerance, (worst, got[worst], want[worst])


def test_each_kind_is_tried():
    assert {case.likelihood.compiled_site()[0] for case in COMPILED} == set(SITES)
    left_out = {type(c.likelihood).__name__ for c in CASES if c not in COMPILED}
    assert left_out == {"Custom", "SoftLabels"}


@every
def test_brute_force(case):
    rows, (y, m, v) = grid(case)
    want = [
        oracle.smoothed(lambda f, y=y: case.log_p(y, f), m, v, case.places(y)) for y, m, v in rows
    ]
    agree(in_units(site(case.likelihood, y, m, v), v), in_units(np.array(want).T, v), 1e-10)


@every
def test_the_likelihood_itself(case):
    # From far narrower than the likelihood to far wider, and from its middle to far off.
    rng = np.random.default_rng(0)
    n = 300
    v = 10.0 ** rng.uniform(-12, 8, n)
    m = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 1, n) * np.maximum(1.0, np.sqrt(v))
    y = rng.choice(case.ys, n)
    with np.errstate(under="ignore"):
        want = np.array(case.likelihood.smoothed(y, m, v))
    agree(in_units(site(case.likelihood, y, m, v), v), in_units(want, v), 1e-8)


@every
def test_differences(case):
    # Fourth order: the steps are a hundredth of the length over which log Z changes.
    y, m, v = grid(case, [-2.3, 0.1, 1.7], [0.3, 2.0])[1]
    h = 0.005
    four = [site(case.likelihood, y, m + k * h, v) for k in (-2, -1, 1, 2)]
    _, q, r = site(case.likelihood, y, m, v)
    for k, want in ((0, q), (1, r)):
        a, b, c, d = (it[k] for it in four)
        slope = (8 * (c - b) - (d - a)) / (12 * h)
        np.testing.assert_allclose(slope, want, rtol=1e-7, atol=1e-7)


POWERED = [case for case in COMPILED if isinstance(case.likelihood, Gaussian | Logistic | Probit)]
POWERS = [0.02, 0.3, 0.77, 1.6]


def powered(likelihood, y, mean, var, power):
    """log Z, q and r of a power, of each row by the compiled code, shape (3, n)."""
    name, p = likelihood.compiled_site()
    flat = zip(*(np.ravel(a).tolist() for a in (y, mean, var)), strict=True)
    return np.array([compiled.powered(SITES.index(name), p, *row, power) for row in flat]).T


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("case", POWERED, ids=str)
def test_powers_by_brute_force(case, power):
    rows, (y, m, v) = grid(case, variances=[1e-6, 0.05, 0.99, 1.01, 20.0, 400.0])

    def log_p(y):
        return lambda f: np.maximum(power * case.log_p(y, f), -1e300)  # -inf for a step

    want = [oracle.smoothed(log_p(y), m, v, case.places(y)) for y, m, v in rows]
    got = powered(case.likelihood, y, m, v, power)
    agree(in_units(got, v), in_units(np.array(want).T, v), 1e-9)


@pytest.mark.parametrize("case", POWERED, ids=str)
def test_powers_that_need_no_average(case):
    y, m, v = grid(case)[1]
    np.testing.assert_array_equal(
        powered(case.likelihood, y, m, v, 1.0), site(case.likelihood, y, m, v)
    )
    if not case.likelihood.missing("derivatives"):
        got = powered(case.likelihood, y, m, np.zeros(len(m)), 0.4)
        wanted = 0.4 * site(case.likelihood, y, m, 0.0)
        np.testing.assert_allclose(got, wanted, rtol=1e-13)
        nearly = powered(case.likelihood, y, m, np.full(len(m), 1e-40), 0.4)
        np.testing.assert_allclose(nearly, wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("case", [c for c in COMPILED if c not in POWERED], ids=str)
def test_powers_of_other_kinds_are_not_taken_for_those_of_labels(case):
    y, m, v = grid(case, [0.4], [0.3, 2.0])[1]
    assert np.all(np.isnan(powered(case.likelihood, y, m, v, 0.4)))
    np.testing.assert_array_equal(
        powered(case.likelihood, y, m, v, 1.0), site(case.likelihood, y, m, v)
    )


def test_powers_of_labels_by_a_probit_that_is_all_but_a_step():
    """A Gaussian a thousand times as wide as the link's step: all powers are nearly the step's."""
    m = np.array([-2000.0, -300.0, 0.0, 700.0, 3000.0])
    y, v = np.ones(5), np.full(5, 1e6)
    step = site(Probit(0.0), y, m, v)
    unit = np.array([1.0, 1e3, 1e6])[:, None]
    for likelihood in (Probit(1.0), Logistic()):
        got = powered(likelihood, y, m, v, 0.6)
        # p^a moves the step by less than three units, of a thousand to a standard deviation
        np.testing.assert_allclose(got * unit, step * unit, rtol=0.02)


def test_powers_keep_their_bounds_where_rounding_would_not():
    log_z, _, _ = powered(Logistic(), np.ones(1), [100.0], [1.0], 0.9)
    assert log_z == 0.0  # 1.1e-16 by the sum
    # The places are rounded to eighths of the Gaussian's width, and so is the slope, whose variance
    # comes to more than the curvature.
    _, _, r = powered(Probit(1.0), np.ones(1), [-1e15], [1.0], 0.9)
    assert r == 0.0  # 23 by the sum


@every
def test_no_variance(case):
    it = case.likelihood
    f = np.array([-3.3, 0.13, 1.7])
    for y in case.ys:
        log_z, q, r = site(it, y, f, 0.0)
        np.testing.assert_allclose(log_z, it.log_density(y, f), rtol=1e-13, atol=1e-15)
        if it.missing("derivatives"):
            assert np.all(np.isnan(q)) and np.all(np.isnan(r))
            continue
        first, second, _ = it.derivatives(y, f)
        np.testing.assert_allclose(q, first, rtol=1e-12)
        np.testing.assert_allclose(r, second, rtol=1e-12)


@every
@settings(deadline=None, max_examples=50)
@given(
    mean=st.floats(-1e4, 1e4), sd=st.floats(-8.0, 6.0), by=st.floats(-40.0, 40.0), k=st.integers()
)
def test_what_moments_allow(case, mean, sd, by, k):
    # Var(f) = v + r v^2 under the tilted density is not negative, nor above v if it is concave.
    y, sd = case.ys[k % len(case.ys)], 10.0**sd
    v = sd * sd
    log_z, q, r = site(case.likelihood, y, mean + by * sd, v)[:, 0]
    assert np.isfinite(log_z) and np.isfinite(q) and np.isfinite(r)
    assert 1.0 + r * v >= -1e-12
    if case.likelihood.is_log_concave:
        assert r <= 0.0


# -------------------------------------------------------------------------------- one kind or other


@settings(deadline=None)
@given(st.floats(-50, 50), st.floats(-6, 6), st.floats(-6, 6), st.floats(-100, 100))
def test_gaussians_add(mean, log_noise, log_var, y):
    noise, var = 10.0**log_noise, 10.0**log_var
    t = noise + var
    got = site(gaussian(noise).likelihood, y, mean, var)[:, 0]
    want = -((y - mean) ** 2) / (2 * t) - math.log(2 * math.pi * t) / 2, (y - mean) / t, -1 / t
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("x", [30.0, 1e3, 1e6, 1e9])
def test_a_wrong_label_far_out(x):
    # h(x) = x + 1/(x + 2/(x + ...)), and r = -h (h - x): 1 + r var is the variance 1/x^2 + ...
    log_z, q, r = site(Probit(0.0), 1.0, -x, 1.0)[:, 0]
    gap = 0.0
    for k in range(20, 0, -1):
        gap = k / (x + gap)
    log_tail = -x * x / 2 - math.log(2 * math.pi) / 2 - math.log(x + gap)
    np.testing.assert_allclose([log_z, q, r], [log_tail, x + gap, -(x + gap) * gap], rtol=1e-12)


def test_a_label_far_out_that_is_right():
    x = np.array([9.0, 30.0, 37.0, 1e3, 1e160])
    log_z, q, r = site(Probit(0.0), -1.0, -x, 1.0)
    phi = np.exp(-0.5 * np.minimum(x, 1e3) ** 2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(-q, phi, rtol=1e-13)
    np.testing.assert_allclose(r, -phi * np.minimum(x, 1e3), rtol=1e-13)
    np.testing.assert_allclose(log_z, -phi / x, rtol=0.02)


@settings(deadline=None)
@given(st.floats(-60, 60), st.floats(-6, 4))
def test_the_odds_of_a_label(mean, log_var):
    # s(f) + s(-f) = 1, and s(f) = exp(f) s(-f).
    var = 10.0**log_var
    yes, no, moved = (
        site(Logistic(), y, m, var)[:, 0]
        for y, m in ((1.0, mean), (-1.0, mean), (-1.0, mean + var))
    )
    assert abs(math.exp(yes[0]) + math.exp(no[0]) - 1.0) < 1e-12
    assert abs(yes[0] - (mean + 0.5 * var + moved[0])) < 1e-12 * max(1.0, abs(mean + 0.5 * var))
    assert abs(yes[1] - (1.0 + moved[1])) < 1e-12


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.floats(-9, 9), st.floats(-2, 2)), min_size=1),
    st.floats(-20, 20),
    st.floats(-6, 4),
)
def test_mixtures(kinds, y, log_var):
    w, m, s = np.array(kinds).T
    case, var = mixture(w, m, 10.0**s), 10.0**log_var
    got = site(case.likelihood, y, 0.5, var)
    agree(
        in_units(got, var),
        in_units(np.ravel(case.likelihood.smoothed(y, 0.5, var)), var)[:, None],
        1e-9,
    )


@settings(deadline=None)
@given(
    kind=st.sampled_from([insensitive, huber, student, student]),
    first=st.floats(-2, 2),
    second=st.floats(-2, 2),
    away=st.floats(-6, 6),
    log_var=st.floats(-8, 8),
)
def test_noise_of_any_parameters(kind, first, second, away, log_var):
    one, two = 10.0**first, 10.0**second
    case, scale = kind(one, two), one if kind is huber else two
    var = 10.0**log_var * scale**2
    y = away * max(scale, math.sqrt(var))
    got = site(case.likelihood, y, 0.0, var)[:, 0]
    want = oracle.smoothed(lambda f: case.log_p(y, f), 0.0, var, case.places(y))
    # The derivatives in units of the scale, or of the Gaussian where that is narrower.
    unit = min(scale, math.sqrt(var)) ** np.arange(3)
    agree(got * unit, np.array(want) * unit, 1e-9)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.floats(-5, 5), st.floats(-8, 5))
def test_counts_of_any_size(y, away, log_var):
    var = 10.0**log_var
    mean = math.log(y + 0.5) + away * max(1.0, math.sqrt(var))
    case = poisson()
    got = site(case.likelihood, y, mean, var)[:, 0]
    assume(got[0] > -1e6)
    narrow = math.sqrt(1.0 / (1.0 / var + y + 1.0))
    want = oracle.smoothed(
        lambda f: case.log_p(y, f), mean, var, [(math.log(y + 0.5), min(1.0, 3.0 * narrow))]
    )
    unit = min(1.0, math.sqrt(var)) ** np.arange(3)
    agree(got * unit, np.array(want) * unit, 1e-9)


def test_an_outlier_of_noise_that_is_nearly_gaussian():
    # Of the precisions that explain it the least is 1e-6, and their logarithm is known to 1e-3.
    z, n = 1e6, 1e6
    log_z, q, r = site(StudentT(n, 1.0), z, 0.0, 0.0)[:, 0]
    np.testing.assert_allclose(log_z, StudentT(n, 1.0).log_density(z, 0.0), rtol=1e-12)
    np.testing.assert_allclose(q, (n + 1) * z / (n + z * z), rtol=1e-12)
    np.testing.assert_allclose(r, (n + 1) * (z * z - n) / (n + z * z) ** 2, rtol=1e-6)
    assert StudentT(1e7, 1.0).compiled_site() is None


@every
def test_nothing_is_undefined(case):
    # Places and widths that leave no digit of one another, and squares that overflow.
    rows = [
        (y, m, v)
        for y in case.ys
        for m in (-1e100, -1e8, -1e-8, 0.0, 1e-8, 1e8, 1e100)
        for v in (1e-300, 1e-100, 1e-16, 1e16, 1e100, 1e250)
    ]
    log_z, q, r = site(case.likelihood, *np.array(rows).T)
    assert not np.any(np.isnan(log_z)) and not np.any(np.isnan(q)) and not np.any(np.isnan(r))
    if case.likelihood.is_log_concave:
        assert np.all(r <= 0.0)


def test_a_mixture_whose_logarithms_overflow():
    it = MixtureNoise([0.5, 0.5], [0.0, 0.0], [1.0, 2.0])
    log_z, q, r = site(it, 1e200, 0.0, 1.0)[:, 0]
    assert (log_z, q, r) == (-math.inf, 1e200 / 5.0, -1.0 / 5.0)


@settings(deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(-30, 30), st.floats(-6, 6))
def test_probit_noise_is_a_variance(noise_std, mean, log_var):
    var = 10.0**log_var
    got = site(probit(noise_std).likelihood, 1.0, mean, var)
    want = site(Probit(0.0), 1.0, mean, var + noise_std**2)
    np.testing.assert_allclose(got, want, rtol=1e-12)


# ------------------------------------------------------------------------------------ the interface


def test_what_has_no_compiled_site():
    class Own(Logistic):
        """Another density, perhaps."""

    assert Own().compiled_site() is None
    assert Gaussian().compiled_site() is None
    assert Gaussian([0.1, 0.2]).compiled_site() is None


def test_compiled_callers():
    from numba import njit

    @njit
    def total(kind, p, y):
        out = 0.0
        for i in range(y.size):
            out += compiled.smoothed(kind, p, y[i], 0.3, 2.0)[0]
        return out

    y = np.array([0.3, -1.0, 2.0])
    want = np.sum(Gaussian(0.5).smoothed(y, 0.3, 2.0)[0])
    assert abs(total(0, np.array([0.5]), y) - want) < 1e-14
