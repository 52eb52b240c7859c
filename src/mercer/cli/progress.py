"""Showing how a long fit is getting on, on a terminal; elsewhere nothing is shown.

A search calls the estimator's `verbose` after each evaluation of its objective. How many more there
will be nobody knows beforehand: about 20 and one for each hyperparameter is usual, and once starts
have ended the others are taken to need as many.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mercer.evidence.optimum import Report

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["Pace", "progress_bar", "watch"]


class Pace:
    """Counts evaluations over all starts, and guesses how many there will be."""

    def __init__(self, starts: int, inputs: int) -> None:
        self.starts, self.usual = starts, 20 + inputs
        self.counts: dict[int, int] = {}
        self.best = -math.inf

    def take(self, start: int, count: int, best: float) -> None:
        """Take note of an evaluation."""
        self.counts[start] = count
        self.best = max(self.best, best)

    @property
    def done(self) -> int:
        """How many evaluations there have been."""
        return sum(self.counts.values())

    @property
    def expected(self) -> int:
        """How many there will have been in the end, as far as one can tell."""
        *ended, current = self.counts.values() or [0]
        usual = round(sum(ended) / len(ended)) if ended else self.usual
        still = max(usual, current + max(3, current // 5))
        # a second look after the last start is one more than were announced
        return sum(ended) + still + usual * max(0, self.starts - len(ended) - 1)


@contextlib.contextmanager
def watch(starts: int, inputs: int) -> Iterator[int | Report]:
    """Show a bar with elapsed and remaining time while a fit runs inside; yields its `verbose`."""
    if not sys.stderr.isatty():
        yield 0
        return
    from rich.console import Console

    sys.stderr.write("mercer: fitting; Ctrl-C keeps the best so far\n")
    bar = progress_bar(Console(file=sys.stderr))
    pace = Pace(starts, inputs)
    task = bar.add_task("", total=pace.expected, best="unknown")

    def report(start: int, count: int, value: float, best: float) -> None:
        pace.take(start, count, best)
        bar.update(task, completed=pace.done, total=pace.expected, best=f"{pace.best:.2f}")

    with bar:
        yield report


def progress_bar(console: Console) -> Progress:
    """Return a bar that fits into 80 columns, with the time passed and left at its end."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Remaining

    return Progress(
        BarColumn(bar_width=12),
        TextColumn("{task.completed} evaluations, best {task.fields[best]};"),
        TimeElapsedColumn(),
        TextColumn("passed,"),
        Remaining(),
        TextColumn("left"),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
