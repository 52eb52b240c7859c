"""The scikit-learn surface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mercer.estimators.gp_regressor import GPRegressor
from mercer.estimators.regressor import InputGradient
from mercer.estimators.regressor_evidence import LeaveOneOut

if TYPE_CHECKING:
    from mercer.estimators.class_evidence import LeftOutClasses
    from mercer.estimators.committee import BayesianCommitteeRegressor
    from mercer.estimators.gp_classifier import GPClassifier
    from mercer.estimators.sparse_classifier import SparseGPClassifier
    from mercer.estimators.sparse_regressor import SparseGPRegressor
    from mercer.estimators.transductive import TransductiveGPClassifier

__all__ = [
    "BayesianCommitteeRegressor",
    "GPClassifier",
    "GPRegressor",
    "InputGradient",
    "LeaveOneOut",
    "LeftOutClasses",
    "SparseGPClassifier",
    "SparseGPRegressor",
    "TransductiveGPClassifier",
]

# Imported on first use, so that a regression does not wait for what it has no use for.
_HOMES = {
    "BayesianCommitteeRegressor": "committee",
    "GPClassifier": "gp_classifier",
    "LeftOutClasses": "class_evidence",
    "SparseGPClassifier": "sparse_classifier",
    "SparseGPRegressor": "sparse_regressor",
    "TransductiveGPClassifier": "transductive",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
