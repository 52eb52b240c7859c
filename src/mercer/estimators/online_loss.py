"""Warnings of an on-line process: rows skipped, its basis, its error bars, a better constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MercerWarning, warn
from mercer.estimators.online_bars import FEWEST, count_outside, fade, warn_of_bars
from mercer.estimators.online_process import HasOnlineProcess
from mercer.estimators.options import require_count
from mercer.evidence.target_sums import constant_log_density, moments_of
from mercer.inference._online_rules import LEAST
from mercer.inference.online import Before
from mercer.likelihoods import Custom, Gaussian, Likelihood, StudentT

__all__ = ["NO_LOSSES", "NoticesLosses"]

Whole = NDArray[np.intp]

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
# Noise below this part of the targets' variance is next to none: `tol` counts beside it.
_EXACT = 1e-5
_HELD = "held at 1e-4 of the targets' variance or so (Gaussian(Parameter(..., fixed=True)))"

#: What has been lost of no rows.
NO_LOSSES = dict.fromkeys(
    ("nats", "rows", "told", "no_constant", "judged", "outside", "bars_told"), 0.0
)


class NoticesLosses(HasOnlineProcess):
    """Adds to an on-line estimator the count of what its last rows have cost, and its warnings.

    `_lost`, which begins as `NO_LOSSES`, has the nats that about a thousand rows, the last ones,
    have lost of a function, how many rows these are, and the loss a row at the last warning, 0 if
    there was none; all begin anew with another size of the basis. What `prune` costs, which was
    asked for, is not among them, nor what rows cost among which is an outlier. `no_constant` is 1
    once there is nothing to say of a constant any more: it was told that one does better, or rows
    had weights, and powers of densities do not compare with a constant's. `judged` and `outside`
    are as `online_bars` has them, and `bars_told` is 1 once that was told, or a reason for it.
    `_chosen_by` is how many rows chose the hyperparameters, 0 if none or all did.
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

    @property
    def _has_room(self) -> bool:
        """Whether the basis may have more vectors than it has."""
        return self._process.n_basis < self.max_basis

    def prune(self, n: int) -> float:
        """Remove basis vectors of this model, by `criterion`, until n are left.

        Parameters
        ----------
        n : int
            How many to keep. Rows that come later may bring their number back to `max_basis`.

        Returns
        -------
        float
            What that cost: the divergence of the process before from that after, in nats. It is
            also added to `projection_loss_`.
        """
        process = self._require_begun()
        require_count("n", n, 1)
        loss = process.prune(n)
        self._posterior = None
        self._forget_losses()
        return loss

    def _forget_losses(self) -> None:
        """Count what is lost from here on: what was lost before was of another basis."""
        self._lost = {**self._lost, "nats": 0.0, "rows": 0.0, "told": 0.0}

    def _learned(self, X: Any, Y: Any, weights: Any, again: bool = False) -> Before:
        """Let the process learn some rows, and count what they cost.

        If it learns them `again`, it has predicted them before.
        """
        process, lost = self._process, dict(self._lost)
        start = process.projection_loss
        before = process.learn(X, Y, weights)
        is_weighted = weights is not None and bool(np.any(weights != 1.0))
        if is_weighted:
            lost["no_constant"] = 1.0
        if not again:
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
        lost, is_asked = self._lost, self.tol > _TOL or self.novelty != "geometry"
        if lost["rows"] < FEWEST or (self._has_room and is_asked):
            return 0.0
        rate = lost["nats"] / lost["rows"]
        return rate if rate >= _MUCH else 0.0

    def _warn_of(self, before: Before, numbers: Whole | None = None) -> None:
        """Warn of what new rows show, which were predicted so.

        `numbers` says which they are to the user, -1 for one of an earlier call; of a single row
        it is not needed.
        """
        self._warn_of_skipped(before, numbers)
        self._warn_of_losses()
        self._warn_of_constant()
        self._warn_of_bars()

    def _warn_of_skipped(self, before: Before, numbers: Whole | None) -> None:
        """Warn of rows that could not be learned.

        What has come of it is that nothing was learned of these rows, and all of the others.
        """
        skipped = np.flatnonzero(np.isnan(before.log_density))
        if not skipped.size:
            return
        n = len(before.log_density)
        if n == 1:
            which = "the row was skipped"
            why = "its target has probability 0 wherever the process can be, or tells nothing that "
            why += "a Gaussian could hold; or it, or k(x, x) at the inputs, is"
        else:
            first = "one of an earlier call"
            if numbers is not None and numbers[skipped[0]] >= 0:
                first = f"row {numbers[skipped[0]]} (counted from 0)"
            which = f"{skipped.size} of {n} rows were skipped, {first} the first"
            why = "their targets have probability 0 wherever the process can be, or tell nothing "
            why += "that a Gaussian could hold; or they, or k(x, x) at the inputs, are"
        warn(
            f"{which}: under {self.likelihood_!r} {why} too large for floating point. Look for "
            "wrong entries; a likelihood with noise learns from any row of moderate size",
            MercerWarning,
        )

    def _warn_of_losses(self) -> None:
        """Warn if too much is lost: once, and again where it has come to four times as much."""
        rate, lost = self._loss_a_row(), self._lost
        if rate == 0.0 or rate < 4.0 * lost["told"]:
            return
        self._lost = {**lost, "told": rate, "bars_told": 1.0}
        if self._has_room:
            floor = self._process.rules.floor
            less = "Where noise is next to none tol=1e-8 loses less. " if floor > LEAST else ""
            if self._is_exact():
                then = ", and then tol=1e-8" if floor > LEAST else ""
                less = f"Let the noise, which is next to none, be {_HELD}{then}. "
            warn(
                f"of the last {lost['rows']:.0f} rows, each has lost {rate:.2g} nats on average, "
                "though there is room for more basis vectors: what these leave of a row counts "
                f"beside the noise, and is yet below tol={floor:g}, in units of k(x, x). {less}"
                "Columns far from 0, or of large numbers, do that to linear and polynomial "
                "kernels: standardise them",
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
        if self._is_exact():
            return f"The noise that was found is next to none: let it be {_HELD}. "
        return (
            f"What was left open has been chosen by {rows} rows, and n_init={max(500, 2 * rows)} "
            "takes more. "
        )

    def _is_exact(self) -> bool:
        """Whether rows have chosen next to no noise beside the targets so far."""
        sums, likelihood = vars(self).get("_target_sums"), self._process.likelihood
        given = self.kernel is not None and self.likelihood is not None
        if given or sums is None or not isinstance(likelihood, Gaussian):
            return False
        if not likelihood.theta.size:  # it was fixed
            return False
        noise = likelihood.new_variance * self._process.scale**2
        return bool(np.any(noise < _EXACT * moments_of(sums)[1] ** 2))

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
        more = self._let_more_choose() if self._is_exact() else ""
        warn(
            f"the {process.n_seen} rows so far had a log density of {own:.3g} on average when they "
            f"were predicted, and a constant with their mean and deviation has {constant:.3g}: "
            "predictions are off, or their error bars far too narrow or too wide. Some targets may "
            f"be outliers, which {self._name_heavy_tails()} tolerates; the function "
            f"may drift, for which there is forget; {self._name_the_mean()}or kernel and noise do "
            "not suit these rows: choose them by more rows (fit, or, if they are left open, a "
            "larger n_init), with n_restarts=5"
            + ("" if self._has_room else ", or with more basis vectors, max_basis")
            + (f". {more}".rstrip() if more else ""),
            MercerWarning,
        )
