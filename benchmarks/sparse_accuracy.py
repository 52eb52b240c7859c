"""Accuracy of sparse regression, beside GPyTorch's SGPR and a subset of the data of equal time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import GPyTorch, has_gpytorch
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.uci import METRICS, _error, _standardised, made_up
from mercer import GPRegressor, SparseGPRegressor
from mercer.datasets import Table, load_table
from mercer.selection import kmeans

#: Set: how many splits, and how many inducing inputs SGPR and Mercer's own SGPR have.
SETS = {
    "wine-red": (3, 300),
    "abalone": (3, 300),
    "pumadyn32nm": (1, 512),
    "naval": (1, 300),
    "pol": (1, 300),
    "kin40k": (1, 512),
    "protein": (1, 300),
}
#: Rows of a subset of the data, tried in turn until one takes longer than the sparse fit.
LADDER = (250, 350, 500, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000)
#: Of a fit of SGPR: on kin40k it converges in 440, and on protein alone its time is up.
PEER_SECONDS = 480.0
START = 1000  # rows of the exact fit that SGPR starts from
CACHE = Path(".benchmark-cache") / "sparse-accuracy"
DEFAULT, SAME, SUBSET, SGPR = "Mercer", "Mercer, vfe", "subset of data", "GPyTorch, SGPR"


@dataclass
class Scored:
    """What a contender says of the test rows of a split.

    density : (rows,) negative log predictive densities, in units of the targets' deviation
    squares : (rows,) squared errors, in the same units
    inside : (rows,) whether the row is in the 95% interval
    seconds : of the fit
    size : how many inducing inputs, or rows, it has
    stopped : whether its time was up
    """

    density: Any
    squares: Any
    inside: Any
    seconds: float
    size: str
    stopped: bool = False

    @classmethod
    def of(cls, mean: Any, std: Any, y: Any, unit: float, *rest: Any) -> Scored:
        """Score predictions; `unit` is the standard deviation of the training targets."""
        error = (y - mean) / std
        density = 0.5 * error**2 + np.log(std / unit) + 0.5 * np.log(2 * np.pi)
        return cls(density, ((y - mean) / unit) ** 2, np.abs(error) <= 1.959964, *rest)

    @property
    def metrics(self) -> list[float]:
        """RMSE, negative log predictive density, and coverage of the 95% interval."""
        root = np.sqrt(np.mean(self.squares))
        return [float(root), float(np.mean(self.density)), float(np.mean(self.inside))]


class OutOfTime(Exception):
    """The time that a fit may take is up."""


def _fit(model: Any, X: Any, y: Any) -> float:
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def sparse(X: Any, y: Any, X_test: Any, y_test: Any, **settings: Any) -> Scored:
    """Fit `SparseGPRegressor`, with its defaults unless told."""
    model = SparseGPRegressor(random_state=0, **settings)
    seconds = _fit(model, X, y)
    mean, std = model.predict(X_test, return_std=True)
    size = f"m = {len(model.inducing_)}"
    return Scored.of(mean, std, y_test, y.std(), seconds, size, model.status_ == "stopped")


def subset(X: Any, y: Any, X_test: Any, y_test: Any, most: float) -> Scored:
    """Fit the largest subset of the ladder whose fit takes no longer than `most` seconds.

    The first rung counts whatever it takes.
    """
    order = np.random.default_rng(0).permutation(len(y))
    found = None
    for size in dict.fromkeys(min(rung, len(y)) for rung in LADDER):
        deadline = time.perf_counter() + most

        def watch(*_: Any, until: float = deadline, first: bool = found is None) -> None:
            if not first and time.perf_counter() > until:
                raise OutOfTime

        model, rows = GPRegressor(verbose=watch), order[:size]
        try:
            seconds = _fit(model, X[rows], y[rows])
        except OutOfTime:
            break
        if found is not None and seconds > most:
            break
        found = model, seconds, size
    assert found is not None
    model, seconds, size = found
    mean, std = model.predict(X_test, return_std=True)
    return Scored.of(mean, std, y_test, y.std(), seconds, f"{size} rows")


class SGPRPeer(GPyTorch):
    """GPyTorch's SGPR: constant mean, ARD, inducing inputs from k-means, all learned by L-BFGS.

    It starts from the hyperparameters of Mercer's exact fit to some rows: from length scales that
    are all alike it finds no signal in pumadyn32nm.
    """

    def __init__(self, X: Any, y: Any, m: int) -> None:
        rows = np.random.default_rng(0).permutation(len(y))[:START]
        start = GPRegressor().fit(X[rows], y[rows])
        kernel, noise = start.kernel_, max(start.likelihood_.noise, 1e-4)
        super().__init__(X, y, kernel.kernel.length_scale, noise, constant_mean=True)
        self.model.covar_module.outputscale = kernel.variance
        points = kmeans(X, min(m, len(X)), rng=np.random.default_rng(0)).centres
        self.model.covar_module = self.gpytorch.kernels.InducingPointKernel(
            self.model.covar_module,
            inducing_points=self.torch.tensor(points, dtype=self.torch.float64),
            likelihood=self.likelihood,
        ).double()

    def fit_for(self, seconds: float, max_iter: int = 200) -> bool:
        """Maximise the bound; return whether the search ended before its time, or broke down.

        The best parameters that were seen are kept.
        """
        torch = self.torch
        optimizer = torch.optim.LBFGS(
            self.model.parameters(),
            max_iter=max_iter,
            max_eval=5 * max_iter,
            history_size=10,
            tolerance_grad=1e-6,
            tolerance_change=1e-8,
            line_search_fn="strong_wolfe",
        )
        self.model.train()
        self.likelihood.train()
        until, best = time.perf_counter() + seconds, np.inf
        kept = {k: v.clone() for k, v in self.model.state_dict().items()}

        def closure() -> Any:
            nonlocal best, kept
            if time.perf_counter() > until:
                raise OutOfTime
            optimizer.zero_grad()
            loss = -self.evidence(self.model(self.X), self.y)
            loss.backward()
            if float(loss.detach()) < best:
                best = float(loss.detach())
                kept = {k: v.clone() for k, v in self.model.state_dict().items()}
            return loss

        stopped = False
        try:
            optimizer.step(closure)
        except (OutOfTime, RuntimeError):  # which NotPSDError and NaNs of the Cholesky are
            stopped = True
        self.model.load_state_dict(kept)
        return stopped

    def predict(self, X: Any) -> tuple[Any, Any]:
        """Return mean and standard deviation of new observations, a block of rows at a time."""
        self.model.eval()
        self.likelihood.eval()
        found = []
        with self.torch.no_grad():
            for start in range(0, len(X), 1000):
                block = self.torch.tensor(X[start : start + 1000], dtype=self.torch.float64)
                predicted = self.likelihood(self.model(block))
                found.append((predicted.mean.numpy(), predicted.variance.sqrt().numpy()))
        mean, std = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return mean, std


def sgpr(X: Any, y: Any, X_test: Any, y_test: Any, m: int, kept: Path | None) -> Scored:
    """Fit SGPR to standardised data for as long as it may take, or read what it once predicted."""
    centre, unit = y.mean(), y.std()
    if kept is None or not kept.exists():
        own, new = _standardised(X, X_test)
        start = time.perf_counter()
        model = SGPRPeer(own, (y - centre) / unit, m)
        stopped = model.fit_for(PEER_SECONDS)
        seconds = time.perf_counter() - start
        mean, std = model.predict(new)
        found = {"mean": mean, "std": std, "seconds": seconds, "stopped": stopped}
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.savez(kept, **found)
    else:
        found = dict(np.load(kept))
    mean, std = centre + unit * found["mean"], unit * found["std"]
    took, stopped = float(found["seconds"]), bool(found["stopped"])
    return Scored.of(mean, std, y_test, unit, took, f"m = {m}", stopped)


def _splits(data: Table, count: int) -> Callable[[int], Any]:
    """Return the published splits, or else random ones with a tenth of the rows to test."""
    if data.splits is not None:
        return data.split
    n = len(data.X)
    rng = np.random.default_rng(0)
    tested = rng.permuted(np.tile(np.arange(n) < n // 10, (count, 1)), axis=1).T
    return Table(data.name, data.X, data.y, data.columns, tested, data.description).split


def worse_by(ours: list[Scored], theirs: list[Scored]) -> tuple[float, float]:
    """Return by how much our density is worse, and its standard error.

    That is over the splits, or over the test rows of the only one.
    """
    pairs = list(zip(ours, theirs, strict=True))
    each = [np.mean(a.density - b.density) for a, b in pairs]
    return float(np.mean(each)), _error(
        each if len(each) > 1 else pairs[0][0].density - pairs[0][1].density
    )


def assess(data: Table, splits: int, m: int, options: Options) -> dict[str, list[Scored]]:
    """Return what each contender scores on each split."""
    found: dict[str, list[Scored]] = {DEFAULT: [], SUBSET: [], SAME: []}
    peer = has_gpytorch(options)
    split = _splits(data, splits)
    for i in range(splits):
        rows = split(i)
        found[DEFAULT].append(sparse(*rows))
        found[SUBSET].append(subset(*rows, found[DEFAULT][-1].seconds))
        found[SAME].append(sparse(*rows, approximation="vfe", n_inducing=m))
        if peer:
            name = f"gpytorch-{version('gpytorch')}-{data.name}-{m}-{i}.npz"
            kept = None if options.quick else CACHE / name
            found.setdefault(SGPR, []).append(sgpr(*rows, m, kept))
    return found


def _rows(found: dict[str, list[Scored]]) -> list[list[str]]:
    rows = []
    for who, scored in found.items():
        metrics = np.array([s.metrics for s in scored])
        sizes = "/".join(dict.fromkeys(s.size for s in scored))
        seconds = f"{np.mean([s.seconds for s in scored]):.1f}"
        seconds += "*" if any(s.stopped for s in scored) else ""
        errors = [f" ± {_error(c):.4f}" if len(c) > 1 else "" for c in metrics.T]
        cells = [f"{np.mean(c):.4f}{e}" for c, e in zip(metrics.T, errors, strict=True)]
        rows.append([who, sizes, seconds, *cells])
    return rows


def _verdicts(name: str, found: dict[str, list[Scored]]) -> list[Verdict]:
    verdicts = []
    if SGPR in found:
        for who in (DEFAULT, SAME):
            gap, error = worse_by(found[who], found[SGPR])
            claim = f"{name}, NLPD of {who}, less SGPR's"
            wanted = "at most one standard error above 0"
            verdicts.append(Verdict(claim, f"{gap:+.4f} ± {error:.4f}", wanted, gap <= error))
    gap, error = worse_by(found[DEFAULT], found[SUBSET])
    claim = f"{name}, NLPD of {DEFAULT}, less that of a subset of equal time"
    verdicts.append(Verdict(claim, f"{gap:+.4f} ± {error:.4f}", "at most 0", gap < 1e-9))
    # A normal of the targets' own mean and deviation has 1.42.
    worst = max(s.metrics[1] for who in (DEFAULT, SAME) for s in found[who])
    least = min(s.metrics[2] for who in (DEFAULT, SAME) for s in found[who])
    verdicts.append(
        Verdict(
            f"{name}, no ruin: worst NLPD and coverage of a split",
            f"{worst:.3f}, {least:.3f}",
            "below 1.5, above 0.85",
            worst < 1.5 and least > 0.85,
        )
    )
    return verdicts


def run(options: Options) -> Result:
    """Assess the defaults, "vfe" and SGPR with equal m, and a subset of equal time."""
    result = Result(
        "Accuracy of sparse regression",
        "Mercer is `SparseGPRegressor()`; the subset of data is `GPRegressor()` on as many random "
        f"rows of {', '.join(map(str, LADDER))} as it can fit in the same time. SGPR is GPyTorch's "
        "in double precision on standardised data, from the hyperparameters of an exact fit to "
        f"{START} rows and inducing inputs from k-means, all learned by L-BFGS in "
        f"{PEER_SECONDS:.0f} s at the most, beside Mercer's VFE with the same m. In units of the "
        "training targets' standard deviation; mean and standard error over splits, those of a "
        "difference over the test rows where there is one split. A star marks searches that were "
        "stopped by their time or their number of iterations. SGPR's times are of the run that "
        "made its figures, which are kept.",
    )
    sets = {"made-up": (2, 10)} if options.quick else SETS
    for name, (splits, m) in sets.items():
        try:
            data = made_up() if options.quick else load_table(name)
        except FileNotFoundError as error:
            result.notes.append(f"{name} was left out: {error}.")
            continue
        found = assess(data, splits, m, options)
        tested = "1 split" if splits == 1 else f"{splits} splits"
        result.tables.append(
            f"{name} ({data.X.shape[0]} rows, {data.X.shape[1]} columns, {tested}):\n\n"
            + table(["contender", "size", "fit, s", *METRICS], _rows(found))
        )
        result.verdicts += _verdicts(name, found)
    if find_spec("gpytorch") is None or "gpytorch" in options.without:
        result.notes.append("GPyTorch was left out, or is not installed.")
    return result
