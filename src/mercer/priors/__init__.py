"""Priors that factorise over the coefficients of a kernel expansion (BKM 5.1)."""

from mercer.priors.base import CoefficientPrior
from mercer.priors.feature_selection import FeatureSelection
from mercer.priors.functions import Sections, sample_functions
from mercer.priors.laplacian import Laplacian
from mercer.priors.weight_decay import WeightDecay

__all__ = [
    "CoefficientPrior",
    "FeatureSelection",
    "Laplacian",
    "Sections",
    "WeightDecay",
    "sample_functions",
]
