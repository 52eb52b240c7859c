"""The scikit-learn surface."""

from mercer.estimators.evidence import LeaveOneOut
from mercer.estimators.gp_regressor import GPRegressor
from mercer.estimators.regressor import InputGradient

__all__ = ["GPRegressor", "InputGradient", "LeaveOneOut"]
