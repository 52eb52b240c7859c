"""The two methods of `transductive` on one problem, each from where it is told to begin.

Not an engine of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._newton import Point
from mercer.inference._partly_labelled import minus_entropy
from mercer.inference._transduction import TransductiveProblem, functions_of

__all__ = ["Ascent", "End"]

Floats = NDArray[np.float64]

# How little the label distributions change when they are done with.
_SETTLED = 1e-9


class End(NamedTuple):
    """Where a method has come to."""

    at: Point
    held: Floats
    value: float
    temperatures: list[float]
    values: list[float]
    done: bool


class Ascent:
    """The two methods on one problem."""

    def __init__(self, problem: TransductiveProblem) -> None:
        self.problem, self.known = problem, problem.known
        self.functions = functions_of(problem)
        self.given = np.eye(problem.n_classes)[np.maximum(problem.labels, 0)]
        self.weights = np.ones(len(problem.X)) if problem.weights is None else problem.weights

    def counts(self) -> dict[str, Any]:
        functions = self.functions
        names = ("n_iterations", "n_factorisations", "jitter")
        return {name: getattr(functions, name) for name in names}

    # --- labels -------------------------------------------------------------------------------

    def with_given(self, Q: Floats) -> Floats:
        """Return label distributions in which the labels that were given stand."""
        return np.where(self.known[:, None], self.given, Q)

    def expected(self, f: Floats, temperature: float) -> Floats:
        """Return the label distributions p(c | f)^(1/T), normalised; of T = 0 the best labels."""
        logs = self.functions.log_probabilities(f)
        if temperature == 0.0:
            return self.with_given(np.eye(logs.shape[1])[np.argmax(logs, axis=1)])
        Q = np.exp((logs - np.max(logs, axis=1, keepdims=True)) / temperature)
        return self.with_given(Q / np.sum(Q, axis=1, keepdims=True))

    def entropy(self, Q: Floats) -> float:
        """Return sum_i w_i H(Q_i)."""
        with np.errstate(divide="ignore"):
            return -float(self.weights @ minus_entropy(np.log(Q)))

    # --- latent functions ---------------------------------------------------------------------

    def supervised(self) -> Point:
        """Return the mode given the labels there are."""
        n, P = self.problem.mean.shape
        zero = np.zeros(n) if P == 1 else np.zeros((n, P), order="F")
        return self.functions.mode(self.given, np.where(self.known, self.weights, 0.0), zero)[0]

    def em(self, at: Point, Q: Floats | None, temperatures: Sequence[float], max_iter: int) -> End:
        """Take steps at each temperature, from latent values, or at first from labels Q."""
        cooling: list[float] = []
        values: list[float] = []
        done = False
        for T in temperatures:
            if Q is None and T > 0:
                at, _ = self.functions.partly(self.given, T, at.alpha)
            new = self.expected(at.f, T) if Q is None else Q
            Q, settled = None, False
            for _ in range(max_iter):
                held = new
                at, done = self.functions.mode(held, self.problem.weights, at.alpha)
                cooling.append(T)
                values.append(at.value + T * self.entropy(held))
                new = self.expected(at.f, T)
                settled = bool(np.max(np.abs(new - held)) <= _SETTLED)
                if settled:
                    break
            done = done and settled
        return End(at, held, values[-1], cooling, values, done)

    def joint(self, start: Point) -> End:
        """Climb (BKM 61)."""
        at, done = self.functions.partly(self.given, None, start.alpha)
        values = [self.certainty(start), at.value]
        return End(at, self.expected(at.f, 1.0), at.value, [np.nan] * 2, values, done)

    def certainty(self, at: Point) -> float:
        """Return the objective of (BKM 61)."""
        logs = self.functions.log_probabilities(at.f)
        given = np.sum(np.where(self.given > 0, logs, 0.0), axis=1)
        rows = np.where(self.known, given, minus_entropy(logs))
        return float(self.weights @ rows) - 0.5 * at.square
