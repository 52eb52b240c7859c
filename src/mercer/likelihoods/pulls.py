"""Chaining gradients to a likelihood's own parameters, where no closed form overrides it.

A likelihood that gives `_slopes`, the derivatives of log p, d1 and d2 in its parameters, is
chained exactly, integrals by quadrature; any other by five-point differences in theta.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.linalg.quadrature import expectation

if TYPE_CHECKING:
    from mercer.likelihoods.base import Likelihood

__all__ = ["Slopes", "derivatives", "expected", "smoothed"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# name -> derivatives of log p, d1 and d2; with a first axis for the components of a vector
Slopes: TypeAlias = dict[str, tuple[Floats, Floats, Floats]]

# Of a five-point difference in theta: its own error is 1e-12 or so of the fifth derivative, and
# what an integral's error of 1e-12 becomes is 1e-9.
_STEP = 2e-3


def derivatives(
    likelihood: Likelihood, y: Floats, f: Floats, g: tuple[Floats, Floats, Floats]
) -> Floats:
    """Return d/dtheta of sum(g0 log p + g1 d1 + g2 d2)."""
    slopes = likelihood._slopes(y, f)
    if slopes is not None:
        return likelihood._own_gradient(
            **{
                name: sum(_totals(gi, s) for gi, s in zip(g, d, strict=True))
                for name, d in slopes.items()
            }
        )

    def total(moved: Likelihood) -> float:
        out = _weighted(g[0], moved.log_density(y, f))
        if np.any(g[1]) or np.any(g[2]):
            first, second, _ = moved.derivatives(y, f)
            out += _weighted(g[1], first) + _weighted(g[2], second)
        return out

    return _differences(likelihood, total)


def smoothed(likelihood: Likelihood, y: Floats, mean: Floats, var: Floats, g: Floats) -> Floats:
    """Return d/dtheta of sum(g log Z): that of log p on average, under p(y | f) N(f) / Z."""
    y_, m, v, g_ = y.ravel(), mean.ravel(), var.ravel(), g.ravel()
    if likelihood._slopes(y_[:1], m[:1]) is None:
        return _differences(likelihood, lambda moved: _weighted(g, moved.smoothed(y, mean, var)[0]))
    spread = np.flatnonzero((v > 0) & (g_ != 0))
    y_s, m_s, v_s = y_[spread], m[spread], v[spread]
    log_z, first, _ = likelihood.smoothed(y_s, m_s, v_s)
    # N(f; mean, var) is N(f; centre, var) times the exponential of a line, and p/Z times that
    # exponential is of moderate size around the centre, where p/Z itself may overflow.
    centre = m_s + v_s * first

    def tilt(row: Rows, f: Floats) -> Floats:
        a, b, c = m_s[row], centre[row], v_s[row]
        line = (b - a) / c * (f - 0.5 * (a + b))
        with np.errstate(all="ignore"):
            return np.asarray(np.exp(likelihood.log_density(y_s[row], f) - log_z[row] - line))

    return _averaged(likelihood, (y_, m, v, g_), centre, spread, tilt)


def expected(likelihood: Likelihood, y: Floats, mean: Floats, var: Floats, g: Floats) -> Floats:
    """Return d/dtheta of sum(g E[log p])."""
    y_, m, v, g_ = y.ravel(), mean.ravel(), var.ravel(), g.ravel()
    if likelihood._slopes(y_[:1], m[:1]) is None:
        return _differences(likelihood, lambda moved: _weighted(g, moved.expected(y, mean, var)[0]))
    spread = np.flatnonzero((v > 0) & (g_ != 0))
    return _averaged(likelihood, (y_, m, v, g_), m[spread], spread, lambda row, f: np.ones(()))


def _averaged(
    likelihood: Likelihood,
    rows: tuple[Floats, Floats, Floats, Floats],
    centre: Floats,
    spread: Rows,
    weight: Callable[[Rows, Floats], Floats],
) -> Floats:
    """Return sum(g E[weight * d log p/dtheta]) over N(centre, var) where there is a spread."""
    y, mean, var, g = rows
    at_mean = likelihood._slopes(y, mean)
    assert at_mean is not None
    knots = likelihood.knots(y[spread])
    out = {}
    for name, (slope, _, _) in at_mean.items():
        if not likelihood.parameters[name].is_free:
            continue
        averages = np.array(np.broadcast_to(slope, (*slope.shape[:-1], y.size)))
        for index in np.ndindex(averages.shape[:-1]):

            def integrand(
                row: Rows, f: Floats, name: str = name, index: tuple[int, ...] = index
            ) -> Floats:
                inner = likelihood._slopes(y[spread[row]], f)
                assert inner is not None
                return np.asarray(inner[name][0][index] * weight(row, f))

            averages[index][spread] = expectation(integrand, centre, var[spread], knots)
        out[name] = _totals(g, averages)
    return likelihood._own_gradient(**(dict.fromkeys(at_mean, 0.0) | out))


def _totals(g: Floats, slope: Floats) -> Floats:
    """Return sum(g * slope) over all but the axis of a vector parameter's components."""
    product = np.where(g == 0, 0.0, g * slope)
    return np.asarray(np.sum(product, axis=tuple(range(product.ndim - g.ndim, product.ndim))))


def _weighted(g: Floats, values: Floats) -> float:
    """Return sum(g * values); what has no weight may be infinite."""
    with np.errstate(invalid="ignore"):
        return float(np.sum(np.where(g == 0, 0.0, g * values)))


def _differences(likelihood: Likelihood, function: Callable[[Likelihood], float]) -> Floats:
    """Return the derivative of a function of the likelihood in theta."""
    theta = likelihood.theta
    out = np.empty(theta.size)
    for i in range(theta.size):
        step = np.zeros(theta.size)
        step[i] = _STEP
        near, far = (
            function(likelihood.with_theta(theta + k * step))
            - function(likelihood.with_theta(theta - k * step))
            for k in (1, 2)
        )
        out[i] = (8.0 * near - far) / (12.0 * _STEP)
    return out
