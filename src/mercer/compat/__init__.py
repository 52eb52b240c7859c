"""scikit-learn's Gaussian processes: the same signatures and meaning, on Mercer's engines.

Code that uses ``sklearn.gaussian_process`` moves by changing one import.
"""

from mercer.compat.classifier import GaussianProcessClassifier
from mercer.compat.regressor import GaussianProcessRegressor

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor"]
