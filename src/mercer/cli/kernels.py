"""The names that ``--kernel`` takes, and the kernels they stand for in the units of the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mercer.kernels import Kernel

__all__ = ["NAMES", "build_kernel", "parse_kernel", "parse_period"]

#: All but `periodic` have a length scale for each column.
NAMES = ("rbf", "matern12", "matern32", "matern52", "rq", "linear", "periodic")


def parse_kernel(text: str) -> list[str]:
    """Return the names in a sum such as "matern52+linear"."""
    names = [name.strip().lower() for name in text.split("+")]
    for name in names:
        if name not in NAMES:
            raise ValueError(
                f"{name!r} is no kernel: one of {', '.join(NAMES)} is wanted, or several of them "
                "joined by +"
            )
    if len(set(names)) < len(names):
        raise ValueError(f"{text!r} names a kernel twice")
    return names


def parse_period(text: str) -> tuple[str, float]:
    """Return the column and the number of "column=number"."""
    column, found, number = text.rpartition("=")
    try:
        length = float(number)
    except ValueError:
        length = math.nan
    if not (found and column and math.isfinite(length) and length > 0):
        raise ValueError(f"COLUMN=LENGTH is wanted, such as date=365.25, got {text!r}")
    return column, length


def build_kernel(
    text: str,
    widths: NDArray[np.float64],
    variance: float,
    periods: Mapping[int, float],
) -> Kernel | None:
    """Return the kernel that a text names; None is the estimator's own, an RBF.

    Parameters
    ----------
    text : str
        What `parse_kernel` takes.
    widths : array of shape (d,)
        The standard deviation of each column of inputs.
    variance : float
        The variance of the targets, which the terms of a sum share.
    periods : mapping of int to float
        The periods of the columns that have one, by number; these are held.
    """
    names = parse_kernel(text)
    if names == ["rbf"]:
        return None
    terms: list[Any] = []
    share = variance / (len(names) + max(0, len(periods) - 1))
    for name in names:
        if name == "periodic":
            terms.extend(_periodic(share, column, length) for column, length in periods.items())
        else:
            terms.append(_term(name, widths, share))
    kernel: Kernel = terms[0]
    for term in terms[1:]:
        kernel = kernel + term
    return kernel


def _term(name: str, widths: NDArray[np.float64], variance: float) -> Any:
    from mercer.evidence.defaults import default_kernel
    from mercer.kernels import RBF, Exponential, Linear, Matern, RationalQuadratic

    # Starts and hyperpriors of the length scales are those of the default kernel.
    scales = default_kernel(widths, variance).kernel.parameters["length_scale"]
    if name == "linear":
        # Its length scales carry the units of the targets too: no factor before it is needed.
        return Linear(length_scale=scales.value / math.sqrt(variance))
    if name == "rbf":
        return variance * RBF(scales)
    if name == "matern12":
        return variance * Exponential(scales)
    if name == "rq":
        return variance * RationalQuadratic(scales)
    return variance * Matern(scales, nu={"matern32": 1.5, "matern52": 2.5}[name])


def _periodic(variance: float, column: int, length: float) -> Any:
    from mercer.kernels import Periodic
    from mercer.params import Parameter

    return variance * Periodic(1.0, Parameter(length, fixed=True)).on([column])
