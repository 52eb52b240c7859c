"""What the experiments of SOGP have in common: the kernel, and a process that is predicted from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF

__all__ = ["Latent", "kernel", "latent"]

Floats = NDArray[np.float64]


class Latent(NamedTuple):
    """Mean and standard deviation of the latent functions at some rows, (n, P)."""

    mean: Floats
    std: Floats


def kernel(width: float, columns: int) -> RBF:
    """Return exp(-|x - x'|^2/(2 d sigma_K^2)): the length scale has the dimension in it (SOGP 4.1).

    `width` is sigma_K^2.
    """
    return RBF(float(np.sqrt(columns * width)))


def latent(process: OnlineProcess, X: Floats) -> Latent:
    """Return what the process says of rows."""
    now = process.posterior()
    return Latent(now.mean(X), np.sqrt(now.var(X)))
