"""Kernels that the user computes: a function of any two objects, or a matrix."""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import row_blocks
from mercer.kernels.base import BlockGradient, Kernel
from mercer.kernels.features import shape_of
from mercer.kernels.tiles import contract, numeric_rows
from mercer.linalg.differences import pull_rows
from mercer.registry import storable

__all__ = ["Callable", "Precomputed"]

Floats = NDArray[np.float64]


@storable
class Callable(Kernel):
    """k(x, x') = f(x, x') over any objects: strings, graphs, rows of numbers.

    Parameters
    ----------
    f : callable
        A symmetric function of two objects with a number for its value; with `vectorised` a
        function of two arrays of a and b objects with an (a, b) array for its value. It may be
        called from several threads at once. One that is not symmetric, and said to be no Mercer
        kernel, can be the kernel of an expansion (`LaplacianProcessRegressor`,
        `RelevanceVectorRegressor`): the functions there are f(., x_j).
    is_mercer : bool, default True
        Your word that every Gram matrix of f is positive semi-definite.
    vectorised : bool, default False
        Whether f takes arrays.

    Notes
    -----
    Inputs are a sequence of objects, or an array, whose rows are then the objects. There are no
    parameters to learn (a factor in front of it is one: ``2.0 * Callable(f)``). Where inputs are
    rows of numbers, derivatives in them are central differences, 4d calls for each pair of rows,
    good to about 1e-10; there are none in other objects. f is saved by its name: define it with
    ``def``.

    Examples
    --------
    >>> from mercer.kernels import Callable
    >>> def shared(a, b):
    ...     return len(set(a) & set(b))
    >>> Callable(shared)(["cat", "act", "dog"])
    array([[3., 3., 0.],
           [3., 3., 0.],
           [0., 0., 3.]])
    """

    is_numeric = False

    def __init__(
        self,
        f: Function[[Any, Any], ArrayLike],
        is_mercer: bool = True,
        vectorised: bool = False,
    ) -> None:
        if not callable(f):
            raise ValueError(f"f must be a function of two objects, got {f!r}")
        self.f = f
        self.vectorised = bool(vectorised)
        self._mercer = bool(is_mercer)
        self._set()

    def _options(self) -> dict[str, Any]:
        return {"f": self.f, "is_mercer": self._mercer, "vectorised": self.vectorised}

    @property
    def is_mercer(self) -> bool:
        """What the constructor was told."""
        return self._mercer

    @property
    def is_symmetric(self) -> bool:
        """Whether f is for certain: Mercer kernels are."""
        return self._mercer

    def _block(self, A: Any, B: Any) -> Floats:
        if self.vectorised:
            return self._checked(np.array(self.f(A, B), dtype=float), (len(A), len(B)))
        K = np.empty((len(A), len(B)))
        for i in range(len(A)):
            if B is A:  # symmetric: half the calls
                for j in range(i, len(A)):
                    K[i, j] = K[j, i] = self._number(A[i], A[j])
            else:
                for j in range(len(B)):
                    K[i, j] = self._number(A[i], B[j])
        return self._checked(K, K.shape)

    def _diag(self, A: Any) -> Floats:
        if not self.vectorised:
            return self._checked(np.array([self._number(x, x) for x in A], dtype=float), (len(A),))
        # small blocks, since all but the diagonal is thrown away
        parts = [np.diagonal(self._block(A[s], A[s])) for s in row_blocks(len(A), 8)]
        return np.concatenate([*parts, np.empty(0)])

    def _number(self, a: Any, b: Any) -> float:
        value = self.f(a, b)
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(
                f"f takes two objects and must return a number, got {value!r}; one that takes two "
                "arrays of them wants vectorised=True"
            ) from None

    def _checked(self, K: Floats, shape: tuple[int, ...]) -> Floats:
        if K.shape != shape:
            raise ValueError(f"f must return an array of shape {shape}, got {K.shape}")
        if not np.all(np.isfinite(K)):
            raise ValueError("f returned NaN or infinity")
        return K

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        inner = contract(G, self._block(A, B))
        if not inputs:
            return BlockGradient(np.empty(0), None, None, inner)
        for rows in (A, B):
            numeric_rows(rows, "Callable")
        dA = pull_rows(lambda moved: self._block(moved, B), A, G)
        dB = pull_rows(lambda moved: self._block(A, moved).T, B, G.T)
        return BlockGradient(np.empty(0), dA, dB, inner)

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        inner = contract(g, self._diag(A))
        if not inputs:
            return BlockGradient(np.empty(0), None, None, inner)
        numeric_rows(A, "Callable")
        return BlockGradient(np.empty(0), pull_rows(self._diag, A, g), None, inner)

    def __repr__(self) -> str:
        parts = [getattr(self.f, "__name__", repr(self.f))]
        parts += [] if self._mercer else ["is_mercer=False"]
        parts += ["vectorised=True"] if self.vectorised else []
        return f"Callable({', '.join(parts)})"


@storable
class Precomputed(Kernel):
    """k(i, j) = K_ij: a given matrix, over row numbers.

    Parameters
    ----------
    K : array of shape (N, N)
        A symmetric matrix, copied.
    is_mercer : bool, default True
        Your word that K is positive semi-definite.

    Notes
    -----
    Inputs are an (n, 1) array of whole numbers from 0 to N - 1. Estimators take
    ``kernel="precomputed"`` instead, with the matrix in place of the inputs. There are no
    parameters, and the derivative in the inputs is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Precomputed
    >>> Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))(np.array([[1], [0], [1]]))
    array([[3., 1., 3.],
           [1., 2., 1.],
           [3., 1., 3.]])
    """

    def __init__(self, K: ArrayLike, is_mercer: bool = True) -> None:
        matrix = np.array(K, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"a precomputed kernel matrix must be square, got {matrix.shape}")
        if not np.all(np.isfinite(matrix)):
            raise ValueError("a precomputed kernel matrix must not hold NaN or infinity")
        size = float(np.max(np.abs(matrix), initial=0.0))
        if not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-8 * size):
            raise ValueError(
                "a precomputed kernel matrix must be symmetric; a Laplacian process takes one that "
                "is not as functions of the inputs: Callable(f, is_mercer=False), or its functions"
            )
        matrix.setflags(write=False)
        self.K = matrix
        self._mercer = bool(is_mercer)
        self._set()

    def _options(self) -> dict[str, Any]:
        return {"K": self.K, "is_mercer": self._mercer}

    @property
    def is_mercer(self) -> bool:
        """What the constructor was told."""
        return self._mercer

    def _check_columns(self, d: int) -> None:
        if d != 1:
            raise ValueError(f"Precomputed takes one column, of row numbers, got {d} columns")

    def _rows(self, A: Floats) -> NDArray[np.intp]:
        rows = A[:, 0].astype(np.intp)
        if not np.array_equal(rows, A[:, 0]) or np.any((rows < 0) | (rows >= len(self.K))):
            raise ValueError(
                f"Precomputed takes row numbers, whole numbers from 0 to {len(self.K) - 1}"
            )
        return rows

    def _block(self, A: Floats, B: Floats) -> Floats:
        return self.K[np.ix_(self._rows(A), self._rows(B))]

    def _diag(self, A: Floats) -> Floats:
        rows = self._rows(A)
        return self.K[rows, rows]

    def _block_pullback(self, A: Floats, B: Floats, G: Floats, inputs: bool) -> BlockGradient:
        inner = contract(G, self._block(A, B))
        dA, dB = (np.zeros(A.shape), np.zeros(B.shape)) if inputs else (None, None)
        return BlockGradient(np.empty(0), dA, dB, inner)

    def _diag_pullback(self, A: Floats, g: Floats, inputs: bool) -> BlockGradient:
        dA = np.zeros(A.shape) if inputs else None
        return BlockGradient(np.empty(0), dA, None, contract(g, self._diag(A)))

    def __repr__(self) -> str:
        extra = "" if self._mercer else ", is_mercer=False"
        return f"Precomputed({shape_of(self.K)}{extra})"
