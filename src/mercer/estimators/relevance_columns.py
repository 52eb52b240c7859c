"""Length scales of relevance vectors for labels beside many columns: those that are of use.

A Gaussian process has them on a sample. Its functions are spread over all rows, though, and where
it predicts well from a length scale a column, or from wide functions, few functions may not.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MercerWarning
from mercer.estimators.laplacian_rows import Merged
from mercer.estimators.sampled_widths import Sampled, third_of_each
from mercer.kernels import RBF

__all__ = ["COMPARED", "useful"]

Floats = NDArray[np.float64]

# Rows by which length scales are compared, at the most.
COMPARED = 450
# Parts of the common factor that are tried; the standard errors by which one is better; and the
# part of what is to be known of labels that is enough, so that nothing more is tried.
_PARTS, _CLEARLY, _ENOUGH = (1.0, 0.5, 0.25), 2.0, 0.5


class _Tried(NamedTuple):
    """A kernel, log probabilities of labels that were held out, and the number of functions."""

    kernel: RBF
    logs: Floats
    n_functions: int

    def is_better(self, other: _Tried) -> bool:
        """Whether labels are clearly more probable."""
        gain = self.logs - other.logs
        return bool(np.mean(gain) > _CLEARLY * np.std(gain) / np.sqrt(len(gain)))


def useful(estimator: Any, rows: Merged, found: Sampled) -> Sampled:
    """Return the length scales by which a machine predicts labels -1 and 1, in columns, of others.

    A third of the rows is held out. Length scales with a factor that is common to all columns are
    tried as they are and shorter, and of those that tell as much the ones with the fewest functions
    taken; where these do not tell enough, those that are one a column are tried, searched for from
    where a sample has them.
    """
    common = found.common
    assert common is not None
    if not found.is_whole:
        return found._replace(kernel=common)
    is_test = third_of_each(rows.Y)
    labels = rows.Y[:, 0] > 0 if rows.Y.shape[1] == 1 else np.argmax(rows.Y, axis=1)
    train = np.flatnonzero(~is_test)
    test = np.flatnonzero(is_test & np.isin(labels, labels[train]))
    if len(test) < 2 or np.all(labels[train] == labels[train[0]]):
        return Sampled(common, common)

    def tried(kernel: RBF, optimizer: str | None) -> _Tried:
        # not a clone, which copies what was given: whom to tell of steps, say, perhaps a window
        given = estimator.get_params(deep=False) | {"kernel": kernel, "optimizer": optimizer}
        given |= {"class_weight": None, "verbose": 0, "augment": False, "learn_centres": False}
        machine = type(estimator)(**given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            machine.fit(rows.X[train], labels[train], sample_weight=rows.weights[train])
        if machine.status_ == "interrupted":
            raise KeyboardInterrupt
        logs = np.asarray(machine.log_predictive_density(rows.X[test], labels[test]))
        return _Tried(kernel, logs, int(machine.n_relevance_))

    counts = np.unique(labels[train], return_counts=True)[1]
    entropy = -float(np.sum(counts * np.log(counts / len(train)))) / len(train)
    best = common
    try:
        ways = [tried(common.with_theta(common.theta + np.log(part)), None) for part in _PARTS]
        top = max(ways, key=lambda way: float(np.mean(way.logs)))
        as_good = [way for way in ways if not top.is_better(way)]
        taken = min(as_good, key=lambda way: way.n_functions)
        best = taken.kernel
        is_enough = -np.mean(taken.logs) < (1.0 - _ENOUGH) * entropy
        if not is_enough and tried(found.kernel, estimator.optimizer).is_better(taken):
            return Sampled(found.kernel, best)
    except KeyboardInterrupt:
        return Sampled(best, best, is_whole=False)
    return Sampled(best, best)
