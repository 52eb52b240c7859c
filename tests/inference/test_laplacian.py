"""Solutions of kernel expansions for every noise and prior: optimality, and independent optima."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from mercer.inference._columns import ArrayColumns, KernelColumns
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._l1_generation import Generation
from mercer.inference._l1_simplex import UnsolvedError
from mercer.inference.laplacian import (
    PRIORS,
    blas_of,
    largest_penalty,
    path,
    solve,
)
from mercer.kernels import RBF, Tanh
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace
from mercer.priors import FeatureSelection, Laplacian, WeightDecay

from .expansion_cases import (
    CLASSES,
    LINEAR,
    NOISES,
    Case,
    convex_optimum,
    dense,
    losses,
    penalty,
    pull_bounds,
    values_at,
)

each_noise = pytest.mark.parametrize("name", NOISES)
each_prior = pytest.mark.parametrize("prior", PRIORS)
shapes = pytest.mark.parametrize(
    "options",
    [{}, {"free": True, "mean": True}, {"weighted": True, "free": True}],
    ids=["plain", "free-mean", "weighted-free"],
)


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


def any_shape_and_size(name, prior, seed):
    """Solve for one row, one column, columns that are 0, constant, repeated, large or small."""
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
    return solve(problem, prior, largest * 10.0 ** rng.uniform(-1, 0.5))


@each_noise
@each_prior
@given(seed=st.integers(0, 100_000))
@settings(max_examples=6, deadline=None)
def test_any_shape_and_size(name, prior, seed):
    assert any_shape_and_size(name, prior, seed).status == "certified"


# Functions of 1e-4 beside one of 1, which the method of multipliers alone crawls on; and targets
# that a constant holds in the zone, where F is what rounding leaves of 0.
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *(("insensitive", seed) for seed in (190, 729, 1047, 1145, 1869, 2319)),
        *(("soft_margin", seed) for seed in (44, 176, 282, 290, 1998, 3780)),
        *(("laplace", seed) for seed in (3780, 4993)),
    ],
)
def test_sizes_that_differ_by_much_under_weight_decay(name, seed):
    found = any_shape_and_size(name, WeightDecay, seed)
    assert found.status == "certified"
    assert -1e-15 <= found.objective - found.dual <= max(1e-6 * found.objective, 1e-15)


def test_a_heavy_row_within_the_zone_proves_nothing_of_the_others():
    # Its loss is 0, without any rounding, however large its weight and its target are.
    y, weights = 1e6 + np.array([0.0, 1.0, -1.0]), np.array([1e5, 1e-4, 1e-4])
    problem = ExpansionProblem.of(
        ArrayColumns(np.eye(3)[:, 1:]), NOISES["insensitive"], y, H=np.ones((3, 1)), weights=weights
    )
    found, best = solve(problem, lam=1e-6, max_active=1), solve(problem, lam=1e-6)
    assert abs(found.latent[0] - y[0]) < 0.16 and best.status == "certified"
    assert found.objective > 10 * best.objective and found.status == "stopped"


@each_prior
def test_a_fit_of_heavy_rows_is_not_one_of_the_others(prior):
    y, weights = 1e6 + np.array([0.0, 1.0, -1.0]), np.array([1e6, 1e-3, 1e-3])
    columns = ArrayColumns(np.zeros((3, 1)))
    problem = ExpansionProblem.of(columns, Laplace(1.0), y, H=np.ones((3, 1)), weights=weights)
    found = solve(problem, prior, 1.0)
    assert found.status == "certified" and found.objective == pytest.approx(2e-3, rel=1e-6)


def test_a_heavy_row_far_from_0_is_no_measure_of_what_a_line_leaves_of_the_others():
    x, weights = np.linspace(-2.0, 2.0, 40), np.ones(40)
    weights[7], columns = 1e12, KernelColumns(RBF(0.5), x[:, None])
    y, H = 1e9 + 1e-2 * np.sin(3.0 * x), np.column_stack([np.ones(40), x])
    problem = ExpansionProblem.of(columns, Gaussian(1e-6), y, H=H, weights=weights)
    found = solve(problem, lam=1e-5)
    assert found.status == "certified" and len(found.indices)
    assert found.objective == pytest.approx(6.232e-7, rel=1e-3)  # as for weights to 1e10


@pytest.mark.parametrize(
    ("name", "prior", "weight"),
    [
        ("soft_margin", Laplacian, 1e12),
        ("logistic", Laplacian, 1e12),
        ("logistic", FeatureSelection, 1e8),
    ],
)
def test_a_heavy_label_proves_nothing_of_the_others(name, prior, weight):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(30, 1)), np.ones(30)
    y = np.where(np.sin(2.0 * X[:, 0]) + 0.5 * rng.normal(size=30) > 0, 1.0, -1.0)
    weights[0], H = weight, np.ones((30, 1))
    problem = ExpansionProblem.of(KernelColumns(RBF(1.0), X), NOISES[name], y, H=H, weights=weights)
    found = solve(problem, prior, 0.1)
    assert found.status == ("certified" if found.gap <= 1e-6 else "stopped")


@pytest.mark.parametrize("weight", [1e6, 1e9])
@pytest.mark.parametrize("name", CLASSES)
@each_prior
def test_heavy_labels_prove_nothing_of_a_few_others(name, prior, weight):
    # Most rows are heavy, so that their median weight is too; and light ones are told apart by
    # functions with a penalty, which is of the size of their loss.
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(10, 41))
        X = rng.normal(size=(n, 2))
        y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
        weights = np.where(rng.uniform(size=n) < 0.7, weight, 1.0)
        columns, H = ArrayColumns(RBF(1.0)(X)), np.ones((n, 1))
        problem = ExpansionProblem.of(columns, NOISES[name], y, H=H, weights=weights)
        for lam in (0.01, 1.0):
            found = solve(problem, prior, lam)
            assert found.status == ("certified" if found.gap <= 1e-6 else "stopped")


@pytest.mark.parametrize("name", CLASSES)
@each_prior
def test_labels_that_a_line_separates_may_have_unlike_weights(name, prior):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y, H = np.where(X[:, 0] > 0.05, 1.0, -1.0), np.column_stack([np.ones(30), X])
    columns = ArrayColumns(RBF(1.0)(X))
    for weights in (np.r_[1e-6, np.ones(29)], rng.uniform(0.01, 1.0, size=30)):
        problem = ExpansionProblem.of(columns, NOISES[name], y, H=H, weights=weights)
        assert solve(problem, prior, 0.01).status == "certified"


def test_a_heavy_number_proves_nothing_of_the_others():
    x, weights = np.linspace(-2.0, 2.0, 30), np.ones(30)
    weights[4], columns = 1e12, KernelColumns(RBF(0.5), x[:, None])
    y = 1e3 + np.sin(3.0 * x) + 0.1 * np.random.default_rng(0).normal(size=30)
    problem = ExpansionProblem.of(columns, Laplace(1.0), y, H=np.ones((30, 1)), weights=weights)
    found = solve(problem, WeightDecay, 0.01)
    assert found.status == ("certified" if found.gap <= 1e-6 else "stopped")


@each_prior
@pytest.mark.parametrize("noise", [Gaussian(1.0), Laplace(1.0), Huber(scale=1.0)], ids=repr)
@pytest.mark.parametrize("n", [5, 11])
def test_a_line_through_all_targets_is_certified(noise, prior, n):
    x = np.linspace(-1.0, 1.0, n)  # with a target of 0 in the middle, a difference of others
    columns, H = KernelColumns(RBF(0.3), x[:, None]), np.column_stack([np.ones(n), x])
    for y in (2.0 * x, 0.1 * x, (x - x.mean()) / x.std()):
        found = solve(ExpansionProblem.of(columns, noise, y, H=H), prior, 0.1)
        assert found.status == "certified"
        assert found.objective < 1e-15


@pytest.mark.parametrize("noise", [Gaussian(1.0), Laplace(1.0)], ids=repr)
def test_large_targets_that_a_function_of_theirs_fits_say_nothing_of_the_others(noise):
    x = np.arange(13.0)
    y, H = np.where(x < 8, 1e16, x - 7.0), np.asarray(x < 8, dtype=float)[:, None]
    columns = KernelColumns(RBF(0.5), x[:, None])
    found = solve(ExpansionProblem.of(columns, noise, y, H=H), lam=0.1)
    assert found.objective > 1.0


@pytest.mark.parametrize("seed", range(4))
def test_a_line_under_noise_with_kinks_leaves_nothing_to_the_functions(seed):
    x = np.random.default_rng(seed).uniform(size=100)
    columns, H = KernelColumns(RBF(0.2), x[:, None]), np.column_stack([np.ones(100), x])
    problem = ExpansionProblem.of(columns, Laplace(1.0), 0.3 + 1.7 * x, H=H)
    found = solve(problem, lam=1e-2)
    assert found.status == "certified" and not len(found.indices)


def test_what_a_cubic_leaves_is_told_from_rounding():
    t = np.arange(2000.0, 2021.0)
    y = ((t - 2010.0) / 10.0) ** 3 + 1e-7 * np.sin(3.0 * t)
    H = t[:, None] ** np.arange(4)
    columns = KernelColumns(RBF(1.0), t[:, None])
    found = solve(ExpansionProblem.of(columns, Gaussian(1.0), y, H=H), lam=1e-9)
    assert len(found.indices)


@pytest.mark.parametrize("prior", [Laplacian, WeightDecay])
def test_labels_that_a_line_separates_but_for_one_value(prior):
    # What the line leaves is the coin toss of eight rows: 8 ln 2.
    x = np.repeat(np.arange(5.0), 8)
    y = np.where(x > 2, 1.0, -1.0)
    y[16:20] = 1.0
    H = np.column_stack([np.ones(40), x])
    problem = ExpansionProblem.of(KernelColumns(RBF(1.0), x[:, None]), NOISES["logistic"], y, H=H)
    found = solve(problem, prior, 1.0)
    assert found.status == "certified"
    assert found.dual == pytest.approx(8.0 * np.log(2.0), rel=1e-6)


def blas_threads():
    return max(c["num_threads"] for c in threadpool_info() if c["user_api"] == "blas")


@each_prior
def test_small_matrices_have_one_thread_of_the_blas(prior, two_threads):
    seen = []
    problem = Case("laplace", n=60).problem()
    solve(problem, prior, 0.4, report=lambda _: seen.append(blas_threads()))
    assert set(seen) == {1}


@pytest.mark.parametrize(("prior", "n", "threads"), [(Laplacian, 800, 1), (WeightDecay, 800, 2)])
def test_matrices_of_few_columns_are_small(prior, n, threads, two_threads):
    problem = ExpansionProblem.of(ArrayColumns(np.ones((n, 1))), Laplace(1.0), np.zeros(n))
    with blas_of(problem, prior):
        assert blas_threads() == threads


def test_any_kernel_will_do():
    X = np.random.default_rng(0).normal(size=(60, 2))
    problem = ExpansionProblem.of(KernelColumns(Tanh(2.0, -0.5), X), Laplace(0.3), np.sin(X[:, 0]))
    assert solve(problem, lam=0.5).status == "certified"


@each_prior
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
        assert found.status == "interrupted" and len(calls) == 1
        assert found.objective == calls[0].objective


@pytest.mark.parametrize("prior", [Laplacian, FeatureSelection])
def test_a_programme_that_cannot_be_solved(prior, monkeypatch):
    def failing(self, lam):
        raise UnsolvedError("the linear programme was not solved: Unknown")

    monkeypatch.setattr(Generation, "solve", failing)
    words = r"was not solved: Unknown, with penalties down to 0\.5\. .* A smaller prior_scale"
    with pytest.raises(ValueError, match=words):
        solve(Case("laplace").problem(), prior, 0.5)
    with pytest.raises(ValueError, match=words):
        path(Case("laplace").problem(), [1.0, 0.5], prior=prior)


def test_selection_goes_on_from_the_last_solution_where_a_programme_fails(monkeypatch):
    case, lams = Case("laplace", n=60), [2.0, 1.0]
    solve_whole = Generation.solve

    def failing(self, lam):
        if np.ndim(lam) == 0 and lam < 2.0:  # of the Laplacian prior, from which it would begin
            raise UnsolvedError("the linear programme was not solved: Unknown")
        return solve_whole(self, lam)

    monkeypatch.setattr(Generation, "solve", failing)
    first = solve(case.problem(), FeatureSelection, 2.0)
    wanted = solve(case.problem(), FeatureSelection, 1.0, start=first)
    _, found = path(case.problem(), lams, prior=FeatureSelection)
    assert found.status == wanted.status == "certified"
    assert found.objective == pytest.approx(wanted.objective, rel=1e-6)


def test_too_few_columns():
    found = solve(Case("laplace", n=200).problem(), lam=0.01, max_active=5)
    assert found.status == "stopped" and found.n_columns <= 5
    assert found.dual <= found.objective


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


@pytest.mark.parametrize("name", ["gaussian", "laplace", "insensitive", "huber"])
def test_a_certificate_is_not_for_too_few_columns(name):
    case = Case(name, free=True)
    case.y = case.y + 1e7
    found = solve(case.problem(), lam=1e-3, max_active=2)
    assert found.status == "stopped"
    assert found.gap > 1e-3


def test_a_path_whose_last_penalty_is_out_of_reach():
    case = Case("gaussian", n=80)
    rows = case.x[:, None]
    problem = ExpansionProblem.of(KernelColumns(RBF(0.6), rows), NOISES["gaussian"], case.y)
    found = path(problem, [1e-2, 1e-6, 1e-12, 1e-14])
    assert [one.status for one in found[:2]] == ["certified", "certified"]
    for one, lam in zip(found[:2], [1e-2, 1e-6], strict=True):
        assert one.objective == pytest.approx(solve(problem, lam=lam).objective, rel=1e-6)
