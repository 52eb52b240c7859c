"""Reading Parquet files and frames, through Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.errors import InputError
from mercer.cli.tables import Table, named_once, unnamed_note

__all__ = ["read_parquet", "table_of_frame"]


def read_parquet(path: str) -> Table:
    """Return the table that a Parquet file holds."""
    import pyarrow as pa
    from pyarrow import parquet

    with open(path, "rb") as file:
        try:
            found = parquet.read_table(file)
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"{path} is not a Parquet file, or is damaged: {reason}") from error
    return _table(found, path)


def table_of_frame(frame: Any) -> Table:
    """Return a frame of pandas, polars or Arrow as a table; the index of pandas is left out."""
    import pyarrow as pa

    try:
        if hasattr(frame, "iloc"):
            found = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            found = pa.table(frame.to_arrow() if hasattr(frame, "to_arrow") else frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"a frame of named columns is wanted: {error}") from error
    return _table(found, "the table")


def _table(found: Any, source: str) -> Table:
    named_once(found.column_names, source)
    columns, unreadable, unnamed = {}, {}, []
    for position, name in enumerate(found.column_names, 1):
        if not name.strip() or name.startswith("__index_level_"):  # pandas' index
            unnamed.append(position)
            continue
        values = _values(found.column(name))
        if values is None:
            unreadable[name] = str(found.column(name).type)
        else:
            columns[name] = values
    if not columns:
        raise InputError(f"{source} has no columns that can be used")
    places = np.arange(1, found.num_rows + 1)
    return Table(source, columns, places, "row", unreadable, unnamed_note(unnamed), found)


def _values(column: Any) -> NDArray[Any] | None:
    """Return a column as numbers or text; None for a type that is neither."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        floats = column.cast(pa.float64(), safe=False)
        return np.array(floats.to_numpy(), dtype=np.float64)  # nulls become NaN
    if pa.types.is_boolean(kind):
        shown = {True: "true", False: "false", None: None}
        return _texts([shown[v] for v in column.to_pylist()])
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("us", tz=kind.tz), safe=False)
        return _texts([None if v is None else v.isoformat() for v in column.to_pylist()])
    if pa.types.is_null(kind):
        return _texts([None] * len(column))
    if any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    ):
        return _texts([(v or "").strip() or None for v in column.to_pylist()])
    return None


def _texts(values: list[str | None]) -> NDArray[Any]:
    return np.array(values, dtype=object)
