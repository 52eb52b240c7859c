"""What an on-line process is made of, and how it is kept: a model, and moments of its function.

How it changes, by rows that come, is in `online`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.inference._online_moments import as_posterior, packed, unpacked
from mercer.kernels import Kernel
from mercer.likelihoods import Likelihood
from mercer.linalg.recursion import Arrays, Rules, symmetric
from mercer.means import Mean, Zero
from mercer.posterior import Basis, Posterior
from mercer.posterior.chart import Chart

__all__ = ["KeptProcess"]

Floats = NDArray[np.float64]


class KeptProcess:
    """A posterior as its moments at points (`mercer.linalg.recursion` has the notation).

    kernel, likelihood, mean_function : the model
    scale : (P,) the units of the outputs
    rules : Rules, which decide about points
    n_seen : how many rows have been learned, or skipped
    """

    kernel: Kernel
    likelihood: Likelihood
    mean_function: Mean
    scale: Floats
    rules: Rules
    n_seen: int

    def _set(
        self,
        basis: Basis,
        likelihood: Likelihood,
        mean: Mean | None,
        arrays: Arrays,
        chart: Chart,
        scale: Floats,
        weight: int,
    ) -> None:
        self.kernel, self.likelihood = basis.kernel, likelihood
        self.mean_function = Zero() if mean is None else mean
        self._arrays, self._chart, self.scale = arrays, chart, scale
        self._weight, self._explicit = weight, basis.features
        # Inputs of which `source` says where the points are: Ctrl-C cannot part them.
        self._rows = basis.points
        arrays.source[: arrays.m] = np.arange(arrays.m)
        self.n_seen = 0

    @property
    def arrays(self) -> Arrays:
        """The arrays of the recursion, which changes them in place, with whole matrices: O(m^2)."""
        return symmetric(self._arrays)

    @property
    def n_basis(self) -> int:
        """The number of points."""
        return self._arrays.m if self._weight else len(self._rows)

    @property
    def is_degenerate(self) -> bool:
        """Whether it has weights alone, of functions that stay as they are."""
        return not self._weight

    @property
    def points(self) -> Any:
        """The points, as rows of inputs."""
        return self._rows[self._arrays.source[: self._arrays.m]] if self._weight else self._rows

    @property
    def _basis(self) -> Basis:
        return Basis(self.kernel, self.points, self._explicit)

    @property
    def projection_loss(self) -> float:
        """The divergences that projections and removals have cost, added up, in nats."""
        return float(self._arrays.sums[0])

    @property
    def log_evidence(self) -> float:
        """The log predictive density of all rows, each given those before it."""
        _, total, weight = self._arrays.sums
        return float(total - weight * np.sum(np.log(self.scale)))

    @property
    def mean_log_density(self) -> float:
        """The log predictive density of a row of weight 1 on average, 0 before there are any."""
        return self.log_evidence / (self._arrays.sums[2] or 1.0)

    def posterior(self) -> Posterior:
        """Return the process as it is now."""
        model = self._basis, self._chart, self.mean_function
        return as_posterior(self._arrays, *model, self.scale, self._weight)

    def to_state(self) -> dict[str, Any]:
        """Return what `from_state` needs: every number that later rows depend on, as it is."""
        return {
            "basis": self._basis,
            "likelihood": self.likelihood,
            "mean": self.mean_function,
            "chart": self._chart,
            "scale": self.scale,
            "weight": self._weight,
            "rules": list(self.rules),
            "n_seen": self.n_seen,
            "arrays": packed(self._arrays),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        new = cls.__new__(cls)
        arrays, scale = unpacked(state["arrays"]), np.array(state["scale"], dtype=float)
        model = state["basis"], state["likelihood"], state["mean"]
        new._set(*model, arrays, state["chart"], scale, int(state["weight"]))
        most, criterion, novelty, *rest = state["rules"]
        new.rules = Rules(int(most), int(criterion), int(novelty), *map(float, rest))
        new.n_seen = int(state["n_seen"])
        return new
