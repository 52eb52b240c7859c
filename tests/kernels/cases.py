"""Every kernel, alone and composed, beside its naive statement."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import PairwiseKernel

from mercer.kernels import (
    RBF,
    ArcSine,
    Callable,
    Categorical,
    Constant,
    EquivalentGP,
    Exponential,
    Features,
    Flipped,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    SklearnKernel,
    Tanh,
)

from . import reference as ref

L1, L2 = 1.7, [0.6, 1.9]
A2 = np.array([[0.1, 0.4], [1.2, -0.7], [-0.8, 0.3], [0.5, 1.6], [-1.1, -1.3]])
SIGMA = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 0.5]])
TABLE = np.array(
    [[2.0, 0.5, 0.1, 0.0], [0.5, 1.5, 0.3, 0.2], [0.1, 0.3, 1.0, -0.4], [0, 0.2, -0.4, 3]]
)


def bumps(X):
    return np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 0], np.cos(2.0 * X[:, 1])], axis=1)


def bumps_jacobian(X):
    J = np.zeros((len(X), 3, 2))
    J[:, 0, 0] = np.cos(X[:, 0])
    J[:, 1, 0], J[:, 1, 1] = X[:, 1], X[:, 0]
    J[:, 2, 1] = -2.0 * np.sin(2.0 * X[:, 1])
    return J


def bump(x):
    return [np.sin(x[0]), x[1] * x[0], np.cos(2.0 * x[1])]


def cauchy(x, y):
    return 1.0 / (1.0 + float(np.sum((np.asarray(x) - np.asarray(y)) ** 2)))


def cauchy_matrix(A, B):
    return 1.0 / (1.0 + np.sum((A[:, None, :] - B[None, :, :]) ** 2, axis=2))


def shared_letters(a, b):
    return float(len(set(a) & set(b)))


FUNCTIONS = {f.__name__: f for f in (bumps, bumps_jacobian, cauchy, cauchy_matrix, shared_letters)}


class Case(NamedTuple):
    kernel: Kernel
    pair: Any
    inputs: str = "plane"
    rtol: float = 1e-12
    slope_rtol: float = 1e-6  # what central differences of the sum over a matrix reach


def laplacian(x, y):
    return float(np.exp(-0.7 * np.sum(np.abs(np.asarray(x) - np.asarray(y)))))


LEAVES = {
    "rbf": Case(RBF(L1), ref.rbf(L1)),
    "rbf-ard": Case(RBF(L2), ref.rbf(L2)),
    "exponential": Case(Exponential(L1), ref.exponential(L1)),
    "exponential-ard": Case(Exponential(L2), ref.exponential(L2)),
    "matern12": Case(Matern(L1, nu=0.5), ref.exponential(L1)),
    "matern32": Case(Matern(L2, nu=1.5), ref.matern(L2, 1.5), rtol=1e-10),
    "matern52": Case(Matern(L2, nu=2.5), ref.matern(L2, 2.5), rtol=1e-10),
    "matern0.8": Case(Matern(L1, nu=0.8), ref.matern(L1, 0.8), rtol=1e-10),
    "matern3.1": Case(Matern(L2, nu=3.1), ref.matern(L2, 3.1), rtol=1e-10),
    "rational": Case(RationalQuadratic(L1, alpha=0.7), ref.rational(L1, 0.7)),
    "rational-ard": Case(RationalQuadratic(L2, alpha=2.3), ref.rational(L2, 2.3)),
    "periodic": Case(Periodic(L1, 2.5), ref.periodic(L1, 2.5)),
    "periodic-ard": Case(Periodic(L2, [2.5, 0.9]), ref.periodic(L2, [2.5, 0.9])),
    "constant": Case(Constant(2.5), ref.constant(2.5)),
    "constant-0": Case(Constant(0.0), ref.constant(0.0)),
    "linear": Case(Linear(), ref.linear(0.0)),
    "linear-offset": Case(Linear(0.4), ref.linear(0.4)),
    "linear-ard": Case(Linear(0.4, length_scale=L2), ref.linear(0.4, L2)),
    "polynomial": Case(Polynomial(3, 0.6), ref.polynomial(3, 0.6)),
    "polynomial-scaled": Case(Polynomial(2, 0.6, L1), ref.polynomial(2, 0.6, L1)),
    "polynomial-ard": Case(Polynomial(5, 0.0, L2), ref.polynomial(5, 0.0, L2)),
    "tanh": Case(Tanh(0.7, -0.4), ref.tanh(0.7, -0.4)),
    "tanh-ard": Case(Tanh(0.7, 0.3, L2), ref.tanh(0.7, 0.3, L2)),
    "arcsine": Case(ArcSine(1.3), ref.arcsine(1.3)),
    "arcsine-scaled": Case(ArcSine(0.4, L1), ref.arcsine(0.4, L1)),
    "arcsine-ard": Case(ArcSine(4.0, L2), ref.arcsine(4.0, L2)),
    "categorical": Case(Categorical(0.3), ref.categorical(0.3), "codes"),
    "categorical-each": Case(Categorical([0.3, 0.8]), ref.categorical([0.3, 0.8]), "codes"),
    "categorical-0": Case(Categorical(0.0), ref.categorical(0.0), "codes"),
    "categorical-1": Case(Categorical([1.0, 0.5]), ref.categorical([1.0, 0.5]), "codes"),
    "features": Case(Features(bumps), ref.features(bump, np.eye(3))),
    "features-sigma": Case(Features(bumps, SIGMA), ref.features(bump, SIGMA)),
    "features-jacobian": Case(
        Features(bumps, SIGMA, jacobian=bumps_jacobian), ref.features(bump, SIGMA)
    ),
    "equivalent": Case(EquivalentGP(RBF(L2), A2), ref.equivalent(ref.rbf(L2), A2)),
    "equivalent-tanh": Case(
        EquivalentGP(Tanh(0.7, -0.4), A2), ref.equivalent(ref.tanh(0.7, -0.4), A2)
    ),
    "flipped": Case(Flipped(RBF(L2), A2), ref.flipped(ref.rbf(L2), A2), rtol=1e-9),
    "flipped-tanh": Case(
        Flipped(Tanh(0.7, -0.4), A2), ref.flipped(ref.tanh(0.7, -0.4), A2), rtol=1e-9
    ),
    "callable": Case(Callable(cauchy), cauchy),
    "callable-vectorised": Case(Callable(cauchy_matrix, vectorised=True), cauchy),
    "callable-words": Case(Callable(shared_letters), shared_letters, "words"),
    "precomputed": Case(Precomputed(TABLE), ref.precomputed(TABLE), "rows"),
    "sklearn": Case(SklearnKernel(PairwiseKernel(gamma=0.7, metric="laplacian")), laplacian),
}

COMPOSITES = {
    "scaled": Case(2.5 * RBF(L2), ref.multiply(ref.constant(2.5), ref.rbf(L2))),
    "sum": Case(
        RBF(L1) + Linear(0.4) + 0.7, ref.add(ref.rbf(L1), ref.linear(0.4), ref.constant(0.7))
    ),
    "product": Case(
        RBF(L2) * Polynomial(2, 0.6) * Periodic(L1, 2.5),
        ref.multiply(ref.rbf(L2), ref.polynomial(2, 0.6), ref.periodic(L1, 2.5)),
    ),
    "product-with-zeros": Case(
        Linear() * Constant(0.0) * RBF(L1), ref.multiply(ref.linear(0.0), ref.constant(0.0))
    ),
    "power": Case(RBF(L2) ** 1.5, ref.power(ref.rbf(L2), 1.5)),
    "power-whole": Case(Linear(0.4) ** 3, ref.power(ref.linear(0.4), 3)),
    "on": Case(RBF(L1).on(1), ref.on(ref.rbf(L1), [1])),
    "on-mixed": Case(
        RBF(L1).on([1]) * Categorical(0.4).on(0) + 0.5 * Matern(L2, nu=1.5),
        ref.add(
            ref.multiply(ref.on(ref.rbf(L1), [1]), ref.on(ref.categorical(0.4), [0])),
            ref.multiply(ref.constant(0.5), ref.matern(L2, 1.5)),
        ),
        rtol=1e-10,
    ),
    "deep": Case(
        (1.5 * (RBF(L1) + 0.3 * Linear(0.4).on(0)) * Exponential(L2) + 0.2) ** 2,
        ref.power(
            ref.add(
                ref.multiply(
                    ref.constant(1.5),
                    ref.add(
                        ref.rbf(L1),
                        ref.multiply(ref.constant(0.3), ref.on(ref.linear(0.4), [0])),
                    ),
                    ref.exponential(L2),
                ),
                ref.constant(0.2),
            ),
            2,
        ),
        slope_rtol=1e-4,  # differences across the tip of the exponential kernel err by their step
    ),
    "flipped-inside": Case(
        0.5 * Flipped(Tanh(0.7, -0.4), A2) * RBF(L2) + Matern(L1, nu=1.5),
        ref.add(
            ref.multiply(ref.constant(0.5), ref.flipped(ref.tanh(0.7, -0.4), A2), ref.rbf(L2)),
            ref.matern(L1, 1.5),
        ),
        rtol=1e-9,
    ),
    "flipped-sum": Case(
        Flipped(Tanh(0.7, -0.4) + 0.3 * RBF(L2), A2),
        ref.flipped(ref.add(ref.tanh(0.7, -0.4), ref.multiply(ref.constant(0.3), ref.rbf(L2))), A2),
        rtol=1e-9,
    ),
    "equivalent-of-flipped": Case(
        EquivalentGP(Flipped(Tanh(0.7, -0.4), A2), A2[:3]),
        ref.equivalent(ref.flipped(ref.tanh(0.7, -0.4), A2), A2[:3]),
        rtol=1e-9,
    ),
    "callable-sum": Case(
        2.0 * Callable(shared_letters) + 0.5,
        ref.add(ref.multiply(ref.constant(2.0), shared_letters), ref.constant(0.5)),
        "words",
    ),
    "callable-and-numbers": Case(
        Callable(cauchy) * RBF(L2), ref.multiply(cauchy, ref.rbf(L2)), "plane"
    ),
}

CASES = LEAVES | COMPOSITES


def inputs(case: Case, n: int, seed: int) -> Any:
    """Inputs for a case. The first and the last row coincide, as do the first rows of all seeds."""
    rng = np.random.default_rng(seed)
    if case.inputs == "words":
        words = ["".join(rng.choice(list("abcdefg"), 4)) for _ in range(n)]
        words[0] = words[-1] = "abcd"
        return words
    if case.inputs == "codes":
        X = rng.integers(0, 3, (n, 2)).astype(float)
        X[0] = [1.0, 2.0]
    elif case.inputs == "rows":
        X = rng.integers(0, len(TABLE), (n, 1)).astype(float)
        X[0] = 2.0
    else:
        X = rng.normal(size=(n, 2))
        X[0] = [0.3, -0.5]
    X[-1] = X[0]
    return X


def nodes(kernel: Kernel) -> list[Kernel]:
    return [kernel, *(node for child in kernel._children for node in nodes(child))]
