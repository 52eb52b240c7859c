"""Observations of an expansion whose coefficients have precisions of their own, and a solution.

Not an engine: `relevance` is, and has the model and the notation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from mercer.inference._columns import Columns
from mercer.inference._expansion_posterior import Spread
from mercer.posterior.factors import InverseTriangular

__all__ = ["Hyperprior", "Relevance", "RelevanceProblem", "Report", "check_rows", "is_flat"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Told how many steps were made, of the penalised evidence, and of how many functions are in.
Report = Callable[[int, float, int], None]

# Where a hyperprior is looked at to see whether it is flat.
_PLACES = np.array([1e-9, 1e-3, 1.0, 1e2, 1e7])


class Hyperprior(Protocol):
    """A density of ln s, s the precision of a coefficient (BKM 118)."""

    def log_hyper(self, s: ArrayLike) -> Floats:
        """Return the log density of ln s; up to a constant where it has no integral."""

    def slope(self, s: ArrayLike) -> Floats:
        """Return its derivative in ln s."""

    def best_precision(self, S: ArrayLike, Q: ArrayLike) -> tuple[Floats, Floats]:
        """Return s that maximises [ln s - ln(s + S) + Q^2/(s + S)]/2 + log_hyper(s), and the value.

        (inf, 0) where no s has more than 0, which is the value of a function that is left out.
        """


def is_flat(hyperprior: Hyperprior) -> bool:
    """Return whether a hyperprior is 0 everywhere."""
    return not np.any(hyperprior.log_hyper(_PLACES))


def check_rows(
    columns: Columns,
    weights: Floats | None,
    always: Sequence[int],
    shape: tuple[int, ...],
    **arrays: Floats,
) -> None:
    """Raise ValueError for rows of a problem that cannot be; `arrays` are to have that shape."""
    n, M = columns.n, columns.size
    if n == 0 or M == 0:
        raise ValueError(f"at least one row and one column are wanted, got {n} and {M}")
    for name, given in arrays.items():
        _require_finite(name, given, shape)
    if weights is not None:
        _require_finite("weights", weights, (n,))
        if np.any(np.asarray(weights) < 0):
            raise ValueError(f"weights must not be negative, got {np.min(weights)}")
        if not np.any(weights):
            raise ValueError("at least one row with a weight is wanted, all weights are 0")
    if any(not 0 <= j < M for j in always):
        raise ValueError(f"always must hold columns from 0 to {M - 1}, got {always!r}")


def _require_finite(name: str, given: Floats, shape: tuple[int, ...]) -> None:
    if np.shape(given) != shape:
        raise ValueError(f"{name} must have shape {shape}, got {np.shape(given)}")
    if not np.all(np.isfinite(given)):
        raise ValueError(f"{name} must be finite, got NaN or infinity in it")


@dataclass(frozen=True)
class RelevanceProblem:
    """Observations y = m + Phi theta + e, with theta_j ~ N(0, 1/s_j) and e_i ~ N(0, v/w_i).

    columns : Phi, (n, M)
    y, mean : (n,) targets, and m
    weights : (n,) powers of the likelihood, at least 0; None stands for ones
    hyperprior : of the precisions s_j
    noise : v; None where it is learned
    noise_prior : shape c and rate d of a Gamma density of 1/v; (0, 0) is flat in ln v
    always : columns that stay in the model, whatever the evidence says
    noise_floor : what v may not go below when it is learned, in units of the variance of y - m
    """

    columns: Columns
    y: Floats
    mean: Floats
    weights: Floats | None
    hyperprior: Hyperprior
    noise: float | None = None
    noise_prior: tuple[float, float] = (0.0, 0.0)
    always: Sequence[int] = ()
    noise_floor: float = 1e-8

    def __post_init__(self) -> None:
        shape = (self.columns.n,)
        check_rows(self.columns, self.weights, self.always, shape, y=self.y, mean=self.mean)
        if self.noise is not None and not (np.isfinite(self.noise) and self.noise > 0):
            raise ValueError(f"noise must be a positive variance or None, got {self.noise!r}")
        c, d = self.noise_prior
        if not (0 <= c < np.inf and 0 <= d < np.inf):
            raise ValueError(f"noise_prior must be two numbers of at least 0, got {c!r} and {d!r}")
        if not 0 < self.noise_floor < 1:
            raise ValueError(f"noise_floor must be between 0 and 1, got {self.noise_floor!r}")


class Relevance(NamedTuple):
    """A model of few functions, with the posterior of their coefficients.

    indices : (k,) the functions in the model, ascending, at least one
    mean : (k,) mu, posterior means of their coefficients
    factor : (k, k) upper triangular R; the posterior covariance is Xi = (R'R)^-1
    precisions : (k,) s
    noise : v; (n,) variances of the rows after a robust fit
    latent : (n,) m + Phi mu
    log_evidence : ln p(y | s, v) (BKM 127); the bound of "variational", which lacks constants where
        hyperpriors are flat
    history : penalised evidence (BKM 132) after each step, or the bound; it never decreases
    status : "converged", "stopped" after `max_iter`, or "interrupted"
    n_iterations : steps that were made
    objective : the last of the history
    """

    indices: Indices
    mean: Floats
    factor: Floats
    precisions: Floats
    noise: float | Floats
    latent: Floats
    log_evidence: float
    history: Floats
    status: str
    n_iterations: int
    objective: float

    @property
    def n_determined(self) -> float:
        """How many coefficients the rows determine: sum_i (1 - s_i Xi_ii), as in (BKM 135)."""
        root = solve_triangular(self.factor, np.eye(len(self.indices)))
        return float(np.sum(1.0 - self.precisions * np.sum(root**2, axis=1)))

    @property
    def spread(self) -> Spread:
        """The posterior covariance of the coefficients: (R'R)^-1 = F'F with F = R'^-1."""
        return Spread(InverseTriangular(np.asfortranarray(self.factor.T)), len(self.indices))
