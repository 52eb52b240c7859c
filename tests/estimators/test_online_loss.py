"""Warnings of a basis that is much too small and of a constant that does better, where it is so."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from mercer import OnlineGPClassifier, OnlineGPRegressor, load, save
from mercer.errors import MercerWarning
from mercer.kernels import RBF, Linear
from mercer.likelihoods import Custom, Gaussian, Poisson, StudentT
from mercer.params import Parameter

RNG = np.random.default_rng(0)
# Time that goes on, with a daily course: a hundred basis vectors hold some 400 rows of it.
TIME = 1.7e9 + 3600.0 * np.arange(1500)[:, None]
COURSE = 10 * np.sin(2 * np.pi * TIME[:, 0] / 86400) + RNG.standard_normal(1500)
KERNEL = 50.0 * RBF(15000.0)


def course(**options):
    return OnlineGPRegressor(KERNEL, Gaussian(1.0), mean="zero", **options)


def told(learn):
    """Return the warnings of a call, all of which must be of a small basis."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        learn()
    assert all(issubclass(each.category, MercerWarning) for each in found)
    assert all("is too small for these rows" in str(each.message) for each in found)
    return found


def texts_of(call):
    """Return what is warned of, whatever it is."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in found]


def in_chunks(model, size, X=TIME, y=COURSE):
    for at in range(0, len(X), size):
        model.partial_fit(X[at : at + size], y[at : at + size])


def test_time_that_goes_on_is_told_and_what_helps_against_it():
    model = course()
    with pytest.warns(MercerWarning, match=r"max_basis=100 .*nats.*raise max_basis.*give forget"):
        before = model.learn(TIME, COURSE)
    late = slice(-300, None)
    worse = np.sqrt(np.mean((COURSE - before.mean)[late] ** 2))
    assert worse > 0.9 * np.std(COURSE)
    assert not told(lambda: course(max_basis=700).partial_fit(TIME, COURSE))
    drifting = course(forget=0.01)
    assert not told(lambda: drifting.partial_fit(TIME[:-300], COURSE[:-300]))
    after = drifting.learn(TIME[late], COURSE[late])
    assert np.sqrt(np.mean((COURSE[late] - after.mean) ** 2)) < 0.5 * worse


@pytest.mark.parametrize("size", [7, 100])
def test_a_loop_is_told_a_time_or_two_and_no_more(size):
    model = course()
    found = told(lambda: in_chunks(model, size))
    found += told(lambda: in_chunks(model, size, TIME + 1e7))
    assert 1 <= len(found) <= 2  # at 0.3 nats a row, and where they have come to four times that
    assert found[0].filename == __file__
    assert not told(lambda: in_chunks(model, size, TIME + 2e7))


def test_who_has_been_told_is_kept_with_the_model_and_not_with_its_copy(tmp_path):
    model = course(max_basis=20)
    assert len(told(lambda: model.partial_fit(TIME, COURSE))) == 1
    save(model, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    assert not told(lambda: again.partial_fit(TIME + 1e7, COURSE))
    assert len(told(lambda: clone(model).fit(TIME, COURSE))) == 1
    assert len(told(lambda: again.fit(TIME, COURSE))) == 1  # which starts anew


def test_a_stream_that_runs_out_of_room_late_is_told_soon():
    """Long runs without a loss do not hide that all is lost now."""
    still = np.tile(TIME[:50], (200, 1))
    model = course().partial_fit(still, np.tile(COURSE[:50], 200))
    assert len(told(lambda: model.partial_fit(TIME, COURSE))) == 1


def test_what_pruning_costs_is_not_told():
    X, y = TIME[:50:5].repeat(20, axis=0), 10 * COURSE[:50:5].repeat(20)
    model = course(max_basis=10).partial_fit(X, y)
    assert model.prune(1) > 0.3 * 400
    assert not told(lambda: model.partial_fit(X, y)) and model.n_basis_ == 10


def test_few_rows_and_room_that_is_left_are_no_reason():
    few = course(max_basis=10)
    assert not told(lambda: few.partial_fit(TIME[:199], COURSE[:199]))
    assert few.projection_loss_ > 0.3 * 199
    coarse = course(tol=0.9)
    assert not told(lambda: coarse.partial_fit(TIME[:400], COURSE[:400]))
    assert coarse.projection_loss_ > 0.3 * 400 and coarse.n_basis_ < 100


def test_an_outlier_is_not_blamed_on_the_basis():
    """It costs thousands of nats, which no basis of any size would have saved."""
    X, y = sinc(600)
    y[300] = 1000.0
    for size in (50, 600):
        model = OnlineGPRegressor(max_basis=10)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            in_chunks(model, size, X, y)
        assert len(found) == 1 and "targets may be outliers" in str(found[0].message)
        assert model.projection_loss_ > 0.3 * 600
    assert not told(lambda: model.partial_fit(X[:200], y[:200]))  # once


def test_rows_around_those_with_an_outlier_count():
    X, y = TIME, COURSE.copy()
    y[700] = 1e6
    model = course()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        in_chunks(model, 50, X, y)
    assert any("too small" in str(each.message) for each in found)


# --- a constant that does better ------------------------------------------------------------------

CONSTANT = (
    r"a constant with their mean and deviation has (-?[\d.e+]+): .*StudentT.*forget.*n_restarts=5"
)


def test_a_model_that_a_constant_beats_is_told_with_both_densities(tmp_path):
    X, y = sinc(500)
    sure = OnlineGPRegressor(RBF(1.0), Gaussian(1e-5), mean="zero", optimizer=None)
    with pytest.warns(MercerWarning, match=CONSTANT) as found:
        sure.partial_fit(X, y)
    text = str(found[0].message)
    said = [float(re.search(p, text).group(1)) for p in (r"density of (\S+)", CONSTANT)]
    wanted = sure.log_evidence_ / 500, np.mean(norm.logpdf(y, np.mean(y), np.std(y)))
    np.testing.assert_allclose(said, wanted, rtol=5e-3)
    save(sure, tmp_path / "sure.mercer")
    assert not told(lambda: load(tmp_path / "sure.mercer").partial_fit(X, y))  # who was told
    with pytest.warns(MercerWarning, match=CONSTANT):
        sure.fit(X, y)  # which starts anew


def test_a_model_that_is_as_good_as_a_constant_is_not_told():
    X = RNG.uniform(size=(500, 3))
    noise = RNG.standard_normal(500)
    assert not told(lambda: OnlineGPRegressor(RBF(1.0), Gaussian(1.0)).partial_fit(X, noise))
    few = OnlineGPRegressor(RBF(1.0), Gaussian(1e-4))
    assert not told(lambda: few.partial_fit(X[:199], noise[:199]))


def test_weights_that_are_one_over_variances_are_not_compared():
    X = RNG.uniform(0.0, 6.0, (600, 1))
    y = 0.1 * np.sin(X[:, 0]) + 1e-3 * RNG.standard_normal(600)
    model = OnlineGPRegressor(0.01 * RBF(1.0), Gaussian(1.0), max_basis=50)
    assert not told(lambda: model.partial_fit(X, y, np.full(600, 1e6)))
    assert np.max(np.abs(model.predict(X) - 0.1 * np.sin(X[:, 0]))) < 1e-3
    sure = OnlineGPRegressor(0.01 * RBF(1.0), Gaussian(1e-12), max_basis=50)
    with pytest.warns(MercerWarning, match=CONSTANT):
        sure.partial_fit(X, y, np.ones(600))


@pytest.mark.parametrize("of", ["counts", "own", "labels", "posterior", "level", "rounding"])
def test_densities_that_do_not_compare_are_not_compared(of):
    X = RNG.uniform(size=(300, 1))
    y = np.repeat([0.0, 40.0, 80.0], 100)
    kernel = RBF(1.0)
    if of == "counts":
        model = OnlineGPRegressor(kernel, Poisson())
    elif of == "own":
        own = Custom(lambda y, f: -0.5 * (y - f) ** 2 - 50.0)
        model, y = OnlineGPRegressor(kernel, own), y / 40.0
    elif of == "labels":
        model, y = OnlineGPClassifier(1e4 * kernel, classes=[0, 1]), RNG.integers(0, 2, 300)
    elif of == "posterior":
        first = OnlineGPRegressor(kernel, Gaussian(1.0)).partial_fit(X[:9], y[:9])
        model = OnlineGPRegressor.from_posterior(first.posterior_, Gaussian(1.0), max_basis=9)
    else:
        model, y = OnlineGPRegressor(kernel, Gaussian(1e-4), mean="zero"), np.full(300, 5.0)
        y[::2] += 2e-15 * (of == "rounding")
    texts = texts_of(lambda: model.partial_fit(X, y))
    assert not [text for text in texts if "error bars are too narrow" not in text]


def sinc(n=1500):
    X = RNG.uniform(-10, 10, (n, 1))
    return X, np.sinc(X[:, 0] / np.pi) + 0.1 * RNG.standard_normal(n)


def friedman(n=1500):
    X = RNG.uniform(size=(n, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, f + 10 * X[:, 3] + 5 * X[:, 4] + RNG.standard_normal(n)


def test_small_bases_that_do_are_not_told_of():
    """They lose 0.02 and 0.06 nats a row; five functions 0.2, which is 0.04 of each."""
    X, y = sinc()
    model = OnlineGPRegressor(max_basis=10)
    assert not told(lambda: model.partial_fit(X, y)) and model.n_basis_ == 10
    X, y = friedman()
    model = OnlineGPRegressor(max_basis=50, n_init=300)
    assert not told(lambda: model.partial_fit(X, y)) and model.n_basis_ == 50
    labels = np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))
    model = OnlineGPClassifier(4.0 * RBF(1.0), max_basis=20, classes=range(5))
    assert not told(lambda: model.partial_fit(X, labels))


def test_losses_are_those_of_one_function():
    """Ten columns that are the same lose ten times as much, of ten times as much."""
    X, y = friedman(600)
    one, ten = (OnlineGPRegressor(100.0 * RBF(3.0), Gaussian(1.0), max_basis=50) for _ in range(2))
    for model, Y in ((one, y), (ten, np.tile(y[:, None], 10))):  # the kernel is far too smooth
        (text,) = texts_of(lambda model=model, Y=Y: model.partial_fit(X, Y))
        assert re.match(
            "[23][0-9]% of the last 600 rows lay outside .* error bars are too narrow", text
        )
    assert ten.projection_loss_ > 0.3 * 600


def test_where_rows_chose_more_of_them_are_advised():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (1200, 1))
    y = np.sin(4.0 * X[:, 0]) + 0.05 * rng.standard_normal(1200)
    for options, more in (({}, 500), ({"n_init": 400}, 800)):
        chosen = OnlineGPRegressor(max_basis=5, random_state=0, **options)
        texts = texts_of(lambda chosen=chosen: chosen.partial_fit(X, y))
        (text,) = [text for text in texts if "is too small for these rows" in text]
        assert f"n_init={more} takes more. Else raise max_basis" in text
    texts = texts_of(lambda: OnlineGPRegressor(max_basis=5).fit(X, y))
    assert any("chosen by 500 rows, and n_init=1000 takes more" in text for text in texts)
    few = X[:300], y[:300]  # all of which have chosen
    given = course(max_basis=10).partial_fit
    for learn in (lambda: OnlineGPRegressor(max_basis=5).fit(*few), lambda: given(TIME, COURSE)):
        (text,) = [text for text in texts_of(learn) if "is too small for these rows" in text]
        assert "n_init" not in text


def test_a_mean_that_nobody_chose_is_named():
    X, y = sinc(300)
    model = OnlineGPRegressor(5.0 * RBF(2.0), Gaussian(0.1), max_basis=60)
    assert any(
        "the mean is 0, as where kernel" in t for t in texts_of(lambda: model.learn(X, y + 1e3))
    )
    wild = OnlineGPRegressor(5.0 * RBF(2.0), Gaussian(1e-4), mean="zero", max_basis=60)
    found = texts_of(lambda: wild.learn(X, y + 1e3))
    assert found and not any("the mean is 0" in text for text in found)


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e4), (1e4, 1.0)])
def test_columns_of_large_numbers_are_told_of_though_the_basis_has_room(scale, offset):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2))
    y = X @ [1.0, -0.5] + 0.1 * rng.standard_normal(2000)
    model = OnlineGPRegressor(Linear(1.0), Gaussian(0.01), mean="zero")
    texts = texts_of(lambda: model.partial_fit(scale * (X + offset), y))
    assert any(re.search("room for more basis vectors.*standardise them", t) for t in texts)
    assert model.n_basis_ < model.max_basis
    # what tol is below 1e-8 there is no more to gain by
    exact = OnlineGPRegressor(Linear(1.0), Gaussian(0.01), mean="zero", tol=1e-12)
    texts = [t for t in texts_of(lambda: exact.partial_fit(scale * (X + offset), y)) if "room" in t]
    assert all("below tol=1e-08" in t and "tol=1e-8 loses less" not in t for t in texts)
    well = OnlineGPRegressor(Linear(1.0), Gaussian(0.01), mean="zero")
    assert not texts_of(lambda: well.partial_fit(X, y))


def test_what_a_smaller_basis_has_lost_is_not_held_against_a_larger_one():
    X, y = sinc(600)
    model = OnlineGPRegressor(RBF(0.5), Gaussian(0.01), max_basis=4, mean="zero")
    texts_of(lambda: model.partial_fit(X[:190], y[:190]))
    assert model.projection_loss_ > 0.3 * 190
    model.set_params(max_basis=100)
    assert not texts_of(lambda: model.partial_fit(X[190:], y[190:]))


def test_what_was_lost_before_pruning_is_not_held_against_what_is_left():
    X, y = sinc(203)
    model = OnlineGPRegressor(RBF(0.5), Gaussian(0.01), max_basis=20, mean="zero")
    texts_of(lambda: model.partial_fit(X[:195], y[:195]))
    assert model.projection_loss_ > 0.3 * 195 and model.n_basis_ == 20
    model.prune(10)
    assert not texts_of(lambda: model.partial_fit(X[195:], y[195:])) and model.n_basis_ < 20


def test_rows_that_are_left_out_by_their_mean_have_been_left_out_on_request():
    """Targets that are as predicted add no point, whatever they tell of the variance."""
    X = np.arange(300.0)[:, None]
    model = OnlineGPRegressor(RBF(1.0), Gaussian(1e-3), mean="zero", novelty="mean")
    texts_of(lambda: model.partial_fit(X[:1], [1e-3]))
    texts = texts_of(lambda: model.partial_fit(X, np.zeros(300)))
    assert not [text for text in texts if "room for more basis vectors" in text]
    assert model.projection_loss_ > 0.3 * 300 and model.n_basis_ < model.max_basis


def test_noise_of_heavy_tails_is_to_be_held():
    X, y = sinc(400)
    open_noise = OnlineGPRegressor(RBF(1.0), StudentT(scale=1e-4), mean="zero", optimizer=None)
    (text,) = [t for t in texts_of(lambda: open_noise.partial_fit(X, y)) if "a constant" in t]
    assert "which StudentT(df=Parameter(4.0, fixed=True)) tolerates" in text


def test_of_a_basis_that_is_too_small_error_bars_are_not_told_again():
    X, y = sinc(600)
    kernel = 0.01 * RBF(0.5)  # far too small for such targets
    model = OnlineGPRegressor(kernel, Gaussian(1e-4), max_basis=4, mean="zero", optimizer=None)
    model.partial_fit(X[:1], y[:1])
    del model._target_sums  # without which they are not compared with a constant
    (text,) = texts_of(lambda: model.partial_fit(X[1:], y[1:]))
    assert "max_basis=4 is too small" in text
    assert not texts_of(lambda: model.partial_fit(X, y))
    assert model._lost["outside"] > 0.2 * model._lost["judged"]


def test_rows_that_are_learned_again_are_not_judged_again():
    X, y = sinc(300)
    model = OnlineGPRegressor(RBF(1.0), Gaussian(0.01), mean="zero", n_sweeps=4, optimizer=None)
    model.set_params(recycle="heuristic").fit(X, y)
    assert model._lost["judged"] == 300


def test_noise_that_is_next_to_none_is_named_where_error_bars_are_too_narrow():
    X = np.random.default_rng(2).normal(size=(2000, 2))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2
    texts = texts_of(lambda: OnlineGPRegressor(tol=1e-8).partial_fit(X, y))
    (text,) = [t for t in texts if "error bars are too narrow" in t]
    assert "next to none: let it be held at 1e-4 of the targets' variance" in text
    assert "n_init" not in text


def test_noise_that_is_there_or_was_given_is_not_next_to_none():
    """Smooth functions have kernels that are thousands of times as large as the targets."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (2000, 3))
    f = X[:, 0] + X[:, 1] ** 2 + X[:, 0] * X[:, 2]
    y = f + 0.1 * rng.standard_normal(2000)
    texts = texts_of(lambda: OnlineGPRegressor(max_basis=8).partial_fit(X, y))
    assert texts and not any("next to none" in text for text in texts)
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    held = Gaussian(Parameter(1e-6 * np.var(f), fixed=True))
    texts = texts_of(lambda: OnlineGPRegressor(None, held, max_basis=20).partial_fit(X, f))
    assert texts and not any("let it be held" in text for text in texts)


def test_a_constant_that_is_better_than_exact_noise_is_told_of_with_it():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (2000, 3))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    model = OnlineGPRegressor(n_init=200)
    texts_of(lambda: model.partial_fit(X[:200], f[:200]))
    texts = texts_of(lambda: model.partial_fit(X[200:600], f[1000:1400]))  # of other rows
    (text,) = [text for text in texts if "a constant with" in text]
    assert "next to none: let it be held at 1e-4 of the targets' variance" in text


def test_another_size_of_the_basis_may_be_told_of_again():
    model = course(max_basis=20)
    assert len(told(lambda: model.partial_fit(TIME, COURSE))) == 1 and model._lost["told"] > 0.3
    model.prune(10)
    assert model._lost["told"] == model._lost["nats"] == model._lost["rows"] == 0.0


def test_noise_that_nobody_chose_is_not_to_be_held():
    X, y = sinc(300)
    model = OnlineGPRegressor(RBF(1.0), Gaussian(1e-9), mean="zero")
    texts_of(lambda: model.partial_fit(X, y))
    model._lost = {**model._lost, "nats": 400.0, "rows": 400.0, "told": 0.0}
    (text,) = texts_of(model._warn_of_losses)
    assert "room for more basis vectors" in text and "be held at" not in text
