"""Which engine takes which likelihood, and in which words the others refuse."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.evidence import ENGINES, best_engine, engines_that_take, require_pair
from mercer.evidence.engines import arrays_of, state_of
from mercer.inference import ep, variational
from mercer.likelihoods import (
    Custom,
    EpsilonInsensitive,
    Gaussian,
    Huber,
    Laplace,
    Likelihood,
    Logistic,
    MixtureNoise,
    Poisson,
    Probit,
    SoftLabels,
    Softmax,
    StudentT,
)


def log_normal(y, f):
    return -0.5 * (y - f) ** 2 - 0.5 * np.log(2 * np.pi)


ALL = ["laplace", "ep", "vi", "map"]
TABLE = [
    (Gaussian(0.1), ALL),
    (Gaussian(np.ones(3)), ALL),
    (Gaussian(np.eye(3)), []),
    (Laplace(1.0), ["ep", "vi", "map"]),
    (Laplace(), ["ep", "vi", "map"]),
    (EpsilonInsensitive(0.1, 1.0), ["ep", "vi", "map"]),
    (Huber(1.0, 1.0), ALL),
    (StudentT(4.0, 1.0), ALL),
    (Logistic(), ["laplace", "ep", "vi", "bounds", "map"]),
    (Probit(1.0), ALL),
    (Poisson(), ALL),
    (Probit(0.0), ["ep"]),
    (MixtureNoise([0.5, 0.5], [-1.0, 1.0], [0.1, 0.1]), ["ep"]),
    (SoftLabels(Logistic()), ALL),
    (Softmax(3), ["laplace", "map"]),
    (Custom(log_normal), ALL),
    (Custom(log_normal, twice_differentiable=False), ["ep", "vi"]),
    (Custom(log_normal, always_positive=False), ["ep"]),
    (Custom(log_normal, unimodal=False), ["ep"]),
]


@pytest.mark.parametrize(("likelihood", "engines"), TABLE, ids=lambda v: repr(v)[:40])
def test_the_table(likelihood, engines):
    assert engines_that_take(likelihood) == engines
    for name in ENGINES:
        if name in engines:
            require_pair(likelihood, name)
            continue
        with pytest.raises(ValueError, match=f"inference='{name}'") as caught:
            require_pair(likelihood, name)
        text = str(caught.value)
        assert f"does not take {type(likelihood).__name__}: " in text
        for other in engines:
            assert f"inference={other!r}" in text.partition("; use ")[2]


@pytest.mark.parametrize(
    ("likelihood", "inference", "text"),
    [
        (Laplace(1.0), "laplace", "second derivative .* is 0 almost everywhere"),
        (Probit(0.0), "vi", "density is 0 for some latent values"),
        (TABLE[12][0], "map", "several peaks"),
        (Softmax(3), "ep", "each class against the rest"),
        (Poisson(), "bounds", "it is not Logistic"),
        (Gaussian(np.eye(2)), "ep", "correlated between the rows.*use inference='exact'"),
        (Likelihood(), "ep", "it has no log_density"),
        (Poisson(), "exact", "inference must be one of 'laplace', 'ep'"),
        ("poisson", "ep", "likelihood must be one of mercer.likelihoods, got 'poisson'"),
    ],
)
def test_the_reasons(likelihood, inference, text):
    with pytest.raises(ValueError, match=text):
        require_pair(likelihood, inference)


def test_the_engine_that_is_taken_by_itself():
    chosen = {type(likelihood).__name__: best_engine(likelihood) for likelihood, e in TABLE[3:15]}
    assert chosen == {
        "Laplace": "ep",
        "EpsilonInsensitive": "ep",
        "Huber": "ep",
        "StudentT": "laplace",
        "Logistic": "laplace",
        "Probit": "ep",  # the last of them is the step
        "Poisson": "vi",
        "MixtureNoise": "ep",
        "SoftLabels": "laplace",
        "Softmax": "laplace",
    }
    with pytest.raises(ValueError, match="no log_density"):
        best_engine(Likelihood())


class Rates(Poisson):
    """Counts that prefer another engine."""

    preferred_inference = "ep"


class Shaped(Laplace):
    """What it prefers does not take it."""

    preferred_inference = "laplace"


def test_the_engine_that_a_likelihood_prefers():
    assert best_engine(Rates()) == "ep" and best_engine(Shaped(1.0)) == "ep"
    for name in ("EP", "map"):  # which has no evidence to search by
        likelihood = type("Counts", (Poisson,), {"preferred_inference": name})()
        with pytest.raises(ValueError, match=f"of Counts must be .* 'vi', got '{name}'"):
            best_engine(likelihood)


@pytest.mark.parametrize(
    ("inference", "state"),
    [
        ("laplace", np.arange(3.0)),
        ("map", np.arange(3.0)),
        ("ep", ep.SiteState(np.ones(3), np.zeros(3), np.arange(3.0))),
        ("vi", variational.State(np.ones(3), np.zeros(3))),
        ("ep", None),
    ],
)
def test_states_are_kept_as_arrays(inference, state):
    again = state_of(inference, [a.tolist() for a in arrays_of(state)])
    assert type(again) is type(state)
    np.testing.assert_array_equal(np.asarray(again), np.asarray(state))
