"""Kernel matrices given by the user instead of inputs."""

from __future__ import annotations

from mercer import means
from mercer.means import Mean

__all__ = ["require_no_inputs"]


def require_no_inputs(mean: Mean) -> None:
    """Raise ValueError unless the mean can do without inputs."""
    if not isinstance(mean, (means.Zero, means.Constant)):
        raise ValueError(
            f"with a precomputed kernel there are no inputs for the mean {mean!r}; use 'zero' or "
            "'constant', or subtract the mean beforehand"
        )
