"""Making files by hand, as an attacker would."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import numpy as np


def canonical(description):
    return json.dumps(description, sort_keys=True, separators=(",", ":")).encode()


def sealed(description):
    """The description with a checksum that fits it, as an attacker would make it."""
    rest = {k: v for k, v in description.items() if k != "sha256"}
    return canonical(rest | {"sha256": hashlib.sha256(canonical(rest)).hexdigest()})


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {i.filename: archive.read(i) for i in archive.infolist()}


def write_zip(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def npy_bytes(array, allow_pickle=False):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def forged(path, tree, arrays):
    """A file whose checksums all fit, whatever is in it."""
    sums = {name: hashlib.sha256(raw).hexdigest() for name, raw in arrays.items()}
    description = {
        "format": "mercer",
        "format_version": 1,
        "mercer_version": "0",
        "functions": [],
        "arrays": sums,
        "tree": tree,
    }
    members = {f"arrays/{name}.npy": raw for name, raw in arrays.items()}
    write_zip(path, members | {"mercer.json": sealed(description)})
