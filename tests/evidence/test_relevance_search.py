"""The functions of relevance vector machines, and the search for what they depend on."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.evidence.relevance_engines import Numbers
from mercer.evidence.relevance_functions import Dictionary
from mercer.evidence.relevance_search import Search, width_starts
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


def test_starts_that_were_drawn_leave_out_none_of_the_others():
    # The best of them comes first, so that two wide ones in a row score far less.
    made = Dictionary((RBF([1.0, 1.0]),), X, (None,), np.ones((40, 1)))
    starts = width_starts(made, (16.0, 8.0, 1.0))
    search = Search(engine(), np.log([[1e-2, 1e2]] * 2), 0.3, 2.0, 4)
    search.best_of(made, starts, 1, drawn=[made.theta + 0.01])
    np.testing.assert_allclose(search.thetas[1:4], starts)
