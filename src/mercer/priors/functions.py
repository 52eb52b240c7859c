"""Functions drawn from the prior of a kernel expansion."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.priors.base import CoefficientPrior
from mercer.priors.precisions import PrecisionPrior

__all__ = ["Sections", "sample_functions"]

Floats = NDArray[np.float64]


class Sections(Protocol):
    """What is asked of a kernel here, which every one of `mercer.kernels` has."""

    def inputs(self, X: Any, name: str = "X") -> Any:
        """Return X as rows that the kernel takes."""

    def times(self, X: Any, Z: Any, V: Floats) -> Floats:
        """Return k(X, Z) V for V (m, P), shape (n, P)."""


def sample_functions(
    prior: CoefficientPrior | PrecisionPrior,
    kernel: Sections,
    centres: Any,
    X: Any,
    n_samples: int = 1,
    rng: np.random.Generator | int | None = 0,
) -> Floats:
    """Draw functions f(x) = sum_i coef_i k(x, x_i) from the prior (BKM 107), as in (BKM 5.2).

    Parameters
    ----------
    prior : CoefficientPrior or PrecisionPrior
        The prior of the coefficients; it must be proper.
    kernel : Kernel
        Any kernel. It need not be a Mercer kernel: no covariance is made of it.
    centres : array-like of shape (m, d), or what the kernel takes
        The points x_i.
    X : array-like of shape (n, d), or what the kernel takes
        Where to draw.
    n_samples : int, default 1
        How many functions.
    rng : Generator, int or None, default 0
        The source of randomness, or its seed. The coefficients are drawn first: the same seed gives
        the same functions at other X.

    Returns
    -------
    ndarray of shape (n, n_samples)

    Notes
    -----
    n m values of the kernel, multiplied where they are computed: memory for m + n numbers a sample,
    and no matrix. The cost is linear in n, where the samples of a Gaussian process take its cube;
    but these have at most m degrees of freedom. With coefficients of variance v, the covariance of
    f is v m times that of :class:`mercer.kernels.EquivalentGP`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Tanh
    >>> from mercer.priors import Laplacian, sample_functions
    >>> centres = np.random.default_rng(0).uniform(size=(400, 2))
    >>> sample_functions(Laplacian(), Tanh(10.0, 1.0), centres, centres[:5], n_samples=3).shape
    (5, 3)
    """
    if not isinstance(prior, CoefficientPrior | PrecisionPrior):
        raise ValueError(f"prior must be one of mercer.priors, got {prior!r}")
    if not (hasattr(kernel, "inputs") and hasattr(kernel, "times")):
        raise ValueError(f"kernel must be one of mercer.kernels, got {kernel!r}")
    count: Any = n_samples
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"n_samples must be a whole number, at least 1, got {n_samples!r}")
    centres, X = kernel.inputs(centres, "centres"), kernel.inputs(X)
    if len(centres) == 0:
        raise ValueError("centres must have at least one row")
    coef = prior.sample(np.random.default_rng(rng), (len(centres), int(count)))
    return kernel.times(X, centres, coef)
