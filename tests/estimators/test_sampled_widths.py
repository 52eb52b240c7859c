"""Length scales of a sample: a target far from the others has no say in them where it may not."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from mercer import RelevanceVectorClassifier, RelevanceVectorRegressor
from mercer.errors import ConvergenceWarning
from mercer.estimators import relevance_kernel
from mercer.estimators import sampled_widths as sampled
from mercer.estimators.laplacian_rows import merged
from mercer.estimators.sampled_widths import sampled_widths, third_of_each
from mercer.evidence import relevance_label_engines
from mercer.evidence.defaults import spread
from mercer.evidence.optimum import Recorder
from mercer.means import Constant


def waves(n=60, size=30.0):
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, (n, 1))
    clean = np.sin(2 * X[:, 0])
    y = clean + 0.1 * rng.standard_normal(n)
    y[5] += size
    return X, y, clean


def width_of(X, y, outliers, weights=None):
    rows = merged(X, y[:, None], weights, np.arange(len(X)), None)
    model, rng = RelevanceVectorRegressor(), np.random.default_rng(0)
    found = sampled_widths(model, rows, spread(X), Constant(), False, outliers, rng)
    assert found.is_whole and found.common is None
    return float(found.kernel.length_scale[0])


@pytest.mark.parametrize("size", [10.0, 1e6])
def test_one_target_far_away_changes_nothing(size):
    X, y, _ = waves(size=size)
    rest = np.arange(len(X)) != 5
    assert width_of(X, y, True) == pytest.approx(width_of(X[rest], y[rest], True), rel=1e-6)
    assert width_of(X, y, True) > 0.3


def test_targets_of_two_kinds_are_no_outliers():
    X, y, _ = waves(size=0.0)
    y[::3] += 20.0  # more than a quarter of them
    assert width_of(X, y, True) == width_of(X, y, False)


def test_rows_that_count_twice_say_no_more_of_the_noise():
    X, y, _ = waves(size=0.0)
    once = width_of(X, y, False)
    assert width_of(X, y, False, np.full(len(X), 7.0)) == once
    assert width_of(np.repeat(X, 3, axis=0), np.repeat(y, 3), False) == pytest.approx(once)
    # less than 1 is less than a row
    assert width_of(X, y, False, np.full(len(X), 0.1)) != once


def test_a_robust_machine_is_not_misled_by_one_row():
    X, y, clean = waves(size=1e3)
    model = RelevanceVectorRegressor(robust=True).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - clean) ** 2)) < 0.08
    assert np.argmin(model.outlier_weights_) == 5 and model.outlier_weights_[5] < 1e-6
    assert model.n_relevance_ < 12


def labelled(seed, n=120, d=160):
    """Labels of the first columns, which vary; the others are next to constant."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.where(np.arange(d) < 8, 1.0, 0.01)
    return X, np.sign(X[:, :8].sum(axis=1))


def widths_of(X, y, common=True):
    rows = merged(X, y[:, None], None, np.arange(len(X)), None)
    model, rng = RelevanceVectorClassifier(), np.random.default_rng(0)
    found = sampled_widths(model, rows, spread(X), Constant(), True, False, rng)
    assert found.is_whole and (found.kernel is found.common) == common
    return found.kernel.length_scale


def test_many_columns_of_one_unit_have_one_length_scale():
    X, y = labelled(0)
    widths = widths_of(X, y)
    np.testing.assert_allclose(widths, widths[0])
    assert widths_of(X[:, :150], y, common=False).std() > 0.1  # few enough for a length scale each


def test_many_columns_of_their_own_units_have_length_scales_in_these():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 160))
    y = np.sign(X[:, :80].sum(axis=1))
    X *= 10.0 ** rng.uniform(-4, 4, 160)
    ratio = widths_of(X, y) / X.std(axis=0)
    np.testing.assert_allclose(ratio, ratio[0])


def test_few_of_many_columns_that_matter_are_found():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 160))
    y = np.sign(X[:, 0] + X[:, 1])
    widths = widths_of(X[:200], y[:200], common=False)
    assert set(np.argsort(widths)[:2]) == {0, 1}
    model = RelevanceVectorClassifier().fit(X[:200], y[:200])
    assert np.mean(model.predict(X[200:]) == y[200:]) > 0.9


@pytest.mark.parametrize("seed", [21])
def test_many_columns_that_matter_a_little_take_shorter_length_scales(seed):
    # with those of a Gaussian process no function tells anything, or one too few
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 1300)
    X = rng.standard_normal((1300, 200)) + 0.15 * (2 * y - 1)[:, None]
    model = RelevanceVectorClassifier().fit(X[:300], y[:300])
    assert np.mean(model.predict(X[300:]) == y[300:]) > 0.85


@pytest.mark.filterwarnings("ignore:no relevance vector")
def test_a_class_of_one_row_is_no_obstacle_to_holding_rows_out():
    X, y = labelled(0)
    label = np.where(y > 0, 1, 0)
    label[np.argsort(label, kind="stable")[-2:]] = 2, 3
    model = RelevanceVectorClassifier().fit(X, label)
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_rows_with_the_same_inputs_are_held_out_together():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (90, 1)).astype(float)
    Y = np.eye(3)[rng.integers(0, 3, 90)]
    rows = merged(X, Y, None, np.arange(90), None)
    held = third_of_each(rows)
    inputs, others = (set(rows.X[which, 0]) for which in (held, ~held))
    assert not inputs & others
    assert len(inputs) == pytest.approx(len(np.unique(X)) / 3, abs=1)
    apart = merged(np.arange(90.0)[:, None], Y, None, np.arange(90), None)
    held = third_of_each(apart)
    np.testing.assert_allclose(apart.Y[held].sum(axis=0), apart.Y.sum(axis=0) / 3, atol=1)


def test_rows_that_are_held_out_count_by_their_weights():
    # as many rows of chance, which weigh next to nothing, tell nothing of what is of use
    rng = np.random.default_rng(5)
    X, new = few_that_matter()[0], rng.standard_normal((120, 155))
    y, weights = np.sign(X[:, 0] + X[:, 1]), np.repeat([1.0, 1e-9], 120)
    chance = np.where(rng.uniform(size=120) < 0.5, 1.0, -1.0)
    both = np.vstack([X, new])
    model = RelevanceVectorClassifier().fit(both, np.r_[y, chance], sample_weight=weights)
    assert set(np.argsort(model.kernel_.length_scale)[:2]) == {0, 1}
    assert np.mean(model.predict(new) == np.sign(new[:, 0] + new[:, 1])) > 0.9


@pytest.mark.filterwarnings("ignore:no relevance vector")
def test_inputs_that_are_all_the_same_hold_nothing_out():
    model = RelevanceVectorClassifier().fit(np.ones((9, 155)), np.arange(9) % 3)
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 155))), 1 / 3, atol=0.05)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_constant_columns_say_nothing_of_the_unit_of_the_others(unit):
    X, y = labelled(0)
    blank = np.zeros((len(X), 40))
    widths = widths_of(np.hstack([unit * X, blank]), y)
    np.testing.assert_allclose(widths, widths[0])
    np.testing.assert_allclose(widths / unit, widths_of(np.hstack([X, blank]), y), rtol=1e-6)


def test_ctrl_c_ends_the_search_for_a_common_factor(monkeypatch):
    X, y = labelled(0)
    evaluate, calls = Recorder.__call__, []

    def broken(recorder, *args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(recorder, *args)

    monkeypatch.setattr(Recorder, "__call__", broken)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = RelevanceVectorClassifier().fit(X, y)
    assert len(calls) == 3  # the other proportion is not tried
    assert model.status_ == "interrupted"
    ratio = model.kernel_.length_scale / X.std(axis=0)
    np.testing.assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("at", [1, 2])
def test_ctrl_c_while_rows_are_held_out_keeps_what_was_found(monkeypatch, at):
    X, y = labelled(0)
    held_out, calls = sampled._held_out, []

    def broken(*args):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return held_out(*args)

    monkeypatch.setattr(sampled, "_held_out", broken)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = RelevanceVectorClassifier().fit(X, y)
    assert len(calls) == at and model.status_ == "interrupted"
    ratio = model.kernel_.length_scale / X.std(axis=0)
    np.testing.assert_allclose(ratio, ratio[0])


def few_that_matter():
    X = np.random.default_rng(3).standard_normal((120, 155))
    return X, np.sign(X[:, 0] + X[:, 1])


def test_whom_to_tell_of_steps_is_not_copied_where_length_scales_are_compared():
    class Window:
        def __init__(self):
            self.lock, self.stages = threading.Lock(), 0

        def tell(self, *args):
            self.stages += 1

    X, y = few_that_matter()
    window = Window()
    model = RelevanceVectorClassifier(verbose=window.tell).fit(X, y)
    assert set(np.argsort(model.kernel_.length_scale)[:2]) == {0, 1}  # they were compared
    assert window.stages


@pytest.mark.filterwarnings("ignore:no relevance vector")
def test_ctrl_c_before_there_is_a_machine_to_compare_leaves_a_model(monkeypatch):
    X, y = few_that_matter()
    solve, calls = relevance_label_engines.solve, []

    def broken(*args, **options):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return solve(*args, **options)

    monkeypatch.setattr(relevance_label_engines, "solve", broken)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = RelevanceVectorClassifier().fit(X, y)
    assert len(calls) == 2  # that of the common factor is solved for all rows, and no other
    assert model.status_ == "interrupted"


def test_no_length_scales_are_looked_for_where_functions_have_none(monkeypatch):
    X, y = few_that_matter()
    monkeypatch.setattr(relevance_kernel, "sampled_widths", None)
    model = RelevanceVectorClassifier(centres=X[:0], functions=lambda X: X[:, :3]).fit(X, y)
    assert model.score(X, y) > 0.9


def test_labels_of_many_columns_leave_the_kernel_to_a_gaussian_process():
    X, y = labelled(0)
    model = RelevanceVectorClassifier().fit(X, y)
    ratio = model.kernel_.length_scale / widths_of(X, y)
    np.testing.assert_allclose(ratio, ratio[0])
    assert ratio[0] == pytest.approx(1.0) or ratio[0] == pytest.approx(0.5)  # if as few will do
    X, y = labelled(4, n=1000)
    assert np.mean(model.predict(X) == y) > 0.85


def test_the_kernel_without_a_sample_does_not_end_the_search_over_widths():
    # the widest of the sample's has 80 functions; beside the other it was the last that was tried
    rng = np.random.default_rng(1)
    X, new = rng.standard_normal((200, 155)), rng.standard_normal((500, 155))
    model = RelevanceVectorClassifier().fit(X, 2 * X[:, 0] + X[:, 1] > 0)
    assert np.mean(model.predict(new) == (2 * new[:, 0] + new[:, 1] > 0)) > 0.95


@pytest.mark.filterwarnings("ignore:no relevance vector")
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_noise_alone_is_left_to_the_noise(seed):
    # the length scales of the sample are a hundredth of the square here
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(0, 1, (80, 2)), rng.standard_normal(80)
    model = RelevanceVectorRegressor().fit(X, y)
    assert model.n_relevance_ <= 4
    assert model.noise_variance_ > 0.7 * np.var(y)
