"""Whether the error bars of several outputs, which share kernel and noise, suit each of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.errors import CalibrationWarning, warn
from mercer.inference.exact import ExactProblem, Solution
from mercer.linalg import solve_lower

__all__ = ["residual_squares", "warn_if_miscalibrated"]

Floats = NDArray[np.float64]

# A mean of so many squares is known to six per cent, and costs little beside a factorisation.
_ROWS = 500


def residual_squares(
    problem: ExactProblem, solution: Solution, weights: Floats | None = None
) -> tuple[Floats, int]:
    """Return the mean squares (P,) of standardised leave-one-out residuals, and of how many rows.

    1 is what honest error bars have. From the factor that the solution has, O(n^2) time for each
    of at most 500 random rows. The residuals are those of `inference.exact.leave_one_out`.
    """
    n = len(problem.Y)
    rows = np.random.default_rng(0).permutation(n)[:_ROWS]
    columns = np.zeros((n, rows.size), order="F")
    columns[rows, np.arange(rows.size)] = 1.0
    with blas_for(n):
        columns = solve_lower(solution.factor.L, columns, overwrite=True)
    plain = np.einsum("ij,ij->j", columns, columns)  # diagonal of Q^-1
    D = plain - np.sum(solution.V[rows] ** 2, axis=1)
    possible = D > n * np.finfo(float).eps * plain
    rows, D, plain = rows[possible], D[possible], plain[possible]
    variance = 1.0 / (D if problem.integrate else plain)
    counts = np.ones(rows.size)
    if weights is not None:
        counts = weights[rows]
        variance = variance + problem.noise[rows] * (counts - 1.0)
    if not rows.size:
        return np.ones(problem.Y.shape[1]), 0
    squares = (solution.alpha[rows] / D[:, None]) ** 2 / variance[:, None]
    return np.average(squares, axis=0, weights=counts), rows.size


def warn_if_miscalibrated(squares: Floats, rows: int) -> None:
    """Warn if mean squares of standardised residuals differ by more than a factor of 2.

    For few rows by more than chance makes of equal ones: a mean square of m rows has a relative
    standard error of sqrt(2/m), and the logarithm of a ratio of two 2/sqrt(m).
    """
    if not rows or np.max(squares) <= max(2.0, np.exp(6.0 / np.sqrt(rows))) * np.min(squares):
        return
    groups = [("over-confident", squares > np.sqrt(2.0)), ("under-confident", squares < 0.5**0.5)]
    found = "; ".join(
        f"{word}: {_listed(np.flatnonzero(chosen), squares)}"
        for word, chosen in groups
        if np.any(chosen)
    )
    warn(
        "the outputs share one kernel and one noise, which do not suit them all. By the mean "
        f"squares of their standardised leave-one-out residuals, 1 if error bars are honest: "
        f"{found}. sklearn.multioutput.MultiOutputRegressor(GPRegressor()) fits a kernel and a "
        "noise to each",
        CalibrationWarning,
    )


def _listed(outputs: NDArray[np.intp], squares: Floats) -> str:
    shown = [f"output {p} ({squares[p]:.2g})" for p in outputs[:5]]
    if len(outputs) > len(shown):
        shown.append(f"{len(outputs) - len(shown)} more")
    return ", ".join(shown)
