"""From a model of latent functions on all rows to one through inducing variables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from mercer.estimators.inducing import inducing_inputs
from mercer.estimators.memory import require_sections
from mercer.estimators.options import as_generator
from mercer.estimators.prepare_exact import Begun
from mercer.estimators.prepare_latent import begin_latent
from mercer.estimators.prepare_sparse import PreparedSparse
from mercer.estimators.rows import Rows
from mercer.estimators.search import warn_of_unexplained
from mercer.evidence import Data, LatentObjective
from mercer.evidence.defaults import default_noise, default_starts
from mercer.evidence.optimum import Report, tell
from mercer.evidence.sparse import InducingInputs
from mercer.evidence.sparse_latent import SparseLatentObjective
from mercer.inference._approximations import Approximation, approximation
from mercer.kernels import Kernel, Scaled
from mercer.likelihoods import Gaussian, Likelihood
from mercer.means import Mean
from mercer.posterior.factors import frozen

__all__ = ["LatentStart", "prepare_sparse_latent", "sparse_latent", "unexplained_by"]

Floats = NDArray[np.float64]


class LatentStart(NamedTuple):
    """A latent function at its start.

    dense : the objective of all rows, which is not evaluated
    targets : (n,) numbers that stand for the latent values
    noise : how much they vary about these
    default : the default kernel, None if the user gave another
    widths : (d,) standard deviations of the columns
    searched : whether there is going to be a search
    last : the inducing inputs of the last fit, if it starts from that
    """

    dense: LatentObjective
    targets: Floats
    noise: float
    default: Scaled | None
    widths: Floats
    searched: bool
    last: Any = None

    def regression(self) -> Begun:
        """Return what inducing inputs are chosen for: the targets under Gaussian noise."""
        dense = self.dense
        given = isinstance(dense.likelihood, Gaussian)
        noise = dense.likelihood if given else Gaussian(self.noise)
        data = Data(dense.data.X, self.targets[:, None], dense.data.weights, np.ones(1))
        model = dense.kernel, noise, dense.mean
        warm = self.last is not None
        return Begun(
            *model, data, dense.bounds, self.default, self.widths, 1.0, None, self.searched, warm
        )


def sparse_latent(
    estimator: Any,
    start: LatentStart,
    kind: Approximation,
    query: Any,
    rng: np.random.Generator,
    searches: int,
) -> SparseLatentObjective:
    """Return the objective of a sparse fit, at its start, one of so many searches.

    Of the default kernel that is the best of a few if there is going to be a search. A start from a
    dense fit to a sample of the rows, as that of Gaussian noise, was tried and gains nothing.
    """
    dense, begun = start.dense, start.regression()
    points, movable = inducing_inputs(estimator, begun, query, rng, start.last)
    jobs = min(effective_n_jobs(estimator.n_jobs), searches)
    require_sections(len(begun.data.Y), len(points), jobs if start.searched else 1)
    wanted = estimator.learn_inducing is None or bool(estimator.learn_inducing)
    learned = wanted and start.searched and dense.kernel.is_numeric and movable
    inducing = InducingInputs(frozen(np.array(points)), start.widths if learned else None)
    objective = SparseLatentObjective.of(dense, inducing, kind)
    if start.default is not None and start.searched and start.last is None:
        objective.begin_at_best(default_starts(start.default))
    return objective


def prepare_sparse_latent(
    estimator: Any,
    kernel: Kernel | None,
    likelihood: Likelihood | None,
    mean: Mean,
    rows: Rows,
    inference: str,
    query: Any = None,
    report: Report | None = None,
) -> PreparedSparse:
    """Return the objective of a fit by a `SparseGPRegressor` with such an engine, at its start.

    `report` is told of each stage.
    """
    begun = begin_latent(estimator, kernel, likelihood, mean, rows, inference)
    name = "fitc" if estimator.approximation == "auto" else estimator.approximation
    start = LatentStart(
        begun.objective,
        begun.objective.latent[:, 0],
        float(default_noise(begun.variance).new_variance),
        begun.default,
        begun.widths,
        begun.searched,
        estimator.inducing_ if begun.warm else None,
    )
    kind = approximation(name, joint=estimator.joint)
    rng = as_generator(estimator.random_state)
    tell(report, "choosing inducing inputs")
    objective = sparse_latent(estimator, start, kind, query, rng, 1 + estimator.n_restarts)
    return PreparedSparse(objective, None, begun.undetermined, rows.multioutput, None)


def unexplained_by(estimator: Any, objective: SparseLatentObjective, theta: Floats) -> float:
    """Return the variance that inducing variables leave at a row on average; warns of too much."""
    kernel, likelihood, _ = objective.unpack(theta)
    left, X = objective.unexplained(theta), objective.data.X
    signal, noise = float(np.mean(kernel.diag(X))), 0.0
    if not likelihood.missing("fisher"):  # of which a row is about as informative
        noise = 1.0 / float(np.mean(likelihood.fisher(objective.latent)))
    warn_of_unexplained(estimator, left, signal, noise, len(objective.inducing.points), len(X))
    return left
