"""The steps of sparse Bayesian learning: against dense algebra, and compiled against the twin."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from mercer.linalg import _precisions_twins as twins
from mercer.linalg.precisions import ADD, CHANGE, NOTHING, REMOVE, empty_model

compiled = pytest.importorskip("mercer.linalg._precisions")
BETA = 40.0


def case(seed, n=50, M=30):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, M)) + 0.5 * rng.normal(size=(n, 1))
    return Phi, Phi[:, :4] @ rng.normal(size=4) + 0.3 * rng.normal(size=n)


def begun(Phi, z, cap=4):
    A = empty_model(np.einsum("ij,ij->j", Phi, Phi), cap)
    A.numbers[:] = BETA, 0.0, 1.0
    A.S[:], A.Q[:] = BETA * A.D, BETA * Phi.T @ z
    return A


def added(module, A, Phi, i, s):
    if A.whole[0] == len(A.s):
        A = A.grown(2 * len(A.s))
    A.G[A.whole[0]] = Phi.T @ Phi[:, i]
    module.insert(A, i, s)
    return A


def check(A, Phi, z):
    k = int(A.whole[0])
    active, s = A.active[:k], A.s[:k]
    F = Phi[:, active]
    Xi = np.linalg.inv(np.diag(s) + BETA * F.T @ F)
    C = np.linalg.inv(np.eye(len(z)) / BETA + (F / s) @ F.T)
    np.testing.assert_allclose(A.Xi[:k, :k], Xi, atol=1e-12)
    np.testing.assert_allclose(A.mu[:k], BETA * Xi @ F.T @ z, atol=1e-10)
    np.testing.assert_allclose(A.S, np.einsum("ij,ik,kj->j", Phi, C, Phi), rtol=1e-8)
    np.testing.assert_allclose(A.Q, Phi.T @ C @ z, atol=1e-7 * np.abs(BETA * Phi.T @ z).max())
    return 0.5 * np.linalg.slogdet(C)[1] - 0.5 * z @ C @ z


@pytest.mark.parametrize("module", [compiled, twins], ids=["compiled", "twin"])
def test_every_step_is_that_of_the_dense_formulas(module):
    Phi, z = case(0)
    A = begun(Phi, z)
    for i, s in ((3, 0.5), (7, 2.0), (1, 30.0), (20, 0.1), (9, 4.0)):
        A = added(module, A, Phi, i, s)
        check(A, Phi, z)
    module.change(A, 2, 0.2)
    check(A, Phi, z)
    module.remove(A, 1)
    check(A, Phi, z)
    module.remove(A, int(A.whole[0]) - 1)
    assert sorted(A.active[: A.whole[0]]) == [1, 3, 9]
    check(A, Phi, z)


@pytest.mark.parametrize("module", [compiled, twins], ids=["compiled", "twin"])
def test_what_is_chosen_gains_what_is_said(module):
    Phi, z = case(1)
    A, seen = begun(Phi, z), set()
    A = added(module, A, Phi, 25, 1e-3)
    A = added(module, A, Phi, 26, 1e4)
    for _ in range(30):
        what, which, s, gain = module.choose(A)
        seen.add(what)
        if what == NOTHING or gain < 1e-8:
            break
        before = check(A, Phi, z)
        if what == ADD:
            A = added(module, A, Phi, which, s)
        elif what == CHANGE:
            module.change(A, which, s)
        else:
            module.remove(A, which)
        assert check(A, Phi, z) - before == pytest.approx(gain, abs=1e-7)
    assert {ADD, CHANGE, REMOVE} <= seen


def test_the_compiled_steps_are_those_of_the_twin():
    for name in ("change", "choose", "insert", "remove", "run"):
        ours = list(inspect.signature(getattr(compiled, name).py_func).parameters)
        assert ours == list(inspect.signature(getattr(twins, name)).parameters)
    Phi, z = case(2)
    ends = []
    for module in (compiled, twins):
        A = begun(Phi, z)
        for _ in range(100):
            what, which, s, gain = module.run(A, 1e-6, 50)
            if what != ADD:
                break
            A = added(module, A, Phi, which, s)
            A.numbers[1] += gain
        k = int(A.whole[0])
        ends.append((A.active[:k].copy(), A.s[:k].copy(), A.numbers.copy()))
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    for ours, twin in zip(ends[0][1:], ends[1][1:], strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-8)


@pytest.mark.parametrize("module", [compiled, twins], ids=["compiled", "twin"])
def test_a_run_of_no_steps_is_a_look(module):
    Phi, z = case(1)
    A = begun(Phi, z)
    A = added(module, A, Phi, 25, 1e-3)
    A = added(module, A, Phi, 26, 1e4)
    A.place[A.place == 0] = -1  # nothing is to be added
    steps = 0
    while steps < 100 and module.run(A, 1e-6, 0) == (NOTHING, -1, 0.0, 1e-6):
        before = [one.copy() for one in A]
        module.run(A, 1e-6, 0)
        for one, other in zip(A, before, strict=True):
            np.testing.assert_array_equal(one, other)
        module.run(A, 1e-6, 1)
        steps += 1
    assert 0 < steps == A.whole[1] - 2 < 100
    assert module.run(A, 1e-6, 0)[3] < 1e-6
    assert module.run(A, 1e-6, 5)[3] < 1e-6 and A.whole[1] == steps + 2


@pytest.mark.parametrize("module", [compiled, twins], ids=["compiled", "twin"])
def test_a_column_that_others_explain_is_refused(module):
    Phi, z = case(3)
    Phi[:, 5] = Phi[:, 6] + Phi[:, 7]
    A = begun(Phi, z)
    A = added(module, A, Phi, 6, 1e-9)
    A = added(module, A, Phi, 7, 1e-9)
    A.Q[5] = 1e9
    assert module.choose(A)[1] != 5
    assert A.place[5] == -1
