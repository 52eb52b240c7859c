"""How matrices of kernels are assembled, in square tiles that fit into a core's cache.

A kernel describes one tile: `_block`, `_diag` and their pullbacks. The matrix, its products and its
pullbacks are put together here, on Mercer's threads, and nothing larger than the matrix is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import blas_for, map_tiles, row_blocks
from mercer.kernels.gradients import BlockGradient, KernelGradient
from mercer.kernels.tiles import TILE, pair, plain_tile, symmetric_tile, transposed, upper
from mercer.linalg import loops
from mercer.params import Parametrised

__all__ = ["Assembled"]

Floats = NDArray[np.float64]
Result = TypeVar("Result")

# Tiles whose values are multiplied as they are computed: so many are worked on before what they
# give is added up.
_TOGETHER = 64


class Assembled(Parametrised):
    """What a kernel can be asked for, put together from what a subclass says about a tile."""

    _children: tuple[Assembled, ...]

    def inputs(self, X: Any, name: str = "X") -> Any:
        """Return X as an array that this kernel can take."""
        raise NotImplementedError(f"{type(self).__name__} must define inputs(X)")

    # --- one tile -----------------------------------------------------------------------------

    def _block(self, A: Any, B: Any) -> Floats:
        """Return the (a, b) matrix of values, a fresh array in C order."""
        raise NotImplementedError(f"{type(self).__name__} must define _block(A, B)")

    def _checked_block(self, A: Any, B: Any) -> Floats:
        """Return `_block`, or say what is wrong with its shape: NumPy might broadcast it."""
        block = np.ascontiguousarray(self._block(A, B), dtype=float)
        if block.shape != (len(A), len(B)):
            raise ValueError(
                f"{type(self).__name__}._block returned an array of shape {block.shape}, "
                f"{(len(A), len(B))} is wanted"
            )
        return block

    def _times(self, A: Any, B: Any, V: Floats) -> Floats:
        """Return k(A, B) V (a, P), a fresh array, for any numbers of rows."""
        out = np.zeros((len(A), V.shape[1]))
        for i in self._cut(len(A)):
            for j in self._cut(len(B)):
                out[i] += self._checked_block(A[i], B[j]) @ V[j]
        return out

    def _times_both(
        self, A: Any, B: Any, U: Floats, V: Floats, squared: bool
    ) -> tuple[Floats, Floats]:
        """Return k(A, B) V (a, P) and k(A, B)' U (b, P), for any numbers of rows.

        If `squared`, the last of their columns are of the values' squares.
        """
        out, back = np.zeros((len(A), V.shape[1])), np.zeros((len(B), V.shape[1]))
        for i in self._cut(len(A)):
            for j in self._cut(len(B)):
                K = self._checked_block(A[i], B[j])
                plain = slice(0, V.shape[1] - squared)
                out[i, plain] += K @ V[j, plain]
                back[j, plain] += K.T @ U[i, plain]
                if squared:
                    np.square(K, out=K)
                    out[i, -1] += K @ V[j, -1]
                    back[j, -1] += K.T @ U[i, -1]
        return out, back

    def _diag(self, A: Any) -> Floats:
        """Return k(x, x) for each row, a fresh array."""
        raise NotImplementedError(f"{type(self).__name__} must define _diag(A)")

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        """Pull G (a, b), which must not be changed, back to the parameters and inputs."""
        raise NotImplementedError(f"{type(self).__name__} must define _block_pullback")

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        """Pull g (a,) back through `_diag`; `B` of the result is None."""
        raise NotImplementedError(f"{type(self).__name__} must define _diag_pullback")

    @property
    def _tiled(self) -> bool:
        """Whether tiles are independent of each other, so that cutting K up costs nothing.

        A kernel that goes through other points than its arguments (anchors, say) would repeat
        that work in every tile; it gets the matrix in one piece and cuts up its own work.
        """
        return all(child._tiled for child in self._children)

    def _cut(self, n: int) -> list[slice]:
        return row_blocks(n, TILE if self._tiled else max(n, 1))

    def _wide_cut(self, n: int, m: int) -> list[slice]:
        """Return the columns of tiles of an (n, m) matrix: more of them where rows are few."""
        if not self._tiled:
            return self._cut(m)
        return row_blocks(m, min(max(TILE, TILE**2 // max(n, 1)), 16 * TILE))

    def _run(self, function: Callable[[Any], Any], tiles: list[Any]) -> list[Any]:
        # Products of tiles are too small for the BLAS's threads, on a busy machine by far.
        order = 0 if self._tiled else max((s.stop for tile in tiles for s in tile), default=0)
        with blas_for(order):
            return map_tiles(function, tiles)

    # --- matrices -----------------------------------------------------------------------------

    def __call__(self, X: Any, Z: Any = None, out: Floats | None = None) -> Floats:
        """Return the matrix k(X, Z) of shape (n, m); k(X, X) when Z is left out.

        `out`, if given, is an array of that shape to fill.
        """
        X = self.inputs(X)
        n = len(X)
        rows = self._cut(n)
        Z = None if Z is None else self._second(X, Z)
        shape = (n, n if Z is None else len(Z))
        K = np.empty(shape) if out is None else out
        if K.shape != shape or K.dtype != np.float64:
            raise ValueError(f"out must be an array of doubles of shape {shape}, got {K.shape}")
        if Z is not None:

            def fill(tile: tuple[slice, slice]) -> None:
                K[tile] = self._checked_block(X[tile[0]], Z[tile[1]])

            self._run(fill, [(i, j) for i in rows for j in self._wide_cut(n, len(Z))])
            return K

        def mirror(tile: tuple[slice, slice]) -> None:
            i, j = tile
            block = self._checked_block(*pair(X, i, j))
            if i == j:
                loops().mirror(block)  # matrix products are symmetric but for their rounding
            else:
                K[j, i] = transposed(block)
            K[i, j] = block

        self._run(mirror, upper(rows))
        return K

    def gram_lower(self, X: Any, out: Floats | None = None) -> Floats:
        """Return k(X, X) in Fortran order with only its lower triangle filled.

        This is what LAPACK reads. `out`, if given, is an (n, n) Fortran-ordered array to fill.
        """
        X = self.inputs(X)
        n = len(X)
        K = np.empty((n, n), order="F") if out is None else out
        if K.shape != (n, n) or not K.flags.f_contiguous:
            raise ValueError(f"out must be a Fortran-ordered array of shape {(n, n)}")
        rows_first = K.T  # C order: tiles of the upper triangle here are the lower triangle of K

        def fill(tile: tuple[slice, slice]) -> None:
            rows_first[tile] = self._checked_block(*pair(X, *tile))

        self._run(fill, upper(self._cut(n)))
        return K

    def times(self, X: Any, Z: Any, V: Floats) -> Floats:
        """Return k(X, Z) V of shape (n, P) for V (m, P), without the matrix.

        Values are multiplied while they are in the cache.
        """
        X = self.inputs(X)
        Z = self._second(X, Z)
        out = np.empty((len(X), V.shape[1]))

        def fill(tile: tuple[slice]) -> None:
            out[tile[0]] = self._times(X[tile[0]], Z, V)

        # Each piece of X scales the whole of Z anew: fewer and larger ones than tiles.
        size = 2 * TILE if self._tiled else max(len(X), 1)
        self._run(fill, [(rows,) for rows in row_blocks(len(X), size)])
        return out

    def gram_times(self, X: Any, V: Floats, *, squared: bool = False) -> Floats:
        """Return k(X, X) V of shape (n, P) for V (n, P), without the matrix.

        Each value is computed once, for the two rows that it belongs to. If `squared`, the last
        column of V is multiplied by the squares of the values instead.
        """
        X = self.inputs(X)
        if not self._tiled:  # work that tiles have in common is done once a band
            bands = row_blocks(len(X), TILE)
            parts = [self._times_both(X[i], X, V[i], V, squared)[0] for i in bands]
            return np.concatenate(parts) if parts else np.zeros(V.shape)
        out, tiles = np.zeros(V.shape), upper(row_blocks(len(X), 4 * TILE))

        def both(tile: tuple[slice, slice]) -> tuple[Floats, Floats]:
            i, j = tile
            return self._times_both(*pair(X, i, j), V[i], V[j], squared)

        for group in row_blocks(len(tiles), _TOGETHER):
            for (i, j), parts in zip(tiles[group], self._run(both, tiles[group]), strict=True):
                out[i] += parts[0]
                if i != j:
                    out[j] += parts[1]
        return out

    def map_blocks(
        self, function: Callable[[slice, Floats], Result], X: Any, Z: Any
    ) -> list[Result]:
        """Return function(rows, k(X, Z[rows])) for pieces of Z, in their order, without the matrix.

        A piece is in the cache if X has no more than a few hundred rows. The function is called on
        Mercer's threads; it may change the block, and must keep nothing of it.
        """
        X = self.inputs(X)
        Z = self._second(X, Z)

        def call(piece: tuple[slice]) -> Result:
            return function(piece[0], self._checked_block(X, Z[piece[0]]))

        return self._run(call, [(rows,) for rows in self._wide_cut(len(X), len(Z))])

    def diag(self, X: Any) -> Floats:
        """Return k(x, x) for each row of X, shape (n,)."""
        return self._diag(self.inputs(X))

    def pullback(self, X: Any, Z: Any, G: ArrayLike, *, inputs: bool = True) -> KernelGradient:
        """Pull dL/dK back to the parameters and the inputs.

        Parameters
        ----------
        X, Z : inputs
            As given to the kernel; Z may be None.
        G : array of shape (n, m)
            dL/dK. With Z None it is symmetric and **only its lower triangle is read**.
        inputs : bool, default True
            Whether to compute the derivatives in X and Z (None otherwise).

        Returns
        -------
        KernelGradient
            dL/dtheta, dL/dX and dL/dZ; with Z None `X` is the whole derivative, as rows and as
            columns of K.
        """
        X = self.inputs(X)
        symmetric = Z is None
        Z = X if symmetric else self._second(X, Z)
        G = np.asarray(G, dtype=float)
        if G.shape != (len(X), len(Z)):
            raise ValueError(f"G must have shape {(len(X), len(Z))}, got {G.shape}")
        rows, columns = self._cut(len(X)), self._cut(len(Z))
        if symmetric:
            bands = [[(i, j) for j in rows[first:]] for first, i in enumerate(rows)]
            cotangent = symmetric_tile(G)
        else:
            bands = [[(i, j) for j in columns] for i in rows]
            cotangent = plain_tile(G)
        if not inputs:  # a few numbers a tile; with inputs, a tile's derivatives are as large as it
            bands = [[tile for band in bands for tile in band]]

        def pull(tile: tuple[slice, slice]) -> BlockGradient:
            return self._block_pullback(X[tile[0]], Z[tile[1]], cotangent(*tile), inputs)

        theta = np.zeros(self.theta.size)
        dX = np.zeros(np.shape(X)) if inputs else None
        dZ = (dX if symmetric else np.zeros(np.shape(Z))) if inputs else None
        for band in bands:
            for (i, j), gradient in zip(band, self._run(pull, band), strict=True):
                theta += gradient.theta
                if dX is not None and dZ is not None:
                    dX[i] += gradient.A
                    dZ[j] += gradient.B
        return KernelGradient(theta, dX, None if symmetric else dZ)

    def pullback_diag(self, X: Any, g: ArrayLike, *, inputs: bool = True) -> KernelGradient:
        """Pull dL/d diag(K), shape (n,), back to the parameters and to X."""
        X = self.inputs(X)
        g = np.asarray(g, dtype=float)
        if g.shape != (len(X),):
            raise ValueError(f"g must have shape {(len(X),)}, got {g.shape}")
        gradient = self._diag_pullback(X, g, inputs)
        return KernelGradient(gradient.theta, gradient.A, None)

    def _second(self, X: Any, Z: Any) -> Any:
        Z = self.inputs(Z, "Z")
        if np.ndim(X) == np.ndim(Z) == 2 and X.shape[1] != Z.shape[1]:
            raise ValueError(
                f"X and Z must have the same number of columns, got {X.shape[1]} and {Z.shape[1]}"
            )
        return Z
