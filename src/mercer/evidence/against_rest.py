"""The evidence of several latent functions that share their kernel and likelihood.

One class against the rest each: the functions are independent under the prior and have labels of
their own, so that their log evidences add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.evidence.latent import LatentObjective
from mercer.inference import LatentProblem
from mercer.kernels import Kernel

__all__ = ["AgainstRest"]

Floats = NDArray[np.float64]


class AgainstRest(LatentObjective):
    """The sum over P functions of log p(y_p | theta), and log p(theta).

    A `LatentObjective` whose data have targets in columns, (n, P), each of a function of its own.
    All have the same kernel and likelihood; coefficients of a mean are a column for each. P times
    the time of one, and the memory of one.
    """

    def problems(self, parts: list[Any]) -> list[LatentProblem]:
        """Return the engine's problem of each function."""
        kernel, likelihood, mean = parts[:3]
        data, columns = self.data, self.data.Y.T
        prior = mean(data.X, len(columns))
        rest = data.weights, self.jitter
        return [
            LatentProblem(kernel, data.X, y, likelihood, m, *rest)
            for y, m in zip(columns, prior.T, strict=True)
        ]

    @property
    def _states(self) -> list[Any]:
        return [None] * self.data.Y.shape[1] if self.state is None else list(self.state)

    @contextmanager
    def _each_state(self) -> Iterator[list[Any]]:
        """Lend the states of all functions, which `_kept` would take one at a time."""
        states = self._states
        try:
            yield states
        finally:  # of an evaluation that failed too: they are where the next one starts
            self.state = states

    def _height(self, parts: list[Any]) -> float:
        total = 0.0
        with self._each_state() as states:
            for p, problem in enumerate(self.problems(parts)):
                solution = self._kept(self.engine.solve(problem, states[p]))
                states[p] = solution.state
                total += float(solution.log_evidence)
        return total

    def _slopes(self, parts: list[Any]) -> tuple[float, Floats]:
        total = 0.0
        kernel, likelihood = np.zeros(parts[0].theta.size), np.zeros(parts[1].theta.size)
        rows = np.empty(self.data.Y.shape)
        with self._each_state() as states:
            for p, problem in enumerate(self.problems(parts)):
                solution, adjoints = self.engine.evidence(problem, states[p])
                states[p] = self._kept(solution).state
                total += float(solution.log_evidence)
                pulled = parts[0].pullback(self.data.X, None, adjoints.K, inputs=False)
                kernel += adjoints.factor * pulled.theta
                if likelihood.size:
                    likelihood += adjoints.likelihood
                rows[:, p] = adjoints.mean
        return total, np.concatenate([kernel, likelihood, parts[2].pullback(self.data.X, rows)])

    def _jitter_for(self, theta: Floats) -> float:
        problems = [replace(each, jitter=None) for each in self.problems(self._with(theta))]
        solved = zip(problems, self._states, strict=True)
        return max(float(self.engine.solve(each, state).jitter) for each, state in solved)

    def under(self, kernel: Kernel, likelihood: Any, theta: ArrayLike) -> AgainstRest:
        """Return the objective of another kernel and likelihood, the mean as it is at theta."""
        mean = self.unpack(theta)[2]
        return AgainstRest(kernel, likelihood, mean, self.data, self.inference)
