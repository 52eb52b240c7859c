"""Quadratics with an L1 penalty, min theta'G theta/2 - c'theta + sum_j lam_j |theta_j|.

The minimiser is piecewise linear in c, and a homotopy (`mercer.linalg.homotopy`) follows it from a
c for which it is known to the c that is wanted: a small dense factor changes by a column at each
breakpoint. Kernel columns are highly correlated, on which methods that go by coordinates crawl.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.linalg.homotopy import Homotopy, empty_homotopy, homotopy

__all__ = ["Minimiser", "minimise_l1", "minimise_l1_path"]

Floats = NDArray[np.float64]

# A column whose squared distance from the span of the active ones is less than this part of its
# squared length depends on them: what is left is rounding of G.
_FLOOR = 1e-14
# Rounding of slopes, in units of lam and of c.
_SLACK, _ROUNDING = 1e-11, 1e-14
# Breakpoints at most, a column. Some two are usual for each column that is active in the end.
_STEPS = 8
# Where rounding has spoiled a solution it is started from again, with so much of the diagonal of G
# added to it, and c such that a minimiser would stay where it is.
_RIDGES = (0.0, 1e-13, 1e-12, 1e-11)


class Minimiser(NamedTuple):
    """A minimiser of an L1-penalised quadratic.

    coef : (m,) theta, exactly 0 for columns that are not active
    slopes : (m,) c - G theta: lam_j sign(theta_j) where theta_j is not 0, at most lam_j in size
    n_steps : breakpoints on the way
    is_complete : whether the conditions on `slopes` hold, but for rounding
    """

    coef: Floats
    slopes: Floats
    n_steps: int
    is_complete: bool


def minimise_l1(
    G: Floats,
    c: Floats,
    lam: Floats,
    start: Floats | None = None,
    *,
    max_steps: int | None = None,
) -> Minimiser:
    """Return a minimiser of theta'G theta/2 - c'theta + sum_j lam_j |theta_j|.

    O(k^2 + k m) a breakpoint with k active columns, and memory for a second (m, m) matrix. Where
    several theta are minimisers (columns that are equal, or depend on each other) it is one whose
    active columns are independent, always the same one.

    Parameters
    ----------
    G : (m, m) array
        Symmetric and positive semi-definite, and c in its range, so that there is a minimum.
    c : (m,) array
    lam : (m,) array, or float
        Penalties, at least 0; columns with 0 are free.
    start : (m,) array, optional
        Where to begin, the minimiser of a similar problem: breakpoints are few then.
    max_steps : int, optional
        Breakpoints at most; the default is far beyond what is usual.
    """
    G, c, lam = _checked(G, c, lam)
    coef = np.zeros(len(c)) if start is None else np.asarray(start, dtype=float)
    best, least, steps = Minimiser(coef, c - G @ coef, 0, False), np.inf, 0
    for ridge in _RIDGES:
        most = _STEPS * len(c) + 200 if max_steps is None else max_steps - steps
        R, b = G, c
        if ridge:
            R, b = G.copy(), c + ridge * np.diagonal(G) * best.coef
            R.reshape(-1)[:: len(c) + 1] *= 1.0 + ridge
        coef, taken, ended = _from(R, b, lam, best.coef, most)
        steps += taken
        slopes = c - G @ coef
        complete = ended and _holds(G, c, lam, coef, slopes)
        value = float(lam @ np.abs(coef) - 0.5 * (coef @ (slopes + c)))
        if complete or value < least:
            best, least = Minimiser(coef, slopes, steps, complete), value
        if complete or (max_steps is not None and steps >= max_steps):
            break
    return best._replace(n_steps=steps)


def minimise_l1_path(
    G: Floats, c: Floats, lam: Floats, multipliers: Floats, *, max_steps: int | None = None
) -> tuple[Floats, int]:
    """Return minimisers (g, m) for the penalties t lam, t of g multipliers, and the breakpoints.

    All by one homotopy. The multipliers are positive and descend.
    """
    G, c, lam = _checked(G, c, lam)
    multipliers = np.asarray(multipliers, dtype=float)
    if (
        multipliers.ndim != 1
        or not len(multipliers)
        or not np.all(multipliers > 0)
        or np.any(np.diff(multipliers) > 0)
    ):
        raise ValueError("multipliers of the penalties must be positive and descend")
    # With (1 - tau) c and penalties t_g lam, t_g the last, theta is that of t = t_g/(1 - tau) and
    # c, times 1 - tau.
    shares = multipliers[-1] / multipliers
    state, _ = _begin(G, lam, np.zeros(len(c)))
    out = np.zeros((len(multipliers), len(c)))
    most = _STEPS * len(c) + 200 if max_steps is None else max_steps
    _follow(state, G, c, -c, multipliers[-1] * lam, 1.0 - shares, out, most)
    return out / shares[:, None], int(state.whole[1])


def _checked(G: Floats, c: Floats, lam: Floats) -> tuple[Floats, Floats, Floats]:
    G, c = np.ascontiguousarray(G, dtype=float), np.ascontiguousarray(c, dtype=float)
    lam = np.ascontiguousarray(np.broadcast_to(np.asarray(lam, dtype=float), c.shape))
    if c.ndim != 1 or G.shape != (len(c), len(c)):
        raise ValueError(f"G must have shape {(len(c),) * 2} for c of {c.shape}, got {G.shape}")
    if not (np.all(lam >= 0) and np.all(np.isfinite(lam))):
        raise ValueError("penalties must be finite and at least 0")
    if not (np.all(np.isfinite(c)) and np.all(np.isfinite(G))):
        raise ValueError("G or c holds NaN or infinity")
    return G, c, lam


def _begin(G: Floats, lam: Floats, coef: Floats) -> tuple[Homotopy, Floats]:
    """Make the free columns and those with coefficients active; return the coefficients too.

    A column that depends on others before it is not, and then has no coefficient.
    """
    state = empty_homotopy(len(lam))
    free = np.flatnonzero(lam == 0.0)
    wanted = np.concatenate([free, np.flatnonzero((coef != 0.0) & (lam > 0.0))])
    state.sign[:] = np.sign(coef) * (lam > 0.0)
    state.active[: len(wanted)] = wanted
    state.whole[0] = len(wanted)
    homotopy().factorise(state, G, _FLOOR)
    return state, np.where(state.place > 0, coef, 0.0)


def _follow(
    state: Homotopy,
    G: Floats,
    c: Floats,
    d: Floats,
    lam: Floats,
    grid: Floats,
    out: Floats,
    most: int,
) -> bool:
    bound = lam * (1.0 + _SLACK) + _ROUNDING * np.abs(c)
    homotopy().aim(state, c, d, lam, 0)
    ended = homotopy().follow(state, G, c, d, lam, bound, 1.0, grid, out, _FLOOR, most)
    return bool(ended == 0.0)


def _from(G: Floats, c: Floats, lam: Floats, coef: Floats, most: int) -> tuple[Floats, int, bool]:
    """Return theta from a start, the breakpoints, and whether the end was reached."""
    state, coef = _begin(G, lam, coef)
    # At tau = 1 the start is to be a minimiser: its slopes are lam_j sign(theta_j), or, of columns
    # that violate the conditions, 0: they join one after the other, the worst first.
    slopes = c - G @ coef
    wanted = np.where(np.abs(slopes) > lam, 0.0, slopes)
    d = np.where(state.place > 0, lam * state.sign, wanted) - slopes
    out = np.zeros((1, len(c)))
    ended = _follow(state, G, c, d, lam, np.zeros(1), out, most)
    return out[0], int(state.whole[1]), ended


def _holds(G: Floats, c: Floats, lam: Floats, coef: Floats, slopes: Floats) -> bool:
    """Whether slopes are within the penalties, and at them where a coefficient is not 0."""
    excess = np.where(coef != 0.0, np.abs(slopes - lam * np.sign(coef)), np.abs(slopes) - lam)
    rounding = np.abs(c) + np.abs(G) @ np.abs(coef)
    return bool(np.all(excess <= 1e-10 * lam + 1e-13 * rounding))
