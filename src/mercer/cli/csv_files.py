"""Reading CSV: UTF-8, a header, and a delimiter of comma, semicolon or tab.

Python's own reader is used because it knows the line each record begins on, and lets ragged lines
and repeated names be seen instead of mended.
"""

from __future__ import annotations

import csv
import io

import numpy as np

from mercer.cli.errors import InputError
from mercer.cli.tables import Table, named_once, unnamed_note

__all__ = ["find_delimiter", "read_csv", "read_record", "refuse_binary"]

_DELIMITERS = (",", ";", "\t")
# How much of a file is looked at to find its delimiter.
_SAMPLE = 1 << 16
_BINARY = {
    b"PAR1": "it is a Parquet file; let its name end in .parquet",
    b"PK\x03\x04": "it is a zip archive or a spreadsheet; export it as CSV",
    b"\x1f\x8b": "it is compressed; unpack it first",
    b"\xff\xfe": "it is in UTF-16; save it as UTF-8",
    b"\xfe\xff": "it is in UTF-16; save it as UTF-8",
}


def read_csv(data: bytes, source: str) -> Table:
    """Return the table that the bytes of a CSV file hold, every column as text."""
    text = _decoded(data, source)
    records, lines = _records(text, source)
    if not records:
        raise InputError(f"{source} is empty; a line with the names of the columns is wanted")
    header, records, lines = [name.strip() for name in records[0]], records[1:], lines[1:]
    if len(header) > 1:  # in a single column an empty line is a missing value
        filled = [i for i, record in enumerate(records) if record]
        records, lines = [records[i] for i in filled], [lines[i] for i in filled]
    else:
        records = [record or [""] for record in records]
    _require_equal_lengths(header, records, lines, source)
    named_once(header, source)
    columns = {}
    for position, name in enumerate(header):
        if name:
            cells = [record[position].strip() or None for record in records]
            columns[name] = np.array(cells, dtype=object)
    unnamed = [position for position, name in enumerate(header, 1) if not name]
    if not columns:
        raise InputError(f"{source}: the first line must hold the names of the columns")
    return Table(source, columns, np.array(lines, dtype=np.int64), notes=unnamed_note(unnamed))


def refuse_binary(data: bytes, source: str, wanted: str = "a CSV file") -> None:
    """Raise InputError for data that begin as other kinds of file do."""
    for start, advice in _BINARY.items():
        if data.startswith(start):
            raise InputError(f"{source} is not {wanted} in UTF-8: {advice}")


def read_record(text: str, delimiter: str) -> list[str]:
    """Return the cells of a record that is one line; raises csv.Error."""
    return [cell.strip() for cell in next(_reader(text, delimiter), [])]


def _decoded(data: bytes, source: str) -> str:
    refuse_binary(data, source)
    if b"\0" in data:
        raise InputError(f"{source} is not a CSV file: it holds binary data")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # offsets are counted behind the mark that some programs begin a file with
        at = error.start + len(data) - len(error.object)
        line = data.count(b"\n", 0, at) + 1
        raise InputError(
            f"{source} is not UTF-8: line {line} has the byte 0x{data[at]:02x}. Save it as "
            "UTF-8; if it is in Latin-1: iconv -f latin1 -t utf-8"
        ) from None


def _records(text: str, source: str) -> tuple[list[list[str]], list[int]]:
    """Return the records and the line each begins on, without empty ones at either end."""
    records: list[list[str]] = []
    lines: list[int] = []
    reader = _reader(text, find_delimiter(text))
    begin = 1
    try:
        for record in reader:
            if records or record:
                records.append(record)
                lines.append(begin)
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{source}: the record that begins on line {begin} cannot be read ({error}); is a "
            "quotation mark not closed?"
        ) from None
    while records and not any(cell.strip() for cell in records[-1]) and len(records[-1]) < 2:
        records.pop()
        lines.pop()
    return records, lines


def _reader(text: str, delimiter: str) -> csv._reader:  # type: ignore[name-defined]
    file = io.StringIO(text, newline="")
    return csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True)


def find_delimiter(text: str) -> str:
    """Return the delimiter that cuts the first lines into most fields, equally many a line."""

    def score(delimiter: str) -> tuple[float, int]:
        widths = []
        try:
            for record in _reader(text[:_SAMPLE], delimiter):
                if record:
                    widths.append(len(record))
        except csv.Error:  # a record cut off by the end of the sample, or damage, met again later
            pass
        if len(text) > _SAMPLE and len(widths) > 1:
            widths.pop()  # cut off too
        if not widths or widths[0] < 2:
            return 0.0, 0
        return widths.count(widths[0]) / len(widths), widths[0]

    return max(_DELIMITERS, key=score)


def _require_equal_lengths(
    header: list[str], records: list[list[str]], lines: list[int], source: str
) -> None:
    wrong = [i for i, record in enumerate(records) if len(record) != len(header)]
    if not wrong:
        return
    first = wrong[0]
    rest, fields = len(wrong) - 1, len(records[first])
    more = f", and {rest} more line{'s differ' if rest > 1 else ' differs'} too" if rest else ""
    raise InputError(
        f"{source}: line {lines[first]} has {fields} field{'s' if fields != 1 else ''} where the "
        f"header has {len(header)}{more}. Text with delimiters in it must stand in quotation marks"
    )
