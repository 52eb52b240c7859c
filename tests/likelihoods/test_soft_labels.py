"""Labels that are known as probabilities: a cross-entropy, or a mixture (BKM 57)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mercer.inference import LatentProblem, ep, laplace
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Likelihood, Logistic, Probit, SoftLabels
from mercer.params import Parameter
from mercer.registry import from_json, to_json

F = np.array([-40.0, -3.3, -0.9, 0.0, 0.17, 0.61, 5.2, 31.0])
VAR = np.array([0.3, 4.0, 0.0, 1.0, 20.0, 1e-4, 2.0, 300.0])

bases = pytest.mark.parametrize("base", [Logistic(), Probit(), Probit(Parameter(0.4))], ids=str)
kinds = pytest.mark.parametrize("kind", ["cross_entropy", "mixture"])


@kinds
@bases
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_certain_labels_are_hard_ones(base, kind, label):
    soft, y = SoftLabels(base, kind), 0.5 + 0.5 * label
    np.testing.assert_array_equal(soft.log_density(y, F), base.log_density(label, F))
    for a, b in zip(soft.derivatives(y, F), base.derivatives(label, F), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15, atol=0)
    for a, b in zip(soft.smoothed(y, F, VAR), base.smoothed(label, F, VAR), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15, atol=0)
    for a, b in zip(soft.expected(y, F, VAR), base.expected(label, F, VAR), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
    for pull, arguments in (
        ("pull_derivatives", (F, VAR, F, 1.0)),
        ("pull_smoothed", (F, VAR, F)),
        ("pull_expected", (F, VAR, F)),
    ):
        got, want = getattr(soft, pull)(y, *arguments), getattr(base, pull)(label, *arguments)
        np.testing.assert_allclose(got, want, rtol=1e-6)


@kinds
@pytest.mark.parametrize(
    "solve", [laplace.solve, partial(ep.solve, power=1.0)], ids=["laplace", "ep"]
)
def test_certain_labels_lead_to_the_same_evidence(solve, kind):
    X = np.linspace(0.0, 3.0, 7)[:, None]
    labels = np.array([-1.0, -1.0, 1.0, -1.0, 1.0, 1.0, 1.0])
    evidence = []
    for y, likelihood in (
        (labels, Logistic()),
        (0.5 + 0.5 * labels, SoftLabels(Logistic(), kind)),
    ):
        problem = LatentProblem(2.0 * RBF(0.8), X, y, likelihood, np.zeros(7), None, None)
        evidence.append(solve(problem).log_evidence)
    assert evidence[0] == pytest.approx(evidence[1], abs=1e-7)


@bases
def test_a_share_of_labels_is_a_cross_entropy(base):
    soft = SoftLabels(base)
    many = 7 * base.log_density(1.0, F) + 3 * base.log_density(-1.0, F)
    np.testing.assert_allclose(10 * soft.log_density(0.7, F), many, rtol=1e-14)
    # the best f gives the label its share
    low, high = -10.0, 10.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        up = soft.derivatives(0.7, middle)[0] > 0
        low, high = (middle, high) if up else (low, middle)
    assert soft.conditional_mean(low) == pytest.approx(0.7, abs=1e-12)


@bases
def test_a_mixture_is_the_average_of_two_labels(base):
    soft, share = SoftLabels(base, "mixture"), np.array([0.2, 0.5, 0.99])[:, None]
    yes, no = (np.exp(base.log_density(label, F)) for label in (1.0, -1.0))
    want = share * yes + (1 - share) * no  # (BKM 57)
    np.testing.assert_allclose(np.exp(soft.log_density(share, F)), want, rtol=1e-13)
    # a label that is as likely right as wrong says nothing
    np.testing.assert_allclose(soft.log_density(0.5, F), np.log(0.5), rtol=1e-15)
    for value in (*soft.derivatives(0.5, F), *soft.smoothed(0.5, F, VAR)[1:]):
        np.testing.assert_allclose(value, 0.0, atol=1e-14)


@bases
@pytest.mark.parametrize("share", [1e-9, 0.1, 0.5, 0.9, 1 - 1e-9])
def test_equal_steps_are_as_good_as_adapted_ones(base, share):
    # At the ends of each group of standard deviations, and on both sides of the last.
    soft = SoftLabels(base)
    sd = base.analytic_within * np.array([1e-3, 0.3, 0.5, 0.51, 1.0, 1.99, 2.01, 3.99, 4.01])
    y, mean, sd = (a.ravel() for a in np.meshgrid([share], [-50.0, -2.0, 0.3, 9.0], sd))
    got, want = soft.smoothed(y, mean, sd**2), Likelihood.smoothed(soft, y, mean, sd**2)
    for a, b, unit in zip(got, want, (1.0, sd, sd**2), strict=True):
        np.testing.assert_allclose(a * unit, b * unit, rtol=1e-9, atol=1e-9)


@kinds
@bases
def test_shapes(base, kind):
    soft = SoftLabels(base, kind)
    for var in (0.0, 1.0, 1e6):
        for shape, mean, spread in (((), 0.3, var), ((2, 3), np.zeros((2, 1)), np.full(3, var))):
            for method in (soft.smoothed, soft.expected):
                assert [np.shape(a) for a in method(0.3, mean, spread)] == [shape] * 3


@bases
def test_mirrored_labels(base):
    for kind in ("cross_entropy", "mixture"):
        soft = SoftLabels(base, kind)
        up, down = soft.smoothed(0.8, F, VAR), soft.smoothed(0.2, -F, VAR)
        for a, b, sign in zip(up, down, (1, -1, 1), strict=True):
            np.testing.assert_allclose(a, sign * b, rtol=1e-9, atol=1e-12)


@kinds
def test_new_labels(kind):
    soft, base = SoftLabels(Probit(0.5), kind), Probit(0.5)
    p = np.exp(base.log_predictive(1.0, F, VAR))
    np.testing.assert_allclose(soft.predictive_mean(F, VAR), p, rtol=1e-15)
    np.testing.assert_allclose(soft.predictive_var(F, VAR), p * (1 - p), rtol=1e-9, atol=1e-16)
    # as small as floating-point numbers are
    assert 0 < soft.predictive_mean(-10.0, 0.1) < 1e-35
    assert list(soft.quantile(0.0, 1.0, [0.2, 0.5, 0.8])) == [0.0, 0.0, 1.0]
    assert list(soft.predictive_cdf([-0.1, 0.0, 0.5, 1.0], 0.0, 1.0)) == [0.0, 0.5, 0.5, 1.0]
    draws = soft.sample(np.full(20_000, 0.3), np.random.default_rng(1))
    assert set(draws) == {0.0, 1.0}
    assert abs(draws.mean() - soft.conditional_mean(0.3)) < 0.02


def test_flags():
    for base in (Logistic(), Probit()):
        assert SoftLabels(base).is_log_concave and not SoftLabels(base, "mixture").is_log_concave
        assert SoftLabels(base, "mixture").is_unimodal  # in f it only rises, or only falls
    step = SoftLabels(Probit(0.0), "mixture")
    assert (step.is_positive, step.has_curvature) == (False, False)
    assert step.missing("derivatives", "fisher", "sample") == ["derivatives", "fisher"]
    log_z, first, _ = step.smoothed(0.9, [-1.0, 1.0], 1.0)
    yes = np.array([0.15865525393145707, 0.8413447460685429])  # Phi(-1), Phi(1)
    np.testing.assert_allclose(np.exp(log_z), 0.9 * yes + 0.1 * (1 - yes), rtol=1e-14)
    slope = 0.8 * np.exp(-0.5) / np.sqrt(2 * np.pi) / (0.9 * yes + 0.1 * (1 - yes))
    np.testing.assert_allclose(first, slope, rtol=1e-13)


@pytest.mark.parametrize("base", [Logistic(), Probit(0.5)], ids=repr)
def test_a_mixture_is_log_concave_where_y_is_a_label_or_says_nothing(base):
    y, f = np.array([0.0, 1e-6, 0.3, 0.5, 0.9, 1.0]), np.linspace(-30.0, 30.0, 601)
    soft = SoftLabels(base, "mixture")
    second = soft.derivatives(y[:, None], f)[1]
    np.testing.assert_array_equal(soft.log_concave_at(y), np.all(second < 1e-12, axis=1))
    assert np.all(SoftLabels(base).log_concave_at(y))


def test_its_parameters_are_those_of_the_labels():
    soft = SoftLabels(Probit(Parameter(0.4)), "mixture")
    assert soft.parameter_names == ["Probit.noise_std"]
    moved = soft.with_theta([0.0])
    assert moved.likelihood.noise_std == 1.0 and moved.kind == "mixture"
    assert soft.with_params(Probit__noise_std=2.0).likelihood.noise_std == 2.0
    assert soft.with_params(kind="cross_entropy") == SoftLabels(soft.likelihood)
    assert from_json(to_json(soft)) == soft != SoftLabels(soft.likelihood)
    assert soft.begun([0.2, 0.3]) is soft
    assert repr(soft) == "SoftLabels(Probit(noise_std=0.4), kind='mixture')"
    np.testing.assert_array_equal(soft.initial([0.2, 1.0]), [0.0, 0.0])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: SoftLabels(Gaussian(1.0)), r"takes a likelihood of two classes.*got Gaussian"),
        (lambda: SoftLabels("logistic"), "takes a likelihood of two classes"),
        (lambda: SoftLabels(Logistic(), "soft"), "kind must be .* got 'soft'"),
        (lambda: SoftLabels(Probit(0.0)), "kind='mixture'"),
        (lambda: SoftLabels(Logistic()).log_density(-1.0, 0.0), "from 0 to 1, got -1"),
        (lambda: SoftLabels(Logistic()).smoothed([0.5, 1.5], 0.0, 1.0), "from 0 to 1, got 1.5"),
        (lambda: SoftLabels(Logistic()).derivatives(np.nan, 0.0), "from 0 to 1, got nan"),
        (lambda: SoftLabels(Logistic()).expected(2.0, 0.0, 1.0), "from 0 to 1, got 2"),
    ],
)
def test_bad_arguments(make, match):
    with pytest.raises(ValueError, match=match):
        make()
