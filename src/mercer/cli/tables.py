"""Tables as they come from files: named columns, and where each row stands.

A column is an array of float64 (NaN is missing) or of text (None is missing). Text is what a CSV
file has; columns of other types, such as dates and truth values, are turned into the text that a
CSV file would hold, so that both kinds of file mean the same.
"""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.errors import InputError, listed

__all__ = ["SUFFIXES", "Table", "is_number", "named_once", "read_table", "table_of", "unnamed_note"]

SUFFIXES = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}
# What writes the text of a compressed file, by the end of its name.
_UNPACK = {".gz": "zcat", ".bz2": "bzcat", ".xz": "xzcat", ".zst": "zstdcat", ".zip": ""}


@dataclass(frozen=True)
class Table:
    """Columns by name.

    source : what to call the table in messages
    columns : the columns that can be used
    places : (n,) the number of each row, as people count in that kind of file
    word : what such a number counts, "line" or "row"; "" of a single row whose place is known
    unreadable : columns of types that are not taken, by name
    notes : sentences about what was passed over
    arrow : the table as Arrow has it, where it came so
    """

    source: str
    columns: dict[str, NDArray[Any]]
    places: NDArray[np.int64]
    word: str = "line"
    unreadable: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    arrow: Any = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def names(self) -> list[str]:
        """The names of all columns, those that cannot be read included."""
        return [*self.columns, *self.unreadable]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column, or say what there is instead."""
        if name in self.unreadable:
            raise InputError(
                f"{self.source}: column {name!r} holds values of type {self.unreadable[name]}; "
                "numbers, text, true or false, and dates are taken"
            )
        if name not in self.columns:
            raise InputError(f"{self.source} has no column {name!r}{self.instead_of(name)}")
        return self.columns[name]

    def instead_of(self, name: str) -> str:
        """Return what to add to a message about a column that someone names and is not there."""
        close = self._close_to(name)
        return self._columns_text() if close is None else f"; did you mean {close!r}?"

    def found_instead_of(self, name: str) -> str:
        """Return what to add to a message about a column that a model wants and is not there."""
        close = self._close_to(name)
        if close is None:
            return self._columns_text()
        return f"; it has {close!r}, and a name must be the same, letter for letter"

    def _close_to(self, name: str) -> str | None:
        close = difflib.get_close_matches(name.lower(), [n.lower() for n in self.names], n=1)
        return next((n for n in self.names if close and n.lower() == close[0]), None)

    def _columns_text(self) -> str:
        text = f"; its columns are {listed([repr(n) for n in self.names], 10)}"
        if all(is_number(n) for n in self.names):
            text += ". The first line must hold the names of the columns"
        return text

    def rows_text(self, which: NDArray[Any]) -> str:
        """Return "line 3" or "lines 3, 4 and 9 more" for a mask or numbers of rows."""
        places = [str(p) for p in self.places[which]]
        return f"{self.word}{'s' if len(places) > 1 else ''} {listed(places)}"


def read_table(path: str) -> Table:
    """Read a table by the suffix of its name; "-" is CSV from standard input."""
    if path == "-":
        from mercer.cli.csv_files import read_csv

        return read_csv(sys.stdin.buffer.read(), "standard input")
    suffix = Path(path).suffix.lower()
    kind = SUFFIXES.get(suffix)
    if kind is None:
        unpack = _UNPACK.get(suffix)
        if unpack is None:
            raise InputError(
                f"{path}: the end of the name must say what kind of table it is, one of "
                f"{listed(list(SUFFIXES), 9)}"
            )
        inner = SUFFIXES.get(Path(path).with_suffix("").suffix.lower())
        piped = (
            f", or give - for its name and pipe it in: {unpack} {shlex.quote(path)} | mercer ..."
        )
        raise InputError(
            f"{path}: compressed files are not read; unpack it first"
            + (piped if unpack and inner == "csv" else "")
        )
    if kind == "parquet":
        from mercer.cli.parquet_files import read_parquet

        return read_parquet(path)
    from mercer.cli.csv_files import read_csv

    return read_csv(Path(path).read_bytes(), path)


def table_of(data: Any) -> Table:
    """Return a frame of pandas, polars or Arrow as a table; a table is returned as it is."""
    if isinstance(data, Table):
        return data
    from mercer.cli.parquet_files import table_of_frame

    return table_of_frame(data)


def named_once(names: Sequence[str], source: str) -> None:
    """Raise InputError if a name stands twice."""
    seen: dict[str, list[str]] = {}
    for position, name in enumerate(names, 1):
        if name:
            seen.setdefault(name, []).append(str(position))
    twice = [f"{n!r} (columns {listed(p)})" for n, p in seen.items() if len(p) > 1]
    if twice:
        raise InputError(f"{source} has more than one column called {listed(twice)}")


def is_number(text: str) -> bool:
    """Whether a text is that of a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def unnamed_note(positions: Sequence[int]) -> list[str]:
    """Return the note about columns that have no name, if there are any."""
    shown = listed([str(p) for p in positions])
    if len(positions) > 1:
        return [f"columns {shown} have no name and were left out"]
    return [f"column {shown} has no name and was left out"] if positions else []
