"""The likelihoods by the formulas of the papers, as plainly as can be: (object, log p, places)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtr

from mercer.likelihoods import (
    Custom,
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Logistic,
    MixtureNoise,
    Poisson,
    Probit,
    SoftLabels,
    StudentT,
)


class Case(NamedTuple):
    """A likelihood, log p(y, f), places (y -> [(centre, width)]) it is rough at, some y."""

    likelihood: Any
    log_p: Any
    places: Any
    ys: tuple[float, ...]

    def __str__(self):
        return repr(self.likelihood)


def around(*offsets, width):
    return lambda y: [(y + o, width) for o in offsets]


def gaussian(s2):
    return Case(
        Gaussian(s2),
        lambda y, f: -((y - f) ** 2) / (2 * s2) - np.log(2 * np.pi * s2) / 2,
        around(0.0, width=np.sqrt(s2)),
        (0.4, -3.0),
    )


def laplace(s):
    return Case(
        Laplace(s),
        lambda y, f: -abs(y - f) / s - np.log(2 * s),
        around(0.0, width=s),
        (0.4, -3.0),
    )


def insensitive(e, s):
    return Case(
        EpsilonInsensitive(e, s),
        lambda y, f: -np.maximum(abs(y - f) - e, 0) / s - np.log(2 * (s + e)),
        around(-e, e, width=min(s, e) if e else s),
        (0.4, -3.0),
    )


def huber(s, k):
    constant = s * (np.sqrt(2 * np.pi) * (2 * ndtr(k) - 1) + 2 * np.exp(-(k**2) / 2) / k)

    def log_p(y, f):
        z = abs(y - f) / s
        return np.where(z <= k, -(z**2) / 2, k**2 / 2 - k * z) - np.log(constant)

    return Case(Huber(s, k), log_p, around(-k * s, 0.0, k * s, width=s), (0.4, -3.0))


def student(n, s):
    constant = gammaln((n + 1) / 2) - gammaln(n / 2) - np.log(n * np.pi) / 2 - np.log(s)
    return Case(
        StudentT(n, s),
        lambda y, f: constant - (n + 1) / 2 * np.log1p((y - f) ** 2 / (n * s**2)),
        around(0.0, width=s),
        (0.4, -3.0),
    )


def logistic():
    return Case(
        Logistic(), lambda y, f: -np.logaddexp(0, -y * f), lambda y: [(0.0, 1.0)], (-1.0, 1.0)
    )


def probit(s):
    def log_p(y, f):
        return log_ndtr(np.asarray(y * f / s, dtype=float))

    return Case(Probit(s), log_p, lambda y: [(0.0, s)], (-1.0, 1.0))


def step():
    def log_p(y, f):
        with np.errstate(divide="ignore"):
            return np.log(np.where(y * f > 0, 1.0, np.where(y * f < 0, 0.0, 0.5)))

    return Case(Probit(0.0), log_p, lambda y: [(0.0, 1e-3)], (-1.0, 1.0))


def soft(labels, kind):
    def log_p(y, f):
        yes, no = labels.log_p(1.0, f), labels.log_p(-1.0, f)
        if kind == "cross_entropy":
            return y * yes + (1 - y) * no
        return np.log(y * np.exp(yes) + (1 - y) * np.exp(no))

    return Case(SoftLabels(labels.likelihood, kind), log_p, labels.places, (0.02, 0.7))


def poisson():
    return Case(
        Poisson(),
        lambda y, f: y * f - np.exp(f) - gammaln(y + 1),
        lambda y: [(np.log(y + 0.5), 1.0)],
        (0.0, 3.0, 250.0),
    )


def mixture(w, m, s):
    w, m, s = (np.array(v, dtype=float) for v in (w, m, s))

    def log_p(y, f):
        t = np.asarray(y - f)[..., None]
        logs = np.log(w / w.sum() / np.sqrt(2 * np.pi) / s) - ((t - m) / s) ** 2 / 2
        top = logs.max(axis=-1)
        return top + np.log(np.exp(logs - top[..., None]).sum(axis=-1))

    return Case(
        MixtureNoise(w, m, s),
        log_p,
        lambda y: [(y - a, b) for a, b in zip(m, s, strict=True)],
        (0.4, -3.0),
    )


def log_sech(y, f):
    return -np.logaddexp(y - f, f - y) - np.log(np.pi / 2)


def custom():
    return Case(Custom(log_sech, log_concave=True), log_sech, around(0.0, width=1.0), (0.4, -3.0))


CASES = [
    gaussian(0.3),
    laplace(0.1),
    laplace(1.0),
    laplace(7.0),
    insensitive(0.5, 0.1),
    insensitive(0.0, 0.4),
    insensitive(1e-4, 0.3),
    insensitive(4.0, 2.0),
    huber(0.1, 1.345),
    huber(1.0, 0.3),
    huber(2.0, 3.0),
    student(1.0, 0.5),
    student(4.0, 0.1),
    student(30.0, 2.0),
    logistic(),
    probit(0.2),
    probit(1.0),
    probit(5.0),
    step(),
    soft(logistic(), "cross_entropy"),
    soft(logistic(), "mixture"),
    soft(probit(0.5), "cross_entropy"),
    soft(probit(0.5), "mixture"),
    poisson(),
    mixture([0.9, 0.1], [0.0, 0.0], [0.1, 2.0]),
    mixture([0.3, 0.2, 0.5], [-2.0, 3.0, 0.1], [0.3, 0.5, 1.0]),
    custom(),
]
