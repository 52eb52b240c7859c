"""Nothing is overwritten, and what is written is written whole."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from mercer.cli import commands, output
from mercer.cli.errors import InputError


def test_nothing_is_overwritten_without_force(run, refused, data, new, fitted, tmp_path):
    for name, arguments in (
        ("m.mercer", ["fit", data, "-t", "yield"]),
        ("o.csv", ["predict", fitted, new]),
        ("o.parquet", ["predict", fitted, new]),
    ):
        path = tmp_path / name
        path.write_bytes(b"precious")
        said = refused(*arguments, "-o", path)
        assert said == f"mercer: {path} exists; --force replaces it"
        assert path.read_bytes() == b"precious"
        run(*arguments, "-o", path, "--force")
        assert path.read_bytes() != b"precious"


def test_an_input_is_never_replaced(refused, data, new, fitted):
    for path, arguments in (
        (data, ["fit", data, "-t", "yield"]),
        (new, ["predict", fitted, new]),
    ):
        before = Path(path).read_bytes()
        said = refused(*arguments, "-o", path, "--force")
        assert "wants a name of its own" in said
        assert Path(path).read_bytes() == before


def test_the_output_is_looked_at_before_the_fit(refused, tmp_path, data, monkeypatch):
    monkeypatch.setattr(commands, "fit_table", lambda *_: pytest.fail("fitted all the same"))
    (tmp_path / "m.mercer").touch()
    for path, expected in (
        (tmp_path / "m.mercer", "exists"),
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "m.mercer", "there is no folder"),
        ("-", "no text for standard output"),
    ):
        assert expected in refused("fit", data, "-t", "yield", "-o", path)


def test_a_failure_leaves_the_old_file_and_no_other(
    refused, data, new, fitted, tmp_path, monkeypatch
):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(commands, "save", fail)
    monkeypatch.setattr(output, "_write_parquet", fail)
    for name, arguments in (
        ("m.mercer", ["fit", data, "-t", "yield"]),
        ("o.parquet", ["predict", fitted, new]),
    ):
        path = tmp_path / name
        path.write_bytes(b"old")
        before = sorted(tmp_path.iterdir())
        assert "No space left" in refused(*arguments, "-o", path, "--force")
        assert path.read_bytes() == b"old" and sorted(tmp_path.iterdir()) == before


def test_half_a_file_is_never_seen(tmp_path):
    path = tmp_path / "a.csv"
    with pytest.raises(KeyError), output.published(str(path), False) as scratch:
        Path(scratch).write_text("half")
        assert not path.exists()
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_comes_into_being_meanwhile_is_kept(tmp_path):
    path = tmp_path / "a.csv"
    with (
        pytest.raises(InputError, match="meanwhile"),
        output.published(str(path), False) as scratch,
    ):
        Path(scratch).write_text("mine")
        path.write_text("theirs")
    assert path.read_text() == "theirs" and len(list(tmp_path.iterdir())) == 1


def test_without_links_files_are_renamed(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "a.csv"
    output.write_table(str(path), {"x": np.array([1.5])}, False)
    assert path.read_text() == "x\n1.5\n"


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    output.write_table(str(tmp_path / "link.csv"), {"x": np.array([1.0])}, True)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "x\n1.0\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder_is_told_of(refused, data, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "read-only" in refused("fit", data, "-t", "yield", "-o", folder / "m.mercer")


def test_the_kind_of_output_is_told_by_its_name(refused, fitted, new, tmp_path):
    said = refused("predict", fitted, new, "-o", tmp_path / "out.json")
    assert "must end in .csv, .tsv, .txt, .parquet or .pq" in said


def test_numbers_are_written_in_full(tmp_path):
    values = np.array([0.1, 1 / 3, 1e-300, -2.5e17])
    output.write_table(str(tmp_path / "a.tsv"), {"a b": values, "t\t": values}, False)
    lines = (tmp_path / "a.tsv").read_text().splitlines()
    assert lines[0] == 'a b\t"t\t"'
    assert [float(line.split("\t")[0]) for line in lines[1:]] == values.tolist()
