"""Rules for a classifier's labels: their names and types, and those that are refused."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.base import clone

from mercer.testing.classifier_case import ClassifierCase, hard_labels
from mercer.testing.compare import close, expect, identical, refused
from mercer.testing.estimator_case import quietly
from mercer.testing.rules import Rules

__all__ = ["LABELS"]

LABELS: Rules[ClassifierCase] = Rules()


@LABELS.add(hard_labels)
def rule_classes(case: ClassifierCase) -> None:
    """`classes_` are the labels that occur, sorted, and the training labels are learned."""
    model = case.model
    identical("classes_", model.classes_, np.unique(case.y))
    right = np.mean(model.predict(case.X) == case.y)
    most = np.max(np.unique(case.y, return_counts=True)[1]) / len(case.y)
    expect(right > most, f"more than {most:.2f} of the training labels", float(right))


@LABELS.add(hard_labels)
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


@LABELS.add(hard_labels)
def rule_names_of_classes(case: ClassifierCase) -> None:
    """Other names in another order change nothing but the order of the columns."""
    plain = case.hold(case.X, case.y)
    names = np.array([f"{len(plain.classes_) - i} {name}" for i, name in enumerate(plain.classes_)])
    moved = case.hold(case.X, names[np.searchsorted(plain.classes_, case.y)])
    got, wanted = moved.predict_proba(case.X_new)[:, ::-1], plain.predict_proba(case.X_new)
    close("probabilities of renamed classes", got, wanted, 0.0, case.accuracy.order[1])


@LABELS.add(hard_labels)
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


@LABELS.add(hard_labels)
def rule_few_rows(case: ClassifierCase) -> None:
    """One row of each class, labels that can be separated, and a constant column will do."""
    X, (classes, first) = case.X, np.unique(case.y, return_index=True)
    P = case.fit(X[first], classes).predict_proba(X[first])
    expect(np.all(np.isfinite(P)), "finite probabilities", P)
    X = np.full((16, X.shape[1]), 3.0)
    X[:, 0] = np.linspace(-2.0, 2.0, 16)
    model = case.fit(X, X[:, 0] > 0.1)
    identical("labels that can be separated", model.predict(X), X[:, 0] > 0.1)
