"""SparseGPRegressor: the approximations as the engine has them, and what surrounds them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn import config_context
from sklearn.exceptions import NotFittedError

from mercer import GPRegressor, SparseGPRegressor, estimators, load, means, save
from mercer.errors import MercerWarning
from mercer.evidence.objective import Data
from mercer.evidence.sparse import InducingInputs, SparseObjective
from mercer.inference._approximations import APPROXIMATIONS, approximation
from mercer.inference._sparse_predictive import augmented, nystrom, predictive
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Logistic, Poisson, StudentT
from mercer.posterior import AugmentedPredictive, Posterior
from mercer.testing import check_regressor

from .data import quiet_fit
from .sparse_data import (
    ALL,
    BLOCKS,
    GROUPS,
    KERNEL,
    NOISE,
    X_NEW,
    M,
    N,
    X,
    Y,
    Z,
    fitted,
    held,
    quietly,
)

# --- as the engine says ----------------------------------------------------------------------


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


# --- certificates ----------------------------------------------------------------------------


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


# --- the surface -----------------------------------------------------------------------------


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


@pytest.mark.parametrize(("name", "options"), [("pic", {}), ("vfe", {"joint": "independent"})])
def test_a_posterior_that_is_put_there_predicts(name, options):
    model = fitted(name, **options)
    given = fitted("fitc").posterior_
    model.posterior_ = given
    np.testing.assert_array_equal(model.predict(X_NEW), given.mean(X_NEW)[:, 0])
    assert not hasattr(fitted("pic"), "posterior_")


def test_blocks_that_are_put_there_take_groups_and_are_saved(tmp_path):
    model, near = fitted("pic"), np.repeat("left", 9)
    expected = model.predict(X_NEW, groups=near)
    model.posterior_ = model.predictive_
    save(model, tmp_path / "model.mercer")
    for each in (model, load(tmp_path / "model.mercer")):
        np.testing.assert_array_equal(each.predict(X_NEW, groups=near), expected)


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


def test_what_a_fit_does_not_have_says_why():
    assert "no attribute 'posterior_'" in absent(held(), "posterior_")
    assert "approximation='pic' where new points" in absent(fitted("pic"), "posterior_")
    assert "with augment=True where" in absent(fitted("vfe", augment=True), "posterior_")
    taken = fitted("auto", groups=GROUPS)
    assert "'auto' has taken, where new points" in absent(taken, "posterior_")
    with pytest.raises(ValueError, match=r"'pic' joins the rows.*use approximation='vfe' or"):
        taken.loo()
    counts = SparseGPRegressor(KERNEL, Poisson(), optimizer=None, inducing=Z)
    quiet_fit(counts, X, np.round(Y**2))
    assert "by inference='laplace' of Poisson" in absent(counts, "evidence_bounds_")


def absent(model, name):
    assert not hasattr(model, name)
    with pytest.raises(AttributeError) as caught:
        getattr(model, name)
    return str(caught.value)


def test_whatever_is_predicted_may_be_joined_to_groups():
    model, y = fitted("pic"), np.ones(9)
    groups = pd.Series(["left"] * 9)
    mean, std = quietly(model.predict, X_NEW, return_std=True, groups=groups)
    low, high = model.predict_interval(X_NEW, 0.9, groups=groups)
    np.testing.assert_allclose([low, high], mean + np.outer([-1.0, 1.0], norm.ppf(0.95) * std))
    z = (y - mean) / std
    np.testing.assert_allclose(model.predict_cdf(X_NEW, y, groups), norm.cdf(z))
    density = model.log_predictive_density(X_NEW, y, groups=groups)
    np.testing.assert_allclose(density, norm.logpdf(z) - np.log(std))
    step = X_NEW + np.array([1e-6, 0.0])
    rise = (model.predict(step, groups=groups) - mean) / 1e-6
    np.testing.assert_allclose(model.predict_gradient(X_NEW, groups).mean[:, 0], rise, atol=1e-4)
    draws = model.sample_y(X_NEW, 4000, groups=groups)
    np.testing.assert_allclose(np.mean(draws, axis=1), mean, atol=0.1)
    with pytest.raises(ValueError, match="groups hold None in row 1"):
        model.predict_interval(X_NEW[:2], groups=["left", None])
    for wrong in ("left", 1, [["left"]]):
        with pytest.raises(ValueError, match=r"a label for each row, got shape \("):
            model.predict(X_NEW[:1], groups=wrong)
    with pytest.raises(ValueError, match="approximation='pic' alone"):
        fitted("vfe").predict_interval(X_NEW, groups=groups)


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
        ({"approximation": "pep", "power": "a"}, {}, "power must be a number, got 'a'"),
        ({"approximation": "pep", "power": None}, {}, "power must be a number, got None"),
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
        ({"augment": True}, {"groups": GROUPS}, "'auto' does not have with augment=True; use"),
        (
            {"inducing": "query"},
            {"groups": GROUPS, "query": Z},
            "'auto' does not have with inducing='query'; use",
        ),
        ({"approximation": "pitc"}, {"groups": np.full(N, np.nan)}, "groups hold nan in row 0"),
        ({"approximation": "pic"}, {"groups": [*GROUPS[1:], np.nan]}, "groups hold nan in row 59"),
        ({"approximation": "pic"}, {"groups": [*GROUPS[1:], None]}, "groups hold None in row 59"),
        ({"approximation": "pic"}, {"groups": [pd.NA, *range(1, N)]}, "groups hold <NA> in row 0"),
        ({"likelihood": Logistic()}, {}, "likelihood of classes.*use SparseGPClassifier"),
        ({"likelihood": StudentT()}, {"groups": GROUPS}, "groups are blocks.*got inference='lap"),
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


@pytest.mark.parametrize(
    ("inducing", "text"),
    [
        (5, "inducing must have rows and columns"),
        (None, "inducing must have rows and columns"),
        (np.zeros((4, 9)), "inducing must have the . columns of X, got 9"),
    ],
)
@pytest.mark.parametrize("name", ["auto", "vfe"])
def test_inducing_inputs_are_refused_before_a_search(monkeypatch, name, inducing, text):
    monkeypatch.setattr("mercer.estimators.prepare_sparse.maximise", None)
    monkeypatch.setattr("mercer.estimators.search.maximise", None)
    with pytest.raises(ValueError, match=text):
        SparseGPRegressor(approximation=name, inducing=inducing).fit(X, Y)
