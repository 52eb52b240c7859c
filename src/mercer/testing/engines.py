"""Holding an engine to its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mercer.inference.exact import ExactProblem
from mercer.testing.engine_case import Engine, EngineCase, name_of, require_engine
from mercer.testing.engine_rules import ENGINE
from mercer.testing.rules import BoundRule, Report, bind, run

__all__ = ["check_engine", "engine_rules"]


def check_engine(
    engine: Engine | Any,
    *,
    problem: Callable[..., Any] = ExactProblem,
    regressors: bool = True,
    exact: bool = True,
    only: Iterable[str] | None = None,
) -> Report:
    """Hold an inference engine for Gaussian noise to all rules of its interface.

    Parameters
    ----------
    engine : module or object
        With the functions `solve`, `evidence` and `posterior`, see
        :class:`mercer.testing.Engine`.
    problem : callable, default ExactProblem
        Makes a problem from the keywords kernel, X, Y and noise, and H and integrate.
    regressors : bool, default True
        Whether the engine takes regressors H of the mean.
    exact : bool, default True
        Whether evidence and posterior are the true ones. Those of an approximation are not held
        against dense formulas, but its adjoints are held against its own evidence.
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
    >>> from mercer.inference import exact
    >>> from mercer.testing import check_engine
    >>> report = check_engine(exact)
    >>> report.left_out
    {}
    """
    require_engine(engine)
    case = EngineCase(engine, problem, regressors, exact)
    return run(name_of(engine), ENGINE, case, only)


def engine_rules(
    engine: Engine | Any,
    *,
    problem: Callable[..., Any] = ExactProblem,
    regressors: bool = True,
    exact: bool = True,
) -> list[BoundRule]:
    """Return the rules that apply to an engine, each to be called: one test a rule.

    The arguments are those of :func:`check_engine`.
    """
    require_engine(engine)
    return bind(name_of(engine), ENGINE, EngineCase(engine, problem, regressors, exact))
