"""Laplace's evidence of a set of functions as a function of their precisions, and its ascent.

Not an engine; `relevance_classes` has the model, `_relevance_mode` the evidence at one point. With
Xi = H^-1 and the spread Phi_i'Xi Phi_i of each row, the mode moves with ln s_j, and W with it.
Let a be the derivative of -ln det(H)/2 in t, and delta = Xi Phi'a: to first order beyond the mode
theta + delta is the posterior mean. The derivative of the penalised evidence in ln s_j is

    [q - s_j tr Xi_jj - s_j |theta_j|^2]/2 - s_j theta_j'delta_j + slope of ln h,

in which (BKM 134) leaves out the term with delta. It is that of the regression on the working
response t + W^-1 (g + a), but for s_j |delta_j|^2/2: its mean is theta + delta, its covariance Xi.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mercer.inference._relevance_ascent import Penalty, Slopes, climb
from mercer.inference._relevance_evidence import covariance
from mercer.inference._relevance_mode import Mode, find_mode
from mercer.inference._relevance_sites import Sites

__all__ = ["LARGEST", "SMALLEST", "Laplace", "Moments", "moments"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Precisions in units of the function's mean square, latent numbers in the unit of their sites. At
# the least one has a prior deviation of 10: nothing else bounds the coefficients of separable
# classes, whose posterior is by Laplace's method nearly as wide as the prior, so that averages over
# it know no label. At the largest nothing is left but rounding.
SMALLEST, LARGEST = 1e-2, 1e14
# A gradient that is as good as 0.
_FLAT = 1e-5


class Moments(NamedTuple):
    """The normal posterior at a mode, to first order beyond it.

    Xi : (kq, kq)
    lean : (n, q) a
    delta : (k, q)
    """

    Xi: Floats
    lean: Floats
    delta: Floats


def moments(sites: Sites, Phi: Floats, at: Mode) -> Moments:
    """Return the posterior's moments; O(n k^2 q^2)."""
    k, q = at.theta.shape
    Xi = covariance(at.R)
    spread = np.empty((q, q, len(Phi)))
    for c in range(q):
        for d in range(c, q):
            image = Phi @ Xi[c * k : (c + 1) * k, d * k : (d + 1) * k]
            spread[c, d] = spread[d, c] = np.einsum("ij,ij->i", image, Phi)
    lean = sites.lean(at.t, spread)
    delta = (Xi @ (Phi.T @ lean).T.reshape(-1)).reshape(q, k).T
    return Moments(Xi, lean, delta)


class Laplace:
    """Laplace's evidence of some functions, as `climb` wants it.

    Parameters
    ----------
    sites : Sites
    penalty : Penalty
    Phi : (n, k)
    widths : (k,) their mean squares, latent numbers in the unit of the sites
    """

    def __init__(self, sites: Sites, penalty: Penalty, Phi: Floats, widths: Floats) -> None:
        self.sites, self.penalty, self.Phi = sites, penalty, Phi
        self.low, self.high = SMALLEST * widths, LARGEST * widths

    def at(self, s: Floats, start: Floats | None = None) -> Mode | None:
        """Return the evidence at precisions s, which are brought within their limits."""
        return find_mode(self.sites, self.penalty, self.Phi, np.clip(s, self.low, self.high), start)

    def slopes(self, at: Mode) -> Slopes:
        """Return the derivatives in ln s, and the working regression's second ones."""
        (k, q), s = at.theta.shape, at.s
        Xi, _, delta = moments(self.sites, self.Phi, at)
        d = np.sum(np.diagonal(Xi).reshape(q, k), axis=0)
        square = np.sum(at.theta * (at.theta + 2.0 * delta), axis=1)
        first, second = self.penalty.slopes(s)
        g = 0.5 * (q - s * d - s * square) + first
        middle = at.theta + delta
        C = np.zeros((k, k), order="F")
        for c in range(q):
            for e in range(q):
                block = Xi[c * k : (c + 1) * k, e * k : (e + 1) * k]
                C -= block * (0.5 * block + np.outer(middle[:, c], middle[:, e]))
        C *= np.outer(s, s)
        C.reshape(-1, order="F")[:: k + 1] += 0.5 * s * (d + np.sum(middle**2, axis=1)) - second
        free = ~((s >= self.high) & (g > 0)) & ~((s <= self.low) & (g < 0))
        return Slopes(g, C, free)

    def moved(self, at: Mode, step: Floats) -> Mode | None:
        """Return the point a step in ln s away."""
        return self.at(np.where(step == 0, at.s, at.s * np.exp(step)), at.theta)

    def polished(self, at: Mode, steps: int) -> Mode:
        """Go on to where the gradient is 0, by L-BFGS; the penalised evidence never decreases.

        The second derivatives that `slopes` has are not those of Laplace's evidence, so that its
        steps are slow at the end where the approximation is poor.
        """
        if float(np.max(np.abs(self.slopes(at).gradient))) < _FLAT:
            return at
        best = [at]

        def loss(logs: Floats) -> tuple[float, Floats]:
            found = self.at(np.exp(logs), best[0].theta)
            if found is None:
                return np.inf, np.zeros(len(logs))
            if found.value > best[0].value:
                best[0] = found
            return -found.value, -self.slopes(found).gradient

        limits = list(zip(np.log(self.low), np.log(self.high), strict=True))
        options = {"maxiter": steps, "gtol": _FLAT, "ftol": 1e-15}
        minimize(loss, np.log(at.s), jac=True, method="L-BFGS-B", bounds=limits, options=options)
        return best[0]

    def ascended(self, at: Mode, steps: int, tol: float) -> Mode:
        """Go up in all precisions together; the penalised evidence never decreases."""
        return climb(self, at, steps, tol)
