"""Holding a classifier to its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mercer.testing.classifier_case import classifier_case
from mercer.testing.classifier_fits import FITS
from mercer.testing.classifier_invariances import INVARIANCES
from mercer.testing.classifier_predictions import PREDICTIONS
from mercer.testing.parametrised import subject_of
from mercer.testing.rules import BoundRule, Report, Rule, bind, run

__all__ = ["check_classifier", "classifier_rules"]

_RULES: list[Rule[Any]] = [*PREDICTIONS, *FITS, *INVARIANCES]


def check_classifier(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    objects: dict[str, Callable[..., Any]] | None = None,
    only: Iterable[str] | None = None,
) -> Report:
    """Hold a classifier to all rules of Mercer's classifiers.

    They come on top of scikit-learn's own, see
    :func:`sklearn.utils.estimator_checks.check_estimator`.

    Parameters
    ----------
    estimator : estimator
        Not fitted; clones of it are.
    X, y : arrays of shape (n, d), and (n,) or (n, C) for soft labels, optional
        Data to fit; without them thirty random rows of three classes, or of two if it takes no
        more.
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

    Examples
    --------
    >>> from mercer import GPClassifier
    >>> from mercer.testing import check_classifier
    >>> report = check_classifier(GPClassifier(), only=["rule_predict", "rule_storage"])
    >>> report.held
    ('rule_predict', 'rule_storage')
    """
    case = classifier_case(estimator, X, y, objects)
    return run(subject_of(estimator), _RULES, case, only)


def classifier_rules(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    objects: dict[str, Callable[..., Any]] | None = None,
) -> list[BoundRule]:
    """Return the rules that apply to a classifier, each to be called: one test a rule.

    The arguments are those of :func:`check_classifier`.
    """
    return bind(subject_of(estimator), _RULES, classifier_case(estimator, X, y, objects))
