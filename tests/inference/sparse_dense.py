"""Sparse approximations by their big n x n forms, and the problems that their tests share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from mercer.inference._approximations import approximation
from mercer.inference.exact import ExactProblem
from mercer.inference.sparse import SparseProblem
from mercer.kernels import RBF
from mercer.means import Linear, Zero

ALL = ["sor", "dtc", "fitc", "pitc", "vfe", "pep"]
MEANS = ["zero", "estimated", "integrated", "held"]
SCALE = np.array([0.7, 2.5])
HELD = np.array([[0.3, -0.2], [0.5, 0.1], [-0.4, 0.6]])


def make(name="dtc", mean="zero", weighted=False, n=40, m=7, seed=0, joint="exact", **changes):
    """Return a problem of two outputs and two columns, and its mean function."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    Y = np.sin(2 * X) + 0.3 * rng.normal(size=(n, 2))
    arguments = {
        "kernel": 1.3 * RBF([0.8, 1.4]),
        "X": X,
        "Y": Y,
        "noise": rng.uniform(0.1, 0.4, n),
        "Z": Z,
        "kind": approximation(name, 0.3, joint),
        "groups": np.sort(rng.integers(0, 6, n)),
        "weights": rng.uniform(0.5, 3.0, n) if weighted else None,
    }
    function = Zero()
    if mean != "zero":
        function = Linear(estimate="integrate" if mean == "integrated" else "ml")
        arguments["H"] = function.features(X)
        arguments["integrate"] = mean == "integrated"
    if mean == "held":
        arguments["beta"] = HELD
        function = Linear(HELD[0] * SCALE, HELD[1:] * SCALE, estimate=None)
    return SparseProblem(**(arguments | changes)), function


def exact_problem(p):
    """Return the problem without inducing inputs; the beta must not be held."""
    noise = p.noise if p.weights is None else p.noise / p.weights
    return ExactProblem(p.kernel, p.X, p.Y, noise, p.H, p.integrate)


def weight_constant(p):
    """Return what weights add to the exact log evidence of one output."""
    w = np.ones(len(p.Y)) if p.weights is None else p.weights
    return -0.5 * np.sum((w - 1) * np.log(2 * np.pi * p.noise) + np.log(w))


def same(a, b):
    return a[:, None] == b[None, :]


def dense(p):
    """Return Q, Lambda, Sigma^-1, beta, the log evidence and what goes with them."""
    K, Kuf, Kuu, n = p.kernel(p.X), p.kernel(p.Z, p.X), p.kernel(p.Z), len(p.Y)
    Q = Kuf.T @ np.linalg.solve(Kuu + (p.jitter or 0.0) * np.eye(len(Kuu)), Kuf)
    w = np.ones(n) if p.weights is None else p.weights
    D, a = np.diag(K - Q), p.kind.power
    if p.kind.training == "blocks":
        Lambda = np.where(same(p.groups, p.groups), K - Q, 0) + np.diag(p.noise / w)
        constant = weight_constant(p)
    else:
        rest = p.noise + a * D
        Lambda = np.diag(rest / w)
        constant = -0.5 * np.sum((w - 1) * np.log(2 * np.pi * rest) + np.log(w))
    if p.kind.penalised:
        r = D / p.noise
        constant -= 0.5 * np.sum(w * (r if a == 0 else (1 - a) / a * np.log(1 + a * r)))
    Sigma, P = Q + Lambda, p.n_outputs
    inverse = np.linalg.inv(Sigma)
    value, dimensions, beta, precision = 0.0, n, None, None
    R = p.Y
    if p.H is not None:
        precision = p.H.T @ inverse @ p.H
        beta = np.linalg.solve(precision, p.H.T @ inverse @ p.Y) if p.beta is None else p.beta
        R = p.Y - p.H @ beta
        if p.integrate:
            value -= 0.5 * P * np.linalg.slogdet(precision)[1]
            dimensions = n - p.H.shape[1]
    value -= 0.5 * np.sum(R * (inverse @ R))
    value -= 0.5 * P * (np.linalg.slogdet(Sigma)[1] + dimensions * np.log(2 * np.pi))
    return SimpleNamespace(
        Q=Q,
        Lambda=Lambda,
        inverse=inverse,
        beta=beta,
        precision=precision,
        R=R,
        log_evidence=value + P * constant,
    )


def predict(p, mean, Xs, test=None, groups=None):
    """Return mean (t, P) and joint covariance (t, t, P) at Xs by (UV 16a, 20a, 24a, 27, 31, 32).

    `test` is the test conditional, "nystrom" for the approximation that has none; `groups` are
    the blocks of the points.
    """
    parts, test = dense(p), p.kind.test if test is None else test
    Ksu, Kuf = p.kernel(Xs, p.Z), p.kernel(p.Z, p.X)
    Kss, Ksf = p.kernel(Xs), p.kernel(Xs, p.X)
    weights = np.linalg.solve(p.kernel(p.Z) + (p.jitter or 0.0) * np.eye(len(p.Z)), Ksu.T).T
    Qsf, Qss = weights @ Kuf, weights @ Ksu.T
    cross = Qsf
    if test == "blocks":
        cross = Qsf + np.where(same(groups, p.groups), Ksf - Qsf, 0)
        Kss = Qss + np.where(same(groups, groups), Kss - Qss, 0)
    elif test == "nystrom":
        cross = Ksf
    elif test == "deterministic":
        Kss = Qss
    elif test == "independent":
        Kss = Qss + np.diag(np.diag(Kss - Qss))
    mu = cross @ parts.inverse @ parts.R
    cov = Kss - cross @ parts.inverse @ cross.T
    if p.H is not None:
        h = mean.features(Xs)
        mu = mu + h @ parts.beta
        if p.integrate:
            rest = h.T - p.H.T @ parts.inverse @ cross.T
            cov = cov + rest.T @ np.linalg.solve(parts.precision, rest)
    return mu * SCALE, cov[:, :, None] * SCALE**2


def input_differences(function, X, step=1e-5):
    """Return the derivatives (n, d, P) in the inputs of a function of rows, (n, P)."""
    columns = []
    for j in range(X.shape[1]):
        E = step * np.eye(X.shape[1])[j]
        columns.append((function(X + E) - function(X - E)) / (2 * step))
    return np.stack(columns, axis=1)
