"""What A or B of a posterior covariance is: a factor of all outputs, or one of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.factors import Factor, RowBlock

__all__ = ["FactorSet", "Image", "products_of"]

Floats = NDArray[np.float64]


def _compact(F: Factor) -> tuple[Factor, int]:
    """Return the factor that makes what is not 0, and its first row."""
    return (F.factor, F.start) if isinstance(F, RowBlock) else (F, 0)


class Image(NamedTuple):
    """What a factor makes of n points: rows (k, n), the first of them number `start`."""

    rows: Floats
    start: int

    def product(self, other: Image) -> Floats | float:
        """Return the inner products (n, n) of points here and there; 0.0 if no row is in both."""
        i, j = self.start, other.start
        low, high = max(i, j), min(i + len(self.rows), j + len(other.rows))
        if low >= high:
            return 0.0
        return np.asarray(self.rows[low - i : high - i].T @ other.rows[low - j : high - j])


class FactorSet:
    """What A or B is: one factor that all outputs share (c = 1), or one for each (c = P).

    Parameters
    ----------
    name : str
        What to call it in errors.
    given : Factor, sequence of c factors, or None
        None stands for 0.
    c : int
        How many there must be.
    width : int
        The length m + r of phi.
    """

    def __init__(
        self, name: str, given: Factor | Sequence[Factor] | None, c: int, width: int
    ) -> None:
        self.c = c
        self.factors = () if given is None else (given,) if isinstance(given, Factor) else given
        if given is None:
            return
        if not all(isinstance(F, Factor) for F in self.factors):
            raise ValueError(f"{name} must be a Factor, a sequence of factors or None")
        sizes = [(F.n_rows, F.n_columns) for F in self.factors]
        if len(sizes) != c or len({s[0] for s in sizes}) > 1 or max(s[1] for s in sizes) > width:
            raise ValueError(
                f"{name} must have {c} factor(s) of equally many rows and at most {width} columns, "
                f"got (rows, columns) {sizes}"
            )

    def norms(self, Phi: Floats, *, overwrite: bool = False) -> Floats:
        """Return |F_p phi|^2 for the rows phi of Phi, shape (n, c)."""
        out = np.zeros((len(Phi), self.c))
        for p, F in enumerate(self.factors):
            U = _compact(F)[0].apply(Phi, overwrite=overwrite and p == self.c - 1).T
            np.einsum("ij,ij->i", U, U, out=out[:, p])
        return out

    def products(self, Phi: Floats) -> Floats:
        """Return <F_p phi_i, F_q phi_j> for the rows phi of Phi, shape (n, c, n, c)."""
        return products_of(self.images(Phi), len(Phi), self.c)

    @property
    def compact(self) -> list[Factor]:
        """The factors without zeros around what they make of phi."""
        return [_compact(F)[0] for F in self.factors]

    def images(self, Phi: Floats) -> list[Image]:
        """Return what each factor makes of the rows of Phi, without zeros around it."""
        parts = [_compact(F) for F in self.factors]
        return [Image(F.apply(Phi), start) for F, start in parts]

    def half_gradient(self, Phi: Floats, p: int) -> Floats:
        """Return F_p'F_p phi for the rows phi of Phi: half the gradient of |F_p phi|^2."""
        out = np.zeros_like(Phi)
        if self.factors:
            F, _ = _compact(self.factors[p])
            out[:, : F.n_columns] = F.pull(F.apply(Phi), overwrite=True).T
        return out

    @property
    def n_rows(self) -> int:
        """How many numbers a factor makes of phi."""
        return max((F.n_rows for F in self.factors), default=0)

    @property
    def nbytes(self) -> int:
        """How much memory the factors take."""
        return sum(F.nbytes for F in self.factors)


def products_of(images: list[Image], n: int, c: int) -> Floats:
    """Return the products (n, c, n, c) of images of n rows under c factors, or under none: 0."""
    if len(images) == 1:
        return np.asarray(images[0].rows.T @ images[0].rows).reshape(n, 1, n, 1)
    out = np.zeros((n, c, n, c))
    for p, U in enumerate(images):
        for q, V in enumerate(images):
            out[:, p, :, q] = U.product(V)
    return out
