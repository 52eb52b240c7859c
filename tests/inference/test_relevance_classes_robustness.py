"""Labels that relevance vector machines stumble over: separable, rare, repeated; and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import ConvergenceWarning, NotPositiveDefiniteError, TooLargeError
from mercer.inference import _relevance_run
from mercer.inference._columns import ArrayColumns, JoinedColumns, KernelColumns
from mercer.inference._relevance_sites import ScalarSites
from mercer.inference.relevance_classes import (
    ALGORITHMS,
    ClassesProblem,
    MultinomialProblem,
    multinomial,
    solve,
)
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Laplace, Logistic, Probit, SoftLabels, StudentT
from mercer.priors import GammaPrecision

from .relevance_cases import Flat
from .relevance_class_cases import circles, sectors


def fitted(Phi, y, algorithm="fast", weights=None, **given):
    n = len(y)
    own = ClassesProblem(ArrayColumns(Phi), y, np.zeros(n), weights, Flat(), **given)
    fit = solve(own, algorithm)
    assert fit.status == "converged"
    assert np.all(np.diff(fit.history) >= 0)
    assert len(fit.indices) >= 1
    for part in fit[1:6]:
        assert np.all(np.isfinite(part))
    down = Phi[:, fit.indices].T @ (
        (1.0 if weights is None else weights) * Logistic().derivatives(y, fit.latent)[0]
    )
    scale = 1.0 + np.linalg.norm(fit.precisions * fit.mean)
    np.testing.assert_allclose(down, fit.precisions * fit.mean, atol=1e-7 * scale)
    return fit


@pytest.mark.parametrize("algorithm", ["fast", "fixed_point"])
@pytest.mark.parametrize("margin", [0.0, 1.0, 100.0])
def test_separable_classes(algorithm, margin):
    X = np.random.default_rng(0).normal(size=(60, 1))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X = X + margin * y[:, None]
    for Phi in (X, np.hstack([RBF(1.0)(X, X), np.ones((60, 1))])):
        fit = fitted(Phi, y, algorithm)
        assert np.all(np.sign(fit.latent) == y)


@pytest.mark.parametrize("algorithm", ["fast", "fixed_point"])
@pytest.mark.parametrize("noise", [1e-5, 30.0, 1e6])
def test_only_the_ratio_of_probit_noise_to_the_function_matters(algorithm, noise):
    # separable, so that the floor of the precisions is reached: it is in units of the noise
    X = np.sort(np.random.default_rng(0).normal(size=(40, 1)), axis=0)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    columns = JoinedColumns([KernelColumns(RBF(1.0), X), ArrayColumns(np.ones((40, 1)))])

    def fit(std):
        own = ClassesProblem(columns, y, np.zeros(40), None, Flat(), Probit(std), always=(40,))
        return solve(own, algorithm)

    one, other = fit(1.0), fit(noise)
    squares = np.mean(columns.take(one.indices) ** 2, axis=0)
    assert np.min(one.precisions / squares) < 0.0101
    # as far as steps that gain less than 1e-2 nats are looked for
    assert abs(other.log_evidence - one.log_evidence) < 1e-2
    np.testing.assert_allclose(other.latent / noise, one.latent, atol=0.1)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_two_rows_and_one_function(algorithm):
    fitted(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), algorithm)
    fitted(np.array([[1.0], [1.0]]), np.array([1.0, -1.0]), algorithm)


@pytest.mark.parametrize("algorithm", ["fast", "fixed_point"])
def test_repeated_rows_and_identical_and_constant_columns(algorithm):
    X, y = circles(40)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    K = RBF(1.0)(X, X)  # every column twice
    Phi = np.hstack([K, np.ones((80, 2)), np.zeros((80, 1)), np.full((80, 1), 7.0)])
    fit = fitted(Phi, y, algorithm)
    assert not {82} & set(fit.indices)
    fitted(Phi, y, algorithm, always=[80, 81])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_functions_that_say_nothing(algorithm):
    y = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    Phi = np.random.default_rng(0).normal(size=(40, 3))
    fit = fitted(Phi, y, algorithm)
    assert len(fit.indices) >= 1
    zero = fitted(np.zeros((40, 2)), y, algorithm)
    np.testing.assert_array_equal(zero.latent, 0.0)


@pytest.mark.parametrize("algorithm", ["fast", "fixed_point"])
def test_a_rare_class(algorithm):
    X, _ = circles(150)
    y = np.where(np.arange(150) % 30 == 0, 1.0, -1.0)
    X[y > 0] += 2.5
    Phi = np.hstack([RBF(1.0)(X, X), np.ones((150, 1))])
    fit = fitted(Phi, y, algorithm, always=[150])
    assert np.mean(fit.latent[y > 0]) > np.mean(fit.latent[y < 0]) + 1.0
    balanced = fitted(Phi, y, algorithm, weights=np.where(y > 0, 29.0, 1.0), always=[150])
    assert np.mean(balanced.latent > 0) >= np.mean(fit.latent > 0)


def test_columns_of_any_size():
    X, y = circles(50)
    K = RBF(1.0)(X, X)
    found = [fitted(scale * K, y).objective for scale in (1e-6, 1.0, 1e6)]
    np.testing.assert_allclose(found, found[0], atol=0.05)


@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
def test_modes_of_rows_that_weigh_much_take_few_steps(monkeypatch):
    # J is so large that rounding hides the last of what a step gains
    counts = []
    slopes = ScalarSites.slopes
    monkeypatch.setattr(ScalarSites, "slopes", lambda *a: (counts.append(1), slopes(*a))[1])
    x = np.random.default_rng(0).uniform(-3, 3, 40)
    y = np.where(np.abs(np.sin(2 * x)) < 0.5, 1.0, -1.0)
    Phi = np.hstack([RBF(5.0)(x[:, None], x[:, None]), np.ones((40, 1))])
    w = np.where(np.arange(40) % 2, 1e6, 1.0)
    fit = solve(ClassesProblem(ArrayColumns(Phi), y, np.zeros(40), w, Flat(), always=[40]))
    assert np.all(np.diff(fit.history) >= 0)
    assert len(counts) < 3000


def test_precisions_have_a_floor():
    # A fixed part that is far off: a bias of 300 is beyond what the floor allows for.
    _, y = circles(30)
    given = ClassesProblem(
        ArrayColumns(np.ones((30, 1))), y, np.full(30, -300.0), None, Flat(), always=[0]
    )
    fit = solve(given)
    assert fit.precisions[0] == pytest.approx(1e-2)
    assert np.all(np.isfinite(fit.latent))


@pytest.mark.parametrize("at", [1, 4])
def test_ctrl_c_leaves_the_best_model_so_far(at):
    X, y = circles(60)
    seen = []

    def report(step, value, k):
        seen.append(value)
        if len(seen) == at:
            raise KeyboardInterrupt

    own = ClassesProblem(KernelColumns(RBF(0.8), X), y, np.zeros(60), None, Flat())
    fit = solve(own, report=report)
    assert fit.status == "interrupted"
    assert fit.objective == seen[-1] == fit.history[-1]


def test_steps_that_are_too_few():
    X, c = sectors(60)
    own = MultinomialProblem(
        KernelColumns(RBF(0.8), X), np.eye(3)[c], np.zeros((60, 3)), None, Flat()
    )
    with pytest.warns(ConvergenceWarning, match="max_steps"):
        fit = multinomial(own, max_iter=1)
    assert fit.status == "stopped"


def bands(seed):
    """Return inputs, and the bands of height that they are in."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 2))
    height = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(150)
    return X, np.digitize(height, [-0.5, 0.5])


@pytest.mark.filterwarnings("ignore:the evidence was still increasing")
@pytest.mark.parametrize("most", [5, 8, 10, 15, 16, 26])  # trials at the end are steps too
def test_a_growing_model_takes_no_more_steps_than_it_may(most):
    X, c = bands(0)
    columns = KernelColumns(RBF(0.7), X)
    for y in 2.0 * np.eye(3)[:, c] - 1.0:
        fit = solve(ClassesProblem(columns, y, np.zeros(150), None, Flat()), max_iter=most)
        assert fit.status == "stopped" and fit.n_iterations == most
    own = MultinomialProblem(columns, np.eye(3)[c], np.zeros((150, 3)), None, Flat())
    fit = multinomial(own, max_iter=most)
    assert fit.status == "stopped" and fit.n_iterations == most


@pytest.mark.filterwarnings("ignore:the evidence was still increasing")
@pytest.mark.parametrize("width, of, most", [(0.3, 0, 24), (0.3, 0, 25), (0.7, 2, 19)])
def test_functions_that_come_together_are_no_more_than_steps_left(width, of, most):
    X, c = bands(1)
    y = np.where(c == of, 1.0, -1.0)
    own = ClassesProblem(KernelColumns(RBF(width), X), y, np.zeros(150), None, Flat())
    assert solve(own, max_iter=most).n_iterations == most


@pytest.mark.filterwarnings("ignore:the evidence was still increasing")
@pytest.mark.parametrize("most", [63, 66, 69])
def test_functions_that_are_tried_one_by_one_are_no_more_than_steps_left(most):
    X, c = bands(0)
    y = np.where(c == 1, 1.0, -1.0)
    own = ClassesProblem(KernelColumns(RBF(0.3), X), y, np.zeros(150), None, Flat())
    fit = solve(own, max_iter=most)
    assert fit.status == "stopped" and fit.n_iterations == most


@pytest.mark.parametrize("of", [0, 1, 2, None])
@pytest.mark.parametrize("hyperprior", [Flat(), GammaPrecision(1.0, 0.1)], ids=["flat", "gamma"])
def test_a_model_that_wants_no_more_steps_than_it_may_take_has_converged(of, hyperprior):
    X, c = bands(0)
    columns = KernelColumns(RBF(0.7), X)
    if of is None:
        own = MultinomialProblem(columns, np.eye(3)[c], np.zeros((150, 3)), None, hyperprior)
        fit = multinomial
    else:
        y = np.where(c == of, 1.0, -1.0)
        own = ClassesProblem(columns, y, np.zeros(150), None, hyperprior)
        fit = solve
    full = fit(own)
    again = fit(own, max_iter=full.n_iterations)
    assert full.status == "converged"
    for one, other in zip(again, full, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.warns(ConvergenceWarning, match="max_steps"):
        less = fit(own, max_iter=full.n_iterations - 1)
    assert less.status == "stopped" and less.n_iterations == full.n_iterations - 1


# --- bad input ------------------------------------------------------------------------------------


def given(**changes):
    X, y = circles(12)
    options = {
        "columns": KernelColumns(RBF(1.0), X),
        "y": y,
        "mean": np.zeros(12),
        "weights": None,
        "hyperprior": Flat(),
    }
    return ClassesProblem(**{**options, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.ones(12)}, "both classes are wanted, all rows that have a weight have 1"),
        ({"y": np.arange(12.0)}, "labels must be -1 and 1, got"),
        ({"y": np.ones(11)}, "y must have shape"),
        ({"mean": np.full(12, np.nan)}, "mean must be finite"),
        ({"weights": np.full(12, -1.0)}, "weights must not be negative, got -1"),
        ({"weights": np.zeros(12)}, "at least one row with a weight"),
        ({"weights": np.ones(3)}, "weights must have shape"),
        ({"always": [12]}, "always must hold columns from 0 to 11"),
        ({"columns": ArrayColumns(np.empty((12, 0)))}, "one row and one column"),
        ({"likelihood": StudentT(4.0, 1.0)}, "log-concave and twice differentiable"),
        ({"likelihood": Laplace(1.0)}, "log-concave and twice differentiable"),
        ({"likelihood": Gaussian(1.0)}, "`relevance` is the engine"),
    ],
)
def test_bad_problems(changes, message):
    with pytest.raises(ValueError, match=message):
        given(**changes)


def test_one_class_when_the_other_has_no_weight():
    _, y = circles(12)
    with pytest.raises(ValueError, match="both classes"):
        given(weights=(y > 0).astype(float))


def test_soft_labels():
    X, y = circles(40)
    soft = np.clip(0.5 + 0.45 * y, 0.0, 1.0)
    own = ClassesProblem(
        KernelColumns(RBF(1.0), X), soft, np.zeros(40), None, Flat(), SoftLabels(Logistic())
    )
    assert np.mean((solve(own).latent > 0) == (y > 0)) > 0.7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Y": np.ones((12, 1))}, "at least two classes"),
        ({"Y": np.ones((12, 2))}, "must be a distribution"),
        ({"Y": np.eye(3)[np.zeros(12, int)]}, "two classes at least"),
        ({"mean": np.zeros(12)}, "mean must have shape"),
        ({"weights": np.zeros(12)}, "at least one row with a weight"),
        ({"always": [-1]}, "always must hold"),
    ],
)
def test_bad_multinomial_problems(changes, message):
    X, c = sectors(12)
    options = {
        "columns": KernelColumns(RBF(1.0), X),
        "Y": np.eye(3)[c],
        "mean": np.zeros((12, 3)),
        "weights": None,
        "hyperprior": Flat(),
    }
    with pytest.raises(ValueError, match=message):
        MultinomialProblem(**{**options, **changes})


def test_algorithms_that_are_not_offered(monkeypatch):
    with pytest.raises(ValueError, match="'fast', 'fixed_point', 'em' for labels, got 'greedy'"):
        solve(given(), "greedy")
    X, c = sectors(12)
    several = MultinomialProblem(
        KernelColumns(RBF(1.0), X), np.eye(3)[c], np.zeros((12, 3)), None, Flat()
    )
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="tol must be"):
            solve(given(), tol=bad)
    with pytest.raises(ValueError, match="max_iter must be"):
        multinomial(several, max_iter=0)
    monkeypatch.setattr(_relevance_run, "_MOST", 100)
    with pytest.raises(TooLargeError, match='"em" keeps all 12 functions'):
        solve(given(), "em")


def test_joined_columns_of_which_all_stay():
    X, _ = circles(4)
    columns = JoinedColumns([KernelColumns(RBF(1.0), X), ArrayColumns(np.ones((4, 1)))])
    y = np.array([1.0, -1.0, 1.0, -1.0])
    own = ClassesProblem(columns, y, np.zeros(4), None, Flat(), always=range(5))
    assert len(solve(own).indices) == 5


@pytest.mark.parametrize("algorithm", ["fast", "fixed_point"])
def test_weights_that_leave_no_evidence_are_told_of(algorithm):
    rng = np.random.default_rng(0)
    Phi, weights = rng.normal(size=(20, 8)), np.full(20, 1e300)
    given = ClassesProblem(ArrayColumns(Phi), np.sign(Phi[:, 0]), np.zeros(20), weights, Flat())
    refused = pytest.raises(NotPositiveDefiniteError, match="other units")
    with refused, np.errstate(all="ignore"):
        solve(given, algorithm)
