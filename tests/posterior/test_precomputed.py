"""Rows of a kernel matrix in place of inputs, against the same model asked with inputs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.kernels import Precomputed
from mercer.means import Constant
from mercer.posterior import Basis, PrecomputedPredictive, load


@pytest.fixture(params=["exact", "coupled", "degenerate"])
def pair(request, naive):
    """A case, and its posterior over row numbers, with one training row that is no basis point."""
    case = {
        "exact": lambda: naive.Exact(3, P=2, scale=[0.5, 3.0]),
        "coupled": lambda: naive.Coupled(3, scale=[1.0, 2.0, 0.3]),
        "degenerate": lambda: naive.Degenerate(3, scale=[2.0, 0.7]),
    }[request.param]()
    train = np.vstack([np.full((1, case.X.shape[1]), 0.3), case.X])
    numbers = np.arange(1.0, len(train))[:, None]
    kernel = Precomputed(naive.rbf(train, train))
    mean = Constant(1.5, estimate=None)
    posterior = case.posterior.replace(basis=Basis(kernel, numbers), mean=mean)
    rows = naive.rbf(case.Xs, train)
    return case, PrecomputedPredictive(posterior), rows, naive.rbf(case.Xs, case.Xs)


def test_predictions(pair):
    case, model, rows, Kss = pair
    assert model.n_outputs == case.posterior.n_outputs
    assert_array_equal(model.scale, case.scale)
    assert_allclose(model.mean(rows), case.mean(case.Xs) + 1.5, rtol=1e-10)
    joint = np.hstack([rows, Kss])
    assert_allclose(model.mean(joint), case.mean(case.Xs) + 1.5, rtol=1e-10)
    assert_allclose(model.cov(joint), case.cov(case.Xs), rtol=1e-9, atol=1e-12)
    single = np.hstack([rows, np.ones((len(rows), 1))])
    assert_allclose(model.var(single), case.posterior.var(case.Xs), rtol=1e-9, atol=1e-12)


def test_draws_are_those_of_the_posterior(pair):
    case, model, rows, Kss = pair
    found = model.sample(np.hstack([rows, Kss]), 5, 7)
    assert_allclose(found, case.posterior.sample(case.Xs, 5, 7) + 1.5, atol=1e-7)


def test_saving(pair, tmp_path):
    _, model, rows, Kss = pair
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is PrecomputedPredictive
    joint = np.hstack([rows, Kss])
    assert_array_equal(again.mean(rows), model.mean(rows))
    assert_array_equal(again.cov(joint), model.cov(joint))
    assert_array_equal(again.sample(joint, 2, 0), model.sample(joint, 2, 0))
    assert again.describe() == model.describe()


def test_what_is_refused(pair, naive):
    case, model, rows, _ = pair
    n = rows.shape[1]
    with pytest.raises(ValueError, match=rf"{n} columns, K\(x, X_train\); got {n - 1}"):
        model.mean(rows[:, 1:])
    if model.posterior.weight:
        with pytest.raises(ValueError, match=r"1 more: k\(x, x\)"):
            model.var(rows)
        with pytest.raises(ValueError, match=rf"{len(rows)} more: K\(x, X_new\)"):
            model.sample(rows)
    else:  # linear in the columns, of which there are no more
        assert_allclose(model.var(rows), case.posterior.var(case.Xs), rtol=1e-9, atol=1e-12)
        assert_allclose(model.cov(rows), case.cov(case.Xs), rtol=1e-9, atol=1e-12)
        assert model.sample(rows, 2, 0).shape[:2] == (len(rows), 2)
    with pytest.raises(ValueError, match="2-D"):
        model.mean(rows[0])
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(rows, 0)
    with pytest.raises(ValueError, match="no derivatives"):
        model.gradients(rows)
    with pytest.raises(ValueError, match="must be Precomputed"):
        PrecomputedPredictive(case.posterior)
