"""From rows and a user's model to a basis that is proved to be good enough, and back.

Nothing here depends on the order of the rows, or on whether one that counts twice is written
twice: rows of equal inputs are one row with their mean for a target, which leaves L (BKM 78) as it
was, and the different ones are taken in an order of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.estimators.greedy_options import candidates_of, most_of
from mercer.estimators.inducing import different_rows
from mercer.estimators.options import as_generator
from mercer.estimators.prepare_exact import Begun
from mercer.estimators.prepare_sparse import from_sample
from mercer.estimators.search import maximise_for, search
from mercer.evidence import Optimum
from mercer.evidence.optimum import Report, tell
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.inference import APPROXIMATIONS
from mercer.inference.greedy import Greedy, GreedySolution, GreedyState

__all__ = ["GreedyRun", "MergedRows", "continued", "fit_greedily"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Basis functions of the searches for hyperparameters at the most: an evaluation takes O(n m^2).
_SEARCHED = 500
# The tolerance with which these are chosen, as a part of that which is to be proved: the evidence
# asks for more of the variance to be explained than the mean does.
_FINER = 0.1
# Searches at the most, each on rows chosen under what the last one found, and what another choice
# must gain in log evidence for there to be another search.
_ROUNDS, _GAIN = 3, 0.1
# Choices of a mean's coefficients and of rows in turn, at the most.
_MEANS = 3
# What is left of the targets and is no more than this part of them is rounding.
_NOTHING = 1e-13


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
        variances = begun.likelihood.variances(n)
        # as `mercer.certificate` has it
        noise = float(1.0 / np.mean(1.0 / variances) if np.ptp(variances) else variances[0])
        weights = noise / variances if data.weights is None else noise / variances * data.weights
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
        rest = self.Y - self.H @ beta
        size = np.max(np.abs(self.Y), axis=0)
        return np.where(np.max(np.abs(rest), axis=0) <= _NOTHING * size, 0.0, rest)


class GreedyRun(NamedTuple):
    """What a greedy fit ends with.

    objective : DTC on the basis, at the hyperparameters that were found
    optimum : how these were found
    solution : the basis, in numbers of the different rows, and what is proved of it
    basis : (m,) numbers of the rows of the fit
    gaps : (m,) the Gap that is proved with 1, 2, ..., m of them
    kept : what another fit can go on from, in arrays and numbers
    goes_on : whether it has gone on from the last fit
    """

    objective: SparseObjective
    optimum: Optimum
    solution: GreedySolution
    basis: Indices
    gaps: Floats
    kept: dict[str, Any]
    goes_on: bool = False


def fit_greedily(
    estimator: Any, begun: Begun, columns: list[str] | None, report: Report | None
) -> GreedyRun:
    """Return the end of a fit by a `SparseGreedyGPRegressor`: hyperparameters, then the basis."""
    rng = as_generator(estimator.random_state)
    seed = int(rng.integers(2**31))
    last = continued(estimator, begun)
    if last is not None:
        begun = begun._replace(searched=False)
        run = _certified(estimator, begun, seed, report, last)
        held = Optimum(run.objective.theta, np.nan, estimator.status_, "the last fit was kept")
        return run._replace(optimum=held, goes_on=True)
    if not begun.searched:
        run = _certified(estimator, begun, seed, report)
        objective = run.objective
        optimum = search(estimator, objective, begun.undetermined, columns, report)
        return run._replace(optimum=optimum)
    if not begun.warm:
        begun = from_sample(begun, _SEARCHED, rng, report)
    begun, optimum = _searched(estimator, begun, seed, rng, columns, report)
    run = _certified(estimator, begun, seed, report)
    return run._replace(optimum=replace(optimum, theta=run.objective.theta, jitter=None))


def continued(estimator: Any, begun: Begun) -> dict[str, Any] | None:
    """Return what the last fit has kept, if this one is to go on from there: of the same rows."""
    kept: dict[str, Any] | None = vars(estimator).get("_selection")
    if kept is None or not begun.warm:
        return None
    data = begun.data
    before = estimator.X_train_, estimator.y_train_, estimator.sample_weight_
    now = data.X, data.Y, data.weights
    same = all(
        (a is None) == (b is None) and (a is None or np.array_equal(a, b))
        for a, b in zip(before, now, strict=True)
    )
    return kept if same else None


def _searched(
    estimator: Any,
    begun: Begun,
    seed: int,
    rng: np.random.Generator,
    columns: list[str] | None,
    report: Report | None,
) -> tuple[Begun, Optimum]:
    """Return the model with hyperparameters that maximise DTC's evidence, rows chosen in turn."""
    objective, broken = _chosen(estimator, begun, seed, report)
    optimum = search(estimator, objective, begun.undetermined, columns, report)
    begun = _at(begun, objective, optimum)
    for _ in range(_ROUNDS - 1):
        if broken or optimum.status == "interrupted":
            break
        objective, broken = _chosen(estimator, begun, seed, report)
        if not objective.value(objective.theta) > optimum.value + _GAIN:
            break
        another = maximise_for(estimator, objective, rng, report, estimator.n_jobs)
        objective.release()
        begun = _at(begun, objective, another)
        optimum = replace(
            another,
            thetas=[*optimum.thetas, *another.thetas],
            values=[*optimum.values, *another.values],
            n_iterations=optimum.n_iterations + another.n_iterations,
        )
    return begun, optimum


def _at(begun: Begun, objective: SparseObjective, optimum: Optimum) -> Begun:
    kernel, likelihood, _ = objective.unpack(optimum.theta)
    return begun._replace(kernel=kernel, likelihood=likelihood)


def _chosen(
    estimator: Any, begun: Begun, seed: int, report: Report | None
) -> tuple[SparseObjective, bool]:
    """Return DTC's objective on rows that may do, and whether the choice was broken off."""
    rows = MergedRows.of(begun)
    engine = _engine(estimator, begun, rows, rows.start(), seed)
    most = min(most_of(estimator, len(rows.X)), _SEARCHED)
    tell(report, f"choosing rows for a search, {most} at the most")
    solution = engine.grow(_FINER * float(estimator.tol), most, certify=False)
    basis = rows.first[solution.indices]
    return _objective(begun, basis), solution.status == "interrupted"


def _certified(
    estimator: Any,
    begun: Begun,
    seed: int,
    report: Report | None,
    last: dict[str, Any] | None = None,
) -> GreedyRun:
    """Choose rows until the Gap is proved, and the coefficients of the mean that go with them.

    Other rows have other coefficients, and these make other targets; what is proved is for the
    coefficients that DTC has on the rows that are chosen in the end.
    """
    rows, tol = MergedRows.of(begun), float(estimator.tol)
    most = most_of(estimator, len(rows.X))
    tell(report, f"choosing rows until the Gap is {tol:g}")

    def progress(size: int, gap: float) -> None:
        if size % 50 == 0:
            tell(report, f"{size} basis functions, Gap {gap:.3g}")

    status = ""
    if last is None:
        beta = rows.start()
        engine = _engine(estimator, begun, rows, beta, seed)
        if rows.H is not None:
            status = engine.grow(tol, most, progress, certify=False).status
            beta = engine.coefficients(rows.Y, rows.H)
            engine.retarget(rows.less(beta))
    else:
        seed, beta = last["seed"], last["beta"]
        engine = _engine(estimator, begun, rows, beta, seed)
        names = ("indices", "left", "gaps", "lower", "subset")
        engine.resume(GreedyState(*(last[name] for name in names)))
    if status == "interrupted":
        solution = engine.solution(status)
    else:
        solution = engine.grow(tol, most, progress)
    for _ in range(_MEANS):
        if rows.H is None:
            break
        beta = engine.coefficients(rows.Y, rows.H)
        engine.retarget(rows.less(beta))
        if solution.status != "certified":
            solution = engine.solution(solution.status)
            break
        grown = len(solution.indices)
        solution = engine.grow(tol, most, progress)
        if len(solution.indices) == grown:  # and so are the coefficients
            break
    basis = rows.first[solution.indices]
    kept = {**engine.state._asdict(), "seed": seed, "beta": beta}
    objective = _objective(begun, basis)
    held = Optimum(objective.theta, np.nan, "fixed")
    return GreedyRun(objective, held, solution, basis, engine.proved, kept)


def _engine(estimator: Any, begun: Begun, rows: MergedRows, beta: Floats, seed: int) -> Greedy:
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


def _objective(begun: Begun, basis: Indices) -> SparseObjective:
    model = begun.kernel, begun.likelihood, begun.mean
    inducing = InducingInputs(begun.data.X[basis])
    kind = APPROXIMATIONS["dtc"]
    return SparseObjective(*model, begun.data, inducing, kind, bounds=begun.bounds)
