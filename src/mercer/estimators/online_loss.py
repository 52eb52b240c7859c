"""A warning where the basis of an on-line process is so small that rows are lost again."""

from __future__ import annotations

from typing import Any

from mercer.errors import MercerWarning, warn
from mercer.estimators.online_process import HasOnlineProcess
from mercer.inference.online import Before

__all__ = ["NoticesLosses"]

# Nats that a row loses of a function at the least for a warning. Errors of the function were half
# as large again and more then, in all that was looked at, and next to those of a larger basis at
# half of this (docs/guide/online.md has a table).
_MUCH = 0.3
# Rows by which that is judged at the least, and about how many of the last ones count.
_FEWEST, _LATELY = 200, 1000


class NoticesLosses(HasOnlineProcess):
    """Adds to an on-line estimator the count of what its last rows have cost.

    `_lost` has the nats that about a thousand rows, the last ones, have lost of a function, how
    many rows these are, and the loss a row at the last warning, 0 if there was none. What `prune`
    costs, which was asked for, is not among them.
    """

    max_basis: int
    _lost: dict[str, float]

    def _learned(self, X: Any, Y: Any, weights: Any) -> Before:
        """Let the process learn some rows, and count what they cost."""
        process, lost = self._process, dict(self._losses())
        start = process.projection_loss
        before = process.learn(X, Y, weights)
        lost["nats"] += (process.projection_loss - start) / len(process.scale)
        lost["rows"] += len(Y)
        if lost["rows"] >= 2 * _LATELY:
            lost["nats"], lost["rows"] = lost["nats"] / 2.0, lost["rows"] / 2.0
        self._lost = lost
        return before

    def _losses(self) -> dict[str, float]:
        """Return `_lost`, which files of earlier versions do not have."""
        return vars(self).get("_lost") or {"nats": 0.0, "rows": 0.0, "told": 0.0}

    def _loss_a_row(self) -> float:
        """Return the nats a row and function that are lost lately, 0 unless that is too much.

        It is not while the basis has room, or where few rows are there to judge by.
        """
        lost = self._losses()
        if lost["rows"] < _FEWEST or self._process.n_basis < self.max_basis:
            return 0.0
        rate = lost["nats"] / lost["rows"]
        return rate if rate >= _MUCH else 0.0

    def _warn_of_losses(self) -> None:
        """Warn if too much is lost: once, and again where it has come to four times as much."""
        rate, lost = self._loss_a_row(), self._losses()
        if rate == 0.0 or rate < 4.0 * lost["told"]:
            return
        self._lost = {**lost, "told": rate}
        warn(
            f"max_basis={self.max_basis} is too small for these rows: of the last "
            f"{lost['rows']:.0f}, each has lost {rate:.2g} nats on average to the basis vectors "
            "that there is no room for. Most of what rows say is lost again then, and predictions "
            "can be poor. Raise max_basis; where inputs move on, as time does, or the function "
            "drifts, give forget, such as 0.01, by which the past makes room",
            MercerWarning,
        )
