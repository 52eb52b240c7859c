"""How far the functions of a kernel, and of its terms, vary over some rows and along columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.defaults import deviation
from mercer.evidence.parts import Relevance, parts, relevances
from mercer.kernels import Kernel, Linear, On, Scaled, Sum

__all__ = [
    "NEGLIGIBLE",
    "relevance_in_words",
    "relevances_by_share",
    "terms_of",
    "variance_over",
    "variances_over",
]

Floats = NDArray[np.float64]

#: A term of the kernel whose share of the targets' variance is less than this explains nothing.
NEGLIGIBLE = 1e-3


def variance_over(kernel: Kernel, X: Any, weights: Floats | None = None) -> float:
    """Return the prior variance over the rows, around their mean, of a kernel's functions.

    A kernel that is large and yet nearly constant, as the linear one far from 0, has little of it.
    A row of weight 2 counts twice.
    """
    rows, around = _weighted(X, weights)
    return float(np.sum(around * kernel(rows)))


def variances_over(kernel: Kernel, X: Any, weights: Floats | None = None) -> dict[str, float]:
    """Return that variance of what each variance in the kernel multiplies, by parameter name."""
    if not any(_is_variance(name) for name in kernel.parameter_names):
        return {}
    rows, around = _weighted(X, weights)
    # a variance multiplies its terms, whose derivative in its logarithm they are themselves
    terms = kernel.pullback(rows, None, around, inputs=False).theta
    named = zip(kernel.parameter_names, terms, strict=True)
    return {name: float(term) for name, term in named if _is_variance(name)}


def terms_of(kernel: Kernel) -> list[Kernel]:
    """Return the kernels that add up to this one: ``2 * (a + b)`` has two, 2 a and 2 b."""
    if isinstance(kernel, Sum):
        return [term for each in kernel.kernels for term in terms_of(each)]
    if isinstance(kernel, Scaled):
        return [Scaled(kernel.variance, term) for term in terms_of(kernel.kernel)]
    if isinstance(kernel, On):
        return [term.on(kernel.columns) for term in terms_of(kernel.kernel)]
    return [kernel]


def relevances_by_share(
    kernels: Sequence[Kernel], X: Floats, weights: Floats | None = None
) -> list[Relevance]:
    """Return how far a sum of kernels lets functions change along each column, part by part.

    Within a part with length scales it is what `relevances` says; within a linear term the share
    of each column in its standard deviation over the rows. Both are multiplied by the share of the
    term in that of the sum, so that a term that explains nothing makes no column relevant.

    Parameters
    ----------
    kernels : sequence of Kernel
        What is added up, with columns by number.
    X : array of shape (n, d)
        Rows whose standard deviations are the units.
    weights : array of shape (n,), optional
        How often each row counts.
    """
    terms = [term for kernel in kernels for term in terms_of(kernel)]
    variances = np.array([max(variance_over(term, X, weights), 0.0) for term in terms])
    whole = float(np.sum(variances))
    shares = np.sqrt(variances / whole) if whole > 0 else np.ones(len(terms))
    return [
        found._replace(values=share * found.values)
        for term, share in zip(terms, shares, strict=True)
        for found in [*relevances(term, X, weights), *_of_straight_lines(term, X, weights)]
    ]


def relevance_in_words(several: bool, linear: bool) -> str:
    """Return what the relevances by share of several terms are, or of one, linear or not."""
    if several:
        return "relevance, by each part's share of the standard deviation"
    of = "share of the standard deviation" if linear else "standard deviation over length scale"
    return f"relevance: {of}"


def _of_straight_lines(term: Kernel, X: Floats, weights: Floats | None) -> list[Relevance]:
    *outer, inner = parts(term, X.shape[1])
    if not isinstance(inner.kernel, Linear):
        return []
    if not all(isinstance(part.kernel, (On, Scaled)) for part in outer):
        return []
    scales = np.full(X.shape[1], np.nan)
    scales[inner.columns] = 1.0 if inner.kernel.length_scale is None else inner.kernel.length_scale
    sizes = deviation(X, weights) / scales
    return [Relevance(inner.kernel, scales, sizes / (np.sqrt(np.nansum(sizes**2)) or 1.0))]


def _is_variance(name: str) -> bool:
    return name.rpartition(".")[2] == "variance"


def _weighted(X: Any, weights: Floats | None) -> tuple[Any, Floats]:
    """Return about 200 of the rows, and what weighs the entries of their matrix."""
    some = slice(None, None, max(1, len(X) // 200))
    rows = X[some]
    w = np.ones(len(rows)) if weights is None else weights[some]
    part = w / np.sum(w)
    return rows, np.diag(part) - np.outer(part, part)
