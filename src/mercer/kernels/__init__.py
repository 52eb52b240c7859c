"""Kernels: covariances, and functions that become one."""

from mercer.kernels.adaptor import SklearnKernel
from mercer.kernels.arcsine import ArcSine
from mercer.kernels.base import BlockGradient, Kernel, KernelGradient
from mercer.kernels.callable import Callable, Precomputed
from mercer.kernels.categorical import Categorical
from mercer.kernels.columns import On
from mercer.kernels.composite import Product, Sum
from mercer.kernels.constant import Constant
from mercer.kernels.dot import Linear, Polynomial
from mercer.kernels.features import Features
from mercer.kernels.from_sklearn import from_sklearn
from mercer.kernels.of_one import Power, Scaled
from mercer.kernels.periodic import Periodic
from mercer.kernels.sections import EquivalentGP, Flipped
from mercer.kernels.spectrum import eigensystem
from mercer.kernels.stationary import RBF, Exponential, Matern, RationalQuadratic
from mercer.kernels.tanh import Tanh

__all__ = [
    "RBF",
    "ArcSine",
    "BlockGradient",
    "Callable",
    "Categorical",
    "Constant",
    "EquivalentGP",
    "Exponential",
    "Features",
    "Flipped",
    "Kernel",
    "KernelGradient",
    "Linear",
    "Matern",
    "On",
    "Periodic",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "SklearnKernel",
    "Sum",
    "Tanh",
    "eigensystem",
    "from_sklearn",
]
