"""Rules for what changes a regressor's fit, and what does not: weights, units, order, threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mercer.testing.compare import close, expect, identical, refused
from mercer.testing.regressor_case import (
    RegressorCase,
    default_kernel,
    gaussian,
    multi_output,
    own_units,
    spreads,
    unless_exempt,
    weights,
)
from mercer.testing.rules import Rules

__all__ = ["INVARIANCES"]

INVARIANCES: Rules[RegressorCase] = Rules()


@INVARIANCES.add(weights)
def rule_weights(case: RegressorCase) -> None:
    """A row of weight 2 is the row twice, one of weight 0 is not there; none is all of 1."""
    X, y, new = case.X, case.y, case.X_new
    n = len(y)
    w = np.ones(n)
    plain = case.hold(X, y)
    identical("all weights 1", spreads(case.hold(X, y, w), new), spreads(plain, new))
    w[[2, 5]], w[7] = 2.0, 0.0
    rows = np.repeat(np.arange(n), w.astype(int))
    weighted, repeated = case.hold(X, y, w), case.hold(X[rows], y[rows])
    got, wanted = spreads(weighted, new), spreads(repeated, new)
    close("predictions of weighted rows", got, wanted, 1e-6, 1e-8 * case.size)
    moved = np.max(np.abs(got - spreads(plain, new)))
    expect(moved > 1e-6 * case.size, "weights to change the predictions", float(moved))
    if hasattr(weighted, "log_marginal_likelihood_value_"):
        value = repeated.log_marginal_likelihood_value_
        close("log evidence", weighted.log_marginal_likelihood_value_, value, 1e-7, 1e-7)
    for what, bad in (
        ("a negative weight", np.where(np.arange(n) == 1, -1.0, 1.0)),
        ("a weight of NaN", np.where(np.arange(n) == 1, np.nan, 1.0)),
        ("too few weights", np.ones(n - 1)),
        ("weights that are all 0", np.zeros(n)),
    ):
        refused(what, partial(case.hold, X, y, bad), "weight")


@INVARIANCES.add(default_kernel, gaussian)
def rule_units_of_the_targets(case: RegressorCase) -> None:
    """With the default kernel, targets in other units give predictions in these units."""
    plain = spreads(case.model, case.X_new)
    for factor in (1e-3, 1e4):
        scaled = spreads(case.fit(case.X, case.y * factor), case.X_new)
        # as near as two searches end to each other
        close(f"predictions of {factor:g} y", scaled / factor, plain, 1e-3, 1e-4 * case.size)


@INVARIANCES.add(own_units, gaussian)
def rule_linear_in_the_targets(case: RegressorCase) -> None:
    """With hyperparameters held, means follow the targets in proportion."""
    plain, scaled = case.hold(case.X, case.y), case.hold(case.X, 10.0 * case.y)
    got, wanted = scaled.predict(case.X_new), 10.0 * plain.predict(case.X_new)
    close("means of 10 y", got, wanted, 1e-8, 1e-9 * case.size)


@INVARIANCES.add(default_kernel)
def rule_units_of_the_inputs(case: RegressorCase) -> None:
    """With the default kernel, the units and the origin of a column change nothing."""
    plain = spreads(case.model, case.X_new)
    for factor, shift in ((1e3, 0.0), (1.0, 50.0)):
        stretch, move = np.ones(case.X.shape[1]), np.zeros(case.X.shape[1])
        stretch[0], move[0] = factor, shift
        moved = spreads(case.fit(case.X * stretch + move, case.y), case.X_new * stretch + move)
        what = f"predictions with column 0 times {factor:g} plus {shift:g}"
        close(what, moved, plain, 1e-3, 1e-4 * case.size)


@INVARIANCES.add(unless_exempt("rule_order_of_rows"))
def rule_order_of_rows(case: RegressorCase) -> None:
    """The order of the training rows changes nothing."""
    order = np.random.default_rng(1).permutation(len(case.y))
    plain, moved = case.hold(case.X, case.y), case.hold(case.X[order], case.y[order])
    got, wanted = spreads(moved, case.X_new), spreads(plain, case.X_new)
    close("predictions", got, wanted, 1e-7, 1e-9 * case.size)


@INVARIANCES.add()
def rule_random_state(case: RegressorCase) -> None:
    """The same `random_state` gives the same fit and samples, another one other samples."""
    if "random_state" in case.estimator.get_params():
        options: dict[str, Any] = {"random_state": 7}
        if "n_restarts" in case.estimator.get_params():
            options["n_restarts"] = 1
        first, second = (case.fit(case.X, case.y, **options) for _ in range(2))
        got, wanted = spreads(second, case.X_new), spreads(first, case.X_new)
        identical("predictions of the same random_state", got, wanted)
    if hasattr(case.model, "sample_y"):
        X = case.X_new
        draws = case.model.sample_y(X, 2, random_state=3)
        identical("samples again", case.model.sample_y(X, 2, random_state=3), draws)
        rng = np.random.default_rng(3)
        identical("samples of a generator", case.model.sample_y(X, 2, random_state=rng), draws)
        other = case.model.sample_y(X, 2, random_state=4)
        expect(not np.array_equal(other, draws), "other samples for another seed", other)


@INVARIANCES.add()
def rule_threads(case: RegressorCase) -> None:
    """One thread and two agree to 1e-10, and the same number of threads to the last bit."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, len(case.y), 300)  # more than a tile
    X = case.X[rows] + 0.1 * case.X.std(axis=0) * rng.normal(size=(300, case.X.shape[1]))
    y = case.y[rows] + 0.1 * float(case.adds_noise) * rng.normal(size=300)

    def run(threads: int) -> np.ndarray:
        with threadpool_limits(threads):
            return spreads(case.hold(X, y), case.X_new)

    one, two = run(1), run(2)
    identical("predictions by two threads again", run(2), two)
    close("predictions by two threads", two, one, 1e-10, 1e-10 * case.size)


@INVARIANCES.add(own_units, multi_output, unless_exempt("rule_outputs_are_independent"))
def rule_outputs_are_independent(case: RegressorCase) -> None:
    """With hyperparameters held, each output is predicted as it is alone."""
    for p in range(2):
        alone = case.hold(case.X, case.Y[:, p])
        for got, wanted in zip(
            case.two_outputs.predict(case.X_new, return_std=True),
            alone.predict(case.X_new, return_std=True),
            strict=True,
        ):
            close(f"output {p}", got[:, p], wanted, 1e-8, 1e-9 * float(np.max(np.abs(case.Y))))
