"""On-line processes as posteriors and back, and kept in files."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference import exact
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Laplace, Probit
from mercer.means import Constant
from mercer.posterior import load, save

KERNEL, NOISE = 1.3 * RBF([0.8, 1.1]), 0.2


def rows(n=56):
    rng = np.random.default_rng(0)
    X = 1.5 * rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, :1] + np.arange(2)) + 0.4 * rng.normal(size=(n, 2))


CASES = {
    "gaussian": (Gaussian(NOISE), {}),
    "probit": (Probit(0.7), {"criterion": "kl"}),
    "forgetting": (Gaussian(NOISE), {"forget": 0.03, "novelty": "mean"}),
    "quadrature": (Laplace(0.3), {}),
}


def learned(name, n=30, **changes):
    likelihood, options = CASES[name]
    points, Y = rows()
    Y = np.where(Y > 0, 1.0, -1.0) if name == "probit" else Y
    options = {"max_basis": 8, "tol": 0.01, "n_outputs": 2} | options | changes
    process = OnlineProcess(KERNEL, likelihood, Constant(0.2, estimate=None), **options)
    process.learn(points[:n], Y[:n])
    return process, points[n:], Y[n:]


@pytest.mark.parametrize("name", CASES)
def test_there_and_back_it_goes_on_the_same(name):
    process, X, Y = learned(name, scale=[2.0, 0.5])
    rules = process.rules
    again = OnlineProcess.from_posterior(
        process.posterior(),
        process.likelihood,
        max_basis=8,
        tol=rules.tol,
        criterion=["mean", "kl"][rules.criterion],
        novelty=["geometry", "mean"][rules.novelty],
        forget=1.0 - rules.keep,
    )
    assert again.projection_loss == 0.0
    a, b = process.learn(X, Y), again.learn(X, Y)
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(process.points, again.points)


def test_outputs_with_a_covariance_each_do_not_go_on_with_gaussian_noise():
    process, _, _ = learned("probit")
    with pytest.raises(ValueError, match="continue each output by itself"):
        OnlineProcess.from_posterior(process.posterior(), Gaussian(0.1))


def identical(a, b):
    for name, array in a.to_state()["arrays"].items():
        np.testing.assert_array_equal(array, b.to_state()["arrays"][name])
    np.testing.assert_array_equal(a.points, b.points)
    assert (a.n_seen, a.log_evidence, a.rules) == (b.n_seen, b.log_evidence, b.rules)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_from_its_state_it_goes_on_bit_by_bit(name, features, tmp_path):
    process, X, Y = learned(name, scale=[2.0, 0.5])
    if features:
        points, given = rows()
        start = exact.ExactProblem(
            KERNEL, points[:8], given[:8], np.full(8, NOISE), np.ones((8, 1)), True
        )
        posterior, _ = exact.posterior(start, Constant(estimate="integrate"), np.ones(2))
        process = OnlineProcess.from_posterior(posterior, CASES[name][0], tol=0.01)
    state = process.to_state()
    save(process, tmp_path / "process.mercer")
    process.learn(X, Y)
    for again in (OnlineProcess.from_state(state), load(tmp_path / "process.mercer")):
        again.learn(X, Y)
        identical(process, again)


def test_a_posterior_stays_as_it_was():
    process, X, Y = learned("probit")
    posterior, state = process.posterior(), process.to_state()
    mean, var = posterior.mean(X), posterior.var(X)
    arrays = {name: np.copy(array) for name, array in state["arrays"].items()}
    process.learn(X, Y)
    np.testing.assert_array_equal(posterior.mean(X), mean)
    np.testing.assert_array_equal(posterior.var(X), var)
    for name, array in state["arrays"].items():
        np.testing.assert_array_equal(array, arrays[name])
