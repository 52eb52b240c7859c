"""What becomes of bounds and derivatives when the columns are given in other units."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF, ArcSine, EquivalentGP, Linear, Matern, Periodic, Polynomial
from mercer.kernels import RationalQuadratic as RQ
from mercer.params import LogNormal, Parameter

WIDTHS = np.array([0.5, 3.0])
X = np.random.default_rng(0).normal(size=(6, 2))
G = np.random.default_rng(1).normal(size=(6, 6))


def held(offset):
    return Parameter(offset, fixed=True)


# Each with its variance for a second column in units of 1/s, that the kernel may stay the same.
KERNELS = {
    "linear": lambda s: 2.0 / s**2 * Linear().on(1),
    "linear with offset": lambda s: 2.0 / s**2 * Linear(0.3 * s**2).on(1),
    "linear inside": lambda s: (2.0 / s**2 * Linear()).on(1),
    "with another factor": lambda s: 2.0 / s**2 * RBF().on(0) * Linear().on(1),
    "polynomial": lambda s: 2.0 / s**6 * Polynomial(3, 0.4 * s**2).on(1),
    "homogeneous": lambda s: 2.0 / s**4 * Polynomial(2, 0.0).on(1),
    "offset held": lambda s: 2.0 / s**4 * Polynomial(2, held(50.0 * s**2)).on(1),
    "length scale": lambda s: 2.0 * Linear(length_scale=1.5 * s).on(1),
    "power": lambda s: (0.1 / s**2 * Linear().on(1)) ** 2,
    "squares": lambda s: EquivalentGP(2.0 / s**2 * Linear(), s * X[:, 1:]).on(1),
    "two terms": lambda s: 2.0 / s**2 * (Linear().on(1) + Polynomial(1, 0.0).on(1)),
}


def variance_bounds(kernel, widths, variance=7.0):
    bounded = kernel.with_bounds_from(widths, variance)
    where = [name.endswith("variance") for name in bounded.parameter_names]
    return bounded.bounds[where][0] - kernel.theta[where][0]


@pytest.mark.parametrize("s", [1e-4, 1e3, 1e20])
@pytest.mark.parametrize("form", KERNELS.values(), ids=KERNELS)
def test_bounds_of_a_variance_follow_the_columns(form, s):
    here = variance_bounds(form(1.0), WIDTHS)
    np.testing.assert_allclose(variance_bounds(form(s), WIDTHS * [1.0, s]), here, rtol=1e-9)
    assert here[0] < 0 < here[1]


def test_bounds_of_a_variance_are_four_powers_of_ten_around_that_of_the_targets():
    for kernel, size in (
        (1.0 * RBF(), 1.0),
        (1.0 * Linear(), 9.25),
        (1.0 * Linear(5.0).on(0), 0.25),
        (1.0 * Polynomial(2, held(2.0)).on(0), 2.25**2 - 2.0**2),
        (1.0 * Polynomial(2, 0.0).on(0), 0.25**2),
    ):
        expected = np.log([1e-4 * 7.0 / size, 1e4 * 7.0 / size])
        np.testing.assert_allclose(variance_bounds(kernel, WIDTHS), expected, rtol=1e-12)


def started(kernel, widths, variance=7.0):
    return np.exp(kernel.with_start_from(widths, variance).theta)


@pytest.mark.parametrize("s", [1e-6, 1e6])
def test_a_search_from_far_away_begins_in_the_middle(s):
    middle, square = 7.0 / (3.0 * s) ** 2, (0.5 * s) ** 2
    linear, polynomial = 1.0 * Linear().on(1), Polynomial(2).on(0)
    np.testing.assert_allclose(started(linear, WIDTHS * s), [middle])
    np.testing.assert_allclose(started(polynomial, WIDTHS * s), [square])
    # and may go on to either side
    for kernel, centre in ((linear, middle), (polynomial, square)):
        begun = kernel.with_start_from(WIDTHS * s, 7.0)
        bounds = begun.with_bounds_from(WIDTHS * s, 7.0).bounds[0] - np.log(centre)
        np.testing.assert_allclose(bounds, np.log([1e-4, 1e4]))


def test_bounds_hold_a_value_from_far_away():
    for variance in (1e-9, 1e9):
        low, high = np.exp((variance * RBF()).with_bounds_from(WIDTHS, 7.0).bounds[0])
        assert low <= 7e-4 * (1 + 1e-9) and high >= 7e4 * (1 - 1e-9)
        assert low < 0.2 * variance and high > 5.0 * variance


def test_a_start_that_someone_meant_is_kept():
    """Within the bounds, held, or given with bounds or a hyperprior."""
    for kernel in (
        8e-4 * RBF(1e9),
        6e4 * RBF(1e-9),
        held(1e9) * RBF(),
        Parameter(1e9, bounds=(1.0, 1e10)) * RBF(),
        Parameter(1e9, prior=LogNormal(20.0, 1.0)) * RBF(),
        Polynomial(2, 0.0),
    ):
        assert kernel.with_start_from(WIDTHS, 7.0) == kernel


def test_factors_and_terms_begin_at_the_size_of_the_whole_together():
    for kernel in (
        (1.0 * RBF()) * (1.0 * Linear()),
        3.0 * (1.0 * RBF() + 1.0 * Linear()).on(1),
        (1.0 * Linear()) ** 2,
    ):
        begun = kernel.with_start_from(WIDTHS * 1e-3, 7e18)
        assert np.abs(begun._log_size(WIDTHS * 1e-3) - np.log(7e18)) < np.log(10.0)


def test_bounds_of_columns_whose_squares_are_no_doubles():
    for s in (1e-290, 1e290):
        bounds = (1.0 * Polynomial(5) * Linear()).with_bounds_from(WIDTHS * s, 1e-200).bounds
        assert np.all(np.isfinite(bounds)) and np.all(bounds[:, 0] < bounds[:, 1])
    for variance in (1e-20, 1e20):  # of which the 20th power is no double either
        begun = ((1.0 * RBF()) ** 0.05).with_start_from(WIDTHS, variance)
        bounds = begun.with_bounds_from(WIDTHS, variance).bounds
        assert np.all(np.isfinite(bounds)) and np.all(bounds[:, 0] < bounds[:, 1])


@pytest.mark.parametrize(
    "form",
    [
        lambda s: RBF(0.7 * s),
        lambda s: Matern([0.7 * s, 2.0 * s], nu=2.5),
        lambda s: Matern(0.7 * s, nu=1.1),
        lambda s: RQ([0.7 * s, 2.0 * s], 0.3),
        lambda s: Periodic([0.7, 0.9], [3.0 * s, 2.0 * s]),
        lambda s: Linear(1.0, [0.7 * s, 2.0 * s]),
        lambda s: Polynomial(3, 1.0, 0.7 * s),
        lambda s: ArcSine(2.0, [0.7 * s, 2.0 * s]),
    ],
)
def test_derivatives_in_tiny_length_scales_are_finite(form):
    """dk/dl is no double there, dk/dlog l is."""
    s = 2.0**-1010
    with np.errstate(all="raise", under="ignore"):
        tiny = form(s).pullback(s * X, None, 1e5 * (G + G.T), inputs=False).theta
    usual = form(1.0).pullback(X, None, 1e5 * (G + G.T), inputs=False).theta
    np.testing.assert_allclose(tiny, usual, rtol=1e-9)
