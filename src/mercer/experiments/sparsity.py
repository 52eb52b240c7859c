"""Sparsity against error: how many kernels a model needs, and what it pays for having few."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MercerWarning
from mercer.experiments.records import (
    Cell,
    Claim,
    Estimate,
    Experiment,
    Figure,
    Line,
    Outcome,
    Setting,
    Table,
)
from mercer.experiments.sparsity_contenders import CONTENDERS, DENSE, SPARSE, VECTORS, Contender
from mercer.experiments.sparsity_tasks import DATA, Split, Task, tasks

__all__ = ["EXPERIMENT"]

Floats = NDArray[np.float64]

# An error above that of the exact process by no more than this factor counts as no worse.
_RATIO = 1.1
# Intervals of the function have 90% of its probability.
_NORMAL = 1.6448536269514722


class _Run(NamedTuple):
    """Of one fit: its error, minus the mean log density of test rows, kernels, and seconds.

    covered : percent of the test rows whose function is in its 90% interval; NaN if it is not known
    """

    error: float
    surprise: float
    kernels: float
    seconds: float
    covered: float = float("nan")


_Found = dict[tuple[str, str], list[_Run]]


def _measured(contender: Contender, task: Task, split: Split) -> _Run:
    fit = contender.labels if task.is_classes else contender.numbers
    with warnings.catch_warnings():
        # of one fit among many; which one it was of, nobody could tell
        warnings.simplefilter("ignore", MercerWarning)
        start = time.perf_counter()
        model = fit(split.X, split.y)
        seconds = time.perf_counter() - start
        predicted = model.predict(split.X_test)
    surprise = covered = float("nan")
    if contender.has_density:
        surprise = -float(np.mean(model.log_predictive_density(split.X_test, split.y_test)))
        if split.f_test is not None:
            mean, std = model.predict(split.X_test, return_std=True, latent=True)
            covered = float(100.0 * np.mean(np.abs(split.f_test - mean) <= _NORMAL * std))
    true = split.y_test if split.f_test is None else split.f_test
    error = _wrong(predicted, true) if task.is_classes else _rms(predicted, true)
    return _Run(error, surprise, float(contender.kernels(model)), seconds, covered)


def _wrong(predicted: NDArray[Any], y: NDArray[Any]) -> float:
    return float(100.0 * np.mean(predicted != y))


def _rms(predicted: NDArray[Any], y: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def _run(setting: Setting) -> Outcome:
    problems = list(tasks(setting))
    steps = [
        (task, i, who) for task in problems for i in range(task.n_splits) for who in CONTENDERS
    ]
    names = [f"{task.name}, split {i + 1} of {task.n_splits}, {who.name}" for task, i, who in steps]
    found: _Found = {}
    rows: dict[str, int] = {}
    for number in setting.steps(names):
        task, i, who = steps[number]
        split = task.split(i)
        rows[task.name] = len(split.y)
        found.setdefault((task.name, who.name), []).append(_measured(who, task, split))
    numbers = [task.name for task in problems if not task.is_classes]
    labels = [task.name for task in problems if task.is_classes]
    return Outcome(
        (
            _table("regression", "Numbers", "root mean squared error", numbers, rows, found),
            _table("classification", "Labels", "error in percent", labels, rows, found),
        ),
        _claims(found),
        (
            _figure("regression", numbers, rows, found),
            _figure("classification", labels, rows, found),
        ),
        (
            "Each method has its own choices made on the training rows, which the seconds include. "
            "Laplacian process: `LaplacianProcessRegressor()` and `LaplacianProcessClassifier()`, "
            "Gaussian and logistic. Support vectors: scikit-learn's SVR and SVC, inputs and "
            "targets standardised, C, epsilon and one width by five folds over a grid. Exact "
            "Gaussian process: `GPRegressor()` and `GPClassifier()`. The first and the last have a "
            "length scale a column, support vectors one for all. The error on sin(x)/x is that "
            "from the function, without noise, on the others that from new rows; densities are of "
            "new rows throughout. Latent coverage is the part of a grid, in percent, where the "
            "function lies in its 90% interval, known of sin(x)/x alone: error bars of a Laplacian "
            "process take the kernels in use for given, and it is reported, not judged.",
        ),
    )


def _table(
    name: str, title: str, error: str, of: list[str], rows: dict[str, int], found: _Found
) -> Table:
    body: list[tuple[Cell, ...]] = []
    for task in of:
        for who in CONTENDERS:
            cells: list[Cell] = [
                None if np.any(np.isnan(column)) else Estimate.of(column)
                for column in zip(*found[task, who.name], strict=True)
            ]
            splits = len(found[task, who.name])
            body.append((task, rows[task], splits, who.name, *cells))
    measures = error, "minus log density", "kernels", "seconds", "latent coverage"
    header: tuple[str, ...] = ("set", "rows", "splits", "method", *measures)
    if all(row[-1] is None for row in body):
        header, body = header[:-1], [row[:-1] for row in body]
    return Table(name, f"{title}: mean and spread over splits", header, tuple(body))


def _mean(found: _Found, task: str, who: str) -> _Run:
    return _Run(*(float(value) for value in np.mean(found[task, who], axis=0)))


def _figure(name: str, of: list[str], rows: dict[str, int], found: _Found) -> Figure:
    lines = []
    for who in CONTENDERS:
        each = [_mean(found, task, who.name) for task in of]
        exact = [_mean(found, task, DENSE) for task in of]
        x = np.array(
            [max(one.kernels, 0.5) / rows[task] for one, task in zip(each, of, strict=True)]
        )
        y = np.array([one.error / max(e.error, 1e-12) for one, e in zip(each, exact, strict=True)])
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


def _claims(found: _Found) -> tuple[Claim, ...]:
    claims = []
    for task in dict.fromkeys(task for task, _ in found):
        ours, vectors, exact = (_mean(found, task, who) for who in (SPARSE, VECTORS, DENSE))
        claims += [
            Claim(
                f"{task}: a Laplacian process has fewer kernels than there are support vectors",
                f"{ours.kernels:.1f} beside {vectors.kernels:.1f} of {exact.kernels:.0f}",
                ours.kernels < vectors.kernels,
            ),
            Claim(
                f"{task}: its error is at most {_RATIO} times that of the exact process",
                f"{ours.error:.4g} beside {exact.error:.4g}, support vectors {vectors.error:.4g}",
                ours.error <= _RATIO * exact.error,
            ),
        ]
    return tuple(claims)


EXPERIMENT = Experiment(
    name="sparsity",
    title="Kernels in use against test errors, of sparse and of exact methods",
    source="BKM 5.3",
    published="The Laplacian prior assumes that only very few basis functions are not zero, and "
    "the mode keeps what it assumes. The paper measures neither the number nor the error.",
    run=_run,
    data=DATA,
)
