"""Likelihoods from functions."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy import stats

from mercer.errors import StorageError
from mercer.likelihoods import Custom, StudentT
from mercer.params import Parameter
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


# -------------------------------------------------------------------------------------- parameters


def student(y, f, df, scale):
    return stats.t.logpdf(y, df, f, scale)


def shifted(y, f, shift=0.0):
    return log_sech(y - shift, f)


def any_sech(y, f, **parameters):
    return log_sech(y, f) / parameters["power"]


def student_var(f, scale, df):
    return np.full(np.shape(f), scale**2 * df / (df - 2.0))


def learned():
    return Custom(
        student,
        parameters={"df": 5.0, "scale": 0.4},
        conditional_mean=np.array,
        conditional_var=student_var,
        knots=StudentT(5.0, 0.4).knots,
        width=0.4,
    )


def test_parameters_are_learned_as_a_class_would():
    it, want = learned(), StudentT(5.0, 0.4)
    assert it.parameter_names == ["df", "scale"] and repr(it) == "Custom(student, df=5, scale=0.4)"
    assert (it.df, it.scale) == (5.0, 0.4)
    np.testing.assert_allclose(it.theta, want.theta)
    np.testing.assert_allclose(it.predictive_var(0.0, 1.0), want.predictive_var(0.0, 1.0))
    y, f, var = np.array([0.3, -2.0, 5.0]), np.array([0.1, 0.4, 1.0]), np.array([0.5, 0.0, 2.0])
    g = np.random.default_rng(0).normal(size=(3, 3))
    for pull, arguments, tolerance in (
        ("pull_derivatives", (y, f, *g), 1e-4),
        ("pull_smoothed", (y, f, var, g[0]), 1e-7),
        ("pull_expected", (y, f, var, g[0]), 1e-6),
    ):
        got, wanted = getattr(it, pull)(*arguments), getattr(want, pull)(*arguments)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance)
    moved = it.with_theta(it.theta + np.log(2.0))
    assert (moved.df, moved.scale) == pytest.approx((10.0, 0.8))
    assert moved.log_density(0.3, 0.1) == pytest.approx(stats.t.logpdf(0.3, 10.0, 0.1, 0.8))


def test_parameters_are_saved_and_replaced():
    it = learned().with_parameters(scale=Parameter(0.7, bounds=(0.1, 2.0), fixed=True))
    assert it.parameter_names == ["df"] and it.scale == 0.7
    objects = {"student": student, "array": np.array, "student_var": student_var}
    plain = Custom(student, parameters=it.parameters)
    assert (
        from_json(to_json(plain), objects)
        == plain
        != Custom(student, parameters={**it.parameters, "df": 2})
    )
    assert plain.with_params(df=3.0).df == 3.0
    assert plain.get_params()["scale"] == 0.7
    with pytest.raises(ValueError, match=r"no parameter \['size'\]; it has \['df', 'scale'\]"):
        it.with_parameters(size=1.0)


def test_what_is_positive_stays_so_unless_bounds_say_otherwise():
    for given, transform in (
        (0.3, "log"),
        (Parameter(0.3), "log"),
        (Parameter(0.3, bounds=(0.1, 1.0)), "log"),
        (Parameter(0.3, bounds=(0.0, 1.0)), "identity"),
        (Parameter(0.3, bounds=(-np.inf, np.inf)), "identity"),
        (Parameter(0.3, transform="logit"), "logit"),
        (0.0, "identity"),
        (-0.3, "identity"),
    ):
        it = Custom(shifted, parameters={"shift": given})
        assert it.parameters["shift"].transform == transform
        # wherever a search leads, what is saved there comes back the same
        moved = it.with_theta(np.array([0.9]))
        back = from_json(to_json(moved), {"shifted": shifted})
        assert back == moved and back.theta == moved.theta
    assert Custom(any_sech, parameters={"power": 2.0}).log_density(0.3, 0.0) == pytest.approx(
        0.5 * log_sech(0.3, 0.0)
    )


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"size": 1.0}, r"no argument for the parameters size: define it as logpdf\(y, f, size\)"),
        ({"theta": 1.0}, "free to use, got 'theta'"),
        ({"width": 1.0}, "free to use, got 'width'"),
        ({"y": 1.0}, "free to use, got 'y'"),
        ({"_shift": 1.0}, "free to use"),
        ({"a b": 1.0}, "free to use"),
        ({"shift": "wide"}, "finite number"),
    ],
)
def test_bad_parameters(parameters, match):
    with pytest.raises(ValueError, match=match):
        Custom(shifted, parameters=parameters)


class Compiled:
    """A function that does not tell its arguments, as those of compiled modules."""

    __name__ = "compiled"
    __signature__ = "unknown"

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def test_functions_without_a_signature():
    def log_normal(y, f, scale):
        return stats.norm.logpdf(y, f, scale)

    hidden = Compiled(log_normal)
    with pytest.raises((TypeError, ValueError)):
        inspect.signature(hidden)
    noise = Custom(hidden, parameters={"scale": 2.0}, conditional_mean=Compiled(lambda f: f))
    np.testing.assert_allclose(noise.log_density(1.0, 0.5), log_normal(1.0, 0.5, 2.0))
    np.testing.assert_array_equal(noise.conditional_mean([1.0, 2.0]), [1.0, 2.0])
