"""Removing basis points from a posterior, with the loss measured.

With the full kernel (w = 1), removing points by (SOGP 3.16) keeps two things of the posterior q on
the kept subset R: the marginal q(g_R, beta), where g is the part of f that the kernel is the prior
of and beta are the coefficients of the explicit functions, and the prior's conditional of all else
given it. Hence

- the pruned posterior of *any* R follows at once from the moments of (g_R, beta), and
- KL(q, pruned) = D(B) - D(R) with D(R) = KL(q(g_R, beta), p(g_R) x flat), so that losses of
  successive removals add up.

D is a sum over the points, one after the other in any order. With those of R first the loss is the
rest of the sum, and a small one is not the difference of two large numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.linalg import solve_lower
from mercer.posterior.factors import Dense, Factor, InverseTriangular
from mercer.posterior.predictive import at_least_one
from mercer.posterior.pruning_greedy import eliminate
from mercer.posterior.pruning_linear import prune_linear
from mercer.posterior.pruning_moments import (
    Moments,
    all_moments,
    extended_moments,
    subset_moments,
)

if TYPE_CHECKING:
    from mercer.posterior.posterior import Posterior

__all__ = ["prune", "restrict"]

Indices = NDArray[np.intp]

# Redundant points go first where that costs no more than this, in nats.
_NEGLIGIBLE = 1e-3


def prune(posterior: Posterior, n: int, noise: float | None = None) -> tuple[Posterior, float]:
    """Return a posterior on at most n of the basis points, and the loss; see `Posterior.prune`."""
    n = at_least_one("n, the number of basis points to keep,", n)
    if n >= posterior.n_basis:
        return posterior, 0.0
    if posterior.weight:
        with blas_for(posterior.n_basis):
            return _prune_full(posterior, n)
    if noise is not None and not (np.isfinite(noise) and noise > 0):
        raise ValueError(f"noise must be a variance, a positive number, got {noise!r}")
    if noise is None and not posterior._B.factors:
        raise ValueError(
            "a degenerate posterior (w = 0) whose coefficients have no covariance is pruned by its "
            "noisy predictions: give the noise variance, a positive number, got noise=None"
        )
    with blas_for(posterior.n_basis):
        return prune_linear(posterior, n, noise)


def _prune_full(posterior: Posterior, n: int) -> tuple[Posterior, float]:
    kept, moments = all_moments(posterior)
    sound = moments.n_sound
    # Redundant points need not be tried one by one, unless the data have made them count.
    if n <= sound < len(kept) and np.sum(moments.steps()[sound:]) <= _NEGLIGIBLE:
        kept, moments = kept[:sound], moments.first(sound)
    while len(kept) > n:
        # The updates of a removal are exact, but their rounding builds up: begin anew with half,
        # and sooner where that many points are redundant, once they may all have gone.
        sound = moments.n_sound
        target = max(n, len(kept) // 2, sound if sound < len(kept) else 0)
        rest = kept[eliminate(moments, target)]
        rest = rest if len(rest) < len(kept) else kept[:-1]
        kept, moments = subset_moments(posterior, rest)
    return _restricted(posterior, kept, moments)


def restrict(posterior: Posterior, kept: Indices) -> tuple[Posterior, float]:
    """Return a posterior (w = 1) on these of its basis points, and the loss as `prune` has it."""
    with blas_for(posterior.n_basis):
        return _restricted(posterior, *subset_moments(posterior, kept))


def _restricted(posterior: Posterior, kept: Indices, moments: Moments) -> tuple[Posterior, float]:
    pruned = _on_subset(posterior, kept, moments)
    steps = extended_moments(posterior, kept, moments.L).steps()
    return pruned, max(0.0, float(np.sum(steps[len(kept) :])))


def _on_subset(posterior: Posterior, kept: Indices, moments: Moments) -> Posterior:
    """Return the posterior whose moments of (g_R, beta) are given."""
    (k, c), r, L = moments.N.shape[:2], moments.chart.size, moments.L
    # cov = k - |L^-1 k_R|^2 + |S_root' [F h; L^-1 k_R]|^2
    roots = moments.S_root.reshape(r + k, c, -1)
    A: list[Factor] = []
    B: list[Factor] = []
    for p in range(c):
        halves = roots[r:, p].copy(order="F"), roots[:r, p]
        sections = solve_lower(L, halves[0], transpose=True)
        B.append(Dense(np.hstack([sections.T, moments.chart.pull(halves[1]).T])))
        if c == 1:
            A.append(InverseTriangular(L))
        else:  # outputs are independent in the prior: each has rows of its own
            M = np.zeros((c * k, k + posterior.n_features))
            M[p * k : (p + 1) * k, :k] = solve_lower(L, np.eye(k))
            A.append(Dense(M))
    alpha_k = solve_lower(L, moments.u, transpose=True)
    return posterior.replace(
        basis=posterior.basis.take(kept),
        alpha=np.vstack([alpha_k, posterior.alpha[posterior.n_basis :]]),
        A=A if posterior.is_coupled else A[0],
        B=B if posterior.is_coupled else B[0],
    )
