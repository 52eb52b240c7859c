"""Sparsity and quality of functions whose q coefficients share a precision.

Not an engine. Under a working regression a function outside the model has S (q, q) and Q (q,) in
the place of two numbers, and as a function of its precision the evidence is, up to a constant,

    [q ln s - ln det(s + S) + Q'(s + S)^-1 Q]/2 + ln h(s),

which by the eigenvalues of S is a sum of what single coefficients would have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._relevance_ascent import Penalty

__all__ = ["best_shared"]

Floats = NDArray[np.float64]

# Precisions that are looked at first, in units of the largest eigenvalue of S, and the rounds in
# which the best is closed in on.
_GRID = np.linspace(np.log(1e-8), np.log(1e6), 57)
_ROUNDS, _POINTS = 4, 9


def best_shared(S: Floats, Q: Floats, penalty: Penalty) -> tuple[Floats, Floats]:
    """Return the best precisions (m,) and what they gain; (inf, 0) where none gains.

    Parameters
    ----------
    S : (m, q, q) symmetric
    Q : (m, q)
    penalty : Penalty
    """
    values, vectors = np.linalg.eigh(S)
    square = np.einsum("mcd,mc->md", vectors, Q) ** 2
    top = values[:, -1]
    there = top > 0
    top = np.where(there, top, 1.0)
    # The rounding of a difference may have made an eigenvalue negative, or too small.
    values = np.maximum(values, 1e-9 * top[:, None])

    def gain(t: Floats) -> Floats:
        """Return the gains (m, p) at ln s = t (m, p)."""
        s = np.exp(t)[:, :, None]
        each = np.log(s / (s + values[:, None])) + square[:, None] / (s + values[:, None])
        out = 0.5 * np.sum(each, axis=2)
        if not penalty.is_flat:
            out += penalty.hyperprior.log_hyper(s[:, :, 0])
        return np.asarray(out)

    rows = np.arange(len(S))
    t, width = np.log(top)[:, None] + _GRID, _GRID[1] - _GRID[0]
    for _ in range(_ROUNDS + 1):
        found = gain(t)
        best = np.argmax(found, axis=1)
        middle, value = t[rows, best], found[rows, best]
        t = middle[:, None] + width * np.linspace(-1.0, 1.0, _POINTS)
        width *= 2.0 / (_POINTS - 1)
    gains = there & (value > 0.0)
    return np.where(gains, np.exp(middle), np.inf), np.where(gains, value, 0.0)
