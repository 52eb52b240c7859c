"""The most probable values of one latent function, and the Gaussian sites there.

Not an engine of its own: Laplace's method goes on from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._memory import square_memory
from mercer.inference._newton import Direction, Point, Solver
from mercer.inference._problem import LatentProblem
from mercer.inference._scalar import ScalarNewton
from mercer.inference._single import Single, single
from mercer.inference._sites import Sites, factorise, falling, symmetric_product

__all__ = ["Mode", "find_mode"]

Floats = NDArray[np.float64]

_SINGLE = 400  # rows from which single precision saves more time than a second factorisation takes
# What a step gains, in nats, and the square of how much it changes W, where the next is not needed.
_NEAR = 1e-9


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

    def __init__(self, problem: LatentProblem, K: Floats, near: float = 0.0) -> None:
        super().__init__(problem, K)
        self._near = near
        self.jitter = problem.jitter or 0.0
        self._memory = square_memory(len(K))  # of the factor

    def fresh_sites(self, precision: Floats) -> Sites:
        sites = factorise(self.K, precision, self.problem.jitter, self._memory)
        self.jitter += sites.jitter
        return sites

    def rough_sites(self, precision: Floats) -> Solver:
        """Return, for many rows, one of single precision, as long as that is good enough."""
        rough = None
        if len(precision) >= _SINGLE and not self.was_slow:
            self._sites = None  # before their memory is used again
            rough = single(self.K, precision, self._memory)
        if rough is None:
            return self.factorise(precision)
        self.n_factorisations += 1
        return rough

    def shrink(self, rho: Floats, solver: Solver) -> Floats:
        """Return (1 + W K)^-1 rho, in single precision without a product with K."""
        z = solver.shrink(rho) if isinstance(solver, Single) else None
        return super().shrink(rho, solver) if z is None else z

    def is_last(self, at: Point, W: Floats, step: Direction, slope: float) -> bool:
        """Return whether the step after this one, its square, would leave W as it is.

        What is left then is for `polish` to make up for, with the factorisation at the end: only
        those that go on to it may be content with less than rounding.
        """
        if super().is_last(at, W, step, slope):
            return True
        if not step.is_good or abs(slope) > self._near:
            return False
        moved = np.abs(self.slopes(at.f + step.Kd)[1] - W)
        return bool(np.all(moved <= np.sqrt(self._near) * np.abs(W)))

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
    search = _Search(problem, K, _NEAR)
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
