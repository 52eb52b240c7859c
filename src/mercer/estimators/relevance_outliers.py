"""What a robust fit says of the rows that were given, of which it saw the different ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.laplacian_rows import Merged
from mercer.estimators.rows import Rows
from mercer.evidence.relevance_engines import Machine

__all__ = ["outlier_weights"]

Floats = NDArray[np.float64]


def outlier_weights(own: Merged, rows: Rows, scale: Floats, machines: Sequence[Machine]) -> Floats:
    """Return v over the variance of each row that was given, (n, P); 0 for those of weight 0.

    Parameters
    ----------
    own : the different rows, as they were fitted
    rows : as they were given
    scale : (P,) the units of the targets in `own`
    machines : one for each column of targets
    """
    found = np.column_stack([np.asarray(machine.outliers) for machine in machines])
    out = np.zeros((len(rows.kept), found.shape[1]))
    if len(own.Y) == len(rows.Y):
        out[own.first] = found
    else:
        out[rows.kept] = found[_twins(own, rows, scale)]
    return out


def _twins(own: Merged, rows: Rows, scale: Floats) -> NDArray[np.intp]:
    """Return for each row the number of the one among the different rows that is like it."""
    keys = {row.tobytes(): i for i, row in enumerate(_joint(own.X, own.Y))}
    return np.array([keys[row.tobytes()] for row in _joint(rows.X, rows.Y / scale)], dtype=np.intp)


def _joint(X: Any, Y: Floats) -> Floats:
    return np.ascontiguousarray(np.hstack([np.asarray(X, dtype=float), Y]) + 0.0)  # no -0
