"""The compiled recursion against its twin, step by step; both against what their arrays mean."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.inference._online_moments import refresh
from mercer.linalg import _recursion_twins as twin
from mercer.linalg.recursion import Rules, empty_arrays, recursion

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
    array = getattr(A, name)
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
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9 * size, err_msg=name)


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

    def row(self, near, at=None):
        """Predict and learn a row: anywhere, or near to a point, which may be told."""
        A, rng = self.mine, self.rng
        x = 2.0 * rng.normal(size=2)
        if near and A.m:
            at = rng.integers(A.m) if at is None else at
            x = self.inputs[A.source[at]] + 0.05 * rng.normal(size=2)
        k = np.array([kernel(x, self.inputs[i]) for i in A.source[: A.m]])
        h, q = rng.normal(size=A.n_features), rng.normal(size=len(A.q))
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


RULES = st.builds(
    Rules,
    max_basis=st.sampled_from([1, 4, 11]),
    criterion=st.sampled_from([0, 1]),
    novelty=st.sampled_from([0, 1]),
    tol=st.sampled_from([1e-3, 0.05]),
    floor=st.just(1e-3),
    keep=st.sampled_from([1.0, 0.9]),
)
STEPS = st.lists(
    st.sampled_from(["far", "far", "far", "near", "near", "remove", "cheapest", "forget"]),
    min_size=1,
    max_size=30,
)


def run(stream, steps, after):
    for step in steps:
        if step in ("far", "near"):
            stream.row(step == "near")
        elif step == "remove":
            stream.choose()  # which makes P anew, after forgetting
            stream.remove(int(stream.rng.integers(100)))
        elif step == "cheapest":
            stream.remove(stream.choose())
        elif stream.rules.keep < 1.0:
            stream.forget()
        after(stream)


@settings(max_examples=60, deadline=None)
@given(
    RULES, STEPS, st.sampled_from([(1, 1), (3, 1), (3, 3)]), st.integers(0, 2), st.integers(0, 999)
)
def test_compiled_is_the_twin_step_by_step(rules, steps, shape, features, seed):
    stream = Stream(features, *shape, rules, seed)
    run(stream, steps, lambda s: close(s.mine, s.other))


@settings(max_examples=60, deadline=None)
@given(
    RULES, STEPS, st.sampled_from([(1, 1), (3, 1), (3, 3)]), st.integers(0, 2), st.integers(0, 999)
)
def test_the_twin_keeps_what_its_arrays_mean(rules, steps, shape, features, seed):
    stream = Stream(features, *shape, rules, seed)
    stream.modules = (twin, twin)
    run(stream, steps, lambda s: sound(s.mine, precision=rules.keep == 1.0))


def test_the_compiled_has_every_function_of_the_twin():
    for name in twin.__all__:
        assert list(inspect.signature(getattr(compiled, name).py_func).parameters) == list(
            inspect.signature(getattr(twin, name)).parameters
        )
    assert recursion() is compiled


def filled(module, features=0, outputs=2, covariances=2, rows=25, keep=1.0):
    stream = Stream(features, outputs, covariances, Rules(8, 0, 0, 1e-2, 1e-3, keep), 0)
    stream.modules = (module, module)
    for _ in range(rows):
        stream.row(False)
    return stream


@pytest.mark.parametrize("module", [compiled, twin])
@pytest.mark.parametrize("features", [0, 2])
def test_refresh_makes_anew_what_can_be_derived(module, features):
    A = filled(module, features).mine
    expected = copy(A)
    for name in ("Q", "P", "alpha", "curvature"):
        used(A, name)[...] = np.random.default_rng(0).normal(size=used(A, name).shape)
    A.whole[1:] = 100, 1
    refresh(A)
    assert list(A.whole) == [expected.m, 0, 0]
    expected.whole[:] = A.whole
    close(A, expected)
    sound(A)


@pytest.mark.parametrize("module", [compiled, twin])
@pytest.mark.parametrize("name", ["Q", "P", "nothing", "nan"])
def test_drift_is_seen_when_it_is_there(module, name):
    for place in range(3):
        stream = filled(module)
        for A in (stream.mine, stream.other):
            # Q is looked at with each row that is near to points, P now and then
            A.whole[1] = 0 if name == "Q" else twin.CHECK_EVERY - 1
            if name == "Q":
                A.Q[place, place] *= 1.0 + 1e-6
            elif name == "P":
                A.P[1, place, place] *= 1.0 + 1e-3
            elif name == "nan":
                A.P[1, place, place] = np.nan
        stream.rules = stream.rules._replace(max_basis=11, tol=1e-4, floor=1e-4)
        stream.row(name == "Q", place)
        A = stream.mine
        assert A.whole[1] == (name == "Q")
        assert A.whole[2] == (name != "nothing")
        if name in ("Q", "P"):
            refresh(A)
            sound(A)
            assert A.whole[2] == 0


@pytest.mark.parametrize("module", [compiled, twin])
def test_with_forgetting_a_precision_that_is_left_behind_is_no_drift(module):
    stream = filled(module, keep=0.9)
    for A in (stream.mine, stream.other):
        A.P[:] = 0.0
        A.whole[1] = twin.CHECK_EVERY - 1
    stream.row(False)
    assert stream.mine.whole[2] == 0


@pytest.mark.parametrize("module", [compiled, twin])
def test_changes_of_the_basis_are_counted_and_projections_not(module):
    stream = Stream(0, 1, 1, Rules(8, 0, 0, 10.0, 1e-3, 1.0), 0)
    stream.modules = (module, module)
    stream.row(False)
    assert list(stream.mine.whole) == [0, 0, 0]
    stream.rules = stream.rules._replace(tol=1e-2)
    for count in range(1, 5):
        stream.row(False)
        assert stream.mine.whole[1] == count


@pytest.mark.parametrize("module", [compiled, twin])
def test_no_row_is_sharper_than_rounding(module):
    """A slope of -1/var or beyond would leave no variance, or a negative one."""
    stream = filled(module, covariances=1)
    A = stream.mine
    for excess in (1.0, 1.0 + 1e-9, 2.0, 1e6):
        A.k[: A.m] = [kernel(np.zeros(2), stream.inputs[i]) for i in A.source[: A.m]]
        gamma = module.predict(A, 1.7, 1e-10)
        before = gamma + A.spread[0]
        A.q[:], A.r[:] = 0.1, -excess / before
        module.learn(A, stream.rules._replace(tol=10.0), 1.7, gamma, 0)
        assert A.r[0] > -1.0 / before
        assert np.all(np.isfinite(A.S))
        assert np.all(np.diagonal(A.S[0]) >= 0)
        assert np.isfinite(A.sums[0])
