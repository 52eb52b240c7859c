"""Searches of a classifier: several classes at once, restarts, reports, and Ctrl-C."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import GPClassifier
from mercer.errors import BoundWarning, ConvergenceWarning
from mercer.estimators.classification import prepare_classes
from mercer.kernels import RBF
from mercer.params import Parameter

from .classes import THREE, TWO, X_NEW, X, quiet_fit


def model(**options):
    return GPClassifier(2.0 * RBF(1.0), multi_class="one_vs_rest", random_state=3, **options)


def test_classes_at_once_end_as_one_after_the_other():
    one = quiet_fit(model(n_restarts=1), X, THREE)
    several = quiet_fit(model(n_restarts=1, n_jobs=2), X, THREE)
    np.testing.assert_allclose(several.theta_, one.theta_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        several.predict_proba(X_NEW), one.predict_proba(X_NEW), rtol=0, atol=1e-4
    )


def test_every_class_has_hyperparameters_of_its_own():
    fitted = quiet_fit(model(), X, THREE)
    assert len({kernel.theta.tobytes() for kernel in fitted.kernel_}) == 3
    assert len(fitted.history_) == 3 and fitted.status_ == "converged"
    assert fitted.n_iter_ == max(1, fitted.n_iter_)


def test_reports_count_the_starts_of_all_classes(capsys):
    seen = set()
    quiet_fit(model(n_restarts=1, verbose=lambda start, *_: seen.add(start)), X, THREE)
    assert seen == {1, 2, 3, 4, 5, 6}
    quiet_fit(model(verbose=1, max_iter=2), X, THREE)
    lines = capsys.readouterr().err.splitlines()
    assert any("start 3/3" in line for line in lines)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_ctrl_c_keeps_the_best_so_far(y, n_jobs, ctrl_c):
    if len(set(y)) == 2 and n_jobs:
        pytest.skip("one search is not shared out")

    def interrupt(start, count, value, best):
        if count == 3:
            ctrl_c()

    stopped = model(verbose=interrupt, n_jobs=n_jobs)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        stopped.fit(X, y)
    assert stopped.status_ == "interrupted"
    assert stopped.score(X, y) > 0.6
    np.testing.assert_allclose(stopped.predict_proba(X_NEW).sum(axis=1), 1.0)


def test_warnings_say_which_class():
    tight = RBF(Parameter(1.0, bounds=(0.9, 1.1)))
    narrow = GPClassifier(2.0 * tight, multi_class="one_vs_rest")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        narrow.fit(X, THREE)
    (warning,) = caught  # of all classes together
    assert (warning.category, warning.filename) == (BoundWarning, __file__)
    text = str(warning.message)
    assert text.startswith("class") and "against the rest: the best hyperparameters" in text
    assert "'low'" in text and "'top'" in text


def test_starts_of_a_softmax_run_at_once():
    options = {"kernel": 2.0 * RBF(1.0), "n_restarts": 2, "random_state": 0}
    one = quiet_fit(GPClassifier(**options), X, THREE)
    several = quiet_fit(GPClassifier(n_jobs=2, **options), X, THREE)
    np.testing.assert_allclose(several.theta_, one.theta_, atol=1e-3)


def test_a_callable_optimizer():
    def stay(minimised, start, bounds):
        value, gradient = minimised(start)
        assert gradient.shape == start.shape == (2,)
        return start, value

    fitted = quiet_fit(model(optimizer=stay), X, TWO)
    np.testing.assert_allclose(fitted.theta_, np.log([2.0, 1.0]))


@pytest.mark.parametrize("multi_class", ["softmax", "one_vs_rest"])
def test_warm_starts_take_all_that_was_fitted(multi_class):
    warm = GPClassifier(mean="linear", multi_class=multi_class, warm_start=True)
    quiet_fit(warm, X, THREE)
    # far from what the data suggest: bounds are to hold it
    found = warm.kernel_ if multi_class == "one_vs_rest" else [warm.kernel_]
    far = [kernel.with_theta(kernel.theta + 9.0) for kernel in found]
    warm.kernel_ = far if multi_class == "one_vs_rest" else far[0]
    objectives = prepare_classes(warm, X, THREE, None).objectives
    np.testing.assert_array_equal(np.concatenate([o.theta for o in objectives]), warm.theta_)
    assert all(o.mean.theta.size and np.any(o.mean.theta) for o in objectives)
    for objective in objectives:
        low, high = objective.bounds.T
        assert np.all((low <= objective.theta) & (objective.theta <= high))


@pytest.mark.parametrize("multi_class", ["softmax", "one_vs_rest"])
def test_another_number_of_classes_begins_as_a_cold_start_does(multi_class):
    four = np.where(X[:, 1] > 0.8, "wide", THREE)
    options = {"multi_class": multi_class, "likelihood": "logistic"}
    warm = quiet_fit(GPClassifier(warm_start=True, **options), X, four)
    cold = GPClassifier(**options)
    mine, wanted = (prepare_classes(each, X, THREE, None).objectives for each in (warm, cold))
    for each, other in zip(mine, wanted, strict=True):
        np.testing.assert_array_equal(each.theta, other.theta)
