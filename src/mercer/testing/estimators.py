"""Holding a regressor or a classifier to its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mercer.testing import classifier_predictions, regressor_predictions
from mercer.testing.classifier_case import ClassifierCase
from mercer.testing.classifier_labels import LABELS
from mercer.testing.estimator_fits import FITS
from mercer.testing.estimator_invariances import INVARIANCES
from mercer.testing.estimator_results import RESULTS
from mercer.testing.parametrised import subject_of
from mercer.testing.regressor_case import RegressorCase
from mercer.testing.regressor_targets import TARGETS
from mercer.testing.rules import BoundRule, Report, Rule, bind, run

__all__ = ["check_classifier", "check_regressor", "classifier_rules", "regressor_rules"]

Objects = dict[str, Callable[..., Any]]

_SHARED: list[Rule[Any]] = [*RESULTS, *FITS, *INVARIANCES]
_REGRESSOR: list[Rule[Any]] = [*regressor_predictions.PREDICTIONS, *TARGETS, *_SHARED]
_CLASSIFIER: list[Rule[Any]] = [*classifier_predictions.PREDICTIONS, *LABELS, *_SHARED]


def check_regressor(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    objects: Objects | None = None,
    only: Iterable[str] | None = None,
) -> Report:
    """Hold a regressor to all rules of Mercer's regressors.

    They come on top of scikit-learn's own, see
    :func:`sklearn.utils.estimator_checks.check_estimator`.

    Parameters
    ----------
    estimator : estimator
        Not fitted; clones of it are.
    X, y : arrays of shape (n, d) and (n,), optional
        Data to fit; two dozen random rows without them.
    objects : dict, optional
        Functions by name, for a model that is saved with some.
    only : names of rules, optional
        The rules to check, instead of all.

    Returns
    -------
    Report
        The rules that hold, and those that do not apply.

    Raises
    ------
    ConformanceError
        If any rule is broken. The message names each, with what was expected and what came.

    Notes
    -----
    What is only true of noise that is added to the function, such as equal means of the function
    and of observations, is not asked of a model with a link. An estimator whose fit depends on the
    order of the rows, whose outputs depend on each other, or whose mean is not linear in the
    targets, says so and why in a class attribute,
    ``_conformance_exemptions = {"rule_order_of_rows": "it takes rows in turn"}``.

    Examples
    --------
    >>> from mercer import GPRegressor
    >>> from mercer.testing import check_regressor
    >>> report = check_regressor(GPRegressor(), only=["rule_interval", "rule_storage"])
    >>> report.held
    ('rule_interval', 'rule_storage')
    """
    return run(subject_of(estimator), _REGRESSOR, RegressorCase(estimator, X, y, objects), only)


def regressor_rules(
    estimator: Any, X: Any = None, y: Any = None, *, objects: Objects | None = None
) -> list[BoundRule]:
    """Return the rules that apply to a regressor, each to be called: one test a rule.

    The arguments are those of :func:`check_regressor`.
    """
    return bind(subject_of(estimator), _REGRESSOR, RegressorCase(estimator, X, y, objects))


def check_classifier(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    objects: Objects | None = None,
    only: Iterable[str] | None = None,
) -> Report:
    """Hold a classifier to all rules of Mercer's classifiers.

    Results, errors and exemptions are as for :func:`check_regressor`.

    Parameters
    ----------
    X, y : arrays of shape (n, d), and (n,) or (n, C) for soft labels, optional
        Data to fit; without them thirty random rows of three classes, or of two if it takes no
        more.
    estimator, objects, only
        As for :func:`check_regressor`.

    Examples
    --------
    >>> from mercer import GPClassifier
    >>> from mercer.testing import check_classifier
    >>> report = check_classifier(GPClassifier(), only=["rule_predict", "rule_storage"])
    >>> report.held
    ('rule_predict', 'rule_storage')
    """
    return run(subject_of(estimator), _CLASSIFIER, ClassifierCase(estimator, X, y, objects), only)


def classifier_rules(
    estimator: Any, X: Any = None, y: Any = None, *, objects: Objects | None = None
) -> list[BoundRule]:
    """Return the rules that apply to a classifier, each to be called: one test a rule.

    The arguments are those of :func:`check_classifier`.
    """
    return bind(subject_of(estimator), _CLASSIFIER, ClassifierCase(estimator, X, y, objects))
