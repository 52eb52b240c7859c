"""SparseGPRegressor: the approximations as the engine has them, and what surrounds them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError

from mercer import GPRegressor, SparseGPRegressor, estimators, load, means, save
from mercer.errors import JitterWarning, MercerWarning, TooLargeError
from mercer.estimators import inducing, memory, mended, prepare_sparse
from mercer.evidence import maximise
from mercer.evidence.objective import Data
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.inference._approximations import APPROXIMATIONS, approximation
from mercer.inference._sparse_predictive import augmented, nystrom, predictive
from mercer.kernels import RBF, Callable, Linear
from mercer.likelihoods import Gaussian, StudentT
from mercer.params import Parameter
from mercer.posterior import AugmentedPredictive, BlockPredictive, Posterior
from mercer.selection import STRATEGIES
from mercer.testing import check_regressor

from .data import quiet_fit

RNG = np.random.default_rng(3)
N, M = 60, 10
X = RNG.uniform(-2.0, 2.0, (N, 2))
Y = 1.5 + np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=N)
Z = RNG.uniform(-2.0, 2.0, (M, 2))
X_NEW = RNG.uniform(-2.5, 2.5, (9, 2))
GROUPS = np.where(X[:, 0] > 0, "right", "left")
KERNEL, NOISE = 1.3 * RBF([0.9, 1.6]), Gaussian(0.05)
ALL = [*APPROXIMATIONS, "nystrom", "sod"]
BLOCKS = ("pitc", "pic")


def held(name="vfe", **options):
    given = {"optimizer": None, "inducing": Z, "approximation": name, **options}
    return SparseGPRegressor(KERNEL, NOISE, **given)


def fitted(name="vfe", X=X, y=Y, **options):
    fit = {key: options.pop(key) for key in ("groups", "sample_weight", "query") if key in options}
    if name in BLOCKS:
        fit.setdefault("groups", np.where(X[:, 0] > 0, "right", "left"))
    return quiet_fit(held(name, **options), X, y, **fit)


def quietly(call, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call(*args, **kwargs)


# --- as the engine says -----------------------------------------------------------------------


def engine(name, augment=False, weights=None):
    order = np.argsort(GROUPS, kind="stable") if name in BLOCKS else np.arange(N)
    groups = (GROUPS[order] == "right").astype(np.intp) if name in BLOCKS else None
    w = None if weights is None else weights[order]
    data = Data(X[order], Y[order, None], w, np.ones(1))
    kind = approximation("dtc" if name == "nystrom" else name)
    objective = SparseObjective(
        KERNEL, NOISE, means.Constant(), data, InducingInputs(Z), kind, groups
    )
    problem = objective.problem(KERNEL, NOISE, objective.inducing)
    make = augmented if augment else nystrom if name == "nystrom" else predictive
    process, solution = make(problem, means.Constant(), np.ones(1))
    return process, solution.log_evidence + objective.constant()


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, N)], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", ALL[:-1])
def test_predictions_and_evidence_are_the_engines(name, weights):
    model = fitted(name, sample_weight=weights)
    process, evidence = engine(name, weights=weights)
    mean, std = quietly(model.predict, X_NEW, return_std=True, latent=True)
    wanted = quietly(process.mean_and_var, X_NEW)
    np.testing.assert_allclose(mean, wanted[0][:, 0], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(std**2, wanted[1][:, 0], rtol=1e-7, atol=1e-10)
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, rel=1e-10)
    assert model.status_ == "fixed"
    np.testing.assert_array_equal(model.inducing_, Z)


@pytest.mark.parametrize("name", APPROXIMATIONS)
def test_augmented_predictions_are_the_engines(name):
    model = fitted(name, augment=True)
    assert isinstance(model.predictive_, AugmentedPredictive) and not hasattr(model, "posterior_")
    mean, std = model.predict(X_NEW, return_std=True, latent=True)
    wanted = engine(name, augment=True)[0].mean_and_var(X_NEW)
    np.testing.assert_allclose(mean, wanted[0][:, 0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(std**2, wanted[1][:, 0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_with_all_rows_inducing_it_is_exact(name):
    """SoR in its mean alone (UV Remark 3): its variance dies out away from the rows."""
    exact = GPRegressor(KERNEL, NOISE, optimizer=None).fit(X, Y)
    model = fitted(name, inducing="random", n_inducing=N)
    assert len(model.inducing_) == N
    wanted, got = (quietly(m.predict, X_NEW, return_std=True) for m in (exact, model))
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-5, atol=1e-6)
    if name != "sor":
        np.testing.assert_allclose(got[1], wanted[1], rtol=1e-4)
    value = exact.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood_value_ == pytest.approx(value, abs=1e-3)
    assert model.evidence_bounds_ == pytest.approx((value, value), abs=1e-3)
    assert model.unexplained_ == pytest.approx(0.0, abs=1e-6)


def test_a_search_over_all_rows_ends_where_the_exact_one_does():
    exact = quiet_fit(GPRegressor(), X, Y)
    for name in ("vfe", "sod"):
        model = quiet_fit(SparseGPRegressor(approximation=name), X, Y)
        np.testing.assert_allclose(model.theta_, exact.theta_, atol=2e-2)
        np.testing.assert_allclose(model.predict(X_NEW), exact.predict(X_NEW), atol=1e-2)


# --- a subset of the data ---------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_subset_of_data_is_exact_on_its_rows(strategy):
    model = fitted("sod", inducing=strategy, n_inducing=M, random_state=0)
    kept = np.flatnonzero(np.all(X[:, None] == model.X_train_, axis=2).any(axis=1))
    assert kept.size == len(model.inducing_) <= M
    np.testing.assert_array_equal(np.sort(model.X_train_, axis=0), np.sort(X[kept], axis=0))
    exact = GPRegressor(KERNEL, NOISE, optimizer=None).fit(X[kept], Y[kept])
    np.testing.assert_allclose(model.predict(X_NEW), exact.predict(X_NEW), rtol=1e-9)
    value = exact.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-10)
    assert model.loo().mean.shape == kept.shape


def test_subset_of_data_counts_repeats_where_all_rows_are_in_it():
    model = fitted("sod", X=np.repeat(X[:4], 3, axis=0), y=np.repeat(Y[:4], 3), inducing="random")
    np.testing.assert_array_equal(model.sample_weight_, [3.0] * 4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_row_of_a_subset_counts_once(strategy):
    weights = np.where(np.arange(N) % 3, 2.0, 0.5)
    options = {"inducing": strategy, "n_inducing": 7, "random_state": 0}
    model = fitted("sod", sample_weight=weights, **options)
    rows = [np.flatnonzero(np.all(x == X, axis=1))[0] for x in model.X_train_]
    got = 1.0 if model.sample_weight_ is None else model.sample_weight_
    np.testing.assert_array_equal(np.broadcast_to(got, 7), np.minimum(weights[rows], 1.0))


@pytest.mark.parametrize("written", [True, False], ids=["rows", "weights"])
def test_rows_that_repeat_do_not_make_the_noise_of_a_subset_small(written):
    A, y = wavy(600, 0.3)
    twice = np.arange(600) < 300
    weights = None if written else 1.0 + twice
    if written:
        A, y = np.vstack([A, A[twice]]), np.append(y, y[twice])
    model = SparseGPRegressor(approximation="sod", n_inducing=150, random_state=0)
    assert quiet_fit(model, A, y, sample_weight=weights).likelihood_.new_variance > 0.06


def test_subset_of_data_asks_for_memory_first(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(TooLargeError):
        held("sod", inducing="random").fit(X, Y)


# --- inducing inputs and blocks ---------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_choices_do_not_depend_on_how_rows_are_written(strategy):
    weights = np.ones(N)
    weights[[3, 8]], weights[5] = 2.0, 0.0
    rows = RNG.permutation(np.repeat(np.arange(N), weights.astype(int)))
    options = {"inducing": strategy, "n_inducing": 7, "random_state": 1}
    for name in ("vfe", "pitc", "sod"):
        one = quiet_fit(held(name, **options), X, Y, sample_weight=weights)
        two = quiet_fit(held(name, **options), X[rows], Y[rows])
        np.testing.assert_allclose(one.inducing_, two.inducing_, rtol=1e-12)
        got, wanted = (m.predict(X_NEW, return_std=True) for m in (two, one))
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)


def test_learned_inputs_raise_the_bound():
    still, moved = (
        quiet_fit(
            SparseGPRegressor(
                approximation="vfe", n_inducing=5, learn_inducing=learn, random_state=0
            ),
            X,
            Y,
        )
        for learn in (False, True)
    )
    assert moved.log_marginal_likelihood_value_ > still.log_marginal_likelihood_value_ + 1.0
    assert not np.array_equal(moved.inducing_, still.inducing_)


def test_a_search_that_moves_them_ends_once_it_gains_little():
    model = fitted(optimizer="lbfgs", inducing="kmeans", n_inducing=M, max_iter=1000)
    assert model.status_ == "converged"
    assert 10 < model.n_iter_ < 200
    best = np.maximum.accumulate(model.history_["value"])
    assert 0 < best[-1] - best[-10] < 0.1


def test_jitter_is_told_of_where_it_is_not_small_beside_the_noise():
    twice = np.concatenate([Z, Z])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = held(inducing=twice).fit(X, Y)
    assert 0 < model.jitter_ < 1e-8
    once = held(inducing=Z).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_NEW), once.predict(X_NEW), rtol=1e-6)
    with pytest.warns(JitterWarning, match="inducing variables.*may coincide"):
        held(inducing=twice).set_params(likelihood=Gaussian(1e-8)).fit(X, Y)


def test_points_to_be_predicted_as_inducing_inputs():
    model = quiet_fit(SparseGPRegressor(inducing="query"), X, Y, query=X_NEW)
    np.testing.assert_array_equal(model.inducing_, X_NEW)  # though a search has been made
    np.testing.assert_array_equal(
        fitted("fitc", inducing="query", query=Z).predict(X_NEW), fitted("fitc").predict(X_NEW)
    )


@pytest.mark.parametrize("blocks", ["kmeans", "contiguous"])
def test_blocks_are_about_as_large_as_there_are_inducing_inputs(blocks):
    model = held("pitc", inducing="random", n_inducing=8, blocks=blocks).fit(X, Y)
    sizes = np.bincount(model._groups)
    assert sizes.min() > 0 and sizes.max() <= 16 and sizes.sum() == N


def test_blocks_of_inputs_that_repeat_are_cut():
    A = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
    y = np.sin(np.arange(100.0))
    model = quiet_fit(held("pitc", inducing="kmeans", n_inducing=2), A, y)
    assert np.bincount(model._groups).max() <= 8
    assert len(model.inducing_) == 2


def test_new_points_join_the_groups_that_they_name():
    model = fitted("pic")
    assert isinstance(model.predictive_, BlockPredictive) and not hasattr(model, "posterior_")
    near = np.where(X_NEW[:, 0] > 0, "right", "left")
    other = np.where(near == "left", "right", "left")
    away = model.predict(X_NEW, groups=other, return_std=True)
    wanted = model.predictive_.at(other).mean_and_var(X_NEW)
    np.testing.assert_array_equal(away[0], wanted[0][:, 0])
    assert np.max(np.abs(away[0] - model.predict(X_NEW, groups=near))) > 1e-3
    with pytest.raises(ValueError, match="labels of training blocks"):
        model.predict(X_NEW, groups=np.full(9, "middle"))
    with pytest.raises(ValueError, match="'pic' alone"):
        fitted("pitc").predict(X_NEW, groups=near)


def test_labels_of_any_type_and_weights_of_zero():
    weights = np.ones(N)
    weights[:20] = 0.0
    labels = np.array(GROUPS, dtype=object)
    model = fitted("pic", sample_weight=weights, groups=labels)
    kept = fitted("pic", X=X[20:], y=Y[20:], groups=GROUPS[20:])
    np.testing.assert_allclose(model.predict(X_NEW), kept.predict(X_NEW), rtol=1e-9)


def test_inputs_that_are_no_numbers():
    words = ["abc", "abd", "bce", "xyz", "xyw", "zzz"]
    kernel = Callable(shared)
    model = SparseGPRegressor(kernel, NOISE, n_inducing=3, optimizer=None, random_state=0)
    assert len(quiet_fit(model, words, np.arange(6.0)).inducing_) == 3
    assert np.all(np.isfinite(model.predict(["abz"])))
    quiet_fit(model.set_params(approximation="pitc"), words, np.arange(6.0))
    assert np.all(np.isfinite(model.predict(["abz"])))


def shared(a, b):
    return float(len(set(a) & set(b))) + (a == b)


# --- certificates -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_bounds_bracket_the_exact_evidence(name):
    weights = np.linspace(0.5, 2.0, N)
    exact = GPRegressor(KERNEL, NOISE, optimizer=None).fit(X, Y, weights)
    given = {} if name != "sod" else {"inducing": "random", "n_inducing": M}
    lower, upper = fitted(name, sample_weight=weights, **given).evidence_bounds_
    assert lower < exact.log_marginal_likelihood_value_ < upper


def test_bounds_are_in_the_units_of_the_targets():
    exact = GPRegressor(KERNEL, NOISE, normalize_y=True, optimizer=None).fit(X, 100.0 * Y)
    lower, upper = fitted(y=100.0 * Y, normalize_y=True).evidence_bounds_
    assert lower < exact.log_marginal_likelihood_value_ < upper


def test_too_few_inducing_inputs_are_told_of():
    A = np.linspace(0.0, 100.0, 80)[:, None]
    y = np.sin(3.0 * A[:, 0])
    options = {"optimizer": None, "n_inducing": 5}
    with pytest.warns(MercerWarning, match=r"5 inducing inputs leave 9\d%.*n_inducing, to 20"):
        SparseGPRegressor(RBF(0.5), Gaussian(0.01), **options).fit(A, y)
    with pytest.warns(MercerWarning, match="More of them would help, 20 say"):
        SparseGPRegressor(RBF(0.5), Gaussian(0.01), inducing=A[:5], optimizer=None).fit(A, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted_well = held().fit(X, Y)
    assert 0.0 < fitted_well.unexplained_ < 0.5


# --- the surface ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in ALL]
    + [("fitc", {"joint": "independent"}), ("dtc", {"augment": True}), ("pitc", {"augment": True})],
)
def test_every_predictive_is_saved(name, options, tmp_path):
    if name == "sod":
        options = {"inducing": "random", "n_inducing": M, "random_state": 0}
    model = fitted(name, y=np.column_stack([Y, 3.0 * Y]), **options)
    save(model, tmp_path / "model.mercer")
    back = load(tmp_path / "model.mercer")
    for got, wanted in zip(
        quietly(back.predict, X_NEW, return_std=True),
        quietly(model.predict, X_NEW, return_std=True),
        strict=True,
    ):
        assert got.shape == (9, 2)
        np.testing.assert_array_equal(got, wanted)
    theta = model.theta_ + 0.1
    assert back.log_marginal_likelihood(theta) == model.log_marginal_likelihood(theta)
    assert tuple(back.evidence_bounds_) == model.evidence_bounds_
    if name == "pic":
        near = np.repeat("left", 9)
        np.testing.assert_array_equal(
            back.predict(X_NEW, groups=near), model.predict(X_NEW, groups=near)
        )


@pytest.mark.parametrize("name", ["vfe", "fitc", "pitc"])
def test_a_pruned_posterior_predicts(name):
    model = fitted(name)
    assert isinstance(model.posterior_, Posterior)
    model.posterior_, loss = model.posterior_.prune(M - 3)
    assert loss > 0 and model.predictive_.n_basis == M - 3
    assert model.predict(X_NEW).shape == (9,)


def test_the_rules_hold_where_variances_may_be_cut_off():
    quietly(check_regressor, held("nystrom", inducing="kmeans", n_inducing=8))


def test_augmented_points_have_no_joint_covariance():
    names = ["rule_weights", "rule_order_of_rows", "rule_data_are_copied", "rule_predict_by_rows"]
    names += ["rule_pickle_and_clone", "rule_input_gradient", "rule_evidence", "rule_predictive"]
    for name in ("vfe", "fitc", "pitc"):
        model = held(name, inducing="kmeans", n_inducing=8, augment=True)
        assert check_regressor(model, only=names).held
    with pytest.raises(ValueError, match="joint covariance"):
        fitted(augment=True).predict(X_NEW, return_cov=True)


def test_defaults_find_a_signal_among_noise_and_idle_columns():
    rng = np.random.default_rng(0)
    A = rng.uniform(-3.0, 3.0, (1200, 3))
    y = 40.0 + 10.0 * np.sin(2.0 * A[:, 0]) + rng.normal(size=1200)
    model = SparseGPRegressor(approximation="vfe", n_inducing=30, max_iter=40, random_state=0)
    quiet_fit(model, A, y)
    B = rng.uniform(-2.5, 2.5, (200, 3))
    mean, std = model.predict(B, return_std=True)
    truth = 40.0 + 10.0 * np.sin(2.0 * B[:, 0])
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.4
    assert np.mean(std) == pytest.approx(1.0, abs=0.15)
    lower, upper = model.evidence_bounds_
    assert lower == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-6)
    assert upper - lower < 200.0


# --- what is taken by itself ------------------------------------------------------------------


def wavy(n, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.uniform(-3.0, 3.0, (n, 2))
    return A, np.sin(3.0 * A[:, 0]) * np.cos(A[:, 1]) + noise * rng.normal(size=n)


def test_few_rows_are_fitted_exactly_by_default():
    A, y = wavy(150)
    model, exact = (quiet_fit(m, A, y) for m in (SparseGPRegressor(), GPRegressor()))
    assert (model.approximation_, model.inference_) == ("sod", "exact")
    np.testing.assert_allclose(model.predict(A), exact.predict(A), rtol=1e-6)
    lower, upper = model.evidence_bounds_
    assert lower <= model.log_marginal_likelihood_value_ + 1e-3 <= upper + 2e-3


def test_the_default_predicts_by_blocks_under_the_hyperparameters_of_a_sample(monkeypatch):
    monkeypatch.setattr(prepare_sparse, "_SEARCHED", 120)
    monkeypatch.setattr(inducing, "_NUMBER", 40)
    A, y = wavy(600)
    model = quiet_fit(SparseGPRegressor(random_state=0), A, y)
    assert model.approximation_ == "pic" and model.inducing_.shape == (40, 2)
    assert len(model.X_train_) == 600 and model.status_ == "converged"
    B, truth = wavy(200, 0.0, seed=1)
    mean, std = model.predict(B, return_std=True)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.08
    assert np.mean(std) == pytest.approx(0.11, abs=0.04)


@pytest.mark.parametrize(
    "options",
    [{"learn_inducing": True}, {"augment": True}, {"joint": "independent"}, {"inducing": "query"}],
    ids=str,
)
def test_the_default_is_vfe_where_blocks_do_not_go(options):
    query = X_NEW if options.get("inducing") == "query" else None
    model = SparseGPRegressor(KERNEL, NOISE, n_inducing=5, max_iter=2, **options)
    assert quiet_fit(model, X, Y, query=query).approximation_ == "vfe"


def test_hyperparameters_of_a_sample_that_suit_no_other_rows_are_mended(monkeypatch):
    """Without noise in the sample's model, all rows would be explained by nothing."""
    monkeypatch.setattr(prepare_sparse, "_SEARCHED", 30)
    A, y = wavy(500, 0.5)
    rough = 1.0 * RBF(Parameter([0.05, 0.05], bounds=(0.01, 3.0)))
    model = SparseGPRegressor(rough, Gaussian(1e-6), n_inducing=60, max_iter=1, random_state=0)
    B, truth = wavy(200, 0.5, seed=1)
    mean, std = quiet_fit(model, A, y).predict(B, return_std=True)
    assert np.mean(0.5 * ((truth - mean) / std) ** 2 + np.log(std)) < 0.5


@pytest.mark.parametrize("estimate", ["ml", "integrate"])
def test_variances_of_the_default_have_the_scale_that_all_rows_give_them(monkeypatch, estimate):
    monkeypatch.setattr(prepare_sparse, "_SEARCHED", 100)
    A, y = wavy(400)
    options = {"mean": means.Constant(estimate=estimate), "n_inducing": 40, "random_state": 0}
    model = SparseGPRegressor(1.0 * RBF([1.0, 1.0]), **options)
    quiet_fit(model, A, y, sample_weight=np.linspace(0.5, 2.0, 400))
    scaled = np.arange(model.theta_.size) % 3 == 0  # the kernel's and the noise's
    at = [model.log_marginal_likelihood(model.theta_ + step * scaled) for step in (-1e-2, 0, 1e-2)]
    assert at[0] < at[1] > at[2]
    assert at[0] - at[2] == pytest.approx(0.0, abs=1e-3)


def test_bounds_of_the_noise_hold_back_the_scale_of_all_variances():
    noise = Gaussian(Parameter(0.05, bounds=(0.05, 0.15)))
    kind, points = approximation("fitc"), InducingInputs(Z)
    data = Data(X, Y[:, None], None, np.ones(1))
    whole = SparseObjective(KERNEL, noise, means.Zero(), data, points, kind)
    for scale, wanted in ((0.5, 1.0), (2.0, 2.0), (9.0, 3.0)):
        scaled = np.exp(mended._times(whole, scale).theta - whole.theta)
        np.testing.assert_allclose(scaled, [wanted, 1.0, 1.0, wanted])


@pytest.mark.parametrize("written", [True, False], ids=["rows", "weights"])
def test_rows_that_repeat_do_not_make_the_noise_of_a_sample_small(monkeypatch, written):
    """Drawn with all of their repeats they would: a target that comes twice seems certain."""
    monkeypatch.setattr(prepare_sparse, "_SEARCHED", 150)
    A, y = wavy(600, 0.3)
    twice = np.arange(600) < 300
    if written:
        A, y, weights = np.vstack([A, A[twice]]), np.append(y, y[twice]), None
    else:
        weights = 1.0 + twice
    model = SparseGPRegressor(n_inducing=60, random_state=0)
    assert quiet_fit(model, A, y, sample_weight=weights).likelihood_.new_variance > 0.06


def test_blocks_are_near_in_the_columns_that_matter():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 3))
    units = inducing.block_units(2.0 * RBF([0.5, 100.0, 2.0]) + RBF([0.7, 9.0, 1.0]), A)
    np.testing.assert_allclose(units, [0.5, 9.0, 1.0])
    np.testing.assert_allclose(inducing.block_units(Linear(), A), A.std(axis=0))


def test_a_second_fit_starts_warm():
    settings = {"n_inducing": 6, "max_iter": 4, "warm_start": True, "random_state": 0}
    model = SparseGPRegressor(approximation="vfe", **settings)
    first = quiet_fit(model, X, Y).log_marginal_likelihood_value_
    assert quiet_fit(model, X, Y).log_marginal_likelihood_value_ > first
    assert quiet_fit(model.set_params(n_inducing=9), X, Y).inducing_.shape == (9, 2)


def test_inputs_are_kept_and_nobody_writes_into_them():
    A = X.copy()
    for name in ALL:
        given = {"inducing": "random", "n_inducing": M} if name == "sod" else {}
        model = fitted(name, X=A, **given)
        before = quietly(model.predict, X_NEW)
        assert not model.X_train_.flags.writeable
        A[:] = 7.0
        np.testing.assert_array_equal(quietly(model.predict, X_NEW), before)
        A[:] = X


def test_an_interrupted_search_ends_where_it_was_best():
    def interrupting(start, count, value, best):
        if count == 4:
            raise KeyboardInterrupt

    model = SparseGPRegressor(n_inducing=5, random_state=0, verbose=interrupting)
    quiet_fit(model, X, Y)
    assert len(model.history_["value"]) == 4 and "interrupt" in model.status_
    assert model.predict(X_NEW).shape == (9,)


def test_an_interruption_before_there_is_a_model_ends_the_fit(monkeypatch):
    def interrupted(objective, **options):
        return replace(maximise(objective, max_iter=1), status="interrupted")

    monkeypatch.setattr(prepare_sparse, "maximise", interrupted)
    model = SparseGPRegressor(approximation="vfe")
    with pytest.raises(KeyboardInterrupt):
        quiet_fit(model, X, Y)
    assert not hasattr(model, "kernel_")


def test_what_fit_and_predict_take_is_routed():
    with config_context(enable_metadata_routing=True):
        model = held("pic", inducing="kmeans", n_inducing=8)
        model.set_fit_request(groups=True, sample_weight=True, query=False)
        model.set_predict_request(groups=True)
        routed = model.get_metadata_routing()
    assert routed.fit.requests == {"groups": True, "sample_weight": True, "query": False}
    assert routed.predict.requests["groups"] is True


def test_another_approximation_leaves_nothing_behind():
    model = fitted("vfe")
    model.set_params(approximation="nystrom")
    quiet_fit(model, X, Y)
    assert not hasattr(model, "posterior_")
    model.set_params(approximation="vfe").fit(X, Y)
    assert model.predictive_ is model.posterior_


def test_known_noise_goes_with_its_rows():
    known = Gaussian(np.linspace(0.01, 0.3, N))
    exact = GPRegressor(KERNEL, known, optimizer=None).fit(X, Y)
    for name in ("vfe", "pitc", "sod"):
        model = SparseGPRegressor(
            KERNEL, known, approximation=name, optimizer=None, inducing="random"
        )
        groups = GROUPS if name == "pitc" else None
        quiet_fit(model, X, Y, groups=groups)
        np.testing.assert_allclose(model.predict(X_NEW), exact.predict(X_NEW), atol=1e-5)
    quiet_fit(SparseGPRegressor(KERNEL, known, n_inducing=M, max_iter=3), X, Y)


def test_it_is_found_by_its_names():
    assert estimators.SparseGPRegressor is SparseGPRegressor
    with pytest.raises(NotFittedError):
        SparseGPRegressor().predict(X)
    with pytest.raises(NotFittedError):
        SparseGPRegressor().log_marginal_likelihood()


@pytest.mark.parametrize(
    ("options", "fit", "text"),
    [
        ({"approximation": "sgpr"}, {}, "approximation must be one of 'auto', 'sor'.*'sgpr'"),
        ({"n_inducing": 0}, {}, "n_inducing must be a whole number from 1"),
        ({"inducing": "best"}, {}, "inducing must be one of 'random'.*'best'"),
        ({"inducing": Z[:, :1]}, {}, "inducing must have the 2 columns of X, got 1"),
        ({"inducing": Z[:0]}, {}, "inducing|inducing input"),
        ({"learn_inducing": 1}, {}, "learn_inducing must be True or False"),
        ({"augment": "yes"}, {}, "augment must be True or False"),
        ({"blocks": "random"}, {}, "blocks must be one of 'kmeans', 'contiguous'"),
        ({"approximation": "pep", "power": 2.0}, {}, "power must be from 0"),
        ({"joint": "no"}, {}, "joint must be 'exact' or 'independent'"),
        ({"approximation": "sor", "joint": "independent"}, {}, "joint='independent'.*'sor'"),
        ({"approximation": "nystrom", "joint": "independent"}, {}, "does not go with 'nystrom'"),
        ({"approximation": "sod", "augment": True}, {}, "augment=True goes with neither"),
        ({"approximation": "sod", "inducing": Z}, {}, "GPRegressor to them"),
        ({"approximation": "sod", "inducing": "query"}, {"query": Z}, "GPRegressor to them"),
        ({"inducing": "query"}, {}, "go together"),
        ({}, {"query": Z}, "go together"),
        ({"inducing": "query"}, {"query": Z[:, :1]}, "query must have the 2 columns of X"),
        (
            {"approximation": "vfe"},
            {"groups": GROUPS},
            "approximation='vfe' does not have; use 'pitc' or 'pic'",
        ),
        ({"approximation": "pitc"}, {"groups": GROUPS[1:]}, "a label for each of 60 rows"),
        ({"approximation": "pitc"}, {"groups": np.full(N, np.nan)}, "groups hold NaN"),
        ({"likelihood": StudentT(), "approximation": "vfe"}, {}, "'fitc', 'dtc', 'sor', got 'vfe'"),
        ({"likelihood": Gaussian(np.eye(N))}, {}, "couples the rows"),
        ({"kernel": "precomputed"}, {}, "precomputed.*use GPRegressor"),
    ],
)
def test_what_is_refused(options, fit, text):
    model = SparseGPRegressor(optimizer=None, **options)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=text):
        model.fit(X, Y, **fit)
    assert vars(model) == before
