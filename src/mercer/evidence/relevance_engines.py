"""Relevance vector machines for several columns of targets, which share their functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning
from mercer.inference._columns import ArrayColumns, Columns
from mercer.inference._relevance_held import held
from mercer.inference.relevance import Hyperprior, Relevance, RelevanceProblem, robust, solve

__all__ = ["Machine", "Machines", "Numbers", "one_by_one"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Machine(NamedTuple):
    """A model of one column of targets.

    fit : its functions, with `indices`, `objective` and `status`
    scale : the variance of noise; what the rows' variances are about after a robust fit
    outliers : (n,) scale over a row's variance after a robust fit; None after others
    """

    fit: Any
    scale: float = 0.0
    outliers: Floats | None = None


class Machines(Protocol):
    """What a search for parameters of the functions asks of an engine, and its targets."""

    def solve(
        self, columns: Columns, start: Sequence[Machine] | None, tol: float, final: bool = False
    ) -> list[Machine]:
        """Return models of all targets, from a start or without; `final` by the algorithm asked."""

    def held(
        self, Phi: Floats, indices: Indices, machines: Sequence[Machine]
    ) -> tuple[float, Floats, list[Machine]] | None:
        """Return the objective with the functions of the models held, Phi (n, k) their values.

        With it come its derivative in Phi, and models to start from. `indices` (k,) says which
        functions there are, those of all models together.
        """


def one_by_one(count: int, fit: Callable[[int, bool], Machine]) -> list[Machine]:
    """Return the machine of each column of targets.

    `fit` takes the number of a column, and whether it is to be quick about it: after Ctrl-C the
    columns that are left have what they begin with, and count as interrupted too.
    """
    machines: list[Machine] = []
    for p in range(count):
        if not machines or machines[-1].fit.status != "interrupted":
            machines.append(fit(p, False))
            continue
        with warnings.catch_warnings():  # of steps that are too few
            warnings.simplefilter("ignore", ConvergenceWarning)
            begun = fit(p, True)
        machines.append(begun._replace(fit=begun.fit._replace(status="interrupted")))
    return machines


@dataclass(frozen=True)
class Numbers:
    """Columns of numbers, each with a machine of its own.

    Y, mean : (n, P) targets, and the part of them that is fixed
    weights : (n,) powers of the likelihood, or None
    hyperprior : of the precisions
    n_always : how many of the last functions never leave the model
    algorithm : by which the last of the fits is made
    noise : (P,) variances that are known; None where they are learned
    shape, rates : of the Gamma density of an inverse variance, the rate (P,) or one for all
    heavy : whether rows have variances of their own
    degrees : of freedom of these; None for a flat density
    max_steps : of an algorithm
    """

    Y: Floats
    mean: Floats
    weights: Floats | None
    hyperprior: Hyperprior
    n_always: int = 0
    algorithm: str = "fast"
    noise: Floats | None = None
    shape: float = 0.0
    rates: Floats | float = 0.0
    heavy: bool = False
    degrees: float | None = 4.0
    max_steps: int | None = None

    def problem(self, columns: Columns, p: int, always: Sequence[int]) -> RelevanceProblem:
        """Return the problem of one column of targets."""
        return RelevanceProblem(
            columns=columns,
            y=np.ascontiguousarray(self.Y[:, p]),
            mean=np.ascontiguousarray(self.mean[:, p]),
            weights=self.weights,
            hyperprior=self.hyperprior,
            noise=None if self.noise is None else float(self.noise[p]),
            noise_prior=(self.shape, float(np.broadcast_to(self.rates, self.Y.shape[1])[p])),
            always=always,
        )

    def solve(
        self, columns: Columns, start: Sequence[Machine] | None, tol: float, final: bool = False
    ) -> list[Machine]:
        """Return models of all targets, from a start or without; `final` by the algorithm asked."""
        always = range(columns.size - self.n_always, columns.size)

        def one(p: int, quick: bool) -> Machine:
            problem = self.problem(columns, p, always)
            begun = None if start is None else start[p].fit
            options: dict[str, Any] = {"tol": tol, "start": begun}
            options["max_iter"] = 1 if quick else self.max_steps
            if self.heavy:
                return Machine(*robust(problem, degrees=self.degrees, **options))
            algorithm = self.algorithm if final and not quick else "fast"
            if algorithm != "fast":  # which would leave out no function that a start has not
                options["start"] = None
            fit = solve(problem, algorithm, **options)
            return Machine(fit, float(np.mean(fit.noise)))

        return one_by_one(self.Y.shape[1], one)

    def held(
        self, Phi: Floats, indices: Indices, machines: Sequence[Machine]
    ) -> tuple[float, Floats, list[Machine]] | None:
        """Return the objective with the functions of the models held; see `Machines`."""
        total, slopes, moved = 0.0, np.zeros(Phi.shape), []
        for p, machine in enumerate(machines):
            fit: Relevance = machine.fit
            own = np.searchsorted(indices, fit.indices)
            problem = self.problem(ArrayColumns(Phi[:, own]), p, ())
            v = float(np.mean(fit.noise))
            if self.heavy:  # whose rows keep their variances for the while
                weights = (1.0 if self.weights is None else self.weights) / fit.noise
                problem, v = replace(problem, weights=np.asarray(weights), noise=1.0), 1.0
            found = held(problem, fit.precisions, v)
            if found is None:
                return None
            total += found.value
            slopes[:, own] += found.columns
            noise = fit.noise if self.heavy else found.noise
            moved.append(
                machine._replace(fit=fit._replace(precisions=found.precisions, noise=noise))
            )
        return total, slopes, moved
