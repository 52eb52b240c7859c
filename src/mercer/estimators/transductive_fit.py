"""Labels and hyperparameters of a transductive classifier, in turn (BKM 3.6)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer import means
from mercer.errors import ConvergenceWarning, UndeterminedWarning, warn
from mercer.estimators.class_search import search_classes
from mercer.estimators.preparation import naming_the_model
from mercer.estimators.search import warn_of_jitter
from mercer.estimators.starting import warmed
from mercer.estimators.transductive_rows import PartRows
from mercer.evidence import LatentData, LatentObjective, Optimum, warn_of_search
from mercer.evidence.defaults import default_starts
from mercer.inference import transductive
from mercer.inference.transductive import ANNEALED, HARD, Solution, TransductiveProblem
from mercer.kernels import Scaled
from mercer.likelihoods import Softmax
from mercer.posterior import Posterior

__all__ = ["Transduction", "transduce"]

Codes = NDArray[np.intp]

# A class is lost if the rows without a label have so small a part of those that are expected by the
# shares of the labels, if these are so many.
_EXPECTED, _FEW = 5, 0.05


class Transduction(NamedTuple):
    """A model, the labels of all rows, and how they were come by.

    model : kernel, likelihood and mean
    posterior : of the latent functions
    solution : the engine's
    optimum : of the last search for hyperparameters
    n_sweeps : how often hyperparameters were chosen with the labels of all rows held
    """

    model: tuple[Any, Any, Any]
    posterior: Posterior
    solution: Solution
    optimum: Optimum
    n_sweeps: int


def transduce(
    estimator: Any, classifier: Any, rows: PartRows, columns: list[str] | None
) -> Transduction:
    """Fit: hyperparameters by the rows with labels, then labels and hyperparameters in turn.

    Parameters
    ----------
    estimator : TransductiveGPClassifier
    classifier : GPClassifier
        With the same options, by which hyperparameters are searched.
    rows : PartRows
    columns : names of the inputs' columns, for warnings
    """
    known = rows.codes >= 0
    objective = _begun(estimator, rows, known)
    (optimum,) = search_classes(classifier, [objective])
    found = _labelled(estimator, rows, objective, optimum, None)
    once = clone(classifier).set_params(n_restarts=0)
    settled = bool(np.all(known)) or optimum.status == "fixed"
    while not settled and optimum.status != "interrupted" and found.n_sweeps < estimator.n_sweeps:
        held = found.solution.labels
        objective = _objective(rows, found.model, np.ones(len(known), dtype=bool), held)
        (optimum,) = search_classes(once, [objective])
        found = _labelled(estimator, rows, objective, optimum, found)
        settled = np.array_equal(found.solution.labels, held)
    with naming_the_model(objective):
        if optimum.status != "fixed":
            warn_of_search(objective, optimum, columns)
    _warn(found.solution)
    _warn_of_lost_classes(rows, found.solution.labels)
    return found


def _begun(estimator: Any, rows: PartRows, known: NDArray[np.bool_]) -> LatentObjective:
    """Return the objective of the rows with labels, at its start."""
    kernel, likelihood = rows.begun.kernel, rows.begun.likelihood
    warm = estimator.warm_start and getattr(estimator, "_kind", None) == rows.kind
    if warm:
        kernel = warmed(kernel, estimator.kernel_)
        likelihood = warmed(likelihood, estimator.likelihood_)
    model = kernel, likelihood, means.from_spec(estimator.mean)
    objective = _objective(rows, model, known, rows.codes)
    default = rows.begun.kernel
    searched = estimator.optimizer is not None and not warm
    if estimator.kernel is None and searched and isinstance(default, Scaled):
        objective.begin_at_best(default_starts(default))
    return objective


def _objective(
    rows: PartRows, model: tuple[Any, Any, Any], which: NDArray[np.bool_], codes: Codes
) -> LatentObjective:
    """Return the objective of some rows with these labels, from a model on."""
    likelihood, data = model[1], rows.begun.data
    codes = codes[which]
    if isinstance(likelihood, Softmax):
        y = likelihood.one_hot(codes)
    else:
        y = np.where(codes > 0, 1.0, -1.0)
    weights = None if data.weights is None else data.weights[which]
    own = LatentData(data.X[which], y, weights)
    return LatentObjective(*model, own, "laplace", rows.begun.bounds)


def _labelled(
    estimator: Any,
    rows: PartRows,
    objective: LatentObjective,
    optimum: Optimum,
    last: Transduction | None,
) -> Transduction:
    """Find the labels at the end of a search."""
    model = objective.unpack(optimum.theta)
    kernel, likelihood, mean = model
    data = rows.begun.data
    outputs = likelihood.n_classes if isinstance(likelihood, Softmax) else 1
    problem = TransductiveProblem(
        kernel, data.X, rows.codes, likelihood, mean(data.X, outputs), data.weights
    )
    with naming_the_model(objective):
        posterior, solution = transductive.posterior(
            problem,
            mean,
            estimator.method,
            temperatures=HARD if estimator.labels == "hard" else ANNEALED,
            start=None if last is None else last.solution.labels,
        )
    return Transduction(
        model, posterior, solution, optimum, 0 if last is None else last.n_sweeps + 1
    )


def _warn_of_lost_classes(rows: PartRows, labels: Codes) -> None:
    """Warn of classes that next to no row was given though several were to be expected."""
    known = rows.codes >= 0
    if 2 * np.sum(known) > len(known):  # new rows beside old ones may well be of one class
        return
    shares = np.bincount(rows.codes[known], minlength=len(rows.classes)) / np.sum(known)
    given = np.bincount(labels[~known], minlength=len(rows.classes))
    expected = shares * np.sum(~known)
    lost = (expected >= _EXPECTED) & (given < _FEW * expected)
    if np.any(lost):
        names = " or ".join(map(str, rows.classes[lost]))
        warn(
            f"hardly any row without a label was given the class {names}: if there should be some, "
            "the labels that were found have spread too far, and neither they nor their "
            "probabilities are to be relied on. Give more labels, or what you know as a kernel of "
            "short length scale with optimizer=None, or fit GPClassifier to the rows with labels",
            UndeterminedWarning,
        )


def _warn(solution: Solution) -> None:
    if solution.status == "stopped":
        warn(
            "the search for the missing labels stopped before it had settled; take them with care, "
            "and try a kernel of less variance",
            ConvergenceWarning,
        )
    warn_of_jitter(solution.jitter)
