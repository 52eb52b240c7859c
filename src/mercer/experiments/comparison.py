"""Methods on data sets: error, density, number of kernels and seconds of each, over splits."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MercerWarning
from mercer.experiments.contenders import DENSE, Contender
from mercer.experiments.records import Cell, Estimate, Figure, Line, Setting, Table
from mercer.experiments.tasks import Split, Task

__all__ = ["Comparison", "Run", "compare"]

Floats = NDArray[np.float64]

# Intervals of the function have 90% of its probability.
_NORMAL = 1.6448536269514722
# Errors may be 0, and are compared as ratios.
_TINY = 1e-12


class Run(NamedTuple):
    """Of one fit: its error, minus the mean log density of test rows, kernels, and seconds.

    covered : percent of the test rows whose function is in its 90% interval; NaN if it is not known
    """

    error: float
    surprise: float
    kernels: float
    seconds: float
    covered: float = float("nan")


Found = dict[tuple[str, str], list[Run]]


def _measured(contender: Contender, task: Task, split: Split) -> Run:
    fit = contender.labels if task.is_classes else contender.numbers
    surprise = covered = float("nan")
    with warnings.catch_warnings():
        # of one fit among many; which one it was of, nobody could tell
        warnings.simplefilter("ignore", MercerWarning)
        start = time.perf_counter()
        model = fit(split.X, split.y)
        seconds = time.perf_counter() - start
        predicted = model.predict(split.X_test)
        if contender.has_density:
            surprise = -float(np.mean(model.log_predictive_density(split.X_test, split.y_test)))
        if contender.has_density and split.f_test is not None:
            mean, std = model.predict(split.X_test, return_std=True, latent=True)
            covered = float(100.0 * np.mean(np.abs(split.f_test - mean) <= _NORMAL * std))
    true = split.y_test if split.f_test is None else split.f_test
    error = _wrong(predicted, true) if task.is_classes else _rms(predicted, true)
    return Run(error, surprise, float(contender.kernels(model)), seconds, covered)


def _wrong(predicted: NDArray[Any], y: NDArray[Any]) -> float:
    return float(100.0 * np.mean(predicted != y))


def _rms(predicted: NDArray[Any], y: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


class Comparison:
    """What was found, by data set and method.

    who : the methods, in the order of the tables
    found : the runs of (set, method)
    rows, tests : training and test rows of a set
    """

    def __init__(self, tasks: Sequence[Task], who: Sequence[Contender]) -> None:
        self.who = tuple(who)
        self.numbers = [task.name for task in tasks if not task.is_classes]
        self.labels = [task.name for task in tasks if task.is_classes]
        self.found: Found = {}
        self.rows: dict[str, int] = {}
        self.tests: dict[str, int] = {}

    def mean(self, task: str, who: str) -> Run:
        """Return the averages over splits."""
        return Run(*(float(value) for value in np.mean(self.found[task, who], axis=0)))

    def tables(self) -> tuple[Table, ...]:
        """Return a table of numbers and one of labels."""
        return (
            self._table("regression", "Numbers", "root mean squared error", self.numbers),
            self._table("classification", "Labels", "error in percent", self.labels),
        )

    def figures(self) -> tuple[Figure, ...]:
        """Return errors over kernels in use, both relative, for numbers and for labels."""
        return self._figure("regression", self.numbers), self._figure("classification", self.labels)

    def _who(self, task: str) -> list[Contender]:
        """Return the methods that were run on a problem."""
        return [who for who in self.who if (task, who.name) in self.found]

    def _table(self, name: str, title: str, error: str, of: list[str]) -> Table:
        body: list[tuple[Cell, ...]] = []
        for task in of:
            for who in self._who(task):
                runs = self.found[task, who.name]
                cells: list[Cell] = [
                    None if np.any(np.isnan(column)) else Estimate.of(column)
                    for column in zip(*runs, strict=True)
                ]
                body.append((task, self.rows[task], len(runs), who.name, *cells))
        measures = error, "minus log density", "kernels", "seconds", "latent coverage"
        header: tuple[str, ...] = ("set", "rows", "splits", "method", *measures)
        if all(row[-1] is None for row in body):
            header, body = header[:-1], [row[:-1] for row in body]
        return Table(name, f"{title}: mean and spread over splits", header, tuple(body))

    def _figure(self, name: str, of: list[str]) -> Figure:
        lines = []
        for who in self.who:
            own = [task for task in of if who in self._who(task)]
            each = [(self.mean(task, who.name), self.mean(task, DENSE), task) for task in own]
            x = np.array([max(one.kernels, 0.5) / self.rows[task] for one, _, task in each])
            y = np.array([(one.error + _TINY) / (exact.error + _TINY) for one, exact, _ in each])
            lines.append(Line(who.name, x, y, dots=True))
        return Figure(
            f"{name}-sparsity",
            f"{name}: a dot a data set",
            "kernels over training rows",
            "error over that of the exact Gaussian process",
            tuple(lines),
            log_x=True,
            mark=(1.0, "as good as the exact process"),
        )


def compare(setting: Setting, tasks: Sequence[Task], who: Sequence[Contender]) -> Comparison:
    """Fit every method to every split of every problem, but for those it takes too long for."""
    out = Comparison(tasks, who)
    steps = [
        (task, i, one)
        for task in tasks
        for i in range(task.n_splits)
        for one in who
        if task.name not in one.without
    ]
    names = [f"{task.name}, split {i + 1} of {task.n_splits}, {one.name}" for task, i, one in steps]
    for number in setting.steps(names):
        task, i, one = steps[number]
        split = task.split(i)
        out.rows[task.name], out.tests[task.name] = len(split.y), len(split.y_test)
        out.found.setdefault((task.name, one.name), []).append(_measured(one, task, split))
    return out
