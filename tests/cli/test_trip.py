"""The whole trip: fit, info, predict; and that the numbers are those of the estimator."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import parquet

import mercer
import mercer.cli.model
import mercer.compat
from mercer.cli.methods import METHODS
from mercer.estimators import prepare_sparse
from mercer.kernels import RBF
from mercer.likelihoods import EpsilonInsensitive, Huber, Laplace
from mercer.priors import FeatureSelection

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("support", Path(__file__).with_name("support.py"))
support = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(support)
NAMES, make_rows, read_rows, write_csv = (
    support.NAMES,
    support.make_rows,
    support.read_rows,
    support.write_csv,
)


def by_hand(rows):
    """Inputs as `mercer fit` should make them: numbers, one-hot in alphabetical order, 0 and 1."""
    a, b, colour, size, fresh = list(zip(*rows, strict=True))[:5]
    columns = [np.array(a, dtype=float), np.array(b, dtype=float)]
    columns += [np.array(colour) == level for level in sorted(set(colour))]
    columns += [np.array(size) == level for level in sorted(set(size))]
    return np.column_stack([*columns, np.array(fresh) == "True"]).astype(float)


@pytest.fixture(scope="module")
def direct():
    rows = make_rows(60)
    model = mercer.GPRegressor(random_state=0)
    return model.fit(by_hand(rows), [row[-1] for row in rows])


def test_predictions_are_those_of_the_estimator(run, data, new, tmp_path, direct):
    model, out = tmp_path / "m.mercer", tmp_path / "out.csv"
    shown = run("fit", data, "--target", "yield", "-o", model).stdout
    assert "60 from data.csv" in shown and f"Saved as {model}" in shown
    assert "colour: 3 categories (blue; light, grün and 'red, \"dark\"')" in shown
    done = run("predict", model, new, "-o", out, "--coverage", "0.8")
    assert "note: the model does not know 'note'" in done.stderr
    text = Path(new).read_text().replace("fresh", "Fresh")
    said = run("predict", model, "-", stdin=text, code=1).stderr
    assert "lacks the column 'fresh'; it has 'Fresh', and" in said and "note:" not in said
    rows = read_rows(out)
    assert list(rows[0]) == [f"yield_{part}" for part in ("mean", "std", "lower", "upper")]
    X = by_hand(make_rows(9, seed=1))
    mean, std = direct.predict(X, return_std=True)
    lower, upper = direct.predict_interval(X, coverage=0.8)
    for part, expected in zip(rows[0], (mean, std, lower, upper), strict=True):
        assert_array_equal([float(row[part]) for row in rows], expected)


def test_a_greedy_fit_tells_what_is_proved(run, data, new, tmp_path):
    model = str(tmp_path / "greedy.mercer")
    fitted = run("fit", data, "-t", "yield", "--method", "greedy", "-o", model).stdout
    known = mercer.load(model).estimator
    for shown in (fitted, run("info", model).stdout):
        assert f"Gap {known.gap_:.3g} with {len(known.basis_indices_)} basis functions" in shown
    run("predict", model, new, "-o", str(tmp_path / "predicted.csv"))
    assert len(read_rows(tmp_path / "predicted.csv")) == 9


@pytest.mark.parametrize("method", ["laplacian", "laplacian-classes"])
def test_an_expansion_tells_its_size_and_what_is_proved(run, data, new, tmp_path, method):
    model = str(tmp_path / "expansion.mercer")
    target, loss = ["yield"], ""
    if method == "laplacian-classes":
        target, loss = ["fresh", "--drop", "yield", "--likelihood", "soft_margin"], "soft_margin, "
    fitted = run("fit", data, "-t", *target, "--method", method, "-o", model).stdout
    known = mercer.load(model).estimator
    assert known.gap_ <= 1e-6
    for shown in (fitted, run("info", model).stdout):
        assert f"{known.n_active_} functions in use" in shown and "proved to a part of" in shown
        assert f"prior          laplacian with scale {known.prior_.scale:.4g}" in shown
        assert f"likelihood     {loss}" in shown and repr(known.likelihood_) in shown
    run("predict", model, new, "-o", str(tmp_path / "predicted.csv"))
    assert len(read_rows(tmp_path / "predicted.csv")) == 9


def test_an_expansion_has_the_prior_and_the_noise_that_are_asked_for(run, data, tmp_path):
    model = str(tmp_path / "expansion.mercer")
    few = tmp_path / "few.csv"
    few.write_text("".join(Path(data).read_text().splitlines(keepends=True)[:25]))
    fit = ["fit", few, "-t", "yield", "--method", "laplacian", "-o", model, "--force"]
    own = ["--prior", "feature_selection", "--prior-scale", "0.5", "--likelihood", "laplace"]
    shown = run(*fit, *own).stdout
    known = mercer.load(model).estimator
    assert known.prior_ == FeatureSelection(0.5) and isinstance(known.likelihood_, Laplace)
    assert "prior          feature_selection with scale 0.5" in shown
    assert "that the log posterior is stationary is proved" in shown
    dense = run(*fit, "--prior", "weight_decay", "--prior-scale", "0.5").stdout
    assert "24 functions in use" in dense and "mostly 0" not in dense  # all rows are
    for name, made in (("epsilon_insensitive", EpsilonInsensitive), ("huber", Huber)):
        assert type(METHODS["laplacian"].build(likelihood=name).likelihood) is made
    for wrong, text in (
        (["--prior", "flat"], "'flat' is not one of: laplacian, weight_decay"),
        (["--likelihood", "logistic"], "none of those of --method laplacian: gaussian, laplace"),
        (["--prior-scale", "0"], "a positive number from 1e-70 to 1e70 is wanted, got 0"),
        (["--prior-scale", "nan"], "is wanted, got nan"),
    ):
        assert text in run(*fit, *wrong, code=2).stderr
    plain = ["fit", data, "-t", "yield", "-o", model, "--force", "--prior", "laplacian"]
    assert "an option of --method laplacian, laplacian-classes" in run(*plain, code=2).stderr


@pytest.mark.parametrize("method", ["relevance", "relevance-classes"])
def test_relevance_vectors_tell_their_number_and_the_noise(run, data, new, tmp_path, method):
    model = str(tmp_path / "relevance.mercer")
    target = ["fresh", "--drop", "yield"] if method == "relevance-classes" else ["yield"]
    fitted = run("fit", data, "-t", *target, "--method", method, "-o", model).stdout
    known = mercer.load(model).estimator
    for shown in (fitted, run("info", model).stdout):
        assert f"{known.n_relevance_} kept of those at all rows" in shown
        assert "log evidence" in shown
        if method == "relevance":
            std = float(np.sqrt(known.noise_variance_))
            assert f"standard deviation {std:.4g}" in shown
    run("predict", model, new, "-o", str(tmp_path / "predicted.csv"))
    assert len(read_rows(tmp_path / "predicted.csv")) == 9


def test_relevance_vectors_with_outliers(run, tmp_path):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 80))
    y = np.sin(x) + 0.1 * rng.normal(size=80)
    y[5::20] += 100.0
    data = write_csv(tmp_path / "d.csv", ["x", "y"], zip(x, y, strict=True))
    model, online = tmp_path / "m.mercer", tmp_path / "n.mercer"
    fit = ["fit", data, "-t", "y", "-o", model]
    shown = run(*fit, "--method", "relevance", "--robust").stdout
    known = mercer.load(model).estimator
    assert known.robust is True and abs(known.posterior_.mean([[np.pi / 2]])[0, 0] - 1.0) < 0.1
    for told in (shown, run("info", model).stdout):
        assert f"likelihood     {known.likelihood_!r}\n" in told and "StudentT" in told
        assert "outliers       4 (rows with less than a tenth of a say)\n" in told
    run("stream", "-m", model, "--continue-as", online, stdin="x,y\n0.5,0.4\n")
    told = run("info", online).stdout
    assert "StudentT" in told and "outliers" not in told
    plain = run(*fit, "--method", "relevance", "--force").stdout
    assert "StudentT" not in plain and mercer.load(model).estimator.robust is False
    for method in ("gp", "relevance-classes"):
        said = " ".join(run(*fit, "--method", method, "--robust", code=2).stderr.split())
        assert f"--robust is an option of --method relevance, got {method}" in said


def test_rows_of_weight_0_are_no_outliers(run, tmp_path):
    x = np.linspace(-3, 3, 40)
    y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=40)
    y[[5, 9]] += 100.0
    weights = np.where(np.arange(40) % 4 == 1, 0, 1)  # the two among them
    data = write_csv(tmp_path / "d.csv", ["x", "y", "w"], zip(x, y, weights, strict=True))
    fit = ["fit", data, "-t", "y", "--weights", "w", "-o", tmp_path / "m.mercer"]
    assert "outliers       0 " in run(*fit, "--method", "relevance", "--robust").stdout


def test_relevance_vectors_of_a_sum_beside_dates(run, tmp_path):
    """Days since 1970 are far from 0, where a linear term is all but constant."""
    rng = np.random.default_rng(0)
    days, x = rng.integers(0, 300, 50), rng.uniform(-3, 3, 50)
    frame = pd.DataFrame({"day": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D")})
    frame = frame.assign(day=frame["day"].dt.strftime("%Y-%m-%d"), x=x)
    frame["y"] = np.sin(2 * x) + 0.1 * rng.normal(size=50)
    data, far, model = (tmp_path / name for name in ("d.csv", "far.csv", "m.mercer"))
    frame.to_csv(data, index=False)
    frame[:1].assign(x=1e3).to_csv(far, index=False)
    fit = ["fit", data, "-t", "y", "--method", "relevance", "-o", model]
    shown = run(*fit, "--kernel", "rbf+linear").stdout
    error = frame["y"] - mercer.load(model).predict(frame).mean
    assert np.mean(error**2) < 0.1 * np.var(frame["y"])
    assert shown.index("\n  x ") < shown.index("\n  day ")
    run(*fit, "--kernel", "rbf", "--force")
    said = run("predict", model, far).stderr
    assert said.startswith("mercer: note: 1 of 1 points are far from every relevance vector")
    assert "augment" not in said and "Warning" not in said and said.count("\n") == 1


def test_a_sparse_fit_is_that_of_the_estimator(run, data, new, tmp_path):
    model, out = tmp_path / "m.mercer", tmp_path / "out.csv"
    shown = run("fit", data, "-t", "yield", "--method", "sparse", "-o", model).stdout
    assert "method    sparse" in shown and "RMSE" in shown
    run("predict", model, new, "-o", out)
    rows = make_rows(60)
    direct = mercer.SparseGPRegressor(random_state=0)
    direct.fit(by_hand(rows), [row[-1] for row in rows])
    found = [float(row["yield_mean"]) for row in read_rows(out)]
    assert_allclose(found, direct.predict(by_hand(make_rows(9, seed=1))), rtol=1e-10)


def test_a_fit_by_blocks_has_no_leave_one_out(run, data, tmp_path, monkeypatch):
    monkeypatch.setattr(prepare_sparse, "_SEARCHED", 40)
    model = tmp_path / "m.mercer"
    shown = run("fit", data, "-t", "yield", "--method", "sparse", "-o", model).stdout
    assert mercer.load(model).estimator.approximation_ == "pic"
    summary = mercer.load(model).summary
    assert "log evidence" in shown and "leave_one_out" not in summary
    assert any(note.startswith("no leave-one-out: approx") for note in summary["notes"])


def test_a_model_fitted_to_a_frame_in_python(run, refused, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    y = frame["a"] - frame["b"]
    model = mercer.SparseGPRegressor(RBF(), approximation="vfe", n_inducing=9, optimizer=None)
    path, new, out = tmp_path / "m.mercer", tmp_path / "new.csv", tmp_path / "out.csv"
    frame[["b", "a"]].to_csv(new, index=False)
    mercer.save(model.fit(frame, y), path)
    run("predict", path, new, "-o", out)
    found = [float(row["y_mean"]) for row in read_rows(out)]
    assert_allclose(found, model.predict(frame), rtol=1e-10)
    mercer.save(model.fit(frame, y.to_frame()), path)  # one target, as a column
    run("predict", path, new, "-o", out, "--force")
    found = [float(row["y_mean"]) for row in read_rows(out)]
    assert_allclose(found, model.predict(frame)[:, 0], rtol=1e-10)
    mercer.save(model.fit(frame, np.column_stack([y, y])), path)
    said = "SparseGPRegressor that was saved from Python and predicts 2 targets"
    assert said in refused("predict", path, new)
    mercer.save(mercer.compat.GaussianProcessRegressor(optimizer=None).fit(frame, y), path)
    assert "has no predict_interval" in refused("predict", path, new)


def test_info_repeats_what_fit_said(run, data, tmp_path):
    model = tmp_path / "m.mercer"
    shown = run("fit", data, "--target", "yield", "-o", model).stdout
    again = run("info", model).stdout
    assert shown.startswith(again.rstrip("\n"))
    for word in ("log evidence", "noise", "RMSE", "NLPD", "coverage", "relevance", "columns   5"):
        assert word in again


def test_the_summary_has_the_estimators_numbers(fitted, direct):
    summary = mercer.load(fitted).summary
    left = direct.loo()
    y = direct.y_train_[:, 0]
    assert summary["log_evidence"] == direct.log_marginal_likelihood_value_
    assert summary["leave_one_out"]["rmse"] == np.sqrt(np.mean((y - left.mean) ** 2))
    assert summary["leave_one_out"]["nlpd"] == -np.mean(left.log_density)
    inside = np.abs(y - left.mean) <= 1.959963984540054 * left.std
    assert summary["leave_one_out"]["coverage_95"] == np.mean(inside)
    assert summary["noise_std"] == np.sqrt(direct.likelihood_.noise)
    scales = direct.kernel_.kernel.length_scale
    found = {name: (scale, size) for name, scale, size in summary["relevances"]}
    X = by_hand(make_rows(60))
    assert found["x 1"] == (scales[0], pytest.approx(X[:, 0].std() / scales[0], rel=1e-12))
    parts = X[:, 2:5].std(axis=0) / scales[2:5]
    assert found["colour"] == (None, pytest.approx(np.sqrt(np.sum(parts**2)), rel=1e-12))


def test_parquet_in_and_out_gives_the_same(run, data, new, fitted, tmp_path):
    out = tmp_path / "out.parquet"
    rows = read_rows(new)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    table = pa.table(
        {
            "x 1": pa.array([float(v) for v in columns["x 1"]]),
            NAMES[1]: pa.array([float(v) for v in columns[NAMES[1]]], pa.float64()),
            "colour": pa.array(columns["colour"]).dictionary_encode(),
            "größe": pa.array(columns["größe"], pa.large_string()),
            "fresh": pa.array([v == "True" for v in columns["fresh"]]),
            "id": pa.array(range(2**60, 2**60 + 9)),
            "many": pa.array([[1, 2]] * 9),
        }
    )
    source = str(tmp_path / "new.parquet")
    parquet.write_table(table, source)
    run("predict", fitted, source, "-o", out, "--keep")
    found = parquet.read_table(out)
    assert found.column_names[:7] == table.column_names
    assert found.select(table.column_names).equals(table)
    run("predict", fitted, new, "-o", tmp_path / "out.csv")
    for name in found.column_names[7:]:
        expected = [float(row[name]) for row in read_rows(tmp_path / "out.csv")]
        assert_array_equal(found.column(name).to_numpy(), expected)


def test_fitting_a_parquet_file_gives_the_same_model(run, data, new, fitted, tmp_path):
    columns = dict(zip(NAMES, zip(*make_rows(60), strict=True), strict=True))
    columns["fresh"] = [v == "True" for v in columns["fresh"]]
    parquet.write_table(pa.table({k: list(v) for k, v in columns.items()}), tmp_path / "d.parquet")
    run("fit", tmp_path / "d.parquet", "-t", "yield", "-o", tmp_path / "p.mercer")
    same = run("predict", tmp_path / "p.mercer", new).stdout
    assert same == run("predict", fitted, new).stdout


def test_keep_writes_the_inputs_first_and_preserves_rows(run, new, fitted, tmp_path):
    out = tmp_path / "out.csv"
    run("predict", fitted, new, "-o", out, "--keep")
    kept, before = read_rows(out), read_rows(new)
    assert [{k: row[k] for k in before[0]} for row in kept] == before
    assert list(kept[0])[-4:] == [f"yield_{p}" for p in ("mean", "std", "lower", "upper")]


def test_keep_of_csv_in_parquet_has_types(run, fitted, tmp_path):
    rows = [[*row, "007", i, i / 2, ""] for i, row in enumerate(make_rows(4, seed=2))]
    new = write_csv(tmp_path / "n.csv", [*NAMES, "code", "count", "half", "empty"], rows)
    run("predict", fitted, new, "-o", tmp_path / "o.parquet", "--keep")
    schema = parquet.read_table(tmp_path / "o.parquet").schema
    types = [str(schema.field(n).type) for n in ("code", "count", "half", "empty", "colour")]
    assert types == ["string", "int64", "double", "string", "string"]


def test_keep_refuses_a_name_that_stands_there_already(refused, fitted, tmp_path):
    rows = [[*row, 1.0] for row in make_rows(4)]
    new = write_csv(tmp_path / "n.csv", [*NAMES, "yield_std"], rows)
    assert "'yield_std'" in refused("predict", fitted, new, "--keep")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_delimiters_and_the_mark_at_the_beginning(run, fitted, tmp_path, delimiter, encoding):
    rows = make_rows(9, seed=1)
    plain = run("predict", fitted, write_csv(tmp_path / "a.csv", NAMES, rows)).stdout
    other = write_csv(tmp_path / "b.csv", NAMES, rows, delimiter, encoding)
    assert run("predict", fitted, other).stdout == plain


def test_standard_input_and_output(run, new, fitted):
    text = Path(new).read_text(encoding="utf-8")
    done = run("predict", fitted, "-", stdin=text)
    assert done.stdout == run("predict", fitted, new).stdout
    assert done.stdout.startswith("yield_mean,yield_std,yield_lower,yield_upper\n")
    assert done.stdout.count("\n") == 10


def test_dates_become_days(run, tmp_path):
    days = np.arange(40)
    rows = [[f"2024-02-{d + 1:02}" if d < 29 else f"2024-03-{d - 28:02}", d % 7] for d in days]
    data = write_csv(tmp_path / "d.csv", ["date", "y"], rows)
    arguments = ["--kernel", "rbf+periodic", "--period", "date=7", "-o", tmp_path / "m.mercer"]
    shown = run("fit", data, "-t", "y", *arguments).stdout
    assert "date: days since 1970-01-01" in shown
    model = mercer.load(tmp_path / "m.mercer")
    assert "periodicity=7)" in model.summary["fitted_kernel"]  # held, as it was given
    table = pa.table({"date": pa.array([np.datetime64("2024-02-01T12", "s")])})
    assert model.encode(table)[0, 0] == 19754.5
    weekly = pa.table({"date": ["2024-03-12", "2024-03-13", "2024-03-14"]})  # days 40, 41, 42
    assert np.round(model.predict(weekly).mean).tolist() == [5.0, 6.0, 0.0]


@pytest.mark.parametrize(
    "kernel", ["matern12", "matern32", "matern52", "rq", "linear", "rbf+linear"]
)
def test_every_kernel_fits_and_is_saved(run, data, new, tmp_path, kernel):
    model = tmp_path / "m.mercer"
    shown = run("fit", data, "-t", "yield", "--kernel", kernel, "-o", model).stdout
    assert f"kernel {kernel}" in shown
    assert mercer.load(model).summary["leave_one_out"]["rmse"] < 0.7
    assert run("predict", model, new).stdout.count("\n") == 10


def test_weights_drop_and_categorical(run, tmp_path):
    rng = np.random.default_rng(3)
    code = rng.choice([3, 40, 500], 30)
    x = rng.normal(size=30).round(3)
    y = x + (code == 40)
    w = np.where(np.arange(30) < 5, 0, 2)
    y[:5] = 1e6  # rows without weight say nothing
    rows = list(zip([f"id{i}" for i in range(30)], x, code, w, y, strict=True))
    data = write_csv(tmp_path / "d.csv", ["id", "x", "code", "w", "y"], rows)
    options = ["--drop", "id", "--categorical", "code", "--weights", "w"]
    shown = run("fit", data, "-t", "y", *options, "-o", tmp_path / "m.mercer").stdout
    assert "code: 3 categories (3, 40 and 500)" in shown and "weights   w" in shown
    model = mercer.load(tmp_path / "m.mercer")
    assert [c.name for c in model.columns] == ["x", "code"]
    found = model.predict(pa.table({"x": [0.0, 0.0], "code": [40, 3]})).mean
    np.testing.assert_allclose(found, [1.0, 0.0], atol=0.05)
    assert run("predict", tmp_path / "m.mercer", data).stderr == ""  # known columns, left out


def test_seed_and_restarts_reach_the_estimator(run, data, tmp_path):
    model = tmp_path / "m.mercer"
    run("fit", data, "-t", "yield", "--restarts", 2, "--seed", 5, "-o", model)
    found = mercer.load(model).estimator
    assert (found.n_restarts, found.random_state, found.verbose) == (2, 5, 0)


def test_frames_of_pandas_and_polars(fitted, new, run):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    model = mercer.load(fitted)
    rows = read_rows(new)
    expected = model.predict(pa.Table.from_pylist(rows))
    frame = pandas.DataFrame(rows, index=range(5, 14))
    frame["colour"] = frame["colour"].astype("category")
    frame["fresh"] = frame["fresh"] == "True"
    for found in (model.predict(frame), model.predict(polars.DataFrame(rows))):
        assert_array_equal(found, expected)


def test_the_estimator_knows_its_columns_by_name(fitted, new):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from mercer.plotting import plot_relevance

    model = mercer.load(fitted)
    labels = [label for column in model.columns for label in column.labels]
    assert list(model.estimator.feature_names_in_) == labels and "colour=grün" in labels
    ax = plot_relevance(model.estimator)
    assert sorted(text.get_text() for text in ax.get_yticklabels()) == sorted(labels)
    pyplot.close(ax.figure)


def test_the_file_holds_no_code(fitted):
    with zipfile.ZipFile(fitted) as archive:
        names = archive.namelist()
        description = json.loads(archive.read("mercer.json"))
    assert all(n == "mercer.json" or n.endswith(".npy") for n in names)
    assert description["functions"] == []
    columns = description["tree"]["state"]["columns"]
    assert columns[2]["state"]["levels"] == ["blue; light", "grün", 'red, "dark"']


def test_demo(run, tmp_path):
    shown = run("demo").stdout
    assert "in their 95% intervals" in shown
    place = tmp_path / "kept" / "here"
    run("demo", "--folder", place)
    assert len(list(place.iterdir())) == 4
    with contextlib.chdir(place):
        run("predict", "harvest.mercer", "new.csv")
    assert "exists" in run("demo", "--folder", place, code=1).stderr
    run("demo", "--folder", place, "--force")


def test_real_processes_with_pipes(new, fitted):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "mercer.cli"]
    piped = subprocess.run(
        [*command, "predict", fitted, "-"],
        input=Path(new).read_bytes(),
        capture_output=True,
        env=environment,
        check=True,
    )
    assert piped.stdout.count(b"\n") == 10
    wrong = subprocess.run(
        [*command, "predict", fitted, "none.csv"], capture_output=True, text=True, env=environment
    )
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr == "mercer: none.csv: No such file or directory\n"
