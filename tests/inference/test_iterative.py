"""The iterative engine against dense formulas: exact where it says so, else within its errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import means
from mercer.inference import _iterative_run, iterative
from mercer.inference._products import StoredProducts
from mercer.inference.iterative import (
    IterativeProblem,
    Settings,
    evidence,
    posterior,
    solve,
    variance_bounds,
)
from mercer.kernels import RBF

from . import dense, quadratic_dense

LENGTHS, VARIANCE = np.array([0.5, 0.7]), 1.4
KERNEL = VARIANCE * RBF(LENGTHS)
TIGHT = Settings(tol=1e-24)


def make(n=120, outputs=1, seed=0, given=TIGHT, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Y = np.sin(2 * X[:, :1] + np.arange(outputs)) + 0.2 * rng.normal(size=(n, outputs)) + 3.0
    return IterativeProblem(KERNEL, X, Y, rng.uniform(0.02, 0.2, n), settings=given, **options)


def covariance(p, kernel=KERNEL):
    variance, lengths = np.exp(kernel.theta[0]), np.exp(kernel.theta[1:])
    return dense.rbf(p.X, p.X, lengths, variance) + np.diag(p.noise)


def regressors(p):
    return np.hstack([np.ones((len(p.X), 1)), p.X])


def dense_value(p, kernel=KERNEL, factor=1.0):
    Q = covariance(replace(p, noise=factor * p.noise), kernel)
    if p.H is None:
        return dense.log_evidence(Q, p.Y)
    if p.integrate:
        return dense.restricted_log_evidence(Q, p.Y, p.H)
    beta = np.linalg.solve(p.H.T @ np.linalg.solve(Q, p.H), p.H.T @ np.linalg.solve(Q, p.Y))
    return dense.log_evidence(Q, p.Y - p.H @ beta)


def dense_gradient(p):
    """In the kernel's parameters and in a factor of the noise, by differences."""
    steps = 1e-5 * np.eye(KERNEL.theta.size)
    out = [
        (
            dense_value(p, KERNEL.with_theta(KERNEL.theta + e))
            - dense_value(p, KERNEL.with_theta(KERNEL.theta - e))
        )
        / 2e-5
        for e in steps
    ]
    up, down = (dense_value(p, factor=np.exp(s)) for s in (1e-5, -1e-5))
    return np.append(out, (up - down) / 2e-5)


KINDS = {
    "without a mean": {},
    "estimated": {"integrate": False},
    "integrated": {"integrate": True},
}


def of_kind(kind, p):
    return replace(p, H=regressors(p), **KINDS[kind]) if KINDS[kind] else p


# --- exact where the preconditioner is the matrix ---------------------------------------------


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_exact_where_the_preconditioner_is(kind, outputs, stored):
    p = of_kind(kind, make(outputs=outputs, given=replace(TIGHT, stored=stored)))
    solution, adjoints = evidence(p)
    assert solution.is_exact
    assert solution.std_error < 1e-12
    assert solution.status == "converged"
    assert solution.log_evidence == pytest.approx(dense_value(p), rel=1e-8)
    assert solve(p).log_evidence == solution.log_evidence
    found = np.append(adjoints.theta, adjoints.log_noise)
    np.testing.assert_allclose(found, dense_gradient(p), rtol=1e-6, atol=1e-6)
    Q = covariance(p)
    residual = p.Y
    if p.H is not None:
        beta = np.linalg.solve(p.H.T @ np.linalg.solve(Q, p.H), p.H.T @ np.linalg.solve(Q, p.Y))
        np.testing.assert_allclose(solution.beta, beta, rtol=1e-8)
        residual = p.Y - p.H @ beta
    alpha = np.linalg.solve(Q, residual)
    np.testing.assert_allclose(solution.alpha, alpha, atol=1e-9 * np.max(np.abs(alpha)))
    np.testing.assert_allclose(adjoints.mean, solution.alpha)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 40),
    st.integers(1, 2),
    st.floats(1e-3, 1e3),
    st.booleans(),
)
def test_any_rows(seed, n, d, scale, repeated):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if repeated:
        X[: n // 2] = X[0]
    Y, noise = scale * rng.normal(size=(n, 1)), scale**2 * rng.uniform(0.01, 1.0, n)
    kernel = scale**2 * RBF(0.8)
    p = IterativeProblem(kernel, X, Y, noise, settings=TIGHT)
    Q = dense.rbf(X, X, 0.8, scale**2) + np.diag(noise)
    solution, adjoints = evidence(p)
    assert solution.log_evidence == pytest.approx(dense.log_evidence(Q, Y), rel=1e-7, abs=1e-7)
    expected = np.linalg.solve(Q, Y)
    size = np.max(np.abs(expected))
    np.testing.assert_allclose(solution.alpha, expected, rtol=0, atol=1e-7 * size)
    # the kernel's variance and the noise by a common factor is a factor of Q
    common = 0.5 * float(np.sum(Y * expected)) - 0.5 * n
    assert adjoints.theta[0] + adjoints.log_noise == pytest.approx(common, rel=1e-6, abs=1e-6)


# --- estimated otherwise ----------------------------------------------------------------------

ROUGH = Settings(tol=1e-24, rank=25, n_probes=40)


@pytest.mark.parametrize("kind", KINDS)
def test_solutions_are_exact_whatever_the_rank(kind):
    p = of_kind(kind, make(outputs=2, given=ROUGH))
    solution = solve(p)
    assert not solution.is_exact
    exact = solve(replace(p, settings=TIGHT))
    size = np.max(np.abs(exact.alpha))
    np.testing.assert_allclose(solution.alpha, exact.alpha, rtol=0, atol=1e-8 * size)
    np.testing.assert_allclose(solution.beta, exact.beta, rtol=1e-8)
    np.testing.assert_allclose(solution.V @ solution.V.T, exact.V @ exact.V.T, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_estimates_are_within_their_errors(kind):
    """Over independent seeds: no bias, and the errors that are reported."""
    p = of_kind(kind, make(n=100, outputs=2, given=ROUGH))
    found = [evidence(replace(p, seed=seed)) for seed in range(30)]
    off = np.array([s.log_evidence for s, _ in found]) - dense_value(p)
    errors = np.array([s.std_error for s, _ in found])
    assert np.all(errors > 0)
    # a mean of 30 with 40 probes each, and standard errors known to a tenth
    assert abs(np.mean(off)) < 4 * np.mean(errors) / np.sqrt(30)
    assert np.sqrt(np.mean(off**2)) == pytest.approx(np.mean(errors), rel=0.5)
    gradients = np.array([np.append(a.theta, a.log_noise) for _, a in found])
    spread = np.std(gradients, axis=0) / np.sqrt(30)
    # the probes are solved to a hundredth, whose part of a trace is another of these
    slack = 1e-3 * np.abs(dense_gradient(p))
    assert np.all(np.abs(np.mean(gradients, axis=0) - dense_gradient(p)) < 4 * spread + slack)


def test_the_derivative_of_the_preconditioner_takes_most_of_the_error():
    """Beside the plain estimate z'Q^-1 dQ P^-1 z with the same pivots."""
    p = make(n=100, given=ROUGH)
    K, root = dense.rbf(p.X, p.X, LENGTHS, VARIANCE), 1.0 / np.sqrt(p.noise)
    K = root[:, None] * K * root
    found = [evidence(replace(p, seed=seed)) for seed in range(20)]
    plain = []
    for seed, (solution, _) in enumerate(found):
        C = K[:, solution.pivots]
        P = C @ np.linalg.solve(C[solution.pivots], C.T) + np.eye(100)
        z = np.linalg.cholesky(P) @ np.random.default_rng(seed).normal(size=(100, 40))
        U, W = np.linalg.solve(K + np.eye(100), z), np.linalg.solve(P, z)
        plain.append(-0.5 * np.sum(U * (K @ W)) / 40)  # in the logarithm of the variance
    spread = np.std([adjoints.theta[0] for _, adjoints in found])
    assert spread < 0.5 * np.std(plain)


def test_more_rank_and_more_probes_estimate_better():
    p = make(n=300)
    errors = [
        solve(replace(p, settings=Settings(rank=rank, n_probes=probes))).std_error
        for rank, probes in [(20, 20), (20, 320), (60, 20)]
    ]
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.6)
    assert errors[2] < 0.5 * errors[0]


def test_the_same_seed_has_the_same_bits():
    p = make(given=ROUGH)
    (one, first), (two, second) = evidence(p), evidence(p)
    np.testing.assert_array_equal(one.alpha, two.alpha)
    assert one.log_evidence == two.log_evidence
    np.testing.assert_array_equal(first.theta, second.theta)
    assert evidence(replace(p, seed=1))[0].log_evidence != one.log_evidence


def test_with_held_pivots_differences_are_near_the_gradient():
    """Both are estimates of the same: differences of the one are the other but for the probes."""
    p = make(given=replace(ROUGH, n_probes=200))
    solution, adjoints = evidence(p)
    step = 1e-3
    for i, e in enumerate(step * np.eye(KERNEL.theta.size)):
        values = [
            solve(
                replace(p, kernel=KERNEL.with_theta(KERNEL.theta + s), pivots=solution.pivots)
            ).log_evidence
            for s in (e, -e)
        ]
        slope = (values[0] - values[1]) / (2 * step)
        assert slope == pytest.approx(adjoints.theta[i], rel=0.025)


# --- the certificate --------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-1, 1e-4, 1e-8])
def test_the_gap_is_proved(tol):
    p = make(outputs=2, given=replace(ROUGH, tol=tol))
    solution = solve(p)
    assert solution.bounds.gap <= tol
    root = 1.0 / np.sqrt(p.noise)[:, None]
    K = root * dense.rbf(p.X, p.X, LENGTHS, VARIANCE) * root.T  # in units of the noise
    Y, A = root * p.Y, solution.alpha / root
    lowest = quadratic_dense.L_min(K, Y, 1.0)
    slack = 1e-10 * abs(lowest)
    assert solution.bounds.lower - slack <= lowest <= solution.bounds.upper + slack
    primal, dual = quadratic_dense.L(K, Y, A, 1.0), quadratic_dense.L_star(K, Y, A, 1.0)
    assert solution.bounds.upper == pytest.approx(primal, rel=1e-10)
    expected = quadratic_dense.gap(primal, dual, Y, 1.0)
    assert solution.bounds.gap == pytest.approx(expected, rel=1e-4, abs=1e-12)


def test_targets_of_zero_have_no_gap():
    p = make(given=ROUGH)
    solution = solve(replace(p, Y=np.zeros_like(p.Y)))
    assert solution.bounds.gap == 0.0
    assert np.all(solution.alpha == 0)
    assert solution.status == "converged"


def test_too_few_steps_are_told():
    solution = solve(make(given=replace(ROUGH, max_iter=2)))
    assert solution.status == "stopped"
    assert np.isfinite(solution.log_evidence)
    assert solution.bounds.gap > 1e-24


def residual_square(K, Y, A):
    """r'Q^-1 r of solutions A, by dense algebra in units of the noise."""
    Q = K + np.eye(len(K))
    R = Y - Q @ A
    return float(np.sum(R * np.linalg.solve(Q, R)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 2, 4, 8, 16])
def test_the_stated_error_has_what_the_solver_left_out(kind, steps):
    """Stopped anywhere, the evidence is within a few of its errors, the solver's among them."""
    p = of_kind(kind, make(n=100, outputs=2, given=replace(ROUGH, max_iter=steps)))
    solution = solve(p)
    assert solution.status == "stopped"
    assert abs(solution.log_evidence - dense_value(p)) < 3 * solution.std_error
    if p.H is None:
        root = 1.0 / np.sqrt(p.noise)[:, None]
        K = root * dense.rbf(p.X, p.X, LENGTHS, VARIANCE) * root.T
        left = residual_square(K, root * p.Y, solution.alpha / root)
        assert solution.std_error > 0.5 * left > 0


def test_the_stated_error_of_a_hopeless_solve():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (150, 2))
    y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(150, 1))
    p = IterativeProblem(
        RBF(1.0), X, y, np.full(150, 1e-8), settings=Settings(rank=20, max_iter=300)
    )
    solution = solve(p)
    assert solution.status == "stopped"
    off = solution.log_evidence - dense.log_evidence(
        dense.rbf(X, X, 1.0, 1.0) + np.diag(p.noise), y
    )
    assert 1e3 < abs(off) < solution.std_error


def test_a_quadrature_that_is_stopped_is_in_the_error():
    """With targets of 0 the probes are all there is."""
    p = make(n=300, given=Settings(rank=5, n_probes=300, max_iter=2))
    p = replace(p, Y=np.zeros_like(p.Y))
    off = solve(p).log_evidence - dense_value(p)
    more = solve(replace(p, settings=replace(p.settings, max_iter=1000)))
    assert abs(off) > 4 * more.std_error  # which has the standard error alone
    assert abs(off) < solve(p).std_error


@pytest.mark.parametrize("kind", KINDS)
def test_a_loose_gap_does_not_loosen_the_evidence(kind):
    """The descent goes on until it leaves out no more than a tenth of a nat, or the error."""
    p = of_kind(kind, make(n=150, given=Settings(tol=1e-1, rank=60, n_probes=100)))
    loose, tight = solve(p), solve(replace(p, settings=replace(p.settings, tol=1e-16)))
    assert loose.status == tight.status == "converged"
    # the same probes: what is left is the solver's
    assert abs(loose.log_evidence - tight.log_evidence) < max(0.1, tight.std_error)


def test_an_offset_does_not_loosen_the_gap():
    """The mean's part is taken out of the targets before the Gap is looked at."""
    p = make(given=replace(ROUGH, tol=1e-4))
    far = replace(p, Y=p.Y + 1e6, H=np.ones((len(p.Y), 1)))
    near = replace(p, H=far.H)
    exact = solve(replace(near, settings=TIGHT)).alpha
    for each in (near, far):
        error = np.max(np.abs(solve(each).alpha - exact))
        assert error < 0.05 * np.max(np.abs(exact))


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan, np.inf])
def test_noise_must_be_positive(noise):
    with pytest.raises(ValueError, match="must be positive"):
        IterativeProblem(KERNEL, np.zeros((2, 2)), np.ones((2, 1)), np.array([1.0, noise]))


def test_dependent_regressors_are_estimated_but_not_integrated():
    p = make()
    twice, once = np.ones((len(p.Y), 2)), np.ones((len(p.Y), 1))
    beta = solve(replace(p, H=twice)).beta
    np.testing.assert_allclose(twice @ beta, once @ solve(replace(p, H=once)).beta, rtol=1e-8)
    with pytest.raises(ValueError, match="linearly independent"):
        solve(replace(p, H=twice, integrate=True))


# --- predictions ------------------------------------------------------------------------------


def predicted(p, Z):
    """The latent mean less its coefficients' part, and the covariance, by the textbook."""
    K = [dense.rbf(a, b, LENGTHS, VARIANCE) for a, b in ((p.X, p.X), (Z, p.X), (Z, Z))]
    return dense.predict(K[0], np.diag(p.noise), p.Y, K[1], K[2])


NEW = np.random.default_rng(5).normal(size=(30, 2)) * 2.0


def test_predictions_are_exact_where_the_preconditioner_is():
    p = make(outputs=2)
    process, _ = posterior(p, means.Zero(), np.ones(2))
    mean, cov = predicted(p, NEW)
    np.testing.assert_allclose(process.mean(NEW), mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(process.cov(NEW)[..., 0], cov, rtol=0, atol=1e-8)


def test_variances_are_conservative():
    p = make(n=200, given=ROUGH)
    process, _ = posterior(p, means.Zero(), np.ones(1))
    mean, cov = predicted(p, NEW)
    exact = np.diagonal(cov)
    np.testing.assert_allclose(process.mean(NEW), mean, rtol=1e-8, atol=1e-8)
    found = process.var(NEW)[:, 0]
    assert np.all(found >= exact - 1e-12)
    assert np.all(found <= VARIANCE)
    less = posterior(replace(p, settings=replace(ROUGH, rank=5)), means.Zero(), np.ones(1))[0]
    assert np.mean(found - exact) < np.mean(less.var(NEW)[:, 0] - exact)
    # the whole covariance, and not its diagonal alone
    assert np.linalg.eigvalsh(process.cov(NEW)[..., 0] - cov)[0] > -1e-10


def test_integrated_coefficients_add_to_variances():
    p = of_kind("integrated", make())
    process, _ = posterior(p, means.Linear(estimate="integrate"), np.ones(1))
    Q, K = covariance(p), dense.rbf(NEW, p.X, LENGTHS, VARIANCE)
    h = np.hstack([np.ones((len(NEW), 1)), NEW]) - K @ np.linalg.solve(Q, p.H)
    more = h @ np.linalg.solve(p.H.T @ np.linalg.solve(Q, p.H), h.T)
    cov = predicted(p, NEW)[1] + more
    np.testing.assert_allclose(process.var(NEW)[:, 0], np.diagonal(cov), rtol=1e-7)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
@pytest.mark.parametrize("stored", [True, False])
def test_variance_bounds_bracket(tol, stored):
    p = make(n=200, given=replace(ROUGH, stored=stored))
    exact = np.diagonal(predicted(p, NEW)[1])
    lower, upper, used = variance_bounds(p, NEW, tol)
    assert used.tolist() == [200] * len(NEW)
    assert np.all((lower <= exact) & (exact <= upper))
    assert np.all(lower >= 0)
    assert np.all(upper - lower <= (tol + 1e-12) * VARIANCE)


def in_long_doubles(kernel, X, noise, Z):
    """Variances by a Cholesky factorisation in more digits, of the kernel's own values."""
    Q = kernel(X).astype(np.longdouble) + np.diag(noise.astype(np.longdouble))
    W = np.hstack([Q, kernel(X, Z).astype(np.longdouble)])
    L = np.zeros_like(Q)
    for j in range(len(Q)):
        W[j] -= L[j, :j] @ W[:j]
        W[j] /= np.sqrt(W[j, j])
        L[j:, j] = W[j, j : len(Q)]
    return np.asarray(kernel.diag(Z) - np.sum(W[:, len(Q) :] ** 2, axis=0), dtype=float)


def nearly_without_noise(case, seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.uniform(-2, 2, (150, 2)), 10 ** rng.uniform(-6, 6, 150)
    if case == "duplicates":
        X[75:] = X[:75]
    kernel = RBF(10.0) if case == "wide" else RBF(1.0)
    base = 1e-8 if case == "duplicates" else 1e-10
    noise = 10 ** rng.uniform(-12, -8) * np.ones(150) if case == "wide" else base / weights
    Z = np.vstack([rng.uniform(-2.5, 2.5, (20, 2)), X[:10]])
    return kernel, X, noise, Z


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no more digits than double")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rank", [40, 150])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("case", ["weights", "duplicates", "wide"])
def test_bounds_hold_nearly_without_noise(case, seed, rank):
    kernel, X, noise, Z = nearly_without_noise(case, seed)
    given = Settings(rank=rank, max_iter=200)
    p = IterativeProblem(kernel, X, X[:, :1], noise, settings=given)
    exact = in_long_doubles(kernel, X, noise, Z)
    lower, upper, _ = variance_bounds(p, Z)
    assert np.all((0 <= lower) & (lower <= exact) & (exact <= upper) & (upper <= kernel.diag(Z)))
    conservative = posterior(p, means.Zero(), np.ones(1))[0].var(Z)[:, 0]
    assert np.all(exact <= conservative)
    if case == "wide":  # and they are of use
        assert np.all(upper - lower < 1e-5)
        assert np.all(conservative < exact + 1e-9)


def test_an_interrupt_in_the_solve_keeps_a_certified_model(monkeypatch):
    p, calls = make(given=ROUGH), []
    times = StoredProducts.times

    def interrupted(self, A):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return times(self, A)

    monkeypatch.setattr(StoredProducts, "times", interrupted)
    process, solution = posterior(p, means.Zero(), np.ones(1))
    assert solution.status == "interrupted"
    assert 0 < solution.bounds.gap < 2
    assert np.all(np.isfinite(process.mean(NEW)))
    calls.clear()
    with pytest.raises(KeyboardInterrupt):  # a search keeps its best point instead
        solve(p)


@pytest.mark.parametrize("columns", [256, 10])
def test_an_interrupt_as_variances_are_made_keeps_a_conservative_model(monkeypatch, columns):
    p, calls, limit = make(given=ROUGH), [], [np.inf]
    times = StoredProducts.times

    def interrupted(self, A):
        calls.append(1)
        if len(calls) == limit[0]:
            raise KeyboardInterrupt
        return times(self, A)

    monkeypatch.setattr(StoredProducts, "times", interrupted)
    monkeypatch.setattr(iterative, "_COLUMNS", columns)
    whole, complete = posterior(p, means.Zero(), np.ones(1))
    limit[0] = len(calls)  # the last product of all
    calls.clear()
    process, solution = posterior(p, means.Zero(), np.ones(1))
    assert (complete.status, solution.status) == ("converged", "interrupted")
    assert solution.bounds == complete.bounds
    np.testing.assert_array_equal(process.mean(NEW), whole.mean(NEW))
    exact, prior = np.diagonal(predicted(p, NEW)[1]), KERNEL.diag(NEW)
    found = process.var(NEW)[:, 0]
    assert np.all(found >= whole.var(NEW)[:, 0] * (1 - 1e-12)) and np.all(found >= exact)
    if columns == 256:  # nothing was known yet
        np.testing.assert_allclose(found, prior, rtol=1e-12)
    else:
        assert np.sum(found < 0.5 * prior) >= 8


def test_an_interrupt_as_a_solution_is_refined_keeps_what_it_has(monkeypatch):
    p, calls = make(given=ROUGH), []
    descend = _iterative_run.descend

    def interrupted(*given, **options):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return descend(*given, **options)

    certified = _iterative_run._certified
    far = [True]

    def first_far(products, Y, A):
        if far.pop() if far else False:
            A = 0.9 * A
        R, bounds = certified(products, Y, A)
        return R, bounds

    monkeypatch.setattr(_iterative_run, "descend", interrupted)
    monkeypatch.setattr(_iterative_run, "_certified", first_far)
    _, solution = posterior(p, means.Zero(), np.ones(1))
    assert len(calls) == 2 and solution.status == "interrupted"
    far.append(True)
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        solve(p)


def test_progress_is_told_of_steps_and_columns():
    told = []
    posterior(make(given=ROUGH), means.Zero(), np.ones(1), progress=told.append)
    assert any("10 steps" in line for line in told)
    assert told[-1] == "variances: 25 of 25 columns"
