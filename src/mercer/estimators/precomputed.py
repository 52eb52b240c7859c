"""Kernel matrices given by the user instead of inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer import means
from mercer.kernels import Precomputed
from mercer.means import Mean

__all__ = ["over_row_numbers", "require_no_inputs"]

Floats = NDArray[np.float64]


def over_row_numbers(K: Floats, kept: NDArray[np.bool_], mean: Mean) -> tuple[Precomputed, Floats]:
    """Return the kernel that looks rows up in a matrix, and as inputs the numbers of those kept.

    Raises ValueError unless the mean can do without inputs.
    """
    require_no_inputs(mean)
    return Precomputed(K), np.flatnonzero(kept).astype(float)[:, None]


def require_no_inputs(mean: Mean) -> None:
    """Raise ValueError unless the mean can do without inputs."""
    if not isinstance(mean, (means.Zero, means.Constant)):
        raise ValueError(
            f"with a precomputed kernel there are no inputs for the mean {mean!r}; use 'zero' or "
            "'constant', or subtract the mean beforehand"
        )
