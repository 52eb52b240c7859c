"""The rows and the model that the tests of sparse regressors share."""

from __future__ import annotations

import warnings

import numpy as np

from mercer import SparseGPRegressor
from mercer.inference._approximations import APPROXIMATIONS
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

from .data import quiet_fit

RNG = np.random.default_rng(3)
N, M = 60, 10
X = RNG.uniform(-2.0, 2.0, (N, 2))
Y = 1.5 + np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=N)
Z = RNG.uniform(-2.0, 2.0, (M, 2))
X_NEW = RNG.uniform(-2.5, 2.5, (9, 2))
GROUPS = np.where(X[:, 0] > 0, "right", "left")
KERNEL, NOISE = 1.3 * RBF([0.9, 1.6]), Gaussian(0.05)
ALL = [*APPROXIMATIONS, "nystrom", "sod"]
BLOCKS = ("pitc", "pic")


def held(name="vfe", **options):
    given = {"optimizer": None, "inducing": Z, "approximation": name, **options}
    return SparseGPRegressor(KERNEL, NOISE, **given)


def fitted(name="vfe", X=X, y=Y, **options):
    fit = {key: options.pop(key) for key in ("groups", "sample_weight", "query") if key in options}
    if name in BLOCKS:
        fit.setdefault("groups", np.where(X[:, 0] > 0, "right", "left"))
    return quiet_fit(held(name, **options), X, y, **fit)


def quietly(call, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call(*args, **kwargs)


def wavy(n, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.uniform(-3.0, 3.0, (n, 2))
    return A, np.sin(3.0 * A[:, 0]) * np.cos(A[:, 1]) + noise * rng.normal(size=n)
