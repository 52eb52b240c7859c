"""Kernels on some columns of the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import BlockGradient, Kernel
from mercer.kernels.composite import Composite
from mercer.kernels.of_one import OfOne
from mercer.registry import storable

__all__ = ["On"]

Floats = NDArray[np.float64]


@storable
class On(OfOne):
    """A kernel applied to some columns of the inputs; written ``k.on([0, 2])``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    columns : int, str, sequence of either, or mapping
        Column numbers from 0, the names of a frame's columns, or numbers by name.

    Notes
    -----
    An estimator that is given a frame finds the numbers of columns that are given by name;
    elsewhere `with_columns` does. The names stay beside the numbers, and count where the kernel
    meets another frame. They make no difference to whether two kernels are equal.
    """

    def __init__(
        self, kernel: Kernel, columns: int | str | Sequence[int | str] | Mapping[str, int]
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"On takes a kernel, got {kernel!r}")
        single = isinstance(columns, (str, int, np.integer))
        try:
            given: list[Any] = [columns] if single else list(columns)  # type: ignore[arg-type]
        except TypeError:
            given = []
        named = all(isinstance(c, str) for c in given)
        #: What the columns are called, if that is known.
        self.names: tuple[str, ...] | None = tuple(given) if named else None
        if isinstance(columns, Mapping):
            given = list(columns.values())
        counted = all(isinstance(c, (int, np.integer)) and c >= 0 for c in given)
        fits = named and counted if isinstance(columns, Mapping) else named or counted
        if not given or not fits or any(isinstance(c, bool) for c in given):
            raise ValueError(
                "columns must be one or more column numbers from 0, or names, and not both, got "
                f"{columns!r}"
            )
        if len(set(given)) != len(given):
            raise ValueError(f"columns must not repeat, got {columns!r}")
        self.columns = tuple(c if isinstance(c, str) else int(c) for c in given)
        self._set(kernel)

    def _options(self) -> dict[str, Any]:
        return {"columns": self.columns}

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments; numbers by name in pairs, which keep their order."""
        columns: Any = self.columns
        if self.names is not None and self.names != columns:
            columns = list(zip(self.names, columns, strict=True))
        return super().to_state() | {"columns": columns}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        columns = state["columns"]
        if isinstance(columns, list) and all(isinstance(c, (list, tuple)) for c in columns):
            names = [name for name, _ in columns]
            if len(set(names)) != len(names):  # of which a mapping would keep one
                raise ValueError(f"columns must not repeat, got {columns!r}")
            columns = dict(columns)
        return cls(state["kernel"], columns)

    def with_columns(self, names: Sequence[str] | None) -> Self:
        """Return a copy with the numbers of its columns beside their names.

        Numbers that it has from a frame stay where the inputs have no names.
        """
        columns = self.columns
        if self.names is not None and (names is not None or self.names == columns):
            columns = tuple(_position(name, names) for name in self.names)
        inside = None if names is None else [names[int(c)] for c in columns if int(c) < len(names)]
        kernel = self.kernel.with_columns(inside)
        if kernel is self.kernel and columns == self.columns:
            return self
        found = columns if self.names is None else dict(zip(self.names, columns, strict=True))
        return type(self)(kernel, found)  # type: ignore[arg-type]

    @property
    def _numbers(self) -> list[int]:
        numbers = [c for c in self.columns if isinstance(c, int)]
        if not numbers:
            raise ValueError(
                f"the kernel is on columns by name, {list(self.columns)}, and which they are is "
                "not known yet: an estimator finds them in the frame it is fitted to; elsewhere "
                "call kernel.with_columns(names) with the names of all columns"
            )
        return numbers

    def _check_columns(self, d: int) -> None:
        if max(self._numbers) >= d:
            raise ValueError(f"the kernel uses column {max(self._numbers)}, the inputs have {d}")
        self.kernel._check_columns(len(self.columns))

    @property
    def _needs_numbers(self) -> bool:
        return False  # in its own columns at most; the others may hold any objects

    def _check_objects(self, X: NDArray[Any], name: str) -> None:
        self.kernel.inputs(self._select(X), f"{name}[:, {self._numbers}]")

    def _select(self, A: Any) -> Any:
        if np.ndim(A) != 2:
            raise ValueError(
                f"columns {list(self.columns)} can only be taken of a matrix, "
                f"got shape {np.shape(A)}"
            )
        selected = A[:, self._numbers]
        try:
            return np.ascontiguousarray(selected, dtype=float if self.kernel.is_numeric else None)
        except (TypeError, ValueError) as error:
            raise ValueError(f"columns {list(self.columns)} must be numbers: {error}") from None

    def _block(self, A: Any, B: Any) -> Floats:
        return self.kernel._checked_block(self._select(A), self._select(B))

    def _times(self, A: Any, B: Any, V: Floats) -> Floats:
        return self.kernel._times(self._select(A), self._select(B), V)

    def _times_both(
        self, A: Any, B: Any, U: Floats, V: Floats, squared: bool
    ) -> tuple[Floats, Floats]:
        return self.kernel._times_both(self._select(A), self._select(B), U, V, squared)

    def _diag(self, A: Any) -> Floats:
        return self.kernel._diag(self._select(A))

    def _scatter(self, gradient: Floats | None, like: Any) -> Floats | None:
        if gradient is None:
            return None
        out = np.zeros(like.shape)
        out[:, self._numbers] = gradient
        return out

    def _block_pullback(self, A: Any, B: Any, G: Floats, inputs: bool) -> BlockGradient:
        part = self.kernel._block_pullback(self._select(A), self._select(B), G, inputs)
        return part._replace(A=self._scatter(part.A, A), B=self._scatter(part.B, B))

    def _diag_pullback(self, A: Any, g: Floats, inputs: bool) -> BlockGradient:
        part = self.kernel._diag_pullback(self._select(A), g, inputs)
        return part._replace(A=self._scatter(part.A, A))

    def anchored(self, X: Any) -> Self:
        """Return a copy anchored at the columns it uses."""
        return self._with({}, (self.kernel.anchored(self._select(X)),))

    def start_intervals(self, X: Any) -> Floats:
        """Return where a search may begin, seen from the columns it uses."""
        return self.kernel.start_intervals(self._select(X))

    def with_bounds_from(self, widths: Floats, variance: float) -> Self:
        """Return a copy bounded in the units of the columns it uses."""
        return self._with({}, (self.kernel.with_bounds_from(self._own(widths), variance),))

    def with_start_from(self, widths: Floats, variance: float) -> Self:
        """Return a copy begun in the units of the columns it uses."""
        return self._with({}, (self.kernel.with_start_from(self._own(widths), variance),))

    def _log_size(self, widths: Floats) -> float:
        return self.kernel._log_size(self._own(widths))

    def _own(self, widths: Floats) -> Floats:
        # objects other than numbers have no widths, and no parameters that would need them
        return widths[self._numbers] if max(self._numbers) < len(widths) else widths

    def __repr__(self) -> str:
        inside = f"({self.kernel!r})" if isinstance(self.kernel, Composite) else repr(self.kernel)
        return f"{inside}.on({list(self.names or self.columns)})"


def _position(name: str, names: Sequence[str] | None) -> int:
    """Return the number of the column that has a name."""
    if names is None:
        raise ValueError(
            f"the kernel is on the column {name!r}, but the inputs have no column names: give a "
            "frame of pandas or polars whose columns are named, or column numbers"
        )
    found = [i for i, known in enumerate(names) if known == name]
    if len(found) == 1:
        return found[0]
    many = "more than one column" if found else "no column"
    raise ValueError(
        f"the kernel is on the column {name!r}, but the inputs have {many} of that name; their "
        f"columns: {', '.join(map(repr, names))}"
    )
