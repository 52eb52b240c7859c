"""What a SparseGPRegressor takes by itself: approximation, starts, hyperparameters."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from mercer import GPRegressor, SparseGPRegressor, means
from mercer.estimators import inducing, prepare_sparse
from mercer.evidence import maximise, mended
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, StudentT
from mercer.params import Parameter

from .data import quiet_fit
from .sparse_data import KERNEL, NOISE, X_NEW, X, Y, wavy


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
    mean, std = quiet_fit(model, A, 3 * y).predict(B, return_std=True)
    assert np.all(model.kernel_.kernel.length_scale > 0.3)
    assert np.mean(0.5 * ((3 * truth - mean) / std) ** 2 + np.log(std / 3)) < 0.0


def test_lines_tell_of_each_stage_and_callables_of_evaluations(monkeypatch, capsys):
    monkeypatch.setattr(prepare_sparse, "_SEARCHED", 30)
    monkeypatch.setattr(mended, "_TOO_LARGE", 1.5)
    A, y = wavy(500, 0.5)
    rough = 1.0 * RBF(Parameter([0.05, 0.05], bounds=(0.01, 3.0)))
    settings = {"n_inducing": 60, "n_restarts": 1, "max_iter": 1, "random_state": 0}
    model = SparseGPRegressor(rough, Gaussian(1e-6), **settings)
    lines = []
    for verbose in (1, lambda *told: lines.append(told)):
        quiet_fit(model.set_params(verbose=verbose), A, y)
        written = capsys.readouterr().err
        stages = [line for line in written.splitlines() if "evaluation" not in line]
        if verbose == 1:
            words = (
                "searching 30 of 500 rows",
                "into blocks",
                "choosing inducing",
                "passing over 500 rows",
                r"scale is .*: searching \d+ rows",
                "once more",
                r"variances are multiplied by [\d.]+",
                "posterior of 500",
                "bounding",
                "done",
            )
            assert len(stages) == len(words)
            for line, word in zip(stages, words, strict=True):
                assert re.search(f"^mercer: .*{word}.*, [0-9.]+ s$", line)
            # evaluations of both searches, of which the second has one start
            first, second = written.split("whole blocks")
            assert first.count("evaluation") == first.count("/2, evaluation")
            assert first.count("evaluation") == len(model.history_["value"])
            assert "mercer: evaluation 1:" in second
    assert written == ""
    assert [told[2] for told in lines] == list(model.history_["value"])


@pytest.mark.parametrize(
    ("options", "first"),
    [({"likelihood": StudentT()}, "inducing inputs"), ({"approximation": "sod"}, "rows")],
)
def test_lines_tell_of_what_comes_before_a_search(options, first, capsys):
    model = SparseGPRegressor(1.0 * RBF(), n_inducing=9, max_iter=1, verbose=1, **options)
    quiet_fit(model, *wavy(40, 0.5))
    lines = capsys.readouterr().err.splitlines()
    assert f"mercer: choosing {first}, " in lines[0] and "mercer: evaluation 1: " in lines[1]
    assert "mercer: done, " in lines[-1]


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


@pytest.mark.parametrize("written", [True, False], ids=["rows", "weights"])
@pytest.mark.parametrize(("name", "m"), [("sod", 150), ("auto", 60)])
def test_rows_that_repeat_do_not_make_the_noise_of_some_rows_small(monkeypatch, name, m, written):
    """Drawn with all of their repeats they would: a target that comes twice seems certain."""
    monkeypatch.setattr(prepare_sparse, "_SEARCHED", 150)
    A, y = wavy(600, 0.3)
    twice = np.arange(600) < 300
    weights = None if written else 1.0 + twice
    if written:
        A, y = np.vstack([A, A[twice]]), np.append(y, y[twice])
    model = SparseGPRegressor(approximation=name, n_inducing=m, random_state=0)
    assert quiet_fit(model, A, y, sample_weight=weights).likelihood_.new_variance > 0.06


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


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"n_inducing": 10}, 50),  # at the least
        ({"n_inducing": 25}, 90),  # the cube root of 4 n m^2
        ({"n_inducing": 60}, 120),  # those of "auto"
        ({"n_inducing": 10, "inducing": wavy(25)[0]}, 90),
        ({"n_inducing": 10, "inducing": "query"}, 90),
    ],
)
def test_a_search_starts_from_as_many_rows_as_cost_what_it_does(monkeypatch, capsys, options, rows):
    monkeypatch.setattr(prepare_sparse, "_SAMPLE", 50)
    monkeypatch.setattr(prepare_sparse, "_SEARCHED", 120)
    given = options.get("inducing")
    query = wavy(25)[0] if isinstance(given, str) else None
    model = SparseGPRegressor(1.0 * RBF(), approximation="vfe", max_iter=1, verbose=1, **options)
    quiet_fit(model, *wavy(300), query=query)
    assert f"starting from an exact fit to {rows} of 300 rows" in capsys.readouterr().err


def test_a_second_fit_starts_warm():
    settings = {"n_inducing": 6, "max_iter": 4, "warm_start": True, "random_state": 0}
    model = SparseGPRegressor(approximation="vfe", **settings)
    first = quiet_fit(model, X, Y).log_marginal_likelihood_value_
    assert quiet_fit(model, X, Y).log_marginal_likelihood_value_ > first
    assert quiet_fit(model.set_params(n_inducing=9), X, Y).inducing_.shape == (9, 2)


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
