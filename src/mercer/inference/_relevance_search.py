"""What single steps and exchanges gain, for any hyperprior, and which functions come next.

Not an engine; `_relevance_fast` is the algorithm, `mercer.linalg.precisions` has the notation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.inference._relevance_ascent import Penalty
from mercer.inference._relevance_problem import Hyperprior
from mercer.inference._relevance_table import Table
from mercer.linalg.precisions import ADD, CHANGE, COLLINEAR, NOTHING, REMOVE, Model, precisions

__all__ = ["add", "after_exchange", "alone", "gains_of_exchange", "look", "run"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Functions among which those are chosen that may be wanted next; how many; and how much they may
# have to do with each other under the model.
_AMONG, _MANY, _ALIKE = 96, 7, 0.6
# A variance that is less is what rounding has made of it since the matrices were fresh.
_LEAST_XI = 1e-100
# Exchanges that are tried together gain at least this part of what the best one does.
_LEAST = 0.2


def alone(S: Floats, Q2: Floats) -> Floats:
    """Return the best precisions of functions that each are alone in the model; Q2 is Q^2.

    Those of functions that gain nothing are large, and not infinite.
    """
    S = np.where(S > 0, S, 1.0)
    return np.asarray(S * S / np.maximum(Q2 - S, 1e-3 * S))


def look(model: Model, hyperprior: Hyperprior) -> tuple[int, int, float, float]:
    """Return what one step gains most by, as `choose` does for a flat hyperprior."""
    k, beta = int(model.whole[0]), model.numbers[0]
    sound = np.diagonal(model.Xi)[:k] > _LEAST_XI
    xi, s = np.where(sound, np.diagonal(model.Xi)[:k], 1.0), model.s[:k]
    outside = np.flatnonzero((model.place == 0) & (model.S > 0))
    S = np.append(np.maximum(1.0 / xi - s, 0.0), model.S[outside])
    Q = np.append(model.mu[:k] / xi, model.Q[outside])
    inside = sound & (S[:k] > 0)
    S[:k] = np.where(inside, S[:k], 1.0)
    best, value = hyperprior.best_precision(S, Q)
    stays = np.isfinite(best)
    now = 0.5 * (np.log(s * xi) + model.mu[:k] ** 2 / xi) + hyperprior.log_hyper(s)
    gain = np.where(stays, value, 0.0)
    gain[:k] = np.where(inside, gain[:k] - now, 0.0)
    may_go = (model.place[model.active[:k]] == 1) & (k > 1)
    gain[:k] = np.where(stays[:k] | may_go, gain[:k], 0.0)
    pivot = np.where(stays[k:], best[k:], 0.0)
    explained = pivot + S[k:] <= COLLINEAR * (pivot + beta * model.D[outside])
    gain[k:] = np.where(explained, 0.0, gain[k:])
    top = int(np.argmax(gain))
    if not gain[top] > 0:
        return NOTHING, -1, 0.0, 0.0
    if top >= k:
        return ADD, int(outside[top - k]), float(best[top]), float(gain[top])
    return (CHANGE if stays[top] else REMOVE), top, float(best[top]), float(gain[top])


def superfluous(model: Model, hyperprior: Hyperprior) -> int:
    """Return a function of the model that it is no worse without, however little; or -1."""
    k = int(model.whole[0])
    sound = np.diagonal(model.Xi)[:k] > _LEAST_XI
    xi = np.where(sound, np.diagonal(model.Xi)[:k], 1.0)
    S, Q = 1.0 / xi - model.s[:k], model.mu[:k] / xi
    best, _ = hyperprior.best_precision(np.where(S > 0, S, 1.0), np.where(S > 0, Q, 0.0))
    there = sound & (model.place[model.active[:k]] == 1) & ~np.isfinite(best) & (k > 1)
    return int(np.argmax(there)) if np.any(there) else -1


def run(model: Model, penalty: Penalty, tol: float, limit: int) -> tuple[int, int, float, float]:
    """Take steps inside the model until one that adds gains more, or none gains `tol`.

    Return what comes next, as `mercer.linalg.precisions` has it for a flat hyperprior: after
    `limit` steps nothing, with a gain of `tol` if there is more to do. A limit of 0 is a look.
    """
    loops = precisions()
    if penalty.is_flat:
        found = loops.run(model, tol, limit)
        return int(found[0]), int(found[1]), float(found[2]), float(found[3])
    for step in range(limit + 1):
        what, which, s, gain = look(model, penalty.hyperprior)
        if gain < tol:
            which = superfluous(model, penalty.hyperprior)
            if which < 0:
                return NOTHING, -1, 0.0, gain
            what, gain = REMOVE, 0.0
        if step == limit:
            break
        if what == ADD:
            return what, which, s, gain
        model.numbers[1] += gain
        if what == CHANGE:
            loops.change(model, which, s)
        else:
            loops.remove(model, which)
    return NOTHING, -1, 0.0, tol


def add(model: Model, table: Table, i: int, s: float, gain: float) -> Model:
    """Let function i come in, and return the model, which is another one if there was no room."""
    model = model.with_room(int(model.whole[0]) + 1)
    wanted = None if table.is_stored else lambda: likely(model, table)
    model.G[model.whole[0]] = table.gram(i, wanted)
    precisions().insert(model, i, s)
    model.numbers[1] += gain
    return model


def after_exchange(model: Model, penalty: Penalty, at: int, i: int) -> tuple[float, float]:
    """Return the precision of function i outside in the place of the one at `at`, and its gain."""
    k, xi = int(model.whole[0]), float(model.Xi[at, at])
    # What the others have left of the two, now.
    t = float(model.numbers[0] * (model.Xi[at, :k] @ model.G[:k, i]))
    S, Q = model.S[i] + t * t / xi, model.Q[i] + t * model.mu[at] / xi
    s, value = penalty.hyperprior.best_precision(np.array([S]), np.array([Q]))
    now = 0.5 * float(np.log(model.s[at] * xi) + model.mu[at] ** 2 / xi)
    return float(s[0]), float(value[0]) - now - penalty.hyper(model.s[at : at + 1])


def gains_of_exchange(model: Model, terms: Penalty, tol: float) -> list[tuple[int, int]]:
    """Return exchanges (j, i) of a function j in the model for i outside, best first.

    Without function j the statistics of all are S + T_j^2/Xi_jj and Q + T_j mu_j/Xi_jj with
    T = beta G'Xi, so that all k M exchanges take one matrix product.
    """
    k = int(model.whole[0])
    xi, mu = np.diagonal(model.Xi)[:k], model.mu[:k]
    root = np.sqrt(xi)
    T = (model.numbers[0] * (model.Xi[:k, :k] / root[:, None])) @ model.G[:k]  # (k, M)
    outside = (model.place == 0) & (model.S > 0)
    gains, others = np.zeros(k), np.zeros(k, dtype=np.intp)
    for j in range(k):
        if model.place[model.active[j]] != 1:
            continue
        S = model.S + T[j] * T[j]
        Q = model.Q + T[j] * (mu[j] / root[j])
        if terms.is_flat:
            ratio = np.where(outside, Q * Q / np.where(S > 0, S, 1.0), 0.0)
            i = int(np.argmax(ratio))
            r = max(float(ratio[i]), 1.0)
            value = 0.5 * (r - 1.0 - float(np.log(r)))
        else:
            s, all_values = terms.hyperprior.best_precision(np.where(S > 0, S, 1.0), Q)
            values = np.where(outside & np.isfinite(s), all_values, 0.0)
            i = int(np.argmax(values))
            value = float(values[i])
        now = 0.5 * float(np.log(model.s[j] * xi[j]) + mu[j] ** 2 / xi[j])
        gains[j], others[j] = value - now - terms.hyper(model.s[j : j + 1]), i
    order = np.argsort(-gains, kind="stable")
    least = max(tol, _LEAST * float(gains[order[0]]))
    return [(int(model.active[j]), int(others[j])) for j in order if gains[j] >= least]


def likely(model: Model, rows: Table) -> Indices:
    """Return functions that may be wanted soon: of high gain, and with little in common."""
    k, beta = int(model.whole[0]), model.numbers[0]
    ratio = np.where(
        (model.place == 0) & (model.S > 0), model.Q**2 / np.where(model.S > 0, model.S, 1.0), 0.0
    )
    some = np.argsort(-ratio, kind="stable")[:_AMONG]
    some = some[ratio[some] > 1]
    A = rows.take(some)
    G = model.G[:k, some]
    C = beta * (A.T @ A) - beta**2 * (G.T @ (model.Xi[:k, :k] @ G))
    root = np.sqrt(np.maximum(np.diagonal(C), 1e-300))
    C = np.abs(C) / np.outer(root, root)
    chosen: list[int] = []
    for place in range(len(some)):
        if len(chosen) > _MANY:
            break
        if not chosen or float(np.max(C[place, chosen])) < _ALIKE:
            chosen.append(place)
    return np.asarray(some[chosen], dtype=np.intp)
