"""The functions of a relevance vector machine at its rows, and posteriors over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.expansion_parts import fixed_mean, given_centres
from mercer.estimators.laplacian_rows import Merged
from mercer.evidence.relevance_engines import Machine, Machines
from mercer.evidence.relevance_functions import Dictionary
from mercer.kernels import Kernel
from mercer.means import Functions, Mean
from mercer.posterior import Basis, FurtherSections
from mercer.posterior.basis import Regressors

__all__ = ["Frame", "Model", "Relevant"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Targets that differ from their mean by no more than this part of their size are the mean.
_ROUNDING = 1e-13


class Model(NamedTuple):
    """A model and its rows, as a fit takes them.

    rows : Merged, with targets in the units of `scale`, or labels
    kernels : one or more; None for the default one
    mean : of the function
    scale : (P,) the units of the outputs
    has_labels : whether targets are labels
    engine : given rows, what is subtracted from their targets (n, P), and how many functions never
        leave the model: the engine
    """

    rows: Merged
    kernels: tuple[Kernel, ...] | None
    mean: Mean
    scale: Floats
    has_labels: bool
    engine: Callable[[Merged, Floats, int], Machines]


class Relevant(NamedTuple):
    """The functions that a model keeps.

    sections : for each kernel the numbers of its centres
    functions : which of the given functions
    basis : of the posterior: these, and the regressors of the mean
    n_mean : how many regressors there are, which come last
    """

    sections: list[Indices]
    functions: Indices
    basis: Basis
    n_mean: int

    @property
    def n_sections(self) -> int:
        """How many sections there are, of all kernels, which come first."""
        return sum(len(own) for own in self.sections)

    @property
    def n_relevance(self) -> int:
        """How many functions there are beside the mean's."""
        return self.n_sections + len(self.functions)


@dataclass(frozen=True)
class Frame:
    """A model with kernels: its functions and its targets, at any of the rows."""

    model: Model
    kernels: tuple[Kernel, ...]
    centres: Any
    functions: Callable[[Any], Any] | None

    def dictionary(self, rows: Merged) -> Dictionary:
        """Return the functions at some rows; centres are those of these rows unless given."""
        centres: tuple[Any, ...]
        if self.centres is not None:
            centres = tuple(given_centres(self.centres, kernel) for kernel in self.kernels)
        else:
            own = rows.centres
            same = len(own) == len(rows.Y)
            centres = (None if same else rows.X[own],) * len(self.kernels)
        others = np.hstack([self._given(rows.X), self._regressors(rows.X)])
        return Dictionary(self.kernels, rows.X, centres, others)

    def _given(self, X: Any) -> Floats:
        if self.functions is None:
            return np.empty((len(X), 0))
        return Functions(self.functions).features(X)

    def _regressors(self, X: Any) -> Floats:
        if self.model.mean.estimate is None:
            return np.empty((len(X), 0))
        return self.model.mean.features(X)

    def numbers(self, rows: Merged) -> Indices:
        """Return by which number the caller knows each centre."""
        if self.centres is not None:
            return np.arange(len(self.centres))
        return rows.first[rows.centres]

    def fixed(self, rows: Merged) -> Floats:
        """Return the part of the mean without coefficients, (n, P), in units of `scale`."""
        mean, outputs = self.model.mean, rows.Y.shape[1]
        estimated = mean.estimate is not None
        fixed = mean.fixed_part(rows.X, outputs) if estimated else mean(rows.X, outputs)
        return np.asarray(fixed / self.model.scale)

    def coefficients(self, rows: Merged) -> Floats:
        """Return about what the coefficients of the mean's regressors have their priors, (r, P).

        Those of least squares, so that a shift of the targets is one of the predictions; 0 for
        labels.
        """
        H, root = self._regressors(rows.X), np.sqrt(rows.weights)[:, None]
        left = rows.Y - self.fixed(rows)
        if self.model.has_labels or not H.shape[1]:
            return np.zeros((H.shape[1], rows.Y.shape[1]))
        return np.asarray(np.linalg.lstsq(root * H, root * left, rcond=None)[0])

    def offset(self, rows: Merged, beta: Floats) -> Floats:
        """Return the mean at some rows, (n, P): the targets themselves where they are no other."""
        mean = self.fixed(rows) + self._regressors(rows.X) @ beta
        size = np.max(np.abs(rows.Y), axis=0)
        same = np.max(np.abs(rows.Y - mean), axis=0) <= _ROUNDING * size
        return np.where(same, rows.Y, mean)

    def engine(self, rows: Merged, beta: Floats) -> Machines:
        """Return the engine with some rows, from whose targets the mean is subtracted."""
        return self.model.engine(rows, self.offset(rows, beta), len(beta))

    def carried(self, some: Merged, rows: Merged, machines: list[Machine]) -> list[Machine]:
        """Return models that were fitted to some of the rows as ones of the functions at all."""
        first = self.dictionary(some)
        few, many = sum(first.sizes), sum(self.dictionary(rows).sizes)
        own, all_of = self.numbers(some), self.numbers(rows)
        order = np.argsort(all_of)
        at = order[np.searchsorted(all_of, own, sorter=order)]
        out = []
        for machine in machines:
            indices = machine.fit.indices
            kernel, place = np.divmod(indices[indices < few], len(own))
            moved = np.append(
                kernel * len(all_of) + at[place], indices[indices >= few] - few + many
            )
            sorts = np.argsort(moved)
            fit = machine.fit._replace(
                indices=moved[sorts], precisions=machine.fit.precisions[sorts]
            )
            out.append(machine._replace(fit=fit))
        return out

    def relevant(self, functions: Dictionary, indices: Indices) -> Relevant:
        """Return what functions are kept."""
        sections, others = functions.split(indices)
        n_mean = self._regressors(functions.X[:1]).shape[1]
        n_given = 0 if functions.others is None else functions.others.shape[1] - n_mean
        given = others[others < n_given]
        regressors = self.model.mean if n_mean else None
        if len(given):
            assert self.functions is not None
            regressors = Functions(self.functions, given, regressors)
        features: Regressors | None = regressors
        further = [k for k in range(1, len(self.kernels)) if len(sections[k])]
        points = [functions.centres_of(k)[own] for k, own in enumerate(sections)]
        if further:
            kernels = [functions.kernels[k] for k in further]
            features = FurtherSections(kernels, [points[k] for k in further], features)
        basis = Basis(functions.kernels[0], points[0], features)
        return Relevant(sections, given, basis, n_mean)

    def fixed_mean(self, p: int | None) -> Mean:
        """Return the part of the mean that has no coefficients to find; of output p, or all."""
        return fixed_mean(self.model.mean, output=p if len(self.model.scale) > 1 else None)

    def with_kernels(self, kernels: tuple[Kernel, ...]) -> Frame:
        """Return the model with other kernels."""
        return replace(self, kernels=kernels)
