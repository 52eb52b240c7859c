"""Rounding in the recursion: what is seen, refined and made anew, and which points stay."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference._online_moments import refresh
from mercer.linalg import _recursion_twins as twin
from mercer.linalg.recursion import Rules, empty_arrays

from .recursion_cases import Stream, close, compiled, copy, filled, kernel, sound, used


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


def at_points(module, points, rules):
    """Return the arrays after rows at these places on a line, with a unit kernel."""
    A = empty_arrays(9, 0, 1, 1)
    for i, x in enumerate(points):
        A.k[: A.m] = np.exp(-0.5 * (x - np.take(points, A.source[: A.m])) ** 2)
        gamma = module.predict(A, 1.0, rules.floor)
        A.q[:], A.r[:] = [3.0, 0.01, 2.0][i], -0.1
        module.learn(A, rules, 1.0, gamma, i)
    return A


@pytest.mark.parametrize("module", [compiled, twin])
@pytest.mark.parametrize("room", [2, 8])
def test_a_point_that_the_others_come_to_determine_goes_first(module, room):
    """Each of the three is new when it comes, and then the first has the others on both sides."""
    points = [0.0, 0.6, -0.6]
    K = np.exp(-0.5 * np.subtract.outer(points, points) ** 2)
    given_others = 1.0 / np.diag(np.linalg.inv(K))
    assert given_others[0] < 0.1 < min(given_others[1:])
    rules = Rules(room, 0, 0, 0.1, 0.1, 1.0)
    A = at_points(module, points, rules)
    assert sorted(A.source[: A.m]) == [1, 2]
    sound(A)
    # by its score another would go, for want of room
    A = at_points(module, points, rules._replace(floor=1e-6))
    assert sorted(A.source[: A.m]) == ([0, 1, 2] if room > 2 else [0, 2])


@pytest.mark.parametrize("module", [compiled, twin])
def test_what_is_wrong_with_q_does_not_get_into_a_row_that_is_near(module):
    stream = filled(module)
    A = stream.mine
    m, K = A.m, used(A, "K")
    A.Q[:m, :m] *= 1.0 + 1e-5
    x = stream.inputs[A.source[0]] + 0.05
    k = np.array([kernel(x, stream.inputs[i]) for i in A.source[:m]])
    A.k[:m] = k
    gamma = module.predict(A, 1.7, 1e-6)
    e = np.linalg.solve(K, k)
    assert gamma < 0.1 * 1.7
    np.testing.assert_allclose(A.e[:m], e, rtol=1e-8, atol=1e-9)
    assert gamma == pytest.approx(1.7 - k @ e, rel=1e-6)
    assert A.whole[2] == 1


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
