"""Back from a prior on a coefficient to the hyperprior that induces it (BKM 120)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.priors._inversion import stehfest, talbot
from mercer.priors.base import CoefficientPrior
from mercer.priors.precisions import PrecisionPrior

__all__ = ["MixingDensity", "mixing_density"]

Floats = NDArray[np.float64]
Density = Callable[[Any], Any]

_EPS = float(np.finfo(float).eps)
_OF = ("variance", "precision", "rate")
_METHODS = ("auto", "talbot", "stehfest")
# Where a density is looked at, in units of the coefficients that matter.
_PLACES = np.geomspace(1e-4, 1e4, 161)
_STEP = 1e-20  # of complex differences, which have no rounding to fear
_TINY = 1e-290
_LOST = 0.5  # an error as large as what it is the error of


class MixingDensity(NamedTuple):
    """The density of what is mixed, where it was asked for.

    density : (k,)
    error : (k,) how far it may be off, as estimated
    method : "talbot", "stehfest", or "exact"
    """

    density: Floats
    error: Floats
    method: str


def mixing_density(
    prior: PrecisionPrior | CoefficientPrior | Density,
    at: ArrayLike,
    of: str = "variance",
    method: str = "auto",
) -> MixingDensity:
    """Return the density of the variance whose mixture of normal densities a prior is (BKM 120).

    p(coef) = integral of N(coef; 0, v) m(v) dv is, as a function of coef^2, the Laplace transform
    of a function of 1/(2 v); m comes from its numerical inversion.

    Parameters
    ----------
    prior : PrecisionPrior, CoefficientPrior, object with a method `pdf`, or callable
        The density of a coefficient, as a function of arrays for the last two. It is called for
        coefficients with a positive real part, and taken to be symmetric. One that can be evaluated
        at complex ones too (no absolute values in it) is inverted to ten digits or so, any other
        to four.
    at : array-like
        Where to evaluate, positive numbers.
    of : {"variance", "precision", "rate"}, default "variance"
        Which density: of v, of s = 1/v, or of the rate r where Laplacian densities (r/2)
        exp(-r |coef|) are mixed instead of normal ones (BKM 125, as corrected).
    method : {"auto", "talbot", "stehfest"}, default "auto"
        A sum along Talbot's contour in the complex plane, or that of Gaver and Stehfest over real
        arguments; by itself the former where the density can be evaluated there.

    Returns
    -------
    MixingDensity
        The density, what its error is estimated to be, and how it was found. A `PrecisionPrior`
        knows its own.

    Raises
    ------
    ValueError
        Where the prior is seen not to be such a mixture: the log density of every mixture is
        convex in coef^2 (in its absolute value for "rate"); where the density that is found
        is negative; and where what is mixed is a single number, as in `WeightDecay`, and has no
        density.

    Examples
    --------
    The Laplacian prior has exponential variances of mean 2 scale^2:

    >>> import numpy as np
    >>> from mercer.priors import Laplacian, mixing_density
    >>> found = mixing_density(Laplacian(scale=1.0), [0.5, 2.0, 8.0])
    >>> np.allclose(found.density, np.exp(-np.array([0.5, 2.0, 8.0]) / 2) / 2)
    True
    >>> bool(np.max(found.error) < 1e-10)
    True
    """
    places = np.asarray(at, dtype=float)
    if not np.all((places > 0) & np.isfinite(places)):
        raise ValueError("at must hold positive numbers")
    for name, given, known in (("of", of, _OF), ("method", method, _METHODS)):
        if given not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {given!r}")
    x = places.ravel()
    if not len(x):
        return MixingDensity(places, places.copy(), "exact")
    if isinstance(prior, PrecisionPrior) and of != "rate" and method == "auto":
        log_density = prior.log_precision_density(x if of == "precision" else 1.0 / x)
        exact = np.exp(log_density if of == "precision" else log_density - 2.0 * np.log(x))
        return _shaped(exact, 16.0 * _EPS * np.abs(exact), "exact", places.shape)

    p = _density_of(prior)
    # The unit of the coefficients, and the power of them that the transform is a function of.
    power = 1 if of == "rate" else 2
    unit = float(np.exp(np.mean(np.log(x)))) ** (0.5 if of == "variance" else -1.0 / power)
    _must_be_mixture(p, unit, power)
    if method == "auto":
        method = "talbot" if _is_analytic(p, unit) else "stehfest"
    elif method == "talbot" and not _is_analytic(p, unit):
        raise ValueError(
            "method 'talbot' evaluates the density at complex arguments, and this one is not the "
            "same function there (an absolute value in it?); 'stehfest' takes real ones"
        )

    def F(z: Any) -> Any:
        return p(np.sqrt(z) if power == 2 else z)

    if of == "rate":
        beta, factor = x, 2.0 / x
    else:
        v = x if of == "variance" else 1.0 / x
        # N(coef; 0, v) m(v) dv = exp(-beta coef^2) g(beta) dbeta, with beta = 1/(2 v)
        beta = 0.5 / v
        factor = 2.0 * np.sqrt(np.pi) * beta**1.5 * (1.0 if of == "variance" else v**2)
    with np.errstate(all="ignore"):
        value, error = (talbot if method == "talbot" else stehfest)(F, beta)
        value, error = factor * value, factor * error
    # x times a density of x is a pure number, and of order 1 at most.
    lost = ~(error * x < _LOST)
    if np.any(lost):
        raise ValueError(
            f"the inversion does not converge at {x[np.argmax(lost)]:.6g}: either this prior is "
            f"no such mixture, or it has a single {of} with a probability of its own, and not only "
            "a density of them"
        )
    worst = int(np.argmin(value + 10.0 * error))
    if value[worst] + 10.0 * error[worst] < 0:
        _refuse(
            power,
            f"the density of the {of} that would be needed is {value[worst]:.3g} at {x[worst]:.6g}",
        )
    return _shaped(value, error, method, places.shape)


def _shaped(value: Floats, error: Floats, method: str, shape: tuple[int, ...]) -> MixingDensity:
    return MixingDensity(value.reshape(shape), error.reshape(shape), method)


def _density_of(prior: Any) -> Density:
    """Return the density as a function of coefficients with a positive real part."""
    if isinstance(prior, CoefficientPrior):
        normaliser = prior._log_normaliser() + float(np.log(prior.scale))
        return lambda coef: np.exp(-prior._gamma(coef / prior.scale) - normaliser)
    if isinstance(prior, PrecisionPrior):
        prior._log_peak()
        return lambda coef: np.exp(prior._log_density(coef))
    function: Density = getattr(prior, "pdf", prior)
    if not callable(function):
        raise ValueError(f"prior must be one of mercer.priors or a density, got {prior!r}")
    return function


def _is_analytic(p: Density, unit: float) -> bool:
    """Return whether the imaginary part of p(x + ih) is h p'(x), and p takes such numbers."""
    x = unit * np.array([0.3, 1.0, 2.7])
    h = _STEP * unit
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")  # a cast to real numbers warns
            complex_slope = np.imag(np.asarray(p(x + 1j * h))) / h
            slope = (np.asarray(p(x * (1 + 1e-6))) - np.asarray(p(x * (1 - 1e-6)))) / (2e-6 * x)
            far = np.asarray(p(unit * np.exp(0.45j * np.pi) * np.array([0.5, 1.0, 3.0])))
    except Exception:  # whatever a function does that is not made for them
        return False
    scale = np.max(np.abs(slope)) + _TINY
    return bool(np.all(np.abs(complex_slope - slope) <= 1e-5 * scale) and np.all(np.isfinite(far)))


def _must_be_mixture(p: Density, unit: float, power: int) -> None:
    """Raise where the log density is not that of a mixture, as far as values on a grid show."""
    x = unit * _PLACES
    with np.errstate(all="ignore"):
        density = np.asarray(p(x), dtype=float)
    if density.shape != x.shape:
        raise ValueError(f"prior gave shape {density.shape} for coefficients of shape {x.shape}")
    if np.any(np.isnan(density)) or np.any(density < 0):
        raise ValueError("prior gave NaN or less than 0 for the density of a coefficient")
    good = np.isfinite(density) & (density > _TINY)
    count = int(np.sum(good))
    if count < 3:
        raise ValueError(
            f"prior has next to no mass at coefficients of the size of {unit:.3g}, to which `at` "
            "belongs: give values of another size"
        )
    variable = "coef^2" if power == 2 else "|coef|"
    z, log_p = x[good] ** power, np.log(density[good])
    step = np.diff(z)
    slope = np.diff(log_p) / step
    rounding = 16.0 * _EPS * (1.0 + np.maximum(np.abs(log_p[1:]), np.abs(log_p[:-1]))) / step
    rounding += 1e-9 * np.abs(slope)
    rises = slope > rounding
    if np.any(rises):
        at = float(x[good][np.argmax(rises)])
        _refuse(power, f"its density rises with |coef| at {at:.3g}")
    bends = np.diff(slope) < -(rounding[1:] + rounding[:-1])
    if np.any(bends):
        at = float(x[good][np.argmin(np.where(bends, np.diff(slope), 0.0)) + 1])
        _refuse(power, f"its log density is not convex in {variable} at coef = {at:.3g}")
    # A convex function is above its tangents: no density of a mixture is 0 where they are not.
    behind = int(np.flatnonzero(good)[-1]) + 1
    if behind < len(x):
        least = log_p[-1] + slope[-1] * (x[behind] ** power - z[-1])
        if least > np.log(_TINY) + 1.0:
            _refuse(power, f"its density is 0 at {x[behind]:.3g}")
    if np.all(np.abs(np.diff(slope)) <= rounding[1:] + rounding[:-1]):
        raise ValueError(
            f"the log density of this prior is linear in {variable}: it is one "
            + ("normal" if power == 2 else "Laplacian")
            + " density, and what would be mixed is a single number, which has no density"
        )


def _refuse(power: int, why: str) -> NoReturn:
    kind = "normal" if power == 2 else "Laplacian"
    raise ValueError(f"this prior is no mixture of {kind} densities around 0: {why}")
