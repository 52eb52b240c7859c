"""Mercer: Bayesian kernel machines behind scikit-learn estimators."""

from mercer.estimators import GPRegressor
from mercer.posterior import Posterior, load, save

__version__ = "0.1.0.dev0"

__all__ = ["GPRegressor", "Posterior", "__version__", "load", "save"]
