"""The evidence of functions that stay in a model, as their values at the rows change.

Not an engine; `relevance` has the model and the notation. Kernel parameters and centres change Phi,
and with the functions held the evidence is smooth in it. Precisions and noise follow: they are
those of its maximum, so that the derivative in Phi is the one with these held (UV section 10.2):

    dL/dPhi = V^-1 [(y - m - Phi mu) mu' - Phi Xi],    V = diag(v/w_i).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.inference._relevance_evidence import Functions, Terms, ascend, covariance, evaluate
from mercer.inference._relevance_problem import RelevanceProblem
from mercer.inference._relevance_rows import Rows

__all__ = ["Held", "held"]

Floats = NDArray[np.float64]

# Steps of precisions and noise at the most, and what the last must gain, in nats. Of more functions
# than so many these stay as they are: the steps would cost more than they gain.
_STEPS, _GAIN, _MANY = 30, 1e-7, 100


class Held(NamedTuple):
    """The evidence of functions that are all in the model.

    value : the penalised evidence (BKM 132)
    columns : (n, k) its derivative in Phi; 0 at rows without a weight
    precisions, noise : s (k,) and v of its maximum
    """

    value: float
    columns: Floats
    precisions: Floats
    noise: float


def held(problem: RelevanceProblem, s: Floats, v: float) -> Held | None:
    """Return the highest penalised evidence over precisions and noise, all functions kept.

    Of more than 100 functions it is that at the precisions and the noise that are given.

    Parameters
    ----------
    problem : RelevanceProblem
        Its columns are the functions of the model, k of them.
    s, v : (k,) precisions, and the noise, from which the maximum is looked for

    Returns
    -------
    Held, or None where the functions are too alike for a factor

    Notes
    -----
    O(n k^2) for their Gram matrix, and O(k^3) for each of some steps of Newton's.
    """
    with blas_for(0):
        rows = Rows(problem)
        terms = Terms(problem, rows)
        A = rows.take(np.arange(rows.size))
        of = Functions(A, A.T @ A, rows.P, rows.z, rows.zz)
        at = evaluate(terms, of, s, terms.within(v) if terms.learns else terms.start)
        if at is None:
            return None
        if len(s) <= _MANY:
            at = ascend(terms, of, at, _STEPS, _GAIN)
        pulled = np.outer(rows.z - A @ at.mu, at.mu) - A @ covariance(at.R)
        pulled /= at.v
        if rows.root is not None:
            pulled *= rows.root[:, None]
    columns = pulled
    if rows.kept is not None:
        columns = np.zeros((problem.columns.n, rows.size))
        columns[rows.kept] = pulled
    return Held(at.value, columns, at.s, at.v)
