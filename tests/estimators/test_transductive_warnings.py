"""What a transductive classifier says of labels that are not to be relied on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_moons

from mercer import TransductiveGPClassifier
from mercer.errors import UndeterminedWarning
from mercer.kernels import RBF


def moons(labels):
    """Return rows of two classes, of which so many each have a label."""
    X, classes = make_moons(60, noise=0.08, random_state=0)
    y = np.full(60, "", dtype=object)
    for c in (0, 1):
        y[np.flatnonzero(classes == c)[:labels]] = f"moon {c}"
    return X, y


def test_a_class_that_no_row_was_given_is_named():
    X, y = moons(3)
    lost = r"hardly any row without a label was given the class moon [01]:.*optimizer=None"
    with pytest.warns(UndeterminedWarning, match=lost):
        found = TransductiveGPClassifier(100.0 * RBF(20.0), optimizer=None, unlabeled="").fit(X, y)
    assert len(set(found.transduction_[y == ""])) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", UndeterminedWarning)
        TransductiveGPClassifier(4.0 * RBF(0.3), optimizer=None, unlabeled="").fit(X, y)
        # of a few new rows beside old ones none may be of a class
        some = (y != "") | (np.arange(60) > 54)
        few = TransductiveGPClassifier(100.0 * RBF(20.0), optimizer=None, unlabeled="")
        few.fit(X[some], y[some])
