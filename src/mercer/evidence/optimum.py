"""What a search has seen, and where it ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Function", "Optimum", "Recorder"]

Floats = NDArray[np.float64]

Function = Callable[[Floats], tuple[float, Floats]]


@dataclass
class Optimum:
    """Where a maximisation ended.

    theta, value : the best point seen, and the objective there
    status : "converged", "stopped" (budget or line search), "interrupted", "fixed" (nothing free)
    message : the optimiser's words
    thetas, values : every evaluation, in order
    n_iterations : of the optimiser, at the start that won
    slope : of the objective at theta, along the steepest component that is not at a bound
    jitter : with which the objective was evaluated there; None if it never was
    """

    theta: Floats
    value: float
    status: str = "converged"
    message: str = ""
    thetas: list[Floats] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    n_iterations: int = 0
    slope: float = 0.0
    jitter: float | None = None

    @property
    def is_flat(self) -> bool:
        """Whether a line search could gain nothing but rounding."""
        return self.slope <= 1e-4 * (1.0 + abs(self.value))

    @property
    def n_evaluations(self) -> int:
        """How often the objective was evaluated."""
        return len(self.values)


class Recorder:
    """Wraps an objective for a minimiser: negates, records, reports, and remembers the best."""

    def __init__(self, function: Function, bounds: Floats, verbose: int, label: str) -> None:
        self.function, self.bounds = function, bounds
        self.verbose, self.label = verbose, label
        self.thetas: list[Floats] = []
        self.values: list[float] = []
        self.gradient = np.empty(0)  # at the best of them
        self.started = time.perf_counter()

    def __call__(self, theta: Floats, eval_gradient: bool = True) -> Any:
        """Return what is to be minimised, and its gradient."""
        value, gradient = self.function(theta)
        if not self.values or value > max(self.values):
            self.gradient = gradient
        self.thetas.append(np.array(theta))
        self.values.append(value)
        if self.verbose:
            seconds = time.perf_counter() - self.started
            best = max(self.values)
            text = f"{self.label}evaluation {len(self.values)}: {value:.4f} (best {best:.4f})"
            sys.stderr.write(f"mercer: {text}, {seconds:.1f} s\n")
        return (-value, -gradient) if eval_gradient else -value

    def optimum(self, status: str, message: str, iterations: int | None = None) -> Optimum:
        """Return the best point so far."""
        best = int(np.argmax(self.values))
        iterations = len(self.values) if iterations is None else iterations
        theta, value = self.thetas[best], self.values[best]
        inside = (theta > self.bounds[:, 0]) & (theta < self.bounds[:, 1])
        slope = float(np.max(np.abs(self.gradient[inside]), initial=0.0))
        return Optimum(theta, value, status, message, self.thetas, self.values, iterations, slope)
