"""Paths of penalties against one penalty at a time."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference import _l1_path
from mercer.inference._columns import ArrayColumns, KernelColumns
from mercer.inference._l1_generation import Generation
from mercer.inference._l1_path import PathRestricted, solve_path
from mercer.inference._l1_simplex import UnsolvedError
from mercer.inference._l1_squares import Squares
from mercer.kernels import RBF

from .l1_cases import excess, rows

X, Y, K = rows(250, seed=3)
T = np.abs(K @ Y).max() * np.geomspace(1.2, 1e-3, 25)
H = np.ones((250, 1))


class OneByOne:
    """A problem that knows no path."""

    def __init__(self, inner):
        self.add, self.solve, self.dual = inner.add, inner.solve, inner.dual


def run(wrapped=None, **options):
    inner = Squares(Y, None, H)
    inner = inner if wrapped is None else wrapped(inner)
    return Generation(KernelColumns(RBF(1.0), X), inner, **options)


def test_all_at_once_and_one_by_one():
    together, singly = solve_path(run(), T), solve_path(run(OneByOne), T)
    assert isinstance(Squares(Y), PathRestricted)
    assert not isinstance(OneByOne(Squares(Y)), PathRestricted)
    assert len(together) == len(singly) == len(T)
    for t, a, b in zip(T, together, singly, strict=True):
        assert a.status == b.status == "certified"
        assert a.gap <= 1e-6 and a.objective == pytest.approx(b.objective, rel=1e-6)
        f = K[:, a.indices] @ a.coef + H @ a.beta
        np.testing.assert_allclose(a.latent, f, atol=1e-9)
        at, elsewhere = excess(K, Y - f, t, a.indices, a.coef)
        assert at < 1e-9 and elsewhere < 1e-2
        np.testing.assert_array_equal(a.penalties, t)
    assert len(together[0].indices) == 0


def test_points_of_the_path_share_their_passes():
    counts = []
    for wrapped in (None, OneByOne):
        work = run(wrapped)
        passes, products = [], work.columns.products
        work.columns.products = lambda U, p=passes, f=products: p.append(U.shape[1]) or f(U)
        solve_path(work, T)
        counts.append(len(passes))
    assert counts[0] < counts[1] / 3


def test_weights_of_the_penalties(monkeypatch):
    monkeypatch.setattr(_l1_path, "_TOGETHER", 3)
    lam = np.random.default_rng(0).uniform(0.5, 1.0, 250)
    lam[7] = 0.0
    path = solve_path(Generation(ArrayColumns(K), Squares(Y)), T[::4], lam)
    for t, found in zip(T[::4], path, strict=True):
        alone = Generation(ArrayColumns(K), Squares(Y)).solve(t * lam)
        assert found.objective == pytest.approx(alone.objective, rel=1e-6)
        assert 7 in found.indices


@pytest.mark.parametrize("after", [1, 2, 12])
@pytest.mark.parametrize("wrapped", [None, OneByOne])
def test_interruption(after, wrapped):
    calls = []

    def report(found):
        calls.append(found)
        if len(calls) >= after:
            raise KeyboardInterrupt

    path = solve_path(run(wrapped, report=report, tol=1e-9), T)
    assert any(found.status == "interrupted" for found in path)
    assert wrapped is OneByOne or len(path) == len(T)
    for t, found in zip(T, path, strict=False):
        best = run().solve(t)
        assert found.dual <= best.objective * (1 + 1e-9)
        assert best.dual <= found.objective * (1 + 1e-9)
        f = K[:, found.indices] @ found.coef + H @ found.beta
        np.testing.assert_allclose(found.latent, f, atol=1e-8)


def test_a_limit_on_columns():
    path = solve_path(run(max_active=12), T)
    assert path[0].status == "certified" and path[-1].status == "stopped"
    assert all(len(found.indices) <= 12 for found in path)


def test_one_multiplier_and_none():
    assert len(solve_path(run(), T[9:10])) == 1
    for wrong in ([], [1.0, 2.0], [1.0, 0.0], [[1.0]]):
        with pytest.raises(ValueError, match="descend"):
            solve_path(run(), wrong)


def test_a_penalty_that_is_not_solved_for_does_not_lose_the_others():
    """The solution for the larger one stands in, with what it is worth and proves here."""
    work = run(OneByOne)
    solve, refused = work.restricted.solve, T[20]

    def failing(lam):
        if len(lam) and lam[0] == refused:
            raise UnsolvedError("for a reason")
        return solve(lam)

    work.restricted.solve = failing
    founds, exact = solve_path(work, T), solve_path(run(OneByOne), T)
    before, held = founds[19], founds[20]
    assert held.status == "stopped" and {each.status for each in founds[:20]} == {"certified"}
    np.testing.assert_array_equal(held.indices, before.indices)
    np.testing.assert_array_equal(held.coef, before.coef)
    np.testing.assert_array_equal(held.penalties, refused)
    f = K[:, held.indices] @ held.coef + H @ held.beta
    objective = 0.5 * np.sum((Y - f) ** 2) + refused * np.sum(np.abs(held.coef))
    assert held.objective == pytest.approx(objective, rel=1e-12)
    assert held.dual <= exact[20].objective <= held.objective * (1.0 + 1e-6)
    assert held.dual > 0.0 and held.gap > 1e-6
    for found, wanted in zip(founds[21:], exact[21:], strict=True):
        assert found.objective == pytest.approx(wanted.objective, rel=2e-6)
    work.restricted.solve = lambda lam: failing(np.array([refused]))
    with pytest.raises(UnsolvedError):
        solve_path(work, T[:2])
