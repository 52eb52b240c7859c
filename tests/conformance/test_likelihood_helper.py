"""`check_likelihood` takes sound likelihoods of every kind, and refuses data they are not for."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods import Gaussian
from mercer.testing import ConformanceError, check_likelihood

from .noise import (
    CountsExample,
    DeadZoneExample,
    LogisticExample,
    ShareExample,
    SkewedExample,
    TwoSidedExample,
    WaitingExample,
)


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


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("size", [1.0, 1e-3, 1e3])
def test_kinks_away_from_the_centre(size, told):
    it = DeadZoneExample(0.3 * size, 0.5 * size, told)
    report = check_likelihood(it)
    assert {"rule_fisher", "rule_density_integrates_to_one", "rule_samples"} <= set(report.held)


def test_a_jump_away_from_the_centre():
    assert "rule_conditional_moments" in check_likelihood(SkewedExample(0.4)).held


@pytest.mark.parametrize("variance", [1e-12, 1e-6, 1e8])
def test_narrow_and_wide_noise(variance):
    assert not check_likelihood(Gaussian(variance)).left_out


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3])
def test_narrow_noise_by_quadrature(scale):
    """Its width is known from its log density alone."""
    assert "rule_smoothed" in check_likelihood(LogisticExample(scale)).held
