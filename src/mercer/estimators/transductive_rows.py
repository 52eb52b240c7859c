"""Rows of which some have labels: telling them apart, and what a fit to them begins with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_consistent_length, column_or_1d

from mercer.errors import MercerWarning, warn
from mercer.estimators.classification import prepare_classes
from mercer.estimators.inputs import require_targets
from mercer.estimators.labels import (
    hard_targets,
    is_missing,
    missing_labels,
    require_labels,
)
from mercer.estimators.resolve import as_kernel
from mercer.estimators.rows import checked_inputs, is_precomputed, kept_weights
from mercer.evidence import LatentObjective

__all__ = ["PartRows", "part_rows", "unmarked"]

Flags = NDArray[np.bool_]


class PartRows(NamedTuple):
    """Training rows, those of weight 0 left out.

    classes : (C,) the classes
    codes : (n,) the number of each row's class, -1 where it has no label
    kind : "binary" or "softmax", how labels come from latent functions
    begun : what the labels of all rows would be fitted by: the model as it begins, inputs, weights
        and bounds, the labels that are missing made up
    inputs, kept : all rows that were given, as the kernel takes them, and which of them these are
    """

    classes: NDArray[Any]
    codes: NDArray[np.intp]
    kind: str
    begun: LatentObjective
    inputs: Any
    kept: Flags


def part_rows(
    estimator: Any, classifier: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> PartRows:
    """Check what was given to `fit`.

    Parameters
    ----------
    estimator : TransductiveGPClassifier
        Which is told the number and the names of the columns.
    classifier : GPClassifier
        With the same model, and no optimiser.
    X, y, sample_weight : what was given
    """
    require_targets(estimator, y)
    precomputed = is_precomputed(estimator)
    kernel = None if precomputed else as_kernel(estimator.kernel, X)[0]
    inputs = checked_inputs(estimator, X, kernel)
    if precomputed:  # of which the engine takes the numbers of rows
        inputs = np.arange(len(inputs), dtype=float)[:, None]
    labels = column_or_1d(_as_array(y, estimator.unlabeled), warn=True)
    check_consistent_length(inputs, labels)
    n = len(labels)
    _, kept = kept_weights(sample_weight, n)
    mark = estimator.unlabeled
    known = unmarked(labels, mark)
    require_labels(
        known & missing_labels(y),
        f"rows without a label are marked by unlabeled={mark!r}. If these are such rows, set "
        "unlabeled=None, which stands for all of them; else leave them out",
    )
    given = _of_one_type(labels[known & kept])
    assert_all_finite(given, input_name="y")
    _require_classes(given, int(np.sum(kept & ~known)), mark)
    targets = hard_targets(given)
    if np.all(known[kept]):
        # of three classes or more, "laplace" has another mean
        plain = "GPClassifier" + ("(inference='map')" if len(targets.classes) > 2 else "")
        warn(
            f"no row is marked as without a label by unlabeled={mark!r}, so that this is an "
            f"ordinary classifier, {plain}. Give all rows, and mark in y those that have no label",
            MercerWarning,
        )
    codes = np.full(n, -1)
    codes[known & kept] = np.argmax(targets.Y, axis=1)
    made_up = targets.classes[np.where(codes < 0, np.arange(n) % len(targets.classes), codes)]
    prepared = prepare_classes(classifier, X, made_up, sample_weight)
    if prepared.model.kind == "one_vs_rest":
        raise ValueError(
            f"likelihood={estimator.likelihood!r} is of two classes, and y has "
            f"{len(targets.classes)}; missing labels are not found for one class against the rest "
            "at a time: use likelihood='logistic', which stands for a softmax"
        )
    return PartRows(
        targets.classes,
        codes[kept],
        prepared.model.kind,
        prepared.objectives[0],
        inputs,
        kept,
    )


def unmarked(labels: NDArray[Any], mark: Any) -> Flags:
    """Return which labels are not the mark of rows without one.

    None and NaN both mean any missing value: frames turn one into the other.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.transductive_rows import unmarked
    >>> unmarked(np.array(["a", "?", "b"]), "?")
    array([ True, False,  True])
    >>> unmarked(np.array([0.0, np.nan, 1.0]), None)
    array([ True, False,  True])
    """
    if is_missing(mark):
        return np.array([not is_missing(label) for label in labels.tolist()], dtype=bool)
    return np.array([is_missing(label) or label != mark for label in labels.tolist()], dtype=bool)


def _as_array(y: Any, mark: Any) -> NDArray[Any]:
    """Return labels as an array, in which a mark that is no text has not been turned into text."""
    labels = np.asarray(y)
    if labels.dtype.kind not in "US" or isinstance(mark, str):
        return labels
    if isinstance(y, list | tuple) and not all(isinstance(label, str) for label in y):
        return np.array(y, dtype=object)
    if not is_missing(mark) and np.any(labels == str(mark)):
        raise ValueError(
            f"y is text and has the label {str(mark)!r}, while rows without a label are marked by "
            f"unlabeled={mark!r}. If {str(mark)!r} is meant to be that mark, set "
            f"unlabeled={str(mark)!r}; if it is a class, set unlabeled=None, or what your mark is"
        )
    return labels


def _of_one_type(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels that stood beside a mark of another type as an array of their own type."""
    if labels.dtype != object or all(isinstance(label, str) for label in labels.tolist()):
        return labels
    return np.array(labels.tolist())


def _require_classes(given: NDArray[Any], without: int, mark: Any) -> None:
    """Raise ValueError if the rows with labels are not of two classes at least."""
    if not without or len(set(given.tolist())) > 1:
        return  # of rows that all have labels the usual error tells
    found = f"one class only, {given.tolist()[0]!r}" if given.size else "no row with a label"
    raise ValueError(
        f"y has {found}: {without} rows are without a label, marked as unlabeled={mark!r}. A "
        f"classifier needs rows of at least two classes. If {mark!r} is the name of a class, set "
        "unlabeled to another mark that y does not have, such as unlabeled=None, and mark the rows "
        "without a label by it"
    )
