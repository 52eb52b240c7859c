"""Accuracy on the standard splits of boston and wine-red, beside the peers."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import (
    LENGTH_BOUNDS,
    NOISE_BOUNDS,
    VARIANCE_BOUNDS,
    GPyTorch,
    has_gpytorch,
    sklearn_regressor,
)
from benchmarks.report import Options, Result, Verdict, table
from mercer import GPRegressor
from mercer.datasets import Table, load_table
from mercer.evidence.defaults import default_kernel, default_noise, default_starts

PEER_SPLITS = 5
METRICS = ("RMSE", "NLPD", "95% coverage")
MERCER, SKLEARN, GPYTORCH = "Mercer", "scikit-learn", "GPyTorch"
#: What can be compared on all splits too: GPyTorch's Cholesky breaks down on some of wine-red.
ALL_SPLITS = {("boston", SKLEARN), ("boston", GPYTORCH), ("wine-red", SKLEARN)}

PEER_VERSIONS = {
    SKLEARN: version("scikit-learn"),
    GPYTORCH: version("gpytorch") if find_spec("gpytorch") else None,
}
CACHE = Path(".benchmark-cache") / "uci-peers.json"

Predictor = Callable[[Any, Any, Any], tuple[Any, Any]]


def mercer(X: Any, y: Any, X_test: Any) -> tuple[Any, Any]:
    """Fit with the defaults; return mean and standard deviation at the test rows."""
    mean, std = GPRegressor().fit(X, y).predict(X_test, return_std=True)
    return mean, std


def _standardised(X: Any, X_test: Any) -> tuple[Any, Any]:
    centre, width = X.mean(axis=0), X.std(axis=0)
    width[width == 0] = 1.0
    return (X - centre) / width, (X_test - centre) / width


def starts(d: int) -> list[Any]:
    """Return the length scales, each (d,), of which Mercer begins at the best."""
    kernels = default_starts(default_kernel(np.ones(d), 1.0))
    return [each.kernel.parameters["length_scale"].value for each in kernels]


def start_noise() -> float:
    """Return the noise with which Mercer begins."""
    return float(default_noise(1.0).parameters["noise"].value)


def sklearn(X: Any, y: Any, X_test: Any) -> tuple[Any, Any]:
    """The same model on standardised data, within Mercer's bounds, from the best of its starts."""
    X, X_test = _standardised(X, X_test)

    def fitted(lengths: Any, **settings: Any) -> Any:
        return sklearn_regressor(lengths, start_noise(), normalize_y=True, **settings).fit(X, y)

    def evidence(lengths: Any) -> float:
        return float(fitted(lengths, optimizer=None).log_marginal_likelihood_value_)

    mean, std = fitted(max(starts(X.shape[1]), key=evidence)).predict(X_test, return_std=True)
    return mean, std


def gpytorch(X: Any, y: Any, X_test: Any) -> tuple[Any, Any]:
    """The same model and starts, by Cholesky and L-BFGS in double precision."""
    X, X_test = _standardised(X, X_test)
    centre, width = y.mean(), y.std()

    def begun(lengths: Any) -> GPyTorch:
        return GPyTorch(X, (y - centre) / width, lengths, start_noise(), constant_mean=True)

    model = max(map(begun, starts(X.shape[1])), key=GPyTorch.evaluate_by_cholesky)
    model.fit()
    mean, std = model.predict(X_test)
    return centre + width * mean, width * std


def scores(mean: Any, std: Any, y: Any) -> list[float]:
    """Return RMSE, negative log predictive density, and coverage of the 95% interval."""
    error = (y - mean) / std
    return [
        float(np.sqrt(np.mean((y - mean) ** 2))),
        float(np.mean(0.5 * error**2 + np.log(std) + 0.5 * np.log(2 * np.pi))),
        float(np.mean(np.abs(error) <= 1.959964)),
    ]


def peer_key(who: str, data: Table, split: int) -> str:
    """Name a peer's scores by its version, its starts and its bounds."""
    begun = [*(f"{each[0]:.6g}" for each in starts(data.X.shape[1])), f"{start_noise():g}"]
    bounds = (VARIANCE_BOUNDS, LENGTH_BOUNDS, NOISE_BOUNDS)
    within = ", ".join(f"{low:g} to {high:g}" for low, high in bounds)
    return (
        f"{who} {PEER_VERSIONS.get(who)} from {', '.join(begun)} in {within}: {data.name} {split}"
    )


def assess(data: Table, who: str, predictor: Predictor, splits: int) -> Any:
    """Return the scores, (splits, 3).

    A peer's scores change with its version and its set-up alone, and take it long: they are kept in
    a file and used again.
    """
    kept = json.loads(CACHE.read_text()) if CACHE.exists() else {}
    found = []
    for i in range(splits):
        key = peer_key(who, data, i)
        if who == MERCER or key not in kept:
            X, y, X_test, y_test = data.split(i)
            kept[key] = scores(*predictor(X, y, X_test), y_test)
            if who != MERCER and data.name != "made-up":
                CACHE.parent.mkdir(exist_ok=True)
                CACHE.write_text(json.dumps(kept, indent=1))
        found.append(kept[key][:3])
    return np.array(found)


def gaps(ours: Any, theirs: Any) -> list[tuple[str, float, float]]:
    """Return by how much ours is worse in each metric, and the standard error of that.

    Coverage is worse when its mean over the splits is farther from 0.95. Distances of single
    splits would compare noise: a split of 50 rows covers 95% of none exactly.
    """
    difference = ours - theirs
    worse = [*np.mean(difference[:, :2], axis=0)]
    worse.append(abs(np.mean(ours[:, 2]) - 0.95) - abs(np.mean(theirs[:, 2]) - 0.95))
    names = (*METRICS[:2], "distance of coverage from 0.95")
    return [
        (name, float(gap), _error(column))
        for name, gap, column in zip(names, worse, difference.T, strict=True)
    ]


def _error(values: Any) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def made_up() -> Table:
    """Return a small table that is there on every machine, for quick runs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    splits = rng.permuted(np.tile(np.arange(60) < 10, (3, 1)), axis=1).T
    return Table("made-up", X, y, ("a", "b", "c"), splits, "made up")


def run(options: Options) -> Result:
    """Assess Mercer on all splits and the peers on the first few."""
    predictors: dict[str, Predictor] = {MERCER: mercer}
    if "scikit-learn" not in options.without:
        predictors[SKLEARN] = sklearn
    if has_gpytorch(options):
        predictors[GPYTORCH] = gpytorch
    result = Result(
        "Accuracy on standard splits",
        "Mercer with its defaults on all 20 splits; the peers are compared on the first "
        f"{PEER_SPLITS}, and on all where they get through. The model is the same, constant * RBF "
        "with a length scale a column and "
        "noise, on standardised data, and so is where its evidence is maximised from by L-BFGS: of "
        "Mercer's three starts (length scales of sqrt(d), a quarter and a sixteenth of it) the one "
        "that each contender's own evidence prefers. The noise of all may fall to "
        f"{NOISE_BOUNDS[0]:g} of the targets' variance. What is left to differ: Mercer's "
        "hyperprior on the length scales; the constant mean, which Mercer and GPyTorch estimate "
        "and scikit-learn takes from the targets; Mercer's second search, from much noise, where "
        "the first ends at next to none; and the way each search takes from its start, which "
        "decides where it ends on wine-red, whose evidence has many optima. GPyTorch works by "
        "Cholesky in double precision. Mean and standard error over the splits.",
    )
    shared = 3 if options.quick else PEER_SPLITS
    for name in ("made-up",) if options.quick else ("boston", "wine-red"):
        try:
            data = made_up() if options.quick else load_table(name)
        except FileNotFoundError:
            result.notes.append(f"{name} was left out: its table is not at hand (see MERCER_DATA).")
            continue
        assert data.splits is not None
        found = {}
        rows = []
        for who, predictor in predictors.items():
            whole = who == MERCER or (name, who) in ALL_SPLITS
            splits = data.splits.shape[1] if whole else shared
            found[who] = assess(data, who, predictor, splits)
            for count in dict.fromkeys([splits, shared]):
                part = found[who][:count]
                cells = [f"{np.mean(c):.4f} ± {_error(c):.4f}" for c in part.T]
                rows.append([who, str(count), *cells])
        result.tables.append(
            f"{name} ({data.X.shape[0]} rows, {data.X.shape[1]} columns):\n\n"
            + table(["contender", "splits", *METRICS], rows)
        )
        for who in list(found)[1:]:
            for count in dict.fromkeys([shared, len(found[who])]):
                for what, gap, error in gaps(found[MERCER][:count], found[who][:count]):
                    result.verdicts.append(
                        Verdict(
                            f"{name}, {what}, less {who}'s, {count} splits",
                            f"{gap:+.4f} ± {error:.4f}",
                            "at most one standard error above 0",
                            gap <= error,
                        )
                    )
    return result
