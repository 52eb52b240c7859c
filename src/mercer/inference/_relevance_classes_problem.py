"""Labels of an expansion whose coefficients have precisions of their own, and a solution.

Not an engine: `relevance_classes` is, and has the model and the notation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._columns import Columns
from mercer.inference._relevance_problem import Hyperprior, check_rows
from mercer.likelihoods import Likelihood, Logistic, SoftLabels

__all__ = ["ClassesProblem", "MultinomialProblem", "MultinomialRelevance"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class ClassesProblem:
    """Labels with ln p(y_i | t_i) to the power w_i, t = m + Phi theta, theta_j ~ N(0, 1/s_j).

    columns : Phi, (n, M)
    y : (n,) labels -1 and 1, both of them; for another likelihood what it takes
    mean : (n,) m
    weights : (n,) powers of the likelihood, at least 0; None stands for ones. Class weights are
        weights of the rows of a class.
    hyperprior : of the precisions s_j
    likelihood : log-concave, with two derivatives and no noise to be added; `Logistic` by default
    always : columns that stay in the model, whatever the evidence says
    """

    columns: Columns
    y: Floats
    mean: Floats
    weights: Floats | None
    hyperprior: Hyperprior
    likelihood: Likelihood = field(default_factory=Logistic)
    always: Sequence[int] = ()

    def __post_init__(self) -> None:
        shape = (self.columns.n,)
        check_rows(self.columns, self.weights, self.always, shape, y=self.y, mean=self.mean)
        own = self.likelihood
        lacking = own.missing("derivatives")
        if lacking or not (own.is_log_concave and own.has_curvature) or own.adds_noise:
            why = "has no derivatives" if lacking else "is not log-concave with a curvature"
            if own.adds_noise:
                why = "is of numbers with noise, for which `relevance` is the engine"
            raise ValueError(
                "a likelihood is wanted that is log-concave and twice differentiable, Logistic, "
                f"Probit or Poisson, say; {own!r} {why}"
            )
        if not own.is_of_labels or isinstance(own, SoftLabels):
            return
        y = self.y if self.weights is None else self.y[np.asarray(self.weights) > 0]
        if not np.all(np.abs(self.y) == 1.0):
            raise ValueError(f"labels must be -1 and 1, got {np.unique(self.y)[:5]}")
        if np.all(y == y[0]):
            raise ValueError(
                f"labels of both classes are wanted, all rows that have a weight have {y[0]:g}"
            )


@dataclass(frozen=True)
class MultinomialProblem:
    """Labels of P classes with the softmax of F = m + Phi theta, theta_jc ~ N(0, 1/s_j).

    columns : Phi, (n, M)
    Y : (n, P) a distribution over the classes for each row, a one for the class that is known
    mean : (n, P) m
    weights, hyperprior, always : as of `ClassesProblem`; a function has one precision for all
        classes
    """

    columns: Columns
    Y: Floats
    mean: Floats
    weights: Floats | None
    hyperprior: Hyperprior
    always: Sequence[int] = ()

    def __post_init__(self) -> None:
        n = self.columns.n
        if np.ndim(self.Y) != 2 or len(self.Y) != n or np.shape(self.Y)[1] < 2:
            raise ValueError(
                f"Y must have a row for each of the {n} rows, and a column for each of at least "
                f"two classes, got shape {np.shape(self.Y)}"
            )
        if np.any(~(self.Y >= 0)) or not np.allclose(np.sum(self.Y, axis=1), 1.0, 0.0, 1e-8):
            raise ValueError("each row of Y must be a distribution: not negative, with sum 1")
        shape = np.shape(self.Y)
        check_rows(self.columns, self.weights, self.always, shape, Y=self.Y, mean=self.mean)
        some = self.Y if self.weights is None else self.Y[np.asarray(self.weights) > 0]
        if np.any(np.all(some == 1.0, axis=0)):
            raise ValueError("labels of two classes at least are wanted, all rows have the same")


class MultinomialRelevance(NamedTuple):
    """A model of few functions for P classes, with the posterior of their coefficients.

    indices : (k,) the functions in the model, ascending, at least one
    mean : (k, P) the mode; its rows have sum 0
    factor : (kP, kP) upper triangular R; the posterior covariance is Xi = (R'R)^-1, in which
        coefficient j of class c is number c k + j
    precisions : (k,) s, one for all classes
    latent : (n, P) m + Phi mean
    log_evidence : Laplace's
    history : penalised evidence after each step; it never decreases
    status : "converged", "stopped" after `max_iter`, or "interrupted"
    n_iterations : steps that were made
    objective : the last of the history
    """

    indices: Indices
    mean: Floats
    factor: Floats
    precisions: Floats
    latent: Floats
    log_evidence: float
    history: Floats
    status: str
    n_iterations: int
    objective: float
