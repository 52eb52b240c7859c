"""The classifier's surface: signatures, attributes, messages, and scikit-learn's habits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn.gaussian_process.kernels as skl
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier as Original

import mercer
from mercer.compat import GaussianProcessClassifier
from mercer.errors import TooLargeError
from mercer.posterior import Posterior, Stacked

KERNEL = 1.0 * skl.RBF(1.0)

rng = np.random.default_rng(0)
X, X_new = rng.normal(size=(40, 3)), rng.normal(size=(6, 3))
latent = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=40)
y, several = latent > 0, np.digitize(latent, [-0.5, 0.5])


# --- the same names -------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [y, several], ids=["2", "3"])
def test_attributes(labels):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    theirs, ours = (cls(KERNEL).fit(frame, labels) for cls in (Original, GaussianProcessClassifier))
    names = {name for name in vars(theirs) if name.endswith("_")}
    assert names == {name for name in vars(ours) if name.endswith("_")}
    assert {"classes_", "n_classes_", "base_estimator_", "feature_names_in_"} <= names
    for name in names - {"base_estimator_"}:
        a, b = getattr(theirs, name), getattr(ours, name)
        assert type(a) is type(b), name
        if name != "log_marginal_likelihood_value_":
            np.testing.assert_array_equal(a, b)
    inside = theirs.base_estimator_, ours.base_estimator_
    if len(ours.classes_) == 2:
        names = {name for name in vars(inside[0]) if name.endswith("_")}
        assert names == {name for name in vars(inside[1]) if name.endswith("_")}
        for name in names - {"kernel_"}:
            a, b = (getattr(m, name) for m in inside)
            assert type(a) is type(b), name
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4, err_msg=name)
        np.testing.assert_array_equal(np.triu(inside[1].L_, 1), 0.0)


def test_what_changes_nothing_but_the_time():
    plain = GaussianProcessClassifier(KERNEL).fit(X, y)
    other = GaussianProcessClassifier(KERNEL, warm_start=True, max_iter_predict=1).fit(X, y)
    np.testing.assert_array_equal(plain.predict_proba(X_new), other.predict_proba(X_new))


def test_the_latent_process_is_a_posterior(tmp_path):
    kernel = KERNEL + skl.WhiteKernel(0.2, "fixed")
    model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    assert type(model.posterior_) is Posterior
    mean, var = model.latent_mean_and_variance(X_new)
    np.testing.assert_allclose(model.posterior_.mean(X_new)[:, 0], mean)
    np.testing.assert_allclose(model.predictive_.var(X_new)[:, 0] + 0.2, var)
    mercer.save(model.posterior_.prune(30)[0], tmp_path / "small.mercer")
    small = mercer.load(tmp_path / "small.mercer")
    np.testing.assert_allclose(small.mean(X_new)[:, 0], mean, atol=0.2)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
def test_several_latent_processes(multi_class):
    model = GaussianProcessClassifier(optimizer=None, multi_class=multi_class).fit(X, several)
    assert type(model.predictive_) is Stacked
    assert model.predictive_.mean(X_new).shape == (6, 3)
    with pytest.raises(AttributeError, match=r"3 classes.*predictive_"):
        _ = model.posterior_
    assert not hasattr(model, "posterior_")


# --- habits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels", [y.astype(int) - 5, np.where(y, "a", "b"), np.where(y, "a", "b").astype(object)]
)
def test_labels_of_any_type(labels):
    theirs, ours = (cls().fit(X, labels) for cls in (Original, GaussianProcessClassifier))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.predict(X_new), theirs.predict(X_new))
    assert ours.predict(X_new).dtype == theirs.predict(X_new).dtype


@pytest.mark.parametrize("labels", [y, several], ids=["2", "3"])
def test_a_refused_refit_changes_nothing(labels, monkeypatch):
    model = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, labels)
    part = model._parts()[0]
    before = _fitted(model), _fitted(part)
    other = np.where(X[:, 2] > 0, "a", "b")
    with pytest.raises(ValueError, match="requires 2 classes; got 3"):
        part.fit(X, several)
    for each in (model, part):
        with monkeypatch.context() as little:
            little.setattr("mercer.estimators.memory.available_memory", lambda: 8 * 40**2)
            with pytest.raises(TooLargeError, match="a fit by Laplace's method to 40 rows"):
                each.fit(X, other)
        endless = skl.RBF(1.0, (1e-3, np.inf))
        each.set_params(kernel=endless, optimizer="fmin_l_bfgs_b", n_restarts_optimizer=1)
        with pytest.raises(ValueError, match="all bounds are finite"):
            each.fit(X, other)
    assert (_fitted(model), _fitted(part)) == before


def _fitted(model):
    """Return which objects the fitted attributes are."""
    return {name: id(value) for name, value in vars(model).items() if name.endswith("_")}


# --- messages -------------------------------------------------------------------------------------


def test_questions_that_have_no_answer():
    model = GaussianProcessClassifier(KERNEL, multi_class="one_vs_one")
    for ask in (model.predict, model.predict_proba, model.latent_mean_and_variance):
        with pytest.raises(NotFittedError):
            ask(X)
    with pytest.raises(NotFittedError):
        _ = model.predictive_
    with pytest.raises(ValueError, match="only class True is present"):
        model.fit(X, np.full(40, True))
    model.set_params(optimizer=None).fit(X, several)
    with pytest.raises(ValueError, match="one_vs_one multi-class mode does not support"):
        model.predict_proba(X)
    with pytest.raises(NotImplementedError, match="not implemented for multi-class"):
        model.log_marginal_likelihood(KERNEL.theta, eval_gradient=True)
    with pytest.raises(ValueError, match="must be either 2 or 6"):
        model.log_marginal_likelihood(np.zeros(4))
    with pytest.raises(ValueError, match="only be evaluated for theta!=None"):
        model.log_marginal_likelihood(eval_gradient=True)
    with pytest.raises(ValueError, match="all bounds are finite"):
        kernel = skl.RBF(1.0, (1e-3, np.inf))
        GaussianProcessClassifier(kernel, n_restarts_optimizer=1).fit(X, y)
