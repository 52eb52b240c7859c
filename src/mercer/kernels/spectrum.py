"""The eigenvalues and eigenfunctions of a kernel on a measure (BKM 38)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from mercer.compute import blas_for
from mercer.kernels.base import Kernel

__all__ = ["Eigenfunctions", "Eigensystem", "eigensystem"]

Floats = NDArray[np.float64]


class Eigenfunctions:
    """The functions phi_i of an eigensystem, which can be evaluated anywhere.

    phi_i(x) = 1/lambda_i sum_j w_j k(x, x_j) phi_i(x_j): what is known at the nodes x_j, carried on
    by the integral equation itself (Nystrom's extension).
    """

    def __init__(self, kernel: Kernel, nodes: Any, at_nodes: Floats, coefficients: Floats) -> None:
        self.kernel, self.nodes = kernel, nodes
        self.at_nodes = at_nodes  # (m, n)
        self.coefficients = coefficients  # (m, n): w_j phi_i(x_j) / lambda_i

    def __call__(self, X: Any) -> Floats:
        """Return the functions at the rows of X, one a column."""
        return self.kernel.times(X, self.nodes, self.coefficients)

    def __repr__(self) -> str:
        return f"<{self.at_nodes.shape[1]} eigenfunctions of {self.kernel!r}>"


class Eigensystem(NamedTuple):
    """values (n,), the largest first; functions, a callable from rows X to (len(X), n)."""

    values: Floats
    functions: Eigenfunctions


def eigensystem(
    kernel: Kernel, X: Any, weights: ArrayLike | None = None, n: int = 10
) -> Eigensystem:
    """Return the largest eigenvalues of a kernel on a measure, and their functions.

    They solve E[k(x, x') phi_i(x')] = lambda_i phi_i(x), the expectation over x' from the measure,
    and the functions are orthonormal under it: E[phi_i phi_j] = [i = j]. What the kernel holds
    simple are the functions of large eigenvalues (BKM 38), and a draw from the process is
    sum_i sqrt(lambda_i) z_i phi_i(x) with independent standard normal z_i.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : inputs of m rows
        Nodes that stand for the measure: the points of a quadrature rule, or a sample.
    weights : array of shape (m,), optional
        The weight of each node, none negative. Without it 1/m each: the empirical measure.
    n : int, default 10
        How many to return; no more than there are nodes of positive weight.

    Returns
    -------
    values : ndarray of shape (n,)
        Largest first. Those that are 0 to rounding are 0.
    functions : callable
        ``functions(X)`` has a column for each function, at any rows. NaN where the eigenvalue
        is 0. A function's sign is arbitrary: here the first node at which it is at least half its
        largest size has a positive value.

    Notes
    -----
    The eigenvectors of W^1/2 K W^1/2 over the nodes, O(m^3) time and m^2 memory. They are as good
    as the rule: exact to rounding for a Gauss rule and a smooth kernel, within about 1/sqrt(m) for
    a sample, and for a kernel with a kink (`Exponential`) within 1/m^2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, eigensystem
    >>> nodes, weights = np.polynomial.legendre.leggauss(40)  # Lebesgue's measure on [-1, 1]
    >>> values, functions = eigensystem(RBF(1.0), nodes[:, None], weights, n=3)
    >>> values.round(4)
    array([1.5447, 0.3972, 0.0532])
    >>> functions(np.array([[0.0], [0.5]])).shape
    (2, 3)
    """
    X = kernel.inputs(X)
    w = _checked_weights(weights, len(X))
    X, w = X[w > 0], w[w > 0]
    m, root = len(w), np.sqrt(w)
    n = _checked_number(n, m)
    S = kernel(X)
    S *= root
    S *= root[:, None]
    with blas_for(m):
        values, vectors = eigh(S, overwrite_a=True, subset_by_index=(m - n, m - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    at_nodes = vectors / root[:, None]
    at_nodes *= _signs(at_nodes)
    known = np.abs(values) > m * np.finfo(float).eps * np.abs(values[0])
    values = np.where(known, values, 0.0)
    # Divided by an eigenvalue that is all rounding, a function would be so too.
    slopes = np.divide(1.0, values, out=np.full(n, np.nan), where=known)
    return Eigensystem(values, Eigenfunctions(kernel, X, at_nodes, w[:, None] * at_nodes * slopes))


def _checked_number(n: object, m: int) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= m:
        raise ValueError(
            f"n must be a whole number from 1 to {m}, the number of nodes with weight, got {n!r}"
        )
    return int(n)


def _checked_weights(weights: ArrayLike | None, m: int) -> Floats:
    if weights is None:
        return np.full(m, 1.0 / max(m, 1))
    w = np.asarray(weights, dtype=float)
    if w.shape != (m,) or not np.all(np.isfinite(w)) or np.any(w < 0) or not np.any(w > 0):
        raise ValueError(
            f"weights must be {m} finite numbers, one a row of X, none negative and not all 0; "
            f"got {w!r}"
        )
    return w


def _signs(functions: Floats) -> Floats:
    large = np.abs(functions) >= 0.5 * np.max(np.abs(functions), axis=0)
    return np.asarray(np.sign(functions[np.argmax(large, axis=0), np.arange(functions.shape[1])]))
