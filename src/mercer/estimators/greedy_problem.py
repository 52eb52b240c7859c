"""What a greedy fit solves: its rows, its engine, and a description to keep and compare.

A bound is proved of one problem. A fit that goes on from another takes it over, and may only do so
if it solves the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.greedy_options import candidates_of
from mercer.estimators.inducing import different_rows
from mercer.estimators.prepare_exact import Begun
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.inference import APPROXIMATIONS, quadratic
from mercer.inference.duals import one_noise
from mercer.inference.greedy import Greedy
from mercer.kernels import Kernel

__all__ = ["MergedRows", "engine_of", "objective_of", "probe_of", "same_problem", "the_problem"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# What parameters may lose on their way through logarithms and back.
_DIGITS = 1e-12
_PROBES = 20  # columns that are compared


@dataclass(frozen=True)
class MergedRows:
    """The different rows, as `Greedy` takes them.

    X : inputs, u rows
    first : (u,) the number of one row of each kind
    Y : (u, P) means of their targets in the kernel's units, less the fixed part of the mean
    H : (u, r) regressors of the mean, or None
    noise : s2
    weights : (u,) such that the variance of row i is s2/w_i
    """

    X: Any
    first: Indices
    Y: Floats
    H: Floats | None
    noise: float
    weights: Floats

    @classmethod
    def of(cls, begun: Begun) -> MergedRows:
        """Return the rows of a fit."""
        data, mean = begun.data, begun.mean
        n, outputs = data.Y.shape
        rows = different_rows(begun)
        noise, powers = one_noise(begun.likelihood.variances(n), data.weights)
        weights = np.ones(n) if powers is None else powers
        estimated = mean.estimate is not None
        fixed = mean.fixed_part(data.X, outputs) if estimated else mean(data.X, outputs)
        Y = (data.Y - fixed) / data.scale
        total = np.bincount(rows.kinds, weights).astype(float)
        sums = [np.bincount(rows.kinds, weights * column) for column in Y.T]
        X = data.X[rows.first]
        H = mean.features(X) if estimated else None
        H = None if H is None or not H.shape[1] else H
        return cls(X, rows.first, np.transpose(sums) / total[:, None], H, noise, total)

    def start(self) -> Floats:
        """Return coefficients (r, P) of the mean by least squares."""
        if self.H is None:
            return np.empty((0, self.Y.shape[1]))
        root = np.sqrt(self.weights)[:, None]
        return np.asarray(np.linalg.lstsq(root * self.H, root * self.Y)[0])

    def less(self, beta: Floats) -> Floats:
        """Return the targets less a mean with these coefficients (r, P)."""
        if self.H is None:
            return self.Y
        return quadratic.less_rounding(self.Y - self.H @ beta, self.Y)


def the_problem(estimator: Any, begun: Begun, rows: MergedRows) -> dict[str, Any]:
    """Return a description of the model as it stands, and of how rows are chosen.

    Parameters
    ----------
    estimator : SparseGreedyGPRegressor
    begun : the model on its rows
    rows : these as the engine sees them
    """
    variances = begun.likelihood.variances(len(begun.data.Y))
    return {
        "kernel": _form(begun.kernel),
        "theta": np.array(begun.kernel.theta),
        "variances": variances if np.ptp(variances) else variances[:1],
        "scale": np.array(begun.data.scale),
        "targets": _digest(rows.Y),
        "mean": None if rows.H is None else _digest(rows.H),
        "n_candidates": candidates_of(estimator),
        "dual": estimator.dual,
        "searched": begun.searched,
    }


def same_problem(last: dict[str, Any] | None, now: dict[str, Any]) -> bool:
    """Whether a fit would solve what the last one has solved, with hyperparameters as good."""
    if last is None or now["kernel"] is None or (now["searched"] and not last["searched"]):
        return False
    exact = ("kernel", "targets", "mean", "n_candidates", "dual")
    if any(last[name] != now[name] for name in exact):
        return False
    return all(
        last[name].shape == now[name].shape
        and np.allclose(last[name], now[name], rtol=_DIGITS, atol=_DIGITS * (name == "theta"))
        for name in ("theta", "variances", "scale")
    )


def probe_of(kernel: Kernel, X: Any, rows: Indices) -> Floats:
    """Return sums of some columns of K: a function of the user's is described by its name alone."""
    return np.asarray(np.sum(kernel(X[rows[:_PROBES]], X), axis=1))


def engine_of(estimator: Any, begun: Begun, rows: MergedRows, beta: Floats, seed: int) -> Greedy:
    """Return the engine for targets less a mean with coefficients `beta` (r, P)."""
    return Greedy(
        begun.kernel,
        rows.X,
        rows.less(beta),
        rows.noise,
        weights=rows.weights,
        n_candidates=candidates_of(estimator),
        dual=estimator.dual,
        seed=seed,
    )


def objective_of(begun: Begun, basis: Indices) -> SparseObjective:
    """Return DTC's objective with these rows for inducing inputs."""
    model = begun.kernel, begun.likelihood, begun.mean
    inducing = InducingInputs(begun.data.X[basis])
    kind = APPROXIMATIONS["dtc"]
    return SparseObjective(*model, begun.data, inducing, kind, bounds=begun.bounds)


def _form(kernel: Kernel) -> str | None:
    """Return all of a kernel but its free parameters, None if it cannot be written."""
    try:
        return kernel.with_theta(np.zeros_like(kernel.theta)).to_json()
    except ValueError:
        return None


def _digest(A: Floats) -> str:
    return sha256(repr(A.shape).encode() + np.ascontiguousarray(A).tobytes()).hexdigest()
