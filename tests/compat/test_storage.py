"""The drop-ins in files, without pickle."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as skl
from sklearn.gaussian_process.tests._mini_sequence_kernel import MiniSeqKernel

from mercer import load, save
from mercer.compat import GaussianProcessClassifier, GaussianProcessRegressor

from .kernels import Shifted

rng = np.random.default_rng(0)
X, X_new = rng.normal(size=(40, 2)), rng.normal(size=(6, 2))
y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=40)
labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.6])]

KERNELS = {
    "default": None,
    "ard": 1.0 * skl.RBF([1.0, 2.0], [(1e-3, 1e3), (1e-2, 1e2)]) + skl.WhiteKernel(0.1),
    "matern": skl.Matern(np.array([1.0, 2.0]), nu=np.inf) ** 2 * skl.ConstantKernel(2.0, "fixed"),
    "outside its bounds": skl.RBF(1.0, (10.0, 100.0)) + skl.WhiteKernel(0.1, (1e-4, 1e4)),
    "as it is": skl.PairwiseKernel(metric="laplacian") + skl.ExpSineSquared() * skl.WhiteKernel(),
}


def rounds(function, start, bounds):
    return start, function(start, eval_gradient=False)


def _again(model, tmp_path, **objects):
    save(model, tmp_path / "model.mercer")
    return load(tmp_path / "model.mercer", objects)


def _same(first, second):
    for name, value in first.items():
        assert name in second
        if isinstance(value, (np.ndarray, float)):
            assert type(second[name]) is type(value), name
            np.testing.assert_array_equal(second[name], value, err_msg=name)
    assert first.keys() == second.keys()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", KERNELS)
def test_regressors(name, tmp_path):
    settings = {"kernel": KERNELS[name], "alpha": np.full(40, 0.1), "normalize_y": True}
    model = GaussianProcessRegressor(**settings, random_state=3).fit(X, y)
    again = _again(model, tmp_path)
    _same(vars(model), vars(again))
    assert again.kernel == model.kernel and again.kernel_ == model.kernel_
    np.testing.assert_array_equal(again.kernel_.bounds, model.kernel_.bounds)
    for a, b in zip(
        model.predict(X_new, return_cov=True), again.predict(X_new, return_cov=True), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    theta = model.kernel_.theta
    assert again.log_marginal_likelihood(theta) == model.log_marginal_likelihood(theta)
    again.fit(X, y)
    np.testing.assert_allclose(again.kernel_.theta, model.kernel_.theta, atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_classifiers(name, classes, multi_class, tmp_path):
    target = labels if classes == 3 else np.where(labels == "low", "low", "other")
    settings = {"optimizer": None, "multi_class": multi_class}
    kernel = KERNELS[name] if name != "as it is" else skl.PairwiseKernel(metric="rbf")
    model = GaussianProcessClassifier(kernel, **settings).fit(X, target)
    again = _again(model, tmp_path)
    _same(vars(model), vars(again))
    assert again.kernel_ == model.kernel_
    _same(vars(model.base_estimator_), vars(again.base_estimator_))
    np.testing.assert_array_equal(again.predict(X_new), model.predict(X_new))
    theta = model.kernel_.theta
    assert again.log_marginal_likelihood(theta) == model.log_marginal_likelihood(theta)
    if multi_class == "one_vs_rest":
        np.testing.assert_array_equal(again.predict_proba(X_new), model.predict_proba(X_new))


def test_unfitted_models_and_functions(tmp_path):
    model = GaussianProcessRegressor(skl.RBF(), optimizer=rounds)
    again = _again(model, tmp_path, rounds=rounds)
    assert again.optimizer is rounds and again.kernel == skl.RBF()
    assert not hasattr(again, "kernel_")
    model = GaussianProcessClassifier(n_jobs=2)
    assert _again(model, tmp_path).get_params() == model.get_params()


def test_the_factor_is_kept_once(tmp_path):
    n = 300
    rows = rng.normal(size=(n, 2))
    model = GaussianProcessRegressor(skl.RBF(), alpha=0.1, optimizer=None).fit(rows, rows[:, 0])
    save(model, tmp_path / "model.mercer")
    assert (tmp_path / "model.mercer").stat().st_size < 8 * n * (n + 1) / 2 + 40_000


def test_what_cannot_be_kept_is_named(tmp_path):
    model = GaussianProcessRegressor(Shifted(), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="Shifted is not one of scikit-learn's own kernels"):
        save(model, tmp_path / "model.mercer")
    kernel = MiniSeqKernel(baseline_similarity_bounds="fixed")
    text = GaussianProcessClassifier(kernel).fit(["A", "B"], [0, 1])
    with pytest.raises(ValueError, match="MiniSeqKernel is not one of scikit-learn's own"):
        save(text, tmp_path / "model.mercer")
    model = GaussianProcessRegressor(random_state=np.random.RandomState(0))
    with pytest.raises(ValueError, match="random_state of type RandomState cannot be saved"):
        save(model, tmp_path / "model.mercer")
