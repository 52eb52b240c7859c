"""The helpers themselves: reports, refusals, and the plain integrals they stand on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from mercer import GPRegressor
from mercer.inference import exact
from mercer.kernels import RBF, Callable
from mercer.likelihoods import Gaussian, Likelihood
from mercer.means import Constant
from mercer.params import positive
from mercer.registry import storable
from mercer.testing import (
    BoundRule,
    ConformanceError,
    Engine,
    Report,
    check_engine,
    check_kernel,
    check_likelihood,
    check_mean,
    check_regressor,
    engine_rules,
    kernel_rules,
    likelihood_rules,
    mean_rules,
    regressor_rules,
)
from mercer.testing.compare import close, identical, refused, slope
from mercer.testing.integrals import gaussian_nodes, interval_nodes

CHECKS = [
    (check_kernel, kernel_rules, RBF([0.7, 1.2])),
    (check_likelihood, likelihood_rules, Gaussian(0.3)),
    (check_mean, mean_rules, Constant(1.5)),
    (check_engine, engine_rules, exact),
    (check_regressor, regressor_rules, GPRegressor(optimizer=None)),
]


@pytest.mark.parametrize(("check", "rules", "subject"), CHECKS)
def test_reports_and_rules_agree(check, rules, subject):
    report = check(subject)
    assert isinstance(report, Report)
    bound = rules(subject)
    assert all(isinstance(rule, BoundRule) for rule in bound)
    assert [rule.name for rule in bound] == list(report.held)
    assert not set(report.held) & set(report.left_out)
    assert f"{len(report.held)} rules hold" in str(report)
    # a rule has a name that says what it is, and a sentence that says it in full
    for rule in bound:
        assert rule.name.startswith("rule_") and str(rule) == rule.name
        assert 10 < len(rule.rule.text) < 120


@pytest.mark.parametrize(("check", "rules", "subject"), CHECKS)
def test_some_rules_only(check, rules, subject):
    first = rules(subject)[0].name
    assert check(subject, only=[first]).held == (first,)
    with pytest.raises(ValueError, match=f"no rule .*rule_tyop.*the rules are .*{first}"):
        check(subject, only=["rule_tyop"])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: check_kernel(RBF), "brackets"),
        (lambda: check_kernel(3.0), "Kernel is wanted"),
        (lambda: check_kernel(Callable(max)), "give X"),
        (lambda: check_kernel(RBF(), np.zeros((3, 1))), "at least 6 rows"),
        (lambda: check_likelihood(Gaussian), "brackets"),
        (lambda: check_mean("constant"), "Mean is wanted"),
        (lambda: check_engine(np), "has no solve, evidence, posterior"),
        (lambda: check_regressor(GPRegressor), "estimator is wanted"),
        (lambda: check_regressor(GPRegressor(), X=np.zeros((3, 1))), "both or neither"),
    ],
)
def test_wrong_arguments(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_left_out_rules_say_why():
    report = check_kernel(RBF(1.3), inputs=False)
    assert report.left_out["rule_pullback_inputs"] == "its rows cannot be moved a little"
    assert "does not apply: its rows" in str(report)


def test_all_broken_rules_are_in_one_message():
    class Zero(RBF):
        def _block(self, A, B):
            raise RuntimeError("no block today")

    with pytest.raises(ConformanceError) as raised:
        check_kernel(Zero())
    error = raised.value
    assert len(error.rules) > 10 and len(str(error).splitlines()) == len(error.rules)
    assert "breaks rule_symmetry" in str(error)
    assert "expected no error, got RuntimeError: no block today" in str(error)


def test_an_engine_may_be_any_object():
    class MyEngine:
        solve = staticmethod(exact.solve)
        evidence = staticmethod(exact.evidence)
        posterior = staticmethod(exact.posterior)

    engine: Engine = MyEngine()
    report = check_engine(engine, regressors=False, exact=False)
    assert report.subject == "MyEngine"
    assert "rule_evidence" in report.left_out
    assert "rule_adjoint_of_the_gram_matrix" in report.held


def test_what_cannot_be_fitted_breaks_rules_too():
    class Unfit(GPRegressor):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("not today")

    with pytest.raises(ConformanceError, match=r"Unfit.*breaks rule_evidence .*not today"):
        check_regressor(Unfit())


# --- likelihoods of other kinds ---------------------------------------------------------------


@storable
class CountsExample(Likelihood):
    """Counts with rate exp(f)."""

    def __init__(self):
        self._set()

    def log_density(self, y, f):
        y = np.asarray(y, dtype=float)
        return y * f - np.exp(f) - gammaln(y + 1.0)

    def derivatives(self, y, f):
        rate = np.exp(f) + 0.0 * np.asarray(y)
        return y - rate, -rate, -rate

    def fisher(self, f):
        return np.exp(f)

    def conditional_mean(self, f):
        return np.exp(f)

    def conditional_var(self, f):
        return np.exp(f)

    def conditional_cdf(self, y, f):
        return stats.poisson.cdf(y, np.exp(f))

    def sample(self, f, rng):
        return rng.poisson(np.exp(f)).astype(float)


@storable
class WaitingExample(Likelihood):
    """Times above 0 with mean exp(f), and no methods beyond what is needed."""

    def __init__(self):
        self._set()

    def log_density(self, y, f):
        return -np.asarray(y) * np.exp(-np.asarray(f)) - f

    def conditional_mean(self, f):
        return np.exp(f)

    def conditional_var(self, f):
        return np.exp(2.0 * np.asarray(f))


@storable
class TwoSidedExample(Likelihood):
    """Laplace noise, which has a tip."""

    def __init__(self, scale=1.0):
        self._set(scale=positive("scale", scale, vector=False))

    def log_density(self, y, f):
        return -np.abs(np.asarray(y) - f) / self.scale - np.log(2.0 * self.scale)

    def derivatives(self, y, f):
        sign = np.sign(np.asarray(y) - f) / self.scale
        return sign, 0.0 * sign, 0.0 * sign

    def fisher(self, f):
        return np.full(np.shape(f), self.scale**-2)

    def conditional_cdf(self, y, f):
        return stats.laplace.cdf(y, f, self.scale)

    def knots(self, y):
        return y[:, None]


@storable
class ShareExample(Likelihood):
    """Shares between 0 and 1: a Beta density whose mean is a logistic function of f."""

    def __init__(self):
        self._set()

    def log_density(self, y, f):
        p = 1.0 / (1.0 + np.exp(-np.asarray(f)))
        return stats.beta.logpdf(y, 1.0 + 3.0 * p, 4.0 - 3.0 * p)


def test_counts():
    f = [-1.0, 0.0, 0.5, 1.3]
    report = check_likelihood(CountsExample(), f=f, outcomes=np.arange(2000))
    assert "rule_quantile" in report.held
    with pytest.raises(ConformanceError, match="rule_density_integrates_to_one"):
        check_likelihood(CountsExample(), f=f, outcomes=np.arange(3))


def test_times():
    report = check_likelihood(WaitingExample(), interval=(0.0, np.inf), f=[-1.0, 0.0, 0.7])
    assert report.left_out["rule_derivatives"] == "it does not give derivatives"
    assert "rule_conditional_moments" in report.held
    with pytest.raises(ConformanceError, match="rule_density_integrates_to_one"):
        check_likelihood(WaitingExample(), interval=(0.5, np.inf), f=[-1.0, 0.0, 0.7])


def test_a_density_with_a_tip():
    assert "rule_smoothed" in check_likelihood(TwoSidedExample(0.6)).held


def test_shares():
    report = check_likelihood(ShareExample(), interval=(0.0, 1.0))
    assert "rule_density_integrates_to_one" in report.held


# --- integrals and comparisons ----------------------------------------------------------------


def test_gaussian_nodes():
    z, w = gaussian_nodes()
    for power, wanted in ((0, 1.0), (1, 0.0), (2, 1.0), (4, 3.0)):
        assert np.sum(w * z**power) == pytest.approx(wanted, abs=1e-12)
    z, w = gaussian_nodes([0.123])
    assert np.sum(w * (z > 0.123)) == pytest.approx(stats.norm.sf(0.123), abs=1e-13)


@pytest.mark.parametrize(
    ("interval", "density"),
    [
        ((-np.inf, np.inf), stats.cauchy(1.0, 0.3)),
        ((0.0, np.inf), stats.gamma(2.0)),
        ((-np.inf, 2.0), stats.gumbel_l(-30.0)),
        ((0.0, 1.0), stats.beta(2.0, 3.5)),
    ],
)
def test_interval_nodes(interval, density):
    y, w = interval_nodes(interval, 1.0, 0.4)
    assert np.sum(w * density.pdf(y)) == pytest.approx(1.0, abs=1e-9)


def test_comparisons_say_what_was_expected():
    with pytest.raises(ConformanceError, match=r"x: expected shape \(2,\), got shape \(3,\)"):
        close("x", np.zeros(3), np.zeros(2))
    with pytest.raises(ConformanceError, match=r"x: expected 2 at \(1,\), got 2.5 .*1 of 2"):
        close("x", [1.0, 2.5], [1.0, 2.0])
    with pytest.raises(ConformanceError, match=r"x: expected 2 at \(1,\), got nan"):
        close("x", [1.0, np.nan], [1.0, 2.0], atol=1e9)
    close("x", [np.inf, np.nan, 1.0], [np.inf, np.nan, 1.0])
    with pytest.raises(ConformanceError, match="expected exactly"):
        identical("x", [1.0], [1.0 + 1e-15])


def test_refusals():
    def bad():
        raise ValueError("the wrong text")

    refused("it", bad, "WRONG")
    with pytest.raises(
        ConformanceError, match="whose text matches 'right', got the text the wrong"
    ):
        refused("it", bad, "right")
    with pytest.raises(ConformanceError, match="expected a TypeError, got ValueError"):
        refused("it", bad, error=TypeError)
    with pytest.raises(ConformanceError, match="expected a ValueError, got the result 3"):
        refused("it", lambda: 3)


def test_slopes():
    np.testing.assert_allclose(slope(np.sin, 0.3), np.cos(0.3), rtol=1e-9)
    x = np.array([[0.1, 0.2], [0.3, 0.4]])
    np.testing.assert_allclose(slope(lambda a: np.sum(a**3), x), 3 * x**2, rtol=1e-8)
    assert slope(lambda a: a**2, np.zeros(3)).shape == (3, 3)
    assert slope(np.sum, np.empty(0)).shape == (0,)
