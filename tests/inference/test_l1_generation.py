"""Column generation for Gaussian noise: dense conditions, other solvers, interruption."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.inference import _l1_generation
from mercer.inference._columns import ArrayColumns, KernelColumns
from mercer.inference._l1_generation import Generation, Solved, shrinkage, worst_columns
from mercer.inference._l1_quadratic import minimise_l1
from mercer.inference._l1_simplex import UnsolvedError
from mercer.inference._l1_squares import Squares
from mercer.kernels import RBF, Tanh

from .l1_cases import clarabel_squares, excess, rows, squares

X, Y, K = rows(200)
LAM = 0.02 * np.abs(K @ Y).max()


def dense_pull(Phi, y, found, H=None, weights=None, mean=0.0):
    f = mean + Phi[:, found.indices] @ found.coef + (0.0 if H is None else H @ found.beta)
    return f, (y - f) * (1.0 if weights is None else weights)


@pytest.mark.parametrize("part", [0.2, 0.02, 1e-3])
def test_kernel_sections(part):
    lam = part * np.abs(K @ Y).max()
    found = Generation(KernelColumns(RBF(1.0), X), Squares(Y)).solve(lam)
    f, u = dense_pull(K, Y, found)
    assert found.status == "certified" and found.gap <= 1e-6
    np.testing.assert_allclose(found.latent, f, atol=1e-9)
    np.testing.assert_allclose(found.pull, u, atol=1e-9)
    objective = squares(Y, f) + lam * np.abs(found.coef).sum()
    assert found.objective == pytest.approx(objective, rel=1e-10)
    at, elsewhere = excess(K, u, lam, found.indices, found.coef)
    assert at < 1e-9
    u = u / (1 + elsewhere)
    assert found.objective - (u @ Y - u @ u / 2) < 1e-6 * objective
    assert found.objective == pytest.approx(clarabel_squares(K, Y, lam), rel=1e-6)
    assert np.all(np.diff(found.indices) > 0) and np.all(found.coef != 0)


def test_all_columns_at_once_give_the_same():
    everything = minimise_l1(K.T @ K, K.T @ Y, LAM)
    found = Generation(KernelColumns(RBF(1.0), X), Squares(Y), tol=1e-12).solve(LAM)
    coef = np.zeros(200)
    coef[found.indices] = found.coef
    np.testing.assert_allclose(coef, everything.coef, atol=1e-7)
    assert found.n_columns < 200


def test_weights_mean_and_functions_without_a_penalty():
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, 200).astype(float)
    H = np.column_stack([np.ones(200), X[:, 1]])
    mean = np.cos(X[:, 0])
    found = Generation(KernelColumns(RBF(1.0), X), Squares(Y, mean, H, weights)).solve(LAM)
    f, u = dense_pull(K, Y, found, H, weights, mean)
    np.testing.assert_allclose(found.latent, f, atol=1e-9)
    np.testing.assert_allclose(H.T @ found.pull, 0.0, atol=1e-9)
    at, elsewhere = excess(K, u, LAM, found.indices, found.coef)
    assert at < 1e-9 and elsewhere < 1e-5
    best = clarabel_squares(K, Y - mean, LAM, H, weights)
    assert found.objective == pytest.approx(best, rel=1e-6)
    assert found.dual <= best * (1 + 1e-8)
    doubled = np.repeat(np.arange(200), weights.astype(int))  # weight 2 is the row twice
    again = Generation(
        KernelColumns(RBF(1.0), X[doubled], X), Squares(Y[doubled], mean[doubled], H[doubled])
    ).solve(LAM)
    assert again.objective == pytest.approx(found.objective, rel=2e-6)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 15),
    m=st.integers(1, 20),
    part=st.sampled_from([1.5, 0.5, 0.05, 1e-3]),
    log_scale=st.floats(-6, 6),
    twins=st.integers(0, 5),
    weighted=st.booleans(),
    constant=st.booleans(),
    batch=st.integers(1, 4),
)
def test_conditions_hold(seed, n, m, part, log_scale, twins, weighted, constant, batch):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, m)) + rng.normal(size=(n, 1))
    Phi = Phi[:, rng.integers(0, m, m + twins)] * 10.0 ** rng.uniform(-3, 3)
    y = rng.normal(size=n) * 10.0**log_scale
    H = np.ones((n, 1)) if constant else None
    weights = rng.uniform(0.1, 3.0, n) if weighted else None
    lam = part * np.abs(Phi.T @ y).max() * rng.uniform(0.5, 1.0, m + twins)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_l1_generation, "_BATCH", batch)
        found = Generation(ArrayColumns(Phi), Squares(y, None, H, weights)).solve(lam)
    _, u = dense_pull(Phi, y, found, H, weights)
    F = squares(y, y - u / (1.0 if weights is None else weights), weights)
    F += lam[found.indices] @ np.abs(found.coef)
    assert found.objective == pytest.approx(F, rel=1e-9, abs=1e-12 * (y @ y))
    if found.status != "certified":  # F itself is rounding: y is a constant, say
        assert F < 1e-20 * (y @ y)
        return
    u = u * shrinkage(np.abs(Phi.T @ u), lam)
    dual = u @ y - 0.5 * np.sum(u**2 / (1.0 if weights is None else weights))
    assert F - dual <= 1.1e-6 * F + 1e-13 * (y @ y)


def test_no_column_where_the_penalty_is_large():
    largest = np.abs(K @ Y).max()
    found = Generation(KernelColumns(RBF(1.0), X), Squares(Y)).solve(1.0001 * largest)
    assert found.status == "certified" and len(found.indices) == 0
    assert (found.n_passes, found.n_columns) == (1, 0)
    assert found.objective == pytest.approx(Y @ Y / 2)
    assert found.gap == pytest.approx(0.0, abs=1e-14)
    assert len(Generation(KernelColumns(RBF(1.0), X), Squares(Y)).solve(0.95 * largest).coef) > 0


def test_kernels_that_are_no_covariances():
    kernel = Tanh(1.0, 1.0)
    found = Generation(KernelColumns(kernel, X), Squares(Y)).solve(1.0)
    Phi = np.tanh(X @ X.T + 1.0)
    at, _ = excess(Phi, dense_pull(Phi, Y, found)[1], 1.0, found.indices, found.coef)
    assert at < 1e-9 and found.status == "certified"
    assert found.objective == pytest.approx(clarabel_squares(Phi, Y, 1.0), rel=1e-6)


def test_penalties_one_after_the_other_keep_their_columns():
    run = Generation(KernelColumns(RBF(1.0), X), Squares(Y))
    for part in (0.3, 0.1, 0.03, 0.01):
        lam = part * np.abs(K @ Y).max()
        found = run.solve(lam)
        alone = Generation(KernelColumns(RBF(1.0), X), Squares(Y)).solve(lam)
        assert found.objective == pytest.approx(alone.objective, rel=1e-6)
    assert found.n_passes < alone.n_passes


def test_free_columns_are_formed_first():
    lam = np.full(200, LAM)
    lam[[3, 150]] = 0.0
    found = Generation(ArrayColumns(K), Squares(Y), max_active=2).solve(lam)
    assert {3, 150} == set(found.indices.tolist())
    found = Generation(ArrayColumns(K), Squares(Y)).solve(lam)
    assert found.objective == pytest.approx(clarabel_squares(K, Y, lam), rel=1e-6)


def test_the_same_each_time_and_from_a_start():
    first, second = (Generation(KernelColumns(RBF(1.0), X), Squares(Y)).solve(LAM) for _ in "ab")
    assert first.coef.tobytes() == second.coef.tobytes()
    warm = Generation(KernelColumns(RBF(1.0), X), Squares(Y), start=first.indices).solve(LAM)
    assert warm.n_passes == 1 and warm.objective == pytest.approx(first.objective, rel=1e-9)


def test_interruption_returns_what_there_is():
    seen = []

    def report(found):
        seen.append(found)
        if len(seen) == 3:
            raise KeyboardInterrupt

    found = Generation(KernelColumns(RBF(1.0), X), Squares(Y), tol=1e-13, report=report).solve(LAM)
    assert found.status == "interrupted" and found.n_passes == 3
    best = clarabel_squares(K, Y, LAM)
    assert found.dual <= best * (1 + 1e-8) and found.objective >= best * (1 - 1e-8)
    assert [s.dual for s in seen] == sorted(s.dual for s in seen)
    assert [s.objective for s in seen] == sorted((s.objective for s in seen), reverse=True)
    f, _ = dense_pull(K, Y, found)
    np.testing.assert_allclose(found.latent, f, atol=1e-9)


def failing_after(solved, error):
    class Failing(Squares):
        left = solved

        def solve(self, lam):
            if not self.left:
                raise error
            self.left -= 1
            return super().solve(lam)

    return Generation(KernelColumns(RBF(1.0), X), Failing(Y))


def test_a_programme_that_fails_leaves_what_there_is():
    error = UnsolvedError("the linear programme was not solved: Unknown")
    found = failing_after(3, error).solve(1e-3 * LAM)
    assert found.status == "stopped" and len(found.indices)
    assert 0.0 <= found.dual <= found.objective
    with pytest.raises(UnsolvedError, match="was not solved"):  # with nothing in use
        failing_after(1, error).solve(1e-3 * LAM)


def test_a_programme_that_fails_at_once_leaves_nothing():
    work = failing_after(3, UnsolvedError("the linear programme was not solved: Unknown"))
    work.solve(1e-3 * LAM)
    with pytest.raises(UnsolvedError, match="was not solved"):  # though functions are in use
        work.solve(1e-4 * LAM)


def test_other_errors_of_arithmetic_are_not_taken_for_programmes_that_fail():
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        failing_after(3, ZeroDivisionError("a mistake")).solve(1e-3 * LAM)


def test_a_limit_on_columns():
    found = Generation(KernelColumns(RBF(1.0), X), Squares(Y), max_active=10).solve(LAM / 20)
    assert found.status == "stopped" and 0 < len(found.indices) <= 10
    best = clarabel_squares(K, Y, LAM / 20)
    assert found.dual <= best <= found.objective and found.gap > 1e-6


def test_one_row_and_constant_targets():
    one = Generation(KernelColumns(RBF(1.0), X[:1]), Squares(np.array([3.0]))).solve(1.0)
    assert one.coef.tolist() == [2.0] and one.status == "certified"
    H = np.ones((200, 1))
    flat = Generation(KernelColumns(RBF(1.0), X), Squares(np.full(200, 2.3), None, H)).solve(1.0)
    assert len(flat.coef) == 0 and flat.beta[0] == pytest.approx(2.3)
    assert flat.status == "certified" and flat.objective == 0.0


def test_columns_that_are_chosen_differ():
    Phi = np.repeat(K[:, :40], 10, axis=1)
    excess = 1.0 + np.random.default_rng(0).uniform(size=200)
    chosen = worst_columns(ArrayColumns(Phi), excess, 20)
    assert len(np.unique(chosen // 10)) > 15
    assert int(np.argmax(excess)) in chosen
    assert worst_columns(ArrayColumns(Phi), np.ones(200), 20).tolist() == []
    assert (
        len(worst_columns(ArrayColumns(np.repeat(K[:, :1], 50, axis=1)), 1 + excess[:50], 9)) == 9
    )


def test_penalties_are_checked():
    with pytest.raises(ValueError, match="at least 0"):
        Generation(ArrayColumns(K), Squares(Y)).solve(-1.0)


def test_columns_are_forgotten_where_memory_is_short(monkeypatch):
    monkeypatch.setattr(_l1_generation, "_MEMORY", 40 * 200)
    monkeypatch.setattr(_l1_generation, "_BATCH", 10)
    sizes = []
    H = np.column_stack([np.ones(200), X[:, 1]])
    run = Generation(KernelColumns(RBF(1.0), X), Squares(Y, None, H))
    run.report = lambda found: sizes.append(len(run.indices))
    found = run.solve(LAM / 4)
    assert found.status == "certified" and found.n_columns > max(sizes)
    assert max(sizes) <= max(40, len(found.indices) + 10)
    assert found.objective == pytest.approx(clarabel_squares(K, Y, LAM / 4, H), rel=1e-6)
    most = len(found.indices) + 3
    limited = Generation(KernelColumns(RBF(1.0), X), Squares(Y, None, H), max_active=most)
    assert limited.solve(LAM / 4).objective == pytest.approx(found.objective, rel=1e-6)
    assert len(limited.indices) <= most


@pytest.mark.parametrize(("width", "part"), [(1.0, 1e-6), (5.0, 1e-5), (30.0, 1e-4)])
def test_coefficients_that_are_large_and_cancel(width, part):
    squared = np.sum((X[:, None] - X) ** 2, axis=2)
    Phi = np.exp(-0.5 * squared / width**2)
    lam = part * np.abs(Phi.T @ Y).max()
    found = Generation(KernelColumns(RBF(width), X), Squares(Y)).solve(lam)
    assert found.status == "certified"
    # so much the coefficients' last digits make of the slopes
    rounding = 1e-16 * 200 * np.abs(found.coef).sum() / lam
    at, _ = excess(Phi, found.pull, lam, found.indices, found.coef)
    assert at < 1e-9 + 10 * rounding


def test_a_sample_is_looked_at_first_and_saves_passes(monkeypatch):
    rng = np.random.default_rng(5)
    x = rng.uniform(-3, 3, size=(600, 2))
    y = np.sin(2.0 * x[:, 0]) + 0.3 * x[:, 1] + 0.1 * rng.normal(size=600)
    columns = KernelColumns(RBF(0.5), x)
    monkeypatch.setattr(_l1_generation, "_BATCH", 8)
    monkeypatch.setattr(_l1_generation, "_FEW", 8)

    def solved(start=None):
        return Generation(columns, Squares(y), tol=1e-8, start=start).solve(0.5)

    plain = solved()
    monkeypatch.setattr(_l1_generation, "_SAMPLED", 100)
    found = solved()
    assert found.status == plain.status == "certified"
    assert found.objective == pytest.approx(plain.objective, rel=2e-8)
    assert found.n_passes < plain.n_passes
    # not where there are columns to begin with
    assert solved(start=plain.indices).n_passes <= 2
    weighted = np.where(np.arange(600) % 100, 0.5, 0.0)  # some without a penalty
    assert Generation(columns, Squares(y)).solve(weighted).status == "certified"


def test_an_interrupted_look_at_a_sample_leaves_what_there_is(monkeypatch):
    monkeypatch.setattr(_l1_generation, "_SAMPLED", 64)
    rng = np.random.default_rng(5)
    x = rng.uniform(-3, 3, size=(200, 1))
    y = np.sin(2.0 * x[:, 0])
    columns, looks = KernelColumns(RBF(0.5), x), []
    whole = KernelColumns.products

    def broken(self, V):
        looks.append(self.size)
        if len(looks) == 2:
            raise KeyboardInterrupt
        return whole(self, V)

    monkeypatch.setattr(KernelColumns, "products", broken)
    found = Generation(columns, Squares(y)).solve(0.1)
    assert found.status == "interrupted" and len(found.indices) and looks[0] < 200
    assert found.dual <= found.objective < 0.5 * y @ y


@pytest.mark.parametrize("unit", [2.0**-100, 1.0, 2.0**100])
def test_targets_with_a_sum_of_nothing_have_any_unit(unit):
    # The slope of the constant is then 0 exactly, and what rounding makes of it is beside nothing.
    y = np.random.default_rng(3).permutation(np.repeat([3.0, 1.0, -1.0, -3.0], 10))
    inputs, ones = np.linspace(-3.0, 3.0, 40)[:, None], np.ones((40, 1))
    assert np.sum(y) == 0.0
    found = Generation(KernelColumns(RBF(1.0), inputs), Squares(unit * y, None, ones)).solve(unit)
    one = Generation(KernelColumns(RBF(1.0), inputs), Squares(y, None, ones)).solve(1.0)
    np.testing.assert_array_equal(found.indices, one.indices)
    np.testing.assert_allclose(found.coef, unit * one.coef, rtol=1e-9)


class Forgetful:
    """Two columns, of which the one in use always seems not to be needed, as rounding has it."""

    def __init__(self):
        self.which, self.passes = None, 0

    def add(self, A):
        self.which = int(np.argmax(A[:, 0]))

    def keep(self, positions):
        self.which = None

    def solve(self, lam):
        self.passes += 1
        assert self.passes < 200, "for ever"
        pull = np.full(2, 2.0)
        if self.which is None:
            return Solved(np.empty(0), np.empty(0), np.zeros(2), pull, 2.0)
        pull[self.which] = 0.5
        return Solved(np.ones(1), np.empty(0), np.eye(2)[self.which], pull, 1.0)

    def dual(self, u):
        return 0.1 * float(np.sum(u))


def test_columns_that_come_and_go_for_ever():
    work = Generation(ArrayColumns(np.eye(2)), Forgetful(), max_active=1)
    found = work.solve(1.0)
    assert found.status == "stopped" and found.objective == 1.0 and len(found.indices) == 1
