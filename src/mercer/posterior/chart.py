"""Explicit functions in coordinates in which rounding does no harm.

Coefficients of functions that are much alike, as the sections of SoR or a column far from 0 beside
a constant, have covariances as large as the inverse of what the functions differ by: h'S h would
cancel by that. With cov = |F h|^2 the functions F h have coefficients of covariance 1 (several
outputs F_p h those of one F, with covariances of the size of 1), beside the mean a'h that there is.
`pruning_moments` and on-line learning take a posterior apart so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.factor_set import Image
from mercer.posterior.factors import Dense, Factor
from mercer.registry import storable

if TYPE_CHECKING:
    from mercer.posterior.posterior import Posterior

__all__ = ["Chart", "charted"]

Floats = NDArray[np.float64]


@storable
class Chart:
    """The functions F h of explicit functions h, r of them.

    Parameters
    ----------
    coef : (r, P) array
        a, the mean of the coefficients of h.
    factor : Factor, optional
        F (q, r); without it the coefficients are known, and q = 0.
    """

    def __init__(self, coef: Floats, factor: Factor | None = None) -> None:
        self.coef, self.factor = np.asarray(coef, dtype=float), factor

    @property
    def size(self) -> int:
        """The number q of functions F h."""
        return 0 if self.factor is None else self.factor.n_rows

    def features(self, H: Floats) -> Floats:
        """Return F h for the rows h of H (n, r), shape (n, q), C order."""
        if self.factor is None:
            return np.empty((len(H), 0))
        return np.ascontiguousarray(self.factor.apply(H).T)

    def pull(self, V: Floats) -> Floats:
        """Return F'V (r, k) for V (q, k)."""
        out = np.zeros((len(self.coef), V.shape[1]))
        if self.factor is not None:
            out[: self.factor.n_columns] = self.factor.pull(np.asfortranarray(V))
        return out

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"coef": self.coef, "factor": self.factor}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        return cls(**state)


def charted(posterior: Posterior, rows: Floats) -> tuple[Chart, list[Image], list[Image]]:
    """Return the chart of a posterior, and the images under B and under A that its covariance has.

    These are of the coefficients of F h and then of rows of phi (k, m + r), in q + k columns. The
    explicit functions of a degenerate posterior are all of phi.
    """
    first = posterior.n_basis if posterior.weight else 0
    coef, width = posterior.alpha[first:], len(posterior.alpha)
    own = np.eye(len(coef), width, k=first)
    A, B = posterior._A, posterior._B
    if not len(own) or not B.factors:
        return Chart(coef), B.images(rows), A.images(rows)
    if any(np.any(image.rows) for image in A.images(own)):
        rows = np.vstack([own, rows])  # F = 1: a difference of squares has no root at hand
        return Chart(coef, Dense(np.eye(len(own)))), B.images(rows), A.images(rows)
    if len(B.factors) == 1 and not first and B.n_rows <= width:
        F = B.compact[0]
        bases = [np.eye(F.n_rows)]
    else:  # B_p h = Q_p (R h), with Q_p some of the rows of an orthogonal matrix
        images = B.images(own)
        Q, R = np.linalg.qr(np.vstack([image.rows for image in images]))
        F = Dense(R)
        bases = np.split(Q, np.cumsum([len(image.rows) for image in images])[:-1])
    b, a = B.images(rows), A.images(rows)
    none = [np.zeros((len(i.rows), F.n_rows)) for i in a]  # no coefficient of h has one under A
    return (
        Chart(coef, F),
        [i._replace(rows=np.hstack([Q, i.rows])) for Q, i in zip(bases, b, strict=True)],
        [i._replace(rows=np.hstack([zeros, i.rows])) for zeros, i in zip(none, a, strict=True)],
    )
