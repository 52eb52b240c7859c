"""Counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, gammaln, ndtri

from mercer.likelihoods.base import Likelihood, broadcast, check_level, rows_of
from mercer.likelihoods.tilted import concave
from mercer.registry import storable

__all__ = ["Poisson"]

Floats = NDArray[np.float64]

# numpy's sampler ends near 9.2e18; from here on a rounded normal is the same to 1e-7.
_LARGEST_RATE = 1e15


@storable
class Poisson(Likelihood):
    """Counts y = 0, 1, 2, ... with rate exp(f): p(y | f) = exp(y f - exp(f))/y!.

    f is the logarithm of the expected count. Use it for events counted over equal times or areas,
    whose variance given f is their mean; counts that scatter more than that are fitted by a rougher
    f, since a smooth one cannot explain them.

    Examples
    --------
    >>> from mercer.likelihoods import Poisson
    >>> Poisson().predictive_mean(mean=1.0, var=0.5).round(4)  # exp(1 + 0.5/2)
    np.float64(3.4903)
    >>> Poisson().derivatives(3, 1.0)[0].round(4)
    np.float64(0.2817)
    """

    is_log_concave = True
    counts_events = True
    # a closed form, and more accurate than Laplace's method for little more time
    preferred_inference = "vi"

    def __init__(self) -> None:
        self._set()

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return y f - exp(f) - log y!."""
        return _log_density(_counts(y), np.asarray(f, dtype=float))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return y - exp(f), -exp(f) and -exp(f)."""
        y, rate = _counts(y), _rate(np.asarray(f, dtype=float))
        shape = np.broadcast_shapes(y.shape, rate.shape)
        return np.asarray(y - rate), np.zeros(shape) - rate, np.zeros(shape) - rate

    def fisher(self, f: ArrayLike) -> Floats:
        """Return exp(f)."""
        return _rate(np.asarray(f, dtype=float))

    def conditional_mean(self, f: ArrayLike) -> Floats:
        """Return exp(f)."""
        return _rate(np.asarray(f, dtype=float))

    def conditional_var(self, f: ArrayLike) -> Floats:
        """Return exp(f)."""
        return _rate(np.asarray(f, dtype=float))

    def conditional_cdf(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return the probability of at most y events, a step function of any real y."""
        y, f = np.asarray(y, dtype=float), np.asarray(f, dtype=float)
        whole = np.maximum(np.floor(y), 0.0)
        return np.where(y < 0, 0.0, gammaincc(whole + 1.0, _rate(f)))

    def sample(self, f: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw a count for each f."""
        rate = _rate(np.asarray(f, dtype=float))
        if not np.all(np.isfinite(rate)):
            raise ValueError(f"the rate exp(f) overflows for f = {np.max(f):.6g}")
        counts = rng.poisson(np.minimum(rate, _LARGEST_RATE)).astype(float)
        if np.any(rate > _LARGEST_RATE):
            normal = np.round(rate + np.sqrt(rate) * rng.standard_normal(rate.shape))
            counts = np.where(rate > _LARGEST_RATE, normal, counts)
        return np.asarray(counts)

    def initial(self, y: ArrayLike) -> Floats:
        """Return log(y + 1/2)."""
        return np.log(_counts(y) + 0.5)

    def smoothed(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return log Z, d log Z/d mean and d^2 log Z/d mean^2 with Z = E[p(y | f)]."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        y = _counts(y)
        # exp(y f) N(f; mean, var) is a Gaussian again, y var further on. Taken out of the
        # integral where that is not far, it brings no rounding of its large exponents in; but of
        # many events exp(f) is as large near the peak.
        off_peak = mean + y * var < np.log(np.maximum(y, 1.0)) - 1.0
        moved = (y > 0) & (var > 0) & np.where(y < 1e4, y**2 * var < 25.0, off_peak)
        centre = mean + np.where(moved, y * var, 0.0)
        base = super().smoothed(np.where(moved, 0.0, y), centre, var)
        line = y * (mean + 0.5 * y * var) - gammaln(y + 1.0)
        log_z = np.where(moved, line + base[0], base[0])
        first, second = np.where(moved, y + base[1], base[1]), np.array(base[2])
        # The general rule takes it from how p changes the variance of the Gaussian. If that is
        # narrow, p over it is known to the rounding of f only, and a change of var rate is lost.
        narrow = moved & (var < 1e-2)
        narrow &= centre + np.log(np.where(narrow, var, 1.0)) < 0.0
        if np.any(narrow):
            m, v = np.asarray(centre)[narrow], np.asarray(var)[narrow]
            second[narrow] = concave(self, np.zeros(m.size), m, v, 0.5 * np.pi)[2]
        none = log_z == -np.inf  # rates that overflow throughout
        return log_z, np.where(none, -np.inf, first), np.where(none, -np.inf, second)

    def compiled_site(self) -> tuple[str, Floats]:
        """Return the name alone: there are no parameters."""
        return "poisson", np.empty(0)

    def predictive_mean(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return exp(mean + var/2); ValueError where it overflows."""
        mean, var = broadcast(mean=mean, var=var)
        return self._finite("mean", _rate(mean + 0.5 * var), mean, var)

    def predictive_var(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return r + (exp(var) - 1) r^2 with r the predictive mean; ValueError on overflow."""
        mean, var = broadcast(mean=mean, var=var)
        rate = self._finite("mean", _rate(mean + 0.5 * var), mean, var)
        with np.errstate(over="ignore", divide="ignore"):
            # expm1(var) overflows before the product does: its logarithm is added instead.
            log_ratio = np.where(var > 30.0, var, np.log(np.expm1(np.minimum(var, 30.0))))
            between = np.where(var == 0, 0.0, np.exp(2.0 * mean + var + log_ratio))
        return self._finite("variance", np.asarray(rate + between), mean, var)

    def quantile(self, mean: ArrayLike, var: ArrayLike, level: ArrayLike) -> Floats:
        """Return the least count that a new one is at most with probability `level`."""
        (m, v, p), shape = rows_of(mean=mean, var=var, level=level)
        check_level(p)
        slack = 1e-10 * np.minimum(p, 1.0 - p)  # what the integrals may be wrong by

        def reached(row: NDArray[np.intp], y: Floats) -> NDArray[np.bool_]:
            return np.asarray(self.predictive_cdf(y, m[row], v[row]) >= p[row] - slack[row])

        # The count is above `low` and at most `high`. That of f at the same level is near it.
        low = np.full(m.size, -1.0)
        with np.errstate(over="ignore"):
            high = np.maximum(np.ceil(_rate(m + ndtri(p) * np.sqrt(v))), 1.0)
        short = np.flatnonzero(np.isfinite(high))
        if short.size < high.size:
            raise ValueError("the quantile is too large for a floating-point number")
        while (short := short[~reached(short, high[short])]).size:
            low[short], high[short] = high[short], 2.0 * high[short]
        # downwards first by steps as large as the spread: the middle of [-1, high] is far away
        step = np.ceil(2.0 * np.sqrt(high))
        while True:
            middle = np.maximum(np.floor(0.5 * (low + high)), high - step)
            rows = np.flatnonzero((middle > low) & (middle < high))
            if not rows.size:
                return high.reshape(shape)
            enough = reached(rows, middle[rows])
            high[rows[enough]] = middle[rows[enough]]
            low[rows[~enough]] = middle[rows[~enough]]
            step[rows[enough]] *= 2.0

    def expected(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return y mean - r - log y!, y - r and -r/2 with r = exp(mean + var/2)."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        y, rate = _counts(y), _rate(mean + 0.5 * var)
        return _log_density(y, mean, 0.5 * var), y - rate, np.asarray(-0.5 * rate)

    def _finite(self, what: str, values: Floats, mean: Floats, var: Floats) -> Floats:
        lost = ~np.isfinite(values)
        if np.any(lost):
            raise ValueError(
                f"the predictive {what} of Poisson cannot be computed for a latent mean of "
                f"{mean[lost].ravel()[0]:.6g} and variance of {var[lost].ravel()[0]:.6g}: it "
                "overflows"
            )
        return values


def _rate(f: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(f))


def _log_density(y: Floats, f: Floats, more: Floats | float = 0.0) -> Floats:
    """Return y f - exp(f + more) - log y!.

    Of many events these are large numbers with a small sum: they are taken from where f = log y.
    """
    some = np.maximum(y, 1.0)
    from_peak = f - np.log(some)
    with np.errstate(over="ignore", invalid="ignore"):
        many = _peak(some) + some * (from_peak - np.expm1(from_peak + more))
        return np.where(y > 0, many, -_rate(np.asarray(f + more)))


def _peak(y: Floats) -> Floats:
    """Return the largest log density of y > 0, y log y - y - log y!, by Stirling's series."""
    series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * y**2)) / y**2) / y
    return np.where(
        y < 100.0, y * np.log(y) - y - gammaln(y + 1.0), -0.5 * np.log(2.0 * np.pi * y) - series
    )


def _counts(y: ArrayLike) -> Floats:
    y = np.asarray(y, dtype=float)
    wrong = (y < 0) | (y != np.floor(y))
    if np.any(wrong):
        values = ", ".join(f"{v:g}" for v in y[wrong].ravel()[:3])
        raise ValueError(f"counts must be whole numbers of at least 0, got {values}")
    return y
