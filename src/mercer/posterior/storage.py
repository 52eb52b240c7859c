"""One file for any storable object: arrays and a JSON description in a zip, without pickle.

A file holds ``mercer.json`` and one ``arrays/<name>.npy`` for each array, all uncompressed. The
description has the object's tree (see `mercer.registry`), the SHA-256 of every array member and
one of itself. Reading builds registered classes only and never runs anything the file brings;
whatever does not fit raises :class:`mercer.errors.StorageError`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import struct
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mercer.errors import StorageError
from mercer.registry import decode, encode

__all__ = ["FORMAT_VERSION", "load", "save"]

FORMAT_VERSION = 1

_DESCRIPTION = "mercer.json"
_ARRAY_MEMBER = re.compile(r"arrays/([A-Za-z0-9_]+)\.npy")
_KINDS = "biufcUSmM"
_LARGEST_HEADER = 10_000
# Fixed, so that the same object makes the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
# What `zipfile` raises on files that are damaged or were never its own.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    UnicodeDecodeError,
    ValueError,
    KeyError,
)


def save(obj: Any, path: str | os.PathLike[str]) -> None:
    """Write a storable object to one file, replacing it in one step if it exists.

    Parameters
    ----------
    obj : storable
        A posterior, an estimator, a kernel, or a list or dictionary of such things. Of a
        scikit-learn pipeline, save the steps that are Mercer's: ``save(pipeline[-1], path)``.
    path : path
        Where to write. Whoever reads the file at any moment finds the old one or the new one.

    Raises
    ------
    ValueError
        Where a part of the object cannot be stored, such as a function without a name.
    OSError
        Where the file cannot be written, such as FileNotFoundError in a folder that is not there.
    """
    target = Path(os.path.realpath(path))
    _check_place(os.fspath(path), target)
    encoded = encode(obj)
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(scratch, "xb") as file:
            _write(file, encoded.tree, encoded.arrays, encoded.functions)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        if isinstance(error, OSError) and error.filename is not None:  # one nobody has heard of
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise
    _sync_folder(target.parent)


def load(
    path: str | os.PathLike[str], objects: Mapping[str, Callable[..., Any]] | None = None
) -> Any:
    """Read what :func:`save` wrote.

    Parameters
    ----------
    path : path
        The file.
    objects : mapping of str to function, optional
        The functions that the object was made with, by name: a file holds only the names.

    Raises
    ------
    StorageError
        Where the file is not one of Mercer's, is damaged, comes from a newer version, or needs a
        function that `objects` does not have.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                members = _checked_members(archive, size)
                description = _read_description(archive, members)
                arrays = _read_arrays(archive, members, description["arrays"])
            return decode(description["tree"], arrays, objects)
        except StorageError as error:
            raise StorageError(f"{os.fspath(path)}: {error}") from error.__cause__
        except _ZIP_ERRORS as error:
            raise StorageError(
                f"{os.fspath(path)} is not a Mercer file, or is damaged: {error}"
            ) from error


# --- writing ----------------------------------------------------------------------------------


def _check_place(path: str, target: Path) -> None:
    """Refuse a place that no file can be written to, by the name that the caller knows."""
    folder = target.parent
    if not folder.is_dir():
        text = f"cannot save: the folder {str(folder)!r} does not exist"
        raise FileNotFoundError(errno.ENOENT, text, path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "cannot save: a folder has this name", path)


class _Hashing:
    """Passes what is written on to a file, and knows its SHA-256."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self._file.write(data)


def _write(
    file: IO[bytes], tree: Any, arrays: Mapping[str, NDArray[Any]], functions: list[str]
) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        sums = {}
        for name, array in arrays.items():
            if array.dtype.kind not in _KINDS:
                raise ValueError(f"an array of dtype {array.dtype} cannot be saved")
            info = zipfile.ZipInfo(f"arrays/{name}.npy", _DATE)
            with archive.open(info, "w", force_zip64=True) as member:
                hashing = _Hashing(member)
                npy.write_array(hashing, array, allow_pickle=False)
            sums[name] = hashing.hash.hexdigest()
        description = {
            "format": "mercer",
            "format_version": FORMAT_VERSION,
            "mercer_version": _version(),
            "functions": functions,
            "arrays": sums,
            "tree": tree,
        }
        description["sha256"] = _self_sum(description)
        archive.writestr(zipfile.ZipInfo(_DESCRIPTION, _DATE), _canonical(description))


def _version() -> str:
    # The package as a whole stands above this module, which must not import it.
    return str(getattr(sys.modules.get("mercer"), "__version__", "unknown"))


def _canonical(description: dict[str, Any]) -> bytes:
    return json.dumps(
        description, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True
    ).encode("ascii")


def _self_sum(description: dict[str, Any]) -> str:
    rest = {k: v for k, v in description.items() if k != "sha256"}
    return hashlib.sha256(_canonical(rest)).hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make the new name itself outlive a power cut, where the system can do that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# --- reading ----------------------------------------------------------------------------------


def _checked_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, once there is nothing in the zip that `save` does not write."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename
        if name != _DESCRIPTION and not _ARRAY_MEMBER.fullmatch(name):
            raise StorageError(f"not a Mercer file: it has a member {name[:80]!r}")
        if name in members:
            raise StorageError(f"not a Mercer file: it has two members {name!r}")
        if info.flag_bits & 0x1 or info.compress_type != zipfile.ZIP_STORED:
            raise StorageError(f"not a Mercer file: its member {name!r} is compressed or encrypted")
        if info.compress_size != info.file_size:
            raise StorageError(f"damaged: its member {name!r} has two different sizes")
        members[name] = info
    if sum(info.file_size for info in members.values()) > size:
        raise StorageError("damaged: its members are larger than the file")
    if _DESCRIPTION not in members:
        raise StorageError(f"not a Mercer file: it has no {_DESCRIPTION}")
    return members


def _read_description(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]
) -> dict[str, Any]:
    raw = archive.read(members[_DESCRIPTION])
    try:
        description = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"damaged: {_DESCRIPTION} is not JSON") from error
    if not isinstance(description, dict) or description.get("format") != "mercer":
        raise StorageError(f"not a Mercer file: {_DESCRIPTION} does not say so")
    version = description.get("format_version")
    if type(version) is not int or version < 1:
        raise StorageError(f"damaged: it has the format version {version!r}")
    if version > FORMAT_VERSION:
        raise StorageError(
            f"it has format {version}, written by Mercer {description.get('mercer_version')!r}; "
            f"Mercer {_version()} reads formats up to {FORMAT_VERSION}: update Mercer"
        )
    try:
        intact = description.get("sha256") == _self_sum(description)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"damaged: {_DESCRIPTION} is nested too deeply") from error
    if not intact:
        raise StorageError(f"damaged: the checksum of {_DESCRIPTION} does not fit")
    sums = description.get("arrays")
    if not isinstance(sums, dict) or "tree" not in description:
        raise StorageError(f"damaged: {_DESCRIPTION} is incomplete")
    expected = {_DESCRIPTION, *(f"arrays/{name}.npy" for name in sums)}
    if expected != set(members):
        odd = sorted(expected ^ set(members))
        raise StorageError(f"damaged: these members are missing or unexpected: {odd[:5]}")
    return description


def _read_arrays(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], sums: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    arrays = {}
    for name, expected in sums.items():
        raw = archive.read(members[f"arrays/{name}.npy"])
        if hashlib.sha256(raw).hexdigest() != expected:
            raise StorageError(f"damaged: the checksum of array {name!r} does not fit")
        arrays[name] = _array(name, raw)
    return arrays


def _array(name: str, raw: bytes) -> NDArray[Any]:
    """Return the array of an npy member; its header is judged before anything is allocated."""
    stream = io.BytesIO(raw)
    try:
        version = npy.read_magic(stream)
        readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        if version not in readers:
            raise ValueError(f"npy version {version}")
        shape, fortran, dtype = readers[version](stream, max_header_size=_LARGEST_HEADER)
    except Exception as error:  # the header is a Python literal, wrong in any way it likes
        raise StorageError(f"damaged: array {name!r} has no readable header") from error
    if dtype.hasobject or dtype.kind not in _KINDS:
        raise StorageError(f"array {name!r} has dtype {dtype}, which is not read")
    start = stream.tell()
    if dtype.itemsize * math.prod(shape) != len(raw) - start:
        raise StorageError(f"damaged: array {name!r} has not the size that it declares")
    if any(k < 0 for k in shape):
        raise StorageError(f"damaged: array {name!r} has shape {shape}")
    flat = np.frombuffer(raw, dtype=dtype, offset=start) if len(raw) > start else np.empty(0, dtype)
    # A copy can be written to, and is aligned.
    return flat.copy().reshape(shape, order="F" if fortran else "C")
