"""What a search asks of the function that it maximises."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.directions import Directions
from mercer.evidence.optimum import Again

__all__ = ["Searchable"]

Floats = NDArray[np.float64]


class Searchable(Protocol):
    """A function of theta with its start, its bounds, and jitter that is held during a search.

    `Objective` and `LatentObjective` are. `copy.copy` makes another to be evaluated on a thread of
    its own. A `least_gain`, if there is one, is what ten iterations must gain for a search to go
    on; an `is_estimate` that is true says that value and gradient differ by errors of their own.
    """

    @property
    def theta(self) -> Floats:
        """The start."""

    @property
    def bounds(self) -> Floats:
        """The interval of each component, shape (p, 2)."""

    @property
    def parameter_names(self) -> list[str]:
        """A name for each component."""

    @property
    def directions(self) -> Directions:
        """The steps that suit the search."""

    @property
    def again(self) -> Again | None:
        """Where to search once more after all starts, if that may be needed."""

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient.

        Raises NotPositiveDefiniteError at the first point, if that has no value; a later one has
        a penalty then.
        """

    def value(self, theta: Floats) -> float:
        """Return the value alone, minus infinity where there is none."""

    def draw_theta(self, rng: np.random.Generator) -> Floats:
        """Return a random start."""

    def start_intervals(self) -> Floats:
        """Return what to draw starts from instead, shape (p, 2); NaN where there is nothing."""

    @property
    def jitter(self) -> float | None:
        """The jitter that is held."""

    @property
    def failed(self) -> bool:
        """Whether there was a point without a value since jitter was last decided on."""

    def take_jitter(self) -> bool:
        """Decide on more jitter, for the last point that failed; return whether that helps."""

    def hold_jitter(self, jitter: float | None) -> None:
        """Go on with this jitter."""
