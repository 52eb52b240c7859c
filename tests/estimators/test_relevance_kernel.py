"""The choice of kernels by some of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import RelevanceVectorRegressor
from mercer.estimators import relevance_kernel
from mercer.kernels import RBF

from .relevance_data import rows, waves


@pytest.mark.parametrize(
    "options", [{}, {"centres": np.linspace(-3, 3, 12)[:, None]}], ids=["rows", "centres"]
)
def test_more_rows_than_a_kernel_is_chosen_by(monkeypatch, options):
    monkeypatch.setattr(relevance_kernel, "_ROWS", 60)
    X, y = rows(150)
    X[::7] = X[1::7][: len(X[::7])]  # centres that several rows have
    kernels = [RBF(0.5), RBF(0.1)]
    model = RelevanceVectorRegressor(kernels, functions=waves, tol=0.1, **options).fit(X, y)
    # with the kernels that were found, nothing is lost against a fit of its own
    held = RelevanceVectorRegressor(model.kernel_, functions=waves, optimizer=None, **options)
    reached = held.fit(X, y).log_marginal_likelihood_value_
    assert model.log_marginal_likelihood_value_ > reached - 3.0
    parts = [k(X, own) for k, own in zip(model.kernel_, model.relevance_, strict=True)]
    parts.append(waves(X)[:, model.function_indices_])
    by_hand = np.hstack(parts) @ model.weights_ + model.mean_.value
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-9)
