"""Solutions of kernel expansions for every noise and prior: optimality, and independent optima."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from mercer.inference import _l1_simplex
from mercer.inference._columns import ArrayColumns, KernelColumns
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference.laplacian import PRIORS, largest_penalty, path, solve
from mercer.kernels import RBF, Tanh
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace
from mercer.priors import FeatureSelection, Laplacian, WeightDecay

from .expansion_cases import (
    CLASSES,
    LINEAR,
    NOISES,
    Case,
    convex_optimum,
    losses,
    penalty,
    pull_bounds,
)

each_noise = pytest.mark.parametrize("name", NOISES)
each_prior = pytest.mark.parametrize("prior", PRIORS)
shapes = pytest.mark.parametrize(
    "options",
    [{}, {"free": True, "mean": True}, {"weighted": True, "free": True}],
    ids=["plain", "free-mean", "weighted-free"],
)


def dense(found, case):
    """Return all coefficients."""
    theta = np.zeros(case.Phi.shape[1])
    theta[found.indices] = found.coef
    return theta


def values_at(found, case):
    """Return f, by the formula."""
    f = case.mean + case.Phi @ dense(found, case)
    return f if case.H is None else f + case.H @ found.beta


@each_noise
@each_prior
@shapes
@pytest.mark.parametrize("lam", [2.0, 0.3])
def test_conditions_of_an_optimum(name, prior, options, lam):
    case = Case(name, **options)
    found = solve(case.problem(), prior, lam, tol=1e-8)
    theta, f, u = dense(found, case), values_at(found, case), found.pull
    w = np.ones(len(f)) if case.weights is None else case.weights
    assert found.status == "certified"
    np.testing.assert_allclose(found.latent, f, rtol=1e-10, atol=1e-10)
    objective = np.sum(w * losses(name, case.y, f)) + penalty(case, prior, lam, theta)
    assert found.objective == pytest.approx(objective, rel=1e-10)
    # pulls are those of the loss at f, and between its sides at a kink
    near = 1e-4
    low, high = pull_bounds(name, case.y, f, near)
    assert np.all((u >= w * low - 1e-3) & (u <= w * high + 1e-3))
    slopes, size = case.Phi.T @ u, np.abs(case.Phi.T) @ np.abs(u)
    if prior == WeightDecay:
        wanted = 2 * lam**2 / case.unit * theta
        np.testing.assert_allclose(slopes, wanted, atol=2e-4 * np.max(size))
    else:
        rate = 0 if prior == Laplacian else np.abs(theta) * lam / case.unit
        wanted = lam * np.exp(-rate) * np.ones(theta.shape)
        on = theta != 0
        np.testing.assert_allclose(slopes[on], (wanted * np.sign(theta))[on], atol=2e-4 * lam)
        assert np.all(np.abs(slopes[~on]) <= lam * (1 + 1e-4))
        np.testing.assert_allclose(found.penalties, wanted[found.indices], rtol=1e-9)
    if case.H is not None:
        assert np.all(np.abs(case.H.T @ u) <= 1e-9 * (np.abs(case.H.T) @ np.abs(u)))


@each_noise
@pytest.mark.parametrize("prior", [Laplacian, WeightDecay])
@shapes
@pytest.mark.parametrize("lam", [3.0, 0.2])
def test_objective_of_a_convex_solver(name, prior, options, lam):
    case = Case(name, **options)
    found = solve(case.problem(), prior, lam, tol=1e-8)
    best = convex_optimum(case, lam, prior)
    assert found.objective == pytest.approx(best, rel=1e-6)
    assert found.dual <= best * (1 + 1e-7)
    assert found.objective - found.dual <= 1e-8 * found.objective


@each_noise
@each_prior
@pytest.mark.parametrize("centres", [5, None])
def test_few_columns_and_many(name, prior, centres):
    # fewer columns than rows, and more: weight decay works over either
    case = Case(name, centres=centres, free=True)
    found = solve(case.problem(), prior, 0.5)
    assert found.status == "certified"
    if prior != FeatureSelection:
        assert found.objective == pytest.approx(convex_optimum(case, 0.5, prior), rel=1e-6)


def test_weight_decay_is_ridge_regression():
    case = Case("gaussian", weighted=True, free=True, mean=True)
    lam, unit = 0.4, case.unit
    found = solve(case.problem(), WeightDecay, lam)
    A = np.c_[case.Phi, case.H]
    decay = np.r_[np.full(case.Phi.shape[1], 2 * lam**2 / unit), 0, 0]
    W = np.diag(case.weights)
    x = np.linalg.solve(A.T @ W @ A + np.diag(decay), A.T @ W @ (case.y - case.mean))
    np.testing.assert_allclose(found.latent, case.mean + A @ x, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(dense(found, case), x[:-2], atol=1e-7)
    np.testing.assert_allclose(found.beta, x[-2:], rtol=1e-7)


@pytest.mark.parametrize("name", ["huber", "logistic", "quadratic_soft_margin"])
def test_weight_decay_against_a_descent(name):
    case = Case(name, n=25, free=True)

    def objective(x):
        theta = x[:-2]
        f = case.Phi @ theta + case.H @ x[-2:]
        return np.sum(losses(name, case.y, f)) + penalty(case, WeightDecay, 0.7, theta)

    x0 = np.zeros(case.Phi.shape[1] + 2)
    best = minimize(objective, x0, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000})
    found = solve(case.problem(), WeightDecay, 0.7)
    assert found.objective == pytest.approx(best.fun, rel=1e-7)


@each_noise
def test_feature_selection_never_rises(name):
    case = Case(name, free=True)
    problem, seen = case.problem(), []
    first = solve(problem, Laplacian, 0.5)
    found = solve(problem, FeatureSelection, 0.5, report=seen.append)
    values = [one.objective for one in seen]
    begin = np.sum(losses(name, case.y, first.latent)) + penalty(
        case, FeatureSelection, 0.5, dense(first, case)
    )
    assert values[0] <= begin * (1 + 1e-12)
    assert np.all(np.diff(values) <= 1e-12 * begin)
    assert found.objective == values[-1] < begin
    assert found.status == "certified"
    # the start decides, and a stationary point is its own successor
    again = solve(problem, FeatureSelection, 0.5, start=found)
    assert again.objective == pytest.approx(found.objective, rel=1e-6)
    assert again.objective <= found.objective * (1 + 1e-12)


@each_noise
@shapes
def test_zero_above_the_largest_penalty_alone(name, options):
    case = Case(name, **options)
    problem = case.problem()
    largest = largest_penalty(problem)
    above = solve(problem, lam=largest * (1 + 1e-9), tol=1e-10)
    assert above.coef.size == 0 and above.status == "certified"
    below = solve(problem, lam=largest * 0.998, tol=1e-10)
    assert below.coef.size > 0
    # what is left without columns
    null = convex_optimum(case, 1e4)
    assert above.objective == pytest.approx(null, rel=1e-6)


def test_largest_penalty_with_many_rows_at_the_kink():
    # a third of the targets are the median, and their pulls are whatever suits
    rng = np.random.default_rng(3)
    y = rng.integers(-1, 2, 60).astype(float)
    Phi = rng.normal(size=(60, 40))
    problem = ExpansionProblem.of(ArrayColumns(Phi), Laplace(1.0), y, H=np.ones((60, 1)))
    largest = largest_penalty(problem)
    assert solve(problem, lam=largest * (1 + 1e-6), tol=1e-12).coef.size == 0
    null = solve(problem, lam=1e6).objective
    below = solve(problem, lam=largest * 0.99, tol=1e-12)
    assert below.coef.size > 0 and below.objective < null * (1 - 1e-6)


def test_largest_penalty_of_targets_that_are_the_mean():
    problem = ExpansionProblem.of(ArrayColumns(np.ones((3, 2))), Laplace(1.0), np.zeros(3))
    assert largest_penalty(problem) == 0.0
    assert solve(problem, lam=1.0).objective == 0.0


@each_noise
@given(seed=st.integers(0, 10_000), lam=st.floats(0.05, 5.0), free=st.booleans())
@settings(max_examples=12, deadline=None)
def test_weak_duality_of_any_pulls(name, seed, lam, free):
    case = Case(name, n=12, seed=seed, free=free, mean=True, weighted=True)
    problem, rng = case.problem(), np.random.default_rng(seed)
    u = problem.balanced(rng.normal(size=12) * rng.choice([0.1, 1.0, 10.0]))
    u *= min(1.0, lam / max(np.max(np.abs(case.Phi.T @ u)), 1e-300))
    theta = rng.normal(size=case.Phi.shape[1]) * rng.choice([0.0, 0.1, 1.0])
    f = case.mean + case.Phi @ theta
    f = f if case.H is None else f + case.H @ rng.normal(size=2)
    F = np.sum(case.weights * losses(name, case.y, f)) + lam * np.sum(np.abs(theta))
    assert problem.dual_value(u) <= F + 1e-9 * (1 + F)
    assert np.isfinite(problem.dual_value(u))
    if free:
        assert np.all(np.abs(case.H.T @ u) <= 1e-10 * (1 + np.abs(case.H.T) @ np.abs(u)))


@each_noise
def test_generated_columns_do_as_all_of_them(name):
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = np.sin(X[:, 0]) + 0.1
    y = np.sign(y) if Case(name, n=3).name in ("logistic", *LINEAR[2:]) else y
    y = np.sign(y) if name == "quadratic_soft_margin" else y
    columns = KernelColumns(RBF(0.7), X)
    problem = ExpansionProblem.of(columns, NOISES[name], y, H=np.ones((300, 1)))
    found = solve(problem, lam=0.5, tol=1e-9)
    assert found.n_columns < 300
    everything = found._replace(indices=np.arange(300), coef=np.zeros(300))
    whole = solve(problem, lam=0.5, tol=1e-9, start=everything)
    assert whole.n_columns == 300
    assert found.objective == pytest.approx(whole.objective, rel=1e-9)


@each_noise
@each_prior
def test_weights_are_repetitions(name, prior):
    case = Case(name, n=30, weighted=True, free=True)
    rows = np.repeat(np.arange(30), case.weights.astype(int))
    found = solve(case.problem(), prior, 0.5, tol=1e-8)
    repeated = ExpansionProblem.of(
        ArrayColumns(case.Phi[rows]), NOISES[name], case.y[rows], H=case.H[rows]
    )
    other = solve(repeated, prior, 0.5, tol=1e-8)
    assert found.objective == pytest.approx(other.objective, rel=1e-6)


@each_noise
@each_prior
def test_the_same_again(name, prior):
    one, other = (solve(Case(name, free=True).problem(), prior, 0.3) for _ in range(2))
    assert one.objective == other.objective
    np.testing.assert_array_equal(one.coef, other.coef)


@each_noise
def test_a_path_is_its_solutions(name):
    problem = Case(name, free=True).problem()
    lams = largest_penalty(problem) * np.array([1.1, 0.5, 0.1, 0.02])
    for prior in PRIORS:
        for lam, found in zip(lams, path(problem, lams, prior=prior), strict=True):
            assert found.status == "certified"
            if prior != FeatureSelection:
                assert found.objective == pytest.approx(
                    solve(problem, prior, lam).objective, rel=2e-6
                )


@pytest.mark.parametrize("name", LINEAR)
def test_without_highspy(name, monkeypatch):
    case = Case(name, free=True, weighted=True)
    here = solve(case.problem(), lam=0.4)
    monkeypatch.setattr(_l1_simplex, "_highspy", lambda: None)
    there = solve(case.problem(), lam=0.4)
    assert there.status == "certified"
    assert there.objective == pytest.approx(here.objective, rel=1e-9)
    assert path(case.problem(), [1.0, 0.4])[1].objective == pytest.approx(here.objective, rel=1e-6)


@pytest.mark.parametrize("of_y", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("of_k", [1e-8, 1.0, 1e8])
@each_prior
@pytest.mark.parametrize("name", ["gaussian", "laplace", "insensitive", "huber"])
def test_units_of_targets_and_columns(name, prior, of_k, of_y):
    case = Case(name, free=True)
    noise = {
        "gaussian": NOISES["gaussian"],
        "laplace": Laplace(0.5 * of_y),
        "insensitive": EpsilonInsensitive(0.15 * of_y, 0.5 * of_y),
        "huber": Huber(0.5 * of_y, 0.6),
    }[name]
    if name == "gaussian":
        noise = type(noise)(0.2 * of_y**2)
    square = of_y**2 if name in ("gaussian", "huber") else of_y
    problem = ExpansionProblem.of(ArrayColumns(case.Phi * of_k), noise, case.y * of_y, H=case.H)
    found = solve(problem, prior, 0.5 * square / of_y * of_k)
    assert found.status == "certified" and found.gap <= 1e-6
    plain = solve(case.problem(), prior, 0.5)
    rel = 2e-2 if prior == FeatureSelection else 2e-6  # of many stationary points, one
    assert found.objective / square == pytest.approx(plain.objective, rel=rel)


@pytest.mark.parametrize("name", ["soft_margin", "quadratic_soft_margin", "logistic"])
@pytest.mark.parametrize("of_k", [1e-8, 1e8])
@each_prior
def test_units_of_columns_for_labels(name, prior, of_k):
    case = Case(name, free=True)
    problem = ExpansionProblem.of(ArrayColumns(case.Phi * of_k), NOISES[name], case.y, H=case.H)
    found = solve(problem, prior, 0.5 * of_k)
    assert found.status == "certified" and found.gap <= 1e-6


@each_noise
@each_prior
@given(seed=st.integers(0, 100_000))
@settings(max_examples=6, deadline=None)
def test_any_shape_and_size(name, prior, seed):
    # one row, one column, columns that are 0, constant, repeated, large or small, H that repeats
    rng = np.random.default_rng(seed)
    n, M, r = rng.integers(1, 12), rng.integers(1, 14), rng.integers(0, 2)
    Phi = rng.normal(size=(n, M)) * 10.0 ** rng.integers(-4, 5)
    Phi[:, rng.integers(M)] = Phi[:, 0]
    Phi[:, rng.integers(M)] = rng.integers(0, 2)
    y = np.where(rng.normal(size=n) > 0, 1.0, -1.0)
    y = y if name in CLASSES else np.round(rng.normal(size=n), 1)
    # of one class alone a constant would tell all there is, and have no optimum
    H = np.ones((n, 2 * r)) if r and len(set(y)) > 1 else None
    problem = ExpansionProblem.of(ArrayColumns(Phi), NOISES[name], y, H=H)
    largest = largest_penalty(problem)
    largest = largest if largest > 1e-9 * np.max(np.abs(Phi)) else 1.0  # or that is rounding
    found = solve(problem, prior, largest * 10.0 ** rng.uniform(-1, 0.5))
    assert found.status == "certified"


def test_any_kernel_will_do():
    X = np.random.default_rng(0).normal(size=(60, 2))
    problem = ExpansionProblem.of(KernelColumns(Tanh(2.0, -0.5), X), Laplace(0.3), np.sin(X[:, 0]))
    assert solve(problem, lam=0.5).status == "certified"


def test_rows_of_a_problem_are_a_problem():
    case = Case("laplace", free=True, weighted=True)
    kept = np.arange(0, 50, 2)
    part = case.problem().rows(kept)
    other = ExpansionProblem.of(
        ArrayColumns(case.Phi[kept]),
        NOISES["laplace"],
        case.y[kept],
        H=case.H[kept],
        weights=case.weights[kept],
    )
    assert solve(part, lam=0.3).objective == solve(other, lam=0.3).objective


@pytest.mark.parametrize("prior", [Laplacian, FeatureSelection])
def test_an_interruption_leaves_the_best_so_far(prior):
    case, calls = Case("laplace", n=200), []

    def stop(found):
        calls.append(found)
        raise KeyboardInterrupt

    if prior == Laplacian:
        found = solve(case.problem(), prior, 0.05, report=stop)
        assert found.status == "interrupted" and len(calls) == 1
        assert found.objective >= found.dual
        ended = path(case.problem(), [0.5, 0.05], report=stop)
        assert [one.status for one in ended] == ["interrupted"]
    else:
        found = solve(case.problem(), prior, 0.05, report=stop)
        assert found.status == "interrupted"
        assert found.objective == calls[0].objective


def test_too_few_columns():
    found = solve(Case("laplace", n=200).problem(), lam=0.01, max_active=5)
    assert found.status == "stopped" and found.n_columns <= 5
    assert found.dual <= found.objective


@each_noise
@pytest.mark.parametrize("with_highspy", [True, False])
def test_columns_that_are_not_active_may_go(name, with_highspy, monkeypatch):
    if not with_highspy:
        monkeypatch.setattr(_l1_simplex, "_highspy", lambda: None)
    problem = Case(name, n=150, free=True).problem()
    best = solve(problem, lam=0.5)
    room = 3 * len(best.indices)
    assert best.n_columns > room
    found = solve(problem, lam=0.5, max_active=room)
    assert found.status == "certified"
    assert found.objective == pytest.approx(best.objective, rel=2e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prior": "horseshoe"}, "prior must be one of .* got 'horseshoe'"),
        ({"lam": 0.0}, "lam must be positive and finite, got 0.0"),
        ({"lam": np.nan}, "lam must be positive"),
        ({"tol": -1.0}, "tol must be positive"),
        ({"max_active": 0}, "max_active must be a whole number"),
        ({"max_active": 1.5}, "max_active must be a whole number"),
        ({"max_active": 3, "prior": WeightDecay}, "weight decay forms all 52 columns"),
    ],
)
def test_options_that_are_none(options, words):
    with pytest.raises(ValueError, match=words):
        solve(Case("laplace").problem(), **options)


def test_paths_that_are_none():
    problem = Case("laplace").problem()
    with pytest.raises(ValueError, match="must descend"):
        path(problem, [1.0, 2.0])
    with pytest.raises(ValueError, match="at least one penalty"):
        path(problem, [])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"y": np.zeros(3)}, "y must have shape \\(4,\\), got \\(3,\\)"),
        ({"mean": np.zeros(3)}, "mean must have shape"),
        ({"mean": np.full(4, np.nan)}, "mean must be finite"),
        ({"H": np.ones(4)}, "H must have shape"),
        ({"H": np.full((4, 1), np.inf)}, "H must be finite"),
        ({"weights": -np.ones(4)}, "must not be negative"),
        ({"weights": np.zeros(4)}, "all weights are 0"),
    ],
)
def test_problems_that_are_none(options, words):
    given = {"y": np.zeros(4), **options}
    with pytest.raises(ValueError, match=words):
        ExpansionProblem.of(ArrayColumns(np.eye(4)), Laplace(1.0), **given)


def test_no_rows():
    with pytest.raises(ValueError, match="at least one row"):
        ExpansionProblem.of(ArrayColumns(np.empty((0, 2))), Laplace(1.0), np.empty(0))


def test_a_path_of_limited_columns_is_exact_as_far_as_they_suffice():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (60, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    problem = ExpansionProblem.of(ArrayColumns(RBF(0.5)(X)), Gaussian(1.0), y)
    lams = largest_penalty(problem) * 10.0 ** (-np.arange(16) / 4)
    whole = path(problem, lams)
    few = path(problem, lams, max_active=9)
    sizes = [len(one.indices) for one in whole]
    assert 2 < sum(size <= 7 for size in sizes) and max(sizes) > 9
    for one, same, size in zip(few, whole, sizes, strict=True):
        assert len(one.indices) <= 9
        if size <= 7:
            assert one.status == "certified"
            np.testing.assert_allclose(one.latent, same.latent, atol=1e-4)


def test_a_programme_without_a_solution_says_so():
    highspy = pytest.importorskip("highspy")
    one = np.ones(1)
    for solver in (
        _l1_simplex._Highs(highspy, one, one, 2.0 * one),
        _l1_simplex._Anew(one, one, 2.0 * one),
    ):
        solver.add(np.ones((1, 1)))
        with pytest.raises(ArithmeticError, match=r"(?i)not solved: .*infeasible"):
            solver.solve(0.5 * one)


def test_an_offset_of_the_targets_changes_nothing():
    case, far = Case("gaussian", free=True), 1e7
    problem, moved = case.problem(), Case("gaussian", free=True)
    moved.y = case.y + far
    there = moved.problem()
    for prior in PRIORS:
        near, found = solve(problem, prior, 0.5), solve(there, prior, 0.5)
        assert found.status == near.status == "certified"
        assert found.objective == pytest.approx(near.objective, rel=1e-7)
        assert abs(found.objective - found.dual) <= 1e-9 * found.objective
        np.testing.assert_allclose(found.latent - far, near.latent, atol=1e-7)
        np.testing.assert_allclose(found.beta - [far, 0], near.beta, atol=1e-6)


@pytest.mark.parametrize("name", ["gaussian", "laplace", "insensitive", "huber"])
def test_a_certificate_is_not_for_too_few_columns(name):
    case = Case(name, free=True)
    case.y = case.y + 1e7
    found = solve(case.problem(), lam=1e-3, max_active=2)
    assert found.status == "stopped"
    assert found.gap > 1e-3


@each_noise
@pytest.mark.parametrize("prior", PRIORS)
def test_columns_that_are_nearly_constant_beside_a_free_constant(name, prior):
    case = Case(name)
    rows = case.x[:, None]
    H = np.ones((len(rows), 1))
    problem = ExpansionProblem.of(KernelColumns(RBF(1e4), rows), NOISES[name], case.y, H=H)
    found = solve(problem, prior, 0.1 * largest_penalty(problem))
    assert found.status == "certified"


def test_targets_that_free_functions_pass_through():
    x = np.linspace(-1, 1, 20)
    H = np.c_[np.ones(20), x]
    Phi = np.exp(-((x[:, None] - x) ** 2))
    problem = ExpansionProblem.of(ArrayColumns(Phi), NOISES["gaussian"], 1e6 + 3 * x, H=H)
    for prior in PRIORS:
        found = solve(problem, prior, 0.1)
        assert found.status == "certified"
        np.testing.assert_allclose(found.beta, [1e6, 3], rtol=1e-9)
        assert not len(found.indices)


def test_one_outlier_does_not_cost_the_digits_of_the_others():
    case, moved = Case("laplace", free=True), Case("laplace", free=True)
    at = int(np.argmax(case.y))
    case.y[at], moved.y[at] = 1e3, 1e5
    found, far = solve(case.problem(), lam=0.5), solve(moved.problem(), lam=0.5)
    others = np.delete(np.arange(len(case.y)), at)
    np.testing.assert_allclose(far.latent[others], found.latent[others], atol=1e-9)


def test_free_functions_that_depend_on_each_other():
    case, twice = Case("huber", free=True), Case("huber", free=True)
    twice.H = np.c_[twice.H, twice.H @ [1e3, 2.0]]
    for prior in PRIORS:
        found, other = solve(case.problem(), prior, 0.5), solve(twice.problem(), prior, 0.5)
        assert other.status == "certified"
        assert other.objective == pytest.approx(found.objective, rel=1e-9)
        np.testing.assert_allclose(values_at(other, twice), other.latent, atol=1e-9)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("one_class", [False, True])
def test_labels_that_free_functions_tell_apart(prior, one_class):
    case = Case("logistic", n=80, free=True)
    case.y = np.ones(80) if one_class else np.where(case.x > 0.01, 1.0, -1.0)
    found = solve(case.problem(), prior, 0.1)
    assert found.status == "certified"
    assert found.objective <= 1e-9 * 80


def test_a_start_of_another_problem():
    case, other = Case("gaussian", free=True), Case("gaussian", free=True)
    other.Phi = other.Phi[:, ::-1]  # the same values of f, by other coefficients
    start = solve(other.problem(), FeatureSelection, 0.5)
    found = solve(case.problem(), FeatureSelection, 0.5, start=start)
    f = values_at(found, case)
    np.testing.assert_allclose(found.latent, f, atol=1e-9)
    objective = np.sum(losses("gaussian", case.y, f)) + penalty(
        case, FeatureSelection, 0.5, dense(found, case)
    )
    assert found.objective == pytest.approx(objective, rel=1e-9)
    with pytest.raises(ValueError, match="start must be of"):
        solve(Case("gaussian").problem(), start=start)
    with pytest.raises(ValueError, match="functions up to number"):
        solve(case.problem(), start=start._replace(indices=np.array([9999])))


def test_a_path_whose_last_penalty_is_out_of_reach():
    case = Case("gaussian", n=80)
    rows = case.x[:, None]
    problem = ExpansionProblem.of(KernelColumns(RBF(0.6), rows), NOISES["gaussian"], case.y)
    found = path(problem, [1e-2, 1e-6, 1e-12, 1e-14])
    assert [one.status for one in found[:2]] == ["certified", "certified"]
    for one, lam in zip(found[:2], [1e-2, 1e-6], strict=True):
        assert one.objective == pytest.approx(solve(problem, lam=lam).objective, rel=1e-6)


def ridge_case(width, noise, n=60, free=False):
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, n)
    y = np.sin(2 * x) + 0.1 * rng.standard_normal(n)
    Phi = np.exp(-((x[:, None] - x) ** 2) / (2 * width**2))
    H = np.ones((n, 1)) if free else None
    return Phi, ExpansionProblem.of(ArrayColumns(Phi), NOISES[noise], y, H=H)


@pytest.mark.parametrize("noise", ["gaussian", "huber"])
@pytest.mark.parametrize("width, free", [(3e3, True), (3e3, False), (3.0, False)])
@pytest.mark.parametrize("lam", [1e-5, 1e-8, 1e-20])
def test_weight_decay_is_of_its_coefficients(noise, width, free, lam):
    Phi, problem = ridge_case(width, noise, free=free)
    found = solve(problem, WeightDecay, lam)
    f = Phi[:, found.indices] @ found.coef + (found.beta[0] if free else 0.0)
    size = np.abs(Phi[:, found.indices]) @ np.abs(found.coef) + 1.0
    assert np.all(np.abs(found.latent - f) <= 1e-13 * size)
    decayed = lam**2 / problem.loss.unit * found.coef @ found.coef
    assert found.objective == pytest.approx(problem.value(found.latent) + decayed, rel=1e-6)
    assert (found.status == "certified") == (found.gap <= 1e-6)
    assert found.status == "certified" or lam < 1e-5


@pytest.mark.parametrize("lam", [1e-200, 1e-120, 1e120, 1e200])
def test_weight_decay_out_of_range(lam):
    with pytest.raises(ValueError, match=r"lam = .* weight decay"):
        solve(Case("gaussian").problem(), WeightDecay, lam)
