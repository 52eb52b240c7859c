"""Table 2 of BKM: the test error of the sparse greedy solution beside that of the exact one."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import GPRegressor
from mercer.experiments.abalone import CENTRED, NOISE, RAW, WIDTH, Split, length_scale, read, split
from mercer.experiments.records import Cell, Claim, Estimate, Experiment, Outcome, Setting, Table
from mercer.inference.greedy import Greedy
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

__all__ = ["EXPERIMENT"]

Floats = NDArray[np.float64]

_TRAINING = (3000, 4000)
_SPLITS = 10
#: The paper's tolerance first. Of one split all are points of one path: each goes on from the last.
_TOLERANCES = (0.025, 0.01, 0.005)
#: With the paper's dual smaller tolerances take a fifth of all kernels and more: left out.
_PATHS = {
    (RAW, "subset"): _TOLERANCES[:1],
    (RAW, "best"): _TOLERANCES,
    (CENTRED, "best"): _TOLERANCES,
}
_HEADER = (
    "training rows",
    "rings",
    "dual",
    "solution",
    "kernels",
    "mean squared error",
    "root mean squared error",
    "mean absolute error",
    "log posterior",
)
#: The figure to reach, which names no error: all three are held to it.
_RATIO = 1.003
_ERRORS = ("mean squared", "root mean squared", "mean absolute")
#: Generalisation error and log posterior, the exact solution's and the greedy one's; 10^5 for the
#: misprinted 10^3.
_PUBLISHED = {
    "exact": (Estimate(1.782, 0.33), Estimate(-1.571e5, 0.005 * 1.571e5)),
    "Gap < 0.025": (Estimate(1.785, 0.32), Estimate(-1.572e5, 0.005 * 1.572e5)),
}


class _Errors(NamedTuple):
    """What is measured of one solution on one split."""

    kernels: float
    squared: float
    root: float
    absolute: float
    log_posterior: float


_Found = dict[tuple[int, str, str, str], list[_Errors]]


def _measured(rows: Split, kernels: int, F: Floats, predicted: Floats) -> _Errors:
    """Return errors on the test rows, and L = -y'F/2, as it is at optima over a subspace."""
    wrong = predicted - rows.y_test
    root = float(np.sqrt(np.mean(wrong**2)))
    return _Errors(
        kernels,
        root**2,
        root,
        float(np.mean(np.abs(wrong))),
        float(-0.5 * (rows.y @ F)),
    )


def _exact(rows: Split) -> _Errors:
    model = GPRegressor(RBF(length_scale(WIDTH)), Gaussian(NOISE), mean="zero", optimizer=None).fit(
        rows.X, rows.y
    )
    return _measured(rows, len(rows.y), model.predict(rows.X), model.predict(rows.X_test))


def _greedy(rows: Split, dual: str, tolerances: tuple[float, ...]) -> list[_Errors]:
    """Return the errors at each tolerance of one greedy path."""
    kernel = RBF(length_scale(WIDTH))
    path = Greedy(kernel, rows.X, rows.y, NOISE, dual=dual)
    found = []
    for tol in tolerances:
        now = path.grow(tol)
        predicted = kernel(rows.X_test, rows.X[now.indices]) @ now.coefficients[:, 0]
        found.append(_measured(rows, len(now.indices), now.fitted[:, 0], predicted))
    return found


def _run(setting: Setting) -> Outcome:
    X, y = read(setting)
    seeds = range(2 if setting.quick else _SPLITS)
    found: _Found = {}
    tasks = list(product(_TRAINING, (RAW, CENTRED), seeds))
    for number in setting.steps([f"{n} rows, rings {t}, split {s + 1}" for n, t, s in tasks]):
        n, targets, seed = tasks[number]
        rows = split(X, y, n, seed, targets)
        found.setdefault((n, targets, "", "exact"), []).append(_exact(rows))
        for (which, dual), tolerances in _PATHS.items():
            if which != targets:
                continue
            for tol, errors in zip(tolerances, _greedy(rows, dual, tolerances), strict=True):
                found.setdefault((n, targets, dual, f"Gap < {tol}"), []).append(errors)
    table: list[tuple[Cell, ...]] = [
        (*key, *map(Estimate.of, zip(*runs, strict=True))) for key, runs in found.items()
    ]
    return Outcome(
        (
            Table(
                "errors",
                "Errors on the test rows, mean and spread of splits",
                _HEADER,
                tuple(table),
            ),
            _ratios(found),
            _published(found),
        ),
        _claims(found),
        notes=(
            "The published generalisation error is none of the three errors of the exact solution; "
            "its ratio of the sparse to the exact one is 1.0017. On rings as they are the log "
            "posterior is all but the constant part of the targets, so that a tight dual proves a "
            "Gap of 0.025 before the errors are those of the exact solution: no claim is made of "
            "it. Claims list the ratios of mean squared, root mean squared and mean absolute "
            "errors, and hold if all three do; where a mean is within two standard errors of the "
            "bound, the splits do not tell on which side it is.",
        ),
    )


def _ratio(found: _Found, key: tuple[int, str, str, str]) -> list[Estimate]:
    """Return the ratio to the exact solution of each of the three errors, with standard errors."""
    ours = np.array([run[1:4] for run in found[key]])
    exact = np.array([run[1:4] for run in found[key[0], key[1], "", "exact"]])
    each = [Estimate.of(column) for column in (ours / exact).T]
    return [Estimate(e.mean, e.spread / np.sqrt(len(ours))) for e in each]


def _ratios(found: _Found) -> Table:
    keys = [key for key in found if key[-1] != "exact"]
    return Table(
        "ratios",
        "Errors over those of the exact solution, mean and standard error",
        (*_HEADER[:4], *_ERRORS),
        tuple((*key, *_ratio(found, key)) for key in keys),
    )


def _published(found: _Found) -> Table:
    """Return the paper's two rows beside ours: 3000 rows, rings as they are, the paper's dual."""
    rows: list[tuple[Cell, ...]] = []
    for solution, (error, log_posterior) in _PUBLISHED.items():
        runs = found[3000, RAW, "" if solution == "exact" else "subset", solution]
        absolute = Estimate.of([run.absolute for run in runs])
        ours = Estimate.of([run.log_posterior for run in runs])
        rows.append((solution, absolute, error, ours, log_posterior))
    return Table(
        "published",
        "Beside Table 2",
        (
            "solution",
            "mean absolute error",
            "published error",
            "log posterior",
            "published log posterior",
        ),
        tuple(rows),
    )


def _claims(found: _Found) -> tuple[Claim, ...]:
    claims = []
    for key in found:
        n, targets, dual, solution = key
        if solution == "exact" or (targets, dual) == (RAW, "best"):
            continue
        ratios = _ratio(found, key)
        text = (
            f"{n} rows, rings {targets}, dual {dual!r}, {solution}: errors at most {_RATIO} times"
        )
        said = ", ".join(f"{r.mean:.4f} ± {r.spread:.4f}" for r in ratios)
        claims.append(Claim(text, said, max(r.mean for r in ratios) <= _RATIO))
    return tuple(claims)


EXPERIMENT = Experiment(
    name="abalone-error",
    title="Test errors of the sparse greedy and of the exact solution on Abalone",
    source="BKM 4.7, Table 2",
    published="With Gap < 0.025 the error was 1.785 ± 0.32, of the exact solution 1.782 ± 0.33, "
    "over 10 splits of 3000 training and 1177 test rows.",
    run=_run,
    data=("abalone",),
)
