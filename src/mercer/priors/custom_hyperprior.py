"""A hyperprior on precisions from a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.priors._nodes import Nodes, log_sums
from mercer.priors._search import REACH, Table
from mercer.priors.base import require_generator
from mercer.priors.precisions import PrecisionPrior, Size
from mercer.registry import storable

__all__ = ["CustomHyperprior"]

Floats = NDArray[np.float64]
Function = Callable[[Floats], Any]

_LOG_2PI = float(np.log(2.0 * np.pi))
_STEP = 1e-3  # of differences in ln s
_LEVEL = 1e-6  # a tail of ln s that falls by less than this is taken for one that does not
_RISE = 1e-9
_SLIGHT = 1e-8  # mass of a tail that need not be known to be exponential


@storable
class CustomHyperprior(PrecisionPrior):
    """The hyperprior whose log density of s is a function that you give.

    Integrals are found by quadrature over ln s, from s = 1e-100 to 1e100, maxima by a search there.

    Parameters
    ----------
    log_p : callable (s) -> array
        The log density of the precision s, up to a constant, of arrays of any shape and element by
        element. Its integral need not be finite: with ``-ln s`` the hyperprior is flat in ln s.
    derivative : callable (s) -> array, optional
        The derivative of `log_p`; differences over some 0.001 in ln s take its place. To these an
        edge, where the density jumps to 0, is no sharper than that.

    Notes
    -----
    Functions are saved by name: define them with ``def`` and give them back to `load`.

    A density that grows without end, as s grows or faster than 1/sqrt(s) as it falls, is refused:
    the evidence would have no maximum.

    Examples
    --------
    >>> from mercer.priors import CustomHyperprior
    >>> def exponential(s):
    ...     return -s
    >>> prior = CustomHyperprior(exponential)  # as GammaPrecision(1, 1)
    >>> prior.density([0.0, 1.0]).round(4)
    array([0.3536, 0.1925])
    """

    _arguments = ("log_p", "derivative")
    log_p: Function
    derivative: Function | None

    def __init__(self, log_p: Function, derivative: Function | None = None) -> None:
        for name, function in {"log_p": log_p, "derivative": derivative}.items():
            if not callable(function) and not (name == "derivative" and function is None):
                raise ValueError(f"CustomHyperprior: {name} must be a function, got {function!r}")
        self.__dict__.update(log_p=log_p, derivative=derivative)
        self.__dict__["_kept"] = table = Table.of(self._given)
        values = table.value
        if np.any(np.isnan(values)) or np.any(values == np.inf) or np.all(values == -np.inf):
            raise ValueError(
                "CustomHyperprior: log_p must be a number or -inf at each precision, and not "
                f"-inf at all, got {values[np.argmax(~np.isfinite(values))]} at "
                f"s = {np.exp(table.t[np.argmax(~np.isfinite(values))]):.3g}"
            )
        start, end = self._ends
        if end > _RISE and np.argmax(values) == len(values) - 1:
            raise ValueError(
                "CustomHyperprior: the density of ln s, s exp(log_p(s)), grows without end as s "
                "grows: nothing would stay in a model"
            )
        if start < -0.5 - _RISE and np.argmax(values) == 0:
            raise ValueError(
                "CustomHyperprior: the density of ln s, s exp(log_p(s)), grows faster than "
                "1/sqrt(s) as s falls: the evidence would have no maximum"
            )
        inner = 0 < np.argmax(values) < len(values) - 1
        self.__dict__["_top"] = float(np.max(values)) if inner else 0.0
        self.__dict__["_kept"] = Table(table.t, values - self._top)
        self.__dict__["is_proper"] = self._reason is None

    _top: float
    _kept: Table

    def _given(self, t: Floats) -> Floats:
        s = np.exp(t)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            value = np.asarray(self.log_p(s), dtype=float)
        if value.shape != t.shape:
            raise ValueError(
                f"CustomHyperprior: log_p must give an array of the shape it is given, "
                f"{t.shape}, got {value.shape}"
            )
        return value + t

    def _table(self) -> Table:
        return self._kept

    @property
    def _ends(self) -> tuple[float, float]:
        """The slopes of the density of ln s at both ends of the search."""
        t, value = self._kept
        with np.errstate(invalid="ignore"):
            rise = np.diff(value[[0, 1, -2, -1]])[[0, 2]] / np.diff(t[[0, 1, -2, -1]])[[0, 2]]
        # nothing there at all: as steep as can be
        return (
            float(rise[0]) if np.isfinite(rise[0]) else np.inf,
            float(rise[1]) if np.isfinite(rise[1]) else -np.inf,
        )

    def _log_h(self, t: Floats) -> Floats:
        inside = np.clip(t, -2.0 * REACH, 2.0 * REACH)
        return np.where(t == np.inf, -np.inf, self._given(inside) - self._top)

    def _slope(self, t: Floats) -> Floats:
        inside = np.clip(t, -2.0 * REACH, 2.0 * REACH)
        if self.derivative is not None:
            s = np.exp(inside)
            return np.asarray(1.0 + s * np.asarray(self.derivative(s), dtype=float))
        h = _STEP
        with np.errstate(invalid="ignore"):
            near = self._given(inside + h) - self._given(inside - h)
            far = self._given(inside + 2.0 * h) - self._given(inside - 2.0 * h)
            value = (8.0 * near - far) / (12.0 * h)
        # At an edge, beyond which there is nothing, it is infinite, and beyond it 0.
        value = np.where(np.isfinite(value), value, near / (2.0 * h))
        return np.where(np.isnan(value), 0.0, value)

    # --- what takes an integral ---------------------------------------------------------------

    @cached_property
    def _nodes(self) -> Nodes:
        return Nodes.of(lambda t: self._given(t) - self._top, REACH)

    @cached_property
    def _mass(self) -> tuple[float, float, float]:
        """Below the nodes, between, and above them: what falls on there falls exponentially."""
        start, end = self._ends
        with np.errstate(divide="ignore", under="ignore"):
            below = np.exp(self._kept.value[0]) / max(start, 0.0) if start > _LEVEL else np.inf
            above = np.exp(self._kept.value[-1]) / -min(end, 0.0) if end < -_LEVEL else np.inf
        return float(below), float(np.sum(np.exp(self._nodes.log_weight))), float(above)

    @cached_property
    def _reason(self) -> str | None:
        """Why there is no integral, or None."""
        below, middle, above = self._mass
        t, value = self._kept
        for mass, side, at, inner in (
            (below, "falls towards 0", 0, int(np.searchsorted(t, -0.8 * REACH))),
            (above, "grows", -1, int(np.searchsorted(t, 0.8 * REACH))),
        ):
            if not np.isfinite(mass):
                return f"the density of ln s does not vanish as s {side}"
            if mass > _SLIGHT * middle:
                away = (value[at] - value[inner]) / (t[at] - t[inner])
                if not np.isclose(away, self._ends[at], rtol=1e-3):
                    return f"the density of ln s vanishes too slowly as s {side}"
        return None

    def _log_peak(self) -> float:
        if self._reason is not None:
            raise ValueError(
                f"this hyperprior is improper: {self._reason}, and its integral is not finite as "
                "far as quadrature shows, so there is no density and nothing to sample from"
            )
        return -float(np.log(sum(self._mass)))

    def _log_density(self, size: Floats) -> Floats:
        t, log_weight, _ = self._nodes
        fixed = log_weight + 0.5 * (t - _LOG_2PI) + self._log_peak()
        s = np.exp(t)

        def exponents(x: Floats) -> Floats:
            return fixed - (0.5 * x**2)[:, None] * s  # (BKM 119)

        value = log_sums(exponents, size.ravel(), len(t)).reshape(size.shape)
        pole = (size == 0) & (self._ends[1] >= -0.5)
        return np.where(pole, np.inf, value)

    def sample_log_precision(self, rng: np.random.Generator, size: Size) -> Floats:
        """Return independent draws of ln s; ValueError where the hyperprior is improper."""
        self._log_peak()
        below, middle, above = self._mass
        require_generator(rng)
        drawn = rng.uniform(0.0, below + middle + above, size)
        start, end = self._ends
        out = self._nodes.quantiles(np.clip(drawn - below, 0.0, middle).ravel()).reshape(
            drawn.shape
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            left = -REACH + np.log(drawn / below) / start
            right = REACH + np.log((below + middle + above - drawn) / above) / end
        return np.where(drawn < below, left, np.where(drawn > below + middle, right, out))
