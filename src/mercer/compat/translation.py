"""From a tree of scikit-learn's kernels to a Mercer kernel that knows its parameters' origin.

`from_sklearn` is for models that go on in Mercer. Here the model stays scikit-learn's: derivatives
have to come back in the order of its theta, and white noise is made of parameters of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Constant, Kernel, Power, Product, Scaled, Sum
from mercer.kernels.from_sklearn import convert_leaf, is_sklearns_own
from mercer.params import Parameter

__all__ = ["Translation", "Variance", "translate"]

Floats = NDArray[np.float64]

# Mercer's names of parameters, where scikit-learn has others.
_NAMES = {"variance": "constant_value", "offset": "sigma_0"}
# log offset = 2 log sigma_0
_POWERS = {"offset": 2.0}


class Variance(NamedTuple):
    """A product of hyperparameters: its value, and which components of theta it is made of."""

    value: float
    sources: tuple[int, ...]

    def __mul__(self, other: Variance) -> Variance:  # type: ignore[override]
        return Variance(self.value * other.value, self.sources + other.sources)


class Translation(NamedTuple):
    """What a scikit-learn kernel becomes.

    kernel : without white noise; None where nothing else is there
    sources, powers : component i of the kernel's theta is powers[i] times component sources[i] of
        scikit-learn's, but for a constant
    noise : the variances of the white noise, which add up
    constant : set where the whole is nothing but a product of constants
    size : the length of scikit-learn's theta
    """

    kernel: Kernel | None
    sources: tuple[int, ...] = ()
    powers: tuple[float, ...] = ()
    noise: tuple[Variance, ...] = ()
    constant: Variance | None = None
    size: int = 0

    @property
    def noise_variance(self) -> float:
        """The variance of the white noise."""
        return sum(part.value for part in self.noise)

    def gradient(self, kernel: Floats, noise: float) -> Floats:
        """Chain derivatives in the kernel's theta and in the noise variance to theta (size,)."""
        out = np.zeros(self.size)
        for source, power, slope in zip(self.sources, self.powers, kernel, strict=True):
            out[source] += power * slope
        for part in self.noise:
            for source in part.sources:
                out[source] += noise * part.value
        return out


def translate(kernel: Any, n_columns: int) -> Translation | None:
    """Translate a scikit-learn kernel, or return None where Mercer has no form with its meaning.

    There is one for scikit-learn's own kernels, sums, products and powers of them, and white noise
    in sums and times constants. There is none for classes that users have derived, and for
    `PairwiseKernel`.
    """
    try:
        whole = _walk(kernel, 0, n_columns)
        if whole is not None and whole.kernel is not None:
            whole.kernel.inputs(np.zeros((1, n_columns)))  # length scales must suit the columns
    except ValueError:
        return None
    return whole


def _walk(kernel: Any, start: int, n_columns: int) -> Translation | None:
    """Translate a part whose first component of theta is number `start`."""
    if not is_sklearns_own(kernel):
        return None
    match type(kernel).__name__:
        case "Sum" | "Product":
            first = _walk(kernel.k1, start, n_columns)
            if first is None:
                return None
            second = _walk(kernel.k2, start + first.size, n_columns)
            if second is None:
                return None
            both = (_add if type(kernel).__name__ == "Sum" else _multiply)(first, second)
            return both and both._replace(size=first.size + second.size)
        case "Exponentiation":
            inside = _walk(kernel.kernel, start, n_columns)
            if inside is None or inside.kernel is None or inside.noise:
                return None
            return inside._replace(
                kernel=Power(inside.kernel, float(kernel.exponent)), constant=None
            )
        case "WhiteKernel":
            free = () if kernel.hyperparameter_noise_level.fixed else (start,)
            variance = Variance(float(kernel.noise_level), free)
            return Translation(None, noise=(variance,), size=len(free))
    return _leaf(kernel, start, n_columns)


def _add(first: Translation, second: Translation) -> Translation:
    noise = first.noise + second.noise
    if first.kernel is None or second.kernel is None:
        some = second if first.kernel is None else first
        return some._replace(noise=noise, constant=None)
    return Translation(
        Sum(first.kernel, second.kernel),
        first.sources + second.sources,
        first.powers + second.powers,
        noise,
    )


def _multiply(first: Translation, second: Translation) -> Translation | None:
    if first.constant is None and second.constant is not None:
        first, second = second, first
    if first.constant is not None and not first.noise:
        constant = first.constant
        sources, powers = first.sources + second.sources, first.powers + second.powers
        kernel: Kernel | None = None
        if second.kernel is None:
            sources = powers = ()
        elif type(first.kernel) is Constant and constant.value != 0.0:
            kernel = Scaled(first.kernel.parameters["variance"], second.kernel)
        elif first.kernel is not None:
            kernel = Product(first.kernel, second.kernel)
        both = None if second.constant is None else constant * second.constant
        return Translation(
            kernel, sources, powers, tuple(constant * part for part in second.noise), both
        )
    if first.noise or second.noise or first.kernel is None or second.kernel is None:
        return None  # noise whose variance is another kernel's value
    return Translation(
        Product(first.kernel, second.kernel),
        first.sources + second.sources,
        first.powers + second.powers,
    )


def _leaf(kernel: Any, start: int, n_columns: int) -> Translation | None:
    leaf = convert_leaf(kernel, n_columns, _free)
    if leaf is None:
        return None
    positions, position = {}, start
    for hyperparameter in kernel.hyperparameters:
        if not hyperparameter.fixed:
            positions[hyperparameter.name] = range(position, position + hyperparameter.n_elements)
            position += hyperparameter.n_elements
    sources: list[int] = []
    powers: list[float] = []
    for name, parameter in leaf.parameters.items():
        if parameter.is_free:
            there = positions[_NAMES.get(name, name)]
            sources += there
            powers += [_POWERS.get(name, 1.0)] * len(there)
    if len(sources) != position - start:
        return None  # a free parameter of 0, which has no logarithm
    constant = None
    if isinstance(leaf, Constant):
        constant = Variance(float(kernel.constant_value), tuple(sources))
    return Translation(leaf, tuple(sources), tuple(powers), constant=constant, size=len(sources))


def _free(kernel: Any, name: str) -> Parameter:
    """Return a parameter without bounds: those are scikit-learn's affair here."""
    value = np.asarray(getattr(kernel, name), dtype=float)
    fixed = getattr(kernel, f"hyperparameter_{name}").fixed
    return Parameter(value if value.size > 1 else value.reshape(-1)[0], fixed=fixed)
