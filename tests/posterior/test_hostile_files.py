"""Files that are damaged, foreign or forged: an error, and never anything else."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.errors import StorageError
from mercer.posterior import Dense, InverseTriangular, Posterior, load, save, storage

from .forged_files import forged, members_of, npy_bytes, sealed, write_zip


@pytest.fixture
def file(tmp_path, naive):
    path = tmp_path / "model.mercer"
    naive.Exact(0, P=2, linear=True).posterior.save(path)
    return path


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    folder = tmp_path / "no" / "folder"
    with pytest.raises(FileNotFoundError) as caught:
        save(1, folder / "model")
    text = str(caught.value)
    assert f"the folder {str(folder)!r} does not exist" in text
    assert str(folder / "model") in text and ".tmp" not in text


def test_places_that_no_file_can_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match=r"the folder .*file' does not exist.*file/model"):
        save(1, tmp_path / "file" / "model")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"a folder has this name.*folder'$"):
        save(1, tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_errors_of_the_system_name_the_file_that_was_asked_for(tmp_path, monkeypatch):
    def refuse(source, target):
        raise PermissionError(13, "Permission denied", str(source), None, str(target))

    monkeypatch.setattr(storage.os, "replace", refuse)
    with pytest.raises(PermissionError) as caught:
        save(1, tmp_path / "model")
    assert str(caught.value) == f"[Errno 13] Permission denied: {str(tmp_path / 'model')!r}"
    assert os.listdir(tmp_path) == []


def test_what_is_not_mercers_is_refused_with_a_way_out(tmp_path, naive):
    scaled = make_pipeline(StandardScaler(), Ridge()).fit([[0.0], [1.0]], [0.0, 1.0])
    for thing in (scaled, scaled[-1], {"model": scaled}):
        with pytest.raises(ValueError, match=r"cannot be saved.*save\(pipeline\[-1\], path\)"):
            save(thing, tmp_path / "model")

    class Own(Posterior):
        pass

    p = naive.Exact(0).posterior
    with pytest.raises(ValueError, match=r"type Own cannot be saved.*storable"):
        save(Own(p.basis, p.alpha, p.A), tmp_path / "model")
    with pytest.raises(ValueError, match=r"type object cannot be saved.*dictionary of these$"):
        save(object(), tmp_path / "model")
    assert os.listdir(tmp_path) == []


def same(a, b, X):
    return np.array_equal(a.mean(X), b.mean(X)) and np.array_equal(a.var(X), b.var(X))


def test_no_flipped_byte_changes_what_is_read(file, naive):
    # A flip is caught, or is in a place (a date, a flag) that carries nothing.
    original, raw = load(file), file.read_bytes()
    X = np.ones((2, 2))
    caught = 0
    positions = range(0, len(raw), 11)
    for position in positions:
        damaged = bytearray(raw)
        damaged[position] ^= 0x5A
        file.write_bytes(damaged)
        try:
            back = load(file)
        except StorageError:
            caught += 1
        else:
            assert same(original, back, X)
    assert caught > 0.8 * len(positions)


def test_damage_in_each_region_is_named(file):
    raw = file.read_bytes()
    for region in (b"arrays/array0.npy", b"NUMPY", b'"tree"', b'"format"', b"PK\x05\x06"):
        damaged = bytearray(raw)
        damaged[raw.index(region) + 1] ^= 0xFF
        file.write_bytes(damaged)
        with pytest.raises(StorageError, match=str(file.name)):
            load(file)
    file.write_bytes(raw)
    members = members_of(file)
    last = sorted(members)[-2]
    members[last] = members[last][:-1] + bytes([members[last][-1] ^ 1])
    write_zip(file, members)  # so that the zip's own checksum fits
    with pytest.raises(StorageError, match="checksum"):
        load(file)
    members = members_of(file)
    members["mercer.json"] = members["mercer.json"].replace(b'"weight":1', b'"weight":0')
    write_zip(file, members)
    with pytest.raises(StorageError, match=r"checksum of mercer\.json"):
        load(file)


def test_truncated_anywhere(file):
    raw = file.read_bytes()
    for length in [0, 1, 10, *range(30, len(raw), len(raw) // 40), len(raw) - 1]:
        file.write_bytes(raw[:length])
        with pytest.raises(StorageError):
            load(file)


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04", os.urandom(500), pickle.dumps([1]), b"\x00" * 100]
)
def test_files_of_other_kinds(content, tmp_path):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(StorageError, match="not a Mercer file"):
        load(tmp_path / "f")


def test_foreign_zips(tmp_path, file):
    good = members_of(file)
    description = json.loads(good["mercer.json"])
    array = next(name for name in good if name.startswith("arrays/"))
    for members, text in [
        ({"hello.txt": b"hi"}, "hello.txt"),
        ({}, "no mercer.json"),
        ({array: good[array]}, "no mercer.json"),
        ({"mercer.json": b"{"}, "not JSON"),
        ({"mercer.json": b"[" * 200_000}, "not JSON"),
        ({"mercer.json": b"\xff\xfe"}, "not JSON"),
        ({"mercer.json": b"[]"}, "does not say so"),
        ({"mercer.json": b'{"format": "other"}'}, "does not say so"),
        (good | {"extra.txt": b""}, "extra.txt"),
        (good | {"../evil.npy": b""}, "evil"),
        (good | {"/etc/passwd": b""}, "passwd"),
        (good | {"arrays/../x.npy": b""}, "x.npy"),
        (good | {"arrays/": b""}, "arrays/"),
        (good | {"arrays/surplus.npy": b""}, "surplus"),
        ({k: v for k, v in good.items() if k != array}, "missing or unexpected"),
        (good | {"mercer.json": sealed(description | {"format_version": 2})}, "update Mercer"),
        (good | {"mercer.json": sealed(description | {"format_version": "1"})}, "format version"),
        (good | {"mercer.json": sealed(description | {"format_version": True})}, "format version"),
        (good | {"mercer.json": sealed(description | {"arrays": []})}, "incomplete"),
    ]:
        write_zip(tmp_path / "z", members)
        with pytest.raises(StorageError, match=text):
            load(tmp_path / "z")


def test_compressed_encrypted_and_doubled_members(tmp_path, file):
    members = members_of(file)
    write_zip(tmp_path / "z", members, zipfile.ZIP_DEFLATED)
    with pytest.raises(StorageError, match="compressed"):
        load(tmp_path / "z")
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr("mercer.json", members["mercer.json"])
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("mercer.json", members["mercer.json"])
    with pytest.raises(StorageError, match="two members"):
        load(tmp_path / "z")
    raw = bytearray(file.read_bytes())
    entry = raw.index(b"PK\x01\x02")
    raw[entry + 8] |= 1
    (tmp_path / "z").write_bytes(raw)
    with pytest.raises(StorageError, match="encrypted"):
        load(tmp_path / "z")


def test_sizes_that_the_file_does_not_have(tmp_path, file):
    raw = bytearray(file.read_bytes())
    entry = raw.rindex(b"PK\x01\x02")
    raw[entry + 20 : entry + 28] = struct.pack("<II", 2**31, 2**31)
    (tmp_path / "z").write_bytes(raw)
    with pytest.raises(StorageError):
        load(tmp_path / "z")
    # An array that declares a shape it has no data for; nothing of that size is allocated.
    header = io.BytesIO()
    declared = {"descr": "<f8", "fortran_order": False, "shape": (4 * 10**15,)}
    np.lib.format.write_array_header_1_0(header, declared)
    tree = {"$ref": "a"}
    forged(tmp_path / "z", tree, {"a": header.getvalue() + b"\0" * 32})
    with pytest.raises(StorageError, match="size"):
        load(tmp_path / "z")
    forged(tmp_path / "z", tree, {"a": npy_bytes(np.zeros(4)) + b"x"})
    with pytest.raises(StorageError, match="size"):
        load(tmp_path / "z")


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("pickled-code-ran",))


def test_pickled_arrays_are_refused_without_being_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw = npy_bytes(np.array([Bomb()], dtype=object), allow_pickle=True)
    forged(tmp_path / "z", {"$ref": "a"}, {"a": raw})
    with pytest.raises(StorageError, match="dtype object"):
        load(tmp_path / "z")
    assert os.listdir(tmp_path) == ["z"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff",
        b"\x93NUMPY\x09\x00" + b"\0" * 50,
        npy_bytes(np.zeros(3)).replace(b"'<f8'", b"'<x8'"),
        npy_bytes(np.zeros(3)).replace(b"(3,)", b"(-3)"),
        npy_bytes(np.zeros(3)).replace(b"{", b"("),
        npy_bytes(np.zeros(2, dtype=[("x", float)])),
        npy_bytes(np.zeros(2, dtype="V4")),
    ],
)
def test_odd_array_members(raw, tmp_path):
    forged(tmp_path / "z", {"$ref": "a"}, {"a": raw})
    with pytest.raises(StorageError, match="array 'a'"):
        load(tmp_path / "z")


def test_odd_trees(tmp_path):
    one = {"a": npy_bytes(np.ones((1, 1)))}
    for tree, text in [
        ({"$class": "Popen", "state": {}}, "Popen"),
        ({"$class": "Posterior", "state": {}}, "cannot be rebuilt"),
        ({"$class": "Posterior", "state": {"basis": 3, "alpha": {"$ref": "a"}}}, "rebuilt"),
        ({"$class": "Dense", "state": {"M": "x"}}, "rebuilt"),
        ({"$class": "InverseTriangular", "state": {"order": 9, "packed": []}}, "rebuilt"),
        ({"$ref": "b"}, "missing"),
        ({"$function": "system"}, "system"),
    ]:
        forged(tmp_path / "z", tree, one)
        with pytest.raises(StorageError, match=text):
            load(tmp_path / "z")


def test_arrays_of_kinds_that_are_not_read_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="dtype"):
        save(np.zeros(2, dtype=[("x", float)]), tmp_path / "v")
    assert os.listdir(tmp_path) == []


def test_factors_alone(tmp_path):
    M = np.arange(6.0).reshape(2, 3)
    save([Dense(M), InverseTriangular(np.eye(2))], tmp_path / "f")
    dense, triangular = load(tmp_path / "f")
    assert_array_equal(dense.M, M)
    assert_array_equal(triangular.L, np.eye(2))
