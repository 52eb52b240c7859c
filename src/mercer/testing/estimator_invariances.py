"""Rules for what changes any estimator's fit, and what does not: weights, units, order, threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mercer.testing.compare import close, expect, identical, refused
from mercer.testing.estimator_case import EstimatorCase, default_kernel, unless_exempt, weights
from mercer.testing.rules import Rules

__all__ = ["INVARIANCES"]

INVARIANCES: Rules[EstimatorCase] = Rules()


@INVARIANCES.add(weights)
def rule_weights(case: EstimatorCase) -> None:
    """A row of weight 2 is the row twice, one of weight 0 is not there; none is all of 1."""
    X, y, n = case.X, case.y, len(case.y)
    rtol, atol = case.accuracy.weights
    w = np.ones(n)
    plain, ones = (case.everything(case.hold(X, y, v), case.X_new) for v in (None, w))
    identical("all weights 1", ones, plain)
    w[[2, 5]], w[7] = 2.0, 0.0
    rows = np.repeat(np.arange(n), w.astype(int))
    weighted, repeated = case.hold(X, y, w), case.hold(X[rows], y[rows])
    got, wanted = (case.everything(model, case.X_new) for model in (weighted, repeated))
    close("predictions of weighted rows", got, wanted, rtol, atol)
    moved = float(np.max(np.abs(got - plain)))
    expect(moved > 10.0 * atol, "weights to change the predictions", moved)
    if hasattr(weighted, "log_marginal_likelihood_value_"):
        value, error = repeated.log_marginal_likelihood_value_, 10.0 * case.accuracy.evidence
        close("log evidence", weighted.log_marginal_likelihood_value_, value, error, error)
    for what, bad in (
        ("a negative weight", np.where(np.arange(n) == 1, -1.0, 1.0)),
        ("a weight of NaN", np.where(np.arange(n) == 1, np.nan, 1.0)),
        ("too few weights", np.ones(n - 1)),
        ("weights that are all 0", np.zeros(n)),
    ):
        refused(what, partial(case.hold, X, y, bad), "weight")


@INVARIANCES.add(default_kernel)
def rule_units_of_the_inputs(case: EstimatorCase) -> None:
    """With the default kernel, the units and the origin of a column change nothing."""
    plain = case.observed(case.model, case.X_new)
    for factor, shift in ((1e3, 0.0), (1.0, 50.0)):
        stretch, move = np.ones(case.X.shape[1]), np.zeros(case.X.shape[1])
        stretch[0], move[0] = factor, shift
        model = case.fit(case.X * stretch + move, case.y)
        moved = case.observed(model, case.X_new * stretch + move)
        what = f"predictions with column 0 times {factor:g} plus {shift:g}"
        close(what, moved, plain, *case.accuracy.units)


@INVARIANCES.add(unless_exempt("rule_order_of_rows"))
def rule_order_of_rows(case: EstimatorCase) -> None:
    """The order of the training rows changes nothing."""
    order = np.random.default_rng(1).permutation(len(case.y))
    plain, moved = case.hold(case.X, case.y), case.hold(case.X[order], case.y[order])
    got, wanted = (case.everything(model, case.X_new) for model in (moved, plain))
    close("predictions", got, wanted, *case.accuracy.order)


@INVARIANCES.add()
def rule_random_state(case: EstimatorCase) -> None:
    """The same `random_state` gives the same fit and samples, another one other samples."""
    if "random_state" in case.params:
        options: dict[str, Any] = {"random_state": 7}
        if "n_restarts" in case.params:
            options["n_restarts"] = 1
        first, second = (
            case.everything(case.fit(case.X, case.y, **options), case.X_new) for _ in range(2)
        )
        identical("predictions of the same random_state", second, first)
    if hasattr(case.model, "sample_y"):
        # so many that labels do not agree by chance
        draw = partial(case.model.sample_y, case.X_joint, 100)
        draws = draw(random_state=3)
        identical("samples again", draw(random_state=3), draws)
        rng = np.random.default_rng(3)
        identical("samples of a generator", draw(random_state=rng), draws)
        other = draw(random_state=4)
        expect(not np.array_equal(other, draws), "other samples for another seed", other)


@INVARIANCES.add()
def rule_threads(case: EstimatorCase) -> None:
    """One thread and two agree but for rounding, the same number of threads to the last bit."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, len(case.y), 300)  # more than a tile
    X = case.X[rows] + 0.3 * case.X.std(axis=0) * rng.normal(size=(300, case.X.shape[1]))

    def run(threads: int) -> np.ndarray:
        with threadpool_limits(threads):
            return case.everything(case.hold(X, case.y[rows]), case.X_new)

    one, two = run(1), run(2)
    identical("predictions by two threads again", run(2), two)
    close("predictions by two threads", two, one, *case.accuracy.threads)
