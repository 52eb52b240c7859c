"""From rows and a user's model to a basis that is proved to be good enough, and back.

Nothing here depends on the order of the rows, or on whether one that counts twice is written
twice: rows of equal inputs are one row with their mean for a target, which leaves L (BKM 78) as it
was, and the different ones are taken in an order of their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ConvergenceWarning, warn
from mercer.estimators.greedy_options import most_of
from mercer.estimators.greedy_problem import (
    MergedRows,
    engine_of,
    objective_of,
    probe_of,
    same_problem,
    the_problem,
)
from mercer.estimators.greedy_search import Search
from mercer.estimators.options import as_generator
from mercer.estimators.prepare_exact import Begun
from mercer.estimators.search import search
from mercer.evidence import Optimum
from mercer.evidence.guarded import Fitted
from mercer.evidence.optimum import Report, tell
from mercer.evidence.sparse import SparseObjective
from mercer.inference.greedy import Greedy, GreedySolution, GreedyState

__all__ = ["GreedyRun", "continued", "fit_greedily", "posterior_of", "warn_of_gap"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Choices of a mean's coefficients and of rows in turn, at the most.
_MEANS = 3
# To which the kernel must be what it was where a fit goes on.
_SAME = 1e-9
_ROUNDING = 1e-10  # a Gap that is no worse than it can be


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
        run.kept["problem"]["searched"] = last["problem"]["searched"]
        held = Optimum(run.objective.theta, np.nan, estimator.status_, "the last fit was kept")
        return run._replace(optimum=held, goes_on=True)
    if not begun.searched:
        run = _certified(estimator, begun, seed, report)
        objective = run.objective
        optimum = search(estimator, objective, begun.undetermined, columns, report)
        return run._replace(optimum=optimum)
    hyperparameters = Search(estimator, begun, seed, rng, columns, report)
    optimum = hyperparameters.run()
    begun = hyperparameters.begun
    try:
        run = _certified(estimator, begun, seed, report)
    except KeyboardInterrupt:
        if optimum.status == "interrupted":
            raise
        # Before there was a row to end with; what the search has found is not to be lost.
        _warn_of_interrupt("the choice of the basis began")
        run = _certified(estimator, begun, seed, report)
    run.kept["problem"]["searched"] = optimum.status != "interrupted"
    return run._replace(optimum=replace(optimum, theta=run.objective.theta, jitter=None))


def posterior_of(run: GreedyRun) -> Fitted:
    """Return the posterior of a basis: O(n m^2), which one interrupt does not lose."""
    objective = run.objective
    try:
        return objective.fitted(objective.theta)
    except KeyboardInterrupt:
        if "interrupted" in (run.solution.status, run.optimum.status):
            raise
        _warn_of_interrupt("the posterior of the basis was made")
        return objective.fitted(objective.theta)


def _warn_of_interrupt(stage: str) -> None:
    warn(
        f"interrupted as {stage}; that begins again with all that was found before it, and another "
        "interrupt ends it",
        ConvergenceWarning,
    )


def continued(estimator: Any, begun: Begun) -> dict[str, Any] | None:
    """Return what the last fit has kept, if this one is to go on from there.

    That is where it would solve the same problem, to the last digit but those of a logarithm: what
    was proved is proved of that alone.
    """
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
    if not same or (estimator.max_basis is not None and len(kept["indices"]) > estimator.max_basis):
        return None
    rows = MergedRows.of(begun)
    problem = the_problem(estimator, begun, rows)
    if not same_problem(kept.get("problem"), problem):
        return None
    probe = probe_of(begun.kernel, rows.X, kept["indices"])
    return kept if np.allclose(probe, kept["probe"], rtol=_SAME, atol=0.0) else None


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
        engine = engine_of(estimator, begun, rows, beta, seed)
        if rows.H is not None:
            status = engine.grow(tol, most, progress, certify=False).status
            beta = _follow(engine, rows)
    else:
        seed, beta = last["seed"], last["beta"]
        engine = engine_of(estimator, begun, rows, beta, seed)
        names = ("indices", "left", "gaps", "lower", "subset")
        engine.resume(GreedyState(*(last[name] for name in names)))
    if status == "interrupted":
        solution = engine.solution(status)
    else:
        solution = engine.grow(tol, most, progress)
    for _ in range(_MEANS):
        if rows.H is None:
            break
        beta = _follow(engine, rows)
        if solution.status != "certified":
            solution = engine.solution(solution.status)
            break
        grown = len(solution.indices)
        solution = engine.grow(tol, most, progress)
        if len(solution.indices) == grown:  # and so are the coefficients
            break
    else:  # the rows of the last growth have coefficients of their own
        beta = _follow(engine, rows)
        if solution.status == "certified":
            solution = engine.grow(tol, len(solution.indices), progress)
        else:
            solution = engine.solution(solution.status)
    if solution.bounds.gap <= tol:
        solution = solution._replace(status="certified")
    basis = rows.first[solution.indices]
    kept = {
        **engine.state._asdict(),
        "seed": seed,
        "beta": beta,
        "probe": probe_of(begun.kernel, rows.X, solution.indices),
        "problem": the_problem(estimator, begun, rows),
    }
    objective = objective_of(begun, basis)
    held = Optimum(objective.theta, np.nan, "fixed")
    return GreedyRun(objective, held, solution, basis, engine.proved, kept)


def _follow(engine: Greedy, rows: MergedRows) -> Floats:
    """Give the engine the targets less the mean that goes with its basis; return coefficients."""
    assert rows.H is not None
    beta = engine.coefficients(rows.Y, rows.H)
    engine.retarget(rows.less(beta))
    return beta


def warn_of_gap(model: Any) -> None:
    """Warn of a Gap that was not proved, and of what could be done about it."""
    gap, status, size = model.gap_, model.selection_status_, len(model.basis_indices_)
    if gap <= max(model.tol, _ROUNDING):
        return
    if status == "interrupted":
        warn(
            f"interrupted with {size} basis functions, the Gap proved is {gap:.3g}; fit again "
            "with warm_start=True to go on",
            ConvergenceWarning,
        )
        return
    remedy = "fit again with warm_start=True to go on, or raise tol"
    if status == "exhausted" and gap > 1.0:
        remedy = "all that a function could explain of the targets less the mean is rounding"
    elif status == "exhausted":
        remedy = "no row has more than rounding to add: raise tol, or the noise"
    elif model.max_basis is not None:
        remedy = "raise max_basis, with warm_start=True to go on from here, or raise tol"
    warn(
        f"the Gap that is proved is {gap:.3g} with {size} basis functions, and not "
        f"tol={model.tol:g}; {remedy}",
        ConvergenceWarning,
    )
