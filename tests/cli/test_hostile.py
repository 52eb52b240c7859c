"""Files that are not what they should be: a plain sentence that says where, and code 1."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import mercer
from mercer.cli.errors import InputError
from mercer.cli.tables import read_table
from mercer.kernels import RBF

_SPEC = importlib.util.spec_from_file_location("support", Path(__file__).with_name("support.py"))
support = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(support)
NAMES, make_rows, write_csv = support.NAMES, support.make_rows, support.write_csv


@pytest.fixture
def fit_text(refused, tmp_path):
    """Fit a file of this content, and return the refusal; nothing is left behind."""

    def fit(content, *options, target="y", name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        said = refused("fit", path, "-t", target, *options, "-o", tmp_path / "m.mercer")
        assert [p.name for p in tmp_path.iterdir()] == [name]
        return said.replace(str(path), "FILE").removeprefix("mercer: ")

    return fit


CASES = {
    "empty": ("", "FILE is empty"),
    "blank lines": ("\n\n \n", "FILE is empty"),
    "header only": ("x,y\n", "FILE has no rows"),
    "one row": ("x,y\n1,2\n", "FILE has only one row"),
    "target alone": ("y\n1\n2\n", "FILE has no column to predict 'y' from"),
    "short line": (
        "x,z,y\n1,2,3\n1,2\n3,4,5\n",
        "FILE: line 3 has 2 fields where the header has 3",
    ),
    "long lines": (
        "x,y\n1,2\n1,2,3\n3,4,5\n",
        "line 3 has 3 fields where the header has 2, and 1 more line differs too. Text",
    ),
    "a short line": (
        "x,y\n1,2\n1\n3\n5\n6,7\n",
        "has 1 field where the header has 2, and 2 more lines ",
    ),
    "targets without squares": ("x,y\n1,1e200\n2,3e200\n3,2e200\n", "is as large as 3e+200 and"),
    "targets that hardly vary": (
        "x,y\n1,1e-200\n2,3e-200\n3,0\n",
        "varies by 1.25e-200; give it in",
    ),
    "binary": (b"\x00\x01\x02,\xff\n\x00", "FILE is not a CSV file: it holds binary data"),
    "a zip": (b"PK\x03\x04abc", "FILE is not a CSV file in UTF-8: it is a zip archive"),
    "parquet by another name": (b"PAR1abc", "let its name end in .parquet"),
    "utf-16": ("x,y\n1,2\n".encode("utf-16"), "it is in UTF-16"),
    "latin-1": (
        "x,y\n1,2\ncafé,3\n".encode("latin-1"),
        "FILE is not UTF-8: line 3 has the byte 0xe9",
    ),
    "latin-1 behind a mark": (b"\xef\xbb\xbfx,y\n1,\xe9\n", "line 2 has the byte 0xe9"),
    "target not there": ("x,Y\n1,2\n3,4\n", "FILE has no column 'y'; did you mean 'Y'?"),
    "no header": ("1,2\n3,4\n5,6\n", "The first line must hold the names of the columns"),
    "names twice": ("x,y,x\n1,2,3\n4,5,6\n", "more than one column called 'x' (columns 1 and 3)"),
    "missing": (
        "x,z,y\n1,,2\n2,NA,3\n3,5,4\n",
        "FILE: column 'z' has missing values in lines 2 and 3 (written 'NA')",
    ),
    "missing in two columns": ("x,z,y\n1,,2\nnan,1,3\n3,5,4\n", "'x' has missing values in line 3"),
    "missing target": (
        "x,y\n1,2\n2,\n3,4\n",
        "the target, column 'y', has missing values in line 3",
    ),
    "all missing": ("x,z,y\n1,,2\n2,,3\n", "column 'z' has no values at all"),
    "one line of one column": ("y\n1\n\n2\n", "FILE has no column to predict"),
    "infinite": ("x,y\n1,2\ninf,3\n2,4\n", "'x' must hold numbers, but has 'inf' in line 3"),
    "infinite target": ("x,y\n1,2\n2,-Infinity\n", "has '-Infinity' in line 3"),
    "too large a number": ("x,y\n1,2\n1e999,3\n4,5\n", "has '1e999' in line 3"),
    "text among numbers": (
        "x,y\n1,2\n2,3\nabc,4\n5,6\n",
        "column 'x' must hold numbers, but has 'abc' in line 4",
    ),
    "text as target": (
        "x,y\n1,a\n2,b\n3,c\n",
        "the target, column 'y', must hold numbers, but has",
    ),
    "decimal commas throughout": (
        "a;b;y\n0,5;1;1\n0,5;2;2\n-1,25;3;3\n7;4;5\n1,5e3;5;6\n",
        "column 'a' must hold numbers, but has '0,5' in line 2, '0,5' in line 3, ",
    ),
    "decimal commas": (
        "x;y\n1,5;2\n2,5;3\n4;7\n3;8\n6;1\n",
        "a decimal point is wanted, not a comma",
    ),
    "dates among others": (
        "x,y\n2024-01-01,1\n2024-01-02,2\n2024-13-03,3\n",
        "'x' must hold ISO dates such as 2024-12-31, but has '2024-13-03' in line 4",
    ),
    "names of rows": ("x,y\nann,1\nbob,2\ncy,3\n", "column 'x' has 3 different texts in 3 rows"),
    "constant target": ("x,y\n1,5\n2,5.0\n3,5\n", "column 'y', is 5 in every row"),
    "nothing varies": ("x,y\n1,5\n1,6\n", "no column but the target varies"),
    "open quotation": ('x,y\n1,2\n"3,4\n5,6\n', "the record that begins on line 3 cannot be read"),
    "no names": (",\n1,2\n", "the first line must hold the names of the columns"),
    "underscores are no numbers": ("x,y\n1,2\n2,3\n1_0,4\n5,6\n", "has '1_0' in line 4"),
    "other digits": ("x,y\n1,2\n2,3\n٣,4\n5,6\n", "has '٣' in line 4"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_with_the_place_named(fit_text, case):
    content, expected = CASES[case]
    assert expected in fit_text(content)


@pytest.mark.parametrize("method", ["gp", "relevance", "laplacian"])
def test_a_target_of_labels_is_told_of_the_methods_for_them(fit_text, method):
    hint = "labels, --method is one of online-classes, laplacian-classes, relevance-classes"
    said = fit_text("x,y\n1,low\n2,low\n3,high\n", "--method", method)
    assert "must hold numbers, but has 'low' in line 2" in said and said.endswith(hint)
    assert "labels" not in fit_text("x,y\n1,2\n2,\n3,4\n", "--method", method)


def test_a_target_is_not_to_be_left_out(fit_text):
    assert "leave out these rows" in (said := fit_text("x,y\n1,2\n2,\n3,4\n"))
    assert "this column" not in said


def test_lines_are_counted_as_an_editor_counts_them(fit_text):
    said = fit_text('x,t,y\n1,"two\nlines",2\n\n2,"two\nlines",3\n,b,4\n3,b,5\n')
    assert "column 'x' has missing values in line 7;" in said


def test_rows_of_parquet_are_counted_from_one(refused, tmp_path):
    path = tmp_path / "d.parquet"
    parquet.write_table(pa.table({"x": [1.0, None, float("nan")], "y": [1, 2, 3]}), path)
    said = refused("fit", path, "-t", "y", "-o", tmp_path / "m.mercer")
    assert "column 'x' has missing values in rows 2 and 3;" in said


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--drop", "zz"], "has no column 'zz'"),
        (["--weights", "w"], "weights must not be negative"),
        (["--weights", "y"], "two roles"),
        (["--drop", "y"], "two roles"),
        (["--weights", "t"], "the weights, column 't', must hold numbers"),
        (["--kernel", "periodic", "--period", "t=3"], "--period is for columns of numbers"),
    ],
)
def test_columns_named_wrongly(fit_text, options, expected):
    assert expected in fit_text("x,t,w,y\n1,a,1,2\n2,b,-1,3\n4,a,2,1\n", *options)


def test_several_problems_are_told_at_once_but_not_all(fit_text):
    header = ",".join([*(f"c{i}" for i in range(20)), "y"])
    said = fit_text(f"{header}\n{',' * 20}1\n{'1,' * 20}2\n")
    assert said.count("has missing values") == 5 and "and 15 more columns have problems" in said


def test_a_thousand_columns(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 1000)).round(3)
    rows = np.column_stack([X, X[:, 0]]).tolist()
    data = write_csv(tmp_path / "d.csv", [*(f"c{i}" for i in range(1000)), "y"], rows)
    shown = run("fit", data, "-t", "y", "-o", tmp_path / "m.mercer").stdout
    assert "columns   1000: c0, " in shown and "#" not in shown  # twelve rows tell of none of them
    assert "nothing in the columns was found to tell of the target" in shown
    assert all(len(line) < 400 for line in shown.splitlines() if "Warning" not in line)
    assert run("predict", tmp_path / "m.mercer", data).stdout.count("\n") == 13


def test_unnamed_and_constant_columns_are_left_out(run, tmp_path):
    rows = [[i, i / 3, "same", i**2] for i in range(12)]
    data = write_csv(tmp_path / "d.csv", ["", "x", "c", "y"], rows)
    done = run("fit", data, "-t", "y", "-o", tmp_path / "m.mercer")
    assert "note: column 1 has no name and was left out" in done.stderr
    assert "left out  c: the same in every row" in done.stdout
    assert [c.name for c in mercer.load(tmp_path / "m.mercer").columns] == ["x"]


def test_codes_with_zeros_in_front_are_categories(run, tmp_path):
    codes = ["01234", "98765", "00500"] * 6
    rows = [[code, f"0.{i}", 0, i % 3 + 0.1 * i] for i, code in enumerate(codes, 1)]
    data = write_csv(tmp_path / "d.csv", ["zip", "x", "zero", "y"], rows)
    model = tmp_path / "m.mercer"
    shown = run("fit", data, "-t", "y", "-o", model).stdout
    assert "zip: 3 categories (00500, 01234 and 98765)" in shown
    assert "Note: Column 'zip' has values such as '01234', with zeros in front, and was" in shown
    assert shown.count("Note:") == 1 and "Note: Column 'zip'" in run("info", model).stdout
    assert [c.kind for c in mercer.load(model).columns] == ["category", "number"]
    shown = run("fit", data, "-t", "y", "--categorical", "zip", "-o", model, "--force").stdout
    assert "Note" not in shown  # it was asked for


@pytest.mark.parametrize("dates", [["31.12.2024", "1.2.2025"], ["2024/12/31", "2025/02/01 09:00"]])
def test_dates_in_other_forms_are_noted(run, tmp_path, dates):
    rows = [[dates[i % 2], i, i % 2 + 0.1 * i] for i in range(18)]
    data = write_csv(tmp_path / "d.csv", ["when", "x", "y"], rows)
    shown = run("fit", data, "-t", "y", "-o", tmp_path / "m.mercer").stdout
    assert f"Note: Column 'when' has values such as '{dates[0]}' and was taken for" in shown
    assert "written as 2024-12-31 they are dates" in shown


def test_many_dates_in_another_form_name_the_rows(fit_text):
    said = fit_text("when,y\n" + "".join(f"{i}/3/2024,{i}\n" for i in range(1, 31)))
    assert said.endswith("--categorical; written as 2024-12-31 they are dates")


def test_versions_are_no_dates(run, tmp_path):
    rows = [[f"1.{i % 3}.2", i, i % 3 + 0.1 * i] for i in range(18)]
    data = write_csv(tmp_path / "d.csv", ["version", "x", "y"], rows)
    assert "Note" not in run("fit", data, "-t", "y", "-o", tmp_path / "m.mercer").stdout


def test_many_codes_name_the_rows(fit_text):
    said = fit_text("x,y\n" + "".join(f"{i:04},{i}\n" for i in range(30)))
    assert "30 different texts in 30 rows" in said
    assert said.endswith("--categorical; written without the zeros they are numbers")


def test_types_that_are_not_taken_matter_only_if_used(run, refused, tmp_path):
    path, out = tmp_path / "d.parquet", tmp_path / "m.mercer"
    table = {"x": [1.0, 2.0, 3.0, 4.0], "l": [[1], [2], [3], [4]], "y": [1, 2, 3, 5]}
    parquet.write_table(pa.table(table), path)
    said = refused("fit", path, "-t", "y", "-o", out)
    assert "column 'l' holds values of type list<" in said
    run("fit", path, "-t", "y", "--drop", "l", "-o", out)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x,y\n1,2\n", b"PAR1" + bytes(500) + b"PAR1"])
def test_damaged_parquet(fit_text, content):
    assert "FILE is not a Parquet file, or is damaged" in fit_text(content, name="d.parquet")


def test_files_that_cannot_be_read(refused, tmp_path):
    out = tmp_path / "m.mercer"
    assert "No such file" in refused("fit", tmp_path / "none.csv", "-t", "y", "-o", out)
    assert "Is a directory" in refused("fit", tmp_folder(tmp_path), "-t", "y", "-o", out)
    assert ".csv, .tsv" in refused("fit", tmp_path / "a.xlsx", "-t", "y", "-o", out)


def tmp_folder(tmp_path):
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    return folder


# --- prediction ---------------------------------------------------------------------------------


@pytest.fixture
def predict_rows(refused, fitted, tmp_path):
    def predict(header, rows):
        return refused("predict", fitted, write_csv(tmp_path / "new.csv", header, rows))

    return predict


def test_unseen_categories_are_explained(predict_rows):
    rows = make_rows(6)
    rows[1][2] = rows[4][2] = "mauve"
    rows[5][3] = "winzig"
    said = predict_rows(NAMES, rows)
    assert (
        "column 'colour' has categories that the model has not seen: 'mauve' (lines 3 and 6)"
        in said
    )
    assert "it knows 'blue; light', 'grün' and 'red, \"dark\"'" in said
    assert "'winzig' (line 7)" in said


def test_columns_that_lack_are_named(predict_rows):
    said = predict_rows([NAMES[0], "Colour"], [[1, "grün"]])
    assert f"lacks the columns {NAMES[1]!r}, 'colour', 'größe' and 'fresh'" in said
    said = predict_rows(["X 1", *NAMES[1:]], make_rows(2))
    assert "lacks the column 'x 1'; it has 'X 1', and a name must be the same" in said


def test_wrong_cells_at_prediction(predict_rows):
    rows = make_rows(5)
    rows[0][0], rows[2][0], rows[3][1], rows[4][4] = "one", "inf", "", "maybe"
    said = predict_rows(NAMES, rows)
    assert "'x 1' must hold numbers, but has 'one' in line 2 and 'inf' in line 4" in said
    assert "has missing values in line 5" in said
    assert "'fresh' must hold true or false, but has 'maybe' in line 6" in said


def test_nothing_to_predict(predict_rows):
    assert "has no rows to predict" in predict_rows(NAMES, [])


# --- model files --------------------------------------------------------------------------------


@pytest.fixture(params=["predict", "info"])
def ask(request, refused, new):
    def ask(model):
        return refused(request.param, model, *([new] if request.param == "predict" else []))

    return ask


def test_model_files_that_are_none(ask, data, tmp_path):
    assert "is not a Mercer file" in ask(data)
    assert "No such file" in ask(tmp_path / "none.mercer")
    (tmp_path / "empty.mercer").write_bytes(b"")
    assert "is not a Mercer file" in ask(tmp_path / "empty.mercer")
    with zipfile.ZipFile(tmp_path / "other.mercer", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert "not a Mercer file" in ask(tmp_path / "other.mercer")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.999])
def test_truncated_models(ask, fitted, tmp_path, part):
    whole = Path(fitted).read_bytes()
    (tmp_path / "cut.mercer").write_bytes(whole[: int(part * len(whole))])
    assert "is not a Mercer file, or is damaged" in ask(tmp_path / "cut.mercer")


def test_corrupted_models(ask, fitted, tmp_path):
    whole = bytearray(Path(fitted).read_bytes())
    at = whole.index(b"categor")
    whole[at] ^= 1
    (tmp_path / "bad.mercer").write_bytes(whole)
    assert "damaged" in ask(tmp_path / "bad.mercer")


def test_a_file_saved_from_python(run, refused, new, tmp_path):
    mercer.save(RBF(2.0), tmp_path / "k.mercer")
    assert "holds a RBF that was saved from Python" in run("info", tmp_path / "k.mercer").stdout
    assert "has no predict_interval" in refused("predict", tmp_path / "k.mercer", new)
    nameless = mercer.GPRegressor(RBF(2.0), optimizer=None).fit([[0.0], [1.0]], [0.0, 1.0])
    mercer.save(nameless, tmp_path / "r.mercer")
    assert "knows no names of columns" in refused("predict", tmp_path / "r.mercer", new)


def test_random_bytes_never_bring_a_traceback(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "r.csv"
    for _ in range(200):
        letters = np.frombuffer(b'a1,;\t"\n\r .e-\xc3\xa9\xff\x00', dtype=np.uint8)
        path.write_bytes(rng.choice(letters, rng.integers(0, 60)).tobytes())
        try:
            read_table(str(path))
        except mercer.errors.MercerError as error:
            assert str(error).startswith(str(path))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x.csv.gz", "give - for its name and pipe it in: zcat x.csv.gz | mercer [.]{3}$"),
        ("my x.tsv.xz", "pipe it in: xzcat 'my x.tsv.xz' | mercer "),
        ("x.parquet.gz", "compressed files are not read; unpack it first$"),
        ("x.csv.zip", "compressed files are not read; unpack it first$"),
        ("x.ods", r"what kind of table it is, one of \.csv"),
    ],
)
def test_names_that_tell_no_table(name, said):
    with pytest.raises(InputError, match=said.replace("|", r"\|")):
        read_table(name)
