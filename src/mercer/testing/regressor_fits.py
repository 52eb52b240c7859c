"""Rules for fitting a regressor: data, weights, units, randomness, threads, storage."""

from __future__ import annotations

import pickle
import tempfile
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from mercer.posterior import load, save
from mercer.testing.compare import close, expect, frozen, identical, refused
from mercer.testing.regressor_case import (
    RegressorCase,
    default_kernel,
    gaussian,
    multi_output,
    own_units,
    quietly,
    weights,
)
from mercer.testing.rules import Rules

__all__ = ["FITS"]

FITS: Rules[RegressorCase] = Rules()


def _spreads(model: Any, X: Any) -> np.ndarray:
    """Return means and standard deviations, one after the other."""
    return np.concatenate(model.predict(X, return_std=True))


@FITS.add()
def rule_fit(case: RegressorCase) -> None:
    """`fit` returns the estimator, keeps its parameters, and names what it sets with `_`."""
    model = clone(case.estimator)
    params = {name: value for name, value in vars(model).items()}
    X, y = frozen(case.X), frozen(case.y)
    expect(quietly(model.fit, X, y) is model, "fit to return the estimator itself", model)
    for name, value in params.items():
        expect(vars(model).get(name) is value, f"the parameter {name} to be left alone", name)
    new = [name for name in vars(model) if name not in params]
    wrong = [name for name in new if not (name.endswith("_") or name.startswith("_"))]
    expect(not wrong, "fitted attributes that end in an underscore", wrong)
    d = case.X.shape[1]
    expect(getattr(model, "n_features_in_", None) == d, f"n_features_in_ of {d}", vars(model))
    identical("X after fit", X, case.X)
    first = _spreads(model, case.X_new)
    quietly(model.fit, X, y)
    identical("predictions after a second fit", _spreads(model, case.X_new), first)


@FITS.add()
def rule_predict_is_pure(case: RegressorCase) -> None:
    """Predicting changes neither the model nor its inputs, and repeats itself exactly."""
    model, X = case.fit(case.X, case.y), frozen(case.X_new)
    first = _spreads(model, X)  # whatever is computed once is there now
    state, names = pickle.dumps(model), set(vars(model))
    calls: dict[str, Any] = {
        "predict": lambda: model.predict(X),
        "predict(return_cov)": lambda: model.predict(X, return_cov=True)[1],
        "predict(latent)": lambda: model.predict(X, return_std=True, latent=True)[1],
    }
    for name in ("predict_interval", "predict_gradient", "sample_y"):
        if hasattr(model, name):
            calls[name] = lambda name=name: np.array(getattr(model, name)(X))
    for name, call in calls.items():
        result = call()
        identical(f"{name} the second time", call(), result)
        expect(set(vars(model)) == names, f"no new attributes after {name}", set(vars(model)))
    identical("the predictions after all that", _spreads(model, X), first)
    expect(pickle.dumps(model) == state, "the fitted state to stay as it was", "another")
    result = model.predict(X)
    result[:] = 0.0
    identical("predictions after writing into them", _spreads(model, X), first)


@FITS.add()
def rule_data_are_copied(case: RegressorCase) -> None:
    """Writing into the training data after `fit` changes no prediction."""
    X, y = case.X.copy(), case.y.copy()
    model = case.hold(X, y)
    before = _spreads(model, case.X_new)
    X[:], y[:] = 7.0, 7.0
    identical("predictions", _spreads(model, case.X_new), before)


@FITS.add()
def rule_storage(case: RegressorCase) -> None:
    """`mercer.save` and `mercer.load` bring back a model that predicts bit for bit the same."""
    model, X = case.model, case.X_new
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mercer"
        save(model, path)
        back = load(path, case.objects or None)
    expect(type(back) is type(model), f"a {type(model).__name__}", back)
    identical("predictions", _spreads(back, X), _spreads(model, X))
    if hasattr(model, "sample_y"):
        identical("samples", back.sample_y(X, 2), model.sample_y(X, 2))
    if hasattr(model, "log_marginal_likelihood_value_"):
        value = model.log_marginal_likelihood_value_
        identical("the log evidence", back.log_marginal_likelihood_value_, value)
    params = set(model.get_params(deep=False))
    expect(set(back.get_params(deep=False)) == params, f"the parameters {params}", back)
    missing = set(vars(model)) - set(vars(back))
    expect(not missing, "every attribute of the model", f"a model without {missing}")
    quietly(back.fit, case.X, case.y)
    identical("predictions after fitting it again", _spreads(back, X), _spreads(model, X))


@FITS.add()
def rule_pickle_and_clone(case: RegressorCase) -> None:
    """A pickle predicts the same; a clone is not fitted and fits the same."""
    model, X = case.model, case.X_new
    back = pickle.loads(pickle.dumps(model))
    identical("predictions of a pickle", _spreads(back, X), _spreads(model, X))
    twin = clone(model)
    left = [name for name in vars(twin) if name.endswith("_") and not name.startswith("_")]
    expect(not left, "a clone without fitted attributes", left)
    quietly(twin.fit, case.X, case.y)
    identical("predictions of a fitted clone", _spreads(twin, X), _spreads(model, X))


@FITS.add()
def rule_unfitted(case: RegressorCase) -> None:
    """Before `fit`, `predict` raises NotFittedError or predicts from a prior that is finite."""
    try:
        mean, std = quietly(clone(case.estimator).predict, case.X_new, return_std=True)
    except NotFittedError:
        return
    expect(np.all(np.isfinite(mean)) and np.all(std > 0), "a prior's mean and std", (mean, std))


@FITS.add()
def rule_bad_data(case: RegressorCase) -> None:
    """NaN, infinity, wrong shapes, lengths and types are refused with a text that says so."""
    X, y = case.X, case.y
    n, d = X.shape
    nan, inf = X.copy(), X.copy()
    nan[1, 0], inf[1, 0] = np.nan, np.inf
    bad_y, inf_y = y.copy(), y.copy()
    bad_y[2], inf_y[2] = np.nan, np.inf
    for what, bad, target, text in (
        ("X with NaN", nan, y, "nan"),
        ("X with infinity", inf, y, "inf"),
        ("y with NaN", X, bad_y, "nan"),
        ("y with infinity", X, inf_y, "inf"),
        ("X of one axis", X[:, 0], y, "2D|column"),
        ("X and y of different lengths", X, y[:-1], f"{n}.*{n - 1}|{n - 1}.*{n}"),
        ("no rows", X[:0], y[:0], "0 sample|no rows|empty|at least"),
        ("no columns", X[:, :0], y, "0 feature|no column"),
        ("text", np.full((n, d), "a", dtype=object), y, "number|numeric|text|string"),
    ):
        model = clone(case.estimator)
        refused(f"fit on {what}", partial(quietly, model.fit, bad, target), text)
    model, new = case.model, case.X_new
    kept = _spreads(model, new)
    gap = new.copy()
    gap[0, 0] = np.nan
    refused("predict on NaN", lambda: model.predict(gap), "nan")
    refused("predict on another width", lambda: model.predict(new[:, :-1]), "feature|column")
    refused("predict on one axis", lambda: model.predict(new[0]), "2D|column|feature")
    identical("predictions after refusals", _spreads(model, new), kept)


@FITS.add()
def rule_bad_arguments(case: RegressorCase) -> None:
    """Coverages outside (0, 1), two spreads at once and targets of a wrong shape are refused."""
    model, X = case.model, case.X_new
    both = {"return_std": True, "return_cov": True}
    refused("return_std with return_cov", lambda: model.predict(X, **both), "return_std|both")
    if hasattr(model, "predict_interval"):
        for coverage in (0.0, 1.0, 95, "0.9"):
            call = partial(model.predict_interval, X, coverage=coverage)
            refused(f"a coverage of {coverage!r}", call, "coverage")
    if hasattr(model, "log_predictive_density"):
        call = partial(model.log_predictive_density, X, np.zeros(len(X) + 1))
        refused("one target too many", call, "shape|length|inconsistent")
    if hasattr(model, "sample_y"):
        refused("no samples", lambda: model.sample_y(X, 0), "n_samples")
        refused("a bad seed", lambda: model.sample_y(X, 1, random_state="x"), "random_state")


@FITS.add(weights)
def rule_weights(case: RegressorCase) -> None:
    """A row of weight 2 is the row twice, one of weight 0 is not there; none is all of 1."""
    X, y, new = case.X, case.y, case.X_new
    n = len(y)
    w = np.ones(n)
    plain = case.hold(X, y)
    identical("all weights 1", _spreads(case.hold(X, y, w), new), _spreads(plain, new))
    w[[2, 5]], w[7] = 2.0, 0.0
    rows = np.repeat(np.arange(n), w.astype(int))
    weighted, repeated = case.hold(X, y, w), case.hold(X[rows], y[rows])
    got, wanted = _spreads(weighted, new), _spreads(repeated, new)
    close("predictions of weighted rows", got, wanted, 1e-6, 1e-8 * case.size)
    moved = np.max(np.abs(got - _spreads(plain, new)))
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


@FITS.add(default_kernel, gaussian)
def rule_units_of_the_targets(case: RegressorCase) -> None:
    """With the default kernel, targets in other units give predictions in these units."""
    plain = _spreads(case.model, case.X_new)
    for factor in (1e-3, 1e4):
        scaled = _spreads(case.fit(case.X, case.y * factor), case.X_new)
        # as near as two searches end to each other
        close(f"predictions of {factor:g} y", scaled / factor, plain, 1e-3, 1e-4 * case.size)


@FITS.add(own_units, gaussian)
def rule_linear_in_the_targets(case: RegressorCase) -> None:
    """With hyperparameters held, means follow the targets in proportion."""
    plain, scaled = case.hold(case.X, case.y), case.hold(case.X, 10.0 * case.y)
    got, wanted = scaled.predict(case.X_new), 10.0 * plain.predict(case.X_new)
    close("means of 10 y", got, wanted, 1e-8, 1e-9 * case.size)


@FITS.add(default_kernel)
def rule_units_of_the_inputs(case: RegressorCase) -> None:
    """With the default kernel, the units and the origin of a column change nothing."""
    plain = _spreads(case.model, case.X_new)
    for factor, shift in ((1e3, 0.0), (1.0, 50.0)):
        stretch, move = np.ones(case.X.shape[1]), np.zeros(case.X.shape[1])
        stretch[0], move[0] = factor, shift
        moved = _spreads(case.fit(case.X * stretch + move, case.y), case.X_new * stretch + move)
        what = f"predictions with column 0 times {factor:g} plus {shift:g}"
        close(what, moved, plain, 1e-3, 1e-4 * case.size)


@FITS.add()
def rule_order_of_rows(case: RegressorCase) -> None:
    """The order of the training rows changes nothing."""
    order = np.random.default_rng(1).permutation(len(case.y))
    plain, moved = case.hold(case.X, case.y), case.hold(case.X[order], case.y[order])
    got, wanted = _spreads(moved, case.X_new), _spreads(plain, case.X_new)
    close("predictions", got, wanted, 1e-7, 1e-9 * case.size)


@FITS.add()
def rule_random_state(case: RegressorCase) -> None:
    """The same `random_state` gives the same fit and samples, another one other samples."""
    if "random_state" in case.estimator.get_params():
        options: dict[str, Any] = {"random_state": 7}
        if "n_restarts" in case.estimator.get_params():
            options["n_restarts"] = 1
        first, second = (case.fit(case.X, case.y, **options) for _ in range(2))
        got, wanted = _spreads(second, case.X_new), _spreads(first, case.X_new)
        identical("predictions of the same random_state", got, wanted)
    if hasattr(case.model, "sample_y"):
        X = case.X_new
        draws = case.model.sample_y(X, 2, random_state=3)
        identical("samples again", case.model.sample_y(X, 2, random_state=3), draws)
        rng = np.random.default_rng(3)
        identical("samples of a generator", case.model.sample_y(X, 2, random_state=rng), draws)
        other = case.model.sample_y(X, 2, random_state=4)
        expect(not np.array_equal(other, draws), "other samples for another seed", other)


@FITS.add()
def rule_threads(case: RegressorCase) -> None:
    """One thread and two agree to 1e-10, and the same number of threads to the last bit."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, len(case.y), 300)  # more than a tile
    X = case.X[rows] + 0.1 * case.X.std(axis=0) * rng.normal(size=(300, case.X.shape[1]))
    y = case.y[rows] + 0.1 * rng.normal(size=300)

    def run(threads: int) -> np.ndarray:
        with threadpool_limits(threads):
            return _spreads(case.hold(X, y), case.X_new)

    one, two = run(1), run(2)
    identical("predictions by two threads again", run(2), two)
    close("predictions by two threads", two, one, 1e-10, 1e-10 * case.size)


@FITS.add()
def rule_frames(case: RegressorCase) -> None:
    """Frames of pandas and polars fit as arrays do, and names of columns are kept and checked."""
    names = [f"column {i}" for i in range(case.X.shape[1])]
    plain = case.hold(case.X, case.y).predict(case.X_new)
    for library in ("pandas", "polars"):
        if find_spec(library) is None:
            continue
        frame = import_module(library).DataFrame
        X, new = (frame(dict(zip(names, A.T, strict=True))) for A in (case.X, case.X_new))
        model = case.hold(X, case.y)
        got = list(getattr(model, "feature_names_in_", []))
        expect(got == names, f"feature_names_in_ of {names} from {library}", got)
        identical(f"predictions of a {library} frame", model.predict(new), plain)
        other = frame(dict(zip(names[::-1], case.X_new.T, strict=True)))
        if len(names) > 1:
            refused(f"{library} columns in another order", partial(model.predict, other))


@FITS.add(own_units, multi_output)
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
