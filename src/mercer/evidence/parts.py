"""Which columns the parts of a kernel look at, and how closely."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.defaults import deviation
from mercer.kernels import Kernel, On
from mercer.kernels.stationary import Stationary

__all__ = ["Part", "Relevance", "parts", "relevances"]

Floats = NDArray[np.float64]


class Part(NamedTuple):
    """A kernel within a kernel.

    path : what its parameters' names begin with, such as "Scaled1.RBF."; "" for the whole
    kernel : the part itself
    columns : the numbers of the columns that it is given
    """

    path: str
    kernel: Kernel
    columns: NDArray[np.intp]


class Relevance(NamedTuple):
    """How closely a part of a kernel looks at each column.

    kernel : the part
    length_scales : (d,) in the units of the columns, NaN for one that it does not look at
    values : (d,) the columns' standard deviations over these length scales
    """

    kernel: Kernel
    length_scales: Floats
    values: Floats


def parts(kernel: Kernel, n_columns: int) -> Iterator[Part]:
    """Give the kernel and all that it is made of, with the columns that each is given.

    Parameters
    ----------
    kernel : Kernel
        Its columns by number, as a fitted kernel has them.
    n_columns : int
        How many columns the whole is given.
    """
    return _inside(Part("", kernel, np.arange(n_columns)))


def _inside(part: Part) -> Iterator[Part]:
    yield part
    columns = part.columns
    if isinstance(part.kernel, On):
        columns = columns[[int(c) for c in part.kernel.columns]]
    for label, child in part.kernel.get_params(deep=False).items():
        if isinstance(child, Kernel):
            yield from _inside(Part(f"{part.path}{label}.", child, columns))


def relevances(kernel: Kernel, X: Floats, weights: Floats | None = None) -> list[Relevance]:
    """Return the relevance of each column to each part that has length scales in its units.

    These are the stationary kernels. A relevance is the standard deviation of the column over its
    length scale: along one of much less than 1 the part hardly bends.

    Parameters
    ----------
    kernel : Kernel
        Its columns by number, as a fitted kernel has them.
    X : array of shape (n, d)
        Rows whose standard deviations are the units.
    weights : array of shape (n,), optional
        How often each row counts.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.evidence.parts import relevances
    >>> from mercer.kernels import RBF, Linear
    >>> X = np.array([[0.0, 1.0], [2.0, 5.0]])
    >>> [found.values for found in relevances(3.0 * RBF([0.5, 8.0]) + Linear(), X)]
    [array([2.  , 0.25])]
    """
    widths = deviation(X, weights)
    found = []
    for part in parts(kernel, len(widths)):
        if isinstance(part.kernel, Stationary):
            scales = np.full(len(widths), np.nan)
            scales[part.columns] = part.kernel.length_scale
            found.append(Relevance(part.kernel, scales, widths / scales))
    return found
