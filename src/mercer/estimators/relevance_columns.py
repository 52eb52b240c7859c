"""Length scales of relevance vectors for labels beside many columns: those that are of use.

A Gaussian process has them on a sample. Its functions are spread over all rows, though, and where
it predicts well from a length scale a column, or from wide functions, few functions may not.
"""

from __future__ import annotations

import warnings
from typing import Any

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
# Parts of the common factor that are tried too, and the standard errors by which one is better.
_SHORTER, _CLEARLY = (0.5, 0.25), 2.0


def useful(estimator: Any, rows: Merged, found: Sampled) -> Sampled:
    """Return the length scales by which a machine predicts labels -1 and 1, in columns, of others.

    A third of the rows is held out. Those with a factor that is common to all columns are tried as
    they are and shorter, and then, searched for from where a sample has them, those that are one a
    column: what is not clearly better is not worth more functions, or a search.
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

    def logs(kernel: RBF, optimizer: str | None) -> Floats:
        # not of a clone, which copies what was given: whom to tell of steps, say, perhaps a window
        given = estimator.get_params(deep=False) | {"kernel": kernel, "optimizer": optimizer}
        given |= {"class_weight": None, "verbose": 0, "augment": False, "learn_centres": False}
        machine = type(estimator)(**given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            machine.fit(rows.X[train], labels[train], sample_weight=rows.weights[train])
        if machine.status_ == "interrupted":
            raise KeyboardInterrupt
        return np.asarray(machine.log_predictive_density(rows.X[test], labels[test]))

    best = common
    try:
        most = logs(common, None)
        for part in _SHORTER:
            shorter = common.with_theta(common.theta + np.log(part))
            value = logs(shorter, None)
            if _is_better(value, most):
                best, most = shorter, value
        if found.kernel is not common and _is_better(logs(found.kernel, estimator.optimizer), most):
            return Sampled(found.kernel, best)
    except KeyboardInterrupt:
        return Sampled(best, best, is_whole=False)
    return Sampled(best, best)


def _is_better(value: Floats, other: Floats) -> bool:
    """Whether log densities of the same rows are clearly larger than others."""
    gain = value - other
    return bool(np.mean(gain) > _CLEARLY * np.std(gain) / np.sqrt(len(gain)))
