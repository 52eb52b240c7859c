"""Posteriors of other methods, made ready to be gone on with on-line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from mercer.compute import blas_for
from mercer.inference._online_moments import refresh
from mercer.kernels import Kernel
from mercer.likelihoods import Gaussian, Likelihood
from mercer.linalg import solve_lower
from mercer.linalg.recursion import Arrays, recursion
from mercer.means import Mean
from mercer.posterior import Basis, Dense, InverseTriangular, Posterior
from mercer.posterior.factors import Factor, RowBlock
from mercer.posterior.pruning import restrict

__all__ = [
    "joined",
    "lifted",
    "likeliest_factor",
    "remove_redundant",
    "require_same_model",
    "within",
]

Floats = NDArray[np.float64]

# Points of which the others leave no more, in units of k(x, x), are not told from them where a
# posterior is lifted: the jitter of a fit on such points says more of them than the data.
_RANK = 1e-8
# The process has held its own points to the floor with a Q that was right to as many digits.
_SLACK = 0.999


def lifted(posterior: Posterior, factor: float = 1.0) -> Posterior:
    """Return a degenerate posterior as one under the full kernel: DTC (UV 20b beside 16b).

    What it says of the function at its points stays, and the prior's conditional is added to it.
    Points that others determine but for rounding are left out, and nothing is lost by that. With
    K_BB = V'V and V = L^-1 K_RB, u = L^-1 g_R has the moments of V times the weights. If `factor`
    is given the prior has so many times the kernel for its covariance, see `likeliest_factor`.

    Raises
    ------
    ValueError
        If the kernel is no covariance, of which there is no such prior.
    """
    if not posterior.kernel.is_mercer:
        raise ValueError(
            f"lift=True goes on under a prior with the kernel for its covariance, and "
            f"{posterior.kernel!r} is none. Leave lift out: weights of such functions are updated "
            "as they are"
        )
    m, r = posterior.n_basis, posterior.n_features
    kernel = posterior.kernel if factor == 1.0 else factor * posterior.kernel
    if not m:
        empty = Basis(kernel, None, posterior.basis.features)
        return posterior.replace(basis=empty, weight=1)
    kept, V = _by_novelty(posterior, _RANK)
    k, c = len(kept), posterior.n_outputs if posterior.is_coupled else 1
    rows = np.zeros((k + r, m + r))
    rows[:k, :m], rows[k:, m:] = V, np.eye(r)
    with blas_for(m):
        L = np.asfortranarray(V[:, kept].T)
        sections = _back(L, V @ posterior.alpha[:m]) / factor
        alpha = np.vstack([sections, posterior.alpha[m:]])
        B: list[Factor] = []
        for image, start in posterior._B.images(rows):
            M = np.hstack([_back(L, image[:, :k].T).T / factor, image[:, k:]])
            B.append(RowBlock(Dense(M), start, posterior._B.n_rows) if c > 1 else Dense(M))
    own = InverseTriangular(np.sqrt(factor) * L)
    A = [RowBlock(own, p * k, c * k) for p in range(c)] if posterior.is_coupled else own
    points = posterior.basis.take(kept).points
    return posterior.replace(
        basis=Basis(kernel, points, posterior.basis.features),
        alpha=alpha,
        A=A,
        B=(B if posterior.is_coupled else B[0]) if B else None,
        weight=1,
    )


def likeliest_factor(posterior: Posterior) -> float:
    """Return how many times the kernel the function of a degenerate posterior is likeliest under.

    For z, the function without its explicit part at the k points that others do not determine, and
    the covariance v K, the expected log density is greatest at v = E[z'K^-1 z]/k, the mean over
    outputs. It is 1 where a process under the kernel was fitted by the evidence of its variance
    (the step of expectation maximisation). Weights with priors of their own, as those of relevance
    vectors and Laplacian processes have, say nothing of the size of a kernel.
    """
    m, r = posterior.n_basis, posterior.n_features
    if not m:
        return 1.0
    kept, V = _by_novelty(posterior, _RANK)
    rows = np.hstack([V, np.zeros((len(V), r))])  # of the sections
    squares = np.sum((V @ posterior.alpha[:m]) ** 2)
    spread = sum(float(np.sum(image**2)) for image, _ in posterior._B.images(rows))
    shared = 1 if posterior.is_coupled else posterior.n_outputs
    found = (squares + shared * spread) / (len(kept) * posterior.n_outputs)
    return float(found) if found > 0.0 else 1.0


def _back(L: Floats, right: Floats) -> Floats:
    """Return L^-T times an array."""
    return solve_lower(L, np.array(right, order="F"), transpose=True, overwrite=True)


def within(posterior: Posterior, most: int, floor: float) -> tuple[Posterior, float]:
    """Return a posterior (w = 1) on no more than `most` points, all of them new, and what it costs.

    Of each that stays those before it, in order of novelty, leave more than `floor` of k(x, x).
    """
    loss = 0.0
    if posterior.n_basis:
        kept, _ = _by_novelty(posterior, _SLACK * floor)
        if len(kept) < posterior.n_basis:
            posterior, loss = restrict(posterior, np.sort(kept))
    posterior, more = posterior.prune(most)
    return posterior, loss + more


def _by_novelty(posterior: Posterior, least: float) -> tuple[NDArray[np.intp], Floats]:
    """Return points that are new by more than this, and V = L^-1 K_RB (k, m) on them, R by B."""
    K = np.array(posterior.kernel(posterior.basis.points), order="F")
    deviation = np.sqrt(np.maximum(np.diagonal(K), np.finfo(float).tiny))
    K /= deviation
    K /= deviation[:, None]
    root, pivots, rank, _ = dpstrf(K, tol=least, lower=1, overwrite_a=1)
    order = np.asarray(pivots, dtype=np.intp) - 1
    rank = max(int(rank), 1)
    V = np.empty((rank, len(order)))
    V[:, order] = np.tril(root[:, :rank]).T
    return order[:rank], V * deviation


def remove_redundant(A: Arrays, floor: float) -> None:
    """Remove points of which all others together leave less than `floor`; the loss is added."""
    before = A.m
    while A.m > 1:
        m = A.m
        determined = np.diagonal(A.Q)[:m] * np.diagonal(A.K)[:m]
        j = int(np.argmax(determined))
        if _SLACK * floor * determined[j] <= 1.0:
            break
        recursion().remove(A, j)
    if A.m < before:
        refresh(A)


def require_same_model(
    posterior: Posterior, kernel: Kernel, mean: Mean, scale: Floats, weight: int
) -> None:
    """Raise ValueError for a posterior with another kernel, mean, weight w, units or outputs."""
    parts = (
        ("kernel", kernel, posterior.kernel),
        ("mean", mean, posterior.mean_function),
        ("weight", weight, posterior.weight),
        ("scale", scale.tolist(), posterior.scale.tolist()),
    )
    for name, own, other in parts:
        if own != other:
            raise ValueError(
                "a posterior that takes the place of another must be of the same model: its "
                f"{name} is {other!r}, and that of the model is {own!r}. For another model there "
                "is from_posterior"
            )


def joined(posteriors: Sequence[Posterior], likelihood: Likelihood, **changes: Any) -> Posterior:
    """Return one posterior of outputs that have one each, over the same points and kernel.

    With Gaussian noise they share their covariance, else each has its own. `changes` are arguments
    of `Posterior` that are not those of the first.
    """
    first, c = posteriors[0], len(posteriors)
    alpha = np.hstack([each.alpha for each in posteriors])
    changes = {"scale": np.concatenate([each.scale for each in posteriors]), **changes}
    if c == 1 or isinstance(likelihood, Gaussian):
        return first.replace(alpha=alpha, **changes)
    factors: dict[str, list[Factor] | None] = {}
    for name in ("A", "B"):
        own = [getattr(each, name) for each in posteriors]
        if own[0] is None:
            factors[name] = None
            continue
        ends = np.cumsum([0, *(F.n_rows for F in own)])
        factors[name] = [RowBlock(F, ends[p], ends[-1]) for p, F in enumerate(own)]
    return first.replace(alpha=alpha, **factors, **changes)
