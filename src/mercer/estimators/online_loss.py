"""Warnings of an on-line process: of its basis and error bars, and that a constant does better."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import MercerWarning, warn
from mercer.estimators.online_bars import FEWEST, count_outside, fade, warn_of_bars
from mercer.estimators.online_process import HasOnlineProcess
from mercer.evidence.target_sums import constant_log_density
from mercer.inference.online import Before
from mercer.likelihoods import Custom, Likelihood, StudentT

__all__ = ["NO_LOSSES", "NoticesLosses"]

# Nats that a row loses of a function at the least for a warning. Errors of the function were half
# as large again and more then, in all that was looked at, and next to those of a larger basis at
# half of this (docs/guide/online.md has a table).
_MUCH = 0.3
# What is below this part of k(x, x) is left out by default, and nobody has asked for it.
_TOL = 1e-6
# Nats that the log density of a row, on average, is less than a constant's at the least for a
# warning: what a good model loses while it learns its first rows comes to less.
_BELOW = 0.1
# Nats that the density of a single row is less than a constant's if it is an outlier, ten standard
# deviations or so from what was predicted: what it costs says nothing of the basis.
_WILD = 50.0


#: What has been lost of no rows.
NO_LOSSES = dict.fromkeys(
    ("nats", "rows", "told", "no_constant", "judged", "outside", "bars_told"), 0.0
)


class NoticesLosses(HasOnlineProcess):
    """Adds to an on-line estimator the count of what its last rows have cost, and its warnings.

    `_lost`, which begins as `NO_LOSSES`, has the nats that about a thousand rows, the last ones,
    have lost of a function, how many rows these are, and the loss a row at the last warning, 0 if
    there was none. What `prune` costs, which was asked for, is not among them, nor what rows cost
    among which is an outlier. `no_constant` is 1 once there is nothing to say of a constant any
    more: it was told that one does better, or rows had weights, and powers of densities do not
    compare with a constant's. `judged` and `outside` are as `online_bars` has them, and `bars_told`
    is 1 once that was told, or a reason for it. `_chosen_by` is how many rows chose the
    hyperparameters, 0 if none or all did.
    """

    max_basis: int
    tol: float
    novelty: str
    kernel: Any
    likelihood: Any
    likelihood_: Likelihood
    # of a model that waits for rows to begin with, or goes on from a posterior
    _lost: dict[str, float] = NO_LOSSES
    _chosen_by: int = 0

    def _learned(self, X: Any, Y: Any, weights: Any) -> Before:
        """Let the process learn some rows, and count what they cost."""
        process, lost = self._process, dict(self._lost)
        start = process.projection_loss
        before = process.learn(X, Y, weights)
        is_weighted = weights is not None and bool(np.any(weights != 1.0))
        if is_weighted:
            lost["no_constant"] = 1.0
        count_outside(lost, before, Y, weights, process)
        cost = process.projection_loss - start
        # what has cost nothing need not be asked for outliers, which takes time row by row
        is_plain = is_weighted or cost == 0.0
        if is_plain or not np.any(before.log_density < self._constant() - _WILD):
            lost["nats"] += cost / len(process.scale)
            lost["rows"] += len(Y)
        fade(lost, "rows", "nats")
        self._lost = lost
        return before

    def _constant(self) -> float:
        """Return the log density of a row under a constant model, NaN if that is not known.

        It is not for labels, for counts and densities of the user's own, whose values do not
        compare with a normal density's, for targets that never vary, and where learning went on
        from a posterior, whose targets are unknown.
        """
        sums, likelihood = vars(self).get("_target_sums"), self.likelihood_
        if sums is None or likelihood.counts_events or isinstance(likelihood, Custom):
            return np.nan
        return constant_log_density(sums)

    def _loss_a_row(self) -> float:
        """Return the nats a row and function that are lost lately, 0 unless that is too much.

        It is not where few rows are there to judge by, or while the basis has room and rows are
        left out of it because that was asked for.
        """
        lost, room = self._lost, self._process.n_basis < self.max_basis
        if lost["rows"] < FEWEST or (room and (self.tol > _TOL or self.novelty != "geometry")):
            return 0.0
        rate = lost["nats"] / lost["rows"]
        return rate if rate >= _MUCH else 0.0

    def _warn_of_losses(self) -> None:
        """Warn if too much is lost: once, and again where it has come to four times as much."""
        rate, lost = self._loss_a_row(), self._lost
        if rate == 0.0 or rate < 4.0 * lost["told"]:
            return
        self._lost = {**lost, "told": rate, "bars_told": 1.0}
        if self._process.n_basis < self.max_basis:
            warn(
                f"of the last {lost['rows']:.0f} rows, each has lost {rate:.2g} nats on average, "
                "though there is room for more basis vectors: what these leave of a row counts "
                f"beside the noise, and is yet below tol={self.tol:g}, in units of k(x, x). "
                "Where noise is next to none tol=1e-8 loses less. Columns far from 0, or of large "
                "numbers, do that to linear and polynomial kernels: standardise them",
                MercerWarning,
            )
            return
        warn(
            f"max_basis={self.max_basis} is too small for these rows: of the last "
            f"{lost['rows']:.0f}, each has lost {rate:.2g} nats on average to the basis vectors "
            "that there is no room for. Most of what rows say is lost again then, and predictions "
            "can be poor. See first to outliers, and to kernel and noise, if they may not suit the "
            "rows: a function that follows every row needs a basis vector for each. "
            f"{self._let_more_choose()}Else raise max_basis; where inputs move on, as time does, "
            "or the function drifts, give forget, such as 0.01, by which the past makes room",
            MercerWarning,
        )

    def _warn_of_bars(self) -> None:
        """Warn once of error bars that are too narrow, unless a reason for it has been told."""
        lost, process = self._lost, self._process
        if not lost["bars_told"] and warn_of_bars(lost, process, self._let_more_choose()):
            self._lost = {**lost, "bars_told": 1.0}

    def _let_more_choose(self) -> str:
        """Return what to do about hyperparameters that the first rows chose."""
        rows = self._chosen_by
        if not rows or (self.kernel is not None and self.likelihood is not None):
            return ""
        return (
            f"What was left open has been chosen by {rows} rows, and n_init={max(500, 2 * rows)} "
            "takes more. "
        )

    def _name_the_mean(self) -> str:
        """Return that the mean may be why, if its coefficients are 0 since none were chosen."""
        mean, points = self._process.mean_function, self._process.points
        if mean.estimate is None or not len(points) or np.any(mean(points)):
            return ""
        return "the mean is 0, as where kernel and noise are given (take it off the targets); "

    def _name_heavy_tails(self) -> str:
        """Return noise that tolerates outliers, which rows without any cannot choose."""
        if isinstance(self.likelihood_, StudentT):
            return "StudentT(df=Parameter(4.0, fixed=True))"
        return "noise of heavy tails such as StudentT()"

    def _warn_of_constant(self) -> None:
        """Warn once if a constant would have predicted all rows so far better."""
        lost, process = self._lost, self._process
        if lost["no_constant"] or process.n_seen < FEWEST:
            return
        constant, own = self._constant(), process.mean_log_density
        if not own < constant - _BELOW:
            return
        self._lost = {**lost, "no_constant": 1.0, "bars_told": 1.0}
        room = process.n_basis < self.max_basis
        warn(
            f"the {process.n_seen} rows so far had a log density of {own:.3g} on average when they "
            f"were predicted, and a constant with their mean and deviation has {constant:.3g}: "
            "predictions are off, or their error bars far too narrow or too wide. Some targets may "
            f"be outliers, which {self._name_heavy_tails()} tolerates; the function "
            f"may drift, for which there is forget; {self._name_the_mean()}or kernel and noise do "
            "not suit these rows: choose them by more rows (fit, or, if they are left open, a "
            "larger n_init), with n_restarts=5"
            + ("" if room else ", or with more basis vectors, max_basis"),
            MercerWarning,
        )
