"""What hyperpriors on the precisions of coefficients share (BKM 6.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.priors._search import Table, maximise
from mercer.priors.base import numbers

__all__ = ["PrecisionPrior"]

Floats = NDArray[np.float64]
Size = int | tuple[int, ...]

# A sparsity that is beyond these is of a function that is 0 but for rounding, or as good as
# infinite; the cubics that some hyperpriors solve would overflow.
_LEAST, _MOST = 1e-100, 1e100


class PrecisionPrior(ABC):
    """A hyperprior on the precision s of a coefficient that is N(0, 1/s) given it (BKM 118).

    The base of `Flat`, `GammaPrecision`, `NormalDeviation`, `LaplacianMixture` and
    `CustomHyperprior`. Each has two faces. One is the prior that it induces on the coefficient
    (BKM 119): `density`, `log_density`, `sample`. The other is what relevance vector machines
    need: the density of ln s with its slope, and the maxima that contain it.

    Objects do not change, and compare by their arguments.

    Notes
    -----
    `log_hyper` is relative to the peak of the density of ln s. A coefficient that is in a model
    pays for how far its precision is from the likeliest, and one that is left out pays nothing;
    as a Gamma hyperprior becomes vague, what it says becomes what `Flat` says. A normalised density
    would charge each coefficient for the width of the hyperprior too: 9 nats for a = b = 1e-4.
    """

    #: Whether the hyperprior has a finite integral; with it the prior that it induces has.
    is_proper: bool = True
    _arguments: ClassVar[tuple[str, ...]] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} objects do not change: make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} objects do not change: {name} stays")

    # --- for subclasses, as functions of t = ln s ---------------------------------------------

    @abstractmethod
    def _log_h(self, t: Floats) -> Floats:
        """Return the log density of t, relative to its peak."""

    @abstractmethod
    def _slope(self, t: Floats) -> Floats:
        """Return its derivative."""

    @abstractmethod
    def _log_peak(self) -> float:
        """Return the log density of t at its peak; ValueError where the hyperprior is improper."""

    @abstractmethod
    def _log_density(self, size: Floats) -> Floats:
        """Return the log density of a coefficient from its absolute value."""

    def _table(self) -> Table:
        """Return values of `_log_h` for searches; those that search keep one."""
        return Table.of(self._log_h)

    # --- the prior of a coefficient -----------------------------------------------------------

    def log_density(self, coef: ArrayLike) -> Floats:
        """Return the log density of each coefficient (BKM 119); their joint one is the sum.

        ValueError where the hyperprior is improper.
        """
        self._log_peak()
        with np.errstate(divide="ignore"):
            return np.asarray(self._log_density(np.abs(numbers(coef))))

    def density(self, coef: ArrayLike) -> Floats:
        """Return the density of each coefficient; infinite at 0 where it has a pole there."""
        return np.asarray(np.exp(self.log_density(coef)))

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        """Return independent coefficients in an array of shape `size`.

        ValueError where the hyperprior is improper, and where a draw is beyond what a double holds.
        """
        t = self.sample_log_precision(rng, size)
        with np.errstate(over="ignore"):
            coef = rng.standard_normal(size) * np.exp(-0.5 * t)
        if not np.all(np.isfinite(coef)):
            raise ValueError(
                f"{self!r} is so vague that {np.mean(~np.isfinite(coef)):.0%} of the coefficients "
                "drawn are beyond what a double holds; `sample_log_precision` gives their ln s"
            )
        return np.asarray(coef)

    @abstractmethod
    def sample_log_precision(self, rng: np.random.Generator, size: Size) -> Floats:
        """Return independent draws of ln s; ValueError where the hyperprior is improper."""

    # --- the hyperprior -----------------------------------------------------------------------

    def log_precision_density(self, s: ArrayLike) -> Floats:
        """Return the log density of s itself, normalised; ValueError where it is improper."""
        t = _logs(s)
        return np.asarray(self._log_peak() + self._log_h(t) - t)

    def log_hyper(self, s: ArrayLike) -> Floats:
        """Return the log density of ln s relative to its peak (BKM 133), 0 where there is none."""
        return np.asarray(self._log_h(_logs(s)))

    def slope(self, s: ArrayLike) -> Floats:
        """Return the derivative of `log_hyper` in ln s."""
        return np.asarray(self._slope(_logs(s)))

    def best_precision(self, S: ArrayLike, Q: ArrayLike) -> tuple[Floats, Floats]:
        """Return the precision that a coefficient is best given, and the evidence it then gains.

        Parameters
        ----------
        S, Q : array-like
            Sparsity and quality of the coefficient's function under the model without it, phi'C^-1
            phi and phi'C^-1 y; arrays that broadcast against each other.

        Returns
        -------
        s : ndarray
            Where [ln s - ln(s + S) + Q^2/(s + S)]/2 + log_hyper(s) is greatest.
        gain : ndarray
            The value there. Where none is above 0, or S is not, s is infinite and the gain 0: the
            function is left out.
        """
        sparsity, quality = np.broadcast_arrays(np.asarray(S, float), np.asarray(Q, float))
        s, gain = np.full(sparsity.shape, np.inf), np.zeros(sparsity.shape)
        some = sparsity > 0
        if np.any(some):
            given = np.maximum(sparsity[some], _LEAST)
            t, value = self._best(np.log(np.minimum(given, _MOST)), quality[some] / np.sqrt(given))
            gains = value > 0
            s[some] = np.where(gains, np.exp(np.where(gains, t, 0.0)), np.inf)
            gain[some] = np.where(gains, value, 0.0)
        return s, gain

    def _best(self, level: Floats, quality: Floats) -> tuple[Floats, Floats]:
        """Return ln s and the value of `best_precision` from ln S and Q/sqrt(S), each (n,)."""

        def evidence(t: Floats, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
            return one_evidence(t - level[rows, None], quality[rows, None] ** 2)

        # No hyperprior gains more than a flat one and its own greatest value together.
        table = self._table()
        bound = flat_gain((quality - 1.0) * (quality + 1.0)) + np.max(table.value)
        t, value = np.full(len(level), np.inf), np.zeros(len(level))
        some = bound > 0
        level, quality = level[some], quality[some]
        t[some], value[some] = maximise(evidence, len(level), table, self._log_h, self._slope)
        return t, value

    def update(self, s: ArrayLike, mu2: ArrayLike, xi: ArrayLike) -> Floats:
        """Return precisions after a step of (BKM 134, as corrected), for this hyperprior.

        The evidence has a maximum where 1 - s Xi_jj + 2 slope(s) = s mu^2. The step solves this
        with 1 - s Xi_jj and mu held.

        Parameters
        ----------
        s : array-like
            The precisions.
        mu2, xi : array-like
            Squares of the coefficients' posterior means, and their variances Xi_jj, under these.

        Returns
        -------
        ndarray
            Infinite where the step removes the coefficient.
        """
        held, square = np.broadcast_arrays(
            np.clip(1.0 - np.asarray(s, float) * np.asarray(xi, float), 0.0, 1.0),
            np.asarray(mu2, float),
        )
        return self._update(held, square)

    def _update(self, held: Floats, square: Floats) -> Floats:
        flat_held, flat_square = held.ravel(), square.ravel()

        def part(t: Floats, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
            taken = 0.5 * np.exp(t) * flat_square[rows, None]
            return 0.5 * flat_held[rows, None] * t - taken, 0.5 * flat_held[rows, None] - taken

        t, _ = maximise(part, held.size, self._table(), self._log_h, self._slope)
        return np.asarray(np.exp(t).reshape(held.shape))

    # --- the object ---------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {name: getattr(self, name) for name in self._arguments}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        return cls(**state)

    def __getstate__(self) -> dict[str, Any]:
        return self.to_state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, **state)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrecisionPrior) or type(self) is not type(other):
            return False
        return self.to_state() == other.to_state()

    def __hash__(self) -> int:
        return hash((type(self), *self.to_state().values()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={_shown(value)}" for name, value in self.to_state().items())
        return f"{type(self).__name__}({inside})"


def _shown(value: Any) -> str:
    """Return an argument as `repr` has it: functions by their names."""
    return f"{value:.6g}" if isinstance(value, float) else getattr(value, "__name__", repr(value))


def flat_gain(excess: Floats) -> Floats:
    """Return the greatest of `one_evidence` for q = 1 + excess; 0 where no x has more."""
    over = np.maximum(excess, 0.0)
    return np.asarray(0.5 * (over - np.log1p(over)))


def one_evidence(t: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Return [ln x - ln(x + 1) + q/(x + 1)]/2 for t = ln x, and its derivative in t."""
    x = np.exp(np.minimum(t, 700.0))
    rest = 1.0 / (1.0 + x)
    value = 0.5 * (q * rest - np.logaddexp(0.0, -t))
    return value, 0.5 * rest * (1.0 - q * x * rest)


def number(owner: str, name: str, given: Any, *, strict: bool = True) -> float:
    """Return an argument as a number above 0, or if not `strict` at least 0; else ValueError."""
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = np.nan
    if not (np.isfinite(value) and (value > 0 if strict else value >= 0)):
        wanted = "a positive number" if strict else "a number of at least 0"
        raise ValueError(f"{owner}: {name} must be {wanted}, got {given!r}")
    return value


def _logs(s: ArrayLike) -> Floats:
    values = np.asarray(s, dtype=float)
    if not np.all(values > 0):
        raise ValueError("precisions must be positive; some given are 0, negative or NaN")
    return np.asarray(np.log(values))
