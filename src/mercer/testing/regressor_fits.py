"""Rules for fitting a regressor: data, frames, storage, and what is refused."""

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

from mercer.posterior import load, save
from mercer.testing.compare import expect, frozen, identical, refused
from mercer.testing.regressor_case import RegressorCase, quietly, spreads
from mercer.testing.rules import Rules

__all__ = ["FITS"]

FITS: Rules[RegressorCase] = Rules()


@FITS.add()
def rule_fit(case: RegressorCase) -> None:
    """`fit` returns the estimator, keeps its parameters, and names what it sets with `_`."""
    model = clone(case.estimator)
    params = dict(vars(model))
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
    first = spreads(model, case.X_new)
    quietly(model.fit, X, y)
    identical("predictions after a second fit", spreads(model, case.X_new), first)


@FITS.add()
def rule_predict_is_pure(case: RegressorCase) -> None:
    """Predicting changes neither the model nor its inputs, and repeats itself exactly."""
    model, X = case.fit(case.X, case.y), frozen(case.X_new)
    first = spreads(model, X)  # whatever is computed once is there now
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
    identical("the predictions after all that", spreads(model, X), first)
    expect(pickle.dumps(model) == state, "the fitted state to stay as it was", "another")
    result = model.predict(X)
    result[:] = 0.0
    identical("predictions after writing into them", spreads(model, X), first)


@FITS.add()
def rule_data_are_copied(case: RegressorCase) -> None:
    """Writing into the training data after `fit` changes no prediction."""
    X, y = case.X.copy(), case.y.copy()
    model = case.hold(X, y)
    before = spreads(model, case.X_new)
    X[:], y[:] = 7.0, 7.0
    identical("predictions", spreads(model, case.X_new), before)


@FITS.add()
def rule_storage(case: RegressorCase) -> None:
    """`mercer.save` and `mercer.load` bring back a model that predicts bit for bit the same."""
    model, X = case.model, case.X_new
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mercer"
        save(model, path)
        back = load(path, case.objects or None)
    expect(type(back) is type(model), f"a {type(model).__name__}", back)
    identical("predictions", spreads(back, X), spreads(model, X))
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
    identical("predictions after fitting it again", spreads(back, X), spreads(model, X))


@FITS.add()
def rule_pickle_and_clone(case: RegressorCase) -> None:
    """A pickle predicts the same; a clone is not fitted and fits the same."""
    model, X = case.model, case.X_new
    back = pickle.loads(pickle.dumps(model))
    identical("predictions of a pickle", spreads(back, X), spreads(model, X))
    twin = clone(model)
    left = [name for name in vars(twin) if name.endswith("_") and not name.startswith("_")]
    expect(not left, "a clone without fitted attributes", left)
    quietly(twin.fit, case.X, case.y)
    identical("predictions of a fitted clone", spreads(twin, X), spreads(model, X))


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
    kept = spreads(model, new)
    gap = new.copy()
    gap[0, 0] = np.nan
    refused("predict on NaN", lambda: model.predict(gap), "nan")
    refused("predict on another width", lambda: model.predict(new[:, :-1]), "feature|column")
    refused("predict on one axis", lambda: model.predict(new[0]), "2D|column|feature")
    identical("predictions after refusals", spreads(model, new), kept)


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
