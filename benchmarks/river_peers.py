"""River's classifiers of streams, with their defaults, each asked about a row before it learns it.

They take minutes, and their probabilities change with River's version alone: what a run found is
kept in a file and used again. Times are not: they are of the run that measures them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report import Options

CACHE = Path(".benchmark-cache")


class Told(NamedTuple):
    """The probability of label 1 of each row before it was learned, and the seconds of a row.

    None if these were not measured now.
    """

    proba: Any
    each: float | None


def has_river(options: Options) -> bool:
    """Whether River is to be run, and can be."""
    return "river" not in options.without and find_spec("river") is not None


def models() -> dict[str, Callable[[], Any]]:
    """Return River's models by name, each made anew by a call."""
    from river import ensemble, forest, linear_model, preprocessing, tree

    return {
        "River, logistic regression, scaled": lambda: (
            preprocessing.StandardScaler() | linear_model.LogisticRegression()
        ),
        "River, Hoeffding adaptive tree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
        "River, leveraging bagging of Hoeffding trees": lambda: (
            ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), seed=0)
        ),
        "River, adaptive random forest": lambda: forest.ARFClassifier(seed=0),
        "River, aggregated Mondrian forest": lambda: forest.AMFClassifier(seed=0),
        "River, streaming random patches": lambda: ensemble.SRPClassifier(seed=0),
    }


def told(make: Callable[[], Any], X: Any, y: Any, columns: list[str]) -> Told:
    """Ask a model about each row, then have it learn it."""
    model = make()
    rows = [dict(zip(columns, row, strict=True)) for row in X.tolist()]
    labels = [int(label) for label in y]
    proba = np.full(len(y), 0.5)
    start = time.perf_counter()
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        found = model.predict_proba_one(row)
        if found:
            proba[i] = found.get(1, 0.0)
        model.learn_one(row, label)
    return Told(proba, (time.perf_counter() - start) / len(y))


def kept(name: str, what: str, X: Any, y: Any, columns: list[str], quick: bool) -> Told:
    """Return what a model told of the rows called `what`, from its file if it is there."""
    make = models()[name]
    if quick:
        return told(make, X, y, columns)
    words = "-".join(f"{name} {what}".lower().replace(",", "").split())
    path = CACHE / f"{words}-{version('river')}.json"
    if path.exists():
        return Told(np.array(json.loads(path.read_text())["proba"]), None)
    found = told(make, X, y, columns)
    CACHE.mkdir(exist_ok=True)
    path.write_text(json.dumps({"proba": found.proba.round(9).tolist()}))
    return found
