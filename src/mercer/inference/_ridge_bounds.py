"""Weight decay for losses that are linear in pieces: what is known of the optimum.

Variables give F, pulls give D (`_ridge`), and the optimum is between the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._ridge_newton import Coefficients

__all__ = ["above", "below", "enough"]

Floats = NDArray[np.float64]

# The part of the tolerance that is aimed at, and what rounding may leave of the gap.
_SETTLED, _ROUNDING = 1e-2, 1e-12


def above(problem: ExpansionProblem, over: Coefficients, x: Floats) -> float:
    """Return F of variables."""
    return problem.value(problem.mean + over.values(x)) + 0.5 * over.product(x, x)


def below(problem: ExpansionProblem, over: Coefficients, u: Floats) -> float:
    """Return D of balanced pulls."""
    return problem.dual_value(u) - over.pulled(u)


def enough(tol: float) -> float:
    """Return the gap, relative to F, to stop at for a certificate of tol."""
    return max(_SETTLED * tol, _ROUNDING)
