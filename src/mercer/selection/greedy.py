"""Rows chosen one after the other by what they explain of the kernel matrix.

Both choices here make an approximation V V' of K (BKM 73) without looking at the targets, and
without forming K. What they differ in is how much they know of the rows they choose from: pivoting
looks at all of them but only at the variance that each has left; the sparse greedy choice looks at
a few, but at what each would take away from all the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Kernel
from mercer.selection.checks import whole_number
from mercer.selection.partial import PartialCholesky, Selection

__all__ = ["pivoted_cholesky", "sparse_greedy_matrix"]

Floats = NDArray[np.float64]


def pivoted_cholesky(kernel: Kernel, X: Any, m: int, tol: float = 0.0) -> Selection:
    """Choose each time the row whose variance given those chosen is the largest.

    The Cholesky factorisation of K with diagonal pivoting, broken off after m columns: the
    "positive diagonal pivoting strategy" of (BKM 4.1). Rows that repeat are never both chosen.

    Parameters
    ----------
    kernel : Kernel
        A covariance.
    X : inputs
        n rows.
    m : int
        How many to choose at the most. Fewer are, where nothing but rounding is left of any row.
    tol : float, default 0.0
        Stop as soon as the trace of K - V V' is at most this part of the trace of K.

    Returns
    -------
    Selection

    Notes
    -----
    O(n m^2) time and O(n m) memory; n m values of the kernel. No choice of m rows can leave less
    of the trace than the sum of the n - m smallest eigenvalues of K. This one comes within a small
    factor of it once m is large enough to leave little, as it soon is for smooth kernels and few
    columns. As long as much is left it reaches for the outlying rows, which explain nothing but
    themselves, and rows drawn by chance do better.

    References
    ----------
    Fine and Scheinberg, *Efficient SVM training using low-rank kernel representations*, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.selection import pivoted_cholesky
    >>> X = np.linspace(0.0, 1.0, 101)[:, None]
    >>> chosen = pivoted_cholesky(RBF(0.3), X, 4)
    >>> chosen.indices
    array([  0, 100,  50,  25])
    >>> (chosen.traces / 101).round(3)
    array([1.   , 0.732, 0.464, 0.095, 0.03 ])
    """
    limit = _limit(tol)
    partial = PartialCholesky(kernel, X, whole_number("m", m))
    while partial.goes_on(limit):
        partial.add(int(np.argmax(partial.residual)))
    return partial.selection()


def sparse_greedy_matrix(
    kernel: Kernel,
    X: Any,
    m: int,
    n_candidates: int = 59,
    rng: np.random.Generator | int | None = None,
    tol: float = 0.0,
) -> Selection:
    """Choose each time, of some rows drawn by chance, that which reduces the trace most.

    With S = K - V V' the trace falls by |S_i|^2 / S_ii if row i is added, S_i its column: the sum
    over all rows of the squared distance of k(x, .) from the span of the chosen sections, in the
    kernel's feature space. The largest of 59 draws is, with probability 0.95, among the best 5%
    of all, since 0.95^59 < 0.05 (BKM 4.5); so that few need to be tried.

    Parameters
    ----------
    kernel : Kernel
        A covariance.
    X : inputs
        n rows.
    m : int
        How many to choose at the most. Fewer are, where nothing but rounding is left of any row.
    n_candidates : int, default 59
        How many rows to draw each time. With n or more all are tried, in O(n^2 m^2) and with n^2
        memory.
    rng : Generator, int or None
        Where the randomness comes from.
    tol : float, default 0.0
        Stop as soon as the trace of K - V V' is at most this part of the trace of K.

    Returns
    -------
    Selection

    Notes
    -----
    O(n m^2) time for each candidate and O(n (m + n_candidates)) memory; n m n_candidates values
    of the kernel. Where rows crowd together it prefers the crowd to outlying rows: while much of
    the trace is left it leaves far less than `pivoted_cholesky`, which takes these first, and less
    than rows drawn by chance. Where m is large enough for both to leave very little, pivoting is
    as good and takes a fraction of the time.

    Not drawn are rows with less than 1e-4 of the largest variance that is left: division by theirs
    would multiply the rounding of the others.

    References
    ----------
    Smola and Schölkopf, *Sparse greedy matrix approximation for machine learning*, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.selection import sparse_greedy_matrix
    >>> X = np.linspace(0.0, 1.0, 101)[:, None]
    >>> chosen = sparse_greedy_matrix(RBF(0.3), X, 4, n_candidates=101)
    >>> chosen.indices[0]  # the middle, which explains most
    np.int64(50)
    """
    limit = _limit(tol)
    partial = PartialCholesky(kernel, X, whole_number("m", m))
    number = whole_number("n_candidates", n_candidates)
    rng = np.random.default_rng(rng)
    while partial.goes_on(limit):
        rows = partial.candidates(number, rng)
        columns = partial.columns(rows)
        gains = np.einsum("ij,ij->j", columns, columns) / partial.residual[rows]
        best = int(np.argmax(gains))
        partial.add(int(rows[best]), columns[:, best])
    return partial.selection()


def _limit(tol: float) -> float:
    """Return the tolerance, or raise ValueError if it is none."""
    if isinstance(tol, bool) or not 0.0 <= tol < 1.0:
        raise ValueError(f"tol must be at least 0 and less than 1, got {tol!r}")
    return float(tol)
