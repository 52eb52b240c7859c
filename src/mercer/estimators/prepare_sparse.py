"""From rows and a user's model to the objective of a sparse fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.inducing import (
    block_numbers,
    chosen_rows,
    different_rows,
    inducing_inputs,
    unless_ones,
)
from mercer.estimators.memory import require_memory
from mercer.estimators.options import as_generator
from mercer.estimators.prepare_exact import Begun, begin, exact_objective, prepared_exact
from mercer.estimators.rows import Rows
from mercer.estimators.starting import Prepared
from mercer.evidence import Data, Objective, maximise
from mercer.evidence.guarded import Guarded
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.evidence.starts import Again
from mercer.inference._approximations import Approximation, approximation
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian
from mercer.means import Mean

__all__ = ["PreparedSparse", "kind_of", "prepare_sparse"]

Indices = NDArray[np.intp]

# Rows of the exact fit whose hyperparameters a sparse one starts from, and its iterations.
_SAMPLE, _ITERATIONS = 500, 50


class PreparedSparse(NamedTuple):
    """What a sparse fit begins with.

    objective : what it maximises, at its start; exact, of a subset of the rows, for "sod"
    whole : the sparse one of all rows; the same one, but for "sod"; None without Gaussian noise
    undetermined : why the targets say nothing about it, None if they do
    multioutput : whether the targets came in columns
    labels : (n,) what the blocks of the rows are called, or None
    again : where to search once more, given where the search has ended
    """

    objective: Guarded
    whole: SparseObjective | None
    undetermined: str | None
    multioutput: bool
    labels: NDArray[Any] | None
    again: Again | None = None

    @property
    def searched(self) -> Prepared:
        """What a search takes of it."""
        return Prepared(self.objective, self.undetermined, self.multioutput, self.again)


# The approximation taken by itself, and those whose training rows others have.
_TRAINED_AS = {"auto": "vfe", "nystrom": "dtc", "sod": "vfe"}


def kind_of(estimator: Any) -> Approximation:
    """Return the approximation that an estimator asks for, under Gaussian noise.

    "nystrom" trains as "dtc"; the bounds on the evidence are all that "sod" has of "vfe".
    """
    name = _TRAINED_AS.get(estimator.approximation, estimator.approximation)
    return approximation(name, estimator.power, estimator.joint)


def prepare_sparse(
    estimator: Any,
    kernel: Kernel | None,
    likelihood: Gaussian | None,
    mean: Mean,
    rows: Rows,
    labels: NDArray[Any] | None = None,
    query: Any = None,
) -> PreparedSparse:
    """Return the objective of a fit by a `SparseGPRegressor`, at its start.

    Hyperparameters start from an exact fit to a sample of the rows, which takes a moment. Inducing
    inputs are chosen under these.
    """
    rng, kind = as_generator(estimator.random_state), kind_of(estimator)
    begun = begin(estimator, kernel, likelihood, mean, rows)
    if estimator.approximation == "sod":
        return _subset_of_data(estimator, begun, kind, rows.multioutput, rng)
    if begun.searched and not begun.warm:
        begun = _from_sample(begun, rng)
    groups = None
    if kind.training == "blocks":
        if labels is None:
            labels = block_numbers(estimator, begun, rng)
        order = np.argsort(labels, kind="stable")  # the rows of a block stand together
        labels = labels[order]
        groups = np.unique(labels, return_inverse=True)[1].astype(np.intp)
        weights = None if begun.data.weights is None else begun.data.weights[order]
        begun = _of_rows(begun, order, weights)
    last = estimator.inducing_ if begun.warm else None
    points, movable = inducing_inputs(estimator, begun, query, rng, last)
    learned = estimator.learn_inducing and begun.searched and begun.kernel.is_numeric and movable
    inducing = InducingInputs(points, begun.widths if learned else None)
    objective = _objective(begun, inducing, kind, groups)
    return PreparedSparse(objective, objective, begun.undetermined, rows.multioutput, labels)


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
    require_memory(min(int(estimator.n_inducing), len(begun.data.Y)))
    chosen, weights = chosen_rows(estimator, begun, rng)
    whole = _objective(begun, InducingInputs(begun.data.X[chosen]), kind)
    exact = prepared_exact(_of_rows(begun, chosen, weights), multioutput)
    assert isinstance(exact.objective, Objective)
    return PreparedSparse(
        exact.objective, whole, begun.undetermined, multioutput, None, exact.again
    )


def _from_sample(begun: Begun, rng: np.random.Generator) -> Begun:
    """Return the model with hyperparameters of an exact fit to a sample of the rows."""
    rows = different_rows(begun, targets=True)
    kept = np.arange(len(rows.first))
    if len(kept) > _SAMPLE:
        kept = np.sort(rng.choice(kept, _SAMPLE, replace=False))
    sample = _of_rows(begun, rows.first[kept], unless_ones(rows.weights[kept]))
    objective = exact_objective(sample)
    optimum = maximise(objective, max_iter=_ITERATIONS)
    if optimum.status == "interrupted":
        raise KeyboardInterrupt  # there is no model of all rows yet that could be kept
    found, noise = objective.unpack(optimum.theta)
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
