"""Examples of public classes: what `test_conformance.py` holds to the rules.

A class that its constructor's defaults build needs none, and is then tried with these and with
other parameters. One is added here where arguments are needed, or where defaults are too special.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process import kernels as sk

from mercer import (
    BayesianCommitteeRegressor,
    GPClassifier,
    GPRegressor,
    Iterative,
    LaplacianProcessClassifier,
    LaplacianProcessRegressor,
    OnlineGPClassifier,
    OnlineGPRegressor,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
    SparseGPClassifier,
    SparseGPRegressor,
    SparseGreedyGPRegressor,
    TransductiveGPClassifier,
    compat,
    kernels,
    likelihoods,
    means,
    priors,
)
from mercer.kernels import RBF, Matern, Tanh
from mercer.likelihoods import Gaussian
from mercer.params import Parameter

ARD = [0.6, 1.9]
POINTS = np.array([[0.1, 0.4], [1.2, -0.7], [-0.8, 0.3], [0.5, 1.6], [-1.1, -1.3]])
TABLE = np.array(
    [[2.0, 0.5, 0.1, 0.0], [0.5, 1.5, 0.3, 0.2], [0.1, 0.3, 1.0, -0.4], [0, 0.2, -0.4, 3]]
)
ROWS = np.array([[0.0], [3.0], [1.0], [2.0], [0.0], [3.0], [1.0]])
CODES = np.array(
    [[0.0, 1.0], [2.0, 1.0], [1.0, 0.0], [0.0, 0.0], [2.0, 2.0], [1.0, 1.0], [2.0, 0.0]]
)
PLANE = np.random.default_rng(4).normal(size=(9, 2))


class Example(NamedTuple):
    """An object, and the further arguments of the helper that checks it."""

    subject: Any
    options: dict[str, Any] = {}  # noqa: RUF012  (of a tuple, and never changed)


def bumps(X):
    return np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 0], np.cos(2.0 * X[:, 1])], axis=1)


def cauchy(x, y):
    return 1.0 / (1.0 + float(np.sum((np.asarray(x) - np.asarray(y)) ** 2)))


def shared_letters(a, b):
    return float(len(set(a) & set(b)))


def log_sech(y, f):
    return -np.logaddexp(y - f, f - y) - np.log(np.pi / 2)


def scaled_sech(y, f, scale, shift):
    return log_sech((y - shift) / scale, f / scale) - np.log(scale)


def scaled_sech_var(f, scale):
    return np.full(np.shape(f), (0.5 * np.pi * scale) ** 2)


def shifted(f, shift):
    return f + shift


def sech_derivatives(y, f):
    t = np.tanh(y - f)
    return t, t**2 - 1.0, 2.0 * t * (1.0 - t**2) * -1.0


def sech_fisher(f):
    return np.full(np.shape(f), 0.5)


def sech_var(f):
    return np.full(np.shape(f), np.pi**2 / 4.0)


def sech_cdf(y, f):
    return 2.0 / np.pi * np.arctan(np.exp(y - f))


def sech_sample(f, rng):
    return f + np.log(np.tan(0.5 * np.pi * rng.uniform(size=np.shape(f))))


def sech_knots(y):
    return y[:, None]


def square(X):
    return X[:, 0] ** 2


def two_outputs(X):
    return np.stack([X[:, 0] ** 2, np.sin(X[:, 1])], axis=1)


WORDS = ["abcd", "bcda", "aeg", "fgab", "cd", "gfe", "bdf", "ace"]

KERNELS: dict[type, list[Example]] = {
    kernels.RBF: [Example(RBF(1.7)), Example(RBF(ARD))],
    kernels.Exponential: [Example(kernels.Exponential(1.7)), Example(kernels.Exponential(ARD))],
    kernels.Matern: [Example(Matern(ARD, nu=nu)) for nu in (0.5, 1.5, 2.5, 0.8, 3.1)],
    kernels.RationalQuadratic: [Example(kernels.RationalQuadratic(ARD, alpha=0.7))],
    kernels.Periodic: [Example(kernels.Periodic(ARD, [2.5, 0.9]))],
    kernels.Linear: [Example(kernels.Linear()), Example(kernels.Linear(0.4, length_scale=ARD))],
    kernels.Polynomial: [
        Example(kernels.Polynomial(3, 0.6)),
        Example(kernels.Polynomial(2, 0.6, ARD)),
    ],
    kernels.Tanh: [Example(Tanh(0.7, -0.4)), Example(Tanh(0.7, 0.3, ARD))],
    kernels.ArcSine: [Example(kernels.ArcSine(1.3)), Example(kernels.ArcSine(4.0, ARD))],
    kernels.Categorical: [Example(kernels.Categorical([0.3, 0.8]), {"X": CODES})],
    kernels.Constant: [Example(kernels.Constant(2.5)), Example(kernels.Constant(0.0))],
    kernels.Features: [Example(kernels.Features(bumps))],
    kernels.EquivalentGP: [Example(kernels.EquivalentGP(Tanh(0.7, -0.4), POINTS))],
    kernels.Flipped: [Example(kernels.Flipped(Tanh(0.7, -0.4), POINTS))],
    kernels.Callable: [
        Example(kernels.Callable(cauchy), {"X": PLANE}),
        Example(kernels.Callable(shared_letters), {"X": WORDS}),
    ],
    kernels.Precomputed: [Example(kernels.Precomputed(TABLE), {"X": ROWS, "inputs": False})],
    kernels.SklearnKernel: [
        Example(kernels.SklearnKernel(sk.PairwiseKernel(gamma=0.7, metric="laplacian")))
    ],
    kernels.Scaled: [Example(2.5 * RBF(ARD))],
    kernels.Sum: [Example(RBF(1.7) + kernels.Linear(0.4) + 0.7)],
    kernels.Product: [Example(RBF(ARD) * kernels.Polynomial(2, 0.6) * kernels.Periodic(1.7, 2.5))],
    kernels.Power: [Example(RBF(ARD) ** 1.5), Example(kernels.Linear(0.4) ** 3)],
    kernels.On: [
        Example(RBF(1.7).on(1)),
        Example(RBF(1.7).on([1]) * Matern(0.8).on(0) + 0.5 * Matern(ARD, nu=1.5)),
    ],
}

LABELS = {"outcomes": [-1.0, 1.0]}
SOFT = {"outcomes": [0.0, 1.0]}

LIKELIHOODS: dict[type, list[Example]] = {
    likelihoods.Gaussian: [Example(Gaussian(noise)) for noise in (1e-4, 0.3, 25.0)],
    likelihoods.Laplace: [Example(likelihoods.Laplace(s)) for s in (0.05, 0.7)],
    likelihoods.EpsilonInsensitive: [
        Example(likelihoods.EpsilonInsensitive(0.4, 0.3)),
        Example(likelihoods.EpsilonInsensitive(0.0, 1.3)),
    ],
    likelihoods.Huber: [Example(likelihoods.Huber(0.3)), Example(likelihoods.Huber(1.2, 0.4))],
    likelihoods.StudentT: [
        Example(likelihoods.StudentT(n, s)) for n, s in ((5.0, 0.4), (1.0, 0.7), (40.0, 2.0))
    ],
    likelihoods.Logistic: [Example(likelihoods.Logistic(), LABELS)],
    likelihoods.Probit: [
        Example(likelihoods.Probit(), LABELS),
        Example(likelihoods.Probit(Parameter(0.4)), LABELS),
        Example(likelihoods.Probit(0.0), {"f": [-1.3, 0.0, 0.4, 2.1], **LABELS}),
    ],
    likelihoods.SoftLabels: [
        Example(likelihoods.SoftLabels(likelihoods.Logistic()), SOFT),
        Example(likelihoods.SoftLabels(likelihoods.Logistic(), "mixture"), SOFT),
        Example(likelihoods.SoftLabels(likelihoods.Probit(Parameter(0.4))), SOFT),
        Example(likelihoods.SoftLabels(likelihoods.Probit(Parameter(0.4)), "mixture"), SOFT),
        Example(
            likelihoods.SoftLabels(likelihoods.Probit(0.0), "mixture"),
            {"f": [-1.3, 0.0, 0.4, 2.1], **SOFT},
        ),
    ],
    likelihoods.Poisson: [Example(likelihoods.Poisson(), {"outcomes": np.arange(400.0)})],
    likelihoods.MixtureNoise: [
        Example(likelihoods.MixtureNoise([0.8, 0.2], [0.0, 0.3], [0.2, 1.5])),
        Example(likelihoods.MixtureNoise([2.0, 1.0, 1.0], [0.0, -2.0, 1.0], [0.4, 0.6, 1.1])),
    ],
    likelihoods.Custom: [
        Example(likelihoods.Custom(log_sech, log_concave=True)),
        Example(
            likelihoods.Custom(
                scaled_sech,
                parameters={"scale": 0.6, "shift": -0.2},
                conditional_mean=shifted,
                conditional_var=scaled_sech_var,
            )
        ),
        Example(
            likelihoods.Custom(
                log_sech,
                derivatives=sech_derivatives,
                fisher=sech_fisher,
                conditional_mean=np.array,
                conditional_var=sech_var,
                conditional_cdf=sech_cdf,
                sample=sech_sample,
                knots=sech_knots,
            )
        ),
    ],
}

# Likelihoods of several latent values a row.
COUPLED: dict[type, list[Example]] = {
    likelihoods.Softmax: [Example(likelihoods.Softmax(2)), Example(likelihoods.Softmax(4))],
}

MEANS: dict[type, list[Example]] = {
    means.Constant: [
        Example(means.Constant()),
        Example(means.Constant([1.0, 2.5])),
        Example(means.Constant(1.5, estimate=None)),
        Example(means.Constant(estimate="integrate")),
    ],
    means.Linear: [
        Example(means.Linear()),
        Example(means.Linear(1.0, [2.0, -1.0])),
        Example(means.Linear([1.0, 2.0], [[2.0, -1.0], [0.3, 0.4]])),
    ],
    means.Function: [Example(means.Function(square)), Example(means.Function(two_outputs))],
    means.Affine: [
        Example(means.Affine(means.Constant(2.0, estimate=None), 3.0, -1.0)),
        Example(means.Affine(means.Linear([1.0, 0.5], [[0.3, -0.2]] * 2, None), output=1)),
        Example(means.Affine(means.Linear(), 0.5, 0.2)),
    ],
    means.Functions: [
        Example(means.Functions(two_outputs)),
        Example(means.Functions(bumps, [0, 2], means.Linear()), {"X": PLANE}),
        Example(means.Functions(two_outputs, beta=[[1.0, 2.0], [0.5, -0.3]]), {"X": PLANE}),
        Example(means.Functions(two_outputs, beta=[1.0, 2.0], estimate=None), {"X": PLANE}),
    ],
}

# By the name of a module of `mercer.inference`: further arguments of `check_engine`.
ENGINES: dict[str, dict[str, Any]] = {}

# Of the choice by cross-validation: what a rule needs to see it at work.
BRIEF: dict[str, Any] = {"n_folds": 2, "n_penalties": 6}
# Of relevance vectors: no search, and steps of some size alone.
QUICK: dict[str, Any] = {"optimizer": None, "tol": 1.0}
TWO = {"X": PLANE, "y": np.where(PLANE[:, 0] + PLANE[:, 1] ** 2 > 0.6, "x", "y")}
SHARES = {"X": PLANE, "y": np.exp(PLANE[:, :1] * [0.0, 1.0, -2.0])}
SHARES["y"] /= SHARES["y"].sum(axis=1, keepdims=True)

HELD: dict[str, Any] = {
    "kernel": 1.5 * RBF(1.3), "likelihood": Gaussian(0.1), "n_inducing": 8, "optimizer": None,
}  # fmt: skip

ESTIMATORS: dict[type, list[Example]] = {
    # scikit-learn's checks take the first, and the second where tests may be slow
    BayesianCommitteeRegressor: [
        Example(BayesianCommitteeRegressor(n_members=3, max_iter=2)),
        Example(
            BayesianCommitteeRegressor(
                1.5 * RBF(1.3),
                Gaussian(0.1),
                n_members=3,
                combine="rbcm",
                blocks="kmeans",
                optimizer=None,
            )
        ),
        Example(BayesianCommitteeRegressor(n_members=2, combine="bcm", mean="linear")),
    ],
    GPClassifier: [
        Example(GPClassifier(2.0 * RBF(1.3), "probit", inference="ep", optimizer=None)),
        Example(GPClassifier(max_iter=2)),
        Example(GPClassifier(), TWO),
        Example(GPClassifier(2.0 * Matern(ARD, nu=2.5), inference="vi", mean="constant"), TWO),
        Example(GPClassifier(2.0 * RBF(1.3), inference="bounds", optimizer=None), TWO),
        Example(GPClassifier(2.0 * RBF(1.3), soft_labels=True, optimizer=None), SHARES),
        Example(
            GPClassifier(2.0 * RBF(1.3), soft_labels="mixture", optimizer=None, n_jobs=2), SHARES
        ),
    ],
    GPRegressor: [
        Example(GPRegressor()),
        Example(GPRegressor(1.5 * RBF(1.3), Gaussian(0.1), optimizer=None)),
        Example(
            GPRegressor(
                1.5 * Matern(ARD, nu=2.5) + 0.3, mean="linear", normalize_y=True, n_restarts=1
            )
        ),
        Example(GPRegressor(mean=means.Constant(estimate="integrate"), objective="loo")),
        Example(GPRegressor(mean=square, hyperprior=None), {"objects": {"square": square}}),
        Example(GPRegressor(inference=Iterative(tol=1e-16), mean="linear")),
    ],
    LaplacianProcessClassifier: [
        Example(LaplacianProcessClassifier(RBF(1.3), **BRIEF, optimizer=None)),
        Example(LaplacianProcessClassifier(**BRIEF, max_iter=2)),
        Example(LaplacianProcessClassifier(RBF(1.3), prior_scale=2.0, optimizer=None), TWO),
        Example(
            LaplacianProcessClassifier(
                RBF(1.3), "soft_margin", n_penalties=6, mean="zero", optimizer=None
            ),
            TWO,
        ),
        Example(
            LaplacianProcessClassifier(
                RBF(1.3), "quadratic_soft_margin", n_penalties=6, optimizer=None
            ),
            TWO,
        ),
    ],
    LaplacianProcessRegressor: [
        Example(LaplacianProcessRegressor(**BRIEF, max_iter=2)),
        Example(LaplacianProcessRegressor(RBF(1.3), Gaussian(0.1), **BRIEF, optimizer=None)),
        Example(
            LaplacianProcessRegressor(
                1.5 * Matern(ARD, nu=2.5) + 0.3,
                mean="linear",
                normalize_y=True,
                **BRIEF,
                max_iter=3,
            )
        ),
        Example(
            LaplacianProcessRegressor(
                Tanh(0.5, 0.3), prior="feature_selection", **BRIEF, optimizer=None
            )
        ),
        Example(LaplacianProcessRegressor(RBF(1.3), prior="weight_decay", **BRIEF, optimizer=None)),
        Example(
            LaplacianProcessRegressor(
                RBF(1.3), centres=POINTS, functions=bumps, mean="zero", **BRIEF, optimizer=None
            ),
            {"objects": {"bumps": bumps}},
        ),
        *(
            Example(LaplacianProcessRegressor(RBF(1.3), noise, **BRIEF, optimizer=None))
            for noise in (
                likelihoods.Laplace(),
                likelihoods.Huber(0.2),
                likelihoods.EpsilonInsensitive(0.1),
            )
        ),
    ],
    OnlineGPClassifier: [
        Example(OnlineGPClassifier(2.0 * RBF(1.3), optimizer=None)),
        Example(OnlineGPClassifier(max_iter=2)),
        Example(OnlineGPClassifier(mean="constant", n_sweeps=20), TWO),
        Example(
            OnlineGPClassifier(2.0 * RBF(1.3), "logistic", max_basis=12, criterion="mean"), TWO
        ),
    ],
    OnlineGPRegressor: [
        Example(OnlineGPRegressor(max_iter=2)),
        Example(OnlineGPRegressor(1.5 * RBF(1.3), Gaussian(0.1), optimizer=None)),
        Example(
            OnlineGPRegressor(
                1.5 * Matern(ARD, nu=2.5) + 0.3, mean="linear", normalize_y=True, n_sweeps=2
            )
        ),
        Example(
            OnlineGPRegressor(
                1.5 * RBF(1.3),
                likelihoods.Laplace(0.3),
                max_basis=10,
                criterion="mean",
                recycle="heuristic",
                n_sweeps=2,
            )
        ),
    ],
    RelevanceVectorClassifier: [
        Example(RelevanceVectorClassifier(RBF(1.3), **QUICK)),
        Example(RelevanceVectorClassifier(RBF(0.8), "probit", mean="zero", **QUICK)),
        Example(RelevanceVectorClassifier(max_iter=2, tol=1.0), TWO),
        Example(RelevanceVectorClassifier(RBF(1.3), multi_class="multinomial", **QUICK)),
        Example(
            RelevanceVectorClassifier(
                [RBF(1.3), Tanh(0.5, 0.3)],
                class_weight="balanced",
                mean="zero",
                optimizer=None,
                tol=0.1,
            ),
            TWO,
        ),
    ],
    RelevanceVectorRegressor: [
        Example(RelevanceVectorRegressor(max_iter=2)),
        Example(RelevanceVectorRegressor(RBF(1.3), **QUICK)),
        Example(
            RelevanceVectorRegressor(
                1.5 * Matern(ARD, nu=2.5) + 0.3, mean="linear", normalize_y=True, max_iter=3
            )
        ),
        Example(
            RelevanceVectorRegressor(
                [RBF(1.3), Tanh(0.5, 0.3)],
                hyperprior=priors.GammaPrecision(1e-3, 1e-3),
                optimizer=None,
            )
        ),
        Example(RelevanceVectorRegressor(RBF(1.3), noise=0.1, augment=True, optimizer=None)),
        Example(
            RelevanceVectorRegressor(
                RBF(1.3), centres=POINTS, functions=bumps, mean="zero", optimizer=None
            ),
            {"objects": {"bumps": bumps}},
        ),
        Example(RelevanceVectorRegressor(RBF(1.3), robust=True, optimizer=None)),
    ],
    SparseGPClassifier: [
        Example(SparseGPClassifier(2.0 * RBF(1.3), n_inducing=8, optimizer=None)),
        Example(SparseGPClassifier(n_inducing=8, max_iter=2)),
        Example(
            SparseGPClassifier(
                likelihood="probit", inference="ep", n_inducing=8, learn_inducing=True, max_iter=2
            ),
            TWO,
        ),
        Example(
            SparseGPClassifier(inference="bounds", approximation="dtc", n_inducing=6, max_iter=2),
            TWO,
        ),
        Example(
            SparseGPClassifier(
                2.0 * RBF(1.3), soft_labels=True, approximation="sor", n_inducing=6, optimizer=None
            ),
            SHARES,
        ),
    ],
    SparseGPRegressor: [
        Example(SparseGPRegressor(n_inducing=8, max_iter=2)),
        Example(
            SparseGPRegressor(approximation="fitc", joint="independent", n_inducing=8, max_iter=2)
        ),
        Example(SparseGPRegressor(**HELD, augment=True)),
        Example(SparseGPRegressor(n_inducing=6, approximation="sod", inducing="cholesky")),
        Example(
            SparseGPRegressor(
                approximation="pep",
                n_inducing=6,
                inducing="pursuit",
                mean=means.Constant(estimate="integrate"),
                max_iter=2,
            )
        ),
        *(
            Example(SparseGPRegressor(**HELD, approximation=name))
            for name in ("sod", "sor", "pitc", "pic")  # variances of "nystrom" may be cut off
        ),
    ],
    SparseGreedyGPRegressor: [
        Example(SparseGreedyGPRegressor(max_iter=2)),
        # outputs share a basis: each is as it is alone where that is large enough for all
        Example(SparseGreedyGPRegressor(1.5 * RBF(1.3), Gaussian(0.1), tol=0, optimizer=None)),
        Example(
            SparseGreedyGPRegressor(
                1.5 * Matern(ARD, nu=2.5) + 0.3,
                tol=1e-6,
                n_candidates="all",
                dual="refined",
                mean="linear",
                normalize_y=True,
                max_iter=2,
            )
        ),
        Example(
            SparseGreedyGPRegressor(
                1.5 * RBF(1.3), Gaussian(0.1), tol=0, dual="subset", optimizer=None
            )
        ),
    ],
    TransductiveGPClassifier: [
        Example(TransductiveGPClassifier(2.0 * RBF(1.3), optimizer=None)),
        Example(TransductiveGPClassifier(max_iter=2, n_sweeps=1, labels="hard")),
        Example(TransductiveGPClassifier(method="joint"), TWO),
        Example(TransductiveGPClassifier(2.0 * RBF(1.3), "probit", labels="hard"), TWO),
    ],
    compat.GaussianProcessClassifier: [
        Example(compat.GaussianProcessClassifier()),
        Example(compat.GaussianProcessClassifier(2.0 * sk.RBF(1.3), optimizer=None), TWO),
    ],
    compat.GaussianProcessRegressor: [
        Example(compat.GaussianProcessRegressor()),
        Example(compat.GaussianProcessRegressor(1.0 * sk.RBF(1.3) + sk.WhiteKernel(0.1))),
    ],
}

# What scikit-learn's `check_estimator` is expected to fail, by class: the check and the reason.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "OnlineGPClassifier": {
        "check_sample_weight_equivalence_on_dense_data": "the check compares rows in two orders, "
        "and what a label says depends on the rows before it",
    },
    "TransductiveGPClassifier": {
        "check_classifiers_classes": "its labels are -1 and 1, and -1 marks rows without a label, "
        "as in scikit-learn's own semi-supervised estimators",
    },
}

# Defects that are known: (the object's repr, or a beginning of it; the rule) and the reason.
DEFECTS: dict[tuple[str, str], str] = {}

# Public names that no test mentions yet: a test that does makes its line here fail.
UNTESTED: dict[str, str] = {}
