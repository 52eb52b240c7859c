"""The arrays of an on-line posterior, and the choice between its compiled loops and their twin.

A posterior over the points b_1..b_m of a basis is kept by its moments there. With g(x) the part of
f that the kernel is the prior of, h(x) r explicit functions and beta their coefficients,

    f(x) = h(x)'beta + g(x),   g(x) = e_k(x)'g_B + rest,   e_k(x) = Q k_B(x)  (SOGP 3.7),

where the rest has the prior's conditional variance gamma (SOGP 3.14). The coordinates are
z = (beta, g_B), and a point's share in them is e = (h(x), e_k(x)). Mean and variance of f are

    e'mu   and   gamma + e'S e,

which is (SOGP 2.8) with alpha = Q mu_B and C = Q S_BB Q - Q, written so that nothing cancels.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.linalg.loops import loops
from mercer.linalg.triangular import mirror_lower

__all__ = [
    "CRITERIA",
    "NOVELTIES",
    "Arrays",
    "Block",
    "Rules",
    "empty_arrays",
    "recursion",
    "symmetric",
]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

#: By what a point is chosen that goes, and by what one is taken for new; the order is their code.
CRITERIA = ("mean", "kl")
NOVELTIES = ("geometry", "mean")


class Arrays(NamedTuple):
    """What the recursion changes in place, with room for `cap` points; c covariances, P outputs.

    The first m of `cap` entries are in use, and after them anything. Of K, Q, S and P the compiled
    loops keep the lower triangles, and above them there may be anything: `symmetric` fills it in.

    whole : (3,) m; changes of the basis since the last check; whether a check has failed
    source : (cap,) which column of a block's kernel matrix holds a point's values
    sums : (3,) the divergence that projections have cost; the log predictive density and the weight
        of all rows so far
    K, Q : (cap, cap) the Gram matrix of the points and its inverse
    S, P : (c, r + cap, r + cap) the covariance of z and its inverse
    mu : (P, r + cap) the mean of z
    alpha, curvature : (P, cap), (c, cap) Q mu_B, and the diagonal of C = Q S_BB Q - Q
    k, e, s : (cap,), (r + cap,), (c + 1, r + cap) of the last row: kernel values, share e, and S e
        with room for one more
    mean, spread : (P,), (c,) of the last row: e'mu and e'S e
    q, r : (P,), (c,) the derivatives of the last row's log Z (SOGP 2.7)
    u : (c, cap) of the last row: Q times what s has of the points
    v, w : (r + cap,) room to work in
    """

    whole: Whole
    source: Whole
    sums: Floats
    K: Floats
    Q: Floats
    S: Floats
    P: Floats
    mu: Floats
    alpha: Floats
    curvature: Floats
    k: Floats
    e: Floats
    s: Floats
    mean: Floats
    spread: Floats
    q: Floats
    r: Floats
    u: Floats
    v: Floats
    w: Floats

    @property
    def m(self) -> int:
        """How many points there are."""
        return int(self.whole[0])

    @property
    def n_features(self) -> int:
        """How many explicit functions there are."""
        return int(self.S.shape[1] - self.K.shape[0])


class Rules(NamedTuple):
    """What decides about points.

    max_basis : how many there may be; -1 adds none
    criterion, novelty : positions in `CRITERIA` and `NOVELTIES`
    tol : the least novelty of a point that is added, in units of k(x, x) or, by the mean, of its
        root
    floor : the least variance of a point given the others, in units of k(x, x), whatever `novelty`
        says
    keep : what one step leaves of the posterior's difference from the prior; 1 forgets nothing
    """

    max_basis: int
    criterion: int
    novelty: int
    tol: float
    floor: float
    keep: float


class Block(NamedTuple):
    """Rows that are learned together: b of them, of P outputs, with c covariances.

    kernel : (b, points there were + b) the kernel with all that can be points meanwhile
    variances : (b,) k(x, x)
    features : (b, r) h(x)
    y, offsets : (b, P) observations, and the mean function
    weights : (b,) powers of the likelihood
    mean, spread : (b, P), (b, c) for the mean and variance of f before a row is learned
    log_density : (b,) for the log density of its observations; 0 to begin with
    """

    kernel: Floats
    variances: Floats
    features: Floats
    y: Floats
    offsets: Floats
    weights: Floats
    mean: Floats
    spread: Floats
    log_density: Floats


# Doubles of a line of the cache: rows of matrices begin where one does, if nothing is before them.
_LINE = 8


def empty_arrays(cap: int, features: int, outputs: int, covariances: int) -> Arrays:
    """Return the arrays of a posterior without points, with room for `cap` of them or more."""
    cap = -(-cap // _LINE) * _LINE
    n = features + cap
    shapes: dict[str, tuple[int, ...]] = {
        "sums": (3,),
        "K": (cap, cap),
        "Q": (cap, cap),
        "S": (covariances, n, n),
        "P": (covariances, n, n),
        "mu": (outputs, n),
        "alpha": (outputs, cap),
        "curvature": (covariances, cap),
        "k": (cap,),
        "e": (n,),
        "s": (covariances + 1, n),
        "mean": (outputs,),
        "spread": (covariances,),
        "q": (outputs,),
        "r": (covariances,),
        "u": (covariances, cap),
        "v": (n,),
        "w": (n,),
    }
    arrays: dict[str, Any] = {name: _zeros(shape) for name, shape in shapes.items()}
    whole, source = np.zeros(3, dtype=np.int64), np.zeros(cap, dtype=np.int64)
    return Arrays(whole=whole, source=source, **arrays)


def _zeros(shape: tuple[int, ...]) -> Floats:
    size = int(np.prod(shape))
    memory = np.zeros(size + _LINE)
    first = -(memory.ctypes.data // memory.itemsize) % _LINE
    return memory[first : first + size].reshape(shape)


def symmetric(A: Arrays) -> Arrays:
    """Fill in what is above the diagonal of the matrices, in place, and return the arrays."""
    m, n = A.m, A.n_features + A.m
    for M in (A.K[:m, :m], A.Q[:m, :m], *A.S[:, :n, :n], *A.P[:, :n, :n]):
        mirror_lower(M)
    return A


@cache
def recursion() -> ModuleType:
    """Return the module of the recursion: compiled where Numba works, NumPy elsewhere."""
    if loops().__name__.endswith("_twins"):
        from mercer.linalg import _recursion_twins

        return _recursion_twins
    from mercer.linalg import _recursion

    return _recursion
