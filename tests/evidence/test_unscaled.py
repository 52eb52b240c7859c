"""What the look for a missing variance costs, and that it never costs the fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import BayesianCommitteeRegressor, GPRegressor, SparseGPRegressor, means
from mercer.errors import ConvergenceWarning
from mercer.evidence import Data, Objective, Optimum, unscaled
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian, Laplace

RNG = np.random.default_rng(3)
X = RNG.uniform(-2, 2, (60, 2))
NOISE = 1e3 * RNG.standard_normal(60)
WAVE = 1e3 * np.sin(2 * X[:, 0]) + 0.1 * NOISE


class Watched(Objective):
    """Keeps a list of all trials, and of what they were asked."""

    trials: list[Watched]
    asked: list[str]

    def __init__(self, *args):
        super().__init__(*args)
        self.trials.append(self)

    def value(self, theta):
        self.asked.append("value")
        return super().value(theta)

    def evaluate(self, theta):
        self.asked.append("evaluate")
        return super().evaluate(theta)

    def _work(self):
        assert all(trial._workspace is None for trial in self.trials if trial is not self)
        return super()._work()


@pytest.fixture
def watched(monkeypatch):
    monkeypatch.setattr(Watched, "trials", [], raising=False)
    monkeypatch.setattr(Watched, "asked", [], raising=False)
    monkeypatch.setattr("mercer.evidence.objective.Objective", Watched)
    return Watched


def heard(y):
    """Return a fit, and what was said of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = GPRegressor(RBF()).fit(X, y)
    return model, " ".join(str(w.message) for w in caught)


def test_one_matrix_is_held_at_a_time(watched, monkeypatch):
    monkeypatch.setattr(unscaled, "_MUCH", 1e9)  # so that all is tried
    data = Data(X, WAVE[:, None], None, np.ones(1))
    objective = Objective(RBF(), Gaussian(1e6), means.Zero(), data)
    theta = objective.theta + np.array([0.5, 0.0])  # a length scale that is not that of the start
    end = Optimum(theta, objective.value(theta), "converged", "")
    objective.release()
    unscaled.warn_if_too_small(objective, end)
    assert len(watched.trials) == watched.asked.count("value") == 2
    assert 2 < watched.asked.count("evaluate") < 25


def test_noise_takes_two_evaluations_at_most(watched):
    assert "no variance that could be learned" not in heard(NOISE)[1]
    assert 1 <= len(watched.asked) <= 2 and "evaluate" not in watched.asked


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("where", ["value", "evaluate"])
def test_the_fit_is_kept_whatever_happens(where, error, watched, monkeypatch):
    def fails(*_):
        raise error

    monkeypatch.setattr(unscaled, "_MUCH", 1e9)
    monkeypatch.setattr(watched, where, fails)
    model, said = heard(WAVE)
    assert watched.trials and model.status_ == "converged"
    assert "interrupted" not in said and "no variance" not in said


@pytest.mark.parametrize(
    "model",
    [
        SparseGPRegressor(RBF(), approximation="vfe", n_inducing=20, random_state=0),
        SparseGPRegressor(RBF(), approximation="pic", n_inducing=20, random_state=0),
        SparseGPRegressor(RBF(), Laplace(), n_inducing=20, random_state=0),
        BayesianCommitteeRegressor(RBF(), n_members=2, random_state=0),
    ],
    ids=["vfe", "pic", "latent", "committee"],
)
def test_a_function_is_lost_through_inducing_inputs_and_in_parts_too(model):
    with pytest.warns(ConvergenceWarning, match="no variance that could be learned"):
        model.fit(X, WAVE)


def test_a_function_lost_beside_noise_that_is_known():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 5.0, (40, 1))
    y = 1e3 * np.sin(2.0 * X[:, 0]) + 50.0 * rng.normal(size=40)
    with pytest.warns(ConvergenceWarning, match="no variance that could.*the given noise allow"):
        GPRegressor(RBF(), likelihood=Gaussian(np.full(40, 2500.0))).fit(X, y)
