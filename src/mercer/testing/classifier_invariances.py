"""Rules for what changes a classifier's fit, and what does not: weights, names, order, threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mercer.testing.classifier_case import ClassifierCase, hard_labels, surface, tolerance
from mercer.testing.compare import close, expect, identical, refused
from mercer.testing.regressor_case import weights
from mercer.testing.rules import Rules

__all__ = ["INVARIANCES"]

INVARIANCES: Rules[ClassifierCase] = Rules()


def default_kernel(case: ClassifierCase) -> str:
    """Say whether rules on the default kernel do not apply."""
    given = case.estimator.get_params(deep=False).get("kernel") is not None
    return "its kernel has units of its own" if given else ""


@INVARIANCES.add(weights)
def rule_weights(case: ClassifierCase) -> None:
    """A row of weight 2 is the row twice, one of weight 0 is not there; none is all of 1."""
    X, y, new = case.X, case.y, case.X_new
    n = len(y)
    w = np.ones(n)
    plain = case.hold(X, y)
    identical("all weights 1", surface(case.hold(X, y, w), new), surface(plain, new))
    w[[2, 5]], w[7] = 2.0, 0.0
    rows = np.repeat(np.arange(n), w.astype(int))
    weighted, repeated = case.hold(X, y, w), case.hold(X[rows], y[rows])
    got, wanted = surface(weighted, new), surface(repeated, new)
    close("predictions of weighted rows", got, wanted, 1e-5, tolerance(plain) + 1e-5)
    moved = np.max(np.abs(got - surface(plain, new)))
    expect(moved > 1e-4, "weights to change the predictions", float(moved))
    if hasattr(weighted, "log_marginal_likelihood_value_"):
        value = repeated.log_marginal_likelihood_value_
        close("log evidence", weighted.log_marginal_likelihood_value_, value, 1e-5, 1e-5)
    for what, bad in (
        ("a negative weight", np.where(np.arange(n) == 1, -1.0, 1.0)),
        ("a weight of NaN", np.where(np.arange(n) == 1, np.nan, 1.0)),
        ("too few weights", np.ones(n - 1)),
        ("weights that are all 0", np.zeros(n)),
    ):
        refused(what, partial(case.hold, X, y, bad), "weight")


@INVARIANCES.add(hard_labels)
def rule_names_of_classes(case: ClassifierCase) -> None:
    """Other names in another order change nothing but the order of the columns."""
    plain = case.hold(case.X, case.y)
    names = np.array([f"{len(plain.classes_) - i} {name}" for i, name in enumerate(plain.classes_)])
    moved = case.hold(case.X, names[np.searchsorted(plain.classes_, case.y)])
    got, wanted = moved.predict_proba(case.X_new)[:, ::-1], plain.predict_proba(case.X_new)
    close("probabilities of renamed classes", got, wanted, 0.0, tolerance(plain) + 1e-6)


@INVARIANCES.add(default_kernel)
def rule_units_of_the_inputs(case: ClassifierCase) -> None:
    """With the default kernel, the units and the origin of a column change nothing."""
    plain = case.model.predict_proba(case.X_new)
    for factor, shift in ((1e3, 0.0), (1.0, 50.0)):
        stretch, move = np.ones(case.X.shape[1]), np.zeros(case.X.shape[1])
        stretch[0], move[0] = factor, shift
        model = case.fit(case.X * stretch + move, case.y)
        got = model.predict_proba(case.X_new * stretch + move)
        # as near as two searches end to each other
        close(f"column 0 times {factor:g} plus {shift:g}", got, plain, 0.0, 2e-3)


@INVARIANCES.add()
def rule_order_of_rows(case: ClassifierCase) -> None:
    """The order of the training rows changes nothing."""
    order = np.random.default_rng(1).permutation(len(case.y))
    plain, moved = case.hold(case.X, case.y), case.hold(case.X[order], case.y[order])
    got, wanted = surface(moved, case.X_new), surface(plain, case.X_new)
    close("predictions", got, wanted, 1e-6, tolerance(plain) + 1e-6)


@INVARIANCES.add()
def rule_random_state(case: ClassifierCase) -> None:
    """The same `random_state` gives the same fit and samples, another one other samples."""
    if "random_state" in case.estimator.get_params():
        options: dict[str, Any] = {"random_state": 7}
        if "n_restarts" in case.estimator.get_params():
            options["n_restarts"] = 1
        first, second = (case.fit(case.X, case.y, **options) for _ in range(2))
        got, wanted = surface(second, case.X_new), surface(first, case.X_new)
        identical("predictions of the same random_state", got, wanted)
    if hasattr(case.model, "sample_y"):
        X = np.repeat(case.X, 3, axis=0)  # enough labels that two seeds do not agree by chance
        draws = case.model.sample_y(X, 20, random_state=3)
        identical("samples again", case.model.sample_y(X, 20, random_state=3), draws)
        rng = np.random.default_rng(3)
        identical("samples of a generator", case.model.sample_y(X, 20, random_state=rng), draws)
        other = case.model.sample_y(X, 20, random_state=4)
        expect(not np.array_equal(other, draws), "other samples for another seed", other)
        refused("no samples", lambda: case.model.sample_y(X, 0), "n_samples")
        refused("a bad seed", lambda: case.model.sample_y(X, 1, random_state="x"), "random_state")


@INVARIANCES.add()
def rule_threads(case: ClassifierCase) -> None:
    """One thread and two agree to 1e-8, and the same number of threads to the last bit."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, len(case.y), 300)  # more than a tile
    X = case.X[rows] + 0.3 * case.X.std(axis=0) * rng.normal(size=(300, case.X.shape[1]))

    def run(threads: int) -> np.ndarray:
        with threadpool_limits(threads):
            return surface(case.hold(X, case.y[rows]), case.X_new)

    one, two = run(1), run(2)
    identical("predictions by two threads again", run(2), two)
    close("predictions by two threads", two, one, 1e-8, 1e-6)
