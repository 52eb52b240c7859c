"""What a stream predicts of rows, learns from them, refuses and says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mercer
from mercer.cli.model import TableModel
from mercer.kernels import RBF, Exponential, Polynomial
from mercer.likelihoods import Gaussian, Laplace

_SPEC = importlib.util.spec_from_file_location(
    "stream_support", Path(__file__).with_name("stream_support.py")
)
support = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(support)
as_csv, as_json, contents, encoded = (
    support.as_csv,
    support.as_json,
    support.contents,
    support.encoded,
)
make_rows, label = support.make_rows, support.label
by_row, parsed, values = support.by_row, support.parsed, support.values


# --- predictions --------------------------------------------------------------------------------


def test_predictions_are_those_of_exact_regression_on_the_rows_before(run, tmp_path):
    path = support.regression(tmp_path / "m.mercer", max_basis=100, kernel=Exponential(1.0))
    rows = make_rows(30)
    found = parsed(run("stream", "--model", path, stdin=as_json(rows)).stdout)
    known = [*make_rows(20, seed=99), *rows]
    X, y = encoded(known), np.array([r["y"] for r in known])
    K = np.exp(-np.linalg.norm(X[:, None] - X[None], axis=2))
    for i, said in enumerate(found):
        n = 20 + i
        W = np.linalg.solve(K[:n, :n] + support.NOISE * np.eye(n), K[:n, n])
        std = np.sqrt(1.0 - W @ K[:n, n] + support.NOISE)
        mean = W @ y[:n]
        expected = [mean, std, mean - 1.959963984540054 * std, mean + 1.959963984540054 * std]
        assert_allclose(values([said])[0], expected, rtol=1e-8, atol=1e-8)
    assert [p["line"] for p in found] == list(range(1, 31))


@pytest.mark.parametrize("write", [as_json, as_csv, lambda rows: as_csv(rows, ";")])
def test_predictions_and_state_are_those_of_the_estimator(stream, model, write):
    rows = make_rows(40)
    for row in rows[3::4]:
        row["y"] = None
    expected, estimator = by_row(model, rows)
    found, said = stream(write(rows))
    assert_allclose(values(found), expected, rtol=1e-9)
    assert_array_equal([p["line"] for p in found], np.arange(40) + (1 if write is as_json else 2))
    assert "40 rows predicted, 30 learned; RMSE" in said
    kept = mercer.load(model).estimator
    assert kept.n_seen_ == estimator.n_seen_ == 50
    assert_allclose(kept.predict(encoded(rows)), estimator.predict(encoded(rows)), rtol=1e-9)
    error = np.array(
        [(p["y_mean"] - r["y"]) ** 2 for p, r in zip(found, rows, strict=True) if r["y"]]
    )
    state = mercer.load(model).summary["stream"]
    assert_allclose(state["squared_error"], error.sum(), rtol=1e-9)
    assert state["learned"] == 30 and state["ended"]


def test_columns_are_matched_by_name_and_others_are_told_of(stream):
    rows = [{"note": 1, **dict(reversed(row.items()))} for row in make_rows(5)]
    for text in (as_json(rows), as_csv(rows)):
        found, said = stream(text)
        assert len(found) == 5
        assert "note: the model does not know 'note'" in said


def test_json_and_csv_leave_the_same_model(run, tmp_path):
    rows = make_rows(10)
    for write in (as_json, as_csv):
        path = support.regression(tmp_path / write.__name__)
        run("stream", "--model", path, stdin=write(rows))
    a, b = (mercer.load(tmp_path / w.__name__).estimator for w in (as_json, as_csv))
    assert_array_equal(a.posterior_.mean(encoded(rows)), b.posterior_.mean(encoded(rows)))


def test_coverage(stream):
    found, _ = stream(as_json(make_rows(3)), "--coverage", "0.5")
    for p in found:
        assert_allclose(p["y_upper"] - p["y_mean"], 0.6744897501960817 * p["y_std"], rtol=1e-9)


def test_intervals_of_other_noise_are_those_before_the_row(run, tmp_path):
    path = support.regression(tmp_path / "m.mercer", likelihood=Laplace(0.1))
    rows = make_rows(4)
    expected, _ = by_row(path, rows)
    found = parsed(run("stream", "--model", path, stdin=as_json(rows)).stdout)
    assert_allclose(values(found), expected, rtol=1e-9)


def test_weights_of_a_model_that_has_them(run, stream, model):
    known = mercer.load(model)
    known.summary["weights"] = "w"
    mercer.save(known, model)
    rows = [{**row, "w": w} for row, w in zip(make_rows(4), [1, 3, 0, 0.5], strict=True)]
    estimator = mercer.load(model).estimator
    for row in rows:
        estimator.partial_fit(encoded([row]), [row["y"]], [row["w"]])
    found, said = stream(as_json(rows))
    assert len(found) == 4 and "4 rows predicted, 3 learned" in said
    x = encoded(rows)
    assert_array_equal(mercer.load(model).estimator.predict(x), estimator.predict(x))
    _, said = stream(as_json(make_rows(1)), code=1)
    assert "line 1: the weights, the row has no column 'w'" in said
    _, said = stream(as_json([{**rows[0], "w": -1}]), "--new", code=1)
    assert "column 'w' holds weights, and has -1" in said


@pytest.mark.parametrize("y", [1.2e154, 1e200, -1e300])
def test_a_target_too_large_for_squares_is_told_of_and_passed_over(stream, model, y):
    rows = make_rows(6)
    rows[2]["y"] = y
    found, said = stream(as_json(rows))
    assert len(found) == 6
    assert "note: line 3: the row was skipped: under Gaussian" in said
    assert "too large for floating point" in said
    assert "6 rows predicted, 5 learned, 1 skipped; RMSE" in said
    state = mercer.load(model).summary["stream"]
    assert (state["learned"], state["refused"], state["ended"]) == (5, 1, True)
    assert np.isfinite(state["squared_error"]) and np.isfinite(state["log_density"])
    assert mercer.load(model).estimator.predict(encoded(rows)).max() < 10


# --- classes ------------------------------------------------------------------------------------


def test_classes_with_text_labels(run, tmp_path):
    path = support.classification(tmp_path / "c.mercer")
    rows = [{**row, "kind": label(row)} for row in make_rows(30)]
    rows[4]["kind"] = None
    estimator = mercer.load(path).estimator
    expected = []
    for row in rows:
        expected.append(estimator.predict_proba(encoded([row]))[0])
        if row["kind"]:
            estimator.partial_fit(encoded([row]), [row["kind"]])
    for row in rows:
        del row["y"]
    done = run("stream", "--model", path, stdin=as_csv(rows))
    assert done.stderr.count("\n") == 1
    found = parsed(done.stdout)
    names = ["high", "low", "mid, so to say"]
    assert list(found[0]) == ["line", "kind_label", *(f"kind_p_{name}" for name in names)]
    proba = np.array([[p[f"kind_p_{name}"] for name in names] for p in found])
    assert_allclose(proba, expected, rtol=1e-8)
    assert [p["kind_label"] for p in found] == [names[i] for i in proba.argmax(axis=1)]
    wrong = sum(p["kind_label"] != r["kind"] for p, r in zip(found, rows, strict=True) if r["kind"])
    assert f"30 rows predicted, 29 learned; {100 * wrong / 29:.3g}% of the labels" in done.stderr
    assert mercer.load(path).estimator.n_seen_ == 59


def test_a_label_never_seen_is_explained(run, tmp_path):
    path = support.classification(tmp_path / "c.mercer")
    rows = [{**row, "kind": label(row)} for row in make_rows(3)]
    rows[1]["kind"] = "top"
    said = run("stream", "--model", path, stdin=as_json(rows), code=1).stderr
    assert (
        "line 2: the target, column 'kind', is 'top', a class that the model does not know" in said
    )
    assert "it knows 'high', 'low' and 'mid, so to say'" in said and "mercer fit" in said


def test_labels_that_are_numbers_or_truth_values(run, tmp_path):
    rows = make_rows(30)
    y = np.array([r["y"] > 0.5 for r in rows])
    for labels, given in [(y.astype(int), [1, "1", 1.0]), (y, [True, "true", "True"])]:
        model = mercer.OnlineGPClassifier(RBF(1.0), classes=np.unique(labels))
        model.partial_fit(encoded(rows), labels)
        path = tmp_path / f"{labels.dtype}.mercer"
        mercer.save(TableModel("kind", support.COLUMNS, model, {}), path)
        text = as_json([{**rows[0], "kind": value} for value in given[:2]])
        found = parsed(run("stream", "--model", path, stdin=text).stdout)
        assert found[0]["kind_label"] in labels.tolist()
        assert mercer.load(path).estimator.n_seen_ == 32


# --- rows that cannot be read -------------------------------------------------------------------

GOOD = b'{"x": 0.5, "colour": "red", "fresh": true, "y": 1.0}'
BAD_JSON = {
    b'{"x": 0.5, "colour"': "it is not JSON: ",
    b"hello": "it is not JSON: expecting value, at character 1",
    b"[1, 2]": "it is not a JSON object",
    b'{"x": 0.5, "colour": "red", "y": 1.0}': "the row lacks the column 'fresh'",
    b'{"x": 0.5, "Colour": "red", "fresh": true}': "lacks the column 'colour'; it has 'Colour'",
    b'{"x": NaN, "colour": "red", "fresh": true, "y": 1.0}': "there is no value in column 'x'",
    b'{"x": null, "colour": "red", "fresh": true, "y": 1.0}': "there is no value in column 'x'",
    b'{"x": 1e999, "colour": "red", "fresh": true, "y": 1.0}': "must hold numbers, but has inf",
    b'{"x": "tall", "colour": "red", "fresh": true, "y": 1.0}': "must hold numbers, but has 'tall'",
    b'{"x": "1_0", "colour": "red", "fresh": true, "y": 1.0}': "must hold numbers, but has '1_0'",
    b'{"x": true, "colour": "red", "fresh": true, "y": 1.0}': "must hold numbers, but has 'true'",
    b'{"x": [1], "colour": "red", "fresh": true, "y": 1.0}': "holds values of type an array",
    b'{"x": 1, "colour": "grun", "fresh": true, "y": 1.0}': ": column 'colour' has 'grun', a cat",
    b'{"x": 1, "colour": "red", "fresh": "maybe", "y": 1.0}': "must hold true or false",
    b'{"x": 1, "colour": "red", "fresh": true, "y": "much"}': "the target, column 'y' must hold",
    b'{"x": 1, "colour": "red", "fresh": true, "y": {}}': "the target, column 'y' holds values of",
    b'{"x": 1, "x": 2, "colour": "red", "fresh": true}': "more than one value called 'x'",
    b'{"x": 1, "colour": "r\xe9d", "fresh": true, "y": 1.0}': "it is not UTF-8: byte 22 is 0xe9",
    b'{"x": 1, "colour": "red", "fresh": true, "z": ' + b"[" * 5000: "it is nested too deeply",
    b'{"x": 1' + b"0" * 5000 + b"}": "it is not JSON that can be read",
    b'{"x": 1' + b" " * (1 << 20) + b"}": "it is longer than 1048576 bytes",
}
BAD_CSV = {
    b"0.5,red,true": "it has 3 fields where the header has 4",
    b"0.5,red,true,1.0,7": "it has 5 fields where the header has 4",
    b'0.5,"red,true,1.0': "it cannot be read (unexpected end of data); is a quotation mark",
    b",red,true,1.0": "there is no value in column 'x'",
    b"n/a,red,true,1.0": "there is no value in column 'x'",
    b"tall,red,true,1.0": "column 'x' must hold numbers, but has 'tall'",
    b'"0,5",red,true,1.0': "a decimal point is wanted, not a comma",
    b"inf,red,true,1.0": "must hold numbers, but has 'inf'",
    b"0.5,green,true,1.0": ": column 'colour' has 'green', a category that the model has not seen",
    b"0.5,red,true,much": "the target, column 'y' must hold numbers",
    b"0.5,r\xe9d,true,1.0": "it is not UTF-8: byte 6 is 0xe9",
}
HEADER = b"x,colour,fresh,y\n"
CASES = [(b"", GOOD, bad, said) for bad, said in BAD_JSON.items()]
CASES += [(HEADER, b"0.5,red,true,1.0", bad, said) for bad, said in BAD_CSV.items()]


def shown(value):
    return value[:40].decode("latin-1") if isinstance(value, bytes) else None


@pytest.mark.parametrize("header, good, bad, expected", CASES, ids=shown)
def test_a_row_that_cannot_be_read_stops_the_stream_or_is_skipped(
    run, tmp_path, header, good, bad, expected
):
    number = 3 if header else 2
    text = header + b"\n".join([good, bad, good, b""])
    stopped = support.regression(tmp_path / "stopped.mercer")
    done = run("stream", "--model", stopped, stdin=text, code=1)
    said = done.stderr.splitlines()[-1]
    assert said.startswith(f"mercer: line {number}: ") and expected in said
    assert said.count(f"line {number}") == 1 and "the row: " not in said
    assert f"what came before it is learned, and kept in {stopped}. Mend it and --resume" in said
    assert [p["line"] for p in parsed(done.stdout)] == [number - 1]
    assert mercer.load(stopped).estimator.n_seen_ == 21
    # mended, it goes on behind the rows that are known
    mended = header + b"\n".join([good, good, good, b""])
    done = run("stream", "--model", stopped, "--resume", stdin=mended)
    assert [p["line"] for p in parsed(done.stdout)] == [number, number + 1]

    skipped = support.regression(tmp_path / "skipped.mercer")
    done = run("stream", "--model", skipped, "--on-error", "skip", stdin=text)
    assert f"mercer: line {number} was skipped: " in done.stderr and expected in done.stderr
    assert "2 rows predicted, 2 learned, 1 skipped" in done.stderr
    assert [p["line"] for p in parsed(done.stdout)] == [number - 1, number + 1]
    clean = support.regression(tmp_path / "clean.mercer")
    run("stream", "--model", clean, stdin=header + b"\n".join([good, good, b""]))
    a, b = contents(skipped), contents(clean)
    assert {k: v for k, v in a.items() if "npy" in k} == {k: v for k, v in b.items() if "npy" in k}


def test_empty_lines_count_but_are_no_rows(stream):
    found, said = stream(b"\n \n" + GOOD + b"\r\n\n" + GOOD)
    assert [p["line"] for p in found] == [3, 5]
    assert "2 rows predicted, 2 learned;" in said


def test_a_basis_that_is_much_too_small_is_told_once_and_at_the_end(run, tmp_path):
    path = support.regression(tmp_path / "m.mercer", max_basis=2)
    text = support.as_json(support.make_rows(400)).encode()
    said = run("stream", "--model", path, stdin=text).stderr.splitlines()
    told = [line for line in said if "--max-basis 2 is too small for these rows" in line]
    # two hundred rows are there to judge by, of which the file had 20
    assert len(told) == 1 and told[0].startswith("mercer: note: line 180: ")
    assert "Else fit with a larger --max-basis, or, where" in told[0]
    assert "with --forget 0.01" in told[0]
    assert re.search(r"; a row loses [0-9.]+ nats to a basis that is too small; the mod", said[-1])
    said = run("stream", "--model", path, stdin=text[: text.index(b"\n") + 1]).stderr.splitlines()
    assert len(said) == 1 and "too small; the model" in said[0]
    enough = support.regression(tmp_path / "enough.mercer", max_basis=40)
    assert "too small" not in run("stream", "--model", enough, stdin=text).stderr


def test_a_constant_that_does_better_is_told_once(run, tmp_path):
    path = support.regression(tmp_path / "m.mercer", likelihood=Gaussian(1e-6))
    text = support.as_json(support.make_rows(400)).encode()
    said = run("stream", "--model", path, stdin=text).stderr.splitlines()
    told = [line for line in said if "and a constant with their mean and deviation has" in line]
    assert len(told) == 1 and told[0].startswith("mercer: note: line 180: the 200 rows so far ")
    assert "for which there is --forget;" in told[0] and "--restarts 5" in told[0]
    assert "StudentT" not in told[0] and "n_init" not in told[0] and "max_basis" not in told[0]
    fine = support.regression(tmp_path / "fine.mercer")
    assert "a constant with" not in run("stream", "--model", fine, stdin=text).stderr


def test_a_row_too_large_to_predict_is_an_error_of_its_line(run, tmp_path):
    path = support.regression(tmp_path / "m.mercer", kernel=Polynomial(3, 1.0))
    text = HEADER + b"0.5,red,true,1.0\n1e200,red,true,\n0.4,red,true,\n"
    said = run("stream", "--model", path, stdin=text, code=1).stderr
    assert "line 3: its inputs are too large for floating point under the kernel" in said
    done = run("stream", "--model", path, "--on-error", "skip", "--new", stdin=text)
    assert "2 rows predicted, 1 learned, 1 skipped" in done.stderr


def test_a_mark_at_the_beginning_is_not_part_of_a_name(stream):
    assert len(stream(b"\xef\xbb\xbf" + GOOD)[0]) == 1
    assert len(stream(b"\xef\xbb\xbf" + HEADER + b"0.5,red,true,1.0\n")[0]) == 1


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            b"x,colour\n1,red\n",
            "line 1: the first line lacks the column 'fresh' of the model; its columns are 'x' "
            "and 'colour'",
        ),
        (
            b"x,Colour,fresh\n1,red,true\n",
            "line 1: the first line lacks the column 'colour' of the model; it has 'Colour', and",
        ),
        (
            b"0.5,red,true,1.0\n",
            "of the model; is it a row? The header must be the first line, also with --resume",
        ),
        (b"x,x,colour,fresh\n", "line 1: standard input has more than one column called 'x'"),
        (b"x,colour,fre\xe9sh,y\n", "line 1: it is not UTF-8"),
        (b"\x1f\x8b1234\n", "it is compressed; unpack it first"),
        (b"[\n", "line 1: it is not JSON"),
    ],
)
def test_an_input_of_which_no_row_could_be_read(stream, model, text, expected):
    before = contents(model)
    found, said = stream(text, *(["--on-error", "skip"] if text[:1] != b"[" else []), code=1)
    assert expected in said and not found
    assert contents(model) == before


def test_if_no_row_at_all_can_be_read_that_is_an_error(stream):
    _, said = stream(b'{"z": 1}\n{"z": 2}\n', "--on-error", "skip", code=1)
    assert said.splitlines()[-1] == "mercer: none of the 2 rows could be read"


@pytest.mark.parametrize("text, code", [(b"", 0), (b"\n\n", 0), (HEADER, 0)])
def test_nothing_on_standard_input(stream, model, text, code):
    before = mercer.load(model).estimator.n_seen_
    found, said = stream(text, code=code)
    assert not found and mercer.load(model).estimator.n_seen_ == before
    assert ("standard input was empty" in said) == (text == b"")
    assert ("no header and no row" in said) == (text == b"\n\n")
