"""Holding a likelihood to its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.likelihoods import Likelihood
from mercer.testing.likelihood_case import likelihood_case
from mercer.testing.likelihood_parameters import LIKELIHOOD_PARAMETERS
from mercer.testing.likelihood_rules import LIKELIHOOD
from mercer.testing.parametrised import PARAMETRISED, subject_of
from mercer.testing.rules import BoundRule, Report, Rule, bind, run

__all__ = ["check_likelihood", "likelihood_rules"]

_RULES: list[Rule[Any]] = [*LIKELIHOOD, *LIKELIHOOD_PARAMETERS, *PARAMETRISED]
_LINE = (-np.inf, np.inf)


def check_likelihood(
    likelihood: Likelihood,
    *,
    f: ArrayLike | None = None,
    interval: tuple[float, float] = _LINE,
    outcomes: ArrayLike | None = None,
    objects: dict[str, Callable[..., Any]] | None = None,
    only: Iterable[str] | None = None,
) -> Report:
    """Hold a likelihood to all rules of its interface.

    Parameters
    ----------
    likelihood : Likelihood
        The likelihood, best with parameters that are not all 1.
    f : array, optional
        Latent values to try it at; four around 0 without it.
    interval : pair of floats, default the whole line
        Where the observations of a continuous likelihood lie.
    outcomes : array, optional
        All observations that a discrete likelihood can make, or so many that the others have a
        probability below 1e-7. Without it the likelihood is continuous.
    objects : dict, optional
        Functions by name, for a likelihood that is saved with some.
    only : names of rules, optional
        The rules to check, instead of all.

    Returns
    -------
    Report
        The rules that hold, and those that do not apply: a rule on derivatives does not, to a
        likelihood that does not give them.

    Raises
    ------
    ConformanceError
        If any rule is broken. The message names each, with what was expected and what came.

    Notes
    -----
    Integrals are adaptive, and look for the peaks of the density around f, `conditional_mean` and
    `knots`: a likelihood may be as narrow or as wide as it likes, and have kinks anywhere.

    Examples
    --------
    >>> from mercer.likelihoods import Gaussian
    >>> from mercer.testing import check_likelihood
    >>> report = check_likelihood(Gaussian(0.3))
    >>> report.left_out
    {}
    """
    case = likelihood_case(likelihood, f, interval, outcomes, objects)
    return run(subject_of(likelihood), _RULES, case, only)


def likelihood_rules(
    likelihood: Likelihood,
    *,
    f: ArrayLike | None = None,
    interval: tuple[float, float] = _LINE,
    outcomes: ArrayLike | None = None,
    objects: dict[str, Callable[..., Any]] | None = None,
) -> list[BoundRule]:
    """Return the rules that apply to a likelihood, each to be called: one test a rule.

    The arguments are those of :func:`check_likelihood`.
    """
    case = likelihood_case(likelihood, f, interval, outcomes, objects)
    return bind(subject_of(likelihood), _RULES, case)
