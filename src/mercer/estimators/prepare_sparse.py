"""From rows and a user's model to the objective of a sparse fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.inducing import (
    Different,
    block_numbers,
    chosen_rows,
    different_rows,
    given_inputs,
    inducing_inputs,
    unless_ones,
    wanted_number,
)
from mercer.estimators.memory import require_memory
from mercer.estimators.options import as_generator
from mercer.estimators.prepare_exact import Begun, begin, exact_objective
from mercer.estimators.rows import Rows
from mercer.evidence import Data, Objective, Optimum, maximise
from mercer.evidence.mended import mended
from mercer.evidence.optimum import Report, tell
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.evidence.sparse_latent import SparseLatentObjective
from mercer.inference._approximations import Approximation, approximation
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian
from mercer.means import Mean

__all__ = [
    "PreparedSparse",
    "against_blocks",
    "by_sample",
    "from_sample",
    "kind_of",
    "prepare_sparse",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rows of the exact fit that has the hyperparameters of "auto".
_SEARCHED = 2000
# Other sparse searches start from an exact fit to r rows, r^3 = 4 n m^2 but from 500 to 2000, in so
# many iterations: as many rows as make its evaluations take as long as theirs. Columns that matter
# little are not found among few rows, nor by the search that starts from there.
_SAMPLE, _ITERATIONS, _AS_LONG = 500, 50, 4.0


class PreparedSparse(NamedTuple):
    """What a sparse fit begins with.

    objective : what it maximises, at its start; exact, of a subset of the rows, for "sod", and of
        all that are different, if they are few, for "auto"
    whole : the sparse one of all rows, the same one where that is not exact; None without
        Gaussian noise, and before `after`
    undetermined : why the targets say nothing about it, None if they do
    multioutput : whether the targets came in columns
    labels : (n,) what the blocks of the rows are called, or None
    after : what makes the sparse objective of all rows, and its labels, of the hyperparameters
        that a search on a sample of them has found; None where the search is on all rows
    """

    objective: Objective | SparseObjective | SparseLatentObjective
    whole: SparseObjective | None
    undetermined: str | None
    multioutput: bool
    labels: NDArray[Any] | None
    after: Callable[[Floats], tuple[SparseObjective, NDArray[Any] | None]] | None = None

    def completed(self, optimum: Optimum) -> tuple[PreparedSparse, Optimum]:
        """Return the same and the end of its search, on all rows."""
        if self.after is None:
            return self, optimum
        objective, labels = self.after(optimum.theta)
        made = self._replace(objective=objective, whole=objective, labels=labels, after=None)
        return made, replace(optimum, theta=objective.theta, jitter=None)


# Those whose training rows others have.
_TRAINED_AS = {"nystrom": "dtc", "sod": "vfe"}


def kind_of(estimator: Any) -> Approximation:
    """Return the approximation that an estimator asks for, under Gaussian noise.

    "nystrom" trains as "dtc"; the bounds on the evidence are all that "sod" has of "vfe".
    """
    name = estimator.approximation
    if name == "auto":
        name = "pic" if against_blocks(estimator) is None else "vfe"
    return approximation(_TRAINED_AS.get(name, name), estimator.power, estimator.joint)


def against_blocks(estimator: Any) -> str | None:
    """Return what is asked for that goes without the blocks of "pic", None if nothing is."""
    if estimator.learn_inducing:
        return "learn_inducing=True"
    if estimator.augment:
        return "augment=True"
    if estimator.joint != "exact":
        return f"joint={estimator.joint!r}"
    if isinstance(estimator.inducing, str) and estimator.inducing == "query":
        return "inducing='query'"
    numeric = getattr(estimator.kernel, "is_numeric", True)
    return None if numeric else "inputs that are not numbers"


def prepare_sparse(
    estimator: Any,
    kernel: Kernel | None,
    likelihood: Gaussian | None,
    mean: Mean,
    rows: Rows,
    labels: NDArray[Any] | None = None,
    query: Any = None,
    report: Report | None = None,
) -> PreparedSparse:
    """Return the objective of a fit by a `SparseGPRegressor`, at its start.

    Hyperparameters start from an exact fit to a sample of the rows, which takes a moment; with
    "auto" and blocks they are those of a larger one. Inducing inputs and blocks are chosen under
    these. `report` is told of each stage.
    """
    rng, kind = as_generator(estimator.random_state), kind_of(estimator)
    begun = begin(estimator, kernel, likelihood, mean, rows)
    if estimator.approximation == "sod":
        tell(report, "choosing rows")
        return _subset_of_data(estimator, begun, kind, rows.multioutput, rng)
    given = given_inputs(estimator, begun, query)  # before a long fit rather than after it
    if estimator.approximation == "auto" and kind.training == "blocks":
        return _by_sample(estimator, begun, kind, rows.multioutput, rng, labels, report)
    if begun.searched and not begun.warm:
        m = wanted_number(estimator) if given is None else len(given)
        begun = from_sample(begun, m, rng, report)
    objective, labels = _of_all(estimator, begun, kind, rng, labels, query, report)
    return PreparedSparse(objective, objective, begun.undetermined, rows.multioutput, labels)


def _of_all(
    estimator: Any,
    begun: Begun,
    kind: Approximation,
    rng: np.random.Generator,
    labels: NDArray[Any] | None,
    query: Any = None,
    report: Report | None = None,
) -> tuple[SparseObjective, NDArray[Any] | None]:
    """Return the objective of all rows, and what their blocks are called, in its order."""
    groups = None
    if kind.training == "blocks":
        if labels is None:
            tell(report, f"cutting {len(begun.data.Y)} rows into blocks")
            labels = block_numbers(estimator, begun, rng)
        order = np.argsort(labels, kind="stable")  # the rows of a block stand together
        labels = labels[order]
        groups = np.unique(labels, return_inverse=True)[1].astype(np.intp)
        weights = None if begun.data.weights is None else begun.data.weights[order]
        begun = _of_rows(begun, order, weights)
    last = estimator.inducing_ if begun.warm else None
    tell(report, "choosing inducing inputs")
    points, movable = inducing_inputs(estimator, begun, query, rng, last)
    moved = estimator.learn_inducing
    if moved is None:
        by_itself = estimator.approximation == "auto" and kind.training == "blocks"
        # FITC's evidence finds places that suit its rows alone: a new point that sees all rows
        # would be far too sure there.
        blind = estimator.augment and kind.training == "independent" and kind.power == 1.0
        moved = not by_itself and not blind
    learned = moved and begun.searched and begun.kernel.is_numeric and movable
    inducing = InducingInputs(points, begun.widths if learned else None)
    return _objective(begun, inducing, kind, groups), labels


def _by_sample(
    estimator: Any,
    begun: Begun,
    kind: Approximation,
    multioutput: bool,
    rng: np.random.Generator,
    labels: NDArray[Any] | None,
    report: Report | None,
) -> PreparedSparse:
    """Return the objective of an exact fit to a sample, whose hyperparameters all rows take.

    Where the sample is all there is, and it was not said how many inducing inputs to have, exact
    inference is at hand.
    """
    rows = different_rows(begun, targets=True)
    sample = _sample(begun, rows, _SEARCHED, rng)
    objective = exact_objective(sample)
    few = len(rows.first) <= _SEARCHED
    free = estimator.n_inducing is None and isinstance(estimator.inducing, str)
    if few and free and labels is None:
        points = InducingInputs(sample.data.X)
        whole = _objective(begun, points, approximation("vfe"))
        return PreparedSparse(objective, whole, begun.undetermined, multioutput, None)

    if begun.searched and begun.undetermined is None:
        tell(report, f"searching {len(sample.data.Y)} of {len(begun.data.Y)} rows")

    def after(theta: Floats) -> tuple[SparseObjective, NDArray[Any] | None]:
        found = _with(begun, objective, theta)
        whole, names = _of_all(estimator, found, kind, rng, labels, report=report)
        if begun.searched and begun.undetermined is None:
            whole = mended(whole, begun.kernel, begun.variance, rng, report)
        return whole, names

    return PreparedSparse(objective, None, begun.undetermined, multioutput, labels, after)


def _objective(
    begun: Begun, inducing: InducingInputs, kind: Approximation, groups: Indices | None = None
) -> SparseObjective:
    bounds = np.concatenate([begun.bounds, inducing.bounds])
    model = begun.kernel, begun.likelihood, begun.mean
    return SparseObjective(*model, begun.data, inducing, kind, groups, bounds)


def _subset_of_data(
    estimator: Any,
    begun: Begun,
    kind: Approximation,
    multioutput: bool,
    rng: np.random.Generator,
) -> PreparedSparse:
    """Return the objective of an exact fit to some of the rows (UV 3)."""
    require_memory(min(wanted_number(estimator), len(begun.data.Y)))
    chosen, weights = chosen_rows(estimator, begun, rng)
    whole = _objective(begun, InducingInputs(begun.data.X[chosen]), kind)
    exact = exact_objective(_of_rows(begun, chosen, weights))
    return PreparedSparse(exact, whole, begun.undetermined, multioutput, None)


def from_sample(begun: Begun, m: int, rng: np.random.Generator, report: Report | None) -> Begun:
    """Return the model with hyperparameters of an exact fit to a sample of the rows.

    `m` is the number of inducing inputs that the model is to have.
    """
    begun, interrupted = by_sample(begun, m, rng, report)
    if interrupted:
        raise KeyboardInterrupt  # there is no model of all rows yet that could be kept
    return begun


def by_sample(
    begun: Begun, m: int, rng: np.random.Generator, report: Report | None
) -> tuple[Begun, bool]:
    """Return the same as `from_sample`, and whether Ctrl-C has ended that."""
    rows = different_rows(begun, targets=True)
    size = np.clip(np.cbrt(_AS_LONG * len(rows.first) * m**2), _SAMPLE, _SEARCHED)
    sample = _sample(begun, rows, int(size), rng)
    objective = exact_objective(sample, again=False)
    tell(report, f"starting from an exact fit to {len(sample.data.Y)} of {len(begun.data.Y)} rows")
    optimum = maximise(objective, max_iter=_ITERATIONS)
    return _with(begun, objective, optimum.theta), optimum.status == "interrupted"


def _sample(begun: Begun, rows: Different, size: int, rng: np.random.Generator) -> Begun:
    """Return the model on so many of the different rows."""
    kept = np.arange(len(rows.first))
    weights = rows.weights
    if len(kept) > size:
        # A row that repeats is drawn the more often, and then counts as any other: with its
        # repeats it would say more of small noise than it does among all rows.
        shares = weights / np.sum(weights)
        kept = np.sort(rng.choice(kept, size, replace=False, p=shares))
        weights = np.full(len(weights), min(1.0, np.mean(weights)))
    return _of_rows(begun, rows.first[kept], unless_ones(weights[kept]))


def _with(begun: Begun, objective: Objective, theta: Floats) -> Begun:
    """Return the model with hyperparameters that were found on some of the rows."""
    found, noise = objective.unpack(theta)
    likelihood = begun.likelihood
    if likelihood.theta.size:
        likelihood = likelihood.with_theta(noise.theta)
    return begun._replace(kernel=found, likelihood=likelihood)


def _of_rows(begun: Begun, rows: Indices, weights: Any) -> Begun:
    """Return the same model on some of the rows, or in another order, with these weights."""
    data, likelihood = begun.data, begun.likelihood
    noise = likelihood.noise
    if not likelihood.theta.size and noise is not None and np.ndim(noise) == 1:
        likelihood = Gaussian(np.asarray(noise)[rows], likelihood.new_variance)
    chosen = Data(data.X[rows], data.Y[rows], weights, data.scale)
    return begun._replace(data=chosen, likelihood=likelihood)
