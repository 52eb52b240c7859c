"""Observations of an expansion in given functions, and a solution with its certificate.

Not an engine: `laplacian` is, and has the model and the notation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercer.inference._columns import Columns
from mercer.inference._losses import Loss
from mercer.inference._unit_loss import unit_loss

__all__ = ["Expansion", "ExpansionProblem"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(float).eps)
# How often pulls that would change sides are made 0, before all are.
_TRIES = 10
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class ExpansionProblem:
    """Observations y_i of f = m + Phi theta + H beta, whose loss is in unit scale.

    columns : Phi, (n, M), whose coefficients theta have a prior
    loss : Loss, with the targets
    mean : (n,) m
    H : (n, r) functions whose coefficients beta have none; None stands for no such function
    weights : (n,) powers of the likelihood, at least 0; None stands for ones
    """

    columns: Columns
    loss: Loss
    mean: Floats
    H: Floats | None = None
    weights: Floats | None = None

    def __post_init__(self) -> None:
        n = self.columns.n
        if n == 0:
            raise ValueError("at least one row is wanted, got none")
        wanted: dict[str, tuple[Floats, tuple[int, ...]]] = {
            "y": (self.loss.y, (n,)),
            "mean": (self.mean, (n,)),
        }
        if self.weights is not None:
            wanted["weights"] = self.weights, (n,)
        if self.H is not None:
            wanted["H"] = self.H, (n, np.shape(self.H)[1] if np.ndim(self.H) == 2 else 1)
        for name, (given, shape) in wanted.items():
            if np.shape(given) != shape:
                raise ValueError(f"{name} must have shape {shape}, got {np.shape(given)}")
            if not np.all(np.isfinite(given)):
                raise ValueError(f"{name} must be finite, got NaN or infinity in it")
        if self.weights is not None:
            if np.any(self.weights < 0):
                raise ValueError(f"weights must not be negative, got {np.min(self.weights)}")
            if not np.any(self.weights):
                raise ValueError("at least one row with a weight is wanted, all weights are 0")

    @classmethod
    def of(
        cls,
        columns: Columns,
        noise: Any,
        y: Any,
        mean: Any = None,
        H: Any = None,
        weights: Any = None,
    ) -> Self:
        """Return the problem of a likelihood, or of "soft_margin" or "quadratic_soft_margin".

        Variances of the rows in `Gaussian` are made part of the weights.
        """
        y = np.asarray(y, dtype=float)
        loss, factor = unit_loss(noise, y)
        w = None if weights is None else np.asarray(weights, dtype=float)
        if factor is not None:
            w = factor if w is None else w * factor
        m = np.zeros(y.shape) if mean is None else np.asarray(mean, dtype=float)
        return cls(columns, loss, m, None if H is None else np.asarray(H, dtype=float), w)

    def rows(self, kept: Any) -> Self:
        """Return the problem of some rows, with the same functions: of a fold."""
        return replace(
            self,
            columns=self.columns.rows(kept),
            loss=self.loss.rows(kept),
            mean=self.mean[kept],
            H=None if self.H is None else self.H[kept],
            weights=None if self.weights is None else self.weights[kept],
        )

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.columns.n

    @property
    def n_free(self) -> int:
        """r, the number of functions without a penalty."""
        return 0 if self.H is None else int(self.H.shape[1])

    def scale(self, lam: float) -> float:
        """Return s of the prior that has the penalty lam: unit/lam."""
        return self.loss.unit / lam

    def value(self, f: Floats) -> float:
        """Return sum_i w_i loss_i(f_i)."""
        return float(np.sum(self.weighted(self.loss.values(f))))

    def pull(self, f: Floats) -> Floats:
        """Return u = -w loss'(f), (n,)."""
        return self.weighted(self.loss.pull(f))

    def curvature(self, f: Floats) -> Floats:
        """Return w loss''(f), (n,)."""
        return self.weighted(self.loss.curvature(f))

    def reach(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest pull of each row, (n,) both."""
        low, high = self.loss.reach()
        return self.weighted(low), self.weighted(high)

    def weighted(self, values: Floats) -> Floats:
        """Return values (n,) times the weights; 0 at rows of weight 0, whatever the values are."""
        if self.weights is None:
            return values
        with np.errstate(invalid="ignore"):
            return np.where(self.weights > 0, self.weights * values, 0.0)

    def everywhere(self, so: NDArray[np.bool_]) -> bool:
        """Whether something is so at all rows that have a weight."""
        return bool(np.all(so if self.weights is None else so[self.weights > 0]))

    def dual_value(self, u: Floats) -> float:
        """Return -sum_i w_i loss_i*(-u_i/w_i) - u'm, at most F where u is feasible.

        Feasible is a `balanced` u with |Phi_j'u| <= lam_j. A pull that rounding alone has put out
        of reach is taken for the greatest.
        """
        w = np.ones(self.n) if self.weights is None else self.weights
        v = -np.divide(u, w, out=np.zeros(self.n), where=w > 0)
        low, high = self.loss.reach()
        near = np.clip(v, -high, -low)
        v = np.where(np.abs(near - v) <= 8.0 * _EPS * np.abs(v), near, v)
        return float(-np.sum(self.weighted(self.loss.conjugate(v))) - u @ self.mean)

    def balanced(self, u: Floats) -> Floats:
        """Return pulls near u that are in reach and leave the free functions at rest: H'u = 0.

        Pulls are changed by a share of their own size, u_i - |u_i| h_i'z: those that are 0 stay
        so. Pulls that can be to one side only, and would have to go to the other, are made 0. All
        are shrunk afterwards if one is out of reach. Where this does not end all are 0, which is
        always feasible.
        """
        low, high = self.reach()
        u = np.clip(u, low, high)
        if self.H is None or not self.H.shape[1]:
            return u
        for _ in range(_TRIES):
            for _ in range(2):  # once for the change, once for its rounding
                size = np.abs(u)
                root = np.sqrt(size)
                z = np.linalg.lstsq(root[:, None] * self.H, root * np.sign(u), rcond=None)[0]
                u = u - size * (self.H @ z)
            wrong = (u < low) & (low == 0) | (u > high) & (high == 0)
            if not np.any(wrong):
                break
            u = np.where(wrong, 0.0, u)
        else:
            return np.zeros(self.n)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            room = np.where(u > 0, high / u, np.where(u < 0, low / u, np.inf))
        return u * min(1.0, float(np.min(room)))


class Expansion(NamedTuple):
    """A solution, and how good it is.

    indices : (k,) the functions in the expansion, ascending
    coef : (k,) their coefficients, none of them 0
    beta : (r,) the coefficients of the functions without a penalty
    latent : (n,) f
    pull : (n,) the pulls u = -w loss'(f), with H'u = 0; shrunk, if need be, they give `dual`
    objective : F, in unit scale (nats are F over `loss.unit`)
    dual : D(u) <= F
    penalties : (k,) the slope of the penalty in |theta_j| at each coefficient
    status : "certified", "stopped" short of the tolerance, or "interrupted"
    n_passes : over all columns
    n_columns : that were computed
    """

    indices: NDArray[np.intp]
    coef: Floats
    beta: Floats
    latent: Floats
    pull: Floats
    objective: float
    dual: float
    penalties: Floats
    status: str
    n_passes: int
    n_columns: int

    @property
    def gap(self) -> float:
        """|F - D|/|F|: D is above F by rounding alone, and a gap too where that is much."""
        return abs(self.objective - self.dual) / max(abs(self.objective), _TINY)
