"""Reading images: rows for training and for tests, and their labels, in one file of arrays."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_arrays"]

_NAMES = ("X_train", "y_train", "X_test", "y_test")
# What NumPy raises for files that are cut off, are something else, or lack an array.
_DAMAGED = (zipfile.BadZipFile, EOFError, KeyError, TypeError, ValueError, zlib.error)


def read_arrays(
    path: Path,
) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.bool_]]:
    """Return the inputs, the labels and the one split, into training rows and test rows.

    Labels that are numbers become floats, as those of other tables.
    """
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            X_train, y_train, X_test, y_test = (file[name] for name in _NAMES)
            X = np.concatenate([X_train, X_test]).astype(float)
            y = np.concatenate([y_train, y_test])
    except _DAMAGED as error:
        raise ValueError(
            f"{path} is not a whole file of arrays {', '.join(_NAMES)} that fit: {error}"
        ) from None
    if X.ndim != 2 or y_train.shape != X_train.shape[:1] or y_test.shape != X_test.shape[:1]:
        raise ValueError(
            f"{path}: inputs must be rows and have a label each, got {X_train.shape} with "
            f"{y_train.shape} and {X_test.shape} with {y_test.shape}"
        )
    if np.issubdtype(y.dtype, np.number):
        y = y.astype(float)
    if not (np.all(np.isfinite(X)) and (y.dtype != float or np.all(np.isfinite(y)))):
        raise ValueError(f"{path} holds NaN or infinity")
    return X, y, np.arange(len(y))[:, None] >= len(y_train)
