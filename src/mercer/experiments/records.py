"""What an experiment is, what it is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Claim",
    "Estimate",
    "Experiment",
    "Figure",
    "Line",
    "Outcome",
    "Setting",
    "Surface",
    "Table",
]

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean over runs and their standard deviation, as the papers print them."""

    mean: float
    spread: float

    @classmethod
    def of(cls, values: Sequence[float] | Floats) -> Estimate:
        """Return mean and standard deviation of values; the spread of one value is 0."""
        array = np.asarray(values, dtype=float)
        return cls(float(array.mean()), float(array.std(ddof=1)) if array.size > 1 else 0.0)


#: None is an empty cell: the paper, or the run, has nothing there.
Cell = str | int | float | Estimate | None


@dataclass(frozen=True)
class Table:
    """Rows of a table; `name` is that of its file."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"table {self.name!r}: a row of {len(self.header)} cells is wanted, got {row}"
                )


@dataclass(frozen=True)
class Claim:
    """What the paper says or the project sets out to reach, what came out, and whether it holds."""

    text: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Line:
    """A line of a figure: its label, and the places of its points.

    spread : (n,) what is drawn to either side of y: a band along a line, bars at single points
    dots : whether the points are drawn alone, without a line through them
    """

    label: str
    x: Floats
    y: Floats
    spread: Floats | None = None
    dots: bool = False


@dataclass(frozen=True)
class Figure:
    """Lines in one pair of axes; `name` is that of its file, without an ending."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    #: a value that is marked by a horizontal line, and what it is
    mark: tuple[float, str] | None = None


@dataclass(frozen=True)
class Surface:
    """A function over a rectangle, drawn in grey and as a surface; `name` is that of its file.

    values : (rows, columns) at a grid of evenly spaced points, the first row at the least of y
    extent : the least and greatest x, then the least and greatest y
    points : (k, 2) places that are marked
    """

    name: str
    title: str
    values: Floats
    extent: tuple[float, float, float, float]
    points: Floats


@dataclass(frozen=True)
class Outcome:
    """What came out of an experiment; `notes` are sentences that stand under the tables."""

    tables: tuple[Table, ...]
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure | Surface, ...] = ()
    notes: tuple[str, ...] = ()


def _silent(done: int, total: int, what: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Setting:
    """How an experiment is to be run.

    Attributes
    ----------
    quick : bool
        Few rows and few repetitions, to see that it runs; the numbers mean nothing then.
    folder : str or None
        Where the tables of data are; None is where `mercer.datasets.load_table` looks by itself.
    tell : callable (done, total, what)
        Hears how many of its steps are done, and what the next one is.
    """

    quick: bool = False
    folder: str | None = None
    tell: Callable[[int, int, str], None] = field(default=_silent, repr=False)

    def steps(self, names: Sequence[str]) -> Iterator[int]:
        """Yield the numbers of steps of these names, telling of each before it is taken."""
        for number, name in enumerate(names):
            self.tell(number, len(names), name)
            yield number
        self.tell(len(names), len(names), "")


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Attributes
    ----------
    name : str
        What ``mercer reproduce`` calls it.
    title : str
        A line for the list.
    source : str
        The paper and the place in it.
    published : str
        What the paper reports, and how it is read where it is not clear.
    run : callable (Setting) -> Outcome
        Carries it out.
    data : tuple of str
        The tables it reads, by the names that `mercer.datasets.load_table` takes.
    """

    name: str
    title: str
    source: str
    published: str
    run: Callable[[Setting], Outcome]
    data: tuple[str, ...] = ()
