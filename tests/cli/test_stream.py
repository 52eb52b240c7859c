"""Streams that are begun, resumed and kept, and the models that they go on from."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

import mercer
from mercer.cli.model import TableModel
from mercer.cli.stream_state import only_stream
from mercer.kernels import RBF, Exponential
from mercer.likelihoods import Gaussian

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


# --- once more, or another input ----------------------------------------------------------------


def test_resuming_passes_over_what_is_known(stream, model):
    rows = make_rows(12)
    stream(as_json(rows[:5]))
    found, said = stream(as_json(rows), "--resume")
    assert [p["line"] for p in found] == list(range(6, 13))
    assert "12 rows predicted, 12 learned" in said
    found, _ = stream(as_json(rows), "--resume")  # all of it is known
    assert not found and mercer.load(model).estimator.n_seen_ == 32


def test_resuming_wants_the_same_input(stream, model):
    rows = make_rows(6)
    stream(as_csv(rows))
    before = contents(model)
    for text, expected in [
        (as_csv(rows[1:]), "the input ends after 6 lines, and the model has learned from 7"),
        (as_csv(rows[::-1]), "the first 7 lines are not those that the model has learned from"),
        ("", "the input ends after 0 lines"),
    ]:
        found, said = stream(text, "--resume", code=1)
        assert expected in said and not found
        assert contents(model) == before


def test_resuming_a_model_that_has_seen_no_stream_is_a_beginning(stream):
    assert len(stream(as_json(make_rows(3)), "--resume")[0]) == 3


def test_an_input_that_was_broken_off_must_be_resumed_or_left(stream, model):
    rows = make_rows(4)
    stream(as_json(rows[:2]) + "{\n", code=1)
    before = contents(model)
    _, said = stream(as_json(rows), code=1)
    assert "was left in the middle of an input, after line 2. --resume passes over" in said
    assert "--new learns all rows" in said
    assert contents(model) == before
    assert len(stream(as_json(rows), "--new")[0]) == 4
    assert mercer.load(model).estimator.n_seen_ == 26


def test_another_input_is_learned_and_the_same_one_is_suspected(stream, model):
    rows = make_rows(8)
    stream(as_json(rows[:4]))
    _, said = stream(as_json(rows[4:]))
    assert "note:" not in said and mercer.load(model).estimator.n_seen_ == 28
    _, said = stream(as_json(rows[4:]))
    assert "begins with the same two lines as the last one. If it is the same its rows" in said
    _, said = stream(as_json(rows[4:]), "--new")
    assert "note:" not in said


def test_one_stream_at_a_time(stream, model):
    with only_stream(model):
        _, said = stream(as_json(make_rows(2)), code=1)
        assert f"another `mercer stream` is learning into {model}" in said
    assert len(stream(as_json(make_rows(2)))[0]) == 2
    assert [p.name for p in Path(model).parent.iterdir()] == ["m.mercer"]


def test_how_often_the_model_is_saved(stream, model, monkeypatch):
    saved = []
    monkeypatch.setattr(
        "mercer.cli.stream.checkpoint", lambda model, state, path: saved.append(state.line)
    )
    stream(as_json(make_rows(10)), "--every", "4")
    assert saved == [4, 8, 10]
    saved.clear()
    stream(as_json(make_rows(3)), "--seconds", "0")
    assert saved == [1, 2, 3, 3]  # the last to say that the input has ended


# --- models of other kinds ----------------------------------------------------------------------


def test_a_model_of_another_kind_is_told_how_to_go_on(run, tmp_path):
    rows = make_rows(40, seed=5)
    exact = mercer.GPRegressor(Exponential(1.0), Gaussian(0.01), mean="zero", optimizer=None)
    names = ["x", "colour=blue", "colour=red", "fresh"]
    exact.fit(pd.DataFrame(encoded(rows), columns=names), [r["y"] for r in rows])
    path, new = tmp_path / "gp.mercer", tmp_path / "new.mercer"
    mercer.save(TableModel("y", support.COLUMNS, exact, {}), path)
    before = contents(path)
    said = run("stream", "--model", path, stdin=as_json(make_rows(3)), code=1).stderr
    assert f"{path} holds a GPRegressor, which does not learn row by row" in said
    assert f"`mercer stream --model {path} --continue-as NEW.mercer` makes one of it" in said
    assert "mercer fit --method online" in said

    arguments = ["--model", path, "--continue-as", new]
    done = run("stream", *arguments, "--max-basis", "50", stdin=as_json(make_rows(3)))
    assert f"{path} goes on with 40 of its 40 basis vectors" in done.stderr
    x = pd.DataFrame(encoded(make_rows(3)[:1]), columns=names)
    mean, std = exact.predict(x, return_std=True)
    first = parsed(done.stdout)[0]
    assert_allclose([first["y_mean"], first["y_std"]], [mean[0], std[0]], rtol=1e-6)
    kept = mercer.load(new).estimator
    assert (kept.max_basis, kept.n_seen_) == (50, 3) and list(kept.feature_names_in_) == names
    assert contents(path) == before
    said = run("stream", *arguments, stdin="", code=1).stderr
    assert "exists; --force replaces it" in said
    done = run("stream", *arguments, "--force", "--max-basis", "9", stdin="")
    assert "with 9 of its 40 basis vectors, at a loss of " in done.stderr
    assert mercer.load(new).estimator.n_basis_ == 9
    assert len(parsed(run("stream", "-m", new, stdin=as_json(make_rows(3))).stdout)) == 3


def test_models_saved_from_python_are_not_replaced(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    model = mercer.OnlineGPRegressor(RBF(1.0), Gaussian(0.01)).partial_fit(frame, frame["a"])
    path, new = tmp_path / "m.mercer", tmp_path / "new.mercer"
    mercer.save(model, path)
    text = "a,b,y\n0.5,0.25,1\n"
    said = run("stream", "--model", path, stdin=text, code=1).stderr
    assert "was saved from Python" in said and "--continue-as" in said
    found = parsed(run("stream", "--model", path, "--continue-as", new, stdin=text).stdout)
    assert_allclose(found[0]["y_mean"], model.posterior_.mean([[0.5, 0.25]])[0, 0], rtol=1e-9)
    assert mercer.load(new).estimator.n_seen_ == 31
    said = run("stream", "-m", new, "--continue-as", path, "--max-basis", "3", stdin="", code=1)
    assert "exists" in said.stderr
    arguments = ["-m", new, "--continue-as", tmp_path / "more.mercer", "--max-basis", "3"]
    assert "is an on-line model" in run("stream", *arguments, stdin="", code=1).stderr


def test_classes_that_were_fitted_one_against_the_rest(run, refused, tmp_path):
    """They go on together where they have one kernel, and it is said why where they do not."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    labels = np.digitize(frame["a"], [-0.4, 0.4])
    one = mercer.GPClassifier(RBF(1.0), "probit", inference="ep", optimizer=None)
    one.fit(frame, labels)
    path, new = tmp_path / "c.mercer", tmp_path / "n.mercer"
    mercer.save(one, path)
    text = "a,b,y\n0.5,0.25,2\n"
    done = run("stream", "--model", path, "--continue-as", new, stdin=text)
    kept = mercer.load(new)
    assert kept.estimator.n_seen_ == 1 and list(kept.estimator.classes_) == [0, 1, 2]
    wanted = one.predict_proba(pd.DataFrame([[0.5, 0.25]], columns=["a", "b"]))[0]
    got = [parsed(done.stdout)[0][name] for name in kept.output_names[-3:]]
    assert_allclose(got, wanted, atol=1e-5)
    each = mercer.GPClassifier(RBF(1.0), "probit", inference="ep").fit(frame, labels)
    mercer.save(each, tmp_path / "e.mercer")
    said = refused("stream", "-m", tmp_path / "e.mercer", "--continue-as", tmp_path / "x.mercer")
    assert "cannot be continued on-line: these posteriors cannot go on together" in said


def test_several_expansions_are_told_why_they_cannot_go_on_together(refused, tmp_path):
    """All classes have one likelihood, where those of Gaussian processes have one each."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    labels = np.digitize(frame["a"], [-0.4, 0.4])
    for model in (
        mercer.RelevanceVectorClassifier(RBF(1.0), optimizer=None),
        mercer.RelevanceVectorClassifier(RBF(1.0), optimizer=None, multi_class="multinomial"),
        mercer.LaplacianProcessClassifier(RBF(1.0), prior_scale=1.0, optimizer=None),
    ):
        path = tmp_path / "m.mercer"
        mercer.save(model.fit(frame, labels), path)
        said = refused("stream", "-m", path, "--continue-as", tmp_path / "x.mercer")
        assert "cannot be continued on-line: it has 3 classes" in said
        assert "only those of two classes can be continued" in said


def test_what_is_told_of_a_model_that_went_on_is_true_of_it(run, tmp_path):
    """The proof was of the fit; the basis stays; later rows count in what the model tells."""
    data, path, new = (tmp_path / name for name in ("d.csv", "m.mercer", "n.mercer"))
    data.write_text(as_csv(make_rows(40)))
    fit = ["fit", data, "-t", "y", "-o", path, "--method"]
    assert "is proved to a part of" in run(*fit, "laplacian", "--prior-scale", "1").stdout
    rows = as_csv(make_rows(5, seed=9))
    done = run("stream", "-m", path, "--continue-as", new, stdin=rows)
    assert "its functions stay as they are, and only their weights learn" in done.stderr
    told = run("info", new).stdout
    assert "proved" not in told and "functions, which stay; 5 rows have changed" in told

    told = run(*fit, "online", "--max-basis", "9", "--force").stdout
    assert "9 vectors, of 9 at the most; projections on them have cost" in told
    run("stream", "-m", path, stdin=rows)
    kept, told = mercer.load(path).estimator, run("info", path).stdout
    assert f"{kept.projection_loss_:.3g} nats in 45 rows" in told
    assert f"log evidence   {kept.log_evidence_:.6g}\n" in told


def test_a_degenerate_model_goes_on_with_its_weights(run, refused, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    sor = mercer.SparseGPRegressor(
        RBF(1.0), Gaussian(0.01), approximation="sor", n_inducing=6, optimizer=None
    ).fit(frame, frame["a"])
    path, new = tmp_path / "s.mercer", tmp_path / "n.mercer"
    mercer.save(sor, path)
    arguments = ["stream", "-m", path, "--continue-as", new]
    run(*arguments, stdin="a,b,y\n0.5,0.25,1\n")
    kept = mercer.load(new).estimator
    assert (kept.n_basis_, kept.n_seen_, kept.posterior_.weight) == (6, 1, 0)
    said = refused(*arguments, "--max-basis", "3", "--force", stdin="")
    assert "its functions stay as they are, all 6" in said
    assert "Leave --max-basis out, or fit it anew with --method online" in said
    assert "lift" not in said  # what Python offers is no option of the command


def test_no_model_and_one_without_a_posterior(refused, tmp_path):
    assert "No such file" in refused("stream", "--model", tmp_path / "none", stdin="")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    committee = mercer.BayesianCommitteeRegressor(RBF(1.0), optimizer=None, n_members=2)
    mercer.save(committee.fit(frame, frame["a"]), tmp_path / "c.mercer")
    arguments = ["--model", tmp_path / "c.mercer", "--continue-as", tmp_path / "n.mercer"]
    said = refused("stream", *arguments, stdin="")
    assert "without a posterior over a basis" in said


# --- the whole trip -----------------------------------------------------------------------------


def test_from_a_table_to_a_stream(run, tmp_path):
    data, path = tmp_path / "data.csv", tmp_path / "m.mercer"
    data.write_text(as_csv(make_rows(60)))
    shown = run("fit", data, "-t", "y", "--method", "online", "-o", path).stdout
    assert "method    online (" in shown and "log evidence" in shown
    later = make_rows(40, seed=1)
    done = run("stream", "--model", path, stdin=as_csv(later))
    error = np.array(
        [p["y_mean"] - r["y"] for p, r in zip(parsed(done.stdout), later, strict=True)]
    )
    assert np.sqrt(np.mean(error**2)) < 0.3
    assert mercer.load(path).estimator.n_seen_ == 100
    told = run("info", path).stdout
    assert "last stream    40 rows learned from 41 lines; of each, before it was: RMSE" in told
    assert len(run("predict", path, data).stdout.splitlines()) == 61


def test_options_of_on_line_methods(run, tmp_path):
    data, path = tmp_path / "data.csv", tmp_path / "m.mercer"
    data.write_text(as_csv(make_rows(60)))
    own = ["--max-basis", "7", "--forget", "0.01"]
    run("fit", data, "-t", "y", "--method", "online", *own, "-o", path)
    model = mercer.load(path).estimator
    assert (model.max_basis, model.forget, model.n_basis_) == (7, 0.01, 7)
    given = run("fit", data, "-t", "y", "--max-basis", "7", "-o", path, "--force", code=2)
    assert "--max-basis is an option of --method online" in given.stderr


def test_from_a_table_of_labels_to_a_stream(run, refused, tmp_path):
    data, path = tmp_path / "data.csv", tmp_path / "m.mercer"
    rows = [{**row, "kind": label(row)} for row in make_rows(60)]
    for row in rows:
        del row["y"]
    data.write_text(as_csv(rows))
    shown = run("fit", data, "-t", "kind", "--method", "online-classes", "-o", path).stdout
    assert "target    kind (high in " in shown
    found = parsed(run("predict", path, data).stdout)
    names = [f"kind_p_{name}" for name in ("high", "low", "mid, so to say")]
    assert list(found[0]) == ["kind_label", *names]
    assert_allclose([sum(p[name] for name in names) for p in found], 1.0)
    assert np.mean([p["kind_label"] == r["kind"] for p, r in zip(found, rows, strict=True)]) > 0.8
    assert len(parsed(run("stream", "--model", path, stdin=as_csv(rows[:9])).stdout)) == 9
    assert "of the labels wrong" in run("info", path).stdout
    arguments = ["--method", "online-classes", "-o", tmp_path / "n.mercer"]
    assert "60 different labels" in refused("fit", data, "-t", "x", *arguments)
    arguments[1] = "relevance-classes"
    assert refused("fit", data, "-t", "x", *arguments).endswith("--method relevance")
    data.write_text(data.read_text().replace("low", ""))
    assert "column 'kind', has missing values" in refused("fit", data, "-t", "kind", *arguments)
