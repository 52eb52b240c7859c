"""The search for hyperparameters: optimum, restarts, history, interruption, diagnostics."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import means
from mercer.errors import BoundWarning, ConvergenceWarning, NotPositiveDefiniteError
from mercer.evidence import Data, Objective, hessian, maximise, standard_errors
from mercer.evidence.at_bounds import warn_at_bounds
from mercer.evidence.directions import Directions
from mercer.evidence.optimum import Lines
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.params import LogNormal, Parameter


class Quadratic:
    """-(t - c)' M (t - c)/2, for which everything is known."""

    def __init__(self, centre, M):
        self.centre, self.M = np.asarray(centre), np.asarray(M)
        self.theta = np.zeros(len(centre))
        self.bounds = np.tile([-10.0, 10.0], (len(centre), 1))
        self.directions = Directions(len(centre))
        self.parameter_names = [f"length_scale[{i}]" for i in range(len(centre))]
        self.calls = 0
        self.jitter, self.failed, self.again = 0.0, False, None

    def __call__(self, theta):
        self.calls += 1
        step = theta - self.centre
        return -0.5 * step @ self.M @ step, -self.M @ step

    def draw_theta(self, rng):
        return rng.uniform(-5, 5, self.theta.size)

    def value(self, theta):
        step = theta - self.centre
        return -0.5 * step @ self.M @ step

    def start_intervals(self):
        return np.full((self.theta.size, 2), np.nan)

    def hold_jitter(self, jitter):
        self.jitter = jitter


def small(n=30):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(n, 1))
    return Data(X, np.sin(X) + 0.1 * rng.normal(size=(n, 1)), None, np.ones(1))


def test_finds_the_maximum():
    objective = Quadratic([1.0, -2.0], [[2.0, 0.3], [0.3, 1.0]])
    optimum = maximise(objective)
    # the search ends where the gradient is below 1e-3; the least curvature is 0.9
    np.testing.assert_allclose(optimum.theta, [1.0, -2.0], atol=1e-3 / 0.9)
    assert optimum.status == "converged"


def test_a_search_ends_where_iterations_gain_too_little():
    curvatures = np.logspace(-2.0, 2.0, 60)
    objective = Quadratic(np.linspace(1.0, 2.0, 60), np.diag(curvatures))
    whole = maximise(objective)
    objective.least_gain = 0.1
    optimum = maximise(objective)
    assert optimum.status == "converged"
    assert optimum.message == "10 iterations gained less than 0.1"
    assert 10 < optimum.n_iterations < whole.n_iterations
    assert whole.value - 0.1 < optimum.value < whole.value
    assert whole.gain is None and optimum.gain is None


def test_a_start_of_next_to_no_noise_does_not_end_the_search_early():
    """Its gradient is 5e12 long, of which 1e-8 is far more than the rest of theta can gain."""

    class Residuals(Quadratic):  # of a thousand rows, of variance 1
        def __call__(self, theta):
            value, gradient = super().__call__(theta)
            squares = np.exp(-theta[0])
            gradient[0] -= 500.0 * (1.0 - squares)
            return value - 500.0 * (theta[0] + squares), gradient

    objective = Residuals([0.0, 3.0, -2.0], np.diag([0.0, 1.0, 4.0]))
    objective.bounds[0] = -30.0, 5.0
    objective.theta = np.array([np.log(1e-10), 0.0, 0.0])
    optimum = maximise(objective)
    assert optimum.status == "converged"
    np.testing.assert_allclose(optimum.theta, [0.0, 3.0, -2.0], atol=0.02)


@pytest.mark.parametrize(("max_iter", "told"), [(9, False), (20, True)])
def test_a_search_that_its_budget_ends_tells_what_the_last_iterations_gained(max_iter, told):
    objective = Quadratic(np.linspace(1.0, 2.0, 60), np.diag(np.logspace(-2.0, 2.0, 60)))
    optimum = maximise(objective, max_iter=max_iter)
    assert optimum.status == "stopped" and "max_iter" in optimum.remedy
    assert (optimum.gain is not None) == told
    if told:
        assert 0 < optimum.gain < optimum.value - optimum.values[0]


def test_history_holds_every_evaluation_and_the_best_is_kept():
    objective = Quadratic([1.0, -2.0], np.eye(2))
    optimum = maximise(objective)
    assert optimum.n_evaluations == objective.calls == len(optimum.thetas)
    assert optimum.value == max(optimum.values)


def test_nothing_to_optimise():
    objective = Quadratic([], np.empty((0, 0)))
    assert maximise(objective).status == "fixed"


def test_restarts_find_the_better_of_two_optima():
    class Double(Quadratic):
        def __call__(self, theta):
            self.calls += 1
            a, b = theta[0] + 3.0, theta[0] - 3.0
            low, high = np.exp(-(a**2)), 5 * np.exp(-(b**2))
            return low + high, np.array([-2 * a * low - 2 * b * high])

    objective = Double([0.0], np.eye(1))
    objective.theta = np.array([-2.5])
    assert maximise(objective).theta[0] == pytest.approx(-3.0, abs=1e-2)
    best = maximise(objective, n_restarts=8, random_state=0)
    assert best.theta[0] == pytest.approx(3.0, abs=1e-2)


def test_restarts_are_reproducible_and_the_same_in_parallel():
    def run(**kwargs):
        objective = Objective(1.0 * RBF(1.0), Gaussian(0.1), means.Constant(), small())
        return maximise(objective, n_restarts=2, random_state=3, **kwargs)

    one, two, parallel = run(), run(), run(n_jobs=2)
    np.testing.assert_array_equal(one.theta, two.theta)
    np.testing.assert_allclose(one.theta, parallel.theta, rtol=1e-6)
    assert parallel.n_evaluations == one.n_evaluations


def test_interrupting_parallel_starts_keeps_the_best_so_far(ctrl_c):
    class Interrupted(Quadratic):
        def __call__(self, theta):
            value = super().__call__(theta)
            if self.calls == 4:  # no start ends before
                ctrl_c()
            return value

    with pytest.warns(UserWarning, match="interrupted"):
        optimum = maximise(Interrupted([1.0, -2.0], np.diag([1.0, 1e4])), n_restarts=3, n_jobs=2)
    assert optimum.status == "interrupted"
    assert optimum.value == max(optimum.values)


def test_parallel_starts_that_were_all_stopped_at_once_are_an_interruption():
    class Stopped(Quadratic):
        def __call__(self, theta):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maximise(Stopped([1.0], np.eye(1)), n_restarts=1, n_jobs=2)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_where_no_start_has_a_value_the_reason_comes_out(n_jobs):
    class Nowhere(Quadratic):
        def __call__(self, theta):
            raise NotPositiveDefiniteError("for a reason")

        def value(self, theta):
            return -np.inf

    with pytest.raises(NotPositiveDefiniteError, match="for a reason"):
        maximise(Nowhere([1.0], np.eye(1)), n_restarts=2, n_jobs=n_jobs)


def test_starts_are_drawn_around_the_value():
    kernel = RBF(Parameter(1.0, prior=LogNormal(20.0, 0.01)))
    objective = Objective(kernel, Gaussian(0.1), means.Zero(), small())
    draws = np.array([objective.draw_theta(np.random.default_rng(i)) for i in range(50)])
    assert np.all(np.abs(draws - objective.theta) <= 2.0)
    assert np.all(np.ptp(draws, axis=0) > 2.0)


def test_an_interruption_while_jitter_is_looked_for_keeps_the_best_so_far():
    class Interrupted(Quadratic):
        def take_jitter(self):
            raise KeyboardInterrupt

    def one_point(function, start, bounds):
        return start, function(start)[0]

    objective = Interrupted([8.0], np.eye(1))
    objective.failed = True
    with pytest.warns(UserWarning, match="interrupted after"):
        optimum = maximise(objective, optimizer=one_point)
    assert optimum.status == "interrupted" and optimum.value == max(optimum.values)


def test_an_interruption_between_two_starts_keeps_the_best_so_far():
    class Interrupted(Quadratic):
        def __call__(self, theta):
            if self.calls and np.max(np.abs(theta - first)) > 0.1:  # not near the first end
                raise KeyboardInterrupt
            return super().__call__(theta)

    first = np.array([1.0, -2.0])
    objective = Interrupted(first, np.eye(2))
    objective.theta = first
    with pytest.warns(UserWarning, match="interrupted after"):
        optimum = maximise(objective, n_restarts=3, random_state=0)
    assert optimum.status == "interrupted"
    np.testing.assert_allclose(optimum.theta, first)


def test_interruption_keeps_the_best_so_far():
    class Interrupted(Quadratic):
        def __call__(self, theta):
            if self.calls == 3:
                raise KeyboardInterrupt
            return super().__call__(theta)

    with pytest.warns(UserWarning, match="interrupted after 3 evaluations"):
        optimum = maximise(Interrupted([1.0, -2.0], np.diag([1.0, 30.0])))
    assert optimum.status == "interrupted"
    assert optimum.value == max(optimum.values)


def test_given_optimizer_has_scikit_learns_signature():
    seen = {}

    def optimizer(function, start, bounds):
        seen["value"], seen["gradient"] = function(start, eval_gradient=True)
        assert function(start, eval_gradient=False) == seen["value"]
        assert bounds.shape == (2, 2)
        return np.array([1.0, -2.0]), 0.0

    optimum = maximise(Quadratic([1.0, -2.0], np.eye(2)), optimizer=optimizer)
    assert seen["value"] == 2.5
    np.testing.assert_array_equal(optimum.theta, [1.0, -2.0])


def test_progress(capsys):
    maximise(Quadratic([1.0], np.eye(1)), report=Lines())
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("mercer: evaluation 1: -0.5000 (best -0.5000), ")
    Lines(3)(2, 5, -1.0, -0.25)
    assert capsys.readouterr().err.startswith("mercer: start 2/3, evaluation 5: -1.0000 (best -0.2")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_reports_of_every_evaluation(n_jobs):
    seen = {1: [], 2: [], 3: []}
    optimum = maximise(
        Quadratic([1.0, -2.0], np.eye(2)),
        n_restarts=2,
        random_state=0,
        n_jobs=n_jobs,
        report=lambda start, *told: seen[start].append(told),
    )
    assert sum(map(len, seen.values())) == optimum.n_evaluations
    for told in seen.values():
        counts, values, best = map(list, zip(*told, strict=True))
        assert counts == list(range(1, len(told) + 1))
        assert best == np.maximum.accumulate(values).tolist()


def test_a_start_that_goes_on_with_more_jitter_is_reported_as_one():
    class Rough(Quadratic):
        """Has points without a value until jitter was taken twice."""

        taken = 0

        def take_jitter(self):
            self.taken += 1
            self.failed = self.taken < 2
            self.jitter = 10.0 ** (self.taken - 12)
            return True

    def two_points(function, start, bounds):
        function(start)
        return start + 0.5, function(start + 0.5)[0]

    seen = []
    objective = Rough([8.0], np.eye(1))
    objective.failed = True
    optimum = maximise(objective, optimizer=two_points, report=lambda *told: seen.append(told))
    assert objective.taken == 2
    starts, counts, values, bests = zip(*seen, strict=True)
    assert starts == (1,) * 9
    assert counts == tuple(range(1, 10))  # three a search: two points and the end
    assert bests == tuple(np.maximum.accumulate(values))
    assert optimum.values == list(values)
    assert optimum.theta == pytest.approx([1.5]) and optimum.jitter == 1e-10
    assert objective.jitter == 0.0  # as it was, for the next start


def test_a_search_that_no_jitter_helps_asks_for_noise():
    class Singular(Quadratic):
        def take_jitter(self):
            return False

    def one_point(function, start, bounds):
        return start, function(start)[0]

    objective = Singular([8.0], np.eye(1))
    objective.failed = True
    optimum = maximise(objective, optimizer=one_point)
    assert optimum.status == "stopped" and "cannot be factorised" in optimum.message
    assert "noise" in optimum.remedy and "max_iter" not in optimum.remedy
    many = Singular(np.linspace(1.0, 2.0, 60), np.diag(np.logspace(-4.0, 4.0, 60)))
    assert maximise(many, max_iter=15).gain > 0
    many.failed = True  # what the last iterations gained is no reason to be content then
    assert maximise(many, max_iter=15).gain is None


def test_a_report_can_end_the_search():
    def report(start, count, value, best):
        if count == 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted after 2 evaluations"):
        assert maximise(Quadratic([9.0], np.eye(1)), report=report).status == "interrupted"


def test_budget():
    optimum = maximise(Quadratic(np.arange(6.0), np.diag([1, 10, 100, 1e3, 1e4, 1e5])), max_iter=2)
    assert optimum.status == "stopped"


def test_hessian_and_standard_errors():
    M = np.array([[2.0, 0.3], [0.3, 1.0]])
    H = hessian(Quadratic([1.0, -2.0], M), np.array([1.0, -2.0]))
    np.testing.assert_allclose(H, -M, rtol=1e-7)
    np.testing.assert_allclose(standard_errors(H), np.sqrt(np.diag(np.linalg.inv(M))), rtol=1e-6)


def test_flat_directions_have_infinite_standard_errors():
    errors = standard_errors(np.diag([-4.0, 0.0]))
    assert errors[0] == pytest.approx(0.5) and errors[1] == np.inf


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("likelihood.noise", "free of noise"),
        ("kernel.Sum.RBF1.length_scale[0]", "neighbours look unrelated"),
        ("kernel.variance", "this term of the kernel explains nothing"),
        ("kernel.noisemaker.offset", "widen its bounds"),
    ],
)
def test_advice_goes_by_the_parameters_own_name(name, advice):
    objective = Quadratic([-99.0], np.eye(1))
    objective.parameter_names = [name]
    with pytest.warns(BoundWarning, match=advice):
        warn_at_bounds(objective, np.array([-10.0]))


def test_warning_names_the_parameter_at_its_bound():
    objective = Quadratic([0.0, 99.0], np.eye(2))
    with pytest.warns(BoundWarning, match=r"length_scale\[1\] at its upper bound: hardly any") as w:
        warn_at_bounds(objective, maximise(objective).theta)
    assert len(w) == 1 and "length_scale[0]" not in str(w[0].message)


def test_a_search_once_more_is_reported_as_another_start(capsys):
    objective = Quadratic([1.0], np.eye(1))
    objective.again = lambda end: end.theta + 4.0
    maximise(objective, report=Lines())
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("mercer: evaluation 1: ")
    assert last.startswith("mercer: start 2/2, evaluation ")


def test_a_search_once_more_that_is_stopped_at_once_keeps_the_first():
    class Stopped(Quadratic):
        def __call__(self, theta):
            if theta[0] == 9.0:
                raise KeyboardInterrupt
            return super().__call__(theta)

    objective = Stopped([1.0], np.eye(1))
    objective.again = lambda _: np.array([9.0])
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        end = maximise(objective)
    assert end.status == "interrupted" and end.theta[0] == pytest.approx(1.0, abs=1e-3)


def test_what_is_alike_at_bounds_is_said_once():
    objective = Quadratic([99.0, 99.0, 99.0], np.eye(3))
    words = {
        name: f"the length scale of 'c{i}'" for i, name in enumerate(objective.parameter_names)
    }
    with pytest.warns(BoundWarning) as caught:
        warn_at_bounds(objective, maximise(objective).theta, words)
    (text,) = [str(w.message) for w in caught]
    assert "the length scales of 'c0', 'c1' and 'c2' at their upper bounds: hardly any" in text
    assert text.count("n_restarts") == 1
