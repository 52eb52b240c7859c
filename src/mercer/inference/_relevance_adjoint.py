"""Derivatives of Laplace's evidence in the values of a model's functions (UV section 10.2).

Not an engine: what `kernel.pullback` makes gradients in a kernel's parameters and in its centres
of; `_relevance_held` is the same for Gaussian noise. Precisions are held; at their best values the
evidence does not depend on them to first order, so that these are also the derivatives of the
evidence with the best ones.

Of Laplace's evidence (`_relevance_laplace`), g the slope of the log likelihood at the mode theta, a
that of -ln det(H)/2, and delta = Xi Phi'a, which is how the mode's motion counts:

    dL/dPhi = (g + a - W Phi delta) theta' + g delta' - W Phi Xi.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.inference._relevance_ascent import Penalty
from mercer.inference._relevance_classes_problem import (
    ClassesProblem,
    MultinomialProblem,
    MultinomialRelevance,
)
from mercer.inference._relevance_laplace import moments
from mercer.inference._relevance_mode import find_mode
from mercer.inference._relevance_problem import Relevance
from mercer.inference._relevance_sites import ClassSites, ScalarSites

__all__ = ["laplace_adjoints"]

Floats = NDArray[np.float64]


@blas_for(0)
def laplace_adjoints(
    problem: ClassesProblem | MultinomialProblem, fit: Relevance | MultinomialRelevance
) -> tuple[float, Floats] | None:
    """Return the penalised Laplace evidence L at the precisions of a fit, and dL/dPhi (n, k).

    That is of the functions in the model, in their order, and 0 at rows of weight 0. The mode is
    found anew, from that of the fit; None where it has no factor.
    """
    w, k = problem.weights, len(fit.indices)
    kept = np.arange(problem.columns.n) if w is None else np.flatnonzero(w > 0)
    w = None if w is None else w[kept]
    sites: ClassSites | ScalarSites
    if isinstance(problem, MultinomialProblem):
        sites = ClassSites(problem.Y[kept], problem.mean[kept], w)
        start = fit.mean @ sites.U
    else:
        sites = ScalarSites(problem.likelihood, problem.y[kept], problem.mean[kept], w)
        start = fit.mean[:, None]
    Phi = problem.columns.take(fit.indices)[kept]
    at = find_mode(sites, Penalty(problem.hyperprior), Phi, fit.precisions, start)
    if at is None:
        return None
    Xi, lean, delta = moments(sites, Phi, at)
    moved = Phi @ delta  # (n, q)
    direct = at.pull + lean - np.einsum("cdi,id->ic", at.bend, moved)
    own = direct @ at.theta.T + at.pull @ delta.T
    for c in range(sites.width):
        for d in range(sites.width):
            own -= at.bend[c, d][:, None] * (Phi @ Xi[d * k : (d + 1) * k, c * k : (c + 1) * k])
    columns = np.zeros((problem.columns.n, k))
    columns[kept] = own
    return at.value, columns
