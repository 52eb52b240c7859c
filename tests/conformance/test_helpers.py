"""The helpers themselves: reports, refusals, exemptions."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPClassifier, GPRegressor
from mercer.inference import exact
from mercer.kernels import RBF, Callable
from mercer.likelihoods import Gaussian
from mercer.means import Constant
from mercer.posterior import Stacked
from mercer.testing import (
    BoundRule,
    ConformanceError,
    Engine,
    Report,
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

from . import defects
from .broken_classifiers import Tilted
from .broken_estimators import Shifted

CHECKS = [
    (check_kernel, kernel_rules, RBF([0.7, 1.2])),
    (check_likelihood, likelihood_rules, Gaussian(0.3)),
    (check_mean, mean_rules, Constant(1.5)),
    (check_engine, engine_rules, exact),
    (check_regressor, regressor_rules, GPRegressor(optimizer=None)),
    (check_classifier, classifier_rules, GPClassifier(optimizer=None)),
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
        (lambda: check_classifier(GPClassifier), "classifier is wanted"),
        (lambda: check_classifier(GPRegressor()), "classifier is wanted"),
        (lambda: check_classifier(GPClassifier(), X=np.zeros((3, 1))), "both or neither"),
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


class Members(Stacked):
    """A process that cannot be pruned."""

    prune = property()


class Committee(GPRegressor):
    """It has no `posterior_` and no evidence."""

    log_marginal_likelihood = property()
    predictive_ = property(lambda self: self.members_)

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.members_ = Members([vars(self).pop("posterior_")])
        return self

    def _model(self, X):
        return self.members_, self.likelihood_, X


def test_what_has_only_a_predictive_is_held_to_the_rest():
    report = check_regressor(Committee(), only=["rule_prune", "rule_evidence", "rule_predictive"])
    assert report.held == ("rule_predictive",)


# --- exemptions -------------------------------------------------------------------------------


EXEMPT = {"_conformance_exemptions": {"rule_order_of_rows": "it takes rows in turn"}}


@pytest.mark.parametrize(
    ("check", "rules", "base"),
    [(check_regressor, regressor_rules, Shifted), (check_classifier, classifier_rules, Tilted)],
)
def test_an_estimator_may_be_exempt(check, rules, base):
    estimator = type("InTurn", (defects.FirstRowCounts, base), EXEMPT)(optimizer=None)
    report = check(estimator, only=["rule_order_of_rows"])
    assert report.left_out == {"rule_order_of_rows": "it takes rows in turn"}
    assert "rule_order_of_rows" not in [rule.name for rule in rules(estimator)]


@pytest.mark.parametrize(
    "exemptions", [{"rule_weights": "too hard"}, {"rule_order_of_rows": " "}, {"rule_tyop": "x"}]
)
def test_exemptions_are_few_and_have_reasons(exemptions):
    class Excused(GPRegressor):
        _conformance_exemptions = exemptions

    with pytest.raises(ValueError, match="may give a reason for rule_order_of_rows and"):
        check_regressor(Excused())
