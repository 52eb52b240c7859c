"""How a column becomes numbers: declarative steps, learned from one table and applied to others.

- number: as it is.
- date: ISO dates and times, as days since 1970-01-01.
- bool: true is 1 and false 0.
- category: one column of 0 and 1 for each text that was seen ("one-hot").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercer.cli import cells
from mercer.cli.errors import InputError, listed, problems_text
from mercer.cli.tables import Table
from mercer.registry import storable

__all__ = ["NamedColumns", "TableColumn", "encode", "learn_columns", "read_numbers"]

Floats = NDArray[np.float64]

_READERS: dict[str, Callable[[NDArray[Any]], Floats]] = {
    "number": cells.numbers,
    "bool": cells.truths,
    "date": cells.days,
}
_WANTED = {
    "number": "numbers",
    "bool": "true or false",
    "date": "ISO dates such as 2024-12-31",
    "category": "text",
}
# 01234 is a code: reading it as a number would make it another one's neighbour.
_CODE = re.compile(r"0\d+", re.ASCII)
# Dates as people write them. Which of 3/4/2024 is the month nobody can tell.
_OTHER_DATE = re.compile(r"(\d{4}([./])\d\d?\2\d\d?|\d\d?([./-])\d\d?\3\d{4})\b.*", re.ASCII)
# More different texts than this, in more than half of the rows, name the rows and group none.
_FEW = 20


@storable
class TableColumn:
    """One column of a table and what is made of it.

    name : its name
    kind : "number", "date", "bool" or "category"
    levels : the texts that a category can have
    """

    def __init__(self, name: str, kind: str, levels: Sequence[str] = ()) -> None:
        if kind not in _WANTED:
            raise ValueError(f"kind must be one of {', '.join(_WANTED)}, got {kind!r}")
        self.name, self.kind, self.levels = str(name), kind, [str(level) for level in levels]

    def to_state(self) -> dict[str, Any]:
        """Return what the constructor takes."""
        return {"name": self.name, "kind": self.kind, "levels": self.levels}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        return cls(**state)

    @property
    def labels(self) -> list[str]:
        """The names of the columns of numbers that are made of it."""
        if self.kind == "category":
            return [f"{self.name}={level}" for level in self.levels]
        return [self.name]

    def describe(self) -> str:
        """Return in a few words what it is made into."""
        if self.kind == "category":
            shown = [repr(level) if "," in level else level for level in self.levels]
            return f"{len(self.levels)} categories ({listed(shown)})"
        return {
            "number": "numbers",
            "bool": "true is 1, false 0",
            "date": "days since 1970-01-01",
        }[self.kind]

    def encode(self, table: Table) -> Floats:
        """Return its columns of numbers, shape (n, k); what is wrong raises InputError."""
        values = table[self.name]
        _refuse_missing(self.name, values, table)
        if self.kind == "category":
            texts = cells.texts(values)
            self._refuse_unseen(texts, table)
            return np.array(texts[:, None] == np.array(self.levels, dtype=object), dtype=float)
        read = _READERS[self.kind](values)
        _refuse_wrong(self.name, self.kind, values, read, table)
        return read[:, None]

    def _refuse_unseen(self, texts: NDArray[Any], table: Table) -> None:
        known = set(self.levels)
        unseen = list(dict.fromkeys(text for text in texts if text not in known))
        if not unseen:
            return
        known_ones = f"it knows {listed([repr(level) for level in self.levels], 10)}. "
        known_ones += "A new one needs a new `mercer fit` to rows that have it"
        if not table.word:
            raise InputError(
                f"column {self.name!r} has {unseen[0]!r}, a category that the model has not seen; "
                f"{known_ones}"
            )
        parts = [f"{text!r} ({table.rows_text(texts == text)})" for text in unseen]
        raise InputError(
            f"column {self.name!r} has categories that the model has not seen: {listed(parts)}; "
            f"{known_ones}"
        )


class NamedColumns:
    """A matrix whose columns have names: as much of a frame as `fit` wants for its warnings."""

    def __init__(self, values: Floats, columns: Sequence[str]) -> None:
        self.values, self.columns, self.shape = values, list(columns), values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, label: str) -> Floats:
        return self.values[:, self.columns.index(label)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)


def encode(columns: Sequence[TableColumn], table: Table) -> Floats:
    """Return all columns as one matrix; one error tells of all that is wrong."""
    absent = [c.name for c in columns if c.name not in table.names]
    if absent:
        hint = table.found_instead_of(absent[0]) if len(absent) == 1 else ""
        raise InputError(
            f"{table.source} lacks the column{'s' if len(absent) > 1 else ''} "
            f"{listed([repr(name) for name in absent], 10)}{hint}"
        )
    return np.hstack(_each(table, [c.encode for c in columns]))


def _each(table: Table, steps: Sequence[Callable[[Table], Any]]) -> list[Any]:
    """Return the results of all steps on a table, or raise one error with all their complaints."""
    done, problems = [], []
    for step in steps:
        try:
            done.append(step(table))
        except InputError as error:
            problems.append(str(error).removeprefix(f"{table.source}: "))
    if problems:
        raise InputError(f"{table.source}: {problems_text(problems)}")
    return done


# --- learning -----------------------------------------------------------------------------------


def learn_columns(
    table: Table, names: Sequence[str], categorical: Collection[str]
) -> tuple[list[TableColumn], list[str], list[str]]:
    """Return the steps for the columns named, those that never vary, which are left out, and notes.

    Notes are of what is not as it seems.
    """

    def learn(name: str) -> Callable[[Table], tuple[TableColumn, _Odd | None]]:
        return lambda t: _learn(t, name, name in categorical)

    found: list[tuple[TableColumn, _Odd | None]] = _each(table, [learn(name) for name in names])
    constant = {c.name for c, _ in found if np.all(table[c.name] == table[c.name][0])}
    notes = [
        f"column {c.name!r} has values such as {odd.shown} and was taken for categories; "
        f"{odd.advice}"
        for c, odd in found
        if odd is not None and c.name not in constant
    ]
    return [c for c, _ in found if c.name not in constant], sorted(constant), notes


class _Odd(NamedTuple):
    """A value that makes categories of what was perhaps meant otherwise."""

    shown: str
    advice: str


def _odd_value(values: NDArray[Any]) -> _Odd | None:
    """Return a value with zeros in front, of a column of numbers, or a date that is not ISO's."""
    if values.dtype != object:
        return None
    code = next((text for text in values if _CODE.fullmatch(text)), None)
    if code is not None and np.isnan(cells.numbers(values)).mean() < 0.5:
        advice = "written without the zeros they are numbers"
        return _Odd(f"{code!r}, with zeros in front,", advice)
    dates = [text for text in values if _OTHER_DATE.fullmatch(text)]
    if len(dates) > 0.5 * len(values):
        return _Odd(repr(dates[0]), "written as 2024-12-31 they are dates")
    return None


def _learn(table: Table, name: str, categorical: bool) -> tuple[TableColumn, _Odd | None]:
    """Find out what a column holds, and which value kept it from being numbers or dates."""
    values = table[name]
    _refuse_missing(name, values, table)
    odd = None if categorical else _odd_value(values)
    if not categorical:
        if values.dtype != object:
            _refuse_wrong(name, "number", values, values, table)
            return TableColumn(name, "number"), None
        for kind, reader in _READERS.items():
            if kind == "number" and odd is not None:
                continue
            read = reader(values)
            wrong = np.isnan(read)
            # A column that is mostly numbers is one of numbers with mistakes in it.
            commas = kind == "number" and _has_decimal_comma(values[wrong], all_of_them=True)
            if wrong.mean() < 0.5 or commas:
                _refuse_wrong(name, kind, values, read, table, learning=True)
                return TableColumn(name, kind), None
    levels = sorted(set(cells.texts(values)))
    n = len(values)
    if not categorical and n > 2 and (len(levels) == n or len(levels) > max(_FEW, n / 2)):
        raise InputError(
            f"column {name!r} has {len(levels)} different texts in {n} rows, which name the rows "
            f"rather than group them; leave it out with --drop, or keep it with --categorical"
            + (f"; {odd.advice}" if odd is not None else "")
        )
    return TableColumn(name, "category", levels), odd


def read_numbers(table: Table, name: str) -> Floats:
    """Return a column that must be numbers, such as the target."""
    _refuse_missing(name, table[name], table, needed=True)
    return TableColumn(name, "number").encode(table)[:, 0]


# --- refusing -----------------------------------------------------------------------------------


def _refuse_missing(name: str, values: NDArray[Any], table: Table, needed: bool = False) -> None:
    """Raise InputError if values are missing; a column that is `needed` cannot be left out."""
    lost = cells.missing(values)
    if not lost.any():
        return
    if lost.all() and len(lost) == 1:
        raise InputError(f"there is no value in column {name!r}, and none may be missing")
    if lost.all():
        raise InputError(f"column {name!r} has no values at all")
    shown = sorted({text for text in values[lost] if isinstance(text, str)})
    written = f" (written {listed([repr(text) for text in shown])})" if shown else ""
    raise InputError(
        f"column {name!r} has missing values in {table.rows_text(lost)}{written}; fill them in, "
        f"or leave out these rows{'' if needed else ' or this column'}"
    )


def _refuse_wrong(
    name: str,
    kind: str,
    values: NDArray[Any],
    read: Floats,
    table: Table,
    learning: bool = False,
) -> None:
    wrong = ~np.isfinite(read)
    if not wrong.any():
        return
    parts = [
        f"{value!r} in {table.word} {place}" if table.word else repr(value)
        for value, place in zip(values[wrong].tolist(), table.places[wrong], strict=True)
    ]
    text = f"column {name!r} must hold {_WANTED[kind]}, but has {listed(parts)}"
    if kind == "number" and _has_decimal_comma(values[wrong]):
        text += "; a decimal point is wanted, not a comma"
    if learning:
        text += "; if these are codes or names, give --categorical with the column's name"
    raise InputError(text)


def _has_decimal_comma(values: NDArray[Any], all_of_them: bool = False) -> bool:
    """Whether what has a comma is a number with a point in its place; and, if asked, all has."""
    texts = [v for v in values if isinstance(v, str) and "," in v]
    if all_of_them and len(texts) < len(values):
        return False
    swapped = np.array([v.replace(",", ".") for v in texts], dtype=object)
    return bool(texts) and bool(np.isfinite(cells.numbers(swapped)).all())
