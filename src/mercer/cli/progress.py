"""Showing how a long fit is getting on, on a terminal; elsewhere nothing is shown.

A search reports each evaluation of its objective by a line on standard error (`verbose=1`), which
is read here. How many more there will be nobody knows beforehand: about 20 and one for each
hyperparameter is usual, and once starts have ended the others are taken to need as many.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

__all__ = ["Pace", "watch"]

_LINE = re.compile(
    r"mercer: (start (?P<start>\d+)/\d+, )?evaluation (?P<count>\d+): \S+ \(best (?P<best>\S+)\)"
)


class Pace:
    """Counts evaluations over all starts, and guesses how many there will be."""

    def __init__(self, starts: int, inputs: int) -> None:
        self.starts, self.usual = starts, 20 + inputs
        self.counts: dict[int, int] = {}
        self.best = ""

    def take(self, line: str) -> bool:
        """Take note of a line; False if it is no report of an evaluation."""
        match = _LINE.match(line)
        if match is None:
            return False
        self.counts[int(match["start"] or 1)] = int(match["count"])
        self.best = match["best"]
        return True

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
        return sum(ended) + still + usual * (self.starts - len(ended) - 1)


class _Reports(io.TextIOBase):
    """Stands in for standard error: hands reports to a function and passes on all else."""

    def __init__(self, pace: Pace, changed: Callable[[], None], other: TextIO) -> None:
        self.pace, self.changed, self.other = pace, changed, other

    def write(self, text: str) -> int:
        if self.pace.take(text):
            self.changed()
        else:
            self.other.write(text)
        return len(text)

    def flush(self) -> None:
        self.other.flush()


@contextlib.contextmanager
def watch(starts: int, inputs: int) -> Iterator[int]:
    """Show a bar with elapsed and remaining time while a fit runs inside; yields its `verbose`."""
    if not sys.stderr.isatty():
        yield 0
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Remaining

    error = sys.stderr
    bar = Progress(
        TextColumn("fitting (Ctrl-C keeps the best so far)"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed} evaluations, best {task.fields[best]},"),
        TimeElapsedColumn(),
        TextColumn("elapsed, about"),
        Remaining(),
        TextColumn("left"),
        console=Console(file=error),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    pace = Pace(starts, inputs)
    task = bar.add_task("", total=pace.expected, best="unknown")

    def changed() -> None:
        bar.update(task, completed=pace.done, total=pace.expected, best=pace.best)

    with bar, contextlib.redirect_stderr(_Reports(pace, changed, error)):
        yield 1
