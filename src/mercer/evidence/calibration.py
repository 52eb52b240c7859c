"""Whether the error bars of several outputs, which share kernel and noise, suit each of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.errors import CalibrationWarning, warn
from mercer.inference import left_out
from mercer.inference.exact import ExactProblem, Solution
from mercer.linalg import solve_lower

__all__ = ["mismatch", "residual_squares", "warn_if_miscalibrated"]

Floats = NDArray[np.float64]

# A mean of so many squares is known to six per cent, and costs little beside a factorisation.
_ROWS = 500


def warn_if_miscalibrated(
    problem: ExactProblem, solution: Solution, weights: Floats | None = None
) -> None:
    """Warn if the outputs' standardised leave-one-out residuals differ in size; see `mismatch`."""
    found = mismatch(*residual_squares(problem, solution, weights))
    if found:
        warn(
            "the outputs share one kernel and one noise, which do not suit them all. By the mean "
            "squares of their standardised leave-one-out residuals, 1 if error bars are honest: "
            f"{found}. To give each a kernel and a noise of its own, fit one model an output: "
            "[clone(model).fit(X, y) for y in np.asarray(Y).T]",
            CalibrationWarning,
        )


def residual_squares(
    problem: ExactProblem, solution: Solution, weights: Floats | None = None
) -> tuple[Floats, int]:
    """Return the mean squares (P,) of standardised leave-one-out residuals, and of how many rows.

    1 is what honest error bars have. From the factor that the solution has, O(n^2) time for each
    of at most 500 random rows.
    """
    n = len(problem.Y)
    rows = np.random.default_rng(0).permutation(n)[:_ROWS]
    columns = np.zeros((n, rows.size), order="F")
    columns[rows, np.arange(rows.size)] = 1.0
    with blas_for(n):
        columns = solve_lower(solution.factor.L, columns, overwrite=True)
    left = left_out(problem, solution, np.einsum("ij,ij->j", columns, columns), weights, rows)
    possible = ~np.isnan(left.D)
    if not np.any(possible):
        return np.ones(problem.Y.shape[1]), 0
    squares = left.residual[possible] ** 2 / left.variance[possible, None]
    counts = None if weights is None else weights[rows[possible]]
    return np.average(squares, axis=0, weights=counts), len(squares)


def mismatch(squares: Floats, rows: int) -> str:
    """Name the outputs whose mean squares are far from 1, if they differ by more than a factor 2.

    For few rows by more than chance makes of equal ones: a mean square of m rows has a relative
    standard error of sqrt(2/m), and the logarithm of a ratio of two 2/sqrt(m). Empty if they do
    not.
    """
    if not rows or np.max(squares) <= max(2.0, np.exp(6.0 / np.sqrt(rows))) * np.min(squares):
        return ""
    far = np.sqrt(2.0)  # either way: together the factor of 2
    groups = {"over-confident": squares > far, "under-confident": squares < 1.0 / far}
    return "; ".join(
        f"{word}: {_listed(np.flatnonzero(chosen), squares)}"
        for word, chosen in groups.items()
        if np.any(chosen)
    )


def _listed(outputs: NDArray[np.intp], squares: Floats) -> str:
    shown = [f"output {p} ({squares[p]:.2g})" for p in outputs[:5]]
    if len(outputs) > len(shown):
        shown.append(f"{len(outputs) - len(shown)} more")
    return ", ".join(shown)
