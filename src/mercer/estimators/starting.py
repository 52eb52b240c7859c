"""What fits by any engine begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.resolve import require_mercer
from mercer.estimators.rows import Rows
from mercer.evidence import LatentObjective, Objective
from mercer.evidence.defaults import default_kernel, spread
from mercer.evidence.guarded import Guarded
from mercer.kernels import Kernel, Scaled
from mercer.likelihoods import Gaussian
from mercer.params import Parametrised

__all__ = [
    "BegunKernel",
    "Prepared",
    "begin_at_best",
    "begins_warm",
    "begun_kernel",
    "of_these_rows",
    "warmed",
]

Floats = NDArray[np.float64]
Part = TypeVar("Part", bound=Parametrised)


class Prepared(NamedTuple):
    """What a fit begins with.

    objective : what it maximises, at its start
    undetermined : why the targets say nothing about it, None if they do
    multioutput : whether the targets came in columns
    """

    objective: Objective | LatentObjective
    undetermined: str | None
    multioutput: bool


class BegunKernel(NamedTuple):
    """A kernel to begin with.

    kernel : the user's or the default one, on the rows of the fit
    default : the default one, None if the user gave another
    widths : (d,) standard deviations of the columns, from which bounds follow
    """

    kernel: Kernel
    default: Scaled | None
    widths: Floats


class _Rows(Protocol):
    """Training rows, of a regression or of classes."""

    @property
    def X(self) -> Any:
        """Inputs."""

    @property
    def weights(self) -> Floats | None:
        """Their weights, None if all are 1."""


def begun_kernel(
    kernel: Kernel | None,
    rows: _Rows,
    variance: float,
    hyperprior: str | None,
    default_of: Callable[[Floats, float, bool], Scaled] = default_kernel,
) -> BegunKernel:
    """Return the kernel that a fit begins with, None standing for the default one.

    `variance` is that of the function, as far as the data tell; `default_of` makes the default
    kernel of the columns' widths, the variance, and whether there are hyperpriors. Raises
    ValueError for a kernel that is no covariance.
    """
    widths = np.ones(1)
    if kernel is None or kernel.is_numeric:
        widths = spread(rows.X, rows.weights)
    default = None
    if kernel is None:
        kernel = default = default_of(widths, variance, hyperprior is not None)
    kernel = kernel.anchored(rows.X)
    require_mercer(kernel)
    return BegunKernel(kernel, default, widths)


def of_these_rows(likelihood: Gaussian, rows: Rows) -> Gaussian:
    """Return Gaussian noise without the variances of rows that were left out."""
    if not np.all(rows.kept):
        likelihood = likelihood.subset(rows.kept)
    return likelihood if rows.weights is None else likelihood.weighted(rows.weights)


def begins_warm(estimator: Any, kernel: Kernel) -> bool:
    """Whether the search is to start from the last fit, and that had a kernel of the same form."""
    if not (estimator.warm_start and hasattr(estimator, "kernel_")):
        return False
    last = estimator._models()[0][0]
    return bool(last.parameter_names == kernel.parameter_names)


def warmed(part: Part, last: Parametrised) -> Part:
    """Return a part of the model with the parameters of the last fit, if they are the same ones."""
    same = last.parameter_names == part.parameter_names
    return part.with_theta(last.theta) if same else part


def begin_at_best(objective: Guarded, kernels: Sequence[Kernel]) -> None:
    """Move the start to that of several kernels with the highest evidence."""
    judge = objective.judge()
    judge.begin_at_best(kernels)
    objective.kernel = judge.kernel
