"""All choices of inducing inputs by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels import Kernel
from mercer.selection.checks import require_kernel, whole_number
from mercer.selection.clusters import kmeans
from mercer.selection.greedy import pivoted_cholesky, sparse_greedy_matrix
from mercer.selection.subset import random_subset
from mercer.selection.targets import information_gain, matching_pursuit

__all__ = ["STRATEGIES", "select"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Task:
    """What `select` was given."""

    kernel: Kernel
    X: Any
    y: ArrayLike | None
    m: int
    noise: ArrayLike | None
    rng: np.random.Generator
    n_candidates: int
    scales: ArrayLike | None


def _random(task: _Task) -> Any:
    return task.X[random_subset(task.X, min(task.m, len(task.X)), task.rng)]


def _kmeans(task: _Task) -> Any:
    if not task.kernel.is_numeric:
        raise ValueError("'kmeans' takes means of rows, which must be numbers for that")
    scales = task.scales
    if scales is None:
        scales = np.where(np.ptp(task.X, axis=0) > 0, np.std(task.X, axis=0), 1.0)
    return kmeans(task.X, task.m, scales, rng=task.rng).centres


def _cholesky(task: _Task) -> Any:
    return task.X[pivoted_cholesky(task.kernel, task.X, task.m).indices]


def _greedy(task: _Task) -> Any:
    chosen = sparse_greedy_matrix(task.kernel, task.X, task.m, task.n_candidates, task.rng)
    return task.X[chosen.indices]


def _by_targets(name: str, function: Callable[..., Any]) -> Callable[[_Task], Any]:
    def choose(task: _Task) -> Any:
        if task.y is None or task.noise is None:
            raise ValueError(f"{name!r} looks at the targets: give y and noise")
        chosen = function(
            task.kernel, task.X, task.y, task.m, task.noise, task.n_candidates, task.rng
        )
        return task.X[chosen.indices]

    return choose


STRATEGIES: dict[str, Callable[[_Task], Any]] = {
    "random": _random,
    "kmeans": _kmeans,
    "cholesky": _cholesky,
    "greedy": _greedy,
    "information": _by_targets("information", information_gain),
    "pursuit": _by_targets("pursuit", matching_pursuit),
}


def select(
    name: str,
    kernel: Kernel,
    X: Any,
    y: ArrayLike | None,
    m: int,
    noise: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    n_candidates: int = 59,
    scales: ArrayLike | None = None,
) -> Any:
    """Return at most m points for inducing inputs, chosen by the strategy of that name.

    ============= ====================== ========= ========================= ================
    name          function               looks at  takes                     kernel values
    ============= ====================== ========= ========================= ================
    "random"      `random_subset`        nothing   O(n)                      none
    "kmeans"      `kmeans`               X         O(n m d)                  none
    "cholesky"    `pivoted_cholesky`     X, kernel O(n m^2)                  n m
    "greedy"      `sparse_greedy_matrix` X, kernel O(n m^2 n_candidates)     n m n_candidates
    "information" `information_gain`     all       O(n m^2)                  n m
    "pursuit"     `matching_pursuit`     all       O(n m (m + n_candidates)) n m n_candidates
    ============= ====================== ========= ========================= ================

    Parameters
    ----------
    name : str
        One of these.
    kernel : Kernel
        A covariance. Also "random" and "kmeans" check the inputs by it.
    X : inputs
        n rows.
    y : array of shape (n,) or (n, P), or None
        Targets, less the mean of the prior.
    m : int
        How many points. There are fewer if there are fewer rows, or if any more would add nothing:
        rows that repeat are chosen once, except by "random".
    noise : float or array of shape (n,), optional
        Noise variance, of all rows or of each.
    rng : Generator, int or None
        Where the randomness comes from.
    n_candidates : int, default 59
        How many rows "greedy", "information" and "pursuit" draw each time.
    scales : float or array of shape (d,), optional
        What "kmeans" divides columns by, such as length scales. Without it, their standard
        deviations.

    Returns
    -------
    ndarray of shape (m, d)
        Rows of X, except with "kmeans".

    Notes
    -----
    No matrix of n x n is formed by any of them; the last four have one or two of n x m. Without
    targets and with inducing inputs that are optimised afterwards, "kmeans" is a good start.
    With a kernel that is known to be right and points that stay, "cholesky" leaves the least
    variance once m is large enough to leave little, "greedy" when it is not.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.selection import select
    >>> X = np.linspace(0.0, 1.0, 101)[:, None]
    >>> select("cholesky", RBF(0.3), X, None, 3)[:, 0]
    array([0. , 1. , 0.5])
    >>> y = np.sin(9.0 * X[:, 0])
    >>> select("pursuit", RBF(0.3), X, y, 4, noise=0.01, rng=0).shape
    (4, 1)
    """
    if name not in STRATEGIES:
        raise ValueError(f"name must be one of {', '.join(map(repr, STRATEGIES))}; got {name!r}")
    require_kernel(kernel)
    X = kernel.inputs(X)
    if len(X) == 0:
        raise ValueError("at least one row is wanted, got none")
    task = _Task(
        kernel,
        X,
        y,
        whole_number("m", m),
        noise,
        np.random.default_rng(rng),
        whole_number("n_candidates", n_candidates),
        scales,
    )
    return STRATEGIES[name](task)
