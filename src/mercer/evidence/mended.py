"""Hyperparameters that were found on a sample of the rows, held against all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.evidence.maximise import maximise
from mercer.evidence.objective import Data
from mercer.evidence.optimum import Lines, Report, tell
from mercer.evidence.sparse import SparseObjective
from mercer.inference.sparse import solve
from mercer.kernels import Kernel, Scaled

__all__ = ["mended"]

Floats = NDArray[np.float64]

# Squared residuals in units of their variances, on average, above which the sample has misled. So
# many rows are searched then, for so many iterations, from the best of these shares of the targets'
# variance as noise.
_TOO_LARGE = 2.0
_ROWS, _ITERATIONS = 4000, 50
_NOISES = (1e-3, 1e-2, 0.1, 0.5)


def mended(
    whole: SparseObjective,
    first: Kernel,
    variance: float,
    rng: np.random.Generator,
    report: Report | None = None,
) -> SparseObjective:
    """Return the objective with all variances times the factor that maximises its evidence.

    That is the mean square of the residuals in units of their variances, and near 1. Where it is
    far larger the sample was too sparse to tell noise from a rough function, and the evidence of
    some blocks is searched first, from the best of more noise, with the sample's kernel and the
    one it began with.

    Parameters
    ----------
    whole : SparseObjective
        Of all rows, in blocks, at the hyperparameters of a sample.
    first : Kernel
        What the search on the sample began with.
    variance : float
        That of the targets, in units in which the kernel sees them.
    rng : Generator
        For the blocks.
    report : callable, optional
        Told of each stage, and of the evaluations if it writes lines: another's count is that of
        the search on the sample.
    """
    free = whole.likelihood.theta.size
    if not free:
        return whole
    tell(report, f"passing over {len(whole.data.Y)} rows for the scale of the variances")
    scale, found = _scale(whole)
    if scale > _TOO_LARGE:
        part = _some_blocks(whole, rng)
        finite = np.isfinite(scale)
        why = f"the scale is {scale:.3g}" if finite else "their covariance cannot be factorised"
        tell(report, f"{why}: searching {len(part.data.Y)} rows, whole blocks of them")
        low, high = whole.bounds.T
        shares = [np.full(free, np.log(share * variance)) for share in _NOISES]
        starts = [
            np.clip(np.append(kernel.theta, noise), low, high)
            for kernel in (whole.kernel, first)
            for noise in shares
        ]
        best = max(starts, key=part.value)
        lines = replace(report, n_starts=1) if isinstance(report, Lines) else None
        end = maximise(_at(part, best), max_iter=_ITERATIONS, report=lines)
        tell(report, f"passing over {len(whole.data.Y)} rows once more")
        other = _at(whole, end.theta)
        another, value = _scale(other)
        if value > found:
            whole, scale = other, another
    whole, factor = _times(whole, scale)
    tell(report, f"all variances are multiplied by {factor:.3g}")
    return whole


def _scale(whole: SparseObjective) -> tuple[float, float]:
    """Return the factor of all variances that maximises the evidence, and the evidence there.

    With Sigma = Q + Lambda of (UV 30) times s the evidence of N targets has -(y'Sigma^-1 y/s +
    N ln s)/2: it is largest at s = y'Sigma^-1 y/N, and N (s - 1 - ln s)/2 above that at s = 1.
    """
    problem = whole.problem(*whole.unpack(whole.theta))
    try:
        solution = solve(problem)
    except NotPositiveDefiniteError:
        return np.inf, -np.inf
    outputs = problem.n_outputs
    square, count = -2.0 * solution.quadratic, solution.statistics.weight * outputs
    if problem.integrate:  # of the quadratic part this is no square
        square += 2.0 * outputs * np.linalg.slogdet(solution.root)[1]
        count -= outputs * len(solution.root)
    if count <= 0:  # weights that are worth no row say nothing of a scale
        return 1.0, solution.log_evidence
    scale = max(square / count, np.finfo(float).tiny)
    return scale, solution.log_evidence + 0.5 * count * (scale - 1.0 - np.log(scale))


def _times(whole: SparseObjective, scale: float) -> tuple[SparseObjective, float]:
    """Return the objective with all variances times this, as far as that can be, and the factor.

    It is 1 where the kernel has no variance to change, or the scale is not finite. Bounds that one
    of them has hold back both: the factor is right for none of them alone.
    """
    names = whole.kernel.parameter_names
    if not isinstance(whole.kernel, Scaled) or "variance" not in names or not np.isfinite(scale):
        return whole, 1.0
    theta = whole.theta
    variances = [names.index("variance"), *range(len(names), len(theta))]
    low, high = (whole.bounds[variances] - theta[variances, None]).T
    step = float(np.clip(np.log(scale), np.max(low), np.min(high)))
    theta[variances] += step
    return _at(whole, theta), float(np.exp(step))


def _some_blocks(whole: SparseObjective, rng: np.random.Generator) -> SparseObjective:
    """Return the objective of the rows of a few blocks."""
    assert whole.groups is not None
    sizes = np.bincount(whole.groups)
    order = rng.permutation(len(sizes))
    chosen = order[: 1 + np.searchsorted(np.cumsum(sizes[order]), _ROWS)]
    rows = np.flatnonzero(np.isin(whole.groups, chosen))
    data = whole.data
    weights = None if data.weights is None else data.weights[rows]
    part = Data(data.X[rows], data.Y[rows], weights, data.scale)
    groups = np.unique(whole.groups[rows], return_inverse=True)[1].astype(np.intp)
    model = whole.kernel, whole.likelihood, whole.mean
    return SparseObjective(*model, part, whole.inducing, whole.kind, groups, whole.bounds)


def _at(whole: SparseObjective, theta: Floats) -> SparseObjective:
    """Return the same objective at another start."""
    kernel, likelihood, inducing = whole.unpack(theta)
    rest = whole.kind, whole.groups, whole.bounds
    return SparseObjective(kernel, likelihood, whole.mean, whole.data, inducing, *rest)
