"""A table, files of it, and a way to run commands."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mercer.cli.app import app

_SPEC = importlib.util.spec_from_file_location("support", Path(__file__).with_name("support.py"))
support = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(support)
_STREAMS = importlib.util.spec_from_file_location(
    "stream_support", Path(__file__).with_name("stream_support.py")
)
streams = importlib.util.module_from_spec(_STREAMS)
_STREAMS.loader.exec_module(streams)
NAMES, make_rows, write_csv = support.NAMES, support.make_rows, support.write_csv


@pytest.fixture
def run():
    """Run a command and return its result; a traceback is never wanted."""

    def invoke(*arguments, stdin=None, code=0):
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
        assert result.exit_code == code, (result.exit_code, result.output, result.exception)
        assert "Traceback" not in result.output
        return result

    return invoke


@pytest.fixture
def refused(run):
    """Run a command that must fail with code 1, and return what it says in one line."""

    def invoke(*arguments, **options):
        result = run(*arguments, code=1, **options)
        assert result.stdout == ""
        last = result.stderr.strip().splitlines()[-1]
        assert last.startswith("mercer: ")
        return last

    return invoke


@pytest.fixture
def data(tmp_path):
    return write_csv(tmp_path / "data.csv", NAMES, make_rows(60))


@pytest.fixture
def new(tmp_path):
    """New rows: other order of the columns, one column more, no target."""
    rows = [[r[2], 7, r[0], r[4], r[3], r[1]] for r in make_rows(9, seed=1)]
    return write_csv(tmp_path / "new.csv", ["colour", "note", "x 1", "fresh", *NAMES[3:0:-2]], rows)


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A model file, to be read only."""
    folder = tmp_path_factory.mktemp("fitted")
    data = write_csv(folder / "data.csv", NAMES, make_rows(60))
    path = folder / "model.mercer"
    done = CliRunner().invoke(app, ["fit", data, "-t", "yield", "-o", str(path)])
    assert done.exit_code == 0, done.output
    return str(path)


@pytest.fixture
def model(tmp_path):
    """The file of an on-line model, for streams."""
    return streams.regression(tmp_path / "m.mercer")


@pytest.fixture
def stream(run, model):
    """Run a stream into the model; return the predictions and what was said."""

    def invoke(text, *arguments, code=0, into=model):
        done = run("stream", "--model", into, *arguments, stdin=text, code=code)
        return streams.parsed(done.stdout), done.stderr

    return invoke
