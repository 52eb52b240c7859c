"""Error bars of a kernel expansion: the posterior of its coefficients around the mode (BKM 5.4).

Coefficients that are 0 at the mode are dropped, and the penalties of the others replaced by their
tangents, which leaves the curvature of the likelihood alone (BKM 110). With W the curvature of
minus the log likelihood at each row, in nats, and Phi_M the functions that are in use, beside those
without a penalty,

    [theta_M, beta] ~ N(mode, (Phi_M' W Phi_M)^-1)

which for Gaussian noise of variance v is v (Phi_M'Phi_M)^-1: (BKM 111) and (BKM 112) leave out the
factor v, and have the wrong sign in front of it in the mode. A weight-decay prior drops nothing and
has a curvature of its own. Noise with kinks has no curvature but in these: its Fisher information
stands in, which gives the asymptotic covariance of the estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from scipy.linalg.lapack import dtpqrt, dtrcon

from mercer.compute import blas_for
from mercer.likelihoods import Huber, Likelihood, Logistic, Probit
from mercer.means import Mean, Zero
from mercer.posterior import Basis, Posterior
from mercer.posterior.factors import Dense, Factor, InverseTriangular

__all__ = ["Spread", "curvature", "expansion_posterior", "spread_of", "spread_under"]

Floats = NDArray[np.float64]
#: Rows of the functions in use, and the curvature at each.
Piece = tuple[Floats, Floats]

# A triangle whose reciprocal condition is less is taken for singular, and its singular values
# below that part of the largest for 0.
_SINGULAR, _RANK = 1e-13, 1e-11
# Columns that are brought to a triangle at once.
_PANEL = 64


class Spread(NamedTuple):
    """The covariance of coefficients, F'F.

    factor : F, of as many columns as there are coefficients; None if there are none
    rank : how many directions the rows determine; the others have no variance
    """

    factor: Factor | None
    rank: int

    def var(self, Phi: Floats) -> Floats:
        """Return the variance (t,) of the function for rows (t, k) of the functions in use."""
        if self.factor is None:
            return np.zeros(len(Phi))
        image = self.factor.apply(Phi)
        return np.asarray(np.einsum("ij,ij->j", image, image))

    def covariance(self) -> Floats:
        """Return the covariance (k, k) itself."""
        return np.empty((0, 0)) if self.factor is None else self.factor.gram()


def curvature(likelihood: Likelihood, y: Floats, f: Floats) -> Floats:
    """Return -d2/df2 log p(y | f) at each row, in nats; the Fisher information where it is no use.

    That is for noise with kinks, `Laplace` and `EpsilonInsensitive`. Of Gaussian noise they agree.
    """
    if isinstance(likelihood, (Huber, Logistic, Probit)):
        return np.asarray(-likelihood.derivatives(y, f)[1])
    return np.asarray(likelihood.fisher(f))


def spread_of(pieces: Iterable[Piece], size: int, ridge: Floats | None = None) -> Spread:
    """Return the spread of `size` coefficients, by an orthogonal factorisation of their functions.

    Parameters
    ----------
    pieces : pairs (Phi (b, size), curvature (b,))
        The rows, block by block.
    size : how many functions there are
    ridge : (size,) curvatures of the prior, if it has any
    """
    if not size:
        return Spread(None, 0)
    R = np.empty((0, size)) if ridge is None else np.diag(np.sqrt(ridge))
    for Phi, weights in pieces:
        block = np.multiply(np.sqrt(np.maximum(weights, 0.0))[:, None], Phi, order="F")
        with blas_for(int(np.cbrt(float(block.size) * size))):
            if len(R) == size:  # a triangle, below which the block is brought to 0 in its place
                panel = min(_PANEL, size)
                R = dtpqrt(0, panel, R, block, overwrite_a=1, overwrite_b=1)[0]
            else:
                tall = np.vstack([R, block]) if len(R) else block
                R = qr(tall, mode="r", overwrite_a=True, check_finite=False)[0][:size]
    width = np.max(np.abs(R), axis=0, initial=0.0)
    width = np.where(width > 0, width, 1.0)
    scaled = R / width
    if len(R) == size and dtrcon(scaled, uplo="U")[0] > _SINGULAR:
        # (R'R)^-1 = F'F with F = R'^-1
        return Spread(InverseTriangular(np.asfortranarray(R.T)), size)
    _, s, Vt = svd(scaled, full_matrices=False, check_finite=False)
    kept = s > _RANK * s[0] if s.size else np.zeros(0, dtype=bool)
    return Spread(Dense((Vt[kept] / s[kept][:, None]) / width), int(np.sum(kept)))


def spread_under(
    likelihood: Likelihood,
    pieces: Any,
    y: Floats,
    f: Floats,
    weights: Floats | None,
    size: int,
    ridge: Floats | None = None,
) -> Spread:
    """Return the spread of coefficients under a likelihood, f the mode at the rows.

    `pieces()` yields pairs of a slice of the rows and the functions there. Rows beyond the
    threshold of `Huber` noise have no curvature; if the others do not determine all coefficients
    the Fisher information serves for all rows.
    """

    def of(curved: Floats) -> Spread:
        own = curved if weights is None else weights * curved
        return spread_of(((Phi, own[rows]) for rows, Phi in pieces()), size, ridge)

    spread = of(curvature(likelihood, y, f))
    if spread.rank < size and isinstance(likelihood, Huber):
        spread = of(np.asarray(likelihood.fisher(f)))
    return spread


def expansion_posterior(
    basis: Basis,
    coef: Floats,
    spread: Spread,
    ratio: float = 1.0,
    mean: Mean | None = None,
    scale: float = 1.0,
) -> Posterior:
    """Return the posterior in its degenerate form.

    Parameters
    ----------
    basis : the functions in use, then those without a penalty
    coef : (k,) their coefficients
    spread : of these
    ratio : what coefficients are divided by, to be in units of `scale`
    mean : the part of the function that is fixed
    scale : the units of the output
    """
    B: Factor | None = spread.factor
    if isinstance(B, InverseTriangular) and ratio != 1.0:
        B = InverseTriangular(ratio * B.L)
    elif isinstance(B, Dense) and ratio != 1.0:
        B = Dense(B.M / ratio)
    fixed = Zero() if mean is None else mean
    return Posterior(basis, coef[:, None] / ratio, None, B, 0, fixed, [scale])
