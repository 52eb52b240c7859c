"""Checks for people who add kernels, likelihoods, means, engines or estimators."""

from mercer.testing.elliptical import elliptical_slice
from mercer.testing.engine_case import Engine
from mercer.testing.engines import check_engine, engine_rules
from mercer.testing.estimators import (
    check_classifier,
    check_regressor,
    classifier_rules,
    regressor_rules,
)
from mercer.testing.kernels import check_kernel, kernel_rules
from mercer.testing.likelihoods import check_likelihood, likelihood_rules
from mercer.testing.means import check_mean, mean_rules
from mercer.testing.rules import BoundRule, ConformanceError, Report

__all__ = [
    "BoundRule",
    "ConformanceError",
    "Engine",
    "Report",
    "check_classifier",
    "check_engine",
    "check_kernel",
    "check_likelihood",
    "check_mean",
    "check_regressor",
    "classifier_rules",
    "elliptical_slice",
    "engine_rules",
    "kernel_rules",
    "likelihood_rules",
    "mean_rules",
    "regressor_rules",
]
