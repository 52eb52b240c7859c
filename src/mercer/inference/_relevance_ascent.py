"""Damped Newton steps up a penalised evidence, in the logarithms of all precisions together.

Not an engine. What the evidence is of, and how it is computed, is for the `Hill` to say.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from mercer.inference._relevance_problem import Hyperprior, is_flat

__all__ = ["Hill", "Penalty", "Slopes", "climb"]

Floats = NDArray[np.float64]

# Most that a logarithm changes by in one step of the ascent.
_STRIDE = 3.0
_STEP = 1e-4  # of differences in ln s


class Penalty:
    """The log densities of ln s_j, in nats, and their derivatives."""

    def __init__(self, hyperprior: Hyperprior) -> None:
        self.hyperprior = hyperprior
        self.is_flat = is_flat(hyperprior)

    def hyper(self, s: Floats) -> float:
        """Return sum_j ln h(s_j)."""
        return 0.0 if self.is_flat else float(np.sum(self.hyperprior.log_hyper(s)))

    def slopes(self, s: Floats) -> tuple[Floats, Floats]:
        """Return the first and second derivatives of ln h(s_j) in ln s_j."""
        if self.is_flat:
            return np.zeros(len(s)), np.zeros(len(s))
        slope = self.hyperprior.slope
        up, down = slope(s * np.exp(_STEP)), slope(s * np.exp(-_STEP))
        return slope(s), (up - down) / (2.0 * _STEP)


class Slopes(NamedTuple):
    """What a step is made of.

    gradient : (p,)
    curvature : (p, p) minus the second derivatives, or what stands for them, Fortran order
    free : (p,) False where a logarithm is at its limit and would go beyond
    """

    gradient: Floats
    curvature: Floats
    free: NDArray[np.bool_]


class _Valued(Protocol):
    @property
    def value(self) -> float: ...


Place = TypeVar("Place", bound=_Valued)


class Hill(Protocol[Place]):
    """A function of logarithms that is to be climbed."""

    def slopes(self, at: Place) -> Slopes:
        """Return the derivatives at a point."""

    def moved(self, at: Place, step: Floats) -> Place | None:
        """Return the point a step (p,) away, within limits; None where there is none."""


def climb(hill: Hill[Place], at: Place, steps: int, tol: float) -> Place:
    """Go up by damped Newton steps; the value never decreases.

    Ends after `steps`, or where a step gains less than tol or the gradient is as good as 0.
    """
    damping = 1e-3
    for _ in range(steps):
        g, C, free = hill.slopes(at)
        if not np.all(free):
            g, C = g[free], np.asfortranarray(C[np.ix_(free, free)])
        if not len(g) or float(np.max(np.abs(g))) < 1e-9 * (1.0 + abs(at.value)):
            break
        found = None
        for _ in range(16):
            B = C.copy(order="F")
            B.reshape(-1, order="F")[:: len(g) + 1] += damping
            B, info = dpotrf(B, lower=0, clean=0, overwrite_a=1)
            if info:
                damping = max(8.0 * damping, 1e-3)
                continue
            step = dpotrs(B, g, lower=0)[0]
            step *= min(1.0, _STRIDE / float(np.max(np.abs(step))))
            whole = np.zeros(len(free))
            whole[free] = step
            found = hill.moved(at, whole)
            if found is not None and found.value >= at.value:
                damping = max(damping / 8.0, 1e-10)
                break
            found = None
            damping *= 8.0
        if found is None:
            break
        gain, at = found.value - at.value, found
        if gain < tol:
            break
    return at
