"""The problems on which sparse and other expansions are compared: numbers and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.datasets import Table, load_table
from mercer.experiments.records import Setting

__all__ = ["DATA", "Split", "Task", "tasks"]

Floats = NDArray[np.float64]

_CLASSES = (
    "ripley-synth",
    "pima-ripley",
    "ida-banana",
    "ida-breast-cancer",
    "ida-heart",
    "ida-titanic",
    "ida-german",
    "ida-waveform",
    "ida-ringnorm",
)
#: The tables that are read.
DATA = ("boston", "abalone", *_CLASSES)
_DRAWS, _SINC_SPLITS = 5, 10
_SINC_ROWS, _SINC_NOISE = 100, 0.1
# Of Abalone's 4177 rows; an exact process learns the hyperparameters of so many in half a minute.
_ABALONE, _ABALONE_SPLITS = 2000, 3
_QUICK, _QUICK_ROWS, _QUICK_TEST = ("sinc", "boston", "ripley-synth"), 40, 60


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


def tasks(setting: Setting) -> Iterator[Task]:
    """Yield all problems; in a quick run three, each with one split of few rows."""
    for task in _all(setting.folder):
        if not setting.quick:
            yield task
        elif task.name in _QUICK:
            yield task._replace(n_splits=1, split=partial(_shortened, task))


def _all(folder: str | None) -> Iterator[Task]:
    yield Task("sinc", False, _SINC_SPLITS, _sinc)
    boston = load_table("boston", folder)
    yield Task("boston", False, _DRAWS, partial(_published, boston))
    abalone = load_table("abalone", folder)
    yield Task("abalone", False, _ABALONE_SPLITS, partial(_drawn, abalone))
    for name in _CLASSES:
        table = load_table(name, folder)
        count = 1 if table.splits is None else table.splits.shape[1]
        yield Task(name, True, min(_DRAWS, count), partial(_published, table))


def _sinc(i: int) -> Split:
    """Return sin(x)/x with noise at 100 random points and at a grid, where it is known."""
    rng = np.random.default_rng(i)
    X, grid = rng.uniform(-10.0, 10.0, (_SINC_ROWS, 1)), np.linspace(-10.0, 10.0, 1001)[:, None]
    y = np.sinc(X[:, 0] / np.pi) + _SINC_NOISE * rng.normal(size=_SINC_ROWS)
    f = np.sinc(grid[:, 0] / np.pi)
    return Split(X, y, grid, f + _SINC_NOISE * rng.normal(size=len(f)), f)


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
