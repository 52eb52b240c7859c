"""The model that is fitted when the user names none.

It is started, bounded and given hyperpriors in the units of the data.

Choosing starts, bounds and hyperpriors in units of each column's and the targets' spread is the
same as standardising the data and reporting in the user's units: the parameters are logarithms,
which a change of units only shifts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import RBF, Scaled
from mercer.likelihoods import Gaussian
from mercer.params import Gamma, InverseHalfNormal, LogNormal, Parameter

__all__ = [
    "bounded_noise",
    "default_class_kernel",
    "default_kernel",
    "default_noise",
    "default_starts",
    "deviation",
    "output_units",
    "rounding",
    "spread",
]

Floats = NDArray[np.float64]


def deviation(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the standard deviation of each column."""
    # In units of a power of 2, which is exact: squares of the values themselves may not be doubles.
    power = np.frexp(np.max(np.abs(values), axis=0, initial=0.0))[1]
    values = np.ldexp(values, -power)
    # From a row of theirs, so that a constant column is one whatever its mean rounds to.
    first = 0 if weights is None else int(np.argmax(weights))
    values = values - values[first : first + 1].sum(axis=0)
    values = values - np.average(values, axis=0, weights=weights)
    further = np.frexp(np.max(np.abs(values), axis=0, initial=0.0))[1]
    mean_square = np.average(np.ldexp(values, -further) ** 2, axis=0, weights=weights)
    return np.asarray(np.ldexp(np.sqrt(mean_square), power + further))


def rounding(values: Floats) -> Floats:
    """Return what the values of each column may differ by and still count as the same."""
    largest = np.max(np.abs(values), axis=0, initial=0.0)
    return np.asarray(10.0 * np.finfo(float).eps * largest)


def spread(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the standard deviation of each column, 1 for one that is constant to rounding."""
    width = deviation(values, weights)
    return np.where(width > rounding(values), width, 1.0)


def output_units(Y: Floats, residual: Floats, weights: Floats | None = None) -> Floats:
    """Return the standard deviation of each column of residuals from the mean.

    Of one that is constant it is the size of the targets, the only other scale that they have,
    and 1 where they are all 0.
    """
    width = deviation(residual, weights)
    size = np.max(np.abs(Y), axis=0)
    size = np.where(size > 0, size, 1.0)
    return np.where(width > rounding(Y), width, size)


def default_kernel(widths: Floats, variance: float, hyperprior: bool = True) -> Scaled:
    """Return variance * RBF with one length scale a column.

    Parameters
    ----------
    widths : array of shape (d,)
        The standard deviation of each column.
    variance : float
        The variance of the targets.
    hyperprior : bool
        Whether the length scales have a hyperprior.

    Notes
    -----
    A length scale starts at sqrt(d) times its column's standard deviation, so that a typical pair
    of rows is about one length scale apart whatever d. Its hyperprior is log-normal with its mode
    there, of width sqrt(3) in the logarithm: wide enough for the data to overrule, it keeps
    columns that the data say little about from being fitted to noise.
    """
    scales = np.sqrt(widths.size) * widths
    # the mode of LogNormal(a, s) is exp(a - s^2)
    prior = LogNormal(np.log(scales) + 3.0, np.sqrt(3.0)) if hyperprior else None
    return Scaled(variance, RBF(Parameter(scales, prior=prior)))


def default_class_kernel(widths: Floats, variance: float, hyperprior: bool = True) -> Scaled:
    """Return the kernel of `default_kernel` for latent functions that are seen through labels.

    Its hyperpriors are others. Labels say less than numbers do, above all of columns that do not
    matter: that of a length scale falls where it is shorter than the start, and is level where it
    is longer. Labels that can be separated are the more probable the larger the variance, without
    end: its hyperprior is exponential with a mean of three times the start, so that small variances
    cost nothing and labels at random are left unexplained. What was measured is in decision 0008.
    """
    kernel = default_kernel(widths, variance, hyperprior=False)
    if not hyperprior:
        return kernel
    scales = kernel.kernel.parameters["length_scale"]
    return Scaled(
        Parameter(variance, prior=Gamma(1.0, 1.0 / (3.0 * variance))),
        RBF(scales.replace(prior=InverseHalfNormal(scales.value))),
    )


def default_starts(kernel: Scaled) -> list[Scaled]:
    """Return the default kernel with its length scales as they are, a quarter and a sixteenth.

    From a length scale several times that of the signal the evidence leads to pure noise; where
    the search begins is decided by the evidence of these three.
    """
    variance, inside = kernel.parameters["variance"], kernel.kernel
    shorter = (inside.with_theta(inside.theta - np.log(factor)) for factor in (1.0, 4.0, 16.0))
    return [Scaled(variance, each) for each in shorter]


def default_noise(variance: float) -> Gaussian:
    """Return Gaussian noise started at a tenth of the targets' variance."""
    return Gaussian(0.1 * variance)


def bounded_noise(likelihood: Gaussian, variance: float) -> Gaussian:
    """Return the likelihood with bounds on its noise, where it is free and has none.

    The lower bound keeps K + noise well enough conditioned to be factorised without jitter.
    """
    noise = likelihood.parameters.get("noise")
    if noise is None or noise.bounds is not None or not noise.is_free:
        return likelihood
    low, high = 1e-6 * variance, 1e2 * variance
    value = float(noise.value)
    bounds = (min(low, 0.1 * value), max(high, 10.0 * value))
    return likelihood.with_parameters(noise=noise.replace(bounds=bounds))
