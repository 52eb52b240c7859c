"""The scikit-learn surface."""

from mercer.estimators.gp_regressor import GPRegressor, LeaveOneOut
from mercer.estimators.regressor import InputGradient

__all__ = ["GPRegressor", "InputGradient", "LeaveOneOut"]
