"""Linear models with a function at each point added, and further kernels in a basis."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF, Linear, Matern, Tanh
from mercer.means import Constant
from mercer.posterior import (
    AugmentedExpansion,
    Basis,
    FurtherSections,
    InverseTriangular,
    Posterior,
    load,
)
from mercer.posterior.nearness import far_from, reach_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 2))
Y = np.sin(X[:, 0]) + 0.2 * RNG.standard_normal(25)
S, V = np.array([0.5, 2.0, 1.0, 0.3, 4.0]), np.where(np.arange(25) % 2, 0.05, 0.1)
SCALE = 3.0


def basis():
    rest = FurtherSections([Matern([1.0, 2.0], nu=2.5), Tanh(0.4)], [X[:2], X[4:5]], Constant())
    return Basis(RBF(0.9), X[2:3], rest)


def posterior():
    """N(theta; mu, Xi) from the rows, in units of SCALE."""
    Phi = basis().phi(X)
    H = np.diag(S) + Phi.T @ (Phi / V[:, None])
    mu = np.linalg.solve(H, Phi.T @ (Y / V))
    L = np.linalg.cholesky(H)
    B = InverseTriangular(np.asfortranarray(L))
    return Posterior(basis(), mu[:, None], None, B, 0, None, [SCALE])


def augmented(variance=0.7):
    made = posterior()
    left = Y - made.mean(X)[:, 0] / SCALE
    return AugmentedExpansion(made, X, left / V, 1.0 / V, variance)


def test_a_basis_of_several_kernels():
    made, new = basis(), RNG.normal(size=(4, 2))
    parts = [RBF(0.9)(new, X[2:3]), Matern([1.0, 2.0], nu=2.5)(new, X[:2]), Tanh(0.4)(new, X[4:5])]
    np.testing.assert_allclose(made.phi(new), np.hstack([*parts, np.ones((4, 1))]))
    gradient = posterior().gradients(new)
    for i in range(2):
        e = 1e-6 * np.eye(2)[i]
        up, down = posterior().mean_and_var(new + e), posterior().mean_and_var(new - e)
        for got, a, b in zip(gradient, up, down, strict=True):
            np.testing.assert_allclose(got[:, i], (a - b) / 2e-6, rtol=1e-5, atol=1e-7)


def test_each_point_is_predicted_with_its_function_in_the_model():
    """Against the model solved anew with one more column, for each point."""
    new = np.vstack([RNG.normal(size=(5, 2)), X[2:3], [[40.0, 40.0]]])
    mean, var = augmented().mean_and_var(new)
    for i, x in enumerate(new):
        Phi = np.hstack([basis().phi(X), RBF(0.9)(X, x[None])])
        phi = np.append(basis().phi(x[None]), 1.0)
        Xi = np.linalg.inv(np.diag(np.append(S, 1 / 0.7)) + Phi.T @ (Phi / V[:, None]))
        assert mean[i, 0] == pytest.approx(SCALE * phi @ Xi @ Phi.T @ (Y / V), rel=1e-8)
        assert var[i, 0] == pytest.approx(SCALE**2 * phi @ Xi @ phi, rel=1e-8)
    beyond = posterior().var(new)[-1, 0] + SCALE**2 * 0.7
    assert var[-1, 0] == pytest.approx(beyond)


def test_derivatives_in_the_inputs():
    made, new = augmented(), RNG.normal(size=(4, 2))
    gradient = made.gradients(new)
    for i in range(2):
        e = 1e-5 * np.eye(2)[i]
        up, down = made.mean_and_var(new + e), made.mean_and_var(new - e)
        for got, a, b in zip(gradient, up, down, strict=True):
            np.testing.assert_allclose(got[:, i], (a - b) / 2e-5, rtol=1e-5, atol=1e-6)


def test_it_is_saved_and_has_no_joint_distribution(tmp_path):
    made, new = augmented(), RNG.normal(size=(3, 2))
    made.save(tmp_path / "a.mercer")
    again = load(tmp_path / "a.mercer")
    np.testing.assert_array_equal(again.mean(new), made.mean(new))
    np.testing.assert_array_equal(again.var(new), made.var(new))
    with pytest.raises(ValueError, match="ask for one row"):
        made.cov(new)
    assert made.cov(new[:1]).shape == (1, 1, 1) and made.n_outputs == 1
    assert "25 training rows" in made.describe()


def test_refusals():
    made = posterior()
    with pytest.raises(ValueError, match="degenerate posterior of one output"):
        AugmentedExpansion(made.replace(weight=1), X, Y, V, 1.0)
    with pytest.raises(ValueError, match="variance must be a positive"):
        AugmentedExpansion(made, X, Y, V, 0.0)
    with pytest.raises(ValueError, match="want as many derivatives"):
        AugmentedExpansion(made, X, Y[:3], V, 1.0)
    with pytest.raises(ValueError, match="must not be negative"):
        AugmentedExpansion(made, X, Y, -V, 1.0)


def test_points_that_are_far_from_all_functions():
    made = Posterior(Basis(RBF(0.9), X[:3]), np.ones((3, 1)), weight=0)
    reach = reach_of(made, X)
    assert far_from(made, X, reach) == 0
    assert far_from(made, np.vstack([X, [[30.0, 0.0], [0.0, -30.0]]]), reach) == 2
    assert reach_of(Posterior(Basis(Linear(), X[:3]), np.ones((3, 1)), weight=0), X) is None
    assert reach_of(Posterior(Basis(RBF(), None, Constant()), np.ones((1, 1)), weight=0), X) is None


def test_points_that_are_near_functions_of_another_kernel():
    further = FurtherSections([RBF(2.0)], [X[1:2]], Constant())
    made = Posterior(Basis(RBF(1e-3), X[:1], further), np.ones((3, 1)), weight=0)
    reach = reach_of(made, X, 2)
    beside = X[1:2] + 0.5  # where the narrow function is 0, and the wide one is not
    assert far_from(made, np.vstack([beside, [[50.0, 50.0]]]), reach) == 1
