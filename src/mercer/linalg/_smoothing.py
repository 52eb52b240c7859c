"""log Z, q and r of (SOGP 2.7) for one observation, compiled, for loops over observations.

Z = E[p(y | f)] over f ~ N(mean, var); q and r are the derivatives of log Z in the mean. Import
lazily, where Numba is known to work. There is no NumPy twin: without Numba the `smoothed` of the
likelihood itself is called, which is what these are tested against.
"""

from __future__ import annotations

import math

from numba import float64, int64, njit, types

from mercer.linalg._elementary import MAP as _MAP
from mercer.linalg._elementary import GivenVector
from mercer.linalg._smoothing_kinked import clipped as _clipped
from mercer.linalg._smoothing_kinked import insensitive as _insensitive
from mercer.linalg._smoothing_logistic import logistic as _logistic
from mercer.linalg._smoothing_normal import LOG_ROOT_2PI as _LOG_ROOT_2PI
from mercer.linalg._smoothing_normal import tail as _tail
from mercer.linalg._smoothing_poisson import poisson as _poisson
from mercer.linalg._smoothing_powers import power_of_label as _power_of_label
from mercer.linalg._smoothing_student import student as _student
from mercer.linalg.smoothing import SITES

_Three = types.UniTuple(float64, 3)
(
    _GAUSSIAN,
    _PROBIT,
    _LOGISTIC,
    _MIXTURE,
    _INSENSITIVE,
    _HUBER,
    _STUDENT,
    _POISSON,
) = range(len(SITES))


@njit(_Three(float64, float64), **_MAP)
def _gaussian(t, var):  # type: ignore[no-untyped-def]
    z = t / math.sqrt(var)
    return -0.5 * (z * z + math.log(var)) - _LOG_ROOT_2PI, t / var, -1.0 / var


@njit(_Three(float64, float64, float64), **_MAP)
def _probit(noise_std, m, var):  # type: ignore[no-untyped-def]
    """The average of Phi(f/s) is Phi(m/t) with t^2 = s^2 + var (SOGP 4.6)."""
    t = math.sqrt(noise_std * noise_std + var)
    if t == 0.0:
        log_z = 0.0 if m > 0.0 else (-math.inf if m < 0.0 else math.log(0.5))
        return log_z, math.nan, math.nan
    log_z, h, g = _tail(-m / t)
    return log_z, h / t, -(h * g) / (t * t)


@njit(_Three(GivenVector, float64, float64), **_MAP)
def _mixture(p, t, var):  # type: ignore[no-untyped-def]
    """Average a mixture of Gaussians, whose variances grow by var.

    With a_k and b_k slope and curvature of the log of kind k, and its share of the whole for its
    weight, q = <a> and r = <b> + Var(a), the variance by Welford's updates.
    """
    kinds = p.size // 3
    top, total, mean, spread, curvature = -math.inf, 0.0, 0.0, 0.0, 0.0
    widest = 0
    for k in range(kinds):
        log_p, a, b = _gaussian(t - p[kinds + k], p[2 * kinds + k] + var)
        log_p += p[k]
        if log_p > top:
            shrink = math.exp(top - log_p)
            total *= shrink
            spread *= shrink
            curvature *= shrink
            top = log_p
        if p[2 * kinds + k] > p[2 * kinds + widest]:
            widest = k
        if top > -math.inf:
            w = math.exp(log_p - top)
            share = w / (total + w)
            away = a - mean
            spread += total * share * (away * away)
            mean = (1.0 - share) * mean + share * a
            curvature += w * b
            total += w
    if total == 0.0:  # the logarithms themselves overflow: the widest kind is all there is
        return _gaussian(t - p[kinds + widest], p[2 * kinds + widest] + var)
    return top + math.log(total), mean, (spread + curvature) / total


@njit(_Three(int64, GivenVector, float64, float64, float64), **_MAP)
def smoothed(kind, p, y, mean, var):  # type: ignore[no-untyped-def]
    """Return log Z, q and r of one observation y, for f ~ N(mean, var) with var >= 0.

    `kind` is the place in `mercer.linalg.smoothing.SITES`, p the parameters:

    =========== ==================================================================
    gaussian    the noise variance
    probit      the noise's standard deviation, 0 for the step; y is -1 or 1
    logistic    none; y is -1 or 1
    mixture     logarithms of the weights, then the means, then the variances
    insensitive epsilon, 0 for Laplacian noise, and the scale
    huber       the scale, the threshold, and the logarithm of the normaliser
    student     the scale, the degrees of freedom, and minus a constant, see `StudentT`
    poisson     none; y is a count
    =========== ==================================================================

    A variance of 0 gives log p and its derivatives. Those of the step, which has none, are NaN.
    Where Z is below all floating-point numbers' logarithms, log Z is -inf; of counts at rates that
    overflow, so are q and r.
    """
    if kind == _GAUSSIAN:
        return _gaussian(y - mean, p[0] + var)
    if kind == _PROBIT:
        log_z, q, r = _probit(p[0], y * mean, var)
        return log_z, y * q, r
    if kind == _LOGISTIC:
        log_z, q, r = _logistic(y * mean, var)
        return log_z, y * q, r
    if kind == _MIXTURE:
        return _mixture(p, y - mean, var)
    if kind == _INSENSITIVE:
        log_z, q, r = _insensitive(p[0], p[1], y - mean, var)
        return log_z - math.log(2.0 * (p[0] + p[1])), q, r
    if kind == _POISSON:
        return _poisson(y, mean, var)
    s = p[0]
    if kind == _HUBER:
        log_z, q, r = _clipped(p[1], (y - mean) / s, var / (s * s))
    else:
        log_z, q, r = _student(p[1], (y - mean) / s, var / (s * s))
    return log_z - p[2], q / s, r / (s * s)


@njit(_Three(int64, GivenVector, float64, float64, float64, float64), **_MAP)
def powered(kind, p, y, mean, var, power):  # type: ignore[no-untyped-def]
    """`smoothed` of a power of the likelihood, above 0, for Gaussian noise and labels.

    NaN for any other kind whose power is not 1.
    """
    is_step = kind == _PROBIT and p[0] == 0.0  # whose powers are the step itself
    if power == 1.0 or is_step:
        return smoothed(kind, p, y, mean, var)
    if kind == _GAUSSIAN:  # N(y; f, s)^power is N(y; f, s/power) times a constant
        s = p[0]
        log_z, q, r = _gaussian(y - mean, var + s / power)
        constant = 0.5 * ((1.0 - power) * math.log(2.0 * math.pi * s) - math.log(power))
        return log_z + constant, q, r
    if kind != _PROBIT and kind != _LOGISTIC:
        return math.nan, math.nan, math.nan
    scale = p[0] if kind == _PROBIT else 0.0
    log_z, q, r = _power_of_label(scale, y * mean, var, power)
    return log_z, y * q, r
