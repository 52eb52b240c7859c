"""Likelihoods as relevance models of classes see them: value, slopes, curvatures, their change.

Not an engine. A row has q latent numbers t_i (1, or one less than there are classes), each a sum of
the same functions, t = Phi theta with theta (k, q). Arrays of pairs of these are (q, q, n), so that
the values of one pair are side by side.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from mercer.likelihoods import Likelihood, Probit, Softmax

__all__ = ["ClassSites", "ScalarSites", "Sites", "contrasts"]

Floats = NDArray[np.float64]


class Sites(Protocol):
    """The log likelihood of n rows, each to the power of its weight."""

    #: q, the latent numbers of a row.
    width: int
    #: What latent numbers are measured in: the deviation of a probit's noise, or 1.
    unit: float

    def value(self, t: Floats) -> float:
        """Return the log likelihood at t (n, q); -inf where it is no number."""

    def slopes(self, t: Floats) -> tuple[Floats, Floats]:
        """Return its gradient (n, q), and minus its second derivatives (q, q, n)."""

    def lean(self, t: Floats, spread: Floats) -> Floats:
        """Return the gradient (n, q) of minus half the sum of curvature times spread (q, q, n)."""


class ScalarSites:
    """A log-concave likelihood of one latent number a row.

    likelihood : Likelihood
    y, mean : (n,) targets, and the part of the latent numbers that is fixed
    weights : (n,) or None
    """

    width = 1

    def __init__(
        self, likelihood: Likelihood, y: Floats, mean: Floats, weights: Floats | None
    ) -> None:
        self.likelihood, self.y, self.mean, self.weights = likelihood, y, mean, weights
        self.unit = float(likelihood.noise_std) if isinstance(likelihood, Probit) else 1.0

    def value(self, t: Floats) -> float:
        """Return the log likelihood."""
        with np.errstate(all="ignore"):
            rows = self.likelihood.log_density(self.y, self.mean + t[:, 0])
            total = float(np.sum(rows) if self.weights is None else self.weights @ rows)
        return total if np.isfinite(total) else -np.inf

    def slopes(self, t: Floats) -> tuple[Floats, Floats]:
        """Return c and C of (BKM 70, 71), c with the opposite sign."""
        first, second, _ = self._derivatives(t)
        return first[:, None], np.maximum(-second, 0.0)[None, None]

    def lean(self, t: Floats, spread: Floats) -> Floats:
        """Return half the third derivatives times the spread."""
        out: Floats = (0.5 * self._derivatives(t)[2] * spread[0, 0])[:, None]
        return out

    def _derivatives(self, t: Floats) -> list[Floats]:
        with np.errstate(all="ignore"):
            found = self.likelihood.derivatives(self.y, self.mean + t[:, 0])
        if self.weights is None:
            return [np.asarray(one) for one in found]
        return [self.weights * one for one in found]


def contrasts(P: int) -> Floats:
    """Return U (P, P - 1) of orthonormal columns, each of sum 0."""
    return np.asarray(np.linalg.qr(np.eye(P)[:, 1:] - 1.0 / P)[0])


class ClassSites:
    """A softmax of P latent numbers, by their P - 1 contrasts: F = m + t U'.

    What the classes have in common does not matter to the likelihood, and is 0 at the mode under a
    prior that is the same for all.

    Y, mean : (n, P) distributions of the labels, and the part of F that is fixed
    weights : (n,) or None
    """

    unit = 1.0

    def __init__(self, Y: Floats, mean: Floats, weights: Floats | None) -> None:
        self.Y, self.mean, self.weights = Y, mean, weights
        self.U = contrasts(Y.shape[1])
        self.width = Y.shape[1] - 1

    def _weighted(self, values: Floats) -> Floats:
        return values if self.weights is None else self.weights[:, None] * values

    def value(self, t: Floats) -> float:
        """Return the log likelihood."""
        with np.errstate(all="ignore"):
            logs = log_softmax(self.mean + t @ self.U.T, axis=1)
            total = float(np.sum(self._weighted(np.where(self.Y > 0, self.Y * logs, 0.0))))
        return total if np.isfinite(total) else -np.inf

    def slopes(self, t: Floats) -> tuple[Floats, Floats]:
        """Return the gradient, and the curvature U'(diag(pi) - pi pi')U."""
        pi = softmax(self.mean + t @ self.U.T, axis=1)
        # A sum of squares, so that rounding makes nothing negative.
        away = self.U - (pi @ self.U)[:, None]  # (n, P, q)
        curvature = np.einsum("ip,ipc,ipd->cdi", self._weighted(pi), away, away, optimize=True)
        return self._weighted(self.Y - pi) @ self.U, np.ascontiguousarray(curvature)

    def lean(self, t: Floats, spread: Floats) -> Floats:
        """Return the third derivatives' share, from the spread of the contrasts."""
        pi = softmax(self.mean + t @ self.U.T, axis=1)
        S = np.einsum("pc,cdi,qd->ipq", self.U, spread, self.U, optimize=True)
        out: Floats = -0.5 * self._weighted(Softmax.pull_curvature(pi, S)) @ self.U
        return out

    def bend_of_classes(self, t: Floats) -> Floats:
        """Return the curvature (P, P, n) of the classes themselves, w (diag(pi) - pi pi')."""
        pi = softmax(self.mean + t @ self.U.T, axis=1)
        w = self._weighted(pi)
        out = -np.einsum("ip,iq->pqi", w, pi)
        np.einsum("ppi->pi", out)[:] += w.T
        return np.ascontiguousarray(out)
