"""Predictions of a stream, written line by line as they are made."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import stat
import sys
from collections.abc import Sequence
from typing import IO, Any

__all__ = ["RowWriter"]


class RowWriter:
    """Writes a row for each prediction, and lets it be seen at once.

    Parameters
    ----------
    form : {"json", "csv"}
        The format.
    names : sequence of str
        What the columns are called, behind the number of the line.
    stream : binary file
        Where to. A CSV file that has rows already is given no header again.
    """

    def __init__(self, form: str, names: Sequence[str], stream: IO[bytes] | None = None) -> None:
        self._stream = sys.stdout.buffer if stream is None else stream
        self._text = self._json if form == "json" else self._csv
        self._keys = [json.dumps(name, ensure_ascii=False) for name in ("line", *names)]
        if form == "csv" and not _has_rows(self._stream):
            self._write(self._csv(("line", *names)))

    def write(self, line: int, values: Sequence[Any]) -> None:
        """Write the prediction of the row in this line."""
        self._write(self._text((line, *values)))

    def _write(self, text: str) -> None:
        self._stream.write(text.encode())
        self._stream.flush()

    def _json(self, values: Sequence[Any]) -> str:
        parts = [f"{k}: {_json_text(v)}" for k, v in zip(self._keys, values, strict=True)]
        return "{" + ", ".join(parts) + "}\n"

    def _csv(self, values: Sequence[Any]) -> str:
        file = io.StringIO(newline="")
        csv.writer(file, lineterminator="\n").writerow(values)
        return file.getvalue()


def _json_text(value: Any) -> str:
    if type(value) is float:
        return repr(value) if math.isfinite(value) else "null"  # JSON has no infinities
    return json.dumps(value, ensure_ascii=False)


def _has_rows(stream: IO[bytes]) -> bool:
    try:
        found = os.fstat(stream.fileno())
    except OSError:  # which io.UnsupportedOperation is
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0
