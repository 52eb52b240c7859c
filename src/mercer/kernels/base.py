"""What every kernel is: a small immutable object with a value, a diagonal, and their pullbacks."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.kernels.gradients import BlockGradient, KernelGradient
from mercer.kernels.units import InUnits
from mercer.params import Parameter
from mercer.registry import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BlockGradient", "Kernel", "KernelGradient"]

Floats = NDArray[np.float64]


class Kernel(InUnits):
    """Base of all kernels. Compose with ``+``, ``*``, scalar ``*``, ``**`` and ``.on(columns)``.

    Subclasses implement `_block`, `_diag`, `_block_pullback` and `_diag_pullback`, call `_set` in
    their constructor, and are decorated with :func:`mercer.registry.storable`. The underscore says
    that users do not call these, not that they may change: for subclasses they are as stable as
    what is public.
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

    @property
    def is_symmetric(self) -> bool:
        """Whether k(x, x') = k(x', x): not for certain of a `Callable` that is no Mercer kernel."""
        return self.is_mercer or all(child.is_symmetric for child in self._children)

    # --- inputs -------------------------------------------------------------------------------

    @property
    def _needs_numbers(self) -> bool:
        """Whether a kernel made of this one needs rows of numbers for its sake."""
        return self.is_numeric

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

    # --- starts from data ---------------------------------------------------------------------

    def start_intervals(self, X: Any) -> Floats:
        """Return where a search may begin for rows X, (low, high) for each component of theta.

        NaN where it may begin anywhere; see `Periodic`.
        """
        children = [child.start_intervals(X) for child in self._children]
        own = np.full((self.theta.size - sum(map(len, children)), 2), np.nan)
        return np.concatenate([own, *children])

    def anchored(self, X: Any) -> Self:
        """Return a copy whose `Flipped` parts without anchors have the rows of X for anchors."""
        return self._with({}, tuple(child.anchored(X) for child in self._children))

    # --- derivatives --------------------------------------------------------------------------

    def _theta_gradient(
        self, logs: Mapping[str, ArrayLike], others: Mapping[str, ArrayLike]
    ) -> Floats:
        """As `_own_gradient`, with dL/dlog p in place of dL/dp for some of the positive parameters.

        Of a parameter near the least double the derivative itself may be no double.
        """
        own = []
        for name, p in self._parameters.items():
            if p.is_free:
                given = logs[name] if name in logs else others[name]
                gradient = np.atleast_1d(given if p.is_vector else np.sum(given))
                own.append(gradient if name in logs else p.to_theta_gradient(gradient))
        return np.concatenate([*own, np.empty(0)])

    # --- composition --------------------------------------------------------------------------

    def __add__(self, other: Any) -> Kernel:
        from mercer.kernels.operators import add

        return add(self, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Kernel:
        from mercer.kernels.operators import multiply

        return multiply(self, other)

    __rmul__ = __mul__

    def __pow__(self, exponent: float) -> Kernel:
        from mercer.kernels.of_one import Power

        return Power(self, exponent)

    def on(self, columns: int | str | Sequence[int | str]) -> Kernel:
        """Return this kernel applied to some columns of the inputs only.

        Parameters
        ----------
        columns : int, str, or sequence of either
            Column numbers from 0, or names, for estimators that are fitted to frames.

        Examples
        --------
        >>> from mercer.kernels import RBF, Periodic
        >>> RBF().on([0, 2]) + Periodic().on("hour")
        RBF(length_scale=1).on([0, 2]) + Periodic(length_scale=1, periodicity=1).on(['hour'])
        """
        from mercer.kernels.columns import On

        return On(self, columns)

    def with_columns(self, names: Sequence[str] | None) -> Self:
        """Return the kernel with column numbers beside names; itself where it has no names.

        Parameters
        ----------
        names : sequence of str, or None
            The names of all columns of the inputs; None if these have no names.

        Examples
        --------
        >>> from mercer.kernels import RBF
        >>> kernel = RBF().on("age").with_columns(["height", "age"])
        >>> kernel, kernel.columns
        (RBF(length_scale=1).on(['age']), (1,))
        """
        children = tuple(child.with_columns(names) for child in self._children)
        if all(new is old for new, old in zip(children, self._children, strict=True)):
            return self
        return self._with_children(children)

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
