"""Updates of all precisions at once under Laplace's evidence; see `_relevance_together`.

They begin with all functions: O(n M^2 + M^3) for each of Newton's steps, less as functions go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mercer.inference._relevance_ascent import Penalty
from mercer.inference._relevance_growth import widths_of
from mercer.inference._relevance_laplace import LARGEST, SMALLEST, Laplace
from mercer.inference._relevance_mode import Mode
from mercer.inference._relevance_problem import Hyperprior, Report
from mercer.inference._relevance_run import firmer
from mercer.inference._relevance_sites import Sites
from mercer.inference._relevance_table import Table
from mercer.inference._relevance_together import Together

__all__ = ["ClassUpdates"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class ClassUpdates(Together):
    """A model of one latent number a row; see `Together`."""

    def __init__(
        self,
        table: Table,
        sites: Sites,
        hyperprior: Hyperprior,
        always: Sequence[int],
        algorithm: str,
        tol: float,
        report: Report | None = None,
    ) -> None:
        super().__init__(Penalty(hyperprior), always, algorithm, tol, report)
        self.table, self.sites = table, sites
        self.widths, zero = widths_of(table, sites)
        self._there = ~zero
        self._near: tuple[Indices, Floats] | None = None

    def begin(self, start: tuple[Indices, Floats] | None) -> None:
        """Begin with all functions that are not 0, or where another fit has ended."""
        if start is not None:
            missing = np.setdiff1d(self._always, start[0])
            indices = np.append(start[0], missing).astype(np.intp)
            s = np.append(start[1], self.widths[missing])
        else:
            indices = np.flatnonzero(self._there)
            if not len(indices):
                indices = np.array([0])
            indices = np.union1d(indices, self._always).astype(np.intp)
            # As if all together gave a latent number a prior deviation of 3.
            s = len(indices) * self.widths[indices] / 9.0
        point = self.evaluate(indices, s, 1.0)
        while point is None:  # they are too alike: firmer priors
            s = firmer(s, 1e-6 * self.widths[indices], LARGEST * self.widths[indices])
            point = self.evaluate(indices, s, 1.0)
        self.indices, self.point = indices, point
        self.history.append(point.value)

    def _laplace(self, indices: Indices) -> Laplace:
        return Laplace(self.sites, self._penalty, self.table.plain(indices), self.widths[indices])

    def evaluate(self, indices: Indices, s: Floats, v: float) -> Mode | None:
        """Return the evidence of some functions; None where there is none."""
        start = None
        if self._near is not None:
            known = np.zeros(self.table.size)
            known[self._near[0]] = self._near[1]
            start = known[indices]
        found = self._laplace(indices).at(s, start)
        if found is not None:
            self._near = indices, found.mu
        return found

    def ascended(self, indices: Indices, at: Mode, steps: int, tol: float) -> Mode:
        """Return where Newton's steps in all precisions lead."""
        laplace = self._laplace(indices)
        return laplace.polished(laplace.ascended(at, steps, tol), 200)

    def limits(self, indices: Indices, v: float) -> tuple[Floats, Floats]:
        """Return the least and the greatest precisions."""
        widths = self.widths[indices]
        return SMALLEST * widths, LARGEST * widths

    def noise(self, at: Mode, gamma: Floats, em: bool) -> float:
        """Return 1: there is no noise to learn."""
        return 1.0
