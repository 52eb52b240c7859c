"""Labels of any type, and distributions over classes, as the engines take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

__all__ = [
    "Targets",
    "checked_labels",
    "codes_of",
    "hard_targets",
    "is_missing",
    "label_codes",
    "missing_labels",
    "named_classes",
    "require_labels",
    "soft_targets",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Flags = NDArray[np.bool_]

# What the probabilities of a row may add up to, beside 1: they are often rounded.
_SUM = 1e-6


class Targets(NamedTuple):
    """What classes the rows have.

    classes : (C,) the classes, in the order of the columns
    Y : (n, C) a distribution over them for each row, a one and zeros where the label is known
    """

    classes: NDArray[Any]
    Y: Floats


def checked_labels(y: Any) -> NDArray[Any]:
    """Return labels as an array (n,); raises ValueError that names the rows which have none."""
    require_labels(
        missing_labels(y),
        "leave those rows out, or give all rows to TransductiveGPClassifier(unlabeled=None), which "
        "finds the labels of rows that have none",
    )
    # np.shape asks an object's __array_function__, which may refuse (as in scikit-learn's checks)
    given = np.shape(y) if isinstance(y, list | tuple) else getattr(y, "shape", ())
    shape: tuple[int, ...] = tuple(given)
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, a label for each row, got one of shape {shape}; a matrix "
            "with the probability of each class in a column goes with soft_labels=True"
        )
    labels = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    return np.asarray(labels)


def is_missing(value: Any) -> bool:
    """Whether this stands for a label that is not known: None, NaN, or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA, which is neither equal to itself nor not
        return True
    except ValueError:  # an array, of which others speak
        return False


def missing_labels(y: Any) -> Flags:
    """Return which labels are missing; none of a y that is no column, of which others speak."""
    # In an array of text NaN would have become text.
    values = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if values.ndim > 2 or values.ndim == 0 or values.shape[1:] not in ((), (1,)):
        return np.zeros(len(values) if values.ndim else 0, dtype=bool)
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values.ravel()))
    if values.dtype != object:
        return np.zeros(len(values), dtype=bool)
    return np.array([is_missing(value) for value in values.ravel()], dtype=bool)


def require_labels(missing: Flags, remedy: str) -> None:
    """Raise ValueError that names the rows, if labels are missing; `remedy` says what to do."""
    rows = np.flatnonzero(missing)
    if not rows.size:
        return
    shown = ", ".join(map(str, rows[:5])) + (" ..." if rows.size > 5 else "")
    raise ValueError(
        f"Input y contains NaN or None, no label, in row{'s' if rows.size > 1 else ''} {shown} "
        f"(counted from 0): {remedy}"
    )


def hard_targets(y: NDArray[Any]) -> Targets:
    """Return the targets of labels (n,), whose classes are sorted as NumPy sorts them."""
    try:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y})
        raise ValueError(
            f"the labels are of types that cannot be sorted together, {', '.join(kinds)}; make "
            "them all of one, such as str"
        ) from None
    if len(classes) < 2:
        found = f"one class only, {classes.tolist()[0]!r}" if len(classes) else "no class at all"
        raise ValueError(
            f"y has {found}, and a classifier needs rows of at least two. Check how y was selected "
            "(rows of weight 0 do not count)"
        )
    return Targets(classes, np.eye(len(classes))[codes])


def soft_targets(y: ArrayLike, classes: Any = None) -> Targets:
    """Return the targets of a matrix (n, C) whose rows are distributions over the classes.

    `classes` names the columns; without it they are named as those of a frame, or numbered. The
    columns of a frame that has the same names in another order are put into that of `classes`.
    """
    names = _names_of(y)
    try:
        Y = np.array(y, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            "with soft_labels y must be a matrix of numbers, the probability of each class in a "
            f"column, got {type(y).__name__} of {np.asarray(y).dtype}"
        ) from None
    if Y.ndim != 2 or Y.shape[1] < 2:
        raise ValueError(
            "with soft_labels y must have a row for each row of X and a column for each of at "
            f"least two classes, got shape {Y.shape}; for two classes and the probability p of the "
            "second that is np.column_stack([1 - p, p])"
        )
    total = np.sum(Y, axis=1)
    wrong = ~(np.all(Y >= 0, axis=1) & (np.abs(total - 1.0) <= _SUM))
    if np.any(wrong):
        row, others = int(np.flatnonzero(wrong)[0]), int(np.sum(wrong)) - 1
        raise ValueError(
            "with soft_labels each row of y must hold the probabilities of the classes, none of "
            f"them negative and adding up to 1; row {row} is {Y[row].tolist()}, with sum "
            f"{total[row]:.6g}" + (f", and {others} more are as wrong" if others else "")
        )
    found = named_classes(classes, Y.shape[1], names)
    if classes is not None:
        Y = Y[:, _columns(y, found)]
    return Targets(found, Y / total[:, None])


def _names_of(y: Any) -> list[Any] | None:
    """Return what a frame calls its columns; None if they are numbered, as those of an array."""
    if not (hasattr(y, "shape") and hasattr(y, "columns")):
        return None
    names = list(y.columns)
    if not all(isinstance(name, str | int | float | np.generic) for name in names):
        return None
    return None if _is_range(names) else names


def _is_range(names: list[Any]) -> bool:
    """Whether they are what pandas or polars call the columns of an array."""
    if any(isinstance(name, bool) for name in names):
        return False
    return names in (list(range(len(names))), [f"column_{i}" for i in range(len(names))])


def _columns(y: Any, classes: NDArray[Any]) -> list[int]:
    """Return which column of y is that of each class: by name, or by place if they have none.

    Names are compared as text, since the columns of a polars frame have no others.
    """
    by_place = list(range(len(classes)))
    if not (hasattr(y, "shape") and hasattr(y, "columns")):
        return by_place
    given, wanted = _texts(y.columns), _texts(classes.tolist())
    if given == wanted:
        return by_place
    if set(given) == set(wanted) and len(set(given)) == len(given):
        # the numbers of a frame's columns may be names of classes, or no names at all
        if given == _texts(by_place):
            raise ValueError(
                f"the columns of y are numbered {', '.join(given)}, and classes has the same "
                f"numbers in another order, {classes.tolist()}: give y with columns in the order "
                "of the classes, as an array (to_numpy())"
            )
        return [given.index(name) for name in wanted]
    if _is_range(list(y.columns)):
        return by_place
    raise ValueError(
        f"the columns of y are called {list(y.columns)} and classes are {classes.tolist()}: call "
        "them alike, or give y as an array (to_numpy()), whose columns go by their order"
    )


def _texts(names: Any) -> list[str]:
    """Return names as text, whole numbers alike whether they are floats, text or neither."""
    return [text[:-2] if (text := str(name)).endswith(".0") else text for name in names]


def named_classes(classes: Any, count: int, names: list[Any] | None = None) -> NDArray[Any]:
    """Return the names of so many classes: the given ones, checked, or `names`, or numbers."""
    if classes is None and names is None:
        return np.arange(count)
    found = np.asarray(names if classes is None else classes)
    if found.shape != (count,) or len(set(found.tolist())) < count:
        raise ValueError(
            f"classes must name the {count} columns of y, each by a name of its own, got "
            f"{found.tolist()}"
        )
    return found


def codes_of(y: ArrayLike, classes: NDArray[Any], n: int, remedy: str = "") -> Codes:
    """Return the number of each label (n,) among the classes; `remedy` tells what to do if none."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y must have shape ({n},), a label for each row, got {labels.shape}")
    number = {name: code for code, name in enumerate(classes.tolist())}
    unknown = [label for label in labels.tolist() if label not in number]
    if unknown:
        raise ValueError(
            f"y has labels that are none of the model's classes, {unknown[0]!r} among them; these "
            f"are {classes.tolist()}{remedy}"
        )
    return np.array([number[label] for label in labels.tolist()], dtype=np.intp)


def label_codes(n_classes: int) -> Floats:
    """Return the targets of a label of each class: 1 of its own function, -1 of the others (C, P).

    Two classes have one function, positive where the second is.
    """
    codes = 2.0 * np.eye(n_classes) - 1.0
    return codes[:, 1:] if n_classes == 2 else codes
