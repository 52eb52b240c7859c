"""Rules for fitting any estimator: data, frames, storage, and what is refused."""

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

from mercer.posterior import load, save
from mercer.testing.compare import expect, frozen, identical, refused
from mercer.testing.estimator_case import EstimatorCase, quietly
from mercer.testing.rules import Rules

__all__ = ["FITS"]

FITS: Rules[EstimatorCase] = Rules()


@FITS.add()
def rule_fit(case: EstimatorCase) -> None:
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
    first = case.everything(model, case.X_new)
    quietly(model.fit, X, y)
    identical("predictions after a second fit", case.everything(model, case.X_new), first)


@FITS.add()
def rule_predict_is_pure(case: EstimatorCase) -> None:
    """Predicting changes neither the model nor its inputs, and repeats itself exactly."""
    model, X, joint = case.fit(case.X, case.y), frozen(case.X_new), frozen(case.X_joint)
    first = case.everything(model, X)  # whatever is computed once is there now
    state, names = pickle.dumps(model), set(vars(model))
    results: list[Any] = []
    for method, options in case.ways:
        if not hasattr(model, method):
            continue
        name = f"{method}({', '.join(options)})"
        asked = joint if "return_cov" in options or method == "sample_y" else X
        once, again = (_parts(getattr(model, method)(asked, **options)) for _ in range(2))
        expect(len(again) == len(once), f"{len(once)} results of {name} the second time", again)
        for part, wanted in zip(again, once, strict=True):
            identical(f"{name} the second time", part, wanted)
        expect(set(vars(model)) == names, f"no new attributes after {name}", set(vars(model)))
        results += once
    identical("the predictions after all that", case.everything(model, X), first)
    expect(pickle.dumps(model) == state, "the fitted state to stay as it was", "another")
    for part in results:
        if part.flags.writeable:
            part[:] = np.zeros((), part.dtype)
    identical("predictions after writing into them", case.everything(model, X), first)


def _parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


@FITS.add()
def rule_data_are_copied(case: EstimatorCase) -> None:
    """Writing into the training data after `fit` changes no prediction."""
    X, y = case.X.copy(), case.y.copy()
    model = case.hold(X, y)
    before = case.everything(model, case.X_new)
    X[:], y[:] = 7.0, y[:1].copy()
    identical("predictions", case.everything(model, case.X_new), before)


@FITS.add()
def rule_storage(case: EstimatorCase) -> None:
    """`mercer.save` and `mercer.load` bring back a model that predicts bit for bit the same."""
    model, X = case.model, case.X_new
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mercer"
        save(model, path)
        back = load(path, case.objects or None)
    expect(type(back) is type(model), f"a {type(model).__name__}", back)
    wanted = case.everything(model, X)
    identical("predictions", case.everything(back, X), wanted)
    got, plain = back.predict(X), model.predict(X)
    identical("results of predict", got, plain)
    expect(got.dtype == plain.dtype, f"results of type {plain.dtype}", got)
    if hasattr(model, "sample_y"):
        joint = case.X_joint
        identical("samples", back.sample_y(joint, 2), model.sample_y(joint, 2))
    if hasattr(model, "log_marginal_likelihood_value_"):
        value = model.log_marginal_likelihood_value_
        identical("the log evidence", back.log_marginal_likelihood_value_, value)
    expect(set(back.get_params(deep=False)) == set(case.params), "the same parameters", back)
    missing = set(vars(model)) - set(vars(back))
    expect(not missing, "every attribute of the model", f"a model without {missing}")
    quietly(back.fit, case.X, case.y)
    identical("predictions after fitting it again", case.everything(back, X), wanted)


@FITS.add()
def rule_pickle_and_clone(case: EstimatorCase) -> None:
    """A pickle predicts the same; a clone is not fitted and fits the same."""
    model, wanted = case.model, case.everything(case.model, case.X_new)
    back = pickle.loads(pickle.dumps(model))
    identical("predictions of a pickle", case.everything(back, case.X_new), wanted)
    twin = clone(model)
    left = [name for name in vars(twin) if name.endswith("_") and not name.startswith("_")]
    expect(not left, "a clone without fitted attributes", left)
    quietly(twin.fit, case.X, case.y)
    identical("predictions of a fitted clone", case.everything(twin, case.X_new), wanted)


@FITS.add()
def rule_bad_data(case: EstimatorCase) -> None:
    """NaN, infinity, wrong shapes, lengths and types are refused with a text that says so."""
    X, y = case.X, case.y
    n, d = X.shape
    nan, inf = X.copy(), X.copy()
    nan[1, 0], inf[1, 0] = np.nan, np.inf
    for what, bad, target, text in (
        ("X with NaN", nan, y, "nan"),
        ("X with infinity", inf, y, "inf"),
        ("X of one axis", X[:, 0], y, "2D|column"),
        ("X and y of different lengths", X, y[:-1], f"{n}.*{n - 1}|{n - 1}.*{n}"),
        ("no rows", X[:0], y[:0], "0 sample|no rows|empty|at least"),
        ("no columns", X[:, :0], y, "0 feature|no column"),
        ("text", np.full((n, d), "a", dtype=object), y, "number|numeric|text|string"),
        *((what, X, target, text) for what, target, text in case.bad_targets()),
    ):
        model = clone(case.estimator)
        refused(f"fit on {what}", partial(quietly, model.fit, bad, target), text)
    model, new = case.model, case.X_new
    kept = case.everything(model, new)
    gap = new.copy()
    gap[0, 0] = np.nan
    refused("predict on NaN", lambda: model.predict(gap), "nan")
    refused("predict on another width", lambda: model.predict(new[:, :-1]), "feature|column")
    refused("predict on one axis", lambda: model.predict(new[0]), "2D|column|feature")
    identical("predictions after refusals", case.everything(model, new), kept)


@FITS.add()
def rule_bad_arguments(case: EstimatorCase) -> None:
    """Coverages outside (0, 1), two spreads at once and targets of a wrong shape are refused."""
    model, X = case.model, case.X_new
    latent = case.latent(model)
    if latent is not None:
        both = partial(latent, X, return_std=True, return_cov=True)
        refused("return_std with return_cov", both, "return_std|both")
    if hasattr(model, "predict_interval"):
        for coverage in (0.0, 1.0, 95, "0.9"):
            call = partial(model.predict_interval, X, coverage=coverage)
            refused(f"a coverage of {coverage!r}", call, "coverage")
    if hasattr(model, "log_predictive_density"):
        call = partial(model.log_predictive_density, case.X[:5], case.y[:6])
        refused("one target too many", call, "shape|length|inconsistent|rows")
    if hasattr(model, "sample_y"):
        refused("no samples", lambda: model.sample_y(X, 0), "n_samples")
        refused("a bad seed", lambda: model.sample_y(X, 1, random_state="x"), "random_state")


@FITS.add()
def rule_frames(case: EstimatorCase) -> None:
    """Frames of pandas and polars fit as arrays do, and names of columns are kept and checked."""
    names = [f"column {i}" for i in range(case.X.shape[1])]
    plain = case.everything(case.hold(case.X, case.y), case.X_new)
    for library in ("pandas", "polars"):
        if find_spec(library) is None:
            continue
        module = import_module(library)
        X, new, other = (
            module.DataFrame(dict(zip(columns, A.T, strict=True)))
            for columns, A in ((names, case.X), (names, case.X_new), (names[::-1], case.X_new))
        )
        y = module.Series(case.y.tolist()) if case.y.ndim == 1 else case.y
        model = case.hold(X, y)
        got = list(getattr(model, "feature_names_in_", []))
        expect(got == names, f"feature_names_in_ of {names} from {library}", got)
        identical(f"predictions of a {library} frame", case.everything(model, new), plain)
        if len(names) > 1:
            refused(f"{library} columns in another order", partial(model.predict, other))
