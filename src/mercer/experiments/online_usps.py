"""Fig. 6 of SOGP: errors on handwritten digits by the size of the basis, and second sweeps."""

from __future__ import annotations

import time
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import SparseGPClassifier
from mercer.experiments.records import (
    Cell,
    Claim,
    Experiment,
    Figure,
    Line,
    Outcome,
    Setting,
    Table,
)
from mercer.experiments.sogp import kernel
from mercer.experiments.usps import (
    CLASSES,
    FOUR,
    NOISE_STD,
    WIDTH,
    Digits,
    error,
    process,
    read,
    signs,
)
from mercer.inference._online_sweeps import refine
from mercer.inference.online import CRITERIA
from mercer.likelihoods import Probit

__all__ = ["EXPERIMENT"]

Floats = NDArray[np.float64]

_SIZES = (50, 100, 150, 250, 350, 500)
_TASKS = {"4 against the rest": FOUR, "ten digits": CLASSES}
_BINARY, _TEN = _TASKS
#: What the paper cites, at which sizes, in percent: of the digit 4 and of the ten digits.
_NYSTROM, _REDUCED_SET = (512, 1.7), 5.0
#: What is wanted of a pass over ten digits with 500 basis vectors: points of error, and seconds.
_NEAR, _SECONDS = 0.7, 120.0


class _Found(NamedTuple):
    """Of one size: errors in percent, and how long the first pass took."""

    one: float
    repeated: float
    refined: float
    seconds: float


_All = dict[tuple[str, str, int], _Found]


def _swept(digits: Digits, classes: tuple[int, ...], criterion: str, size: int) -> _Found:
    """Return the errors after one pass, after its sites are found again, and after a second pass.

    The second is expectation propagation on the same basis, where no row counts twice; the third is
    the paper's, where all rows do.
    """
    Y = signs(digits.y, classes)
    learned = process(digits.X.shape[1], classes, size, criterion)
    start = time.perf_counter()
    before = learned.learn(digits.X, Y)
    seconds = time.perf_counter() - start
    one = error(learned, digits, classes)
    better = refine(learned, digits.X, Y, None, before, max_iterations=100).process
    learned.learn(digits.X, Y)
    return _Found(one, error(learned, digits, classes), error(better, digits, classes), seconds)


def _batch(digits: Digits, size: int) -> float:
    """Return the error of a sparse classifier that has all rows at once, in percent."""
    model = SparseGPClassifier(
        kernel(WIDTH, digits.X.shape[1]),
        Probit(NOISE_STD),
        inference="ep",
        n_inducing=size,
        optimizer=None,
        random_state=0,
    )
    model.fit(digits.X, digits.y.astype(int))
    return float(100.0 * np.mean(model.predict(digits.X_test) != digits.y_test))


def _run(setting: Setting) -> Outcome:
    digits = read(setting)
    sizes = (10, 20) if setting.quick else _SIZES
    tasks = list(product(_TASKS, CRITERIA, sizes))
    names = [f"{task}, criterion {c}, {m} basis vectors" for task, c, m in tasks]
    found: _All = {}
    batch = float("nan")
    for number in setting.steps([*names, "a sparse classifier of all rows at once"]):
        if number < len(tasks):
            task, criterion, size = tasks[number]
            found[task, criterion, size] = _swept(digits, _TASKS[task], criterion, size)
        else:
            batch = _batch(digits, sizes[-1])
    return Outcome(
        (*(_table(found, task, digits) for task in _TASKS), _published(found, sizes, batch)),
        _claims(found, sizes[-1], batch),
        tuple(_figure(found, task, sizes) for task in _TASKS),
        (
            "sigma_0 = 0, a step, for both tasks: the paper says so of the ten digits, and not "
            "what it had for the 4. Rows come in the order of the file. Sites found again: "
            "expectation propagation on the same basis until it has converged. The batch "
            f"classifier is FITC with EP, the same kernel and noise, and {sizes[-1]} inducing "
            "inputs by k-means. One of 2007 test images is 0.05 points, and the standard error of "
            "an error of 5% is 0.5 points. The 5% that the paper cites, without saying of which "
            "task, stand here with the ten digits, whose batch results it compares with the same "
            "work.",
        ),
    )


def _table(found: _All, task: str, digits: Digits) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (criterion, size, *each) for (t, criterion, size), each in found.items() if t == task
    ]
    return Table(
        task.replace(" ", "-"),
        f"{task}: errors in percent, {len(digits.y)} training and {len(digits.y_test)} test images",
        (
            "criterion",
            "basis vectors",
            "one sweep",
            "two sweeps",
            "one sweep, sites found again",
            "seconds of a sweep",
        ),
        tuple(rows),
    )


def _published(found: _All, sizes: tuple[int, ...], batch: float) -> Table:
    most = sizes[-1]
    rows: list[tuple[Cell, ...]] = [
        (_BINARY, f"Nyström, {_NYSTROM[0]} basis vectors (cited)", _NYSTROM[1]),
        (_TEN, "reduced set of kernel PCA (cited)", _REDUCED_SET),
        (_TEN, f"FITC with EP at once, {most} inducing inputs (ours)", batch),
    ]
    for task, criterion in product(_TASKS, CRITERIA):
        each = found[task, criterion, most]
        said = f"on-line, {most} basis vectors, criterion {criterion!r} (ours)"
        rows += [(task, f"{said}, one sweep", each.one), (task, f"{said}, two", each.repeated)]
    rows.sort(key=lambda row: list(_TASKS).index(str(row[0])))
    return Table("published", "Beside what the paper states", ("task", "by", "error"), tuple(rows))


def _figure(found: _All, task: str, sizes: tuple[int, ...]) -> Figure:
    paper, ours = ([found[task, criterion, size] for size in sizes] for criterion in CRITERIA)
    x = np.array(sizes, dtype=float)
    lines = (
        Line("one sweep", x, np.array([each.one for each in paper])),
        Line("two sweeps", x, np.array([each.repeated for each in paper])),
        Line("one sweep, sites found again", x, np.array([each.refined for each in paper])),
        Line("one sweep, removed by the divergence", x, np.array([each.one for each in ours])),
    )
    cited = (
        (_NYSTROM[1], f"Nyström with {_NYSTROM[0]}, cited")
        if task == _BINARY
        else (_REDUCED_SET, "reduced set of kernel PCA, cited")
    )
    name = task.replace(" ", "-")
    return Figure(name, task, "basis vectors", "test error, percent", lines, mark=cited)


def _claims(found: _All, most: int, batch: float) -> tuple[Claim, ...]:
    claims = []
    for criterion in CRITERIA:
        each = found[_TEN, criterion, most]
        name = f"ten digits, {most} basis vectors, criterion {criterion!r}"
        claims += [
            Claim(
                f"{name}: one sweep within {_NEAR} points of batch classifiers of the same size",
                f"{each.one:.2f}; {batch:.2f} by k-means, {each.refined:.2f} on the same basis",
                each.one <= min(batch, each.refined) + _NEAR,
            ),
            Claim(
                f"{name}: a sweep in under {_SECONDS:g} s",
                f"{each.seconds:.0f} s",
                each.seconds < _SECONDS,
            ),
        ]
        binary = found[_BINARY, criterion, most]
        claims.append(
            Claim(
                f"4 against the rest, {most} basis vectors, criterion {criterion!r}: the Nyström "
                "method is only slightly better, by less than half a point",
                f"{binary.one:.2f} beside {_NYSTROM[1]}",
                binary.one < _NYSTROM[1] + 0.5,
            )
        )
    return tuple(claims)


EXPERIMENT = Experiment(
    name="online-usps",
    title="Handwritten digits by the size of the basis, with one and two sweeps",
    source="SOGP section 4.2, Fig. 6",
    published="7291 training and 2007 test images, sigma_K^2 = 1: slightly worse than the Nyström "
    "method, 1.7% with 512 basis vectors on 4 against the rest, and than the reduced set of kernel "
    "PCA, 5% on ten digits; a second sweep improves the 4 slightly and matters less for the ten.",
    run=_run,
    data=("usps",),
)
