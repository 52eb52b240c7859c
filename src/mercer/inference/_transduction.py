"""Rows of which some have labels, and their latent functions: one for two classes, or one a class.

What a step of `transductive` needs of the functions, in the same form for both: the most probable
latent values, given labels as distributions or with the entropy in their place, and the Gaussian
there. Each search goes on with the preconditioner of the one before. Not an engine of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from mercer.inference import _mode
from mercer.inference._coupled import CoupledSites
from mercer.inference._newton import Newton, Point
from mercer.inference._partly_labelled import (
    PartlyLabelled,
    PartlyLabelledSoftmax,
    SoftmaxSearch,
)
from mercer.inference._problem import LatentProblem
from mercer.inference._sites import factorise
from mercer.inference.softmax import SoftmaxProblem
from mercer.kernels import Kernel
from mercer.likelihoods import Likelihood, SoftLabels, Softmax
from mercer.likelihoods.labels import Binary

__all__ = ["Codes", "Functions", "TransductiveProblem", "functions_of"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

# How much of the objective rounding may take from a top, in units of 1 + its size.
_LOST = 1e-8


@dataclass(frozen=True)
class TransductiveProblem:
    """Classification of rows some of which have labels, in arrays.

    kernel : Kernel
    X : inputs, n rows
    labels : (n,) the number of each row's class from 0, and -1 where it has none
    likelihood : Logistic or Probit, of classes 0 and 1 as labels -1 and 1; or Softmax
    mean : (n, P) prior means of the latent functions: one for two classes, C for a softmax
    weights : (n,) powers of the likelihood, at least 0; None stands for ones
    jitter : what to add to the diagonal of K; None lets the first factorisation that fails decide
    """

    kernel: Kernel
    X: Floats
    labels: Codes
    likelihood: Binary | Softmax
    mean: Floats
    weights: Floats | None = None
    jitter: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.likelihood, (Binary, Softmax)):
            raise ValueError(
                f"likelihood must be Logistic(), Probit() or a Softmax, got {self.likelihood!r}"
            )
        n, C = len(self.X), self.n_classes
        labels = self.labels
        if np.shape(labels) != (n,) or labels.dtype.kind not in "iu":
            raise ValueError(f"labels must be {n} whole numbers, got {labels!r}")
        if np.any((labels < -1) | (labels >= C)):
            raise ValueError(
                f"labels must be the numbers of {C} classes, from 0, or -1 where there is none, "
                f"got {np.min(labels)} to {np.max(labels)}"
            )
        if not np.any(self.known):
            raise ValueError("at least one row must have a label, got none")
        outputs = C if isinstance(self.likelihood, Softmax) else 1
        if np.shape(self.mean) != (n, outputs):
            raise ValueError(f"mean must have shape ({n}, {outputs}), got {np.shape(self.mean)}")

    @property
    def n_classes(self) -> int:
        """C."""
        return self.likelihood.n_classes if isinstance(self.likelihood, Softmax) else 2

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a label, (n,)."""
        return np.asarray(self.labels >= 0)

    def gram(self) -> Floats:
        """Return the lower triangle of K, Fortran order, with `jitter` on its diagonal."""
        K = self.kernel.gram_lower(self.X)
        if self.jitter:
            K.reshape(-1, order="F")[:: len(K) + 1] += self.jitter
        return K

    def held(self, labels: Codes) -> LatentProblem | SoftmaxProblem:
        """Return the problem in which each row has the label given here."""
        rest = self.weights, self.jitter
        if isinstance(self.likelihood, Softmax):
            Y = self.likelihood.one_hot(labels)
            return SoftmaxProblem(self.kernel, self.X, Y, self.mean, *rest)
        y = np.where(labels > 0, 1.0, -1.0)
        return LatentProblem(self.kernel, self.X, y, self.likelihood, self.mean[:, 0], *rest)


def _higher(start: Point, at: Point, done: bool) -> tuple[Point, bool]:
    """Return where a climb has ended, and whether it is settled; its start, if it has not risen.

    Then it was rounding that fell, or that rose above 0, where no probability of labels is.
    """
    if start.value <= at.value <= at.rounding:
        return at, done
    return start, done and 0.0 <= start.value - at.value <= _LOST * (1.0 + abs(start.value))


class Functions(ABC):
    """The latent functions of a problem, and the counts of the searches for them.

    K : (n, n) the lower triangle of the Gram matrix; jitter that it needs is added in place
    """

    def __init__(self, problem: TransductiveProblem) -> None:
        self.problem = problem
        self.K = problem.gram()
        self.jitter = problem.jitter or 0.0
        self.n_iterations = self.n_factorisations = 0
        self._solver: Any = None

    def mode(self, Q: Floats, weights: Floats | None, alpha: Floats) -> tuple[Point, bool]:
        """Maximise sum_i w_i sum_c Q_ic log p(c | f_i) - alpha'K alpha/2, from an alpha.

        Returns where it ended, whose value is never less than at the start, and whether that is
        the top.
        """
        return self._climb(self._labelled(Q, weights), alpha)

    def partly(self, Q: Floats, temperature: float | None, alpha: Floats) -> tuple[Point, bool]:
        """Do the same with what stands for a label in the rows without one.

        That is minus the entropy if the temperature is None; see `_partly_labelled`.
        """
        return self._climb(self._partly_labelled(Q, temperature), alpha)

    def _climb(self, search: Any, alpha: Floats) -> tuple[Point, bool]:
        search.solver, self._solver = self._solver, None
        start = search.point(alpha)
        at, done = search.climb(start)
        # Without the rounding of many steps, and without what alpha has in the null space of K,
        # which is of no use and may be large: at the top alpha is g.
        at = search.point(search.slopes(at.f)[0] if done else at.alpha)
        self._solver = search.solver
        self._count(search)
        return _higher(start, at, done)

    def _count(self, search: Any) -> None:
        self.n_iterations += search.n_iterations
        self.n_factorisations += search.n_factorisations
        self.jitter += search.jitter - (self.problem.jitter or 0.0)

    @abstractmethod
    def _labelled(self, Q: Floats, weights: Floats | None) -> Newton:
        """Return the search of `mode`."""

    @abstractmethod
    def _partly_labelled(self, Q: Floats, temperature: float | None) -> Newton:
        """Return the search of `partly`."""

    @abstractmethod
    def log_probabilities(self, f: Floats) -> Floats:
        """Return log p(c | f_i), shape (n, C)."""

    @abstractmethod
    def factors(self, Q: Floats, at: Point) -> tuple[Any, Any]:
        """Return A and B of a `Posterior` with the curvature of these label distributions."""


class OneFunction(Functions):
    """One function for two classes."""

    def _with(self, y: Floats, likelihood: Likelihood, weights: Floats | None) -> LatentProblem:
        p = self.problem
        return LatentProblem(p.kernel, p.X, y, likelihood, p.mean[:, 0], weights, p.jitter)

    def _soft(self, Q: Floats, weights: Floats | None) -> LatentProblem:
        return self._with(Q[:, 1], SoftLabels(self._likelihood), weights)

    def _labelled(self, Q: Floats, weights: Floats | None) -> Newton:
        return _mode._Search(self._soft(Q, weights), self.K)

    def _partly_labelled(self, Q: Floats, temperature: float | None) -> Newton:
        y = np.where(self.problem.known, 2.0 * Q[:, 1] - 1.0, 0.0)
        likelihood = PartlyLabelled(self._likelihood, temperature)
        return _mode._Search(self._with(y, likelihood, self.problem.weights), self.K)

    def partly(self, Q: Floats, temperature: float | None, alpha: Floats) -> tuple[Point, bool]:
        """See `Functions`; points that are level but no maximum are left behind."""
        if temperature is not None:
            return super().partly(Q, temperature, alpha)
        self._solver = None
        search = self._partly_labelled(Q, None)
        assert isinstance(search, _mode._Search)
        start = search.point(alpha)
        at, _, done = search.settle(start)
        self._count(search)
        return _higher(start, at, done)

    @property
    def _likelihood(self) -> Binary:
        assert isinstance(self.problem.likelihood, Binary)
        return self.problem.likelihood

    def log_probabilities(self, f: Floats) -> Floats:
        """See `Functions`."""
        return np.column_stack([self._likelihood.log_density(label, f) for label in (-1.0, 1.0)])

    def factors(self, Q: Floats, at: Point) -> tuple[Any, Any]:
        """See `Functions`."""
        problem = self._soft(Q, self.problem.weights)
        curvature = np.maximum(-problem.derivatives(at.f)[1], 0.0)
        self._solver = None
        sites = factorise(self.K, curvature, self.problem.jitter)
        self.n_factorisations += 1
        self.jitter += sites.jitter
        return sites.factors()


class SeveralFunctions(Functions):
    """A function for each class, coupled by a softmax."""

    def _labelled(self, Q: Floats, weights: Floats | None) -> Newton:
        p, every = self.problem, np.ones(len(Q), dtype=bool)
        problem = PartlyLabelledSoftmax(p.kernel, p.X, Q, p.mean, weights, p.jitter, known=every)
        return SoftmaxSearch(problem, self.K)

    def _partly_labelled(self, Q: Floats, temperature: float | None) -> Newton:
        p = self.problem
        problem = PartlyLabelledSoftmax(
            *(p.kernel, p.X, Q, p.mean, p.weights, p.jitter),
            known=p.known,
            temperature=temperature,
        )
        return SoftmaxSearch(problem, self.K)

    def log_probabilities(self, f: Floats) -> Floats:
        """See `Functions`."""
        return np.asarray(log_softmax(f, axis=1))

    def factors(self, Q: Floats, at: Point) -> tuple[Any, Any]:
        """See `Functions`; the curvature of a softmax is the same for all labels."""
        p = self.problem
        self._solver = None
        pi = np.exp(self.log_probabilities(at.f))
        sites = CoupledSites(self.K, pi, p.weights, p.jitter, keep_factors=True)
        self.n_factorisations += pi.shape[1] + 1
        self.jitter += sites.jitter
        return sites.factors()


def functions_of(problem: TransductiveProblem) -> Functions:
    """Return the latent functions of a problem."""
    several = isinstance(problem.likelihood, Softmax)
    return SeveralFunctions(problem) if several else OneFunction(problem)
