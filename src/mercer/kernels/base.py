"""What every kernel is: a value, a diagonal, and the pullbacks of both.

A kernel is a small immutable object. Matrices are computed in square tiles that fit into a core's
cache, on Mercer's threads. A subclass describes one tile: `_block`, `_diag` and their pullbacks;
the matrix is assembled here, and nothing larger than it is ever built.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import blas_for, map_tiles, row_blocks
from mercer.kernels.tiles import pair, plain_tile, symmetric_tile, upper
from mercer.linalg import mirror_lower
from mercer.params import Parameter, Parametrised
from mercer.registry import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BlockGradient", "Kernel", "KernelGradient"]

Floats = NDArray[np.float64]

# 256 x 256 doubles are 512 kB: a tile and its workspace stay in a core's second-level cache.
TILE = 256


class KernelGradient(NamedTuple):
    """Derivatives of a scalar L: in `theta` (p,), in X (n, d) and in Z (m, d)."""

    theta: Floats
    X: Floats | None
    Z: Floats | None


class BlockGradient(NamedTuple):
    """Derivatives of L = sum(G * K) for one tile, and L itself.

    theta : (p,), over the free parameters
    A, B : (a, d) and (b, d), or None where inputs were not asked for
    inner : sum(G * K); a scale factor's derivative, which most tiles get for nothing
    """

    theta: Floats
    A: Floats | None
    B: Floats | None
    inner: float


class Kernel(Parametrised):
    """Base of all kernels. Compose with ``+``, ``*``, scalar ``*``, ``**`` and ``.on(columns)``.

    Subclasses implement `_block`, `_diag`, `_block_pullback` and `_diag_pullback`, call `_set` in
    their constructor, and are decorated with :func:`mercer.registry.storable`.
    """

    #: Whether rows of X are vectors of numbers (else any objects; see `Callable`).
    is_numeric: bool = True
    #: Whether every positive power of the kernel is a Mercer kernel too.
    is_infinitely_divisible: bool = False

    _children: tuple[Kernel, ...]

    # NumPy's numbers and arrays leave the arithmetic with a kernel to the kernel.
    __array_ufunc__ = None

    @property
    def is_mercer(self) -> bool:
        """Whether every Gram matrix is positive semi-definite."""
        return all(child.is_mercer for child in self._children)

    # --- one tile -----------------------------------------------------------------------------

    def _block(self, A: Any, B: Any) -> Floats:
        """Return the (a, b) matrix of values, a fresh array in C order."""
        raise NotImplementedError(f"{type(self).__name__} must define _block(A, B)")

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
    def _needs_numbers(self) -> bool:
        """Whether a kernel made of this one needs rows of numbers for its sake."""
        return self.is_numeric

    @property
    def _tiled(self) -> bool:
        """Whether tiles are independent of each other, so that cutting K up costs nothing.

        A kernel that goes through other points than its arguments (anchors, say) would repeat
        that work in every tile; it gets the matrix in one piece and cuts up its own work.
        """
        return all(child._tiled for child in self._children)

    def _cut(self, n: int) -> list[slice]:
        return row_blocks(n, TILE if self._tiled else max(n, 1))

    def _run(self, function: Callable[[Any], Any], tiles: list[Any]) -> list[Any]:
        # Products of tiles are too small for the BLAS's threads, on a busy machine by far.
        order = 0 if self._tiled else max((s.stop for tile in tiles for s in tile), default=0)
        with blas_for(order):
            return map_tiles(function, tiles)

    def _check_columns(self, d: int) -> None:
        """Raise ValueError where the kernel cannot take d columns.

        A parameter that is a vector has one component for each column.
        """
        for name, p in self._parameters.items():
            if p.is_vector and p.size != d:
                raise ValueError(
                    f"{type(self).__name__} has {p.size} values of {name}, but the inputs have {d} "
                    "columns; give one number, or one for each column"
                )
        for child in self._children:
            child._check_columns(d)

    def _check_objects(self, X: NDArray[Any], name: str) -> None:
        """Raise ValueError where X, not all numbers, has none where the kernel needs them."""
        for child in self._children:
            child._check_objects(X, name)

    # --- matrices -----------------------------------------------------------------------------

    def inputs(self, X: Any, name: str = "X") -> Any:
        """Return X as a finite (n, d) array of doubles that this kernel can take."""
        if not self.is_numeric:
            X = np.asarray(X) if hasattr(X, "__array__") else _object_array(X, name)
            if X.ndim == 2:
                self._check_columns(X.shape[1])
            self._check_objects(X, name)
            return X
        try:
            X = np.ascontiguousarray(X, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be an array of numbers: {error}") from None
        if X.ndim != 2:
            hint = "; use X.reshape(-1, 1) for a single column" if X.ndim == 1 else ""
            raise ValueError(f"{name} must have rows and columns, got shape {X.shape}{hint}")
        if not np.all(np.isfinite(X)):
            raise ValueError(f"{name} holds NaN or infinity")
        self._check_columns(X.shape[1])
        return X

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
                K[tile] = self._block(X[tile[0]], Z[tile[1]])

            self._run(fill, [(i, j) for i in rows for j in self._cut(len(Z))])
            return K

        def mirror(tile: tuple[slice, slice]) -> None:
            i, j = tile
            block = self._block(*pair(X, i, j))
            K[i, j] = block
            if i != j:
                K[j, i] = block.T
            else:
                mirror_lower(K[i, i].T)  # matrix products are symmetric but for their rounding

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
            rows_first[tile] = self._block(*pair(X, *tile))

        self._run(fill, upper(self._cut(n)))
        return K

    def times(self, X: Any, Z: Any, V: Floats) -> Floats:
        """Return k(X, Z) V of shape (n, P) for V (m, P), without the matrix.

        Each tile is multiplied while it is in the cache.
        """
        X, Z = self.inputs(X), self.inputs(Z, "Z")
        blocks = self._cut(len(Z))

        def product(tile: tuple[slice]) -> Floats:
            A = X[tile[0]]
            total = np.zeros((len(A), V.shape[1]))
            for j in blocks:
                total += self._block(A, Z[j]) @ V[j]
            return total

        parts = self._run(product, [(rows,) for rows in self._cut(len(X))])
        return np.concatenate([np.zeros((0, V.shape[1])), *parts])

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
        if self.is_numeric and X.shape[1] != Z.shape[1]:
            raise ValueError(
                f"X and Z must have the same number of columns, got {X.shape[1]} and {Z.shape[1]}"
            )
        return Z

    # --- bounds from data ---------------------------------------------------------------------

    def with_bounds_from(self, widths: Floats, variance: float) -> Self:
        """Return a copy whose unbounded parameters are bounded in the units of the data.

        Parameters
        ----------
        widths : array of shape (d,)
            The standard deviation of each column of the inputs.
        variance : float
            The variance of the targets.
        """
        suggested = self._bounds_from(widths, variance)
        own = {
            name: p.replace(bounds=_around(suggested[name], p))
            for name, p in self._parameters.items()
            if p.bounds is None and p.is_free and name in suggested
        }
        children = tuple(c.with_bounds_from(widths, variance) for c in self._children)
        return self._with(own, children)

    def _bounds_from(self, widths: Floats, variance: float) -> Mapping[str, tuple[Any, Any]]:
        """Suggest (low, high) for parameters by name, in their natural units."""
        return {}

    def anchored(self, X: Any) -> Self:
        """Return a copy whose `Flipped` parts without anchors have the rows of X for anchors."""
        return self._with({}, tuple(child.anchored(X) for child in self._children))

    # --- composition --------------------------------------------------------------------------

    def __add__(self, other: Any) -> Kernel:
        from mercer.kernels.composite import add

        return add(self, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Kernel:
        from mercer.kernels.composite import multiply

        return multiply(self, other)

    __rmul__ = __mul__

    def __pow__(self, exponent: float) -> Kernel:
        from mercer.kernels.composite import Power

        return Power(self, exponent)

    def on(self, columns: int | Sequence[int]) -> Kernel:
        """Return this kernel applied to some columns of the inputs only."""
        from mercer.kernels.composite import On

        return On(self, columns)

    # --- description --------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return a JSON description from which :meth:`from_json` rebuilds the kernel."""
        return to_json(self)

    @staticmethod
    def from_json(text: str, objects: Mapping[str, Any] | None = None) -> Kernel:
        """Rebuild a kernel from its description; `objects` gives back functions by name."""
        kernel = from_json(text, objects)
        if not isinstance(kernel, Kernel):
            raise ValueError(f"the description is of a {type(kernel).__name__}, not of a kernel")
        return kernel


def is_number(value: Any) -> bool:
    """Whether a value can stand as a scale factor: a real number, or a `Parameter`."""
    return isinstance(value, (numbers.Real, Parameter)) and not isinstance(value, bool)


def _object_array(X: Any, name: str) -> NDArray[Any]:
    try:
        items = list(X)
    except TypeError:
        raise ValueError(f"{name} must be a sequence of objects, got {X!r}") from None
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out


def _around(bounds: tuple[Any, Any], parameter: Parameter) -> tuple[Any, Any]:
    """Widen suggested bounds so that they contain the value a user has given."""
    value = np.asarray(parameter.value)
    near, far = np.minimum(value / 10.0, value * 10.0), np.maximum(value / 10.0, value * 10.0)
    low, high = np.minimum(bounds[0], near), np.maximum(bounds[1], far)
    if not parameter.is_vector:
        return float(np.min(low)), float(np.max(high))
    return np.broadcast_to(low, value.shape), np.broadcast_to(high, value.shape)
