from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from mercer.datasets import fetch, load_table

OWN = {name: os.environ.get(name) for name in ("MERCER_DATA", "XDG_CACHE_HOME")}


def write(path: Path, text: str) -> None:
    with gzip.open(path, "wt") as stream:
        stream.write(text)


@pytest.fixture(autouse=True)
def _no_other_folders(tmp_path, monkeypatch):
    """Nothing of the machine's own may be found."""
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    write(path / "plain.csv.gz", "a,b,y\n1,2.5,3\n-4,1e3,6\n7,8,9\n")
    return path


# --- reading --------------------------------------------------------------------------------------


def test_numbers(folder):
    table = load_table("plain", folder)
    assert table.X.tolist() == [[1, 2.5], [-4, 1000], [7, 8]]
    assert table.X.dtype == float and table.X.flags.c_contiguous
    assert table.y.tolist() == [3, 6, 9]
    assert table.columns == ("a", "b")
    assert table.splits is None
    assert table.description == "plain: 3 rows, 2 columns."


def test_text_is_one_hot_in_place_and_in_sorted_order(folder):
    write(folder / "text.csv.gz", "a,sex,b,y\n1,M,2,no\n3,F,4,yes\n5,I,6,no\n")
    table = load_table("text", folder)
    assert table.columns == ("a", "sex=F", "sex=I", "sex=M", "b")
    assert table.X.tolist() == [[1, 0, 0, 1, 2], [3, 1, 0, 0, 4], [5, 0, 1, 0, 6]]
    assert table.y.tolist() == ["no", "yes", "no"]


def test_splits_of_a_file_of_their_own(folder):
    write(folder / "plain-splits.csv.gz", "s0,s1\n0,1\n1,0\n0,0\n")
    table = load_table("plain", folder)
    assert table.splits.tolist() == [[False, True], [True, False], [False, False]]
    X, y, X_test, y_test = table.split(1)
    assert y.tolist() == [6, 9] and y_test.tolist() == [3]
    assert X.shape == (2, 2) and X_test.tolist() == [[1, 2.5]]
    assert table.description == "plain: 3 rows, 2 columns, 2 published splits."
    with pytest.raises(ValueError, match="splits 0 to 1, got 2"):
        table.split(2)


def test_column_split_is_no_input(folder):
    write(folder / "t.csv.gz", "a,split,y\n1,train,2\n3,test,4\n")
    table = load_table("t", folder)
    assert table.columns == ("a",)
    assert table.splits.tolist() == [[False], [True]]


def test_column_fold_is_a_split_for_each_fold(folder):
    write(folder / "t.csv.gz", "a,fold,y\n1,1,2\n3,0,4\n5,2,6\n7,1,8\n")
    table = load_table("t", folder)
    assert table.columns == ("a",)
    assert np.argmax(table.splits, axis=1).tolist() == [1, 0, 2, 1]
    assert table.splits.sum(axis=1).tolist() == [1, 1, 1, 1]


def test_inputs_alone(folder):
    write(folder / "t.csv.gz", "a\n1\n2\n")
    table = load_table("t", folder)
    assert table.y is None
    with pytest.raises(ValueError, match="no published splits"):
        table.split(0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "first row must name"),
        ("a,b,y\n", "there are no rows"),
        ("a,a,y\n1,2,3\n", "name each column once"),
        ("a,b,y\n1,2,3\n1,2\n", "row 3: 3 values are wanted"),
        ("a,b,y\n1,,3\n", "none of them empty"),
        ("a,b,y\n1,nan,3\n", "NaN or infinity"),
        ("a,b,y\n1,2,inf\n", "NaN or infinity"),
        ("a,split,y\n1,validation,3\n", r"may hold \['train', 'test'\], got \['validation'\]"),
        ("a,fold,y\n1,3,3\n", "'fold' may hold"),
        ("y\n1\n", "no column of inputs"),
        ("a,y\n" + "".join(f"name{i},1\n" for i in range(101)), "101 different values"),
    ],
)
def test_what_is_no_table_is_refused(folder, text, message):
    write(folder / "bad.csv.gz", text)
    with pytest.raises(ValueError, match=message):
        load_table("bad", folder)


def test_splits_must_fit_the_table(folder):
    write(folder / "plain-splits.csv.gz", "s0\n0\n1\n")
    with pytest.raises(ValueError, match="0 or 1 in each of the 3 rows"):
        load_table("plain", folder)
    write(folder / "plain-splits.csv.gz", "s0\n0\n1\n2\n")
    with pytest.raises(ValueError, match="0 or 1 in each of the 3 rows"):
        load_table("plain", folder)


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"no gzip", lambda b: b""]
)
def test_damaged_files_are_refused(folder, damage):
    path = folder / "plain.csv.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"plain\.csv\.gz"):
        load_table("plain", folder)


# --- images ---------------------------------------------------------------------------------------


def images(path: Path, **changed) -> None:
    arrays = {
        "X_train": np.array([[0.5, -1], [1, 0.25], [0, 0]], dtype=np.float32),
        "y_train": np.array([3, 0, 9], dtype=np.uint8),
        "X_test": np.array([[1, 1]], dtype=np.float32),
        "y_test": np.array([3], dtype=np.uint8),
    }
    kept = {name: a for name, a in {**arrays, **changed}.items() if a is not None}
    np.savez(path / "images.npz", **kept)


def test_images(folder):
    images(folder)
    table = load_table("images", folder)
    X, y, X_test, y_test = table.split(0)
    assert X.tolist() == [[0.5, -1], [1, 0.25], [0, 0]] and X.dtype == float
    assert X_test.tolist() == [[1, 1]]
    assert y.tolist() == [3, 0, 9] and y_test.tolist() == [3] and y.dtype == float
    assert table.columns == ("x1", "x2")
    assert table.description == "images: 4 rows, 2 columns, 1 published split."


def test_a_text_table_goes_before_images(folder):
    images(folder)
    write(folder / "images.csv.gz", "a,y\n1,2\n")
    assert load_table("images", folder).X.shape == (1, 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_test": None}, "not a whole file of arrays.*y_test"),
        ({"X_test": np.zeros((1, 3))}, "that fit"),
        ({"X_train": np.zeros(2), "X_test": np.zeros(1)}, "must be rows"),
        ({"y_train": np.zeros(2)}, "a label each"),
        ({"y_test": np.zeros(2)}, "a label each"),
        ({"X_test": np.array([[np.nan, 0]])}, "NaN or infinity"),
        ({"y_test": np.array([np.inf])}, "NaN or infinity"),
        ({"X_train": np.array([["a", "b"]] * 3)}, "not a whole file of arrays"),
        ({"y_train": np.array([None, None, None])}, "not a whole file of arrays"),
    ],
)
def test_what_are_no_images_is_refused(folder, changed, message):
    images(folder, **changed)
    with pytest.raises(ValueError, match=message):
        load_table("images", folder)


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"no archive", lambda b: b""]
)
def test_damaged_images_are_refused(folder, damage):
    images(folder)
    path = folder / "images.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"images\.npz"):
        load_table("images", folder)


def test_one_array_is_no_file_of_arrays(folder):
    with open(folder / "images.npz", "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match=r"images\.npz is not a whole file"):
        load_table("images", folder)


# --- finding --------------------------------------------------------------------------------------


def test_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("MERCER_DATA", str(folder))
    assert load_table("plain").X.shape == (3, 2)


def test_shared_data_beside_the_working_directory(folder, tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    folder.rename(shared / "data")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.delenv("MERCER_DATA")
    assert load_table("plain").X.shape == (3, 2)


def test_argument_goes_before_the_environment(folder, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    write(other / "plain.csv.gz", "a,y\n1,2\n")
    monkeypatch.setenv("MERCER_DATA", str(other))
    assert load_table("plain", folder).X.shape == (3, 2)


def test_what_is_not_there_says_the_three_ways(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder=.*MERCER_DATA.*download=True"):
        load_table("boston", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"folder=.*MERCER_DATA.*download=True can fetch"):
        load_table("abalone", tmp_path)


@pytest.mark.parametrize("name", ["", "../plain", "a/b", "a.csv.gz"])
def test_names_are_no_paths(folder, name):
    with pytest.raises(ValueError, match="letters, digits and hyphens"):
        load_table(name, folder)


# --- fetching -------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    """A public source on disk: six rows, the target in the first column, two splits."""
    data = tmp_path / "source" / "bostonHousing" / "data"
    data.mkdir(parents=True)
    (data / "data.txt").write_text(
        "".join(f" {i}.5  {i}00 \t{10 + i}e-1 0.{i}\n" for i in range(6))
    )
    (data / "index_features.txt").write_text("1\n3\n\n")
    (data / "index_target.txt").write_text("0\n")
    (data / "n_splits.txt").write_text("2\n")
    (data / "index_test_0.txt").write_text("1.000e+00\n4.000e+00\n")
    (data / "index_test_1.txt").write_text("5\n")
    return (tmp_path / "source").as_uri()


def test_fetched_once_and_kept_in_the_cache(source, tmp_path):
    table = load_table("boston", download=True, source=source)
    assert table.columns == ("x1", "x2")
    assert table.y.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    np.testing.assert_array_equal(table.X, [[100 * i, float(f"0.{i}")] for i in range(6)])
    assert np.flatnonzero(table.splits[:, 0]).tolist() == [1, 4]
    assert np.flatnonzero(table.splits[:, 1]).tolist() == [5]
    kept = sorted(p.name for p in (tmp_path / "cache" / "mercer").iterdir())
    assert kept == ["boston-splits.csv.gz", "boston.csv.gz"]
    again = load_table("boston")  # no source, no download
    np.testing.assert_array_equal(again.X, table.X)
    np.testing.assert_array_equal(again.splits, table.splits)


def test_fetched_into_the_folder_that_is_given(source, tmp_path):
    load_table("boston", tmp_path / "mine", download=True, source=source)
    assert (tmp_path / "mine" / "boston.csv.gz").is_file()
    assert not (tmp_path / "cache").exists()


def test_nothing_is_fetched_unless_asked(source, monkeypatch):
    monkeypatch.setattr(fetch.urllib.request, "urlopen", lambda *a, **k: pytest.fail("fetched"))
    with pytest.raises(FileNotFoundError):
        load_table("boston", source=source)


def test_a_table_that_is_there_is_not_fetched(folder, source):
    write(folder / "boston.csv.gz", "a,y\n1,2\n")
    assert load_table("boston", folder, download=True, source=source).X.shape == (1, 1)


def test_a_source_that_does_not_answer(tmp_path):
    with pytest.raises(OSError, match=r"could not be fetched.*MERCER_DATA"):
        load_table("boston", download=True, source=(tmp_path / "nowhere").as_uri())
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("address", ["http://example.org/", "ftp://example.org/", "nowhere"])
def test_other_addresses_are_refused(address):
    with pytest.raises(ValueError, match="https or file"):
        load_table("boston", download=True, source=address)


def test_a_table_without_a_public_source():
    with pytest.raises(FileNotFoundError, match="no public source"):
        load_table("abalone", download=True)


def test_files_that_are_too_large_are_refused(source, monkeypatch):
    monkeypatch.setattr(fetch, "_LARGEST", 10)
    with pytest.raises(ValueError, match="larger than"):
        load_table("boston", download=True, source=source)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("data.txt", "<html>", "not a table of numbers"),
        ("data.txt", "1 2 3\n1 2\n", "not a table of numbers"),
        ("data.txt", "1 2 3 nan\n", "NaN or infinity"),
        ("index_features.txt", "1\n4\n", "whole numbers from 0 to 3"),
        ("index_features.txt", "-1\n", "whole numbers from 0 to 3"),
        ("index_target.txt", "1\n", "one column that is no input"),
        ("index_target.txt", "0\n2\n", "one column that is no input"),
        ("n_splits.txt", "101\n", "whole numbers from 0 to 100"),
        ("n_splits.txt", "0\n", "one number from 1 to 100"),
        ("index_test_1.txt", "6\n", "whole numbers from 0 to 5"),
        ("index_test_1.txt", "0.5\n", "whole numbers from 0 to 5"),
    ],
)
def test_a_damaged_source_is_refused_and_leaves_nothing(source, tmp_path, file, text, message):
    (tmp_path / "source" / "bostonHousing" / "data" / file).write_text(text)
    with pytest.raises(ValueError, match=message):
        load_table("boston", download=True, source=source)
    assert not (tmp_path / "cache").exists()


# --- the real ones --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "first", "tested"),
    [("boston", (506, 13), 24.0, 51), ("wine-red", (1599, 11), 5.0, 160)],
)
def test_the_benchmarks_tables(name, shape, first, tested, monkeypatch):
    for variable, value in OWN.items():
        monkeypatch.setenv(variable, value) if value else monkeypatch.delenv(variable)
    try:
        table = load_table(name)
    except FileNotFoundError:
        pytest.skip(f"{name}.csv.gz is not on this machine; see load_table for how to provide it")
    assert table.X.shape == shape
    assert table.y[0] == first
    assert table.splits.shape == (shape[0], 20)
    assert set(table.splits.sum(axis=0)) <= {tested - 1, tested, tested + 1}
