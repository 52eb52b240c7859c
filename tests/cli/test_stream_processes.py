"""Streams as processes of their own: pipes, signals, and being killed."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mercer

_SPEC = importlib.util.spec_from_file_location(
    "stream_support", Path(__file__).with_name("stream_support.py")
)
support = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(support)
as_csv, as_json, contents, make_rows = (
    support.as_csv,
    support.as_json,
    support.contents,
    support.make_rows,
)
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    "OPENBLAS_NUM_THREADS": "1",
}
PATIENCE = 120  # seconds until a test is given up; none depends on it otherwise


@pytest.fixture(scope="module")
def server():
    found = support.Server()
    yield found
    found.close()


@pytest.fixture
def piped(server, tmp_path):
    """Start a stream whose input is a pipe; return the process, the pipe, and its output."""
    started = []

    def start(model, *arguments):
        into, out, said = (tmp_path / name for name in ("in", "out", "said"))
        os.mkfifo(into)
        process = server.start(
            "stream", "--model", model, *arguments, stdin=into, stdout=out, stderr=said
        )
        pipe = open(into, "wb", buffering=0)
        started.append(pipe)
        return process, pipe, out

    yield start
    for pipe in started:
        pipe.close()


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.002)


def lines_of(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


# --- pipes --------------------------------------------------------------------------------------


def test_each_prediction_is_there_before_the_next_row_is_given(tmp_path):
    """The command itself, by way of two pipes and one row at a time; then a polite end."""
    model, rows = support.regression(tmp_path / "m.mercer"), make_rows(5)
    command = [sys.executable, "-m", "mercer.cli", "stream", "--model", model]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=ENVIRONMENT,
    ) as process:
        said = []
        for row in rows:
            process.stdin.write(json.dumps(row) + "\n")
            said.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
        assert process.wait(timeout=PATIENCE) == 0
    assert [p["line"] for p in said] == [1, 2, 3, 4, 5]
    assert "SIGTERM after line 5: 5 rows predicted, 5 learned" in rest
    assert "--resume goes on if the same input is given again" in rest
    assert mercer.load(model).estimator.n_seen_ == 25
    assert mercer.load(model).summary["stream"]["ended"] is False


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("busy", [False, True])
def test_signals_end_it_with_a_checkpoint(piped, server, tmp_path, name, busy):
    model, rows = support.regression(tmp_path / "m.mercer"), make_rows(300)
    process, pipe, out = piped(model)
    pipe.write(as_json(rows if busy else rows[:20]).encode())
    until(lambda: lines_of(out) >= 20, "predictions")
    os.kill(process, getattr(signal, name))
    assert server.wait(process) == 0
    state = mercer.load(model).summary["stream"]
    assert state["line"] == state["learned"] == lines_of(out) >= 20
    assert mercer.load(model).estimator.n_seen_ == 20 + state["line"]
    said = (tmp_path / "said").read_text()
    assert f"mercer: {name} after line {state['line']}: " in said and "Traceback" not in said
    assert not state["ended"]


def test_what_waits_for_rows_is_saved_in_the_meantime(piped, server, tmp_path):
    model = support.regression(tmp_path / "m.mercer")
    process, pipe, _ = piped(model, "--seconds", "0.05")
    pipe.write(as_json(make_rows(3)).encode())
    until(lambda: mercer.load(model).estimator.n_seen_ == 23, "a checkpoint")
    pipe.close()
    assert server.wait(process) == 0
    assert mercer.load(model).summary["stream"]["ended"]


def test_a_row_that_comes_in_pieces(piped, server, tmp_path):
    model = support.regression(tmp_path / "m.mercer")
    process, pipe, out = piped(model)
    text = as_csv(make_rows(2)).encode().rstrip(b"\n")
    for i in range(0, len(text), 5):
        pipe.write(text[i : i + 5])
    until(lambda: lines_of(out) == 2, "the first prediction")  # the last has no end of line
    pipe.close()
    assert server.wait(process) == 0 and lines_of(out) == 3


def test_a_reader_that_has_seen_enough(tmp_path):
    model = support.regression(tmp_path / "m.mercer")
    (tmp_path / "rows.json").write_text(as_json(make_rows(3000)))
    words = [sys.executable, "-m", "mercer.cli", "stream", "--model", model]
    command = f"{shlex.join(words)} < {tmp_path / 'rows.json'} | head -n 3"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0 and done.stdout.count("\n") == 3
    assert "Traceback" not in done.stderr
    state = mercer.load(model).summary["stream"]
    assert 3 <= state["line"] == state["learned"] < 3000 and not state["ended"]
    assert mercer.load(model).estimator.n_seen_ == 20 + state["learned"]


def test_two_streams_into_one_model(piped, server, tmp_path):
    model = support.regression(tmp_path / "m.mercer")
    process, pipe, out = piped(model)
    pipe.write(as_json(make_rows(2)).encode())
    until(lambda: lines_of(out) == 2, "predictions")
    (tmp_path / "more").write_text(as_json(make_rows(2)))
    files = {"stdin": tmp_path / "more", "stdout": tmp_path / "o", "stderr": tmp_path / "e"}
    assert server.wait(server.start("stream", "--model", model, **files)) == 1
    assert "another `mercer stream` is learning into" in (tmp_path / "e").read_text()
    pipe.close()
    assert server.wait(process) == 0 and mercer.load(model).estimator.n_seen_ == 22


# --- killed -------------------------------------------------------------------------------------


def without_some_targets(rows, rng):
    """Take some targets away."""
    for i in rng.choice(len(rows), len(rows) // 10, replace=False):
        rows[i]["y" if "y" in rows[i] else "kind"] = None
    return rows


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("regression", 0),
        ("classification", 1),
        pytest.param("regression", 1, marks=pytest.mark.slow),
        pytest.param("classification", 0, marks=pytest.mark.slow),
    ],
)
def test_killed_at_random_moments_it_ends_as_if_nothing_had_happened(server, tmp_path, kind, seed):
    rng = np.random.default_rng(seed)
    rows = make_rows(400, seed)
    if kind == "classification":
        rows = [{**row, "kind": support.label(row)} for row in rows]
        for row in rows:
            del row["y"]
    lines = (as_json if seed else as_csv)(without_some_targets(rows, rng)).splitlines()
    for i in (30, 200, 201):
        lines.insert(i, "a line that is no row" if i != 201 else "")
    source = tmp_path / "rows"
    source.write_text("\n".join(lines) + "\n")
    arguments = ["--on-error", "skip", "--every", "7", "--resume"]

    def start(model, out):
        files = {"stdin": source, "stdout": out, "stderr": tmp_path / "said"}
        return server.start("stream", "--model", model, *arguments, **files)

    whole, out = getattr(support, kind)(tmp_path / "whole.mercer"), tmp_path / "whole"
    assert server.wait(start(whole, out)) == 0
    killed, again = getattr(support, kind)(tmp_path / "killed.mercer"), tmp_path / "again"
    known = []
    for share in sorted(rng.uniform(0.05, 0.95, 4)):
        wanted = int(share * 400)
        process = start(killed, again)
        until(lambda n=wanted: lines_of(again) >= n, "predictions")
        time.sleep(rng.uniform(0, 0.02))  # anywhere, in the midst of a checkpoint too
        os.kill(process, signal.SIGKILL)
        assert server.wait(process) == -signal.SIGKILL
        known.append(mercer.load(killed).summary.get("stream", {}).get("line", 0))
    assert known == sorted(known) and 0 < known[-1] < len(lines)
    assert server.wait(start(killed, again)) == 0
    assert contents(killed) == contents(whole)
    # what was predicted twice was predicted the same, and nothing was left out
    assert set(again.read_bytes().splitlines()) == set(out.read_bytes().splitlines())
    assert again.read_bytes().count(b"line,") == (0 if seed else 1)
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"rows", "whole", "again", "said", "whole.mercer", "killed.mercer"}
