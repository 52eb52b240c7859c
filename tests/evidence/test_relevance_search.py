"""The functions of relevance vector machines, and the search for what they depend on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mercer.evidence.relevance_engines import Machine, Numbers
from mercer.evidence.relevance_functions import Dictionary
from mercer.evidence.relevance_search import Ended, Search, width_starts
from mercer.kernels import RBF, Matern, Tanh
from mercer.priors import Flat

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (40, 2))
Y = np.column_stack([np.sin(2 * X[:, 0]), np.cos(X[:, 1])]) + 0.1 * RNG.standard_normal((40, 2))


def functions():
    kernels = (Matern([0.8, 1.5], nu=2.5), Tanh(0.5, 0.2))
    return Dictionary(kernels, X, (None, X[:5]), np.ones((40, 1)))


def engine(**options):
    return Numbers(Y, np.zeros((40, 2)), None, Flat(), 1, **options)


def test_columns_are_sections_in_order_then_others():
    made = functions()
    Phi = made.columns().take(np.arange(46))
    wanted = np.hstack([made.kernels[0](X), made.kernels[1](X, X[:5]), np.ones((40, 1))])
    np.testing.assert_allclose(Phi, wanted, rtol=1e-12)
    sections, others = made.split(np.array([3, 39, 40, 44, 45]))
    assert [own.tolist() for own in sections] == [[3, 39], [0, 4]] and others.tolist() == [0]


def test_derivatives_in_parameters_and_centres():
    made, indices = functions(), np.array([3, 17, 40, 44, 45])
    G = np.random.default_rng(1).normal(size=(40, 5))
    theta, centres = made.pull(indices, G, centres=True)
    step = 1e-6
    for i in range(made.theta.size):
        moved = [
            made.with_theta(made.theta + s * np.eye(made.theta.size)[i]) for s in (step, -step)
        ]
        up, down = (np.sum(G * m.columns().take(indices)) for m in moved)
        assert theta[i] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-7)
    points = [X[[3, 17]], X[[0, 4]]]
    for k in range(2):
        for at in np.ndindex(2, 2):
            values = []
            for s in (step, -step):
                own = [np.array(p) for p in points]
                own[k][at] += s
                moved = made.with_centres(indices, own)
                values.append(np.sum(G * moved.columns().take(indices)))
            wanted = (values[0] - values[1]) / (2 * step)
            assert centres[k][at] == pytest.approx(wanted, rel=1e-5, abs=1e-7)


def test_starts_are_widths_from_wide_to_narrow():
    made = functions()
    starts = width_starts(made, (0.5, 2.0))
    np.testing.assert_allclose(np.exp(starts[0] - made.theta)[:2], 2.0)
    np.testing.assert_allclose((starts[1] - made.theta)[2:], 0.0)
    alone = Dictionary((Tanh(),), X, (None,))
    assert len(width_starts(alone, (0.5, 2.0))) == 1


@pytest.mark.parametrize("heavy", [False, True])
def test_a_search_never_loses_evidence(heavy):
    made = Dictionary((RBF([3.0, 3.0]),), X, (None,), np.ones((40, 1)))
    bounds = np.log([[1e-2, 1e2]] * 2)
    for centres in (False, True):
        search = Search(
            engine(heavy=heavy), bounds, 0.05, 0.0, 60, centres, np.ones(2) if centres else None
        )
        begun = search.solved(made, None)
        end = search.climb(begun)
        assert end.value > begun.value + 1.0
        again = search.solved(end.functions, None)
        assert again.value <= end.value + 5.0
        assert (end.functions.centres[0] is None) is not centres


def test_a_search_that_is_interrupted_keeps_what_it_has():
    made = Dictionary((RBF([3.0, 3.0]),), X, (None,), np.ones((40, 1)))
    count = 0

    def report(*_):
        nonlocal count
        count += 1
        if count == 6:
            raise KeyboardInterrupt

    search = Search(engine(), np.log([[1e-2, 1e2]] * 2), 0.05, 0.0, 60, report=report)
    begun = search.solved(made, None)
    end = search.climb(begun)
    assert end.status == "interrupted" and end.value >= begun.value


@pytest.mark.parametrize(
    ("starts", "widths", "tried"),
    [
        ([], [(0, 2), (9, 3), (8, 4)], 3),
        ([], [(0, 2), (9, 20), (8, 21)], 2),  # as far as models with a third of the rows
        ([], [(50, 2), (9, 3), (8, 4), (90, 5)], 3),  # or two in a row that are much worse
        ([(50, 2)], [(9, 3), (8, 4), (90, 5)], 4),
        ([(50, 2), (0, 3), (0, 4)], [(40, 5), (60, 6)], 5),  # of which random starts are none
        ([(50, 2), (0, 20), (0, 20)], [(40, 5), (60, 6)], 5),
        ([(50, 2)], [(60, 20), (70, 2)], 3),
    ],
)
def test_widths_are_in_order_and_other_starts_are_not(monkeypatch, starts, widths, tried):
    """Scores and numbers of functions that the starts have, and how many are tried."""
    made = Dictionary((RBF([3.0, 3.0]),), X, (None,))
    found = [*starts, *widths]

    def solved(self, functions, start):
        score, count = found[int(functions.theta[0])]
        fit = SimpleNamespace(indices=np.arange(count), status="converged")
        seen.append(score)
        return Ended(functions, [Machine(fit)], float(score), float(score))

    seen = []
    monkeypatch.setattr(Search, "solved", solved)
    monkeypatch.setattr(Search, "climb", lambda self, begin: begin)
    search = Search(engine(), np.array([[0.0, 9.0]] * 2), 0.05, 0.0, 60)
    thetas = [np.full(2, float(i)) for i in range(len(found))]
    end = search.best_of(made, thetas[: len(starts)], thetas[len(starts) :], 2)
    assert len(seen) == tried and end.score == max(seen)
