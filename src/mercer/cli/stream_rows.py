"""From a line of a stream to the numbers of a row.

Cells mean what they mean in a table. What is as it should be is read cell by cell; for anything
else the row is made a table of one row, whose readers say what is wrong with it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.cli import cells
from mercer.cli.columns import TableColumn, encode, read_numbers
from mercer.cli.csv_files import find_delimiter, read_record, refuse_binary
from mercer.cli.errors import InputError, listed
from mercer.cli.model import TableModel
from mercer.cli.stream_lines import LONGEST
from mercer.cli.tables import Table, is_number, named_once

__all__ = ["Row", "RowReader"]

SOURCE = "standard input"
# What a row is called where something is wrong with it.
_ROW = "the row"
_READERS: dict[str, Callable[[str], float]] = {
    "number": cells.number,
    "date": cells.day,
    "bool": cells.truth,
}
_JSON_TYPES: dict[type, str] = {dict: "an object", list: "an array"}


class Row(NamedTuple):
    """A row of a stream.

    x : (1, d) the encoded inputs
    y : the target, a number or one of the classes; None if the row has none
    weight : the power of its likelihood
    """

    x: NDArray[np.float64]
    y: Any
    weight: float


class RowReader:
    """Reads the lines of a stream, whose format the first one tells if it is not given.

    Parameters
    ----------
    model : TableModel
        What the rows are for.
    form : {"auto", "json", "csv"}
        The format.
    """

    def __init__(self, model: TableModel, form: str) -> None:
        self.model, self.form = model, form
        self.names: list[str] | None = None
        self._delimiter = ","
        self._width = sum(len(c.labels) for c in model.columns)
        self._fillers: list[tuple[str, Callable[[Any, Any], None]]] = []
        start = 0
        for column in model.columns:
            self._fillers.append((column.name, _filler(column, start)))
            start += len(column.labels)
        self._weights = model.summary.get("weights")
        self._classes: dict[str, Any] = {}
        if model.of_classes:
            found = model.estimator.classes_.tolist()
            self._classes = {_text(_cell(label)): label for label in found}

    def begin(self, line: bytes) -> bool:
        """Find the format and the names of the columns; return whether the line was a header."""
        refuse_binary(line, SOURCE, "CSV or JSON")
        text = line.removeprefix(b"\xef\xbb\xbf").strip()
        if self.form == "auto":
            self.form = "json" if text[:1] in (b"{", b"[") else "csv"
        if self.form == "json":
            return False
        header = _decoded(line.removeprefix(b"\xef\xbb\xbf"))
        self._delimiter = find_delimiter(header)
        names = _record(header, self._delimiter)
        named_once(names, SOURCE)
        table = _named([name for name in names if name])
        absent = [c.name for c in self.model.columns if c.name not in table.columns]
        if absent:
            shown = listed([repr(name) for name in absent], 10)
            hint = table.found_instead_of(absent[0]) if len(absent) == 1 else ""
            if any(is_number(name) for name in names):
                hint = "; is it a row? The header must be the first line, also with --resume"
            raise InputError(
                f"the first line lacks the column{'s' if len(absent) > 1 else ''} {shown} of the "
                f"model{hint}"
            )
        self.names = names
        return True

    def read(self, line: bytes, number: int) -> Row | None:
        """Return the row that a line holds; None for an empty line; raises InputError.

        The number of the line is what the error says.
        """
        if len(line) > LONGEST:
            raise InputError(f"it is longer than {LONGEST} bytes")
        if not line or line.isspace():
            return None
        text = _decoded(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
        found = self._json(text) if self.form == "json" else self._csv(text)
        x = np.zeros((1, self._width))
        out = x[0]
        try:
            for name, fill in self._fillers:
                fill(found[name], out)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            x = self._encoded(found, number)
        return Row(x, self._target(found, number), self._weight(found, number))

    def ignored(self, line: bytes) -> list[str]:
        """Return the columns that the first line names and the model has no use for."""
        if self.names is None:
            names = list(self._json(_decoded(line)))
        else:
            names = [name for name in self.names if name]
        return self.model.ignored(_named(names))

    def _csv(self, text: str) -> dict[str, Any]:
        assert self.names is not None
        record = _record(text, self._delimiter)
        if len(record) != len(self.names):
            raise InputError(
                f"it has {len(record)} field{'s' if len(record) != 1 else ''} where the header has "
                f"{len(self.names)}. Text with delimiters in it must stand in quotation marks"
            )
        return {n: c or None for n, c in zip(self.names, record, strict=True) if n}

    def _json(self, text: str) -> dict[str, Any]:
        try:
            found = json.loads(text, object_pairs_hook=_once)
        except InputError:
            raise
        except RecursionError:
            raise InputError("it is nested too deeply") from None
        except json.JSONDecodeError as error:
            reason = f"{error.msg[:1].lower()}{error.msg[1:]}, at character {error.pos + 1}"
            raise InputError(f"it is not JSON: {reason}") from None
        except ValueError as error:  # an integer of thousands of digits
            raise InputError(f"it is not JSON that can be read: {error}") from None
        if not isinstance(found, dict):
            raise InputError(
                'it is not a JSON object, such as {"x": 1.5, "colour": "red"}, one on each line'
            )
        return {name: _cell(value) for name, value in found.items()}

    def _target(self, found: dict[str, Any], number: int) -> Any:
        name = self.model.target
        value = found.get(name)
        if _is_missing(value):
            return None
        if not self._classes:
            return self._number(found, name, "target", number)
        text = _text(value)
        if text in self._classes:
            return self._classes[text]
        if isinstance(value, _Unreadable):
            self._number(found, name, "target", number)
        known = listed([repr(label) for label in self._classes], 10)
        raise InputError(
            f"the target, column {name!r}, is {text!r}, a class that the model does not know; it "
            f"knows {known}, those of the table that it was fitted to. A new class needs a new "
            "`mercer fit`, of a table in which it occurs"
        )

    def _weight(self, found: dict[str, Any], number: int) -> float:
        if self._weights is None or _is_missing(found.get(self.model.target)):
            return 1.0
        weight = self._number(found, self._weights, "weights", number)
        if weight < 0:
            raise InputError(f"column {self._weights!r} holds weights, and has {weight:g}")
        return weight

    def _number(self, found: dict[str, Any], name: str, role: str, number: int) -> float:
        value = found.get(name)
        if type(value) is float and math.isfinite(value):
            return value
        if type(value) is str:
            try:
                read = cells.number(value)
                if math.isfinite(read):
                    return read
            except (ValueError, OverflowError):
                pass
        try:
            return float(read_numbers(self._table(found, number), name)[0])
        except InputError as error:
            text = str(error).removeprefix(f"{_ROW}: ")
            raise InputError(f"the {role}, {text}") from None

    def _encoded(self, found: dict[str, Any], number: int) -> NDArray[np.float64]:
        try:
            return encode(self.model.columns, self._table(found, number))
        except InputError as error:  # whoever shows it names the line
            raise InputError(str(error).removeprefix(f"{_ROW}: ")) from None

    def _table(self, found: dict[str, Any], number: int) -> Table:
        """Return the row as a table, which knows how to complain."""
        columns, unreadable = {}, {}
        for name, value in found.items():
            if isinstance(value, _Unreadable):
                unreadable[name] = value.kind
            else:
                dtype = float if isinstance(value, float) else object
                columns[name] = np.array([value], dtype=dtype)
        return Table(_ROW, columns, np.array([number]), word="", unreadable=unreadable)


class _Unreadable:
    """A value of a type that no cell of a table has."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


def _filler(column: TableColumn, start: int) -> Callable[[Any, Any], None]:
    """Return what puts a cell into its places of a row; it raises what `read` listens for."""
    if column.kind == "category":
        places = {level: start + i for i, level in enumerate(column.levels)}

        def mark(cell: Any, out: Any) -> None:
            out[places[_text(cell)]] = 1.0

        return mark
    reader = _READERS[column.kind]
    takes_floats = column.kind == "number"

    def fill(cell: Any, out: Any) -> None:
        value = cell if takes_floats and type(cell) is float else reader(cell)
        if not math.isfinite(value):
            raise ValueError(cell)
        out[start] = value

    return fill


def _cell(value: Any) -> Any:
    """Return a value of JSON as the cell of a table would be: a float, a text, or None."""
    kind = type(value)
    if kind is float:
        return value
    if kind is str:
        return value.strip() or None
    if kind is int:
        try:
            return float(value)
        except OverflowError:
            return math.copysign(math.inf, value)
    if value is None:
        return None
    if kind is bool:
        return "true" if value else "false"
    return _Unreadable(_JSON_TYPES.get(kind, kind.__name__))


def _text(cell: Any) -> Any:
    return cells.text_of(cell) if type(cell) is float else cell


def _is_missing(value: Any) -> bool:
    if type(value) is str:
        return value.lower() in cells.MISSING
    return value is None or (type(value) is float and value != value)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"it has more than one value called {twice!r}")
    return found


def _record(text: str, delimiter: str) -> list[str]:
    try:
        return read_record(text, delimiter)
    except csv.Error as error:
        raise InputError(
            f"it cannot be read ({error}); is a quotation mark not closed? A row of a stream is "
            "one line, without line breaks in its cells"
        ) from None


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise InputError(f"it is not UTF-8: byte {error.start + 1} is 0x{byte:02x}") from None


def _named(names: Sequence[str]) -> Table:
    """Return a table of columns with these names, and no rows."""
    none = np.empty(0, dtype=object)
    return Table(SOURCE, dict.fromkeys(names, none), np.empty(0, dtype=np.int64))
