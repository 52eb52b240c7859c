"""The benchmark tables: `<name>.csv.gz`, with the published splits where there are any.

Images are `<name>.npz`, with their training and test rows.

The tables are not part of the package, whose licence is not theirs. They are read from a folder,
and some can be fetched from their public source, on request only.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.datasets.arrays import read_arrays
from mercer.datasets.fetch import FETCHABLE, SOURCE, fetch

__all__ = ["Table", "load_table"]

Floats = NDArray[np.float64]

# A text column of more values than this holds names or numbers with a typing error, not categories.
_MOST_CATEGORIES = 100

_REMARKS = {
    "bike": "Columns x16 and x17 give the target away: leave them out for an honest task.",
    "crabs": "Column `index` counts within groups and is no measurement.",
    "elec2": "Rows are in the order of time.",
    "parkinsons": "Rows are repeated measurements of 42 subjects, which the folds mix.",
    "pima": "Zeros stand for missing values.",
}


@dataclass(frozen=True)
class Table:
    """A data set.

    Attributes
    ----------
    name : str
        As it was asked for.
    X : array of shape (n, d)
        The inputs. A text column becomes a 0/1 column for each of its values, in sorted order,
        named ``column=value``.
    y : array of shape (n,), or None
        The target: numbers where all are numbers, else strings. None in a table of inputs alone.
    columns : tuple of d str
        What the columns of X hold.
    splits : boolean array of shape (n, k), or None
        The published splits: column i is True in the test rows of split i.
    description : str
        Size, splits, and what to beware of.
    """

    name: str
    X: Floats
    y: NDArray[Any] | None
    columns: tuple[str, ...]
    splits: NDArray[np.bool_] | None
    description: str

    def split(self, i: int) -> tuple[Floats, NDArray[Any], Floats, NDArray[Any]]:
        """Return X_train, y_train, X_test and y_test of split i."""
        if self.splits is None or self.y is None:
            raise ValueError(f"{self.name} has no published splits")
        if not 0 <= i < self.splits.shape[1]:
            raise ValueError(f"{self.name} has splits 0 to {self.splits.shape[1] - 1}, got {i!r}")
        test = self.splits[:, i]
        return self.X[~test], self.y[~test], self.X[test], self.y[test]


def load_table(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
    source: str = SOURCE,
) -> Table:
    """Read a table by its name.

    Parameters
    ----------
    name : str
        Such as "boston": the file is ``boston.csv.gz``, with the published splits in
        ``boston-splits.csv.gz`` or in a column ``split`` or ``fold``. Where there is none,
        ``<name>.npz``: images as rows ``X_train`` and ``X_test`` with labels ``y_train`` and
        ``y_test``, the one published split.
    folder : path, optional
        Where the files are. Without it: the folder that the environment variable MERCER_DATA
        names; else ``../shared/data`` beside the working directory or beside a clone of the
        project; and last the user's cache folder.
    download : bool, default False
        Whether to fetch a table that is not there from its public source: boston, kin8nm, naval,
        protein and wine-red. It is kept in `folder`, or else in the user's cache folder, and not
        fetched again.
    source : str
        The address of the public source; https or file.

    Returns
    -------
    Table

    Raises
    ------
    FileNotFoundError
        When there is no such table; the text says how to provide it.
    OSError
        When fetching fails.
    ValueError
        When a file is there and is not such a table.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", str(name)):
        raise ValueError(
            f"name must be letters, digits and hyphens, such as 'boston', got {name!r}"
        )
    folders = _places(folder)
    for place in folders:
        if (place / f"{name}.csv.gz").is_file():
            return _read(name, place)
        if (place / f"{name}.npz").is_file():
            X, y, splits = read_arrays(place / f"{name}.npz")
            return _table(name, X, y, [f"x{i + 1}" for i in range(X.shape[1])], splits)
    if download:
        target = folders[0] if folder is not None else _cache()
        fetch(name, target, source)
        return _read(name, target)
    fetched = (
        "pass download=True to fetch it from its public source"
        if name in FETCHABLE
        else f"or choose one that download=True can fetch: {', '.join(FETCHABLE)}"
    )
    raise FileNotFoundError(
        f"there is no {name}.csv.gz or {name}.npz in {', '.join(map(str, folders))}. Three ways to "
        f"provide it: give the folder that has it as folder=...; name that folder in the "
        f"environment variable MERCER_DATA; {fetched}"
    )


def _places(folder: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders to look in, best first."""
    if folder is not None:
        return [Path(folder)]
    named = os.environ.get("MERCER_DATA")
    if named:
        return [Path(named), _cache()]
    roots = [Path.cwd()]
    clone = Path(__file__).resolve().parents[3]
    if (clone / "pyproject.toml").is_file():
        roots.append(clone)
    beside = dict.fromkeys(root.parent / "shared" / "data" for root in roots)
    return [*beside, _cache()]


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    if home:
        return Path(home) / "mercer"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "mercer"
    return Path.home() / ".cache" / "mercer"


# --- reading --------------------------------------------------------------------------------------


def _read(name: str, folder: Path) -> Table:
    path = folder / f"{name}.csv.gz"
    header, cells = _cells(path)
    columns = dict(zip(header, cells, strict=True))
    y = columns.pop("y", None)
    split, fold = columns.pop("split", None), columns.pop("fold", None)
    published = folder / f"{name}-splits.csv.gz"
    splits = None
    if published.is_file():
        splits = _flags(published, len(cells[0]))
    elif split is not None:
        splits = _equal(path, "split", split, ["train", "test"])[:, 1:]
    elif fold is not None:
        splits = _equal(path, "fold", fold, [str(i) for i in range(len(set(fold)))])
    names, inputs = [], []
    for column, values in columns.items():
        numbers = _numbers(values)
        if numbers is not None:
            names.append(column)
            inputs.append(numbers)
            continue
        categories = sorted(set(values))
        if len(categories) > _MOST_CATEGORIES:
            raise ValueError(
                f"{path}: column {column!r} is text of {len(categories)} different values; at "
                f"most {_MOST_CATEGORIES} can be categories"
            )
        names.extend(f"{column}={category}" for category in categories)
        inputs.extend(np.array([v == c for v in values], dtype=float) for c in categories)
    if not inputs:
        raise ValueError(f"{path}: there is no column of inputs among {header}")
    X = np.stack(inputs, axis=1)
    y_numbers = None if y is None else _numbers(y)
    target = np.array(y) if y is not None and y_numbers is None else y_numbers
    if not (np.all(np.isfinite(X)) and (y_numbers is None or np.all(np.isfinite(y_numbers)))):
        raise ValueError(f"{path} holds NaN or infinity")
    return _table(name, np.ascontiguousarray(X), target, names, splits)


def _table(
    name: str,
    X: Floats,
    y: NDArray[Any] | None,
    columns: Sequence[str],
    splits: NDArray[np.bool_] | None,
) -> Table:
    size = f"{name}: {X.shape[0]} rows, {X.shape[1]} columns"
    if splits is not None:
        size += f", {splits.shape[1]} published split{'s' if splits.shape[1] > 1 else ''}"
    remark = _REMARKS.get(name)
    description = f"{size}. {remark}" if remark else f"{size}."
    return Table(name, X, y, tuple(columns), splits, description)


def _cells(path: Path) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the header and the columns of a compressed file, every cell as text."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            lines = csv.reader(stream)
            header = next(lines, [])
            rows = list(lines)
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise ValueError(
            f"{path} is not a whole gzip file of comma-separated text: {error}"
        ) from None
    if not header or len(set(header)) != len(header) or not all(header):
        raise ValueError(f"{path}: the first row must name each column once, got {header}")
    if not rows:
        raise ValueError(f"{path}: there are no rows")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header) or not all(row):
            raise ValueError(
                f"{path}, row {number}: {len(header)} values are wanted, none of them empty, "
                f"got {row}"
            )
    return header, list(zip(*rows, strict=True))


def _numbers(values: Sequence[str]) -> Floats | None:
    """Return the values as numbers, or None where one is not."""
    try:
        return np.array(values).astype(float)
    except ValueError:
        return None


def _equal(path: Path, column: str, values: Sequence[str], allowed: list[str]) -> NDArray[np.bool_]:
    """Return whether each value is each of the allowed ones, (n, len(allowed))."""
    masks = np.asarray(np.array(values)[:, None] == np.array(allowed))
    if not np.all(np.any(masks, axis=1)):
        raise ValueError(
            f"{path}: column {column!r} may hold {allowed}, got {sorted(set(values))[:10]}"
        )
    return masks


def _flags(path: Path, n: int) -> NDArray[np.bool_]:
    _, columns = _cells(path)
    if len(columns[0]) != n or not all(set(column) <= {"0", "1"} for column in columns):
        raise ValueError(f"{path} must hold 0 or 1 in each of the {n} rows of its table")
    return np.asarray(np.array(columns).T == "1")
