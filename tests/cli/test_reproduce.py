"""``mercer reproduce``: with experiments made for the purpose, and with a tiny table of data."""

from __future__ import annotations

import csv
import gzip
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

from mercer import experiments
from mercer.cli import reproduce
from mercer.experiments import Claim, Estimate, Experiment, Figure, Line, Outcome, Table

pytest.importorskip("matplotlib")

NAMES = (
    "abalone-error",
    "abalone-kernels",
    "abalone-gap",
    "gaussians",
    "online-sinc",
    "online-friedman",
    "online-usps",
    "online-plateau",
    "laplacian-samples",
    "sparsity",
    "relevance",
)


def outcome(setting):
    heard = [number for number in setting.steps(["first", "second"])]
    x = np.arange(1.0, 5.0)
    return Outcome(
        (Table("numbers", "Numbers", ("who", "ours", "published"), (
            ("[sparse]", Estimate(1.5, 0.25), 1.785), ("quick", int(setting.quick), len(heard)),
        )),),
        (Claim("small enough", "1.5", True), Claim("never so", "9", False)),
        (Figure("curve", "A curve", "x", "y", (Line("a", x, x),)),),
        ("A note at the foot.",),
    )  # fmt: skip


def interrupted(setting):
    raise KeyboardInterrupt


@pytest.fixture
def made(monkeypatch):
    """Two experiments in the place of the papers': one of no data, one of a table."""
    found = [
        Experiment("made-up", "Made up", "BKM 4.7", "It was 1.785.", outcome),
        Experiment("of-data", "Of data", "BKM 4.7", "It was 2.", outcome, data=("absent",)),
        Experiment("broken-off", "Broken off", "BKM 4.7", "It was 3.", interrupted),
    ]
    by_name = {experiment.name: experiment for experiment in found}
    monkeypatch.setattr(reproduce, "experiments", lambda: by_name)
    return by_name


@pytest.fixture(autouse=True)
def no_data_but_here(monkeypatch, tmp_path):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)


def test_the_list(run):
    assert set(experiments.experiments()) == set(NAMES)
    shown = run("reproduce", "--list").stdout
    for experiment in experiments.experiments().values():
        assert f"{experiment.name} " in shown and experiment.title in shown
    assert "reads abalone" in shown


def test_tables_are_shown_and_files_written(run, made, tmp_path):
    shown = run("reproduce", "made-up", "-o", "out").stdout
    for text in ("Made up (BKM 4.7)", "It was 1.785.", "1.5 ± 0.25", "[sparse]", "small enough"):
        assert text in shown
    assert "A note at the foot." in shown and "written to out" in shown
    folder = tmp_path / "out" / "made-up"
    assert sorted(os.listdir(folder)) == ["curve.png", "numbers.csv", "results.md"]
    with open(folder / "numbers.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[1:] == [["[sparse]", "1.5", "0.25", "1.785"], ["quick", "0", "", "2"]]
    page = (folder / "results.md").read_text(encoding="utf-8")
    assert "![A curve](curve.png)" in page and "| small enough | 1.5" in page


def test_quick_is_passed_on_and_said(run, made, tmp_path):
    run("reproduce", "made-up", "--quick")
    folder = tmp_path / "reproduced" / "made-up"
    assert "quick,1,,2" in (folder / "numbers.csv").read_text(encoding="utf-8")
    assert "the numbers mean nothing" in (folder / "results.md").read_text(encoding="utf-8")


def test_nothing_is_replaced_unless_told(run, refused, made, tmp_path):
    run("reproduce", "made-up")
    page = tmp_path / "reproduced" / "made-up" / "results.md"
    page.write_text("mine", encoding="utf-8")
    said = refused("reproduce", "made-up")
    assert said.endswith("results.md exists; --force replaces it")
    assert page.read_text(encoding="utf-8") == "mine"
    run("reproduce", "made-up", "--force")
    assert page.read_text(encoding="utf-8").startswith("# Made up")


def test_matplotlib_is_asked_for_before_hours_of_work(refused, made, monkeypatch):
    ran = []
    quiet = replace(made["made-up"], run=ran.append)
    monkeypatch.setattr(reproduce, "experiments", lambda: {"made-up": quiet})
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert "plots need matplotlib" in refused("reproduce", "made-up")
    assert not ran


def test_a_file_in_the_way(refused, made, tmp_path):
    (tmp_path / "out").write_text("no folder")
    assert "a file is in its way" in refused("reproduce", "made-up", "-o", "out")


def test_unknown_names(run, made):
    said = " ".join(run("reproduce", "made-up", "magic", code=2).stderr.split())
    assert "there is no experiment magic; there are made-up, of-data, broken-off" in said


def test_data_that_are_not_there(run, refused, made, tmp_path):
    said = refused("reproduce", "of-data")
    assert said.startswith("mercer: of-data: there is no absent.csv.gz or absent.npz in ")
    assert str(tmp_path / "data") in said and said.endswith("environment variable MERCER_DATA")
    assert "--data" in said and "folder=" not in said
    assert "elsewhere" in refused("reproduce", "of-data", "--data", "elsewhere")
    del made["broken-off"]
    done = run("reproduce")
    assert "mercer: note: of-data is left out: there is no absent.csv.gz" in done.stderr
    assert os.listdir(tmp_path / "reproduced") == ["made-up"]


def test_an_interruption_keeps_what_is_finished(run, made, tmp_path):
    said = run("reproduce", "made-up", "broken-off", code=130).stderr
    assert said.splitlines()[-1] == (
        "mercer: interrupted; finished and written: made-up in reproduced"
    )
    assert (tmp_path / "reproduced" / "made-up" / "results.md").exists()
    assert not (tmp_path / "reproduced" / "broken-off" / "results.md").exists()
    said = run("reproduce", "broken-off", code=130).stderr
    assert said == "mercer: interrupted; finished and written: nothing\n"


def test_a_log_has_a_line_now_and_then(run, made, monkeypatch):
    clock = [0.0]

    def slow(setting):
        for _ in setting.steps([f"step {i}" for i in range(6)]):
            clock[0] += 12.0
        return outcome(replace(setting, tell=lambda *_: None))

    made["made-up"] = replace(made["made-up"], run=slow)
    monkeypatch.setattr(reproduce.time, "monotonic", lambda: clock[0])
    assert run("reproduce", "made-up").stderr.splitlines() == [
        "mercer: made-up: 0 of 6 done; step 0",
        "mercer: made-up: 3 of 6 done; step 3",
    ]


# --- the papers' own ------------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path):
    """Tables of the forms that are read and images of that of USPS, of a few rows."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    sizes = rng.uniform(0.1, 1.0, (60, 2)).round(3)
    rings = np.round(5 + 8 * sizes[:, 0] + rng.normal(0, 1.0, 60))
    with gzip.open(folder / "abalone.csv.gz", "wt", encoding="utf-8") as file:
        file.write("sex,length,weight,y\n")
        for (a, b), y, sex in zip(sizes, rings, rng.choice(["F", "I", "M"], 60), strict=True):
            file.write(f"{sex},{a},{b},{y:g}\n")
    for name in {*experiments.experiments()["sparsity"].data} - {"abalone"}:
        with gzip.open(folder / f"{name}.csv.gz", "wt", encoding="utf-8") as file:
            file.write("length,weight,split,y\n")
            for i, ((a, b), y) in enumerate(zip(sizes, rings, strict=True)):
                target = y if name == "boston" else int(y > 9)
                file.write(f"{a},{b},{('train', 'test')[i % 2]},{target}\n")
    digits, centres = np.arange(80) % 10, rng.uniform(-1, 1, (10, 256))
    images = np.clip(centres[digits] + rng.normal(0, 0.3, (80, 256)), -1, 1)
    parts = {"X_train": images[:60], "y_train": digits[:60]}
    np.savez(folder / "usps.npz", **parts, X_test=images[60:], y_test=digits[60:])


# `tests/experiments/test_comparison.py` runs these two as well
@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in ("sparsity", "relevance") else name
        for name in NAMES
    ],
)
def test_every_experiment_runs_quickly(run, name, tmp_path):
    done = run("reproduce", name, "--quick", "-o", "out")
    folder = tmp_path / "out" / name
    assert (folder / "results.md").exists() and list(folder.glob("*.csv"))
    for table in folder.glob("*.csv"):
        with open(table, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1:]
        assert rows and "nan" not in table.read_text(encoding="utf-8")
    assert "Claims" in done.stdout
