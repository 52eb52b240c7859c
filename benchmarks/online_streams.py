"""elec2, each row predicted before it is learned, beside River and beside the last label."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.report import Options, Result, Verdict, table
from benchmarks.river_peers import Told, has_river, kept, models
from mercer import OnlineGPClassifier
from mercer.datasets import load_table
from mercer.kernels import RBF

FIRST = 2000  # rows that choose the hyperparameters, and do not count
AMPLITUDE = 4.0
LENGTHS, RATES = (0.1, 0.2, 0.5, 1.0, 2.0), (0.0, 0.001, 0.003, 0.01, 0.03)
SIZE = 100
CLIPPED = 1e-3  # probabilities are taken as no nearer to 0 and 1
DEFAULT, FORGETS = "Mercer, defaults", "Mercer, forget, columns as they are"
SCALED = "Mercer, forget, columns of deviation 1"
SAME = "the previous label"


def scores(proba: Any, y: Any, first: int) -> tuple[float, float]:
    """Return accuracy and log loss of the rows after the first."""
    p, label = np.clip(proba[first:], CLIPPED, 1.0 - CLIPPED), y[first:] == 1
    loss = -np.mean(np.log(np.where(label, p, 1.0 - p)))
    return float(np.mean((p > 0.5) == label)), float(loss)


def _learned(model: OnlineGPClassifier, X: Any, y: Any) -> Told:
    start = time.perf_counter()
    proba = model.learn(X, y, classes=[0, 1]).proba[:, 1]
    return Told(np.where(np.isnan(proba), 0.5, proba), (time.perf_counter() - start) / len(y))


def chosen(X: Any, y: Any, first: int) -> tuple[float, float]:
    """Return the length scale and the rate of forgetting that predict the first rows best."""
    found = {}
    for length, rate in product(LENGTHS, RATES):
        model = OnlineGPClassifier(AMPLITUDE * RBF(length), max_basis=SIZE, forget=rate)
        model.partial_fit(X[:first], y[:first], classes=[0, 1])
        found[length, rate] = model.log_evidence_
    return max(found, key=lambda each: found[each])


def _previous(y: Any) -> Any:
    return np.concatenate([[0], y[:-1]])


def assess(
    X: Any, y: Any, columns: list[str], what: str, options: Options
) -> tuple[dict[str, Told], str]:
    """Return what each contender told of all rows, and which settings the first rows chose."""
    first = min(FIRST, len(y) // 3)
    found = {SAME: Told(_previous(y).astype(float), 0.0)}
    _learned(OnlineGPClassifier(max_basis=SIZE, random_state=0), X[:first], y[:first])  # compiles
    found[DEFAULT] = _learned(OnlineGPClassifier(max_basis=SIZE, random_state=0), X, y)
    settings = []
    for name, Z in ((FORGETS, X), (SCALED, X / X.std(axis=0))):
        length, rate = chosen(Z, y, first)
        kernel = AMPLITUDE * RBF(length)
        found[name] = _learned(OnlineGPClassifier(kernel, max_basis=SIZE, forget=rate), Z, y)
        settings.append(f"length scale {length:g} and forget {rate:g}")
    if has_river(options):
        for name in models():
            found[name] = kept(name, what, X, y, columns, options.quick)
    return found, ", and with deviations of 1 ".join(settings)


def _lines(found: dict[str, Told], y: Any, first: int) -> list[list[str]]:
    lines = []
    for name, told in found.items():
        accuracy, loss = scores(told.proba, y, first)
        known = name != SAME
        each = "not now" if told.each is None else f"{1e6 * told.each:,.0f}" if known else ""
        lines.append([name, f"{accuracy:.4f}", f"{loss:.4f}" if known else "", each])
    return lines


def _verdicts(found: dict[str, Told], y: Any, first: int, what: str) -> list[Verdict]:
    accuracy, loss = scores(found[SCALED].proba, y, first)
    same = scores(found[SAME].proba, y, first)[0]
    verdicts = [
        Verdict(
            f"{what}: accuracy of {SCALED}",
            f"{accuracy:.4f}",
            f"above the previous label's {same:.4f}",
            accuracy > same,
        )
    ]
    peers = {
        name: scores(told.proba, y, first)
        for name, told in found.items()
        if name.startswith("River")
    }
    if peers:
        best = max(peers, key=lambda name: peers[name][0])
        least = min(peers, key=lambda name: peers[name][1])
        verdicts += [
            Verdict(
                f"{what}: the same beside the best of River",
                f"{accuracy:.4f}",
                f"at least {peers[best][0]:.4f} ({best.removeprefix('River, ')})",
                accuracy >= peers[best][0],
            ),
            Verdict(
                f"{what}: log loss beside the best of River",
                f"{loss:.4f}",
                f"at most {peers[least][1]:.4f} ({least.removeprefix('River, ')})",
                loss <= peers[least][1],
            ),
        ]
    return verdicts


def _rows(options: Options) -> tuple[Any, Any, list[str]]:
    if options.quick:
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(150, 2))
        return X, (X[:, 0] > 0.5).astype(int), ["a", "b"]
    data = load_table("elec2")
    assert data.y is not None
    return data.X, data.y.astype(int), list(data.columns)


def run(options: Options) -> Result:
    """Learn the stream as it is, and with the previous label as one more input."""
    X, y, columns = _rows(options)
    first = min(FIRST, len(y) // 3)
    tables, verdicts, settings = [], [], []
    with threadpool_limits(1):
        for what, inputs, names in (
            ("elec2", X, columns),
            ("with the last label", np.column_stack([X, _previous(y)]), [*columns, "last"]),
        ):
            found, setting = assess(inputs, y, names, what, options)
            tables.append(
                table([what, "accuracy", "log loss", "us a row"], _lines(found, y, first))
            )
            verdicts += _verdicts(found, y, first, what)
            settings.append(f"{what}: {setting}")
    return Result(
        "A stream: elec2",
        f"{len(y)} rows in their order, each predicted before it is learned; columns are from 0 to "
        "1 in the table. Scores are of the rows after the first "
        f"{first}, for all contenders; probabilities are taken as no nearer to 0 and 1 than "
        f"{CLIPPED:g}. Mercer has {SIZE} points. By default it chooses its kernel from the first "
        f"100 rows. With forgetting the kernel is {AMPLITUDE:g} * RBF, an amplitude set by hand, "
        f"and length scale (of {', '.join(f'{v:g}' for v in LENGTHS)}) and forget (of "
        f"{', '.join(f'{v:g}' for v in RATES)}) are those of the highest log density of the first "
        f"{first} rows, each predicted before it is learned. {'; '.join(settings)}. `Columns of "
        "deviation 1` are divided by their standard deviations over the whole table, which are set "
        "by hand in this sense: a stream does not tell them beforehand, and three columns are "
        "constant for the first 17,000 rows. River's trees do not depend on units, and its "
        "regression learns them. River's models "
        "have their defaults and a seed of 0, and are of one run each. Mercer is given all rows in "
        "one call, River's models, which have no other way, one in each. In the second table the "
        "label of the row before is one more input, of all contenders.",
        tables,
        verdicts,
        [] if has_river(options) else ["River was left out, or is not installed."],
    )
