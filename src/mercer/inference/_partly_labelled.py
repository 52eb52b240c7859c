"""Rows of which some have no label: what stands for a log likelihood where there is none.

Two functions of the probabilities p(c | f) at the row, and so of its own latent values. Both are
largest where the label is certain, and least where all classes are as probable; neither is concave.

    sum_c p(c | f) log p(c | f)       minus the entropy, that of (BKM 61)
    T log sum_c p(c | f)^(1/T)        the most that sum_c q_c log p(c | f) + T H(q) can be, over
                                      distributions q; 0 for T = 1, and max_c log p(c | f) for T = 0

Not engines of their own: `transductive` goes on from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp
from scipy.special import softmax as normalised

from mercer.inference import softmax
from mercer.inference._newton import Solver
from mercer.likelihoods.base import Likelihood
from mercer.likelihoods.labels import Binary

__all__ = ["PartlyLabelled", "PartlyLabelledSoftmax", "SoftmaxSearch", "minus_entropy"]

Floats = NDArray[np.float64]


def minus_entropy(log_p: Floats) -> Floats:
    """Return sum_c p_c log p_c over the last axis, given the logarithms; 0 log 0 is 0."""
    p = np.exp(log_p)
    return np.asarray(np.sum(p * np.where(p > 0, log_p, 0.0), axis=-1))


def unlabelled(log_p: Floats, temperature: float | None) -> Floats:
    """Return what stands for log p(y | f), from log p(c | f) in the last axis.

    It is minus the entropy if the temperature is None.
    """
    if temperature is None:
        return minus_entropy(log_p)
    return np.asarray(temperature * logsumexp(log_p / temperature, axis=-1))


class PartlyLabelled(Likelihood):
    """Labels -1 and 1, and 0 where there is none.

    Parameters
    ----------
    likelihood : Logistic or Probit
        The likelihood of labels.
    temperature : float, optional
        T, above 0; without it minus the entropy is taken.
    """

    def __init__(self, likelihood: Binary, temperature: float | None = None) -> None:
        self.likelihood, self.temperature = likelihood, temperature
        self._set()

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return log p(y | f), or what stands for it where y = 0."""
        y, f = np.broadcast_arrays(np.asarray(y, dtype=float), np.asarray(f, dtype=float))
        logs = np.stack([self.likelihood.log_density(label, f) for label in (-1.0, 1.0)], axis=-1)
        given = np.where(y > 0, logs[..., 1], logs[..., 0])
        return np.where(y == 0, unlabelled(logs, self.temperature), given)

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return the first three derivatives in f."""
        y, f = np.broadcast_arrays(np.asarray(y, dtype=float), np.asarray(f, dtype=float))
        labels = (-1.0, 1.0)
        logs = np.stack([self.likelihood.log_density(label, f) for label in labels])
        own = np.stack([self.likelihood.derivatives(label, f) for label in labels], axis=1)
        if self.temperature is None:
            without = _of_entropy(logs, own)
        else:
            without = _of_power(logs, own, self.temperature)
        first, second, third = (
            np.where(y == 0, none, np.where(y > 0, given[1], given[0]))
            for none, given in zip(without, own, strict=True)
        )
        return first, second, third

    def fisher(self, f: ArrayLike) -> Floats:
        """Return the information of a label."""
        return self.likelihood.fisher(f)


def _of_entropy(log: Floats, d: Floats) -> tuple[Floats, ...]:
    """Return the derivatives of minus the entropy, from those of log p (3, 2, ...) of both labels.

    The derivatives of p add up to 0, so that those of log p in p log p are left out.
    """
    d1, d2, d3 = d
    p = np.exp(log)
    log = np.where(p > 0, log, 0.0)
    first = log * d1
    second = log * (d1**2 + d2) + d1**2
    third = log * (d1**3 + 3 * d1 * d2 + d3) + 2 * d1**3 + 3 * d1 * d2
    return tuple(np.sum(p * part, axis=0) for part in (first, second, third))


def _of_power(log: Floats, d: Floats, T: float) -> tuple[Floats, ...]:
    """Return the derivatives of T log sum p^(1/T): cumulants of those of log p under q."""
    d1, d2, d3 = d
    q = normalised(log / T, axis=0)
    first = np.sum(q * d1, axis=0)
    away = d1 - first
    second = d2 + away**2 / T
    third = d3 + 3 * away * d2 / T + away**3 / T**2
    return first, np.sum(q * second, axis=0), np.sum(q * third, axis=0)


@dataclass(frozen=True)
class PartlyLabelledSoftmax(softmax.SoftmaxProblem):
    """A `SoftmaxProblem` some of whose rows have no label.

    known : (n,) whether a row has one; Y counts there alone
    temperature : T, above 0; None for minus the entropy
    """

    known: NDArray[np.bool_] = field(kw_only=True)
    temperature: float | None = field(default=None, kw_only=True)

    def log_likelihood(self, F: Floats) -> float:
        """Return the log likelihood of the labels, and what stands for it elsewhere."""
        with np.errstate(all="ignore"):
            logs = log_softmax(F, axis=1)
            without = unlabelled(logs, self.temperature)
            rows = np.where(self.known, np.sum(self.Y * logs, axis=1), without)
            total = float(np.sum(self.weighted(rows)))
        return total if np.isfinite(total) else -np.inf


class SoftmaxSearch(softmax._Search):
    """Newton's method for a `PartlyLabelledSoftmax`.

    With p the probabilities of a row, l their logarithms, H their entropy and q ~ p^(1/T), the
    gradients are p (l + H), and q - p. Along v they change by

        dp (l + H) + p (dl - dp'l),   dl = v - p'v,   dp = p dl
        dq - dp,                      dq = q (v - q'v)/T.
    """

    many = 20  # it is one of many searches, and a preconditioner is made anew a little earlier
    problem: PartlyLabelledSoftmax

    def precondition(self, W: Floats, f: Floats) -> Solver:
        # It was slow because the objective is not concave: the factorisation for all classes, whose
        # curvature is that of labels, would not help.
        self.was_slow = False
        return super().precondition(W, f)

    def slopes(self, f: Floats) -> tuple[Floats, Floats]:
        slope, p = super().slopes(f)
        logs, T = _logarithms(p), self.problem.temperature
        if T is None:
            own = p * (logs - np.sum(p * logs, axis=1, keepdims=True))
        else:
            own = normalised(logs / T, axis=1) - p
        return np.where(self.problem.known[:, None], slope, self.problem.weighted(own)), p

    def bend(self, W: Floats, v: Floats) -> Floats:
        p, logs, T = W, _logarithms(W), self.problem.temperature
        dl = v - np.sum(p * v, axis=1, keepdims=True)
        dp = p * dl
        if T is None:
            surplus = logs - np.sum(p * logs, axis=1, keepdims=True)
            own = dp * surplus + p * (dl - np.sum(dp * logs, axis=1, keepdims=True))
        else:
            q = normalised(logs / T, axis=1)
            own = q * (v - np.sum(q * v, axis=1, keepdims=True)) / T - dp
        return self.problem.weighted(np.where(self.problem.known[:, None], dp, -own))


def _logarithms(p: Floats) -> Floats:
    """Return log p, where p is 0 that of the least number there is."""
    return np.log(np.maximum(p, np.finfo(float).tiny))
