"""The problems on which expansions are compared: numbers and labels, made or read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3

from mercer.datasets import Table, load_table
from mercer.experiments.records import Setting

__all__ = ["Split", "Task", "tables", "tasks"]

Floats = NDArray[np.float64]

_DRAWS, _SINC_SPLITS = 5, 10
# Errors of which a single figure is judged: as many splits as the published one is of.
_JUDGED = {"ida-banana": 10}
_SINC_ROWS, _SINC_NOISE = 100, 0.1
_SINC_ZONE = 0.2  # noise that is uniform is between minus this and this
_FRIEDMAN_ROWS, _FRIEDMAN_TESTS = 240, 1000
# Of Abalone's 4177 rows; an exact process learns the hyperparameters of so many in half a minute.
_ABALONE, _ABALONE_SPLITS = 2000, 3
_QUICK_ROWS, _QUICK_TEST = 40, 60
# Deviations of the noise: 1, and a third of the function's, whose variance is nine times it then,
# as Friedman has them.
_FRIEDMAN = {1: (make_friedman1, 1.0), 2: (make_friedman2, 1 / 3), 3: (make_friedman3, 1 / 3)}
_MADE = ("sinc", "sinc, uniform noise", "friedman 1", "friedman 2", "friedman 3")


class Split(NamedTuple):
    """Training and test rows, and the function at the latter where it is known."""

    X: Floats
    y: NDArray[Any]
    X_test: Floats
    y_test: NDArray[Any]
    f_test: Floats | None = None


class Task(NamedTuple):
    """A problem: its name, whether its targets are labels, and its splits, made one by one."""

    name: str
    is_classes: bool
    n_splits: int
    split: Callable[[int], Split]


def tables(names: Sequence[str]) -> tuple[str, ...]:
    """Return those of the problems that are read from tables of data."""
    return tuple(name for name in names if name not in _MADE)


def tasks(setting: Setting, names: Sequence[str], quick: Sequence[str]) -> Iterator[Task]:
    """Yield problems by name; in a quick run those of `quick`, with one split of few rows."""
    for name in quick if setting.quick else names:
        task = _task(name, setting.folder)
        if setting.quick:
            yield task._replace(n_splits=1, split=partial(_shortened, task))
        else:
            yield task


def _task(name: str, folder: str | None) -> Task:
    if name in ("sinc", "sinc, uniform noise"):
        return Task(name, False, _SINC_SPLITS, partial(_sinc, is_uniform=name != "sinc"))
    if name.startswith("friedman"):
        return Task(name, False, _DRAWS, partial(_friedman, int(name[-1])))
    table = load_table(name, folder)
    if table.splits is None:
        return Task(name, False, _ABALONE_SPLITS, partial(_drawn, table))
    is_classes = name != "boston"
    count = min(_JUDGED.get(name, _DRAWS), table.splits.shape[1])
    return Task(name, is_classes, count, partial(_published, table))


def _sinc(i: int, is_uniform: bool = False) -> Split:
    """Return sin(x)/x with noise at 100 random points and at a grid, where it is known."""
    rng = np.random.default_rng(i)

    def noise(size: int) -> Floats:
        if is_uniform:
            return rng.uniform(-_SINC_ZONE, _SINC_ZONE, size)
        return _SINC_NOISE * rng.normal(size=size)

    X, grid = rng.uniform(-10.0, 10.0, (_SINC_ROWS, 1)), np.linspace(-10.0, 10.0, 1001)[:, None]
    y = np.sinc(X[:, 0] / np.pi) + noise(_SINC_ROWS)
    f = np.sinc(grid[:, 0] / np.pi)
    return Split(X, y, grid, f + noise(len(f)), f)


def _friedman(number: int, i: int) -> Split:
    """Return one of Friedman's functions with noise, and the function itself at the test rows."""
    make, noise = _FRIEDMAN[number]
    n = _FRIEDMAN_ROWS + _FRIEDMAN_TESTS
    X, f = make(n, noise=0.0, random_state=i)
    std = noise if number == 1 else noise * float(np.std(f))
    y = f + std * np.random.default_rng(i).normal(size=n)
    train, test = slice(_FRIEDMAN_ROWS), slice(_FRIEDMAN_ROWS, n)
    return Split(X[train], y[train], X[test], y[test], f[test])


def _published(table: Table, i: int) -> Split:
    return Split(*table.split(i))


def _drawn(table: Table, i: int) -> Split:
    """Return a random split of a table that has none published."""
    assert table.y is not None
    order = np.random.default_rng(i).permutation(len(table.y))
    train, test = order[:_ABALONE], order[_ABALONE:]
    return Split(table.X[train], table.y[train], table.X[test], table.y[test])


def _shortened(task: Task, i: int) -> Split:
    """Return a split of few rows."""
    split = task.split(i)
    return _few(split) if task.is_classes else _first(split)


def _first(split: Split) -> Split:
    return Split(
        split.X[:_QUICK_ROWS],
        split.y[:_QUICK_ROWS],
        split.X_test[:_QUICK_TEST],
        split.y_test[:_QUICK_TEST],
        None if split.f_test is None else split.f_test[:_QUICK_TEST],
    )


def _few(split: Split) -> Split:
    """Return few rows with both labels among them."""
    half = _QUICK_ROWS // 2
    rows = np.concatenate([np.flatnonzero(split.y == c)[:half] for c in np.unique(split.y)])
    return _first(split._replace(X=split.X[rows], y=split.y[rows]))
