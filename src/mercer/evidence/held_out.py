"""Models as judged by rows that they have not learned from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

__all__ = ["Scores", "entropy_of"]

Floats = NDArray[np.float64]


class Scores(NamedTuple):
    """How probable a model finds what it has not seen. Weight 2 is a row twice, 0 one left out.

    logs : (t,) log probabilities of the targets of rows
    weights : (t,) what these rows weigh
    """

    logs: Floats
    weights: Floats

    @property
    def mean(self) -> float:
        """The mean over the rows."""
        return float(np.average(self.logs, weights=self.weights))

    def is_above(self, other: Scores, errors: float) -> bool:
        """Whether it is above that of another model, of the same rows, by so many standard errors.

        These are of the differences, row by row.
        """
        gain = self.logs - other.logs
        mean = np.average(gain, weights=self.weights)
        variance = np.average((gain - mean) ** 2, weights=self.weights)
        return bool(mean > errors * np.sqrt(variance / np.sum(self.weights)))


def entropy_of(labels: NDArray[Any], weights: Floats) -> float:
    """Return the entropy of labels, in nats a row: -sum_c p_c ln p_c, p_c their part of the weight.

    It is what a model loses that knows how frequent labels are, and nothing else.
    """
    part = np.bincount(np.unique(labels, return_inverse=True)[1], weights) / np.sum(weights)
    return float(np.sum(entr(part)))
