"""The most probable values of one latent function, and the Gaussian sites there.

Not an engine of its own: Laplace's method goes on from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._newton import Solver
from mercer.inference._problem import LatentProblem
from mercer.inference._scalar import ScalarNewton
from mercer.inference._single import single
from mercer.inference._sites import Sites, factorise, falling, symmetric_product

__all__ = ["Mode", "find_mode"]

Floats = NDArray[np.float64]

_SINGLE = 400  # rows from which single precision saves more time than a second factorisation takes


class Mode(NamedTuple):
    """The mode, and the Gaussian sites there."""

    alpha: Floats  # (n,)
    latent: Floats  # (n,): m + K alpha
    log_likelihood: float
    sites: Sites
    status: str  # "converged" or "stopped"
    n_iterations: int
    n_factorisations: int
    jitter: float  # what K has on its diagonal


class _Search(ScalarNewton[Sites]):
    """Newton's method with the lower triangle of K."""

    def __init__(self, problem: LatentProblem, K: Floats) -> None:
        super().__init__(problem, K)
        self.jitter = problem.jitter or 0.0
        self._memory: Floats | None = None

    def fresh_sites(self, precision: Floats) -> Sites:
        sites = factorise(self.K, precision, self.problem.jitter, self._memory)
        self.jitter += sites.jitter
        self._memory = sites.memory
        return sites

    def rough_sites(self, precision: Floats) -> Solver:
        """Return, for many rows, one of single precision, as long as that is good enough."""
        rough = None
        if len(precision) >= _SINGLE and not self.was_slow:
            rough = single(self.K, precision)
        if rough is None:
            return self.factorise(precision)
        self.n_factorisations += 1
        return rough

    def falling(self, W: Floats) -> tuple[Floats, Floats] | None:
        d = falling(self.K, W)
        if d is None:
            return None
        Kd = symmetric_product(self.K, d)
        unit = np.sqrt(np.mean(np.diagonal(self.K))) / np.max(np.abs(Kd))
        return unit * d, unit * Kd


def find_mode(problem: LatentProblem, K: Floats, start: Floats | None = None) -> Mode:
    """Maximise sum_i w_i log p(y_i | f_i) - alpha'K alpha/2 over alpha.

    Parameters
    ----------
    problem : LatentProblem
    K : (n, n) array, Fortran order
        `problem.gram()`. Jitter that has to be added is added in place.
    start : (n,) array, optional
        Where to begin: alpha at the mode for hyperparameters nearby.
    """
    search = _Search(problem, K)
    at, sites, done = search.settle(search.begin(start))
    return Mode(
        at.alpha,
        at.f,
        at.log_likelihood,
        sites,
        "converged" if done else "stopped",
        search.n_iterations,
        search.n_factorisations,
        search.jitter,
    )
