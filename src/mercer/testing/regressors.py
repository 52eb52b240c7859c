"""Holding a regressor to its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mercer.testing.parametrised import subject_of
from mercer.testing.regressor_case import regressor_case
from mercer.testing.regressor_fits import FITS
from mercer.testing.regressor_invariances import INVARIANCES
from mercer.testing.regressor_predictions import PREDICTIONS
from mercer.testing.rules import BoundRule, Report, Rule, bind, run

__all__ = ["check_regressor", "regressor_rules"]

_RULES: list[Rule[Any]] = [*PREDICTIONS, *FITS, *INVARIANCES]


def check_regressor(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    objects: dict[str, Callable[..., Any]] | None = None,
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
    order of the rows, or whose outputs depend on each other, says so and why in a class attribute,
    ``_conformance_exemptions = {"rule_order_of_rows": "it takes rows in turn"}``.

    Examples
    --------
    >>> from mercer import GPRegressor
    >>> from mercer.testing import check_regressor
    >>> report = check_regressor(GPRegressor(), only=["rule_interval", "rule_storage"])
    >>> report.held
    ('rule_interval', 'rule_storage')
    """
    case = regressor_case(estimator, X, y, objects)
    return run(subject_of(estimator), _RULES, case, only)


def regressor_rules(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    objects: dict[str, Callable[..., Any]] | None = None,
) -> list[BoundRule]:
    """Return the rules that apply to a regressor, each to be called: one test a rule.

    The arguments are those of :func:`check_regressor`.
    """
    return bind(subject_of(estimator), _RULES, regressor_case(estimator, X, y, objects))
