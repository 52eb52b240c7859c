"""Noise of any scale that is added to the latent value: y = f + s e."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods.additive import AdditiveNoise
from mercer.likelihoods.pulls import Slopes
from mercer.likelihoods.spread import spread_of, started
from mercer.params import Parameter, positive

__all__ = ["ScaledNoise"]

Floats = NDArray[np.float64]


class ScaledNoise(AdditiveNoise):
    """y = f + s e, where s is the parameter `scale`, or is chosen from the data by `begun`.

    A parameter in the units of the targets may be left open: it is None, `theta` is without it,
    and whatever asks for its value is refused. `_starts` has all of them, each with the part of
    the targets' spread at which it starts.
    """

    # Three tenths of the spread are about a tenth of the variance.
    _starts: dict[str, float] = {"scale": 0.3}  # noqa: RUF012  (never changed)

    def _open(
        self, zero: tuple[str, ...] = (), **given: float | Parameter | None
    ) -> dict[str, Parameter]:
        """Return the parameters that are given, checked; `zero` names those that may be 0."""
        return {
            name: positive(name, value, zero=name in zero, vector=False)
            for name, value in given.items()
            if value is not None
        }

    def _options(self) -> dict[str, Any]:
        return {name: None for name in self._starts if name not in self._parameters}

    @property
    def scale(self) -> float | None:
        """The scale s, None if not yet chosen."""
        own = self._parameters.get("scale")
        return None if own is None else float(own.value)

    @property
    def _scale(self) -> float:
        return self._chosen("scale")

    def _chosen(self, name: str) -> float:
        own = self._parameters.get(name)
        if own is None:
            kind = type(self).__name__
            raise ValueError(
                f"the {name} of {kind} is not chosen yet: give a number, {kind}({name}=0.1), take "
                "it from the data by begun(y), or fit the model first"
            )
        return float(own.value)

    def begun(self, y: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the likelihood with a start and bounds in the units of the targets.

        What was left open starts at a part of the targets' spread, which outliers do not move.
        Free parameters without bounds get some: a thousandth of the spread to ten times of it,
        and room around a value that was given.
        """
        spread = spread_of(y, weights)
        chosen = {
            name: started(self._parameters.get(name), part * spread, spread)
            for name, part in self._starts.items()
        }
        return self.from_state(self.to_state() | chosen)

    def _slopes(self, y: Floats, f: Floats) -> Slopes:
        # log p + log s depends on (y - f)/s alone, so that Euler's theorem gives d/ds.
        t, s = y - f, self._scale
        first, second, third = self.derivatives(y, f)
        return {
            "scale": (
                np.asarray((t * first - 1.0) / s),
                np.asarray((t * second - first) / s),
                np.asarray((t * third - 2.0 * second) / s),
            )
        }
