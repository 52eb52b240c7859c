"""The mean that is 0."""

from __future__ import annotations

from mercer.means.base import Mean
from mercer.registry import storable

__all__ = ["Zero"]


@storable(name="ZeroMean")
class Zero(Mean):
    """m(x) = 0, for inputs of any kind.

    Right when the targets were centred, or when the process itself is known to return to 0.
    """

    def __init__(self) -> None:
        self._set()
