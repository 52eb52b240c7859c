"""Laplacian priors of which the rate has a density of its own."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BPoly

from mercer.params import Gamma, HalfNormal, Hyperprior, InverseGamma, LogNormal
from mercer.priors._nodes import Nodes, log_sums
from mercer.priors._search import REACH, Table, peaks
from mercer.priors.base import require_generator
from mercer.priors.precisions import PrecisionPrior, Size
from mercer.registry import storable

__all__ = ["LaplacianMixture"]

Floats = NDArray[np.float64]

_PROPER = (Gamma, HalfNormal, InverseGamma, LogNormal)
_STEP = 0.125
_BLOCK = 200  # rows of the table that are made at once
_LOG_2 = float(np.log(2.0))


@storable
class LaplacianMixture(PrecisionPrior):
    """p(coef) = integral of (rate/2) exp(-rate |coef|) p(rate) (BKM 125, as corrected).

    Laplacian priors with a rate of each coefficient's own. With a Gamma(a, b) density of the rate
    it is the double Pareto density, a b^a/2 (b + |coef|)^-(a + 1): a tip at 0 like the
    Laplacian's, and tails like Student's t.

    A Laplacian is itself a mixture of normals, with exponential variances, and so is this: it is a
    hyperprior on precisions as well, of which the density of ln s is found by quadrature.

    Parameters
    ----------
    rate : Hyperprior, default Gamma(1, 1)
        The density of the rate: `Gamma`, `HalfNormal`, `InverseGamma` or `LogNormal` of
        `mercer.params`, with numbers for arguments. The coefficient's density has a closed form
        with the first, and is found by quadrature with the others.

    Examples
    --------
    >>> from mercer.params import Gamma
    >>> from mercer.priors import LaplacianMixture
    >>> LaplacianMixture(Gamma(2.0, 1.0)).density([0.0, -1.0]).round(6)
    array([1.   , 0.125])
    """

    _arguments = ("rate",)
    rate: Hyperprior

    def __init__(self, rate: Hyperprior | None = None) -> None:
        given = Gamma(1.0, 1.0) if rate is None else rate
        if not isinstance(given, _PROPER):
            names = ", ".join(cls.__name__ for cls in _PROPER)
            raise ValueError(f"LaplacianMixture: rate must be one of {names}, got {rate!r}")
        if any(np.ndim(value) for value in given.to_state().values()):
            raise ValueError(f"LaplacianMixture: rate must have numbers for arguments, got {rate}")
        self.__dict__["rate"] = given

    # --- the coefficient ----------------------------------------------------------------------

    @cached_property
    def _nodes(self) -> Nodes:
        """Nodes over ln(rate), with its density in the weights; rates as far as precisions."""

        def log_h(t: Floats) -> Floats:
            with np.errstate(over="ignore"):
                return np.asarray(self.rate.log_density(np.exp(t)) + t)

        return Nodes.of(log_h, 0.5 * REACH)

    def _log_density(self, size: Floats) -> Floats:
        if isinstance(self.rate, Gamma):
            a, b = float(self.rate.shape), float(self.rate.rate)
            return np.asarray(np.log(0.5 * a / b) - (a + 1.0) * np.log1p(size / b))
        t, log_weight, _ = self._nodes
        rates, fixed = np.exp(t), log_weight + t - _LOG_2
        flat = log_sums(lambda x: fixed - x[:, None] * rates, size.ravel(), len(t))
        return flat.reshape(size.shape)

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        """Return independent coefficients in an array of shape `size`."""
        require_generator(rng)
        shape = (size,) if isinstance(size, int) else size
        rates = self.rate.sample(rng, int(np.prod(shape))).reshape(shape)
        return np.asarray(rng.laplace(0.0, 1.0, shape) / rates)

    def sample_log_precision(self, rng: np.random.Generator, size: Size) -> Floats:
        """Return independent draws of ln s."""
        require_generator(rng)
        shape = (size,) if isinstance(size, int) else size
        rates = self.rate.sample(rng, int(np.prod(shape))).reshape(shape)
        return 2.0 * np.log(rates) - np.log(2.0 * rng.standard_exponential(shape))

    # --- the precision ------------------------------------------------------------------------

    @cached_property
    def _curve(self) -> tuple[BPoly, BPoly, float]:
        """The log density of ln s and its slope, of which the values are exact at a grid.

        Given the rate r the variance v = 1/s is exponential: with e = r^2 v/2 the density of ln s
        is e exp(-e). It is as smooth as that for any density of the rate.
        """
        t = np.linspace(-REACH, REACH, int(2 * REACH / _STEP) + 1)
        u, log_weight, _ = self._nodes
        rows = []
        for start in range(0, len(t), _BLOCK):
            log_e = 2.0 * u - _LOG_2 - t[start : start + _BLOCK, None]
            with np.errstate(over="ignore"):
                e = np.exp(np.minimum(log_e, 700.0))
            terms = log_weight + log_e - e
            top = np.max(terms, axis=1, keepdims=True)
            weights = np.exp(terms - top)
            total = np.sum(weights, axis=1)
            first = np.sum(weights * e, axis=1) / total
            second = np.sum(weights * e * e, axis=1) / total
            # d/dt of e is -e: the derivative of E[e] - 1 is -E[e] + Var[e] = E[e^2] - E[e]^2 - E[e]
            rows.append(
                np.column_stack([top[:, 0] + np.log(total), first - 1.0, second - first**2 - first])
            )
        curve = BPoly.from_derivatives(t, np.concatenate(rows))
        found = peaks(lambda x: curve(x), t)
        return curve, curve.derivative(), float(np.max(curve(found)))

    def _log_h(self, t: Floats) -> Floats:
        curve, slope, peak = self._curve
        inside = np.clip(t, -REACH, REACH)
        with np.errstate(invalid="ignore"):
            beyond = np.where(t == inside, 0.0, t - inside) * slope(inside)
        return np.asarray(curve(inside) - peak + beyond)

    def _slope(self, t: Floats) -> Floats:
        return np.asarray(self._curve[1](np.clip(t, -REACH, REACH)))

    def _log_peak(self) -> float:
        return self._curve[2]

    @cached_property
    def _kept(self) -> Table:
        return Table.of(self._log_h)

    def _table(self) -> Table:
        return self._kept
