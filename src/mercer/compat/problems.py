"""Three classes or more as problems of two, which scikit-learn's own classes hold together."""

from __future__ import annotations

from typing import Any

from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer

from mercer.compat.binary import BinaryLaplace

__all__ = ["joined", "unfitted"]

_SEVERAL = {"one_vs_rest": OneVsRestClassifier, "one_vs_one": OneVsOneClassifier}


def unfitted(model: Any, n_classes: int) -> Any:
    """Return what a classifier has to fit to so many classes, with its options."""
    options = BinaryLaplace().get_params(deep=False)
    two = BinaryLaplace(**{name: getattr(model, name) for name in options})
    if n_classes == 2:
        return two
    return _SEVERAL[model.multi_class](two, n_jobs=model.n_jobs)


def joined(model: Any, parts: list[BinaryLaplace]) -> Any:
    """Return a classifier's fitted problems of two, held together as by a fit."""
    if model.n_classes_ == 2:
        return parts[0]
    whole = unfitted(model, model.n_classes_)
    whole.estimators_, whole.classes_ = tuple(parts), model.classes_
    if model.multi_class == "one_vs_rest":
        whole.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(model.classes_)
    else:
        whole.pairwise_indices_, whole.n_features_in_ = None, model.n_features_in_
    return whole
