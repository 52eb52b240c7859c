"""What relevance vectors for numbers refuse."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import RelevanceVectorRegressor
from mercer.kernels import RBF, Callable
from mercer.priors import GammaPrecision

from .relevance_data import rows


def overlap(a, b):
    return float(len(set(a) & set(b)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "quick"}, "algorithm must be one of"),
        ({"hyperprior": "gamma"}, "hyperprior must be None"),
        ({"hyperprior": GammaPrecision}, "forget the brackets"),
        ({"noise": -1.0}, "noise must be a positive variance"),
        ({"noise_prior": 3.0}, "two numbers of at least 0"),
        ({"robust": "yes"}, "robust must be True"),
        ({"robust": True, "algorithm": "em"}, "goes with algorithm='fast'"),
        ({"tol": 0.0}, "tol must be a positive"),
        ({"kernel": []}, "empty list"),
        ({"kernel": [RBF(), None]}, "must be a kernel"),
        ({"kernel": [RBF(), Callable(overlap)]}, "cannot be taken together"),
        ({"functions": 3}, "functions must be a function"),
        ({"centres": 3}, "centres must be rows"),
        ({"centres": np.empty((0, 1))}, "must be functions"),
        ({"centres": np.ones((2, 3))}, "columns of X"),
        ({"kernel": "precomputed", "augment": True}, "needs inputs"),
        ({"kernel": Callable(overlap), "learn_centres": True}, "inputs of numbers"),
        ({"optimizer": "adam"}, "optimizer must be one of"),
    ],
    ids=str,
)
def test_refusals(options, words):
    X, y = rows(10)
    X = [f"{x:.3f}" for x in X[:, 0]] if isinstance(options.get("kernel"), Callable) else X
    X = np.eye(10) if options.get("kernel") == "precomputed" else X
    with pytest.raises(ValueError, match=words):
        RelevanceVectorRegressor(**options).fit(X, y)
