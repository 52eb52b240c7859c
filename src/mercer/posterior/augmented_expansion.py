"""Predictions of a linear model to which a function at each point is added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import row_blocks
from mercer.posterior.factors import frozen
from mercer.posterior.gradients import pull_phi
from mercer.posterior.posterior import Posterior
from mercer.posterior.predictive import InputGradients, MarginalPredictive
from mercer.registry import storable

__all__ = ["AugmentedExpansion"]

Floats = NDArray[np.float64]

# Entries of all arrays that are worked on at once, about.
_ENTRIES = 4_000_000


class _Added(NamedTuple):
    """What the functions that are added do, for t points.

    K : (n, t) their values at the rows; phi : (t, m) those of the model's at the points
    c, u : (m, t) Phi'W K and what the factor makes of it; w : (m, t) what it makes of phi
    own : (t,) what the model leaves of k(x, x)
    pull, precision : (t,) mean times precision of the coefficient, and the precision
    """

    K: Floats
    phi: Floats
    c: Floats
    u: Floats
    w: Floats
    own: Floats
    pull: Floats
    precision: Floats


@storable
class AugmentedExpansion(MarginalPredictive):
    """Each point is predicted with a function centred at it in the model (UV 8.1, 10.2).

    A degenerate posterior is certain of what its functions cannot express: far from all of them
    its variance is 0. The function k(., x) is added, whose coefficient has a normal prior, and the
    rows say what they can of it. Far from them all that is known of it is the prior, and the
    variance is that of the coefficient times k(x, x)^2.

    Points are predicted one by one: two of them belong to two models, and have no joint
    distribution. `cov` and `sample` take one row.

    Parameters
    ----------
    posterior : Posterior
        A degenerate one of one output. Its kernel is that of the functions that are added.
    X : inputs
        The n training rows.
    pull, curvature : (n,) arrays
        The first derivative and minus the second of the log likelihood of each row at the
        posterior's mean, in the units of `posterior.scale`: (y - f)/v and 1/v under Gaussian noise
        of variance v, times the weight of the row.
    variance : float
        The prior variance of the coefficient that is added, in units of `posterior.scale` squared.

    Notes
    -----
    Keeps the training rows. With n of them and m functions a point costs O(n m).
    """

    _alone = (
        "each point is predicted with a function of its own added, in a model of its own; ask for "
        "one row, or fit with augment=False"
    )

    def __init__(
        self,
        posterior: Posterior,
        X: Any,
        pull: ArrayLike,
        curvature: ArrayLike,
        variance: float,
    ) -> None:
        if posterior.weight or posterior.n_outputs != 1:
            raise ValueError(
                "a degenerate posterior of one output is wanted, got "
                f"w = {posterior.weight} and {posterior.n_outputs} output(s)"
            )
        if not (np.isfinite(variance) and variance > 0):
            raise ValueError(f"variance must be a positive number, got {variance!r}")
        self.posterior, self.variance = posterior, float(variance)
        self.X = frozen(np.array(posterior.kernel.inputs(X)))
        self.pull, self.curvature = (frozen(np.array(a, dtype=float)) for a in (pull, curvature))
        n = len(self.X)
        if {self.pull.shape, self.curvature.shape} != {(n,)}:
            raise ValueError(
                f"{n} rows want as many derivatives, got shapes {self.pull.shape} and "
                f"{self.curvature.shape}"
            )
        if np.any(self.curvature < 0):
            raise ValueError("curvatures must not be negative")

    @property
    def n_outputs(self) -> int:
        """The number P of outputs: 1."""
        return 1

    @property
    def scale(self) -> Floats:
        """The units of the output (1,)."""
        return self.posterior.scale

    # --- predictions --------------------------------------------------------------------------

    def _added(self, X: Any) -> Iterator[tuple[slice, _Added]]:
        """Yield blocks of points with what is added there."""
        posterior, kernel = self.posterior, self.posterior.kernel
        factor = posterior._B.factors[0] if posterior._B.factors else None
        n, m = len(self.X), len(posterior.alpha)
        for s in row_blocks(len(X), max(1, _ENTRIES // max(n, m, 1))):
            K = kernel(self.X, X[s])
            phi = posterior.basis.phi(X[s])
            c = np.zeros((m, len(phi)))
            for rows in row_blocks(n, max(1, _ENTRIES // max(m, 1))):
                over = self.curvature[rows, None] * K[rows]
                c += posterior.basis.phi(self.X[rows]).T @ over
            u = w = np.zeros((0, len(phi)))
            if factor is not None:
                u, w = factor.apply(np.ascontiguousarray(c.T)), factor.apply(phi)
            own = kernel.diag(X[s]) - np.einsum("ij,ij->j", u, w)
            told = np.einsum("i,ij,ij->j", self.curvature, K, K) - np.einsum("ij,ij->j", u, u)
            precision = 1.0 / self.variance + np.maximum(told, 0.0)
            yield s, _Added(K, phi, c, u, w, own, self.pull @ K, precision)

    def mean(self, X: Any) -> Floats:
        """Return the mean at the rows of X, shape (n, 1)."""
        return self.mean_and_var(X)[0]

    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, 1)."""
        return self.mean_and_var(X)[1]

    def mean_and_var(self, X: Any) -> tuple[Floats, Floats]:
        """Return `mean(X)` and `var(X)`, which share nearly all work."""
        X = self.posterior.kernel.inputs(X)
        mean, var = self.posterior.mean_and_var(X)
        s = float(self.scale[0])
        for rows, added in self._added(X):
            share = added.own / added.precision
            mean[rows, 0] += s * share * added.pull
            var[rows, 0] += s**2 * share * added.own
        return mean, var

    def gradients(self, X: Any) -> InputGradients:
        """Return the derivatives of mean and variance in the inputs, each (n, d, 1)."""
        X = self.posterior.kernel.inputs(X)
        dmean, dvar = self.posterior.gradients(X)
        s = float(self.scale[0])
        for rows, a in self._added(X):
            share = a.own / a.precision
            # d(g q/p) and d(g^2/p) in g = own, q = pull and p = precision
            of_mean = a.pull / a.precision, share, -share * a.pull / a.precision
            of_var = 2.0 * share, np.zeros_like(share), -(share**2)
            dmean[rows, :, 0] += s * self._pulled(X[rows], a, *of_mean)
            dvar[rows, :, 0] += s**2 * self._pulled(X[rows], a, *of_var)
        return InputGradients(dmean, dvar)

    def _pulled(self, X: Any, a: _Added, dg: Floats, dq: Floats, dp: Floats) -> Floats:
        """Chain derivatives in g, q and p, each (t,), to the points (t, d)."""
        posterior, kernel = self.posterior, self.posterior.kernel
        m = len(posterior.alpha)
        Xi_c = Xi_phi = np.zeros((m, len(dg)))
        if posterior._B.factors:
            factor = posterior._B.factors[0]
            Xi_c, Xi_phi = factor.pull(a.u), factor.pull(a.w)
        # g = k(x,x) - phi'Xi c and p = 1/a + K'W K - c'Xi c, with c = Phi'W K
        G = self.pull[:, None] * dq
        G += 2.0 * self.curvature[:, None] * a.K * dp
        dc = -Xi_phi * dg - 2.0 * Xi_c * dp
        for rows in row_blocks(len(self.X), max(1, _ENTRIES // max(m, 1))):
            G[rows] += self.curvature[rows, None] * (posterior.basis.phi(self.X[rows]) @ dc)
        across = kernel.pullback(self.X, X, G).Z
        own = kernel.pullback_diag(X, dg).X
        assert across is not None and own is not None
        return np.asarray(across + own + pull_phi(posterior, X, -(Xi_c * dg).T))

    # --- saving, describing -------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        names = ("posterior", "X", "pull", "curvature", "variance")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> AugmentedExpansion:
        """Rebuild from `to_state`."""
        return cls(**state)

    def describe(self) -> str:
        """Return a few lines of text on what this is made of."""
        return (
            f"Each point with a function of its own, variance {self.variance:.4g}, beside "
            f"{len(self.X)} training rows and\n{self.posterior.describe()}"
        )
