"""A Laplacian process with a kernel: its functions, targets and posteriors at any of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.expansion_parts import fixed_mean, given_centres
from mercer.estimators.laplacian_options import PRIORS
from mercer.estimators.laplacian_outputs import of_outliers
from mercer.estimators.laplacian_rows import Merged
from mercer.evidence.defaults import output_units
from mercer.evidence.expansion_targets import Fitted, Options, Targets
from mercer.evidence.optimum import Report
from mercer.inference._columns import ArrayColumns, Columns, JoinedColumns, KernelColumns
from mercer.inference._expansion_choice import folds_of
from mercer.inference._expansion_posterior import expansion_posterior
from mercer.inference._residual_noise import Noise
from mercer.kernels import Kernel
from mercer.means import Constant, Functions, Mean
from mercer.posterior import Basis, Posterior

__all__ = ["Frame", "Model"]

Floats = NDArray[np.float64]

# Values of functions that are kept while penalties are compared, at the most.
_TABLE = 4_000_000


class Model(NamedTuple):
    """A model and its rows, as a fit takes them.

    rows : Merged, with targets in the units of `scale`, or labels -1 and 1
    kernel : Kernel, or None for the default one
    mean : of the function
    noise : what is minimised: given the spread of a column of targets, its noise; or a loss's name
    scale : (P,) the units of the outputs
    """

    rows: Merged
    kernel: Kernel | None
    mean: Mean
    noise: Callable[[float], Noise] | str
    scale: Floats


class Frame:
    """A model with a kernel: its functions and its targets, at any of the rows."""

    def __init__(self, estimator: Any, kernel: Kernel, model: Model, seed: int) -> None:
        self.estimator, self.kernel, self.model, self.seed = estimator, kernel, model, seed
        rows = model.rows
        if estimator.centres is None:
            own = rows.centres
            self.centres, self.numbers = rows.X[own], rows.first[own]
        else:
            self.centres = given_centres(estimator.centres, kernel)
            self.numbers = np.arange(len(self.centres))

    def table(self, rows: Merged) -> Columns:
        """Return the functions at rows that are going to be solved for many times.

        As a matrix, if that is small.
        """
        columns = self.columns(rows)
        if columns.n * columns.size > _TABLE:
            return columns
        return ArrayColumns(columns.take(np.arange(columns.size)))

    def columns(self, rows: Merged) -> Columns:
        """Return the functions at some rows; centres are those of these rows unless given."""
        parts: list[Columns] = []
        if self.estimator.centres is None:
            own = rows.centres
            same = len(own) == len(rows.Y)
            parts.append(KernelColumns(self.kernel, rows.X, None if same else rows.X[own]))
        elif len(self.centres):
            parts.append(KernelColumns(self.kernel, rows.X, self.centres))
        if self.estimator.functions is not None:
            parts.append(ArrayColumns(Functions(self.estimator.functions).features(rows.X)))
        return parts[0] if len(parts) == 1 else JoinedColumns(parts)

    def targets(self, rows: Merged, p: int) -> Targets:
        """Return column p of the targets of some rows."""
        model, y = self.model, rows.Y[:, p]
        mean, outputs = model.mean, rows.Y.shape[1]
        scale = model.scale[p]
        estimated = mean.estimate is not None
        fixed = mean.fixed_part(rows.X, outputs) if estimated else mean(rows.X, outputs)
        H = mean.features(rows.X) if estimated else None
        H = None if H is None or not H.shape[1] else H
        codes = None
        if isinstance(model.noise, str):
            codes = np.argmax(rows.Y, axis=1) if outputs > 1 else np.asarray(y > 0, dtype=np.intp)
        rng = np.random.default_rng(self.seed)
        folds = folds_of(rows.kinds, self.estimator.n_folds, rng, codes)
        spec = model.noise
        noise = spec if isinstance(spec, str) else spec(_deviation(y, rows.weights))
        known = None if rows.variances is None else rows.variances
        return Targets(y, rows.weights, fixed[:, p] / scale, H, folds, noise, known)

    def options(self, max_active: int | None, report: Report | None) -> Options:
        """Return what is asked of a fit."""
        own = self.estimator
        scale = None if own.prior_scale is None else float(own.prior_scale)
        return Options(
            PRIORS[own.prior], scale, float(own.tol), max_active, own.n_penalties, report
        )

    @property
    def is_open(self) -> bool:
        """Whether there is noise whose scale is estimated."""
        spec = self.model.noise
        return not isinstance(spec, str) and spec(1.0).is_open

    def drowned(self, fit: Fitted, p: int) -> str | None:
        """Return in words that the noise of output p is that of outliers alone, if it is."""
        rows = self.model.rows
        if not self.is_open:
            return None
        scale = float(self.model.scale[p])
        return of_outliers(fit.likelihood, rows.Y[:, p], rows.weights, scale)

    def posterior(self, fit: Fitted, p: int, ratio: float = 1.0) -> Posterior:
        """Return the posterior of output p, in units of `ratio` times those that it has here."""
        indices, mean = fit.solution.indices, self.model.mean
        m = len(self.centres)
        points = self.centres[indices[indices < m]]
        others = indices[indices >= m] - m
        estimated = mean.estimate is not None and len(fit.solution.beta)
        features: Mean | None = mean if estimated else None
        if len(others):
            features = Functions(self.estimator.functions, others, features)
        coef, slope, offset = fit.coef, 1.0, 0.0
        if fit.chosen.calibration is not None:
            slope, offset, _ = fit.chosen.calibration
            if estimated and isinstance(mean, Constant):
                coef, offset = np.append(coef[:-1], coef[-1] + offset), 0.0
        fixed = fixed_mean(mean, slope, offset, p if len(self.model.scale) > 1 else None)
        basis = Basis(self.kernel, points, features)
        units = float(ratio * self.model.scale[p])
        return expansion_posterior(basis, coef, fit.spread, ratio, fixed, units)


def _deviation(y: Floats, weights: Floats) -> float:
    """Return the standard deviation of targets, or what stands for it where they are constant."""
    column = y[:, None]
    return float(output_units(column, column, weights)[0])
