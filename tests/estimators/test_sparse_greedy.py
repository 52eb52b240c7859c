"""`SparseGreedyGPRegressor`: what it proves, how it goes on, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import mercer
import mercer.estimators.greedy_fit as greedy_fit
import mercer.estimators.greedy_search as greedy_search
import mercer.estimators.prepare_sparse as prepare_sparse
from mercer import GPRegressor, SparseGreedyGPRegressor, means
from mercer.errors import ConvergenceWarning, UndeterminedWarning
from mercer.kernels import RBF, Callable, Linear, Matern
from mercer.likelihoods import Gaussian, StudentT

KERNEL, NOISE = 1.5 * RBF(1.0), Gaussian(0.1)
HELD = {"kernel": KERNEL, "likelihood": NOISE, "optimizer": None, "random_state": 0}


def rows(n=300, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    return X, 5.0 + np.sin(2.0 * X[:, 0]) * X[:, -1] + 0.3 * rng.normal(size=n)


def least(K, y, s2):
    return -0.5 * y @ K @ np.linalg.solve(K + s2 * np.eye(len(y)), y)


# --- what it proves -------------------------------------------------------------------------------


def test_bounds_are_those_of_the_targets_less_the_mean_it_ends_with():
    X, y = rows()
    model = SparseGreedyGPRegressor(**HELD, tol=0.01).fit(X, y)
    assert model.gap_ <= 0.01 and model.selection_status_ == "certified"
    rest = y - model.mean_(X)[:, 0]
    lower, upper = model.log_posterior_bounds_
    wanted = least(KERNEL(X), rest, 0.1)
    assert lower <= wanted <= upper
    assert model.gap_ == pytest.approx(2 * (upper - lower) / (abs(upper) + abs(lower)))
    # the upper one is the model's own
    f = model.predict(X, latent=True) - model.mean_(X)[:, 0]
    alpha = model.posterior_.alpha[:, 0]
    norm = alpha @ KERNEL(model.inducing_) @ alpha
    assert upper == pytest.approx(-rest @ f + 0.5 * (0.1 * norm + f @ f), rel=1e-8)
    np.testing.assert_array_equal(model.inducing_, model.X_train_[model.basis_indices_])
    assert len(model.gap_history_) == len(model.basis_indices_)
    assert np.all(np.diff(model.gap_history_) <= 0) and model.gap_history_[-1] == model.gap_


def test_the_certificate_of_the_model_says_the_same():
    X, y = rows()
    model = SparseGreedyGPRegressor(**HELD, tol=0.01).fit(X, y)
    other = mercer.certificate(model, X, y)
    assert other.upper == pytest.approx(model.log_posterior_bounds_[1], rel=1e-8)
    assert other.gap <= 1.1 * model.gap_


def test_a_small_tolerance_is_exact_regression():
    X, y = rows()
    exact = GPRegressor(KERNEL, NOISE, optimizer=None).fit(X, y)
    model = SparseGreedyGPRegressor(**HELD, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-5)
    assert len(model.basis_indices_) < 200


def test_the_mean_is_that_of_the_evidence_on_the_basis():
    X, y = rows()
    model = SparseGreedyGPRegressor(**HELD, mean="linear").fit(X, y)
    _, gradient = model.log_marginal_likelihood(model.theta_, eval_gradient=True)
    assert np.all(np.abs(gradient[-3:]) < 1e-6)


@pytest.mark.parametrize("tol", [0.1, 0.001])
def test_predictions_are_as_near_as_the_gap_says(tol):
    """|F - F*|^2/2 is at most the distance of the bounds."""
    X, y = rows(500)
    model = SparseGreedyGPRegressor(**HELD, mean="zero", tol=tol).fit(X, y - 5.0)
    exact = GPRegressor(KERNEL, NOISE, optimizer=None, mean="zero").fit(X, y - 5.0)
    lower, upper = model.log_posterior_bounds_
    distance = np.sum((model.predict(X) - exact.predict(X)) ** 2)
    assert 0.5 * distance <= upper - lower


def test_variance_bounds_are_about_exact_regression():
    X, y = rows()
    Y = np.column_stack([y, 100.0 * y])
    model = SparseGreedyGPRegressor(**HELD, normalize_y=True, tol=1e-4).fit(X, Y)
    held = means.Constant(model.mean_.coefficients[0], estimate=None)
    exact = GPRegressor(KERNEL, NOISE, optimizer=None, normalize_y=True, mean=held).fit(X, Y)
    Z = np.random.default_rng(1).uniform(-3, 3, size=(40, 2))
    wanted = exact.predict(Z, return_std=True, latent=True)[1] ** 2
    found = model.predict_variance_bounds(Z)
    assert found.lower.shape == (40, 2)
    slack = 1e-9 * exact.posterior_.scale**2
    assert np.all(found.lower <= wanted + slack) and np.all(wanted <= found.upper + slack)
    fewer = model.predict_variance_bounds(Z, tol=0.5)
    assert np.all(fewer.n_kernels <= found.n_kernels) and np.any(fewer.n_kernels < found.n_kernels)
    assert np.all(fewer.upper >= found.upper) and np.all(fewer.lower <= found.lower)


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", [NOISE, "rows"])
def test_weights_order_and_repeated_rows(likelihood):
    X, y = rows(120)
    counts = np.random.default_rng(2).integers(0, 3, size=120)
    noise = np.linspace(0.05, 0.3, 120)
    options = {**HELD, "tol": 0.02}
    given = likelihood if likelihood is NOISE else Gaussian(noise, 0.1)
    model = SparseGreedyGPRegressor(**{**options, "likelihood": given})
    model.fit(X, y, sample_weight=counts)
    order = np.random.default_rng(3).permutation(np.repeat(np.arange(120), counts))
    given = likelihood if likelihood is NOISE else Gaussian(noise[order], 0.1)
    other = SparseGreedyGPRegressor(**{**options, "likelihood": given}).fit(X[order], y[order])
    np.testing.assert_array_equal(model.inducing_, other.inducing_)
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-9)
    ratio = 1.0  # where variances differ, s2 is their mean over the rows as they are written
    if likelihood is not NOISE:
        kept = noise[counts > 0]
        ratio = np.mean(1.0 / noise[order]) / np.mean(1.0 / kept)
    assert other.gap_ == pytest.approx(model.gap_, rel=1e-6)
    np.testing.assert_allclose(
        np.multiply(other.log_posterior_bounds_, ratio), model.log_posterior_bounds_, rtol=1e-8
    )


def test_columns_of_targets_share_the_basis():
    X, y = rows()
    Y = np.column_stack([y, np.cos(X[:, 1])])
    model = SparseGreedyGPRegressor(**HELD, tol=0.01).fit(X, Y)
    assert model.predict(X).shape == (300, 2) and model.gap_ <= 0.01
    lower, upper = model.log_posterior_bounds_
    rest = Y - model.mean_(X)
    assert lower <= sum(least(KERNEL(X), r, 0.1) for r in rest.T) <= upper


def test_targets_that_do_not_vary():
    X, _ = rows(50)
    with pytest.warns(UndeterminedWarning):
        model = SparseGreedyGPRegressor().fit(X, np.full(50, 1 / 3))
    assert model.gap_ == 0.0 and len(model.basis_indices_) == 1
    np.testing.assert_allclose(model.predict(X), 1 / 3)


def test_objects_that_are_not_numbers():
    words = "the rows of a basis are chosen one at a time until the gap is proved".split()
    kernel = 1.0 * Callable(shared)
    model = SparseGreedyGPRegressor(kernel, NOISE, optimizer=None, tol=1e-6)
    model.fit(words, [float(len(word)) for word in words])
    assert model.gap_ <= 1e-6 and np.all(np.isfinite(model.predict(["proof"])))


def shared(a, b):
    return float(len(set(a) & set(b)))


# --- hyperparameters ------------------------------------------------------------------------------


def test_hyperparameters_are_near_those_of_exact_regression():
    X, y = rows(600)
    model = SparseGreedyGPRegressor(random_state=0).fit(X, y)
    exact = GPRegressor().fit(X, y)
    assert model.status_ == "converged" and model.gap_ <= 0.005
    same = GPRegressor(model.kernel_, model.likelihood_, optimizer=None).fit(X, y)
    assert same.log_marginal_likelihood_value_ > exact.log_marginal_likelihood_value_ - 0.5
    Z, z = rows(400, seed=9)
    errors = [np.mean((each.predict(Z) - z) ** 2) for each in (model, exact)]
    assert errors[0] <= 1.01 * errors[1]
    assert model.log_marginal_likelihood(model.theta_) == pytest.approx(
        model.log_marginal_likelihood_value_, rel=1e-10
    )


def test_the_same_seed_is_the_same_model():
    X, y = rows(200)
    one, same, other = (
        SparseGreedyGPRegressor(n_candidates=5, random_state=s).fit(X, y) for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.basis_indices_, same.basis_indices_)
    np.testing.assert_array_equal(one.predict(X), same.predict(X))
    assert not np.array_equal(one.basis_indices_, other.basis_indices_)


# --- going on -------------------------------------------------------------------------------------


@pytest.mark.parametrize("saved", [False, True])
def test_a_warm_start_goes_on(saved, tmp_path):
    X, y = rows()
    options = {**HELD, "mean": "zero", "warm_start": True, "n_candidates": 9}
    part = SparseGreedyGPRegressor(**options, tol=0.1).fit(X, y - 5.0)
    size = len(part.basis_indices_)
    if saved:
        mercer.save(part, tmp_path / "model")
        part = mercer.load(tmp_path / "model")
    part.set_params(tol=0.002, random_state=None).fit(X, y - 5.0)
    whole = SparseGreedyGPRegressor(**options, tol=0.002).fit(X, y - 5.0)
    assert size < len(part.basis_indices_) and part.gap_ <= 0.002
    shorter = min(len(part.basis_indices_), len(whole.basis_indices_))
    np.testing.assert_array_equal(part.basis_indices_[:shorter], whole.basis_indices_[:shorter])
    np.testing.assert_allclose(part.predict(X), whole.predict(X), atol=0.02)


def test_a_warm_start_keeps_what_a_search_has_found():
    X, y = rows(200)
    model = SparseGreedyGPRegressor(warm_start=True, random_state=0, tol=0.05).fit(X, y)
    theta, first, count = model.kernel_.theta, model.basis_indices_, len(model.history_["value"])
    model.set_params(tol=1e-4).fit(X, y)
    np.testing.assert_array_equal(model.kernel_.theta, theta)
    np.testing.assert_array_equal(model.basis_indices_[: len(first)], first)
    assert model.gap_ <= 1e-4 and model.status_ == "converged"
    assert len(model.history_["value"]) == count
    model.fit(X[:150], y[:150])  # other rows are another fit
    assert len(model.X_train_) == 150 and model.basis_indices_.max() < 150


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({}, {"mean": "zero"}),
        ({"mean": "zero"}, {"mean": "constant"}),
        ({"mean": "constant"}, {"mean": means.Constant(3.0, estimate=None)}),
        ({"normalize_y": True}, {"normalize_y": False}),
        ({"kernel": RBF(1.5)}, {"kernel": Matern(1.5, nu=0.5)}),
        ({}, {"likelihood": Gaussian(np.full(300, 0.01), 0.01)}),
        ({}, {"n_candidates": 5}),
        ({}, {"dual": "subset", "max_basis": 40}),
        ({"max_basis": 8}, {"max_basis": 4}),
    ],
)
@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
def test_another_problem_is_begun_anew_by_a_warm_start(first, then):
    X, y = rows()
    options = {**HELD, "tol": 0.3, "warm_start": True, **first}
    model = SparseGreedyGPRegressor(**options).fit(X, y)
    model.set_params(**then).fit(X, y)
    fresh = SparseGreedyGPRegressor(**{**options, **then}).fit(X, y)
    np.testing.assert_array_equal(model.basis_indices_, fresh.basis_indices_)
    assert model.gap_ == pytest.approx(fresh.gap_, rel=1e-9)
    rest = (y - model.mean_(X)[:, 0]) / model.posterior_.scale[0]
    s2 = model.likelihood_.new_variance
    wanted = least(model.kernel_(X), rest, s2)
    lower, upper = model.log_posterior_bounds_
    assert lower <= wanted <= upper


def test_a_function_that_was_changed_is_another_problem():
    X, y = rows(80, 1)
    width = [1.0]

    def section(A, B):
        return np.exp(-((A - B.T) ** 2) / width[0])

    kernel = Callable(section, vectorised=True)
    model = SparseGreedyGPRegressor(**{**HELD, "kernel": kernel}, tol=0.3, warm_start=True)
    model.fit(X, y)
    width[0] = 0.01
    model.fit(X, y)
    fresh = SparseGreedyGPRegressor(**{**HELD, "kernel": kernel}, tol=0.3).fit(X, y)
    np.testing.assert_array_equal(model.basis_indices_, fresh.basis_indices_)


def test_a_search_that_is_asked_for_after_none_is_made():
    X, y = rows(150)
    model = SparseGreedyGPRegressor(**HELD, warm_start=True).fit(X, y)
    theta = model.kernel_.theta
    model.set_params(optimizer="lbfgs").fit(X, y)
    assert model.status_ == "converged" and not np.allclose(model.kernel_.theta, theta, atol=1e-3)
    found, count = model.kernel_.theta, len(model.history_["value"])
    for tol in (1e-3, 1e-4):  # from there on it is kept
        model.set_params(tol=tol).fit(X, y)
        np.testing.assert_allclose(model.kernel_.theta, found, rtol=1e-12)
        assert len(model.history_["value"]) == count


def test_the_most_basis_functions_there_may_be():
    X, y = rows()
    model = SparseGreedyGPRegressor(**HELD, max_basis=7, tol=1e-4)
    with pytest.warns(ConvergenceWarning, match=r"with 7 basis functions.*raise max_basis"):
        model.fit(X, y)
    assert len(model.basis_indices_) == 7 and model.selection_status_ == "stopped"
    lower, upper = model.log_posterior_bounds_
    assert lower <= least(KERNEL(X), y - model.mean_(X)[:, 0], 0.1) <= upper


def test_an_interrupt_leaves_a_certified_model(monkeypatch):
    X, y = rows()
    engine = mercer.inference.greedy.Greedy
    grown = engine._add

    def add(self, choice):
        if self.factor.size == 9:
            raise KeyboardInterrupt
        grown(self, choice)

    monkeypatch.setattr(engine, "_add", add)
    model = SparseGreedyGPRegressor(**HELD, tol=1e-6)
    with pytest.warns(ConvergenceWarning, match=r"interrupted with 9 basis functions, the Gap"):
        model.fit(X, y)
    assert model.selection_status_ == "interrupted" and len(model.basis_indices_) == 9
    lower, upper = model.log_posterior_bounds_
    assert lower <= least(KERNEL(X), y - model.mean_(X)[:, 0], 0.1) <= upper
    monkeypatch.setattr(engine, "_add", grown)
    model.set_params(warm_start=True).fit(X, y)
    assert model.selection_status_ == "certified"


def _once(function, number=1):
    """Return the function, but for an interrupt at this call of it."""
    calls = []

    def interrupted(*given, **options):
        calls.append(1)
        if len(calls) == number:
            raise KeyboardInterrupt
        return function(*given, **options)

    return interrupted


@pytest.mark.parametrize(
    ("module", "name", "number", "words"),
    [
        (prepare_sparse.Objective, "__call__", 4, "interrupted after 3 evaluations"),
        (greedy_search, "engine_of", 1, "search was interrupted"),
        (greedy_search, "search", 1, "search was interrupted"),
        (greedy_search, "engine_of", 2, "search was interrupted"),
        (greedy_search.SparseObjective, "__call__", 1, "search was interrupted"),
        (greedy_search.SparseObjective, "__call__", 3, "interrupted after 2 evaluations"),
        (greedy_search.SparseObjective, "value", 1, "search was interrupted"),
        (greedy_fit, "engine_of", 1, "interrupted as the choice of the basis began"),
        (greedy_fit.SparseObjective, "fitted", 1, "interrupted as the posterior of the basis"),
    ],
)
def test_an_interrupted_search_keeps_the_best_and_is_certified(
    monkeypatch, module, name, number, words
):
    X, y = rows(200)
    model = SparseGreedyGPRegressor(1.0 * RBF(30.0), Gaussian(1.0), random_state=0, tol=0.01)
    monkeypatch.setattr(module, name, _once(getattr(module, name), number))
    with pytest.warns(ConvergenceWarning, match=words) as told:
        model.fit(X, y)
    assert len(told) == 1
    assert model.gap_ <= 0.01 and model.selection_status_ == "certified"
    start = GPRegressor(1.0 * RBF(30.0), Gaussian(1.0), optimizer=None).fit(X, y)
    kept = GPRegressor(model.kernel_, model.likelihood_, optimizer=None).fit(X, y)
    assert kept.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_ + 1.0
    assert (model.status_ == "interrupted") == (not words.startswith("interrupted as"))
    model.set_params(warm_start=True).fit(X, y)  # the search goes on
    assert model.status_ == "converged"


def test_two_interrupts_end_a_fit(monkeypatch):
    X, y = rows(100)
    monkeypatch.setattr(greedy_search, "search", _once(greedy_search.search))
    monkeypatch.setattr(greedy_fit, "engine_of", _once(greedy_fit.engine_of))
    model = SparseGreedyGPRegressor(random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "kernel_")


def test_bounds_belong_to_the_mean_though_every_round_grows(monkeypatch):
    X, y = rows(300)
    grow = mercer.inference.greedy.Greedy.grow

    def growing(self, tol, most=None, progress=None, certify=True):
        if certify and most == len(self.rows):  # another row each time
            grow(self, 0.0, self.factor.size + 1, progress, certify=False)
            return self.solution("certified")
        return grow(self, tol, most, progress, certify)

    monkeypatch.setattr(mercer.inference.greedy.Greedy, "grow", growing)
    model = SparseGreedyGPRegressor(**HELD, mean="linear", tol=0.5).fit(X, y + 2.0 * X[:, 0])
    rest = y + 2.0 * X[:, 0] - model.mean_(X)[:, 0]
    f = model.predict(X, latent=True) - model.mean_(X)[:, 0]
    alpha = model.posterior_.alpha[:, 0]
    norm = alpha @ KERNEL(model.inducing_) @ alpha
    lower, upper = model.log_posterior_bounds_
    assert upper == pytest.approx(-rest @ f + 0.5 * (0.1 * norm + f @ f), rel=1e-9)
    assert lower <= least(KERNEL(X), rest, 0.1) <= upper


def test_nothing_to_explain_is_told_as_a_certificate_tells_it():
    X, _ = rows(60)
    y = X @ [1.0, 2.0]
    model = SparseGreedyGPRegressor(**HELD, mean="linear").fit(X, y)
    assert model.gap_ == 0.0 == mercer.certificate(model, X, y).gap
    y = y + np.random.default_rng(1).normal(size=60)  # but noise, which a line cannot explain
    model = SparseGreedyGPRegressor(**{**HELD, "kernel": Linear()}, mean="linear")
    model.fit(X, y)
    assert model.selection_status_ == "certified" and len(model.basis_indices_) == 1
    assert 0.0 < model.gap_ <= 60 * 4 * np.finfo(float).eps
    assert mercer.certificate(model, X, y).gap <= 1e-4  # relative to rounding
    subset = clone(model).set_params(dual="subset")  # which proves nothing of it
    with pytest.warns(ConvergenceWarning, match="could explain of the targets"):
        subset.fit(X, y)
    assert subset.selection_status_ == "exhausted" and subset.gap_ > 1.0


def test_progress_is_told(capsys):
    X, y = rows(400)
    SparseGreedyGPRegressor(0.5 * Matern(0.5, nu=0.5), NOISE, optimizer=None, verbose=1).fit(X, y)
    told = capsys.readouterr().err
    assert "choosing rows until the Gap is 0.005" in told and "50 basis functions, Gap" in told
    assert "done: " in told


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tol": -0.1}, "tol must be a Gap"),
        ({"tol": "small"}, "tol must be a number"),
        ({"n_candidates": 0}, "n_candidates must be"),
        ({"n_candidates": "some"}, "n_candidates must be"),
        ({"max_basis": 0}, "max_basis must be"),
        ({"dual": "worst"}, "dual must be one of"),
        ({"kernel": "precomputed"}, "use GPRegressor"),
        ({"likelihood": StudentT()}, "Gaussian noise alone"),
        ({"likelihood": Gaussian(np.eye(30))}, "full noise covariance"),
        ({"mean": means.Constant(estimate="integrate")}, "estimate='ml'"),
        ({"n_restarts": -1}, "n_restarts must be"),
    ],
)
def test_what_is_refused(options, words):
    X, y = rows(30)
    with pytest.raises(ValueError, match=words):
        SparseGreedyGPRegressor(**options).fit(X, y)


@pytest.mark.parametrize("tol", [-1.0, "a"])
def test_what_variance_bounds_refuse(tol):
    X, y = rows(30)
    model = SparseGreedyGPRegressor(**HELD).fit(X, y)
    with pytest.raises(ValueError, match="tol must be a number"):
        model.predict_variance_bounds(X, tol)


def test_a_fit_that_fails_leaves_the_last_one():
    X, y = rows(60)
    model = SparseGreedyGPRegressor(**HELD).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.where(np.arange(60) == 3, np.nan, y))
    np.testing.assert_array_equal(model.predict(X), before)


def test_no_warnings_in_an_ordinary_fit():
    X, y = rows(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(SparseGreedyGPRegressor(random_state=0)).fit(X, y)
