"""Rules for fitting a classifier: data, labels, frames, storage, and what is refused."""

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
from mercer.testing.classifier_case import ClassifierCase, hard_labels, surface
from mercer.testing.compare import close, expect, frozen, identical, refused
from mercer.testing.regressor_case import quietly
from mercer.testing.rules import Rules

__all__ = ["FITS"]

FITS: Rules[ClassifierCase] = Rules()


@FITS.add()
def rule_fit(case: ClassifierCase) -> None:
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
    first = surface(model, case.X_new)
    quietly(model.fit, X, y)
    identical("predictions after a second fit", surface(model, case.X_new), first)


@FITS.add()
def rule_predict_is_pure(case: ClassifierCase) -> None:
    """Predicting changes neither the model nor its inputs, and repeats itself exactly."""
    model, X = case.fit(case.X, case.y), frozen(case.X_new)
    first = surface(model, X)
    state, names = pickle.dumps(model), set(vars(model))
    calls: dict[str, Any] = {"predict": lambda: model.predict(X)}
    for name in ("predict_log_proba", "predict_proba_error", "predict_latent", "sample_y"):
        if hasattr(model, name):
            calls[name] = lambda name=name: getattr(model, name)(X)
    for name, call in calls.items():
        result = call()
        identical(f"{name} the second time", call(), result)
        expect(set(vars(model)) == names, f"no new attributes after {name}", set(vars(model)))
    expect(pickle.dumps(model) == state, "the fitted state to stay as it was", "another")
    model.predict_proba(X)[:] = 0.0
    identical("predictions after writing into them", surface(model, X), first)


@FITS.add()
def rule_data_are_copied(case: ClassifierCase) -> None:
    """Writing into the training data after `fit` changes no prediction."""
    X, y = case.X.copy(), case.y.copy()
    model = case.hold(X, y)
    before = surface(model, case.X_new)
    X[:], y[:] = 7.0, y[:1]
    identical("predictions", surface(model, case.X_new), before)


@FITS.add()
def rule_storage(case: ClassifierCase) -> None:
    """`mercer.save` and `mercer.load` bring back a model that predicts bit for bit the same."""
    model, X = case.model, case.X_new
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mercer"
        save(model, path)
        back = load(path, case.objects or None)
    expect(type(back) is type(model), f"a {type(model).__name__}", back)
    identical("predictions", surface(back, X), surface(model, X))
    identical("labels", back.predict(X), model.predict(X))
    expect(back.classes_.dtype == model.classes_.dtype, "classes_ of the same type", back.classes_)
    missing = set(vars(model)) - set(vars(back))
    expect(not missing, "every attribute of the model", f"a model without {missing}")
    quietly(back.fit, case.X, case.y)
    identical("predictions after fitting it again", surface(back, X), surface(model, X))


@FITS.add()
def rule_pickle_and_clone(case: ClassifierCase) -> None:
    """A pickle predicts the same; a clone is not fitted and fits the same."""
    model, X = case.model, case.X_new
    back = pickle.loads(pickle.dumps(model))
    identical("predictions of a pickle", surface(back, X), surface(model, X))
    twin = clone(model)
    left = [name for name in vars(twin) if name.endswith("_") and not name.startswith("_")]
    expect(not left, "a clone without fitted attributes", left)
    quietly(twin.fit, case.X, case.y)
    identical("predictions of a clone", surface(twin, X), surface(model, X))


@FITS.add()
def rule_unfitted(case: ClassifierCase) -> None:
    """Before `fit`, predicting raises NotFittedError: there are no classes yet."""
    model = clone(case.estimator)
    for name in ("predict", "predict_proba", "predict_latent", "sample_y"):
        if hasattr(type(model), name):
            refused(
                f"{name} before fit",
                partial(getattr(model, name), case.X_new),
                "fit",
                NotFittedError,
            )


@FITS.add()
def rule_bad_data(case: ClassifierCase) -> None:
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
        ("no labels", X, None, "y"),
    ):
        model = clone(case.estimator)
        refused(f"fit on {what}", partial(quietly, model.fit, bad, target), text)
    model, new = case.model, case.X_new
    kept = surface(model, new)
    gap = new.copy()
    gap[0, 0] = np.nan
    refused("predict on NaN", lambda: model.predict(gap), "nan")
    refused("predict on another width", lambda: model.predict(new[:, :-1]), "feature|column")
    refused("predict on one axis", lambda: model.predict(new[0]), "2D|column|feature")
    identical("predictions after refusals", surface(model, new), kept)


@FITS.add(hard_labels)
def rule_bad_labels(case: ClassifierCase) -> None:
    """One class only, numbers that are no labels, and columns of labels are refused."""
    X, n = case.X, len(case.X)
    for what, y, text in (
        ("one class only", case.y[:1].repeat(n), "class"),
        ("numbers that are no labels", np.linspace(0.0, 1.0, n), "label|continuous"),
        ("a label of NaN", np.where(np.arange(n) == 2, np.nan, np.arange(n) % 2), "nan"),
        ("two columns of labels", np.column_stack([case.y, case.y]), "1d|shape|multioutput|label"),
    ):
        refused(f"fit on {what}", partial(quietly, clone(case.estimator).fit, X, y), text)


@FITS.add(hard_labels)
def rule_types_of_labels(case: ClassifierCase) -> None:
    """Labels may be text, whole numbers, flags or objects; predictions are of the same type."""
    first = case.y == np.unique(case.y)[0]
    plain = case.hold(case.X, first.astype(int)).predict_proba(case.X_new)
    for what, labels in (
        ("flags", first),
        ("negative numbers", np.where(first, 3, -4)),
        ("text", np.where(first, "yes", "no")),
        ("objects", np.where(first, "yes", "no").astype(object)),
    ):
        model = case.hold(case.X, labels)
        identical(f"classes of {what}", model.classes_, np.unique(labels))
        close(f"probabilities of {what}", model.predict_proba(case.X_new), plain, 0.0, 1e-9)
        got = model.predict(case.X_new)
        expect(got.dtype == labels.dtype, f"predictions of type {labels.dtype}", got)


@FITS.add(hard_labels)
def rule_few_rows(case: ClassifierCase) -> None:
    """One row of each class, labels that can be separated, and a constant column will do."""
    X, (classes, first) = case.X, np.unique(case.y, return_index=True)
    P = case.fit(X[first], classes).predict_proba(X[first])
    expect(np.all(np.isfinite(P)), "finite probabilities", P)
    X = np.full((16, X.shape[1]), 3.0)
    X[:, 0] = np.linspace(-2.0, 2.0, 16)
    model = case.fit(X, X[:, 0] > 0.1)
    identical("labels that can be separated", model.predict(X), X[:, 0] > 0.1)


@FITS.add()
def rule_frames(case: ClassifierCase) -> None:
    """Frames of pandas and polars fit as arrays do, and names of columns are kept and checked."""
    names = [f"column {i}" for i in range(case.X.shape[1])]
    plain = case.hold(case.X, case.y).predict_proba(case.X_new)
    for library in ("pandas", "polars"):
        if find_spec(library) is None:
            continue
        module = import_module(library)
        X, new = (
            module.DataFrame(dict(zip(names, A.T, strict=True))) for A in (case.X, case.X_new)
        )
        y = module.Series(case.y.tolist()) if case.y.ndim == 1 else case.y
        model = case.hold(X, y)
        got = list(getattr(model, "feature_names_in_", []))
        expect(got == names, f"feature_names_in_ of {names} from {library}", got)
        identical(f"predictions of a {library} frame", model.predict_proba(new), plain)
        other = module.DataFrame(dict(zip(names[::-1], case.X_new.T, strict=True)))
        if len(names) > 1:
            refused(f"{library} columns in another order", partial(model.predict, other))
