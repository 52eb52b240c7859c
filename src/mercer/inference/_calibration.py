"""Probabilities from margins: a slope and an offset for the link that suits a loss (BKM 2.2).

A soft margin is no likelihood. Fitted to margins of rows that were held out, the logistic function
goes with the linear margin and the probit with the quadratic one, whose asymptotes they share.

Probabilities are averages over error bars. These are the curvature of the link about the margins as
they are calibrated without any, and stay as they are when slope and offset are fitted once more,
to the averages: steeper margins would otherwise widen the bars, and these ask for steeper margins,
without end where classes can be told apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from mercer.likelihoods import Likelihood, Probit
from mercer.priors import CoefficientPrior, FeatureSelection

__all__ = ["Calibration", "calibrate", "is_calibrated", "narrowing", "size_of", "surest"]

Floats = NDArray[np.float64]

_STEPS, _HALVINGS = 100, 40
_SETTLED = 1e-12
# Latent values beyond this have labels for certain, of any link.
_REACH = 40.0


class Calibration(NamedTuple):
    """The latent value of a margin f is slope f + offset.

    bars : slope and offset of margins without error bars, about which these are computed
    """

    slope: float
    offset: float
    bars: tuple[float, float]

    def latent(self, margin: Floats) -> Floats:
        """Return slope f + offset."""
        return self.slope * margin + self.offset

    def centre(self, margin: Floats) -> Floats:
        """Return the latent values about which error bars are computed."""
        return self.bars[0] * margin + self.bars[1]

    def of(self, size: float) -> Calibration:
        """Return the calibration of a function of this size, if this is that of one of size 1."""
        return Calibration(self.slope / size, self.offset, (self.bars[0] / size, self.bars[1]))

    def sharing(
        self, link: Likelihood, margin: Floats, y: Floats, weights: Floats | None
    ) -> Calibration:
        """Return this with offsets by which labels have the shares of theirs among these rows.

        Slopes suit functions of other labels too, and offsets do not.
        """
        share = float(np.average(y > 0, weights=weights))
        one = np.ones(len(y))

        def offset(slope: float) -> float:
            z = slope * margin

            def excess(b: float) -> float:
                probable = np.exp(link.log_density(one, z + b))
                return float(np.average(probable, weights=weights)) - share

            reach = float(np.max(np.abs(z))) + _REACH
            return float(brentq(excess, -reach, reach))

        if not 0.0 < share < 1.0:
            return self
        bars = self.bars[0], offset(self.bars[0])
        return Calibration(self.slope, offset(self.slope), bars)


def is_calibrated(of_labels: bool, is_likelihood: bool, prior: type[CoefficientPrior]) -> bool:
    """Whether latent values are calibrated: margins, and labels under feature selection.

    Its penalty does not grow with coefficients. Where labels can be told apart no function is the
    most probable one then: latent values grow as far as rounding lets them, and say as little of
    probabilities as margins do.
    """
    return of_labels and (not is_likelihood or prior is FeatureSelection)


def size_of(latent: Floats, weights: Floats | None, prior: type[CoefficientPrior]) -> float:
    """Return the size of a function of labels, by which it is divided to be calibrated.

    One calibration is for the functions of all folds, and for that of all rows. Under feature
    selection one may be a thousand times as large as another, and their sizes are those of their
    values (n,) at the rows they were fitted to. Elsewhere the penalty bounds all to one size, 1.
    """
    if prior is not FeatureSelection:
        return 1.0
    return float(np.sqrt(np.average(latent**2, weights=weights))) or 1.0


def narrowing(link: Likelihood, var: Floats) -> Floats:
    """Return k with which E[link(g)] is about link(E[g]/k) for g of this variance.

    Exact for the probit, MacKay's approximation for the logistic function.
    """
    return np.sqrt(1.0 + (1.0 if isinstance(link, Probit) else np.pi / 8.0) * var)


def surest(link: Likelihood, total: float) -> float:
    """Return the latent value at which a label has the probability (N + 1)/(N + 2), N = `total`.

    By Laplace's rule of succession that is what N labels, all the same, tell of another.
    """
    if isinstance(link, Probit):
        return float(-ndtri(1.0 / (total + 2.0)))
    return float(np.log1p(total))


def calibrate(
    link: Likelihood, margin: Floats, y: Floats, weights: Floats, narrow: Floats | None = None
) -> tuple[float, float]:
    """Return the slope, at least 0, and the offset under which labels are likeliest.

    Labels that can be separated would have an infinite slope: as in Platt's method the rows
    of a class of weight N have its label with probability (N + 1)/(N + 2) instead of 1.

    Parameters
    ----------
    link : Logistic or Probit
    margin, y, weights : (n,) with labels -1 and 1
    narrow : (n,) by which latent values are divided, see `narrowing`

    References
    ----------
    Platt, *Probabilistic outputs for support vector machines*, 2000.
    """
    positive = y > 0
    total = np.array([np.sum(weights[~positive]), np.sum(weights[positive])])
    sure = (total + 1.0) / (total + 2.0)
    share = np.where(positive, sure[1], 1.0 - sure[0])  # of the label 1
    k = np.ones(len(y)) if narrow is None else narrow
    size = float(np.sqrt(np.average(margin**2, weights=weights))) or 1.0
    A = np.column_stack([margin / size, np.ones(len(y))]) / k[:, None]
    x = _likeliest(link, A, share, weights)
    if x[0] < 0:
        x = np.concatenate([[0.0], _likeliest(link, A[:, 1:], share, weights)])
    return float(x[0] / size), float(x[1])


def _cost(
    link: Likelihood, z: Floats, share: Floats, weights: Floats
) -> tuple[float, Floats, Floats]:
    """Return minus the log probability of smoothed labels, its slope and curvature in z."""
    one, other = np.ones(len(z)), -np.ones(len(z))
    value = share * link.log_density(one, z) + (1.0 - share) * link.log_density(other, z)
    a, b = link.derivatives(one, z), link.derivatives(other, z)
    slope = share * a[0] + (1.0 - share) * b[0]
    curved = share * a[1] + (1.0 - share) * b[1]
    return -float(weights @ value), -weights * slope, -weights * curved


def _likeliest(link: Likelihood, A: Floats, share: Floats, weights: Floats) -> Floats:
    """Return x that minimises the cost of A x, by Newton's method; it is convex."""
    x = np.zeros(A.shape[1])
    value, slope, curved = _cost(link, A @ x, share, weights)
    for _ in range(_STEPS):
        gradient = A.T @ slope
        H = (A * curved[:, None]).T @ A
        H.flat[:: len(H) + 1] += 1e-12 * max(float(np.trace(H)), 1e-300)
        step = -np.linalg.lstsq(H, gradient, rcond=None)[0]
        descent = float(-gradient @ step)
        if not descent > _SETTLED * float(np.sum(weights)):
            break
        t = 1.0
        for _ in range(_HALVINGS):
            new = _cost(link, A @ (x + t * step), share, weights)
            if new[0] <= value - 1e-4 * t * descent:
                break
            t *= 0.5
        else:
            break
        x, (value, slope, curved) = x + t * step, new
    return x
