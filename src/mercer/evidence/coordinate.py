"""Hyperparameters by the joint density of observations and latent function (BKM 3.6).

Where there is no evidence, only the mode of the latent function (`mercer.inference.map`), the
hyperparameters w can be found beside it: by climbing

    J(f, w) = log p(y | f, w) + log N(f; m_w, K_w) + log p(w)

a) in f at fixed w and b) in w at fixed f, in turn. Neither ever lowers J.

The alternation converges slowly, and comes to rest where log p(y | f, w) has kinks in w that move
with f, as the edges of `EpsilonInsensitive` do. Near its end w and f are therefore moved together:
of max over f of J the gradient in w is that of J at the mode, since J is stationary in f there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mercer.errors import ConvergenceWarning, NotPositiveDefiniteError, warn
from mercer.evidence.latent import LatentObjective
from mercer.evidence.optimum import Optimum, Report
from mercer.inference import LatentAdjoints, LatentProblem

__all__ = ["ascend"]

Floats = NDArray[np.float64]

# Gains of a turn, in units of 1 + |J|: below the first the two are moved together, below the second
# it is over.
_SLOW, _NOTHING = 1e-3, 1e-6
# How far a turn goes, in units of log-parameter. The joint density has other maxima that are far
# away, higher, and of no use: see `ascend`.
_REACH, _NEAR = 1.0, 0.25
_STEPS = 20  # of L-BFGS-B in a turn

#: theta -> (value, gradient)
Function = Callable[[Floats], tuple[float, Floats]]


class _Point(NamedTuple):
    """Hyperparameters, the mode there, and J with its gradient."""

    theta: Floats
    alpha: Floats
    latent: Floats
    value: float
    gradient: Floats


def ascend(
    objective: LatentObjective, *, max_iter: int = 200, report: Report | None = None
) -> Optimum:
    """Climb the joint density of observations, latent function and hyperparameters.

    **Prefer the evidence**, which every likelihood has by some other engine, and which integrates
    the function out. A density knows nothing of how much probability is around its top. This one
    grows without limit as the kernel's variance goes to 0 and the function to its mean, as a
    length scale grows and K becomes singular, and as the noise goes to 0 and the function to the
    data. What is found is the local maximum that the start leads to, if there is one; otherwise
    the search ends at a bound, or where K is singular to rounding. Length scales come out too
    long, and functions too smooth.

    Parameters
    ----------
    objective : LatentObjective
        With inference "map". As ln det K needs a K that is not singular, its jitter is decided on
        at the start, and held.
    max_iter : int
        How many turns there are, at the most.
    report : callable, optional
        As that of `maximise`, called after each turn.

    Returns
    -------
    Optimum
        `values` are those of J at the mode at the start and after each turn, hyperpriors included,
        and never fall; `thetas` are the hyperparameters.

    Notes
    -----
    Ctrl-C ends the search and keeps the best point. A turn takes up to forty factorisations of
    O(n^3); those that move function and hyperparameters together, ten times as many.
    """
    if objective.theta.size == 0:
        return Optimum(objective.theta, np.nan, "fixed", "there is nothing to optimise")
    ascent = _Ascent(objective, report)
    try:
        status, message = ascent.run(max_iter)
    except KeyboardInterrupt:
        if ascent.at is None:
            raise
        status, message = "interrupted", "interrupted; the best point so far is kept"
        warn(
            f"the fit was interrupted after {ascent.turns} turns; the best parameters so far are "
            "kept",
            ConvergenceWarning,
        )
    return ascent.optimum(status, message)


class _Ascent:
    """The turns of a search, and what it has seen."""

    def __init__(self, objective: LatentObjective, report: Report | None) -> None:
        self.objective, self.report = objective, report
        self.bounds, self.directions = objective.bounds, objective.directions
        self.at: _Point | None = None
        self.thetas: list[Floats] = []
        self.values: list[float] = []
        self.failed = False  # whether K was singular somewhere

    def run(self, max_iter: int) -> tuple[str, str]:
        """Take turns until nothing is gained; return the status and a message."""
        at = self.keep(self.point(np.clip(self.objective.theta, *self.bounds.T)))
        both = False
        for _ in range(max_iter):
            new = self.together(at) if both else self.alternate(at)
            gain = -np.inf if new is None else (new.value - at.value) / (1.0 + abs(at.value))
            if new is not None and gain > 0:
                at = self.keep(new)
            if both and gain <= _NOTHING:
                if self.is_flat:
                    return "converged", f"a turn gained less than {_NOTHING:g} of the value"
                edge = "; beyond it the Gram matrix is singular to rounding" if self.failed else ""
                return "stopped", f"no higher point was found nearby{edge}"
            both = both or gain <= _SLOW
        return "stopped", f"there were {max_iter} turns"

    def keep(self, point: _Point) -> _Point:
        """Make a point that of the search, and record it."""
        self.at = point
        self.objective.state = point.alpha
        self.thetas.append(point.theta)
        self.values.append(point.value)
        if self.report is not None:
            self.report(1, len(self.values), point.value, point.value)
        return point

    @property
    def turns(self) -> int:
        """How many turns have led to a higher point: the first value is that of the start."""
        return len(self.values) - 1

    @property
    def slope(self) -> float:
        """The steepest slope at the point of the search, along a direction that is not bounded."""
        assert self.at is not None
        theta, along = self.at.theta, self.directions.pull(self.at.gradient)
        low, high = self.bounds.T
        inside = (theta > low) & (theta < high)
        return float(np.max(np.abs(along[inside]), initial=0.0))

    @property
    def is_flat(self) -> bool:
        """Whether there is nothing to gain nearby."""
        return self.optimum("", "").is_flat

    def optimum(self, status: str, message: str) -> Optimum:
        """Return where the search stands."""
        assert self.at is not None
        at, jitter = self.at, self.objective.jitter
        record = self.thetas, self.values, self.turns
        return Optimum(at.theta, at.value, status, message, *record, self.slope, jitter)

    # --- the two kinds of turn ----------------------------------------------------------------

    def alternate(self, at: _Point) -> _Point:
        """Return the mode at the hyperparameters that are best for the latent values of `at`."""
        theta = self.climb(lambda theta: self.beside(theta, at.latent)[:2], at, _REACH)
        # begun from the same latent values, the mode is not a lower one
        return self.point(theta, self.beside(theta, at.latent)[2])

    def together(self, at: _Point) -> _Point | None:
        """Return the best point nearby of those that a search over the modes has come to."""
        best: _Point | None = None

        def value(theta: Floats) -> tuple[float, Floats]:
            nonlocal best
            point = self.point(theta, at.alpha)
            if best is None or point.value > best.value:
                best = point
            return point.value, point.gradient

        self.climb(value, at, _NEAR)
        return best

    def climb(self, function: Function, at: _Point, reach: float) -> Floats:
        """Maximise a function of theta within reach of a point, and of the bounds.

        Where it has no value it is a penalty that falls off with the distance.
        """
        steps, low, high = self.directions, *self.bounds.T
        centre = steps.along(at.theta)
        unit = 1.0 / max(1.0, float(np.linalg.norm(steps.pull(at.gradient))))
        height = 10.0 * (1.0 + abs(at.value))

        def minimised(along: Floats) -> tuple[float, Floats]:
            theta = steps.theta(along)
            try:
                value, gradient = function(theta)
            except NotPositiveDefiniteError:
                self.failed = True
                step = theta - at.theta
                value = at.value - height * (1.0 + float(step @ step))
                gradient = -2.0 * height * step
            return -unit * value, -unit * steps.pull(gradient)

        box = np.stack([np.maximum(low, centre - reach), np.minimum(high, centre + reach)], axis=1)
        options = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "ftol": 1e-12, "gtol": 1e-6 * unit}
        found = minimize(
            minimised, centre, jac=True, method="L-BFGS-B", bounds=box, options=options
        )
        return np.asarray(np.clip(steps.theta(found.x), low, high))

    # --- the joint density --------------------------------------------------------------------

    def point(self, theta: Floats, start: Floats | None = None) -> _Point:
        """Return the mode at theta, with J and its gradient."""
        problem, priors = self.problem(theta)
        solution, adjoints = self.objective.engine.evidence(problem, start)
        assert solution.log_joint is not None
        if self.objective.jitter is None:  # decided once
            self.objective.hold_jitter(solution.jitter)
        value, gradient = solution.log_joint + priors[0], self.pull(theta, adjoints) + priors[1]
        return _Point(np.array(theta), solution.alpha, solution.latent, value, gradient)

    def beside(self, theta: Floats, f: Floats) -> tuple[float, Floats, Floats]:
        """Return J at latent values f, its gradient in theta, and K^-1 (f - m)."""
        problem, priors = self.problem(theta)
        value, adjoints = self.objective.engine.joint(problem, f)
        return value + priors[0], self.pull(theta, adjoints) + priors[1], adjoints.mean

    def problem(self, theta: Floats) -> tuple[LatentProblem, tuple[float, Floats]]:
        """Return the engine's problem at theta, and the hyperpriors with their gradient."""
        model = self.objective.unpack(theta)
        problem = self.objective.problem(*model)
        assert isinstance(problem, LatentProblem)
        value = sum(part.log_prior() for part in model)
        return problem, (value, np.concatenate([part.log_prior_gradient() for part in model]))

    def pull(self, theta: Floats, adjoints: LatentAdjoints) -> Floats:
        """Chain adjoints to theta."""
        kernel, _, mean = self.objective.unpack(theta)
        X = self.objective.data.X
        in_kernel = adjoints.factor * kernel.pullback(X, None, adjoints.K, inputs=False).theta
        in_mean = mean.pullback(X, adjoints.mean[:, None])
        return np.concatenate([in_kernel, adjoints.likelihood, in_mean])
