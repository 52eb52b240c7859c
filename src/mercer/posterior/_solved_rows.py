"""Training rows and the solution of a sparse fit, kept to be solved again with a point added."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dsyrk

from mercer.compute import map_tiles, row_blocks
from mercer.kernels import Kernel
from mercer.linalg import cholesky, solve_lower
from mercer.posterior.factors import InverseTriangular, frozen
from mercer.registry import storable

__all__ = ["ENTRIES", "Point", "SolvedRows"]

Floats = NDArray[np.float64]

# Of the prior variance: a point of which the inducing inputs leave less is one of them.
_NONE_LEFT = 1e-10
#: Entries of a block of K_fu.
ENTRIES = 1_000_000


class Point(NamedTuple):
    """What the inducing inputs know of t points.

    K : (m, t) k_u
    a : (m, t) LA^-1 k_u
    w : (m, t) K_uu^-1 k_u
    delta : (t,) k(x,x) - k_u' w; 1 for a point that has joined already
    joins : (t,) 1.0, or 0.0 for a point that has joined already
    """

    K: Floats
    a: Floats
    w: Floats
    delta: Floats
    joins: Floats


@storable
class SolvedRows:
    """Training rows and the solution without the point.

    Parameters
    ----------
    kernel : Kernel
    Z : inducing inputs, m rows
    L, LA : InverseTriangular
        L L' = K_uu and LA LA' = A = K_uu + K_uf Lambda^-1 K_fu.
    X : inputs, n rows
    T : (n, q) array
        Targets, and regressors of the mean.
    noise, weights : (n,) arrays
    training : {"deterministic", "independent", "blocks"}
        What is kept of K - Q in Lambda.
    power : float
        The share of its diagonal that is.
    groups : (n,) array
        The blocks that rows belong to, which stand together.
    alpha : (m, q) array
        A^-1 K_uf Lambda^-1 T.
    S : (q, q) array
        T' (Q + Lambda)^-1 T.
    """

    def __init__(
        self,
        kernel: Kernel,
        Z: Any,
        L: InverseTriangular,
        LA: InverseTriangular,
        X: Any,
        T: ArrayLike,
        noise: ArrayLike,
        weights: ArrayLike,
        training: str,
        power: float,
        groups: ArrayLike,
        alpha: ArrayLike,
        S: ArrayLike,
    ) -> None:
        self.kernel, self.L, self.LA = kernel, L, LA
        self.Z, self.X = frozen(np.asarray(Z)), frozen(np.asarray(X))
        arrays = (frozen(np.asarray(a, dtype=float)) for a in (T, noise, weights, alpha, S))
        self.T, self.noise, self.weights, self.alpha, self.S = arrays
        self.training, self.power, self.groups = training, float(power), frozen(np.asarray(groups))
        n, m = len(self.X), len(self.Z)
        if {len(self.T), len(self.noise), len(self.weights), len(self.groups)} != {n}:
            raise ValueError(f"{n} rows want as many targets, noise variances, weights and groups")
        if (L.n_rows, LA.n_rows, len(self.alpha)) != (m, m, m):
            raise ValueError(f"{m} inducing inputs want triangles and coefficients of that order")
        self._kept: list[Any] = []

    def point(self, X: Any) -> Point:
        """Return what the inducing inputs know of the rows of X."""
        K = self.kernel(X, self.Z).T
        v, prior = solve_lower(self.L.L, K), self.kernel.diag(X)
        delta = prior - np.einsum("ij,ij->j", v, v)
        joins = delta > _NONE_LEFT * prior
        w = solve_lower(self.L.L, v, transpose=True, overwrite=True)
        return Point(K, solve_lower(self.LA.L, K), w, np.where(joins, delta, 1.0), joins + 0.0)

    def rho(self, rows: Any, K: Floats, X: Any, point: Point) -> Floats:
        """Return what is left of the covariance (b, t) of rows, K their K_fu, and X."""
        return np.asarray((self.kernel(rows, X) - K @ point.w) * point.joins)

    def spans(self) -> list[slice]:
        """Return where the blocks are."""
        edges = np.flatnonzero(self.groups[1:] != self.groups[:-1]) + 1
        bounds = [0, *edges.tolist(), len(self.groups)]
        return [slice(a, b) for a, b in pairwise(bounds)]

    def kept(self) -> list[Any]:
        """Return what Lambda has of K - Q, computed once: O(n m^2).

        For "independent" its diagonal, (n,), alone; for "blocks" their factors, n b numbers.
        """
        if not self._kept:
            spans = self.spans()
            if self.training == "independent":
                spans = row_blocks(len(self.X), max(1, ENTRIES // len(self.Z)))
            found = map_tiles(self._keep, spans)
            diagonal = self.training == "independent"
            self._kept = [np.concatenate(found)] if diagonal else found
        return self._kept

    def _keep(self, s: slice) -> Floats:
        X = self.X[s]
        V = solve_lower(self.L.L, self.kernel(X, self.Z).T, overwrite=True)
        if self.training == "independent":
            d = self.kernel.diag(X) - np.einsum("ij,ij->j", V, V)
            return np.asarray(np.maximum(d, 0.0))
        C = self.kernel.gram_lower(X)
        C = dsyrk(-1.0, V, 1.0, C, trans=1, lower=1, overwrite_c=1)
        C.reshape(-1, order="F")[:: len(C) + 1] += self.noise[s] / self.weights[s]
        return cholesky(C, 0.0).L

    def over_lambda(self, rho: Floats, delta: Floats, B: Floats) -> Floats:
        """Return Lambda^-1 B, Lambda as it is with a point added, for t points.

        rho : (n, t), delta : (t,), B : (n, t, k)
        """
        if self.training == "deterministic":
            return np.asarray(B * (self.weights / self.noise)[:, None, None])
        if self.training == "independent":
            kept = np.maximum(self.kept()[0][:, None] - rho**2 / delta, 0.0)
            variance = self.noise[:, None] + self.power * kept
            return np.asarray(B * (self.weights[:, None] / variance)[:, :, None])
        out = np.empty_like(B)
        for s, R in zip(self.spans(), self.kept(), strict=True):
            both = np.concatenate([B[s], rho[s, :, None]], axis=2)
            flat = np.asfortranarray(both.reshape(len(both), -1))
            over = solve_lower(R, solve_lower(R, flat), transpose=True).reshape(both.shape)
            gain = 1.0 / (delta - np.einsum("nt,nt->t", rho[s], over[:, :, -1]))
            along = np.einsum("nt,ntk->tk", over[:, :, -1], B[s]) * gain[:, None]
            out[s] = over[:, :, :-1] + over[:, :, -1:] * along
        return out

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        names = "kernel Z L LA X T noise weights training power groups alpha S"
        return {name: getattr(self, name) for name in names.split()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SolvedRows:
        """Rebuild from `to_state`."""
        return cls(**state)
