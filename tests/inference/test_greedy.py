"""The greedy engine against dense algebra: its solution, its choices, its bounds, its ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import NotPositiveDefiniteError
from mercer.inference import _greedy_dual, _greedy_factor
from mercer.inference._greedy_rows import GreedyRows
from mercer.inference.greedy import DUALS, Greedy
from mercer.kernels import RBF, Callable, Constant, Matern

from .greedy_cases import data, fitted_by_qr, least, near_duplicates, on_basis, primal

KERNEL, S2 = 1.5 * RBF([0.7, 1.3]), 0.1


# --- the solution ---------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("number", [7, None], ids=["some", "all"])
def test_the_solution_is_that_of_bkm_86(number, outputs):
    X, Y = data(outputs=outputs)
    K = KERNEL(X)
    fit = Greedy(KERNEL, X, Y, S2, n_candidates=number).grow(0.0, most=25)
    assert len(set(fit.indices)) == 25
    wanted = on_basis(K, Y, S2, fit.indices)
    np.testing.assert_allclose(fit.coefficients, wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(fit.fitted, K[:, fit.indices] @ wanted, atol=1e-9)
    alpha = np.zeros_like(Y)
    alpha[fit.indices] = fit.coefficients
    values = [primal(K, y, S2, a) for y, a in zip(Y.T, alpha.T, strict=True)]
    assert fit.bounds.upper == pytest.approx(sum(values))


def test_each_row_is_the_best_of_all():
    X, Y = data(40)
    K = KERNEL(X)
    fit = Greedy(KERNEL, X, Y, S2, n_candidates=None).grow(0.0, most=10)
    y = Y[:, 0]

    def value(rows):
        alpha = np.zeros(40)
        alpha[rows] = on_basis(K, y, S2, rows)
        return primal(K, y, S2, alpha)

    for k in range(10):
        chosen = list(fit.indices[:k])
        values = [np.inf if j in chosen else value([*chosen, j]) for j in range(40)]
        assert fit.indices[k] == np.argmin(values)


def test_the_first_row_is_the_best_of_all_though_few_are_drawn():
    X, Y = data(200)
    one = Greedy(KERNEL, X, Y, S2, n_candidates=1).grow(0.0, most=1)
    every = Greedy(KERNEL, X, Y, S2, n_candidates=None).grow(0.0, most=1)
    assert one.indices == every.indices


def test_as_many_candidates_as_rows_are_all_rows():
    X, Y = data(60, outputs=2)
    some = Greedy(KERNEL, X, Y, S2, n_candidates=60).grow(0.0, most=20)
    every = Greedy(KERNEL, X, Y, S2, n_candidates=None).grow(0.0, most=20)
    np.testing.assert_array_equal(some.indices, every.indices)


def test_nothing_is_left_of_the_gap_with_all_rows():
    X, Y = data(60)
    fit = Greedy(KERNEL, X, Y, S2).grow(0.0)
    assert fit.bounds.gap < 1e-12
    K = KERNEL(X)
    np.testing.assert_allclose(fit.fitted, K @ np.linalg.solve(K + S2 * np.eye(60), Y), atol=1e-10)


def test_factors_hold_after_many_additions_with_near_duplicates():
    """Within 1e-9 of a factor that is computed at once."""
    X, y = near_duplicates(1200, apart=1e-3)
    kernel = RBF(0.5)
    engine = Greedy(kernel, X, y, 0.05, dual="residual")
    fit = engine.grow(0.0, most=500, certify=False)
    assert len(fit.indices) == 500
    K = kernel(X)
    wanted = fitted_by_qr(K, y[:, None], 0.05, fit.indices)
    np.testing.assert_allclose(fit.fitted, wanted, atol=1e-9)
    np.testing.assert_allclose(K[:, fit.indices] @ fit.coefficients, wanted, atol=1e-9)
    W, B = engine.factor.W, engine.factor.B
    np.testing.assert_allclose(W.T @ W + B.T @ B, np.eye(500), atol=1e-11)


def test_rows_that_repeat_are_chosen_once():
    X, Y = data(20)
    fit = Greedy(KERNEL, np.repeat(X, 5, axis=0), np.repeat(Y, 5, axis=0), S2).grow(0.0)
    assert fit.status in ("exhausted", "certified") and len(fit.indices) <= 20
    assert len(np.unique(fit.indices // 5)) == len(fit.indices)


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dual", DUALS)
def test_weights_are_repeated_rows(dual):
    X, Y = data(50, outputs=2)
    counts = np.random.default_rng(1).integers(1, 4, size=50)
    weighted = Greedy(KERNEL, X, Y, S2, weights=counts, n_candidates=None, dual=dual)
    repeated = Greedy(
        KERNEL, *(np.repeat(a, counts, axis=0) for a in (X, Y)), S2, n_candidates=None, dual=dual
    )
    one, other = weighted.grow(0.0, most=12), repeated.grow(0.0, most=12)
    np.testing.assert_array_equal(X[one.indices], np.repeat(X, counts, axis=0)[other.indices])
    np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(np.repeat(one.fitted, counts, axis=0), other.fitted, atol=1e-10)
    assert one.bounds.upper == pytest.approx(other.bounds.upper, rel=1e-10)


def test_noise_of_each_row_is_a_weight():
    X, Y = data(50)
    noise = np.linspace(0.05, 0.6, 50)
    s2 = 1.0 / np.mean(1.0 / noise)
    one = Greedy(KERNEL, X, Y, noise).grow(0.0, most=12)
    other = Greedy(KERNEL, X, Y, s2, weights=s2 / noise).grow(0.0, most=12)
    np.testing.assert_array_equal(one.indices, other.indices)
    assert one.bounds == other.bounds


# --- bounds ---------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 40),
    seed=st.integers(0, 1000),
    width=st.floats(-1.5, 2.0),
    noise=st.floats(-6, 2),
    offset=st.sampled_from([0.0, 10.0]),
    dual=st.sampled_from(DUALS),
    number=st.sampled_from([3, 59, None]),
    repeated=st.booleans(),
)
def test_bounds_hold_and_the_gap_never_increases(
    n, seed, width, noise, offset, dual, number, repeated
):
    X, Y = data(n, 2, seed, outputs=2)
    if repeated:
        X[n // 2 :] = X[0]
    Y, s2, kernel = Y + offset, 10.0**noise, RBF(10.0**width)
    fit = Greedy(kernel, X, Y, s2, n_candidates=number, dual=dual, seed=seed).grow(1e-3)
    wanted = least(kernel(X), Y, s2)
    rounding = 1e-10 * max(1.0, 1e-4 / s2) * np.sum(Y**2)
    assert fit.bounds.lower <= wanted + rounding and wanted - rounding <= fit.bounds.upper
    assert np.all(np.diff(fit.gaps) <= 0) and np.all((fit.gaps >= 0) & (fit.gaps <= 2))
    assert len(fit.gaps) == len(fit.indices) >= 1
    assert (fit.status == "certified") == (fit.bounds.gap <= 1e-3)
    assert np.all(np.isfinite(fit.coefficients)) and np.all(np.isfinite(fit.fitted))


@pytest.mark.parametrize("dual", DUALS)
def test_a_wide_kernel_and_centred_targets(dual):
    """Where naive updates lose positive definiteness: 2 w^2 = 50, many rows all but equal."""
    X, y = near_duplicates(600, apart=1e-2)
    kernel, y = RBF(5.0), y - y.mean()
    fit = Greedy(kernel, X, y, 0.1, dual=dual).grow(0.0, most=300)
    assert np.all(np.diff(fit.gaps) <= 0) and np.all(fit.gaps >= 0)
    wanted = least(kernel(X), y[:, None], 0.1)
    assert fit.bounds.lower <= wanted * (1 - 1e-9) and wanted * (1 + 1e-9) <= fit.bounds.upper
    if dual != "subset":
        assert fit.bounds.gap < 1e-7  # rows of which 1e4 times rounding is left are all there


@pytest.mark.parametrize("dual", ["best", "residual", "refined"])
def test_duals_on_all_rows_prove_what_is_true(dual):
    """And soon after it is: the basis is not much larger than it need be."""
    X, Y = data(1500, 4)
    kernel = RBF(1.5)
    K = kernel(X)
    fit = Greedy(kernel, X, Y, S2, dual=dual).grow(0.02)
    assert fit.status == "certified" and fit.bounds.gap <= 0.02
    wanted = least(K, Y, S2)
    sizes = range(5, len(fit.indices))
    true = [m for m in sizes if _gap(K, Y, fit.indices[:m], wanted) <= 0.02]
    assert len(fit.indices) <= (2.0 if dual == "residual" else 1.5) * true[0]
    assert fit.n_products < 30


def _gap(K, Y, rows, wanted):
    F = fitted_by_qr(K, Y, S2, rows)
    upper = -0.5 * np.sum(Y * F)
    return 2.0 * (upper - wanted) / (abs(upper) + abs(wanted))


def test_the_subset_is_that_of_the_paper():
    """With k rows: L* on the subset that was chosen, and each of its rows the best there was."""
    X, Y = data(30)
    K, y = KERNEL(X) + S2 * np.eye(30), Y[:, 0]
    engine = Greedy(KERNEL, X, Y, S2, n_candidates=None, dual="subset")
    fit = engine.grow(0.0, most=6)
    rows = engine.state.subset

    def bound(J):
        return -0.5 * y @ y + 0.5 * S2 * y[J] @ np.linalg.solve(K[np.ix_(J, J)], y[J])

    assert fit.source == "subset"
    assert fit.bounds.lower == pytest.approx(bound(list(rows)), rel=1e-10)
    for k in range(6):
        chosen = list(rows[:k])
        values = [-np.inf if j in chosen else bound([*chosen, j]) for j in range(30)]
        assert rows[k] == np.argmax(values)


def test_the_best_dual_is_no_worse_than_the_others():
    X, Y = data(300, 3)
    gaps = {d: Greedy(KERNEL.with_theta(KERNEL.theta), X[:, :2], Y, S2, dual=d) for d in DUALS}
    found = {d: engine.grow(0.0, most=30).bounds.gap for d, engine in gaps.items()}
    assert found["best"] <= min(found.values()) * (1 + 1e-12)
    assert found["subset"] > 10 * found["best"]


# --- going on -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [9, None], ids=["some", "all"])
@pytest.mark.parametrize("dual", ["best", "subset"])
def test_going_on_is_the_same_as_in_one_go(dual, number):
    X, Y = data(200)

    def engine():
        return Greedy(KERNEL, X, Y, S2, n_candidates=number, dual=dual, seed=3)

    whole = engine().grow(0.0, most=30)
    parts = engine()
    first = parts.grow(0.0, most=12)
    again = parts.grow(0.0, most=30)
    resumed = engine()
    resumed.resume(_cut(engine, 12))
    later = resumed.grow(0.0, most=30)
    for fit in (again, later):
        np.testing.assert_array_equal(fit.indices, whole.indices)
        np.testing.assert_allclose(fit.coefficients, whole.coefficients, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(fit.gaps[:11], first.gaps[:11])
        assert np.all(np.diff(fit.gaps) <= 0)
        assert fit.bounds.lower <= least(KERNEL(X), Y, S2) * (1 - 1e-12)


def _cut(engine, size):
    part = engine()
    part.grow(0.0, most=size)
    return part.state


def test_the_same_seed_is_the_same_fit():
    X, Y = data(300)
    fits = [Greedy(KERNEL, X, Y, S2, seed=s).grow(0.01) for s in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0].indices, fits[1].indices)
    assert fits[0].bounds == fits[1].bounds
    assert not np.array_equal(fits[0].indices, fits[2].indices)


@pytest.mark.parametrize("after", [1, 2, 15])
def test_interrupting_returns_what_is_proved(after):
    X, Y = data(300)

    def stop(size, gap):
        if size == after:
            raise KeyboardInterrupt

    engine = Greedy(KERNEL, X, Y, S2)
    fit = engine.grow(1e-9, progress=stop)
    assert fit.status == "interrupted" and len(fit.indices) == after
    K = KERNEL(X)
    np.testing.assert_allclose(fit.fitted, fitted_by_qr(K, Y, S2, fit.indices), atol=1e-10)
    assert fit.bounds.lower <= least(K, Y, S2) <= fit.bounds.upper
    assert engine.grow(1e-3).status == "certified"


def test_an_interrupt_in_the_middle_of_a_step_leaves_the_last_one():
    X, Y = data(200)
    calls = []

    def section(A, B):
        calls.append(len(A))
        if len(calls) == 100:
            raise KeyboardInterrupt
        return np.exp(-0.5 * np.sum((A[:, None] - B[None]) ** 2, axis=2))

    kernel = Callable(section, vectorised=True)
    fit = Greedy(kernel, X, Y, S2, n_candidates=5).grow(1e-9)
    assert fit.status == "interrupted" and len(fit.indices) > 3
    K = RBF(1.0)(X)
    np.testing.assert_allclose(fit.fitted, fitted_by_qr(K, Y, S2, fit.indices), atol=1e-10)


@pytest.mark.parametrize("module", [_greedy_factor, _greedy_dual])
def test_an_interrupt_while_room_is_made(module, monkeypatch):
    """Of arrays that grow together either all have grown or none."""
    X, Y = data(200)
    engine = Greedy(KERNEL, X, Y, S2, n_candidates=9)
    whole = Greedy(KERNEL, X, Y, S2, n_candidates=9).grow(0.0, most=40, certify=False)

    class Interrupted:
        def __getattr__(self, name):
            if name in ("vstack", "append"):
                raise KeyboardInterrupt
            return getattr(np, name)

    def stop(size, gap):
        monkeypatch.setattr(module, "np", Interrupted() if size >= 31 else np)

    fit = engine.grow(0.0, most=40, progress=stop, certify=False)
    assert fit.status == "interrupted" and len(fit.indices) < 40
    monkeypatch.setattr(module, "np", np)
    again = engine.grow(0.0, most=40, certify=False)
    assert len(again.indices) == 40 and len(set(again.indices)) == 40
    K = KERNEL(X)
    np.testing.assert_allclose(again.fitted, fitted_by_qr(K, Y, S2, again.indices), atol=1e-9)
    assert again.bounds.lower <= least(K, Y, S2) <= again.bounds.upper
    if module is _greedy_factor:
        np.testing.assert_array_equal(again.indices, whole.indices)


def test_all_rows_go_on_after_an_interrupt_in_a_product(monkeypatch):
    X, Y = data(60)
    whole = Greedy(KERNEL, X, Y, S2, n_candidates=None, dual="subset").grow(0.0, most=12)
    engine = Greedy(KERNEL, X, Y, S2, n_candidates=None, dual="subset")
    engine.grow(0.0, most=6)
    times = GreedyRows.times

    def interrupted(self, A):
        raise KeyboardInterrupt

    monkeypatch.setattr(GreedyRows, "times", interrupted)
    assert engine.grow(0.0, most=12).status == "interrupted"
    monkeypatch.setattr(GreedyRows, "times", times)
    np.testing.assert_array_equal(engine.grow(0.0, most=12).indices, whole.indices)


def test_an_interrupt_before_there_is_anything():
    X, Y = data(50)

    def never(A, B):
        if len(B) > 8:  # more than the diagonal takes
            raise KeyboardInterrupt
        return np.ones((len(A), len(B)))

    engine = Greedy(Callable(never, vectorised=True), X, Y, S2)
    with pytest.raises(KeyboardInterrupt):
        engine.grow(0.1)


# --- targets that change --------------------------------------------------------------------------


@pytest.mark.parametrize("dual", DUALS)
def test_other_targets_have_the_solution_and_the_bounds_of_these(dual):
    X, Y = data(150, outputs=2)
    K, weights = KERNEL(X), np.linspace(0.5, 2.0, 150)
    engine = Greedy(KERNEL, X, Y, S2, weights=weights, dual=dual)
    rows = engine.grow(0.0, most=20).indices
    other = Y + np.cos(X[:, :1])
    engine.retarget(other)
    fit = engine.solution("stopped")
    r = np.sqrt(weights)[:, None]
    scaled = r * K * r.T
    np.testing.assert_allclose(r * fit.fitted, fitted_by_qr(scaled, r * other, S2, rows), atol=1e-9)
    wanted = least(scaled, r * other, S2)
    assert fit.bounds.lower <= wanted <= fit.bounds.upper
    assert engine.proved[-1] == fit.bounds.gap and np.all(np.diff(engine.proved) <= 0)
    more = engine.grow(0.0, most=25)
    np.testing.assert_allclose(
        r * more.fitted, fitted_by_qr(scaled, r * other, S2, more.indices), atol=1e-9
    )


def test_all_rows_choose_by_other_targets():
    X, Y = data(60)
    other = np.cos(3.0 * X[:, 1:]) - X[:, :1]
    K, y = KERNEL(X), other[:, 0]
    engine = Greedy(KERNEL, X, Y, S2, n_candidates=None)
    chosen = list(engine.grow(0.0, most=6).indices)
    engine.retarget(other)

    def value(rows):
        alpha = np.zeros(60)
        alpha[rows] = on_basis(K, y, S2, rows)
        return primal(K, y, S2, alpha)

    fit = engine.grow(0.0, most=10)
    for k in range(6, 10):
        chosen = list(fit.indices[:k])
        values = [np.inf if j in chosen else value([*chosen, j]) for j in range(60)]
        assert fit.indices[k] == np.argmin(values)


def test_other_targets_have_no_estimate_of_the_last_ones():
    """Of which there was next to nothing left to explain: the end would seem near."""
    X, Y = data(300)
    engine = Greedy(KERNEL, X, 1e-6 * Y, S2, n_candidates=9, dual="residual")
    engine.grow(0.0, most=10)
    assert engine._candidates.excess < 1.0
    other = np.sin(4.0 * X[:, :1]) * np.cos(3.0 * X[:, 1:])
    engine.retarget(other)
    engine.grow(0.05, certify=False)
    assert _gap(KERNEL(X), other, engine.factor.indices, least(KERNEL(X), other, S2)) <= 0.1


def test_coefficients_of_a_mean_are_generalised_least_squares():
    X, Y = data(80, outputs=2)
    H, weights = np.hstack([np.ones((80, 1)), X]), np.linspace(0.5, 2.0, 80)
    engine = Greedy(KERNEL, X, Y, S2, weights=weights)
    rows = engine.grow(0.0, most=15).indices
    K = KERNEL(X)
    Q = K[:, rows] @ np.linalg.solve(K[np.ix_(rows, rows)], K[rows])
    inverse = np.linalg.inv(Q + np.diag(S2 / weights))
    wanted = np.linalg.solve(H.T @ inverse @ H, H.T @ inverse @ Y)
    np.testing.assert_allclose(engine.coefficients(Y, H), wanted, rtol=1e-7)


# --- odd data -------------------------------------------------------------------------------------


def test_targets_that_are_nothing():
    X, Y = data(30)
    fit = Greedy(KERNEL, X, 0.0 * Y, S2).grow(0.0)
    assert (fit.status, fit.bounds) == ("certified", (0.0, 0.0, 0.0))
    assert not np.any(fit.coefficients)


def test_one_row_and_a_kernel_of_rank_one():
    fit = Greedy(KERNEL, [[1.0, 2.0]], [3.0], S2).grow(0.0)
    assert fit.fitted[0, 0] == pytest.approx(3.0 * 1.5 / 1.6)
    X, Y = data(30)
    constant = Greedy(Constant(2.0), X, Y + 1.0, S2).grow(0.0)
    assert len(constant.indices) == 1 and constant.bounds.gap < 1e-12


@pytest.mark.parametrize("noise", [1e8, 1e10, 1e12, 1e14])
@pytest.mark.parametrize("most", [1, 3, 10])
def test_the_gap_is_never_below_the_true_one_though_all_is_rounding(noise, most):
    """L is 1e-12 of the targets' squares that it is a difference of."""
    X, Y = data(60)
    kernel = RBF(1.0)
    fit = Greedy(kernel, X, Y, noise).grow(0.0, most)
    K = kernel(X)
    # of L = y'K (K + s2)^-1 y/2 and of its least value with few rows, to terms of K/s2 alone
    wanted = least(K / noise, Y, 1.0)
    F = K[:, fit.indices] @ on_basis(K, Y, noise, fit.indices)
    upper = -0.5 * np.sum(Y * F)
    true = 2.0 * (upper - wanted) / (abs(upper) + abs(wanted))
    assert fit.bounds.gap >= true * (1 - 1e-9)
    if noise == 1e8:
        assert fit.bounds.gap <= true + 1e-6


@pytest.mark.parametrize("kernel", [RBF(0.2), Matern(1.0, nu=0.5)])
def test_small_tolerances_are_met(kernel):
    X, Y = data(500)
    assert Greedy(kernel, X, Y, S2).grow(1e-10).status == "certified"


def test_units_do_not_matter():
    X, Y = data(100)
    one = Greedy(KERNEL, X, Y, S2).grow(0.01)
    for size in (1e-30, 1e30):
        kernel = (1.5 * size**2) * RBF([0.7, 1.3])
        other = Greedy(kernel, X, size * Y, S2 * size**2).grow(0.01)
        np.testing.assert_array_equal(other.indices, one.indices)
        assert other.bounds.gap == pytest.approx(one.bounds.gap, rel=1e-8)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"X": np.zeros((0, 2))}, "at least one row"),
        ({"y": np.zeros(7)}, "y must have shape"),
        ({"noise": -1.0}, "positive variance"),
        ({"noise": np.ones(3)}, "positive variance"),
        ({"weights": np.zeros(20)}, "20 positive numbers"),
        ({"weights": np.ones(3)}, "20 positive numbers"),
        ({"n_candidates": 0}, "n_candidates must be"),
        ({"dual": "worst"}, "dual must be one of"),
        ({"kernel": "rbf"}, "kernel must be one of"),
    ],
)
def test_what_is_refused(changed, words):
    X, Y = data(20)
    given = {"kernel": KERNEL, "X": X, "y": Y, "noise": S2, **changed}
    parts = [given.pop(name) for name in ("kernel", "X", "y", "noise")]
    with pytest.raises(ValueError, match=words):
        Greedy(*parts, **given)


@pytest.mark.parametrize(("tol", "most"), [(-1.0, None), (2.0, None), ("a", None), (0.1, 0)])
def test_what_growth_refuses(tol, most):
    X, Y = data(20)
    with pytest.raises(ValueError, match="must be a"):
        Greedy(KERNEL, X, Y, S2).grow(tol, most)


def test_a_kernel_that_is_nothing():
    X, Y = data(20)
    with pytest.raises(NotPositiveDefiniteError, match="0 at every row"):
        Greedy(Constant(0.0), X, Y, S2).grow(0.1)


def test_objects_that_are_not_numbers():
    words = "the best of some rows drawn by chance until it is proved".split()
    kernel = Callable(lambda a, b: float(len(set(a) & set(b))))
    fit = Greedy(kernel, words, [len(w) for w in words], S2).grow(1e-6)
    assert fit.bounds.gap <= 1e-6


def test_matern_needs_more_rows_than_a_smooth_kernel():
    X, Y = data(400)
    sizes = [len(Greedy(k, X, Y, S2).grow(0.01).indices) for k in (Matern(1.0, nu=0.5), RBF(1.0))]
    assert sizes[0] > 2 * sizes[1]
