"""Models and rows for the tests of streams, and processes that are killed."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import subprocess
import sys
import zipfile

import numpy as np

import mercer
from mercer.cli.columns import TableColumn
from mercer.cli.model import TableModel
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

NOISE = 0.01
COLUMNS = [
    TableColumn("x", "number"),
    TableColumn("colour", "category", ["blue", "red"]),
    TableColumn("fresh", "bool"),
]


def make_rows(n, seed=0):
    """Return rows as dictionaries: x, colour, fresh and y."""
    rng = np.random.default_rng(seed)
    rows = []
    for x in rng.uniform(-3, 3, n).round(4).tolist():
        colour, fresh = str(rng.choice(["blue", "red"])), bool(rng.integers(2))
        y = np.sin(x) + (colour == "red") + 0.5 * fresh + 0.1 * rng.standard_normal()
        rows.append({"x": x, "colour": colour, "fresh": fresh, "y": round(float(y), 5)})
    return rows


def encoded(rows):
    """Return the inputs of rows by hand."""
    return np.array(
        [[r["x"], r["colour"] == "blue", r["colour"] == "red", r["fresh"]] for r in rows],
        dtype=float,
    )


def regression(path, max_basis=15, kernel=None, likelihood=None):
    """Save an on-line model that has learned 20 rows, and return its path."""
    model = mercer.OnlineGPRegressor(
        kernel or RBF(1.0), likelihood or Gaussian(NOISE), max_basis=max_basis, mean="zero"
    )
    rows = make_rows(20, seed=99)
    model.partial_fit(encoded(rows), np.array([r["y"] for r in rows]))
    mercer.save(TableModel("y", COLUMNS, model, {}), path)
    return str(path)


def classification(path):
    """Save a classifier of three labels that has learned 30 rows, and return its path."""
    model = mercer.OnlineGPClassifier(
        4.0 * RBF(1.0), max_basis=15, classes=["high", "low", "mid, so to say"]
    )
    rows = make_rows(30, seed=99)
    model.partial_fit(encoded(rows), np.array([label(r) for r in rows]))
    mercer.save(TableModel("kind", COLUMNS, model, {}), path)
    return str(path)


def label(row):
    return "high" if row["y"] > 1.2 else "low" if row["y"] < 0.2 else "mid, so to say"


def as_json(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_csv(rows, delimiter=","):
    names = list(rows[0])
    cells = [["" if row.get(n) is None else str(row[n]) for n in names] for row in rows]
    quoted = [[f'"{c}"' if delimiter in c else c for c in line] for line in [names, *cells]]
    return "".join(delimiter.join(line) + "\n" for line in quoted)


def contents(path):
    """Return every byte of what a model file holds, by the name of the member."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


_SERVER = """
import json, os, signal, sys, time
from mercer.cli import stream
from mercer.cli.main import main
from mercer.linalg.loops import loops
from mercer.linalg.recursion import recursion
loops(), recursion()
for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # a background job ignores some of them
    signal.signal(getattr(signal, name), signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
for line in sys.stdin:
    order = json.loads(line)
    if "wait" in order:
        found, status = 0, 0
        for _ in range(1200):  # two minutes: no test waits for ever
            found, status = os.waitpid(order["wait"], os.WNOHANG)
            if found:
                break
            time.sleep(0.1)
        if not found:
            os.kill(order["wait"], signal.SIGKILL)
            status = os.waitpid(order["wait"], 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)
        continue
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        continue
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, path in enumerate(order["files"]):
        os.dup2(os.open(path, flags if number else os.O_RDONLY), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")
    sys.argv, code = ["mercer", *order["arguments"]], 70
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        os._exit(code)
"""


class Server:
    """Starts commands as processes of their own, without waiting for imports each time."""

    def __init__(self):
        path = os.pathsep.join(p for p in sys.path if p)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        )

    def _ask(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def start(self, *arguments, stdin, stdout, stderr):
        """Start a command, with files or named pipes for its streams; return its process."""
        files = [str(stdin), str(stdout), str(stderr)]
        return self._ask(arguments=[str(a) for a in arguments], files=files)

    def wait(self, process):
        """Return the exit code of a process, negative for a signal."""
        return self._ask(wait=process)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


def parsed(text):
    """Return JSON lines or CSV as dictionaries of numbers, and text where there is none."""
    if text[:1] == "{":
        return [json.loads(line) for line in text.splitlines()]
    rows = []
    for row in csv.DictReader(io.StringIO(text)):
        for name, value in row.items():
            with contextlib.suppress(ValueError):
                row[name] = float(value)
        rows.append(row)
    return rows


def by_row(path, rows):
    """Return what the estimator itself says of each row before it learns it, and where it ends."""
    estimator = mercer.load(path).estimator
    said = []
    for row in rows:
        x = encoded([row])
        mean, std = estimator.predict(x, return_std=True)
        said.append([mean[0], std[0], *np.ravel(estimator.predict_interval(x))])
        if row["y"] is not None:
            estimator.partial_fit(x, [row["y"]])
    return np.array(said), estimator


def values(predictions, target="y"):
    parts = ("mean", "std", "lower", "upper")
    return np.array([[p[f"{target}_{part}"] for part in parts] for p in predictions])
