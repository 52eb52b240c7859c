"""`GPRegressor(inference="iterative")` beside exact inference, and what it says of itself."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import GPRegressor, Iterative, means
from mercer.errors import ConvergenceWarning, TooLargeError
from mercer.estimators.prepare_iterative import warn_of_descent
from mercer.inference import _iterative_run, iterative
from mercer.inference._products import StoredProducts
from mercer.inference.iterative import IterativeProblem, Settings, solve
from mercer.kernels import RBF, Exponential
from mercer.likelihoods import Gaussian, StudentT
from mercer.params import Parameter

NEW = np.random.default_rng(5).uniform(-3, 3, (15, 2))
ROUGH = Iterative(tol=1e-12, rank=15, n_probes=20)


def rows(n=90, outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    f = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 5.0
    if outputs is None:
        return X, f + 0.1 * rng.normal(size=n)
    return X, f[:, None] * np.arange(1, outputs + 1) + 0.1 * rng.normal(size=(n, outputs))


def both(X, y, weights=None, new=NEW, **options):
    """Return an exact fit and an iterative one."""
    exact = GPRegressor(**options).fit(X, y, weights)
    options = {"inference": Iterative(tol=1e-20), "random_state": 0, **options}
    return exact, GPRegressor(**options).fit(X, y, weights)


def agree(exact, found, rtol=1e-6):
    np.testing.assert_allclose(found.theta_, exact.theta_, rtol=rtol, atol=1e-4)
    for latent in (True, False):
        one, other = (m.predict(NEW, return_std=True, latent=latent) for m in (exact, found))
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol)
    assert found.log_marginal_likelihood_value_ == pytest.approx(
        exact.log_marginal_likelihood_value_, rel=1e-6
    )


# --- the same as exact inference, where a low rank is enough ----------------------------------


def test_the_default_model():
    exact, found = both(*rows())
    agree(exact, found, 1e-4)
    assert found.inference_ == "iterative"
    assert found.status_ == "converged"
    assert found.log_marginal_likelihood_std_error_ < 1e-9
    assert found.jitter_ == 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"mean": "linear"},
        {"mean": means.Constant(estimate="integrate")},
        {"mean": "zero", "normalize_y": True},
        {"likelihood": Gaussian(np.linspace(0.01, 0.1, 90))},
        {"kernel": 2.0 * RBF([1.0, 2.0]), "optimizer": None, "likelihood": Gaussian(0.02)},
    ],
    ids=["linear", "integrated", "normalised", "known noise", "kept"],
)
def test_models(options):
    agree(*both(*rows(), **options), 1e-4)


def test_weights_and_several_outputs():
    X, Y = rows(outputs=2)
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    exact, found = both(X, Y, weights, optimizer=None, kernel=2.0 * RBF(), likelihood=Gaussian(0.1))
    agree(exact, found)
    often = np.repeat(np.arange(len(X)), weights.astype(int))
    model = clone(found).fit(X[often], Y[often])
    np.testing.assert_allclose(model.predict(NEW), found.predict(NEW), rtol=1e-8)
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        found.log_marginal_likelihood_value_, rel=1e-8
    )


def test_a_precomputed_kernel():
    X, y = rows()
    kernel = 2.0 * RBF()
    options = {"optimizer": None, "likelihood": Gaussian(0.1)}
    model = GPRegressor("precomputed", inference="iterative", **options).fit(kernel(X), y)
    exact = GPRegressor(kernel, **options).fit(X, y)
    given = np.hstack([kernel(NEW, X), kernel.diag(NEW)[:, None]])
    np.testing.assert_allclose(
        model.predict(given, return_std=True), exact.predict(NEW, return_std=True), rtol=1e-6
    )


def test_the_matrix_need_not_be_stored():
    X, y = rows()
    kept, anew = (
        GPRegressor(1.0 * RBF(), inference=Iterative(memory=memory), random_state=0).fit(X, y)
        for memory in (None, 0)
    )
    np.testing.assert_allclose(kept.predict(NEW), anew.predict(NEW), rtol=1e-6)


# --- estimates --------------------------------------------------------------------------------


def fixed(X, y, **options):
    kernel = 1.0 * Exponential([2.0, 2.0])
    options = {"optimizer": None, "likelihood": Gaussian(0.02), "random_state": 0, **options}
    return GPRegressor(kernel, **options).fit(X, y)


def test_what_is_estimated_is_within_its_error():
    X, y = rows(300)
    exact, found = fixed(X, y), fixed(X, y, inference=ROUGH)
    off = found.log_marginal_likelihood_value_ - exact.log_marginal_likelihood_value_
    assert 0 < abs(off) < 4 * found.log_marginal_likelihood_std_error_
    assert found.n_solver_iter_ > 5
    assert found.gap_ <= 1e-12
    np.testing.assert_allclose(found.predict(NEW), exact.predict(NEW), rtol=1e-5)
    (_, std), (_, conservative) = (m.predict(NEW, return_std=True) for m in (exact, found))
    assert np.all(conservative >= std)
    # the value at theta_ is the one that was kept, and has a gradient
    value, gradient = found.log_marginal_likelihood(found.theta_, eval_gradient=True)
    assert value == pytest.approx(found.log_marginal_likelihood_value_, abs=1e-6)
    assert np.all(np.isfinite(gradient))


def test_the_certificate_is_that_of_the_function():
    X, y = rows(300)
    found = fixed(X, y, inference=Iterative(tol=1e-3, rank=15))
    asked = mercer.certificate(found)
    assert found.gap_ <= 1e-3
    assert found.log_posterior_bounds_[1] == pytest.approx(asked.upper, rel=1e-9)
    assert found.log_posterior_bounds_[0] <= asked.lower + 1e-9 * abs(asked.lower)
    held = means.Constant(found.mean_.coefficients[0], estimate=None)
    exact = fixed(X, y, mean=held)
    error = np.sqrt(np.mean((found.predict(X) - exact.predict(X)) ** 2))
    assert 0.0 < error <= asked.fitted_error[0]


def test_variance_bounds():
    X, y = rows(300, outputs=2)
    exact, found = fixed(X, y), fixed(X, y, inference=ROUGH)
    var = exact.predict(NEW, return_std=True, latent=True)[1] ** 2
    lower, upper, used = found.predict_variance_bounds(NEW, tol=1e-8)
    assert used.tolist() == [300] * len(NEW)
    assert lower.shape == upper.shape == var.shape
    np.testing.assert_allclose(lower, var, rtol=1e-5)
    assert np.all((lower <= var * (1 + 1e-9)) & (var * (1 - 1e-9) <= upper))
    conservative = found.predict(NEW, return_std=True, latent=True)[1] ** 2
    assert np.all(upper <= conservative * (1 + 1e-9))
    assert not hasattr(exact, "predict_variance_bounds")
    for tol in (0, -1.0, np.nan, "small"):
        with pytest.raises(ValueError, match="tol"):
            found.predict_variance_bounds(NEW, tol=tol)


def test_variance_bounds_are_not_for_every_mean():
    X, y = rows()
    mean = means.Constant(estimate="integrate")
    with pytest.raises(ValueError, match="integrated out"):
        fixed(X, y, inference=ROUGH, mean=mean).predict_variance_bounds(NEW)


def test_a_search_over_estimates_ends_near_the_exact_optimum():
    X, y = rows(200)
    options = {"kernel": 1.0 * Exponential([1.0, 1.0]), "random_state": 0}
    exact = GPRegressor(**options).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = GPRegressor(inference=Iterative(rank=60), **options).fit(X, y)
    assert found.log_marginal_likelihood_std_error_ > 0
    # what is lost by the other theta, under the exact evidence
    theta = np.concatenate([found.theta_[:-1], exact.theta_[-1:]])
    lost = exact.log_marginal_likelihood_value_ - exact.log_marginal_likelihood(theta)
    assert lost < 0.5


def test_the_same_random_state_is_the_same_model():
    X, y = rows(150)
    options = {"inference": Iterative(rank=60), "likelihood": Gaussian(np.full(150, 0.02))}
    options["kernel"] = 1.0 * Exponential()
    one, two = (GPRegressor(random_state=3, **options).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.theta_, two.theta_)
    np.testing.assert_array_equal(*(m.predict(NEW, return_std=True) for m in (one, two)))


def test_restarts_on_several_threads():
    X, y = rows(60)
    options = {"inference": Iterative(rank=20), "n_restarts": 1, "random_state": 0}
    one, two = (GPRegressor(1.0 * RBF(), n_jobs=jobs, **options).fit(X, y) for jobs in (1, 2))
    np.testing.assert_allclose(one.theta_, two.theta_, rtol=1e-6)


def test_saved_and_loaded(tmp_path):
    X, y = rows()
    found = fixed(X, y, inference=ROUGH)
    mercer.save(found, tmp_path / "model.zip")
    again = mercer.load(tmp_path / "model.zip")
    assert again.inference == ROUGH
    np.testing.assert_array_equal(again.predict(NEW), found.predict(NEW))
    assert again.gap_ == found.gap_
    assert again.log_posterior_bounds_ == pytest.approx(found.log_posterior_bounds_)
    assert again.log_marginal_likelihood(again.theta_) == pytest.approx(
        found.log_marginal_likelihood_value_, abs=1e-6
    )


# --- what it says and refuses -----------------------------------------------------------------


def test_too_few_steps_are_told():
    X, y = rows(300)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 steps at a Gap of"):
        found = fixed(X, y, inference=Iterative(rank=5, max_iter=2))
    assert found.gap_ > 1e-8
    assert found.n_solver_iter_ == 2


def told(solution, gap, error=0.1):
    bounds = solution.bounds._replace(gap=gap)
    with pytest.warns(ConvergenceWarning) as found:
        warn_of_descent(solution._replace(bounds=bounds, std_error=error), Iterative(tol=1e-4))
    return str(found[0].message)


def test_the_warning_says_what_is_proved():
    rng = np.random.default_rng(0)
    X, few = rng.normal(size=(50, 2)), Settings(rank=5, max_iter=1)
    problem = IterativeProblem(RBF(0.3), X, X[:, :1], np.full(50, 1e-3), settings=few)
    solution = solve(problem)
    assert solution.status == "stopped"
    for gap in (1.9, 2.0):
        assert "nothing is proved" in told(solution, gap)
        assert "certified" not in told(solution, gap)
    assert "certified to" in told(solution, 0.01)
    within = told(solution, 1e-5, 12.3)
    assert "evidence is known to 12.3 nats" in within and "certified to" not in within
    # what it advises can be done
    assert "more noise" not in told(solution, 2.0)
    advice = re.search(r"Gaussian\(Parameter\(.*?\)\)\)", told(solution, 2.0))
    bounded = eval(advice.group(), {"Gaussian": Gaussian, "Parameter": Parameter})
    np.testing.assert_allclose(np.exp(bounded.bounds), [[0.01, 1.0]])


def test_an_interrupted_solve_keeps_a_certified_model(monkeypatch):
    X, y = rows(300)
    times, calls = StoredProducts.times, []

    def interrupted(self, A):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return times(self, A)

    monkeypatch.setattr(StoredProducts, "times", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted after 3 steps"):
        found = fixed(X, y, inference=ROUGH)
    assert found.status_ == "interrupted"
    assert 1e-12 < found.gap_ < 2
    assert np.all(np.isfinite(found.predict(NEW, return_std=True)))


def test_an_interrupt_as_variances_are_made_keeps_the_fit(monkeypatch):
    X, y = rows(300)

    def interrupted(F, work, progress):
        return np.empty((F.shape[1],) * 2, order="F"), 0

    monkeypatch.setattr(iterative, "_products_with", interrupted)
    with pytest.warns(ConvergenceWarning, match="variances may be larger than they need be"):
        found = fixed(X, y, inference=ROUGH)
    assert found.status_ == "interrupted" and found.gap_ <= 1e-12
    assert np.all(np.isfinite(found.predict(NEW, return_std=True)))


def test_a_solve_without_a_search_is_told(capsys):
    X, y = rows(300)
    fixed(X, y, inference=ROUGH, verbose=1)
    told = capsys.readouterr().err
    assert "solving for 300 rows by conjugate gradients" in told
    assert "10 steps, " in told and "variances: 15 of 15 columns" in told
    fixed(X, y, verbose=1)
    assert "conjugate" not in capsys.readouterr().err


def test_an_interrupted_search_keeps_its_best_point(monkeypatch):
    X, y = rows()
    descend, calls = _iterative_run.descend, []

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return descend(*args, **kwargs)

    monkeypatch.setattr(_iterative_run, "descend", interrupted)
    model = GPRegressor(1.0 * RBF(), inference="iterative", random_state=0)
    with pytest.warns(ConvergenceWarning, match="the fit was interrupted"):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert model.gap_ <= 1e-8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "loo"}, "objective='loo'"),
        ({"objective": "joint"}, "objective='joint'"),
        ({"likelihood": StudentT()}, "iterative inference is for Gaussian noise"),
        ({"likelihood": Gaussian(np.eye(90))}, "full noise covariance"),
        ({"likelihood": Gaussian(np.arange(90.0))}, "must be positive"),
        ({"inference": Iterative}, "brackets"),
        ({"inference": "conjugate"}, "inference must be one of .*'iterative'"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(ValueError, match=words):
        GPRegressor(**{"inference": "iterative", **options}).fit(*rows())


@pytest.mark.parametrize(
    "options",
    [
        {"tol": 0.0},
        {"tol": np.nan},
        {"tol": "small"},
        {"rank": 0},
        {"rank": 1.5},
        {"n_probes": 1},
        {"max_iter": 0},
        {"memory": -1},
        {"memory": 1.5},
    ],
)
def test_options_that_are_none(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Iterative(**options)


def test_what_takes_the_inverse_is_refused():
    X, y = rows()
    found = fixed(X, y, inference=ROUGH)
    with pytest.raises(ValueError, match="no leave-one-out"):
        found.loo()
    with pytest.raises(ValueError, match="no second derivatives"):
        found.standard_errors()
    exact = fixed(X, y, inference="iterative")  # of all rows
    np.testing.assert_allclose(
        list(exact.standard_errors().values()),
        list(fixed(X, y).standard_errors().values()),
        rtol=1e-3,
    )


def test_one_row_and_constant_targets():
    for X, y in [(np.zeros((1, 2)), np.ones(1)), (rows(20)[0], np.full(20, 3.0))]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GPRegressor(inference="iterative", random_state=0).fit(X, y)
        mean, std = model.predict(X, return_std=True)
        np.testing.assert_allclose(mean, y, rtol=1e-6)
        assert np.all(np.isfinite(std) & (std > 0))


def test_a_refit_by_another_engine_keeps_nothing_of_the_certificate():
    X, y = rows(60)
    model = GPRegressor(RBF(), Gaussian(0.1), inference="iterative", optimizer=None)
    model.fit(X, y)
    assert model.gap_ <= 1e-8
    model.set_params(inference="exact").fit(X, y)
    fresh = GPRegressor(RBF(), Gaussian(0.1), inference="exact", optimizer=None).fit(X, y)
    assert set(vars(model)) == set(vars(fresh))


def test_a_preconditioner_that_cannot_fit_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("mercer.estimators.memory.available_memory", lambda: 10_000)
    X, y = rows(60)
    with pytest.raises(TooLargeError, match="rank"):
        GPRegressor(inference="iterative").fit(X, y)
