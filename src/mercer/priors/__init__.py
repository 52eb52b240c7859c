"""Priors that factorise over the coefficients of a kernel expansion (BKM 5.1, 6.1, 6.2)."""

from mercer.priors.base import CoefficientPrior
from mercer.priors.custom_hyperprior import CustomHyperprior
from mercer.priors.feature_selection import FeatureSelection
from mercer.priors.flat import Flat
from mercer.priors.functions import Sections, sample_functions
from mercer.priors.gamma_precision import GammaPrecision
from mercer.priors.laplacian import Laplacian
from mercer.priors.laplacian_mixture import LaplacianMixture
from mercer.priors.mixing import MixingDensity, mixing_density
from mercer.priors.normal_deviation import NormalDeviation
from mercer.priors.precisions import PrecisionPrior
from mercer.priors.weight_decay import WeightDecay

__all__ = [
    "CoefficientPrior",
    "CustomHyperprior",
    "FeatureSelection",
    "Flat",
    "GammaPrecision",
    "Laplacian",
    "LaplacianMixture",
    "MixingDensity",
    "NormalDeviation",
    "PrecisionPrior",
    "Sections",
    "WeightDecay",
    "mixing_density",
    "sample_functions",
]
