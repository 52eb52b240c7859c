"""Length scales of relevance vectors for labels beside many columns: those that are of use.

A Gaussian process has them on a sample. Its functions are spread over all rows, though, and where
it predicts well from a length scale a column, or from wide functions, few functions may not.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from mercer.errors import MercerWarning
from mercer.estimators.laplacian_rows import Merged
from mercer.estimators.sampled_widths import Sampled, third_of_each
from mercer.evidence.held_out import Scores, entropy_of
from mercer.kernels import RBF

__all__ = ["COMPARED", "useful"]

# Rows by which length scales are compared, at the most.
COMPARED = 450
# Parts of the common factor that are tried; the standard errors by which one is better; and the
# part of the labels' entropy that may be left, so that nothing more is tried.
_PARTS, _CLEARLY, _ENOUGH = (1.0, 0.5, 0.25), 2.0, 0.5


class _Tried(NamedTuple):
    """A kernel, what rows that were held out say of it, and the number of functions."""

    kernel: RBF
    scores: Scores
    n_functions: int


def useful(estimator: Any, rows: Merged, found: Sampled) -> Sampled:
    """Return the length scales by which a machine predicts labels -1 and 1, in columns, of others.

    A third of the inputs is held out. Length scales with a factor that is common to all columns are
    tried as they are and shorter, and of those that tell as much the ones with the fewest functions
    taken; where these do not tell enough, those that are one a column are tried, searched for from
    where a sample has them.
    """
    common = found.common
    assert common is not None
    if not found.is_whole:
        return found._replace(kernel=common)
    is_test = third_of_each(rows)
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
        return _Tried(kernel, Scores(logs, rows.weights[test]), int(machine.n_relevance_))

    best = common
    try:
        ways = [tried(common.with_theta(common.theta + np.log(part)), None) for part in _PARTS]
        top = max(ways, key=lambda way: way.scores.mean)
        as_good = [way for way in ways if not top.scores.is_above(way.scores, _CLEARLY)]
        taken = min(as_good, key=lambda way: way.n_functions)
        best = taken.kernel
        if -taken.scores.mean < _ENOUGH * entropy_of(labels[train], rows.weights[train]):
            return Sampled(best, best)
        if tried(found.kernel, estimator.optimizer).scores.is_above(taken.scores, _CLEARLY):
            return Sampled(found.kernel, best)
    except KeyboardInterrupt:
        return Sampled(best, best, is_whole=False)
    return Sampled(best, best)
