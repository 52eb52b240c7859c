"""Arrays of the recursion, the same steps on two copies of them, and what they are to mean."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.linalg import _recursion_twins as twin
from mercer.linalg.recursion import Rules, empty_arrays, symmetric

compiled = pytest.importorskip("mercer.linalg._recursion")

# Of each array the axes with a place for each point, and whether features have places before them.
AXES = {
    "K": ((0, 1), False),
    "Q": ((0, 1), False),
    "S": ((1, 2), True),
    "P": ((1, 2), True),
    "mu": ((1,), True),
    "alpha": ((1,), False),
    "curvature": ((1,), False),
    "s": ((1,), True),
}


def used(A, name):
    """Return the entries of an array that are in use."""
    axes, with_features = AXES[name]
    array = getattr(symmetric(A), name)
    places = [slice(None)] * array.ndim
    for axis in axes:
        places[axis] = slice(A.m + (A.n_features if with_features else 0))
    return array[tuple(places)]


def start(cap, features, outputs, covariances, rng):
    """Return arrays without points; of the coefficients of explicit functions a bit is known."""
    A = empty_arrays(cap, features, outputs, covariances)
    for c in range(covariances):
        root = rng.normal(size=(features, features + 2))
        A.S[c, :features, :features] = root @ root.T + np.eye(features)
        A.P[c, :features, :features] = np.linalg.inv(A.S[c, :features, :features])
    A.mu[:, :features] = rng.normal(size=(outputs, features))
    return A


def copy(A):
    return type(A)(*(array.copy() for array in A))


def close(A, B, precision=True):
    np.testing.assert_array_equal(A.whole, B.whole)
    np.testing.assert_array_equal(A.source[: A.m], B.source[: B.m])
    np.testing.assert_allclose(A.sums, B.sums, rtol=1e-8, atol=1e-9)
    for name in AXES:
        if name == "s" or (name == "P" and not precision):
            continue
        a, b = used(A, name), used(B, name)
        size = np.max(np.abs(b), initial=1.0)
        # The diagonal of QSQ - Q is what is left of terms up to 1e6: of both, 1e-8 is rounding.
        near = 1e-7 if name == "curvature" else 1e-9
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=near * size, err_msg=name)


def sound(A, precision=True):
    """Whether the arrays are what `Arrays` says that they are."""
    K, Q, r = used(A, "K"), used(A, "Q"), A.n_features
    np.testing.assert_allclose(Q @ K, np.eye(A.m), atol=1e-8)
    for name in ("K", "Q"):
        np.testing.assert_allclose(used(A, name), used(A, name).T, rtol=1e-9, atol=1e-9)
    for c, S in enumerate(used(A, "S")):
        np.testing.assert_allclose(S, S.T, rtol=1e-9, atol=1e-9)
        assert np.all(np.linalg.eigvalsh(S) > 0)
        if precision:
            np.testing.assert_allclose(used(A, "P")[c] @ S, np.eye(len(S)), atol=1e-7)
        C = Q @ S[r:, r:] @ Q - Q
        np.testing.assert_allclose(used(A, "curvature")[c], np.diag(C), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(used(A, "alpha"), used(A, "mu")[:, r:] @ Q, rtol=1e-6, atol=1e-7)


def kernel(x, z):
    return 1.7 * np.exp(-0.5 * np.sum((x - z) ** 2))


class Stream:
    """The same steps on two copies of the arrays; `points` in the order of the arrays."""

    def __init__(self, features, outputs, covariances, rules, seed):
        self.rng, self.rules = np.random.default_rng(seed), rules
        self.mine = start(12, features, outputs, covariances, self.rng)
        self.other, self.inputs = copy(self.mine), []
        self.modules = (compiled, twin)

    def both(self):
        return zip((self.mine, self.other), self.modules, strict=True)

    def row(self, near, at=None, size=1.0):
        """Predict and learn a row: anywhere, or near to a point, which may be told.

        `size` is that of q, the row's pull at the mean.
        """
        A, rng = self.mine, self.rng
        x = 2.0 * rng.normal(size=2)
        if near and A.m:
            at = rng.integers(A.m) if at is None else at
            x = self.inputs[A.source[at]] + 0.05 * rng.normal(size=2)
        k = np.array([kernel(x, self.inputs[i]) for i in A.source[: A.m]])
        h, q = rng.normal(size=A.n_features), size * rng.normal(size=len(A.q))
        part = rng.choice([-0.99, -0.5, -0.1, 0.0, 0.2], len(A.r))
        results = []
        for arrays, module in self.both():
            arrays.k[: A.m], arrays.e[: A.n_features] = k, h
            gamma = module.predict(arrays, 1.7, self.rules.floor)
            results.append(
                (gamma, arrays.mean.copy(), arrays.spread.copy(), used(arrays, "s")[:-1].copy())
            )
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
        self.inputs.append(x)
        slope = part / (results[1][0] + results[1][2])
        for arrays, module in self.both():
            arrays.q[:], arrays.r[:] = q, slope
            module.learn(arrays, self.rules, 1.7, results[1][0], len(self.inputs) - 1)

    def remove(self, at):
        if self.mine.m:
            for arrays, module in self.both():
                module.remove(arrays, at % arrays.m)

    def forget(self):
        for arrays, module in self.both():
            module.forget(arrays, self.rules.keep)

    def choose(self):
        if self.mine.m:
            chosen = [module.cheapest(arrays, self.rules) for arrays, module in self.both()]
            assert chosen[0] == chosen[1]
            return chosen[0]
        return 0


def filled(module, features=0, outputs=2, covariances=2, rows=25, keep=1.0):
    stream = Stream(features, outputs, covariances, Rules(8, 0, 0, 1e-2, 1e-3, keep), 0)
    stream.modules = (module, module)
    for _ in range(rows):
        stream.row(False)
    return stream
