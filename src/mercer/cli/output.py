"""Writing files whole or not at all, and never over others unless told to."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mercer.cli.errors import InputError, listed
from mercer.cli.tables import SUFFIXES, Table

__all__ = ["published", "require_table_name", "require_writable", "write_table"]


def require_writable(path: str, force: bool, *inputs: str) -> None:
    """Raise InputError at once if a file could not be written in the end.

    Nor is one of the inputs ever replaced, whatever `force` says.
    """
    target = Path(path)
    for source in inputs:
        if target.exists() and Path(source).exists() and target.samefile(source):
            raise InputError(f"{path} is what is read; the output wants a name of its own")
    if target.is_dir():
        raise InputError(f"{path} is a folder; the name of a file is wanted")
    if target.exists() and not force:
        raise InputError(f"{path} exists; --force replaces it")
    if not target.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {target.parent}")
    if not os.access(os.path.realpath(target.parent), os.W_OK):
        raise InputError(f"{path} cannot be written: the folder {target.parent} is read-only")


@contextlib.contextmanager
def published(path: str, force: bool) -> Iterator[str]:
    """Yield the name of a scratch file that becomes `path` if all goes well, and vanishes if not.

    Whoever looks at `path` finds what was there, or all of what is new.
    """
    require_writable(path, force)
    target = Path(os.path.realpath(path))
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield str(scratch)
        if force:
            os.replace(scratch, target)
        else:
            _move_to_new(scratch, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch)


def _move_to_new(scratch: Path, target: Path) -> None:
    """Give a file its name, unless another has taken it in the meantime."""
    try:
        os.link(scratch, target)  # fails if the name is taken; a rename would not
    except FileExistsError:
        raise InputError(f"{target} has come into being meanwhile; --force replaces it") from None
    except OSError:  # a file system without links
        require_writable(str(target), force=False)
        os.replace(scratch, target)


def require_table_name(path: str) -> None:
    """Raise InputError if the end of a name tells no kind of table."""
    if path != "-" and Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path}: the output is a table, so its name must end in "
            f"{listed(list(SUFFIXES), 9).replace(' and ', ' or ')}"
        )


def write_table(path: str, new: Mapping[str, Any], force: bool, kept: Table | None = None) -> None:
    """Write new arrays, behind the columns of a table that is kept; "-" is standard output."""
    columns: dict[str, Any] = {}
    if kept is not None:
        columns = dict(_kept(kept))
        twice = [repr(name) for name in new if name in columns]
        if twice:
            raise InputError(
                f"{kept.source} has columns called {listed(twice)} already; without --keep they "
                "are not in the way"
            )
    columns.update(new)
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(_csv(columns, ",").encode())
        return
    with published(path, force) as scratch:
        suffix = Path(path).suffix.lower()
        if SUFFIXES[suffix] == "parquet":
            _write_parquet(scratch, columns)
        else:
            text = _csv(columns, "\t" if suffix == ".tsv" else ",")
            Path(scratch).write_text(text, encoding="utf-8", newline="")


def _kept(table: Table) -> Iterable[tuple[str, Any]]:
    if table.arrow is None:
        return table.columns.items()
    return zip(table.arrow.column_names, table.arrow.columns, strict=True)


def _csv(columns: Mapping[str, Any], delimiter: str) -> str:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_cells(values) for values in columns.values()), strict=True))
    return file.getvalue()


def _cells(values: Any) -> list[Any]:
    """Return a column as the writer takes it: numbers in full, an empty cell for none."""
    return values.to_pylist() if hasattr(values, "to_pylist") else list(values.tolist())


def _write_parquet(path: str, columns: Mapping[str, Any]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    arrays = {name: _arrow(values) for name, values in columns.items()}
    parquet.write_table(pa.table(arrays), path)


def _arrow(values: Any) -> Any:
    """Return a column for Arrow; text from a CSV file as numbers where that loses nothing."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray) or values.dtype != object:
        return values
    texts = pa.array(values, pa.string())
    if texts.null_count < len(texts):
        with contextlib.suppress(pa.ArrowInvalid):
            whole = texts.cast(pa.int64())
            if whole.cast(pa.string()).equals(texts):  # not so for codes such as 007
                return whole
            return texts
        with contextlib.suppress(pa.ArrowInvalid):
            return texts.cast(pa.float64())
    return texts
