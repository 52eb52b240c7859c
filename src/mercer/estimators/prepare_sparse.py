"""From rows and a user's model to the objective of a sparse fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.options import as_generator
from mercer.estimators.prepare_exact import Begun, begin, exact_objective
from mercer.estimators.rows import Rows
from mercer.evidence import Data, maximise
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.inference.approximations import Approximation, approximation
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian
from mercer.means import Mean
from mercer.selection import kmeans, select

__all__ = ["PreparedSparse", "kind_of", "prepare_sparse"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rows of the exact fit whose hyperparameters a sparse one starts from, and its iterations.
_SAMPLE, _ITERATIONS = 500, 50


class PreparedSparse(NamedTuple):
    """What a sparse fit begins with.

    objective : what it maximises, at its start
    undetermined : why the targets say nothing about it, None if they do
    multioutput : whether the targets came in columns
    labels : (n,) what the blocks of the rows are called, or None
    """

    objective: SparseObjective
    undetermined: str | None
    multioutput: bool
    labels: NDArray[Any] | None


def kind_of(estimator: Any) -> Approximation:
    """Return the approximation that an estimator asks for; "nystrom" trains as "dtc"."""
    name = "dtc" if estimator.approximation == "nystrom" else estimator.approximation
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
    inputs are chosen under these, and blocks in their length scales.
    """
    rng, kind = as_generator(estimator.random_state), kind_of(estimator)
    begun = begin(estimator, kernel, likelihood, mean, rows)
    if begun.searched and not begun.warm:
        begun = _from_sample(begun, rows, rng)
    data, likelihood, groups = begun.data, begun.likelihood, None
    if kind.training == "blocks":
        if labels is None:
            labels = _block_numbers(estimator, begun, rng)
        order = np.argsort(labels, kind="stable")  # the rows of a block stand together
        labels = labels[order]
        groups = np.unique(labels, return_inverse=True)[1].astype(np.intp)
        weights = None if data.weights is None else data.weights[order]
        data = Data(data.X[order], data.Y[order], weights, data.scale)
        likelihood = _reordered(likelihood, order)
    points = _inducing(estimator, begun, query, rng)
    learned = estimator.learn_inducing and begun.searched and begun.kernel.is_numeric
    inducing = InducingInputs(points, begun.widths if learned else None)
    bounds = np.concatenate([begun.bounds, inducing.bounds])
    objective = SparseObjective(
        begun.kernel, likelihood, begun.mean, data, inducing, kind, groups, bounds
    )
    return PreparedSparse(objective, begun.undetermined, rows.multioutput, labels)


def _from_sample(begun: Begun, rows: Rows, rng: np.random.Generator) -> Begun:
    """Return the model with hyperparameters of an exact fit to a sample of the rows."""
    data, n = begun.data, len(begun.data.Y)
    if n <= _SAMPLE:
        chosen = np.arange(n)
    else:
        chosen = np.sort(rng.choice(n, _SAMPLE, replace=False))
    mask = np.zeros(n, dtype=bool)
    mask[chosen] = True
    weights = None if data.weights is None else data.weights[chosen]
    sample = begun._replace(
        data=Data(data.X[chosen], data.Y[chosen], weights, data.scale),
        likelihood=begun.likelihood.subset(mask),
    )
    objective = exact_objective(sample)
    optimum = maximise(objective, max_iter=_ITERATIONS)
    found, noise = objective.unpack(optimum.theta)
    likelihood = begun.likelihood
    if likelihood.theta.size:
        likelihood = likelihood.with_theta(noise.theta)
    return begun._replace(kernel=found, likelihood=likelihood)


def _reordered(likelihood: Gaussian, order: Indices) -> Gaussian:
    """Return noise with known variances in the order of the rows."""
    noise = likelihood.noise
    if likelihood.theta.size or noise is None or np.ndim(noise) != 1:
        return likelihood
    return Gaussian(np.asarray(noise)[order], likelihood.new_variance)


def _block_numbers(estimator: Any, begun: Begun, rng: np.random.Generator) -> NDArray[Any]:
    """Return the block that each row belongs to: about as many rows each as inducing inputs."""
    n = len(begun.data.Y)
    size = min(n, max(1, _number_of(estimator, n)))
    if estimator.blocks == "contiguous" or not begun.kernel.is_numeric:
        return np.arange(n) // size
    count = max(1, int(np.ceil(n / size)))
    found = kmeans(begun.data.X, count, begun.widths, largest=2 * size, rng=rng)
    return found.assignment


def _number_of(estimator: Any, n: int) -> int:
    return min(int(estimator.n_inducing), n)


def _inducing(estimator: Any, begun: Begun, query: Any, rng: np.random.Generator) -> Any:
    """Return the inducing inputs at their start."""
    kernel, data, spec = begun.kernel, begun.data, estimator.inducing
    if query is not None:
        return kernel.inputs(query, "query")
    if not isinstance(spec, str):
        return kernel.inputs(spec, "inducing")
    n, outputs = data.Y.shape
    residual = data.Y
    if begun.mean.estimate is None:
        residual = residual - begun.mean(data.X, outputs)
    else:
        residual = residual - np.average(residual, axis=0, weights=data.weights)
    if spec == "kmeans" and not kernel.is_numeric:
        spec = "random"
    noise = begun.likelihood.variances(n, data.weights)
    m = _number_of(estimator, n)
    return select(spec, kernel, data.X, residual / data.scale, m, noise, rng)
