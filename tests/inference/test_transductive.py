"""Labels that are missing, found with the latent functions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit, softmax
from sklearn.datasets import make_moons

from mercer.inference import LatentProblem, laplace, transductive
from mercer.inference import softmax as coupled
from mercer.inference._annealing import Ascent
from mercer.inference._partly_labelled import PartlyLabelled, PartlyLabelledSoftmax, SoftmaxSearch
from mercer.inference.transductive import ANNEALED, HARD, TransductiveProblem, evidence, solve
from mercer.kernels import RBF
from mercer.likelihoods import Logistic, Probit, SoftLabels, Softmax
from mercer.means import Zero

from .transductive_cases import KINDS, METHODS, log_probabilities, make, slope, value

# --- what stands for a label ----------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [None, 0.9, 0.4, 0.05])
@pytest.mark.parametrize("base", [Logistic(), Probit(0.7)], ids=["logistic", "probit"])
def test_derivatives_of_rows_without_a_label(base, temperature):
    likelihood = PartlyLabelled(base, temperature)
    f = np.array([-30.0, -4.0, -1.3, -0.2, 0.0, 0.01, 0.7, 2.5, 6.0, 40.0])
    y = np.zeros(len(f))
    found = likelihood.derivatives(y, f)
    below = [likelihood.log_density(y, f + h) for h in (1e-5, -1e-5)]
    np.testing.assert_allclose(found[0], (below[0] - below[1]) / 2e-5, rtol=1e-6, atol=1e-8)
    for k in (0, 1):
        up, down = (likelihood.derivatives(y, f + h)[k] for h in (1e-5, -1e-5))
        np.testing.assert_allclose(found[k + 1], (up - down) / 2e-5, rtol=2e-5, atol=1e-6)


def test_values_of_rows_without_a_label():
    f = np.linspace(-5, 5, 11)
    p = expit(f)
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    np.testing.assert_allclose(PartlyLabelled(Logistic()).log_density(0.0, f), -entropy)
    at_one = PartlyLabelled(Logistic(), 1.0).log_density(0.0, f)
    np.testing.assert_allclose(at_one, 0.0, atol=1e-15)
    at_none = PartlyLabelled(Logistic(), 1e-3).log_density(0.0, f)
    np.testing.assert_allclose(at_none, log_expit(np.abs(f)), atol=1e-3)
    for label in (-1.0, 1.0):  # labels are what they are
        for own, base in zip(
            PartlyLabelled(Logistic()).derivatives(label, f),
            Logistic().derivatives(label, f),
            strict=True,
        ):
            np.testing.assert_array_equal(own, base)


@pytest.mark.parametrize("temperature", [None, 0.8, 0.2])
def test_slopes_and_curvature_of_a_softmax(temperature):
    rng = np.random.default_rng(0)
    Y, F, V = np.eye(3)[rng.integers(0, 3, 6)], 2 * rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    problem = PartlyLabelledSoftmax(
        RBF(),
        rng.normal(size=(6, 2)),
        Y,
        np.zeros((6, 3)),
        rng.uniform(0.5, 2, 6),
        known=np.arange(6) < 2,
        temperature=temperature,
    )
    search = SoftmaxSearch(problem, problem.gram())
    g, W = search.slopes(F)
    np.testing.assert_allclose(g, slope(problem.log_likelihood, F), rtol=1e-6, atol=1e-8)
    up, down = (search.slopes(F + h * V)[0] for h in (1e-6, -1e-6))
    np.testing.assert_allclose(search.bend(W, V), -(up - down) / 2e-6, rtol=1e-6, atol=1e-7)


# --- the solution ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_the_objective_is_what_it_says_and_is_at_a_top(kind, method):
    problem = make(kind, weights=True, mean=True)
    solution = solve(problem, method)
    assert solution.status == "converged" and solution.jitter == 0
    T = 0.0 if method == "em" else None

    def objective(F):
        return value(problem, F, solution.held, T)

    assert solution.objective == pytest.approx(objective(solution.latent), abs=1e-6)
    assert solution.values[-1] == solution.objective
    # the gradient in the coefficients: K (g - alpha)
    K = problem.kernel(problem.X)
    latent = problem.mean + K @ solution.alpha
    np.testing.assert_allclose(solution.latent, latent, atol=1e-9)
    up = slope(lambda a: objective(problem.mean + K @ a), solution.alpha)
    np.testing.assert_allclose(up, 0.0, atol=1e-5)
    known = problem.known
    np.testing.assert_array_equal(solution.labels[known], problem.labels[known])
    p = np.exp(log_probabilities(problem.likelihood, solution.latent))
    np.testing.assert_allclose(solution.probabilities[~known], p[~known], atol=1e-12)
    np.testing.assert_array_equal(solution.labels[~known], np.argmax(p, axis=1)[~known])
    wanted = np.eye(p.shape[1])[solution.labels] if method == "em" else solution.probabilities
    np.testing.assert_array_equal(solution.held, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_each_method_is_best_at_its_own(kind):
    """The better of several ends is kept, so that none of the starts is better."""
    problem = make(kind, n=40, kernel=5.0 * RBF(0.5))
    em, joint = solve(problem), solve(problem, "joint")
    assert em.objective >= solve(problem, temperatures=HARD).objective - 1e-9
    assert joint.values[-1] >= joint.values[0]
    assert joint.objective >= value(problem, em.latent, None, None) - 1e-9
    supervised = solve(problem, temperatures=(1.0,)).latent
    assert joint.objective >= value(problem, supervised, None, None) - 1e-9
    again = solve(problem, temperatures=HARD, start=em.labels)
    assert again.objective == pytest.approx(em.objective, abs=1e-8)


@pytest.mark.parametrize("temperature", [0.9, 0.5, 0.0])
@pytest.mark.parametrize("kind", ["logistic", "softmax"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), scale=st.floats(0.2, 2.0), variance=st.floats(0.5, 50.0))
def test_the_free_energy_never_falls(kind, temperature, seed, scale, variance):
    """Steps in turn, from labels at random."""
    problem = make(kind, n=20, seed=seed, kernel=variance * RBF(scale), weights=True)
    ascent = Ascent(problem)
    rng = np.random.default_rng(seed)
    Q = ascent.with_given(rng.dirichlet(np.ones(problem.n_classes), 20))
    end = ascent.em(ascent.supervised(), Q, (temperature,), 40)
    first = value(problem, end.at.f.reshape(problem.mean.shape), end.held, temperature)
    assert end.value == pytest.approx(first, abs=1e-5 * (1 + abs(first)))
    rise = np.diff(end.values)
    assert np.all(rise >= -1e-10 * (1 + np.abs(end.values[:-1])))
    assert set(end.temperatures) == {temperature} and len(end.values) >= 1


def test_the_steps_do_rise():
    """Not only never fall: from labels at random there is something to be gained."""
    problem = make(n=40, seed=3)
    ascent = Ascent(problem)
    Q = ascent.with_given(np.eye(2)[np.random.default_rng(0).integers(0, 2, 40)])
    end = ascent.em(ascent.supervised(), Q, (0.5,), 100)
    assert len(end.values) > 5 and end.values[-1] > end.values[0] + 1.0 and end.done


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_newton_comes_to_rest_where_steps_in_turn_would(kind):
    problem = make(kind, n=30)
    for T in (0.9, 0.3):
        solution = solve(problem, temperatures=(T,))
        F, known = solution.latent, problem.known
        Q = softmax(log_probabilities(problem.likelihood, F) / T, axis=1)
        Q[known] = np.eye(problem.n_classes)[problem.labels[known]]
        if kind == "softmax":
            again = coupled.solve(
                coupled.SoftmaxProblem(problem.kernel, problem.X, Q, problem.mean)
            ).latent
        else:
            again = laplace.solve(soft(problem, Q[:, 1])).latent[:, None]
        np.testing.assert_allclose(again, F, atol=1e-6)


def soft(problem, q):
    likelihood = SoftLabels(problem.likelihood)
    return LatentProblem(problem.kernel, problem.X, q, likelihood, problem.mean[:, 0])


def test_soft_em_forgets_the_rows_without_a_label():
    """At T = 1, from anywhere, it is the solution that ignores them."""
    problem = make(n=16, kernel=1.5 * RBF(0.7))
    known = problem.known
    alone = LatentProblem(
        problem.kernel,
        problem.X[known],
        2.0 * problem.labels[known] - 1,
        Logistic(),
        problem.mean[known, 0],
    )
    process, _ = laplace.posterior(alone, Zero())
    supervised = process.mean(problem.X)[:, 0]
    q = np.random.default_rng(1).uniform(size=16)
    for _ in range(400):
        q[known] = problem.labels[known]
        f = laplace.solve(soft(problem, q)).latent
        q = expit(f)
    np.testing.assert_allclose(f, supervised, atol=1e-6)
    solution = solve(problem, temperatures=(1.0,))
    np.testing.assert_allclose(solution.latent[:, 0], supervised, atol=1e-8)
    # and hard labels do not
    assert np.max(np.abs(solve(problem).latent[:, 0] - supervised)) > 0.3


@pytest.mark.parametrize("method", METHODS)
def test_two_classes_of_a_softmax_are_the_logistic_with_twice_the_kernel(method):
    kernel = 2.0 * RBF(0.6)
    one = solve(make(n=30, kernel=2.0 * kernel), method)
    two = solve(make(Softmax(2), n=30, kernel=kernel), method)
    np.testing.assert_array_equal(one.labels, two.labels)
    assert two.objective == pytest.approx(one.objective, abs=1e-7)
    np.testing.assert_allclose(two.latent[:, 1] - two.latent[:, 0], one.latent[:, 0], atol=1e-6)


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
@pytest.mark.parametrize("method", METHODS)
def test_a_weight_of_two_is_the_row_twice(kind, method):
    problem = make(kind, n=15)
    counts = 1 + np.arange(15) % 2
    rows = np.repeat(np.arange(15), counts)
    heavy = TransductiveProblem(
        problem.kernel, problem.X, problem.labels, problem.likelihood, problem.mean, 1.0 * counts
    )
    twice = TransductiveProblem(
        problem.kernel, problem.X[rows], problem.labels[rows], problem.likelihood,
        problem.mean[rows],
    )  # fmt: skip
    one, two = solve(heavy, method), solve(twice, method)
    assert two.objective == pytest.approx(one.objective, abs=1e-6)
    np.testing.assert_allclose(two.latent, one.latent[rows], atol=1e-5)


def test_points_that_are_level_are_left_behind():
    """Far from all labels (BKM 61) is level at even odds, but no maximum there."""
    X = np.array([[0.0], [1.0], [100.0], [200.0]])
    labels = np.array([0, 1, -1, -1])
    problem = TransductiveProblem(9.0 * RBF(0.3), X, labels, Logistic(), np.zeros((4, 1)))
    solution = solve(problem, "joint")
    assert np.all(np.abs(solution.latent[2:]) > 1.0)


def test_unlabelled_rows_make_fewer_errors():
    """The label of three rows each of two moons is known, eight times over."""
    wrong = dict.fromkeys(("alone", "hard", "annealed", "joint"), 0)
    for seed in range(8):
        X, y = make_moons(100, noise=0.06, random_state=seed)
        rng = np.random.default_rng(seed)
        labels = np.full(100, -1)
        for c in (0, 1):
            labels[rng.choice(np.flatnonzero(y == c), 3, replace=False)] = c
        problem = TransductiveProblem(4.0 * RBF(0.25), X, labels, Logistic(), np.zeros((100, 1)))
        for name, method, temperatures in (
            ("alone", "em", (1.0,)),
            ("hard", "em", HARD),
            ("annealed", "em", ANNEALED),
            ("joint", "joint", ANNEALED),
        ):
            found = solve(problem, method, temperatures=temperatures).labels
            wrong[name] += int(np.sum(found != y))
    assert wrong["annealed"] < 0.5 * wrong["alone"]
    assert wrong["joint"] < 0.5 * wrong["alone"]
    assert wrong["annealed"] < wrong["hard"]


# --- the posterior and the evidence ---------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_posterior_of_em_is_that_of_its_labels(kind):
    problem = make(kind, weights=True)
    process, solution = transductive.posterior(problem, Zero())
    held = problem.held(solution.labels)
    if kind == "softmax":
        wanted, _ = coupled.posterior(held, Zero(), at_mode=True)
    else:
        wanted, _ = laplace.posterior(held, Zero())
    new = np.random.default_rng(2).normal(size=(7, 2))
    np.testing.assert_allclose(process.mean(new), wanted.mean(new), atol=1e-7)
    np.testing.assert_allclose(process.cov(new), wanted.cov(new), atol=1e-7)
    assert solution.n_factorisations > 1 and solution.n_iterations > 1


def test_the_posterior_of_joint_has_the_curvature_of_labels():
    problem = make("probit", mean=True, weights=True)
    process, solution = transductive.posterior(problem, Zero(), "joint")
    K, f = problem.kernel(problem.X), solution.latent[:, 0]
    parts = [-Probit(0.8).derivatives(label, f)[1] for label in (-1.0, 1.0)]
    W = problem.weights * np.sum(solution.held * np.column_stack(parts), axis=1)
    cov = K - K @ np.linalg.solve(K + np.diag(1 / W), K)
    np.testing.assert_allclose(process.cov(problem.X)[..., 0], cov, atol=1e-8)
    np.testing.assert_allclose(process.mean(problem.X)[:, 0], f - problem.mean[:, 0], atol=1e-8)
    many = make("softmax")
    process, solution = transductive.posterior(many, Zero(), "joint")
    np.testing.assert_allclose(process.mean(many.X), solution.latent, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_with_all_labels_it_is_laplaces_method(kind, method):
    problem = make(kind, known=1.0)
    assert np.all(problem.known)
    process, solution = transductive.posterior(problem, Zero(), method)
    engine = coupled if kind == "softmax" else laplace
    wanted, mode = engine.posterior(problem.held(problem.labels), Zero())
    np.testing.assert_array_equal(solution.labels, problem.labels)
    np.testing.assert_allclose(solution.latent, mode.latent.reshape(problem.mean.shape), atol=1e-8)
    new = np.random.default_rng(2).normal(size=(5, 2))
    np.testing.assert_allclose(process.var(new), wanted.var(new), atol=1e-8)


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_the_evidence_is_that_of_the_labels_held(kind):
    problem = make(kind)
    found, adjoints = evidence(problem)
    labels = solve(problem).labels
    engine = coupled if kind == "softmax" else laplace
    wanted, wanted_adjoints = engine.evidence(problem.held(labels))
    assert found.log_evidence == pytest.approx(wanted.log_evidence, rel=1e-9)
    np.testing.assert_allclose(adjoints.K, wanted_adjoints.K, atol=1e-9)
    other = np.where(problem.known, labels, (labels + 1) % problem.n_classes)
    assert evidence(problem, other)[0].log_evidence < found.log_evidence
