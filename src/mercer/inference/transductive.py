"""Classification of rows of which some have no label, by Laplace's method (BKM 58 to 61).

The labels Y' that are missing are found together with the latent functions f. With
L(f) = sum_i w_i log p(y_i | f_i) over the rows with a label, + log N(f; m, K), and sums over the
others,

    em    : sum_i w_i [sum_c q_ic log p(c | f_i) + T H(q_i)] + L(f)     over q and f in turn
    joint : -sum_i w_i H(p(. | f_i)) + L(f)                             over f (BKM 61)

are maximised, H being the entropy. The steps of the first are q_i ~ p(. | f_i)^(1/T), and the mode
of f given these label distributions (BKM 58 and 59, the old value weighting, and the new one in the
logarithm); neither ever lowers it. T falls to 0, where labels become the most probable ones, and
what is maximised is log p(Y, Y', f). Steps in turn are slow as long as T is near 1, where most is
decided: there Newton's method takes them at once, with q_i as it follows from f_i, and comes to
rest where they would.

At T = 1, which is the EM of the paper, rows without a label are of no use: whatever f is, the
probabilities of a row's labels add up to 1, and the best f is that of the other rows alone. Only
labels that are harder than their probabilities tell anything.

log N(f; m, K) stands here without its constant, -ln det(2 pi K)/2, which does not depend on f, and
has no value where rows repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.inference import laplace, softmax
from mercer.inference._annealing import Ascent, End
from mercer.inference._newton import Point
from mercer.inference._transduction import Codes, TransductiveProblem
from mercer.inference.softmax import SoftmaxProblem
from mercer.means import Mean
from mercer.posterior import Basis, Posterior

__all__ = [
    "ANNEALED",
    "HARD",
    "Solution",
    "TransductiveProblem",
    "evidence",
    "posterior",
    "solve",
]

Floats = NDArray[np.float64]

#: The temperatures of annealed labels, and of labels that are hard from the beginning.
ANNEALED = (0.98, 0.96, 0.93, 0.88, 0.8, 0.65, 0.4, 0.0)
HARD = (0.0,)

_COLDEST = 1e-6  # the least temperature there is above 0


class Solution(NamedTuple):
    """The labels and the latent functions.

    labels : (n,) the number of each row's class, the most probable one where none was given
    probabilities : (n, C) p(c | f) at the latent values; a one and zeros where the label was given
    held : (n, C) the label distributions whose curvature the posterior has
    latent, alpha : (n, P) f = m + K alpha
    objective : what was maximised, at the end, without -ln det(2 pi K)/2
    temperatures, values : (k,) T and the objective after each step of "em", which never falls at
        one T; of "joint", NaN and the objective at the start that won and at the end
    status : "converged", or "stopped" short of a maximum
    n_iterations, n_factorisations : what it took, Newton's steps of all searches
    jitter : what K has on its diagonal
    """

    labels: Codes
    probabilities: Floats
    held: Floats
    latent: Floats
    alpha: Floats
    objective: float
    temperatures: Floats
    values: Floats
    status: str
    n_iterations: int
    n_factorisations: int
    jitter: float


def solve(
    problem: TransductiveProblem,
    method: str = "em",
    *,
    temperatures: Sequence[float] = ANNEALED,
    start: Codes | None = None,
    max_iter: int = 100,
) -> Solution:
    """Find the labels and the latent functions.

    Both methods come to one of many local maxima. They begin at the functions of the rows with
    labels alone: "em" with labels that are annealed, and with hard ones; "joint" there, and where
    "em" has ended. The better end is kept.

    Parameters
    ----------
    problem : TransductiveProblem
    method : {"em", "joint"}
    temperatures : numbers from 1 to 0, falling
        Those of "em", as `ANNEALED` and `HARD`; none but 0 is less than 1e-6.
    start : (n,) array, optional
        Class numbers of all rows from which "em" begins as well, at its last temperature.
    max_iter : int
        Steps of "em" at a temperature.

    Notes
    -----
    Some fifty of Newton's steps, about twenty of them with a factorisation of O(n^3/3). Two
    classes and 1000 rows take half a second, three classes five.
    """
    return _solved(problem, method, temperatures, start, max_iter)[0]


def posterior(
    problem: TransductiveProblem,
    mean: Mean,
    method: str = "em",
    *,
    temperatures: Sequence[float] = ANNEALED,
    start: Codes | None = None,
    max_iter: int = 100,
) -> tuple[Posterior, Solution]:
    """Return the posterior process of the latent functions, and the solution it was made of.

    It is a Gaussian at the latent values that were found, with the curvature of labels there: of
    "em" those it has ended with, as if they had been given, and of "joint" labels distributed as
    the latent values say. That is never negative, as the curvature of the entropy may be.

    Parameters
    ----------
    problem : TransductiveProblem
    mean : Mean
        The mean functions, whose values at the rows are `problem.mean`.
    method, temperatures, start, max_iter : as in `solve`
    """
    solution, ascent, at = _solved(problem, method, temperatures, start, max_iter)
    with blas_for(len(problem.X)):
        A, B = ascent.functions.factors(solution.held, at)
    process = Posterior(Basis(problem.kernel, problem.X), solution.alpha, A, B, 1, mean)
    return process, solution._replace(**ascent.counts())


def evidence(problem: TransductiveProblem, labels: Codes | None = None) -> tuple[Any, Any]:
    """Return Laplace's evidence of the labels of all rows, those found held, and its adjoints.

    By it hyperparameters are chosen, in turn with the labels (BKM 3.6). It is not to be compared
    with the evidence of the labels that were given: those that were found agree with the functions
    they were found by.

    Parameters
    ----------
    problem : TransductiveProblem
    labels : (n,) array, optional
        The class number of each row; without it, those that `solve` finds.

    Returns
    -------
    As :func:`mercer.inference.laplace.evidence`, or as that of the softmax.
    """
    held = problem.held(solve(problem).labels if labels is None else labels)
    return softmax.evidence(held) if isinstance(held, SoftmaxProblem) else laplace.evidence(held)


def _require_codes(problem: TransductiveProblem, start: Codes) -> None:
    """Raise ValueError for a start that has no class for each row."""
    n, C, given = len(problem.X), problem.n_classes, np.asarray(start)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise ValueError(
            f"start must be {n} whole numbers, the class of each row, got an array of "
            f"{given.dtype} of shape {given.shape}"
        )
    if np.any((given < 0) | (given >= C)):
        raise ValueError(
            f"start must have the number of one of {C} classes, from 0, for each row, got "
            f"{np.min(given)} to {np.max(given)}"
        )


def _value(end: End) -> float:
    return end.value


def _solved(
    problem: TransductiveProblem,
    method: str,
    temperatures: Sequence[float],
    start: Codes | None,
    max_iter: int,
) -> tuple[Solution, Ascent, Point]:
    if method not in ("em", "joint"):
        raise ValueError(f"method must be 'em' or 'joint', got {method!r}")
    T = np.asarray(temperatures, dtype=float)
    if T.ndim != 1 or not T.size or not (np.all(np.diff(T) < 0) and T[0] <= 1 and T[-1] >= 0):
        raise ValueError(
            f"temperatures must fall, from at most 1 to at least 0, got {temperatures}"
        )
    if np.any((T > 0) & (T < _COLDEST)):
        raise ValueError(
            f"temperatures must be 0, or at least {_COLDEST:g}: below that labels are as hard as "
            f"at 0; got {temperatures}"
        )
    if start is not None:
        _require_codes(problem, start)
    with blas_for(len(problem.X)):
        ascent = Ascent(problem)
        supervised, last = ascent.supervised(), temperatures[-1:]
        ends = [ascent.em(supervised, None, temperatures, max_iter)]
        if len(temperatures) > 1:
            ends.append(ascent.em(supervised, None, last, max_iter))
        if start is not None:
            Q = ascent.with_given(np.eye(problem.n_classes)[start])
            ends.append(ascent.em(supervised, Q, last, max_iter))
        end = max(ends, key=_value)
        if method == "joint":
            end = max((ascent.joint(at) for at in (supervised, end.at)), key=_value)
    shape = problem.mean.shape
    probabilities = ascent.expected(end.at.f, 1.0)
    labels = np.where(problem.known, problem.labels, np.argmax(probabilities, axis=1))
    solution = Solution(
        labels,
        probabilities,
        end.held,
        end.at.f.reshape(shape),
        end.at.alpha.reshape(shape),
        end.value,
        np.array(end.temperatures),
        np.array(end.values),
        "converged" if end.done else "stopped",
        **ascent.counts(),
    )
    return solution, ascent, end.at
