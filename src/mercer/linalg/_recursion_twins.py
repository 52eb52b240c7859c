"""The NumPy twin of the compiled recursion: the same arrays and functions, slower, easy to read.

It states what the compiled one computes; the tests hold that to it, and it runs where Numba cannot
be imported. `mercer.linalg.recursion` has the notation.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mercer.linalg.recursion import Arrays, Rules

__all__ = ["cheapest", "forget", "learn", "predict", "remove"]

Floats = NDArray[np.float64]

#: There is no `advance`: a row at a time, by the averages of the likelihood itself.
COMPILED = False
#: What K e_k - k may be, in units of gamma, before e_k is refined, and in units of k(x, x) before Q
#: is made anew. It is looked at where gamma is below a part of k(x, x), and now and then.
REFINED, Q_DRIFT = 1e-9, 1e-8
NEAR, SELDOM = 0.1, 8
#: Changes of the basis between two checks of P, and what P times S less the identity may be in a
#: vector of ones and minus ones.
CHECK_EVERY, P_DRIFT = 256, 1e-6
#: A row leaves at least the first part of the variance of f there, and the second of k(x, x): what
#: is sharper is rounding, of the update itself and of all that S has been.
SHARPEST, SMALLEST = 1e-12, 2e-15
TINY = 1e-300
#: Below this part of k(x, x) what S leaves of a row's variance is looked at for rounding.
SMALL = 1e-8
EPS = float(np.finfo(float).eps)


def forget(A: Arrays, keep: float) -> None:
    """Let the function drift: g becomes sqrt(keep) g and an independent draw of the prior.

    Rows of the past are then seen through k(x, x') sqrt(keep)^|t - t'|, a process in time as well.
    The coefficients of explicit functions do not drift.
    """
    m, r = A.m, A.n_features
    root, B = math.sqrt(keep), slice(r, r + m)
    for S in A.S:
        S[B, B] = keep * S[B, B] + (1.0 - keep) * A.K[:m, :m]
        S[B, :r] *= root
        S[:r, B] *= root
    A.mu[:, B] *= root
    A.alpha[:, :m] *= root
    A.curvature[:, :m] *= keep


def predict(A: Arrays, variance: float, floor: float) -> float:
    """Find e, S e, e'mu and e'S e of a row whose k and h are in place; return gamma (SOGP 3.14).

    Rounding of Q would grow by 1/gamma with each point that is added by it. A step of iterative
    refinement prevents that, and what it leaves tells when Q is to be made anew.

    Parameters
    ----------
    A : Arrays
        With k_B(x) in `k` and h(x) in the first entries of `e`.
    variance : float
        k(x, x).
    floor : float
        That of the rules: a row of less novelty will not become a point.
    """
    m, r = A.m, A.n_features
    n = r + m
    k, Q = A.k[:m], A.Q[:m, :m]
    e_k = Q @ k  # (SOGP 3.7)
    gamma = variance - float(e_k @ k)
    if gamma > floor * variance and (gamma < NEAR * variance or A.whole[1] % SELDOM == 0):
        rest = k - A.K[:m, :m] @ e_k
        worst = np.max(np.abs(rest), initial=0.0)
        if worst <= REFINED * gamma:
            gamma -= float(e_k @ rest)  # (SOGP 3.6), which errs as the square of e_k does
        else:
            A.whole[2] |= worst > Q_DRIFT * variance
            e_k += Q @ rest
            gamma = variance - float(e_k @ k)
    A.e[r:n] = e_k
    A.s[:-1, :n] = A.S[:, :n, :n] @ A.e[:n]
    A.spread[:] = A.s[:-1, :n] @ A.e[:n]
    for c in np.flatnonzero(A.spread <= SMALL * variance):
        # What is but rounding is not to be told from 0, nor from less, and S e is no better.
        size = np.abs(A.e[:n]) @ np.sqrt(np.maximum(np.diagonal(A.S[c])[:n], 0.0))
        if A.spread[c] <= n * EPS * size**2:
            A.spread[c], A.s[c, :n] = n * EPS * size**2, 0.0
    A.mean[:] = A.mu[:, :n] @ A.e[:n]
    return max(gamma, 0.0)


def learn(A: Arrays, rules: Rules, variance: float, gamma: float, source: int) -> None:
    """Take in the row that `predict` was called for, whose q and r are in place.

    A row that is new enough becomes a point (SOGP 2.9). If it makes another redundant that one
    goes, and if there are too many the one with the least score. Any other row changes the moments
    at the points there are (SOGP 3.2).

    Parameters
    ----------
    A : Arrays
    rules : Rules
    variance, gamma : float
        k(x, x), and what the points leave of it.
    source : int
        What `source` is to say of the row, should it become a point.
    """
    var = np.maximum(gamma + A.spread, TINY)
    least = np.minimum(np.maximum(SHARPEST, SMALLEST * variance / var), 1.0)
    A.r[:] = np.maximum(A.r, (least - 1.0) / var)
    is_new = rules.max_basis > 0 and gamma > rules.floor * variance
    if rules.novelty == 0:
        is_new = is_new and gamma > rules.tol * variance
    else:  # by what a projection would change the mean (SOGP 3.13)
        is_new = is_new and np.max(np.abs(A.q)) * gamma > rules.tol * math.sqrt(variance)
    if not is_new:
        _project(A, gamma)
        return
    if rules.keep < 1.0:
        _renew(A)
    _add(A, gamma, source, variance)
    j = _redundant(A, rules.floor)
    if j < 0 and A.m > rules.max_basis:
        j = cheapest(A, rules)
    if j >= 0:
        remove(A, j)
    if j == A.m:  # the row itself has gone again, and the points are those there were
        return
    A.whole[1] += 1
    if A.whole[1] >= CHECK_EVERY:
        A.whole[1] = 0
        if rules.keep == 1.0 and _has_drifted(A):
            A.whole[2] = 1


def _project(A: Arrays, gamma: float) -> None:
    """Update the moments without a new point, and add what that costs (SOGP 3.2).

    It is the row made a point and that point removed: with P_ii = 1/gamma + the row's precision
    -r/(1 + r var), the score below comes to [ln((1 + r e'S e)/(1 + r var)) + gamma (r + q^2)]/2.
    """
    m, r = A.m, A.n_features
    n = r + m
    for c, s in enumerate(A.s[:-1, :n]):
        slope, B = A.r[c], A.Q[:m, :m] @ s[r:]
        inside = max(1.0 + slope * A.spread[c], SHARPEST)
        outside = max(1.0 + slope * (A.spread[c] + gamma), SHARPEST)
        lost = math.log(inside / outside) + gamma * slope
        A.curvature[c, :m] += slope * B**2
        for p in _sharing(A, c):
            A.mu[p, :n] += A.q[p] * s  # as the process itself changes (SOGP 2.6), and so does S
            A.alpha[p, :m] += A.q[p] * B
            A.sums[0] += max(0.5 * (lost + gamma * A.q[p] ** 2), 0.0)
        if np.any(s):  # else the row tells nothing of the points
            A.S[c, :n, :n] += slope * np.outer(s, s)
            A.P[c, :n, :n] -= slope / inside * np.outer(A.e[:n], A.e[:n])


def _add(A: Arrays, gamma: float, source: int, variance: float) -> None:
    """Make the row a point, and update (SOGP 2.9, 3.15)."""
    m, r = A.m, A.n_features
    n = r + m
    e, e_k = A.e[:n], A.e[r:n]
    for c, s in enumerate(A.s[:-1, :n]):
        S, P, slope = A.S[c], A.P[c], A.r[c]
        cross = gamma + float(e_k @ s[r:])  # the covariance of the new g with f
        # Of alpha and C the last coordinate is q and r, that of the unit vector (SOGP 2.9).
        rest = A.Q[:m, :m] @ s[r:] - e_k
        A.curvature[c, :m] += slope * rest**2
        A.curvature[c, m] = slope
        for p in _sharing(A, c):
            mean = float(e_k @ A.mu[p, r:n])
            A.mu[p, :n] += A.q[p] * s
            A.mu[p, n] = mean + A.q[p] * cross
            A.alpha[p, :m] += A.q[p] * rest
            A.alpha[p, m] = A.q[p]
        shared = s - S[:n, :r] @ e[:r]  # the covariance of z with the new g
        own = gamma + float(shared[r:] @ e_k) + slope * cross**2
        S[:n, :n] += slope * np.outer(s, s)
        S[n, :n] = S[:n, n] = shared + slope * cross * s
        S[n, n] = own
        # The prior's conditional of the new g, and the precision that the row gives to h'beta + g.
        sharp = -slope / max(1.0 + slope * (gamma + A.spread[c]), SHARPEST)
        P[r:n, r:n] += np.outer(e_k, e_k) / gamma
        P[:r, :r] += sharp * np.outer(e[:r], e[:r])
        P[n, :r] = P[:r, n] = sharp * e[:r]
        P[n, r:n] = P[r:n, n] = -e_k / gamma
        P[n, n] = 1.0 / gamma + sharp
    A.Q[:m, :m] += np.outer(e_k, e_k) / gamma  # (SOGP 3.15)
    A.Q[m, :m] = A.Q[:m, m] = -e_k / gamma
    A.Q[m, m] = 1.0 / gamma
    A.K[m, :m] = A.K[:m, m] = A.k[:m]
    A.K[m, m] = variance
    A.source[m] = source
    A.whole[0] = m + 1


def _redundant(A: Arrays, floor: float) -> int:
    """Return the point that the others, the new one among them, determine most, or -1.

    Without this all points would have been new when they came, and their Gram matrix be singular.
    """
    m = A.m
    determined = np.diagonal(A.Q)[:m] * np.diagonal(A.K)[:m]
    j = int(np.argmax(determined))
    return j if determined[j] > 1.0 / floor else -1


def cheapest(A: Arrays, rules: Rules) -> int:
    """Return the point of the least score, which of several outputs is their largest (SOGP 4.8)."""
    m, r = A.m, A.n_features
    q = np.diagonal(A.Q)[:m]
    if rules.criterion == 0:
        # (SOGP 3.18), and of the newest point (SOGP 3.17), which leaves out the absolute value
        scores = np.abs(A.alpha[:, :m]) / q
    else:  # twice the divergence; see `posterior.pruning_greedy`
        precisions = np.einsum("cii->ci", A.P)[:, r : r + m]
        scores = np.log(np.maximum(precisions / q, TINY))
        scores = scores + (A.curvature[:, :m] + A.alpha[:, :m] ** 2) / q
    return int(np.argmin(np.max(scores, axis=0)))


def remove(A: Arrays, j: int) -> None:
    """Remove point j and add what that costs (SOGP 3.16); the last point takes its place.

    Of the moments a row and a column go. With t = Q_j/Q_jj, alpha loses alpha_j t, the diagonal of
    C gains C_jj t^2 - 2 t C_j, Q loses Q_jj t t', and P a Schur complement. The derivation in the
    paper's appendix misprints three of its steps: (E.4) is C k = C_j/C_jj, in (E.9) the term with
    Q_j/Q_jj is subtracted, and in (E.10) the first term that is added has the scalar C_jj.
    """
    m, r = A.m, A.n_features
    n, last = r + m, m - 1
    column = A.Q[:m, j].copy()
    q, t = column[j], column / column[j]
    for c in range(len(A.S)):
        S, P = A.S[c], A.P[c]
        C = A.Q[:m, :m] @ (S[r:n, r:n] @ column) - column
        own = C[j]
        lost = math.log(max(P[r + j, r + j] / q, TINY)) + own / q
        A.curvature[c, :m] += t * (own * t - 2.0 * C)
        for p in _sharing(A, c):
            a = A.alpha[p, j]
            A.sums[0] += max(0.5 * (lost + a * a / q), 0.0)
            A.alpha[p, :m] -= a * t
            A.alpha[p, j], A.mu[p, r + j] = A.alpha[p, last], A.mu[p, r + last]
        A.curvature[c, j] = A.curvature[c, last]
        row = P[r + j, :n].copy()
        if row[r + j] > 0.0:
            P[:n, :n] -= np.outer(row, row) / row[r + j]
        _move(S, r + last, r + j)
        _move(P, r + last, r + j)
    A.Q[:m, :m] -= np.outer(column, column) / q
    _move(A.Q, last, j)
    _move(A.K, last, j)
    A.source[j] = A.source[last]
    A.whole[0] = last


def _renew(A: Arrays) -> None:
    """Make P anew from S, where forgetting has left it behind."""
    n = A.n_features + A.m
    for S, P in zip(A.S[:, :n, :n], A.P[:, :n, :n], strict=True):
        inverse = np.linalg.inv(S + n * EPS * np.diag(np.diagonal(S)))
        P[:] = np.tril(inverse) + np.tril(inverse, -1).T


def _move(A: Floats, old: int, new: int) -> None:
    """Put the last row and column of a symmetric matrix in the place of others."""
    corner = A[old, old]
    A[new, :old] = A[old, :old]
    A[new, new] = corner
    A[:old, new] = A[new, :old]


def _sharing(A: Arrays, c: int) -> range:
    """Return the outputs whose covariance is number c."""
    return range(c, c + 1) if len(A.S) > 1 else range(len(A.mu))


def _has_drifted(A: Arrays) -> bool:
    """Return whether rounding has built up in P."""
    n = A.n_features + A.m
    probe = np.where((np.arange(n) * 2654435761 >> 13) & 1, 1.0, -1.0)
    back = np.einsum("cij,cj->ci", A.P[:, :n, :n], A.S[:, :n, :n] @ probe)
    return not np.all(np.abs(back - probe) <= P_DRIFT)
