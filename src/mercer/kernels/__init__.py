"""Kernels: covariances, and functions that become one."""

from mercer.kernels.adaptor import SklearnKernel
from mercer.kernels.arcsine import ArcSine
from mercer.kernels.base import Kernel, KernelGradient
from mercer.kernels.callable import Callable, Precomputed
from mercer.kernels.categorical import Categorical
from mercer.kernels.composite import On, Power, Product, Scaled, Sum
from mercer.kernels.constant import Constant
from mercer.kernels.dot import Linear, Polynomial, Tanh
from mercer.kernels.features import Features
from mercer.kernels.from_sklearn import from_sklearn
from mercer.kernels.periodic import Periodic
from mercer.kernels.sections import EquivalentGP, Flipped
from mercer.kernels.stationary import RBF, Exponential, Matern, RationalQuadratic

__all__ = [
    "RBF",
    "ArcSine",
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
    "from_sklearn",
]
