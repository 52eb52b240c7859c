"""The scikit-learn surface."""

from mercer.estimators.class_evidence import LeftOutClasses
from mercer.estimators.evidence import LeaveOneOut
from mercer.estimators.gp_classifier import GPClassifier
from mercer.estimators.gp_regressor import GPRegressor
from mercer.estimators.regressor import InputGradient
from mercer.estimators.transductive import TransductiveGPClassifier

__all__ = [
    "GPClassifier",
    "GPRegressor",
    "InputGradient",
    "LeaveOneOut",
    "LeftOutClasses",
    "TransductiveGPClassifier",
]
