"""From scikit-learn's kernels to Mercer's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mercer.kernels.adaptor import SklearnKernel, parameter_of
from mercer.kernels.base import Kernel
from mercer.kernels.composite import Product, Sum
from mercer.kernels.constant import Constant
from mercer.kernels.dot import Linear
from mercer.kernels.of_one import Power, Scaled
from mercer.kernels.periodic import Periodic
from mercer.kernels.stationary import RBF, Matern, RationalQuadratic
from mercer.params import Parameter, positive

__all__ = ["convert_leaf", "from_sklearn", "is_sklearns_own"]

# The metrics of PairwiseKernel that are no covariances.
_INDEFINITE = ("sigmoid", "tanh", "additive_chi2")


def from_sklearn(kernel: Any, n_columns: int | None = None) -> tuple[Kernel, Parameter | None]:
    """Convert a scikit-learn kernel; its white noise is returned beside it.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Any kernel but a `CompoundKernel`, which is a list of kernels: convert each of them.
    n_columns : int, optional
        How many columns the inputs will have; it matters to `ExpSineSquared` alone.

    Returns
    -------
    kernel : Kernel
        A kernel with the same values, bounds, and fixed parameters.
    noise : Parameter or None
        The variance of a `WhiteKernel` in it, with its bounds, or None: in Mercer noise belongs to
        the likelihood. Several are added, and a constant in front multiplies the variance and its
        bounds. A WhiteKernel in any other product, or in a power, raises ValueError.

    Notes
    -----
    Kernels that Mercer has are converted; `PairwiseKernel` and classes that users have derived
    stay what they are inside `SklearnKernel`.

    `ExpSineSquared` becomes `Periodic`, which equals it on one column. On several columns
    scikit-learn has the distance inside the sine, which is not a covariance; where `n_columns` says
    that there are several, the kernel is kept as it is, with `is_mercer` False.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from mercer.kernels import from_sklearn
    >>> kernel, noise = from_sklearn(RBF(0.5) + WhiteKernel(0.1, noise_level_bounds="fixed"))
    >>> kernel
    RBF(length_scale=0.5)
    >>> noise
    Parameter(0.1, fixed=True)
    """
    from sklearn.gaussian_process import kernels as skl

    if not isinstance(kernel, skl.Kernel):
        raise ValueError(f"from_sklearn takes a scikit-learn kernel, got {kernel!r}")
    parts = _Conversion(n_columns).parts(kernel)
    return parts.kernel or Constant(0.0), parts.noise


class _Parts(NamedTuple):
    """What a scikit-learn kernel becomes; either part may be missing."""

    kernel: Kernel | None
    noise: Parameter | None = None


class _Conversion:
    """A walk through a tree of scikit-learn kernels.

    Only scikit-learn's own classes are converted: one derived from them keeps what it overrides.
    """

    def __init__(self, n_columns: int | None) -> None:
        self.n_columns = n_columns

    def parts(self, kernel: Any) -> _Parts:
        name = type(kernel).__name__
        convert: Callable[[Any], _Parts] | None = getattr(self, f"_{name}", None)
        if convert is not None and is_sklearns_own(kernel):
            return convert(kernel)
        leaf = convert_leaf(kernel, self.n_columns)
        return _Parts(SklearnKernel(kernel, _is_mercer(kernel)) if leaf is None else leaf)

    # --- operators ----------------------------------------------------------------------------

    def _Sum(self, kernel: Any) -> _Parts:
        first, second = self.parts(kernel.k1), self.parts(kernel.k2)
        joint = first.kernel or second.kernel
        if first.kernel is not None and second.kernel is not None:
            joint = Sum(first.kernel, second.kernel)
        if first.noise is None or second.noise is None:
            return _Parts(joint, first.noise or second.noise)
        return _Parts(joint, _combine(first.noise, second.noise, np.add))

    def _Product(self, kernel: Any) -> _Parts:
        first, second = self.parts(kernel.k1), self.parts(kernel.k2)
        for constant, other in ((first, second), (second, first)):
            if type(constant.kernel) is Constant and constant.noise is None:
                factor = constant.kernel.parameters["variance"]
                scaled = None if other.kernel is None else _scaled(factor, other.kernel)
                noise = other.noise and _combine(factor, other.noise, np.multiply)
                return _Parts(scaled, noise)
        self._refuse_noise((first, second), f"a product with another kernel, {kernel!r}")
        assert first.kernel is not None and second.kernel is not None
        return _Parts(Product(first.kernel, second.kernel))

    def _Exponentiation(self, kernel: Any) -> _Parts:
        inside = self.parts(kernel.kernel)
        self._refuse_noise((inside,), f"a power, {kernel!r}")
        assert inside.kernel is not None
        return _Parts(Power(inside.kernel, float(kernel.exponent)))

    def _refuse_noise(self, parts: tuple[_Parts, ...], where: str) -> None:
        if any(part.noise is not None for part in parts):
            raise ValueError(
                f"a WhiteKernel stands in {where}: that is not noise of one variance, which is all "
                "that a likelihood has. Move the WhiteKernel out, into a sum"
            )

    def _CompoundKernel(self, kernel: Any) -> _Parts:
        raise ValueError(
            "a CompoundKernel is a list of kernels, one a class, and not a kernel: convert each "
            "of its `kernels`"
        )

    def _WhiteKernel(self, kernel: Any) -> _Parts:
        return _Parts(None, _parameter(kernel, "noise_level"))


def is_sklearns_own(kernel: Any) -> bool:
    """Whether a kernel's class is one of scikit-learn's, rather than derived from one."""
    from sklearn.gaussian_process import kernels as skl

    return getattr(skl, type(kernel).__name__, None) is type(kernel)


def convert_leaf(
    kernel: Any,
    n_columns: int | None = None,
    parameter: Callable[[Any, str], Parameter] | None = None,
) -> Kernel | None:
    """Return Mercer's form of a kernel that is not made of others, None where it has none.

    `parameter(kernel, name)` gives the `Parameter` for a hyperparameter; without it, that has the
    same value, bounds and fixedness. White noise has no form as a kernel.
    """
    if not is_sklearns_own(kernel):
        return None
    of = _parameter if parameter is None else parameter
    match type(kernel).__name__:
        case "ConstantKernel":
            return Constant(of(kernel, "constant_value"))
        case "RBF":
            return RBF(of(kernel, "length_scale"))
        case "Matern" if np.isinf(kernel.nu):
            return RBF(of(kernel, "length_scale"))
        case "Matern":
            return Matern(of(kernel, "length_scale"), nu=kernel.nu)
        case "RationalQuadratic":
            return RationalQuadratic(of(kernel, "length_scale"), of(kernel, "alpha"))
        case "ExpSineSquared" if n_columns is None or n_columns == 1:
            return Periodic(of(kernel, "length_scale"), of(kernel, "periodicity"))
        case "DotProduct":
            return Linear(_squared(of(kernel, "sigma_0")))
    return None


def _is_mercer(kernel: Any) -> bool:
    """Whether a kernel that stays what it is is a covariance, as far as is known."""
    if not is_sklearns_own(kernel):
        return True
    name, metric = type(kernel).__name__, getattr(kernel, "metric", None)
    return name != "ExpSineSquared" and not (isinstance(metric, str) and metric in _INDEFINITE)


def _squared(sigma: Parameter) -> Parameter:
    bounds = None if sigma.bounds is None else tuple(np.square(b) for b in sigma.bounds)
    return sigma.replace(value=np.square(sigma.value), bounds=bounds)


def _parameter(kernel: Any, name: str) -> Parameter:
    return parameter_of(getattr(kernel, f"hyperparameter_{name}"), getattr(kernel, name))


def _scaled(factor: Parameter, kernel: Kernel) -> Kernel:
    if factor.value == 0.0:
        return Product(Constant(factor), kernel)
    return Scaled(factor, kernel)


def _combine(first: Parameter, second: Parameter, operation: Any) -> Parameter:
    """Return the sum or product of two parameters, with the bounds it can then have."""
    value = operation(first.value, second.value)
    if first.fixed and second.fixed:
        return positive("noise", Parameter(value, fixed=True), zero=True)
    ends = [
        (p.value, p.value) if p.fixed or p.bounds is None else p.bounds for p in (first, second)
    ]
    bounds = tuple(operation(a, b) for a, b in zip(*ends, strict=True))
    return positive("noise", Parameter(value, bounds=bounds), zero=True)
