"""Rows and columns of a relevance problem in the form its algorithms work on.

With r_i = sqrt(w_i) (or sqrt(w_i/v_i), where each row has a variance of its own) all is a matter of
A = diag(r) Phi and z = diag(r) (y - m), whose noise is v in every row. Rows of weight 0 are left
out.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from mercer.inference._relevance_problem import RelevanceProblem
from mercer.inference._relevance_table import Table

__all__ = ["Rows"]

Floats = NDArray[np.float64]


class Rows(Table):
    """What the evidence of a problem depends on.

    Parameters
    ----------
    problem : RelevanceProblem

    Attributes
    ----------
    y, z : (n',) y - m, and the targets diag(r) (y - m), of which zz is the sum of squares
    P : (M,) A'z
    offset : what variances of the rows add to the log evidence
    """

    def __init__(self, problem: RelevanceProblem) -> None:
        super().__init__(problem.columns, problem.weights)
        y = np.asarray(problem.y, dtype=float) - problem.mean
        self.y: Floats = y if self.kept is None else y[self.kept]
        self._aim(self.weights, 0.0)

    def reweighted(self, variances: Floats) -> Rows:
        """Return the same rows with noise variances of their own (n',); their common noise is 1."""
        other, w = copy(self), self.weights
        logs = np.log(variances)
        offset = -0.5 * float(np.sum(logs) if w is None else w @ logs)
        other._aim((1.0 if w is None else w) / variances, offset)
        return other

    def _aim(self, squares: Floats | None, offset: float) -> None:
        self.weigh(squares)
        self.offset = offset
        self.z: Floats = self.y if self.root is None else self.root * self.y
        self.zz = float(self.z @ self.z)
        self.P = self.times(self.z if self.root is None else self.root * self.z)

    def spread(self) -> float:
        """Return the variance of y - m, weighted; the mean square where it is 0, or else 1."""
        total = self.weight
        y, w = self.y, self.weights
        mean = float(np.sum(y) if w is None else w @ y) / total
        square = float(y @ y if w is None else w @ y**2) / total
        variance = float(np.sum((y - mean) ** 2) if w is None else w @ (y - mean) ** 2) / total
        if variance > 1e-20 * square:
            return variance
        return square if square > 0 else 1.0
