"""Likelihoods from functions."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import StorageError
from mercer.likelihoods import Custom, StudentT
from mercer.registry import from_json, to_json

from .densities import log_sech


def narrow(y, f):
    return -0.5 * ((y - f) / 1e-3) ** 2 - np.log(1e-3 * np.sqrt(2 * np.pi))


def exact(y, f):
    t = np.tanh(y - f)
    return t, t**2 - 1, -2 * t * (1 - t**2)


def one_sided(y, f):
    return np.where(y > f, f - y, -np.inf)


def flat(y, f):
    return np.zeros(3)


def test_derivatives_by_differences():
    y, f = np.array([[0.3], [-4.0]]), np.array([0.1, 1.0, 9.0])
    got, want = Custom(log_sech).derivatives(y, f), exact(y, f)
    for a, b, tolerance in zip(got, want, (1e-11, 1e-9, 1e-7), strict=True):
        assert a.shape == (2, 3)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@pytest.mark.parametrize("width", [1e-3, 1.0])
def test_the_step_finds_the_width(width):
    # Six steps of a factor of 4 reach a density a thousand times narrower than the width says.
    first, second, third = Custom(narrow, width=width).derivatives(0.2, np.array([0.2, 0.2013]))
    np.testing.assert_allclose(first, [0.0, -1300.0], rtol=1e-8, atol=1e-5)
    np.testing.assert_allclose(second, -1e6, rtol=1e-7)
    assert np.all(np.abs(third) < 1e9 * 1e-4)


def test_functions_take_the_place_of_methods():
    likelihood = Custom(
        log_sech, derivatives=exact, fisher=np.cos, conditional_mean=np.sin, initial=np.sign
    )
    assert likelihood.missing("fisher", "sample", "conditional_mean", "derivatives") == ["sample"]
    assert likelihood.fisher(0.3) == np.cos(0.3) and likelihood.conditional_mean(0.3) == np.sin(0.3)
    np.testing.assert_array_equal(likelihood.initial([-3.0, 2.0]), [-1.0, 1.0])
    np.testing.assert_array_equal(Custom(log_sech).initial([-3.0, 2.0]), [-3.0, 2.0])
    for got, want in zip(likelihood.derivatives(0.3, 0.1), exact(0.3, 0.1), strict=True):
        assert got == want
    with pytest.raises(NotImplementedError, match="Custom has no sample"):
        likelihood.sample(0.0, np.random.default_rng(0))


def test_promises():
    likelihood = Custom(
        one_sided, twice_differentiable=False, log_concave=True, always_positive=False
    )
    assert likelihood.missing("derivatives") == ["derivatives"]
    assert likelihood.is_log_concave and not likelihood.has_curvature
    assert not likelihood.is_positive
    with pytest.raises(NotImplementedError, match="Custom has no derivatives"):
        likelihood.derivatives(1.0, 0.0)
    with pytest.raises(ValueError, match="density 0"):
        likelihood.expected(1.0, 0.0, 1.0)
    # E[exp(f - y); f < y] for f ~ N(m, v): exp(m - y + v/2) Phi((y - m - v)/sd)
    from scipy.stats import norm

    want = 0.3 - 1.0 + 0.25 + norm.logcdf((1.0 - 0.3 - 0.5) / np.sqrt(0.5))
    assert likelihood.log_predictive(1.0, 0.3, 0.5) == pytest.approx(want, abs=1e-9)


def test_expected_without_derivatives():
    smooth, rough = Custom(log_sech), Custom(log_sech, twice_differentiable=False)
    y, m, v = np.array([0.3, 2.0]), np.array([-1.0, 0.4]), np.array([0.5, 4.0])
    for a, b in zip(smooth.expected(y, m, v), rough.expected(y, m, v), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)
    assert np.isnan(rough.expected(0.3, 0.1, 0.0)[1])


def test_peaks_that_are_named():
    # Student's t by its log density: a narrow peak far from the Gaussian, found by its knot.
    t = StudentT(2.0, 1e-3)
    likelihood = Custom(t.log_density, knots=t.knots)
    got, want = (it.smoothed(40.0, 0.0, 100.0) for it in (likelihood, t))
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_functions_are_saved_by_name():
    likelihood = Custom(log_sech, derivatives=exact, width=2.0)
    text = to_json(likelihood)
    objects = {"log_sech": log_sech, "exact": exact}
    assert from_json(text, objects) == likelihood
    with pytest.raises(StorageError, match="exact"):
        from_json(text, {"log_sech": log_sech})
    with pytest.raises(ValueError, match="no name"):
        to_json(Custom(lambda y, f: log_sech(y, f)))
    assert repr(likelihood) == "Custom(log_sech)"
    assert Custom(log_sech) != likelihood


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Custom(None), "logpdf must be a function, got None"),
        (lambda: Custom(log_sech, fisher=3.0), "fisher must be a function, got 3"),
        (lambda: Custom(log_sech, width=0.0), "width must be a positive number"),
        (lambda: Custom(flat).log_density(np.zeros(2), 0.0), r"shape \(2,\), got \(3,\)"),
    ],
)
def test_bad_functions(make, match):
    with pytest.raises(ValueError, match=match):
        make()
