"""The parts of a stream: lines, cells, what is written, and how much memory it takes."""

from __future__ import annotations

import contextlib
import csv
import gc
import importlib.util
import io
import json
import os
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mercer import OnlineGPRegressor
from mercer.cli.columns import TableColumn, encode
from mercer.cli.csv_files import read_csv
from mercer.cli.errors import InputError
from mercer.cli.model import TableModel
from mercer.cli.stream import StreamOptions, run_stream
from mercer.cli.stream_learner import learner_of
from mercer.cli.stream_lines import LONGEST, Bell, Lines, chained
from mercer.cli.stream_output import RowWriter
from mercer.cli.stream_rows import Row, RowReader
from mercer.cli.tables import table_of
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Poisson

_SPEC = importlib.util.spec_from_file_location(
    "stream_support", Path(__file__).with_name("stream_support.py")
)
support = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(support)

# --- lines --------------------------------------------------------------------------------------


class InPieces(io.RawIOBase):
    """Bytes that come as they were put in."""

    def __init__(self, pieces):
        self.pieces = list(pieces)

    def readable(self):
        return True

    def fileno(self):
        raise io.UnsupportedOperation

    def read1(self, _):
        return self.pieces.pop(0) if self.pieces else b""


@given(
    st.lists(st.binary(max_size=6).map(lambda b: b.replace(b"\0", b"\n"))),
    st.lists(st.integers(1, 5), min_size=1),
)
def test_lines_are_the_same_however_they_come(parts, sizes):
    text, pieces, i = b"".join(parts), [], 0
    while i < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[i : i + size])
        i += size
    lines, found = Lines(InPieces(pieces), Bell()), []
    while (line := lines.take()) is not None:
        found.append(line)
    expected = text.split(b"\n")
    assert found == (expected if expected[-1] else expected[:-1])


@pytest.mark.parametrize("size", [1, 1000, 1 << 16, (1 << 16) - 1])
def test_lines_that_are_too_long_are_the_same_however_they_come(size):
    """They are cut at one place, so that the digest of an input does not depend on its pieces."""
    long = b"x" * (LONGEST + 70_000)
    text = b"a\n" + long + b"\nb\n" + long[:LONGEST] + b"\n" + long
    size = max(size, len(text) // 3000) if size == 1 else size
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    lines, found = Lines(InPieces(pieces), Bell()), []
    while (line := lines.take()) is not None:
        found.append(line)
    assert [len(line) for line in found] == [1, LONGEST + 1, 1, LONGEST, LONGEST + 1]
    assert found[0] == b"a" and found[2] == b"b"


def test_a_line_without_end_takes_no_memory_and_loses_no_other():
    block = b"x" * (1 << 16)
    lines = Lines(InPieces([b"a\n", *[block] * 100, b"y\nb\n"]), Bell())
    assert lines.take() == b"a"
    tracemalloc.start()
    long = lines.take()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(long) == LONGEST + 1 and peak < 5 * LONGEST
    assert lines.take() == b"b" and lines.take() is None and lines.take() is None


def test_waiting_for_lines_ends():
    hear, ring = os.pipe()
    source, sink = os.pipe()
    os.set_blocking(hear, False)
    try:
        with open(source, "rb") as stream:
            lines = Lines(stream, Bell(hear))
            with pytest.raises(TimeoutError):
                lines.take(0.0)
            os.write(sink, b"a\nb")
            assert lines.take() == b"a"
            os.write(ring, bytes([2]))  # as Ctrl-C does
            with pytest.raises(InterruptedError):
                lines.take()
    finally:
        for descriptor in (hear, ring, sink):
            os.close(descriptor)


def test_digests_tell_lines_apart():
    def digest(*lines):
        found = b""
        for line in lines:
            found = chained(found, line)
        return found

    texts = [(b"a", b"b"), (b"b", b"a"), (b"ab",), (b"a", b"b", b""), (b"", b"a", b"b")]
    assert len({digest(*lines) for lines in texts}) == len(texts)


# --- cells --------------------------------------------------------------------------------------

COLUMNS = [
    TableColumn("n", "number"),
    TableColumn("c", "category", ["1", "1.5", "None", "red", "true"]),
    TableColumn("b", "bool"),
    TableColumn("d", "date"),
]
_WORDS = """1 1.5 1e5 .5 5. 0x1 1_0 \u0661 inf -Infinity nan NA null None red Red true FALSE yes ß
2024-02-29 2023-02-29 2024-12-31T06:00 2024-12-31T06:00:00+02:00 2024-1-1 a,b "no" """
TEXTS = st.sampled_from([*_WORDS.split(), "", " ", " 3 ", "2024-12-31 06:00"])


class Model:
    """As much of a model as a reader of rows wants."""

    target, of_classes, summary, columns = "y", False, {}, COLUMNS
    ignored = TableModel.ignored


def in_table(make):
    """Return the numbers that a table has, or None if it is refused."""
    with contextlib.suppress(InputError):
        return encode(COLUMNS, make())
    return None


def in_stream(form, first, line):
    reader = RowReader(Model(), form)
    reader.begin(first)
    with contextlib.suppress(InputError):
        return reader.read(line, 2).x
    return None


def same(found, expected):
    assert (found is None) == (expected is None)
    if found is not None:
        assert_array_equal(found, expected)


@given(st.lists(TEXTS, min_size=4, max_size=4))
@example(["1", "1", "true", "2024-02-29"])
def test_a_line_of_csv_means_what_it_means_in_a_file(cells):
    def line(record):
        file = io.StringIO(newline="")
        csv.writer(file, lineterminator="").writerow(record)
        return file.getvalue().encode()

    header = line([c.name for c in COLUMNS])
    expected = in_table(lambda: read_csv(header + b"\n" + line(cells) + b"\n", "file"))
    same(in_stream("csv", header, line(cells)), expected)


@given(
    st.lists(
        TEXTS | st.booleans() | st.none() | st.integers(-(10**6), 10**6) | st.floats(),
        min_size=4,
        max_size=4,
    )
)
@example([1.5, 1, True, "2024-02-29"])
@example(["1.5", True, "true", "2024-02-29"])
def test_a_line_of_json_means_what_it_means_in_a_frame(cells):
    names = [c.name for c in COLUMNS]
    frame = pa.table({n: pa.array([v]) for n, v in zip(names, cells, strict=True)})
    line = json.dumps(dict(zip(names, cells, strict=True))).encode()
    same(in_stream("json", line, line), in_table(lambda: table_of(frame)))


# --- output -------------------------------------------------------------------------------------


def test_a_target_that_is_no_count_is_one_that_cannot_be_read():
    model = OnlineGPRegressor(RBF(1.0), Poisson()).partial_fit([[0.0]], [1.0])
    learner = learner_of(SimpleNamespace(of_classes=False, estimator=model), 0.9)
    for wrong in (-1.0, 0.5):
        with pytest.raises(InputError, match="counts must be whole numbers"):
            learner.learn(Row(np.zeros((1, 1)), wrong, 1.0))
    learner.learn(Row(np.zeros((1, 1)), 3.0, 1.0))
    assert model.n_seen_ == 2


def test_an_error_whose_square_overflows_is_one():
    """Under noise so wide that the row can be learned."""
    model = OnlineGPRegressor(RBF(1.0), Gaussian(1e6)).partial_fit([[0.0]], [1.0])
    said = learner_of(SimpleNamespace(of_classes=False, estimator=model), 0.9).learn(
        Row(np.zeros((1, 1)), 1e156, 1.0)
    )
    assert said.squared_error == np.inf and not said.skipped
    assert np.isfinite(said.log_density)


def test_json_has_no_infinities_and_names_are_kept():
    file = io.BytesIO()
    RowWriter("json", ['größe "x"_mean', "b"], file).write(3, [float("inf"), "ja, ß"])
    assert file.getvalue().decode() == '{"line": 3, "größe \\"x\\"_mean": null, "b": "ja, ß"}\n'


def test_a_file_that_is_added_to_has_one_header(tmp_path):
    path = tmp_path / "out.csv"
    for line in (1, 2):
        with open(path, "ab") as file:
            RowWriter("csv", ["y,mean"], file).write(line, [0.1])
    assert path.read_text() == 'line,"y,mean"\n1,0.1\n2,0.1\n'


# --- memory -------------------------------------------------------------------------------------


def test_memory_does_not_grow(tmp_path, monkeypatch):
    """What is held after 1200 rows is what was held after 400, but for some bytes."""
    model = support.regression(tmp_path / "m.mercer")
    rows = support.as_json(support.make_rows(1200)).encode().splitlines(keepends=True)
    held = {}

    class Input(InPieces):
        def read1(self, _):
            if len(self.pieces) in (800, 0) and len(self.pieces) not in held:
                gc.collect()
                held[len(self.pieces)] = tracemalloc.get_traced_memory()[0]
            return super().read1(_)

    class Standard:
        def __init__(self, buffer):
            self.buffer = buffer

    monkeypatch.setattr(sys, "stdin", Standard(Input(rows)))
    monkeypatch.setattr(sys, "stdout", Standard(open(os.devnull, "wb")))
    tracemalloc.start()
    try:
        run_stream(model, StreamOptions(every=100))
    finally:
        tracemalloc.stop()
        sys.stdout.buffer.close()
    assert held[0] - held[800] < 50_000  # less than the rows themselves
