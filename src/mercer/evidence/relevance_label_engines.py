"""Relevance vector machines for labels, as a search for their kernels takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.relevance_engines import Machine, one_by_one
from mercer.inference._columns import ArrayColumns, Columns
from mercer.inference._relevance_adjoint import laplace_adjoints
from mercer.inference.relevance import Hyperprior
from mercer.inference.relevance_classes import (
    ClassesProblem,
    MultinomialProblem,
    multinomial,
    solve,
)
from mercer.likelihoods import Likelihood

__all__ = ["Classes", "Labels"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Labels:
    """Columns of labels -1 and 1, each with a machine of its own.

    Y, mean : (n, P) labels, and the part of the latent functions that is fixed
    weights : (n,) powers of the likelihood, or None
    hyperprior : of the precisions
    likelihood : of the labels
    n_always : how many of the last functions never leave the model
    algorithm : by which the last of the fits is made
    max_steps : of an algorithm
    """

    Y: Floats
    mean: Floats
    weights: Floats | None
    hyperprior: Hyperprior
    likelihood: Likelihood
    n_always: int = 0
    algorithm: str = "fast"
    max_steps: int | None = None

    def _problem(self, columns: Columns, p: int, always: Sequence[int]) -> ClassesProblem:
        return ClassesProblem(
            columns,
            np.ascontiguousarray(self.Y[:, p]),
            np.ascontiguousarray(self.mean[:, p]),
            self.weights,
            self.hyperprior,
            self.likelihood,
            always,
        )

    def solve(
        self, columns: Columns, start: Sequence[Machine] | None, tol: float, final: bool = False
    ) -> list[Machine]:
        """Return models of all columns, from a start or without; `final` by the algorithm asked."""
        always = range(columns.size - self.n_always, columns.size)

        def one(p: int, quick: bool) -> Machine:
            algorithm = self.algorithm if final and not quick else "fast"
            begun = start[p].fit if start is not None and algorithm == "fast" else None
            steps = 1 if quick else self.max_steps
            problem = self._problem(columns, p, always)
            return Machine(solve(problem, algorithm, tol=tol, max_iter=steps, start=begun))

        return one_by_one(self.Y.shape[1], one)

    def held(
        self, Phi: Floats, indices: Indices, machines: Sequence[Machine]
    ) -> tuple[float, Floats, list[Machine]] | None:
        """Return the objective with functions and precisions held; see `Machines`."""
        total, slopes = 0.0, np.zeros(Phi.shape)
        for p, machine in enumerate(machines):
            own = np.searchsorted(indices, machine.fit.indices)
            problem = self._problem(ArrayColumns(Phi[:, own]), p, ())
            found = laplace_adjoints(problem, machine.fit._replace(indices=np.arange(len(own))))
            if found is None:
                return None
            total += found[0]
            slopes[:, own] += found[1]
        return total, slopes, list(machines)


@dataclass(frozen=True)
class Classes:
    """Labels of P classes, with one machine for all of them.

    Y, mean : (n, P) distributions over the classes, and the fixed part of the latent functions
    weights, hyperprior, n_always, max_steps : as of `Labels`
    """

    Y: Floats
    mean: Floats
    weights: Floats | None
    hyperprior: Hyperprior
    n_always: int = 0
    max_steps: int | None = None

    def _problem(self, columns: Columns, always: Sequence[int]) -> MultinomialProblem:
        return MultinomialProblem(columns, self.Y, self.mean, self.weights, self.hyperprior, always)

    def solve(
        self, columns: Columns, start: Sequence[Machine] | None, tol: float, final: bool = False
    ) -> list[Machine]:
        """Return the model of all classes, from a start or without; `final` changes nothing.

        There is one algorithm for them.
        """
        always = range(columns.size - self.n_always, columns.size)
        begun = None if start is None else start[0].fit
        problem = self._problem(columns, always)
        return [Machine(multinomial(problem, tol=tol, max_iter=self.max_steps, start=begun))]

    def held(
        self, Phi: Floats, indices: Indices, machines: Sequence[Machine]
    ) -> tuple[float, Floats, list[Machine]] | None:
        """Return the objective with functions and precisions held; see `Machines`."""
        fit = machines[0].fit._replace(indices=np.arange(len(indices)))
        found = laplace_adjoints(self._problem(ArrayColumns(Phi), ()), fit)
        return None if found is None else (*found, list(machines))
