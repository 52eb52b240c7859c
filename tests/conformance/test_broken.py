"""The helpers catch what is broken, and say which rule it breaks."""

from __future__ import annotations

import pytest

from mercer import GPClassifier, GPRegressor
from mercer.inference import exact
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.means import Constant
from mercer.testing import (
    ConformanceError,
    check_classifier,
    check_engine,
    check_kernel,
    check_likelihood,
    check_mean,
    check_regressor,
    classifier_rules,
    engine_rules,
    kernel_rules,
    likelihood_rules,
    mean_rules,
    regressor_rules,
)
from mercer.testing.parametrised import PARAMETRISED

from . import broken

# Rules that show in an error: writing into read-only memory, a class that cannot be saved.
CRASHES = {"rule_json", "rule_rows_are_only_read", "rule_purity", "rule_arguments_are_kept"}


def flat(registry):
    return [
        pytest.param(rule, subject, id=f"{type(subject).__name__}-{rule}")
        for rule, subjects in registry.items()
        for subject in (subjects if isinstance(subjects, list) else [subjects])
    ]


def caught(check, subject, rule, **options):
    with pytest.raises(ConformanceError) as raised:
        check(subject, **options)
    error = raised.value
    assert rule in error.rules, str(error)
    lines = [line for line in str(error).splitlines() if f" breaks {rule} (" in line]
    assert lines and ("expected" in lines[0] and "got" in lines[0]), str(error)
    # a defect that only makes something else crash would be caught by any rule
    assert rule in CRASHES or "expected no error" not in lines[0], lines[0]


@pytest.mark.parametrize(
    ("registry", "rules"),
    [
        (broken.KERNELS, kernel_rules(RBF([0.7, 1.2]))),
        (broken.LIKELIHOODS, likelihood_rules(Gaussian(0.3))),
        (broken.MEANS, mean_rules(Constant(1.5))),
        (broken.ENGINES, engine_rules(exact)),
        (broken.ESTIMATORS, regressor_rules(GPRegressor(optimizer=None))),
        (broken.ESTIMATORS, regressor_rules(GPRegressor(RBF(), Gaussian(0.1)))),
        (broken.CLASSIFIERS, classifier_rules(GPClassifier(max_iter=5))),
    ],
    ids=["kernels", "likelihoods", "means", "engines", "estimators", "own kernel", "classifiers"],
)
def test_every_rule_can_fail(registry, rules):
    """A rule that nothing breaks may be one that cannot be broken."""
    # the rules that all share are broken by kernels
    known = {*registry, *(rule.name for rule in PARAMETRISED if rule.name in broken.KERNELS)}
    never = [rule.name for rule in rules if rule.name not in known]
    assert not never, f"nothing in broken.py breaks {', '.join(never)}"


@pytest.mark.parametrize(("rule", "kernel"), flat(broken.KERNELS))
def test_kernels(rule, kernel):
    caught(check_kernel, kernel, rule, only=[rule])


@pytest.mark.parametrize(("rule", "likelihood"), flat(broken.LIKELIHOODS))
def test_likelihoods(rule, likelihood):
    caught(check_likelihood, likelihood, rule, only=[rule])


@pytest.mark.parametrize(("rule", "mean"), flat(broken.MEANS))
def test_means(rule, mean):
    caught(check_mean, mean, rule, only=[rule])


@pytest.mark.parametrize(("rule", "engine"), flat(broken.ENGINES))
def test_engines(rule, engine):
    caught(check_engine, engine, rule, only=[rule])


@pytest.mark.parametrize(("rule", "estimator"), flat(broken.ESTIMATORS))
def test_estimators(rule, estimator):
    caught(check_regressor, estimator, rule, only=[rule])


@pytest.mark.parametrize(("rule", "estimator"), flat(broken.CLASSIFIERS))
def test_classifiers(rule, estimator):
    caught(check_classifier, estimator, rule, only=[rule])


@pytest.mark.parametrize(("rule", "estimator"), flat(broken.NOISE))
def test_estimators_with_other_noise(rule, estimator):
    caught(check_regressor, estimator, rule, only=[rule])


@pytest.mark.parametrize("estimator", broken.SOUND, ids=lambda e: type(e).__name__)
def test_other_noise_is_no_defect(estimator):
    rules = [*broken.NOISE, "rule_predict_by_rows", "rule_latent_interval", "rule_threads"]
    report = check_regressor(estimator, only=rules)
    assert set(report.held) == set(rules)
