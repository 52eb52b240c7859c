"""Noise that is left open, estimated from the residuals of a kernel expansion.

An expansion with k coefficients leaves n - k residuals to estimate noise from: sums over the rows
are divided by that number instead of n. What is left open of a likelihood maximises the likelihood
of the residuals but for this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, Likelihood

__all__ = ["Noise"]

Floats = NDArray[np.float64]

# The least scale of noise, in units of the targets' spread.
_LEAST = 1e-6
# Epsilon is sought among this part of the residuals' scale.
_WIDEST, _GRID = 3.0, 100


@dataclass(frozen=True)
class Noise:
    """A likelihood of which something may be left open, for targets of a given spread.

    spec : Gaussian, Laplace, EpsilonInsensitive or Huber; `Gaussian()` has an open variance
    spread : the standard deviation of the targets, or what stands for it
    start : the likelihood to begin with, None for one in units of the spread
    """

    spec: Likelihood
    spread: float
    start: Likelihood | None = None

    @property
    def is_open(self) -> bool:
        """Whether the unit of the loss is to be estimated."""
        if isinstance(self.spec, Gaussian):
            return self.spec.noise is None
        return "scale" not in self.spec.parameters

    @property
    def shapes_the_loss(self) -> bool:
        """Whether the loss depends on what is to be estimated."""
        if isinstance(self.spec, Huber):
            return self.is_open
        return isinstance(self.spec, EpsilonInsensitive) and self.spec.epsilon is None

    def begun(self) -> Likelihood:
        """Return the likelihood with starts for all that is open."""
        spec, spread = self.spec, self.spread
        if self.start is not None:
            return self.start
        if isinstance(spec, Gaussian):
            return Gaussian(0.1 * spread**2) if self.is_open else spec
        starts = {"scale": 0.3 * spread}
        if isinstance(spec, EpsilonInsensitive):
            starts["epsilon"] = 0.1 * spread
        return self._with(**starts)

    def with_unit(self, unit: float) -> Likelihood:
        """Return the likelihood with this unit of the loss; what else is open stays so."""
        if isinstance(self.spec, Gaussian):
            return Gaussian(unit)
        return self._with(scale=float(np.sqrt(unit) if isinstance(self.spec, Huber) else unit))

    def estimate(self, residual: Floats, weights: Floats, freedom: float) -> Likelihood:
        """Return the likelihood of these residuals; what is given of it stays.

        Parameters
        ----------
        residual, weights : (n,)
        freedom : the weight of all rows less the number of coefficients, above 0
        """
        least = _LEAST * self.spread
        size = np.abs(residual)
        if isinstance(self.spec, Gaussian):
            if not self.is_open:
                return self.spec
            return Gaussian(max(float(np.sum(weights * residual**2)) / freedom, least**2))
        if isinstance(self.spec, Laplace):
            return self._with(scale=max(float(np.sum(weights * size)) / freedom, least))
        if isinstance(self.spec, Huber):
            threshold = float(self.spec.threshold)
            return self._with(scale=max(_huber(size, weights, freedom, threshold), least))
        assert isinstance(self.spec, EpsilonInsensitive)
        scale = self.spec.scale
        if self.spec.epsilon is not None:
            epsilon = float(self.spec.epsilon)
        else:
            # where the residuals are likeliest; the loss they are of may have another
            most = _WIDEST * max(float(np.sum(weights * size)) / freedom, least)

            def cost(e: float) -> float:
                s = _beyond(size, weights, freedom, e, least) if scale is None else scale
                over = float(np.sum(weights * np.maximum(size - e, 0.0))) / freedom
                return float(np.log(s + e) + over / s)

            # it has kinks, and may have several minima
            grid = np.linspace(0.0, most, _GRID)
            best = int(np.argmin([cost(e) for e in grid]))
            ends = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
            options = {"xatol": 1e-9 * most}
            found = minimize_scalar(cost, bounds=ends, method="bounded", options=options)
            epsilon = float(found.x if found.fun < cost(grid[best]) else grid[best])
        if scale is None:
            scale = _beyond(size, weights, freedom, epsilon, least)
        return self._with(epsilon=epsilon, scale=scale)

    def _with(self, **values: float) -> Likelihood:
        """Return the likelihood with values for what is open of it."""
        state = self.spec.to_state()
        return self.spec.from_state(
            state | {name: v for name, v in values.items() if state.get(name) is None}
        )


def _beyond(size: Floats, weights: Floats, freedom: float, epsilon: float, least: float) -> float:
    """Return s such that residuals with exponential tails beyond epsilon are likeliest.

    With m the mean excess, m/s^2 = 1/(s + epsilon).
    """
    m = float(np.sum(weights * np.maximum(size - epsilon, 0.0))) / freedom
    return max(float(0.5 * (m + np.sqrt(m**2 + 4.0 * m * epsilon))), least)


def _huber(size: Floats, weights: Floats, freedom: float, threshold: float) -> float:
    """Return s with sum w t psi(t) = freedom for t = size/s, psi(t) = min(t, threshold)."""
    largest = float(np.max(size, initial=0.0))
    if largest == 0.0:
        return 0.0

    def excess(log_s: float) -> float:
        t = size / np.exp(log_s)
        return float(np.sum(weights * t * np.minimum(t, threshold))) - freedom

    high = np.log(largest) + 0.5 * np.log(max(float(np.sum(weights)) / freedom, 1.0)) + 1.0
    low = high - 60.0
    if excess(low) <= 0.0:
        return 0.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-12)))
