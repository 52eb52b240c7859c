"""What the functions that searches maximise share: one vector over the parts of a model.

A part is a kernel, a likelihood or a mean. Where the covariance of a model cannot be factorised
there is no value, and a search is sent back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.evidence.directions import Directions
from mercer.evidence.optimum import Again
from mercer.kernels import Kernel
from mercer.means import Mean
from mercer.params import Parametrised
from mercer.posterior import Posterior

__all__ = ["Fitted", "Guarded", "LeftOut"]

Floats = NDArray[np.float64]


class Fitted(NamedTuple):
    """A model at some parameters.

    kernel, likelihood, mean : the model
    posterior : its posterior process
    log_evidence : hyperpriors left out; NaN where the engine has none
    jitter : what is on the diagonal of the covariance
    solution : the engine's
    """

    kernel: Kernel
    likelihood: Any
    mean: Mean
    posterior: Posterior
    log_evidence: float
    jitter: float
    solution: Any


class LeftOut(NamedTuple):
    """Each row predicted from all the others, (n, P) all.

    mean, std : the prediction of a new observation at the row
    log_density : the log density of the row's target under it
    """

    mean: Floats
    std: Floats
    log_density: Floats


class Guarded(ABC):
    """A `Searchable` over the free parameters of a model's parts.

    A subclass gives `unpack`, `evaluate`, `value`, `log_evidence`, `fitted`, `left_out`, `under`
    and `_jitter_for`, and sets what is named below, and `_last_good` where it finds a value.

    Parameters
    ----------
    kernel : Kernel
        The first part.
    others : Parametrised, by name
        The other parts, in the order of theta.
    X : inputs
        The rows, from which a kernel may tell where searches are to begin.
    bounds : array of shape (p, 2), optional
        The interval of each component; the parts' own without it.
    """

    #: The engine's name, and that of what is maximised.
    inference: str
    criterion: str
    likelihood: Any
    #: The rows: inputs X and weights, beside the targets.
    data: Any
    #: What the targets say of the latent function, in the kernel's units, (n, P).
    latent: Floats

    def __init__(
        self, kernel: Kernel, others: dict[str, Parametrised], X: Any, bounds: Floats | None = None
    ) -> None:
        self.kernel = kernel
        self._others, self._inputs = others, X
        if bounds is None:
            bounds = np.concatenate([part.bounds for part in self._parts().values()])
        self.bounds = bounds
        #: Where to search once more, given where all starts have ended.
        self.again: Again | None = None
        self.jitter: float | None = None
        self._last_good: tuple[Floats, float] | None = None
        self._failed: Floats | None = None

    @abstractmethod
    def unpack(self, theta: ArrayLike) -> tuple[Any, ...]:
        """Return the kernel, the likelihood and what else there is, with these parameters."""

    @abstractmethod
    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient; raises where there is none."""

    @abstractmethod
    def value(self, theta: Floats) -> float:
        """Return the value alone, minus infinity where there is none."""

    @abstractmethod
    def log_evidence(self, theta: ArrayLike, gradient: bool = False) -> tuple[float, Floats | None]:
        """Return the log evidence without hyperpriors, and its gradient if asked for.

        theta = [kernel, likelihood, mean], whatever of it a search goes over.
        """

    @abstractmethod
    def fitted(self, theta: Floats) -> Any:
        """Return the model at theta, with whatever predicts; raises where there is none."""

    @abstractmethod
    def left_out(self) -> LeftOut:
        """Predict each row from all the others, in closed form, at the start."""

    @abstractmethod
    def under(self, kernel: Kernel, likelihood: Any, theta: ArrayLike) -> Guarded:
        """Return the objective of another kernel and likelihood, the rest as it is at theta.

        The bounds are the parts' own, and inducing inputs stay where they are.
        """

    @abstractmethod
    def _jitter_for(self, theta: Floats) -> float:
        """Return the jitter that is needed there; raises where none serves."""

    def warn_of_outputs(self, fit: Fitted) -> None:  # noqa: B027
        """Warn of outputs that do not go together; without several there is nothing to say."""

    def release(self) -> None:  # noqa: B027
        """Give back memory of size n x n, if any is held."""

    # --- the vector ---------------------------------------------------------------------------

    def _parts(self) -> dict[str, Parametrised]:
        return {"kernel": self.kernel, **self._others}

    @property
    def theta(self) -> Floats:
        """The start."""
        return np.concatenate([part.theta for part in self._parts().values()])

    @property
    def parameter_names(self) -> list[str]:
        """A name for each component."""
        parts = self._parts().items()
        return [f"{label}.{name}" for label, part in parts for name in part.parameter_names]

    @property
    def directions(self) -> Directions:
        """The steps that suit the search: the components of theta."""
        return Directions(self.theta.size)

    @property
    def least_gain(self) -> float:
        """What ten iterations must gain for a search to go on; 0 leaves that to the optimiser."""
        return 0.0

    def _with(self, theta: ArrayLike) -> list[Any]:
        """Return the parts with these parameters."""
        theta, found = np.asarray(theta, dtype=float), []
        if theta.shape != self.theta.shape:
            raise ValueError(f"theta must have shape {self.theta.shape}, got {theta.shape}")
        for part in self._parts().values():
            own, theta = np.split(theta, [part.theta.size])
            found.append(part.with_theta(own))
        return found

    # --- where searches begin -----------------------------------------------------------------

    def draw_theta(self, rng: np.random.Generator) -> Floats:
        """Return a random start."""
        return np.concatenate([part.draw_theta(rng) for part in self._parts().values()])

    def start_intervals(self) -> Floats:
        """Return the intervals to draw starts from, shape (p, 2); NaN where there is none."""
        rest = np.full((self.theta.size - self.kernel.theta.size, 2), np.nan)
        return np.concatenate([self.kernel.start_intervals(self._inputs), rest])

    @property
    def start(self) -> list[Floats]:
        """What the engine starts from, as arrays that can be kept: nothing, for the exact one."""
        return []

    def begin_at_best(self, kernels: Sequence[Kernel]) -> None:
        """Move the start to that of several kernels of the same form whose value is highest."""
        rest = self.theta[self.kernel.theta.size :]
        values = []
        for kernel in kernels:
            values.append(self.value(np.concatenate([kernel.theta, rest])))
            self._forget()  # what one of them needs the others may do without
        self.kernel = kernels[int(np.argmax(values))]

    def judge(self) -> Self:
        """Return the objective whose evidence can be searched: this one, if it has one."""
        return self

    def _forget(self) -> None:
        """Begin again, as if nothing had been evaluated yet."""
        self.jitter = None

    # --- where there is no value --------------------------------------------------------------

    def __call__(self, theta: ArrayLike) -> tuple[float, Floats]:
        """Return the value and its gradient at theta.

        Where the covariance cannot be factorised the value is a finite penalty that falls off with
        the distance from the last point where it could, with its own gradient, so that a line
        search turns back.
        """
        theta = np.asarray(theta, dtype=float)
        try:
            value, gradient = self.evaluate(theta)
        except NotPositiveDefiniteError:
            if self._last_good is None:
                raise
            self._failed = theta
            good, value_there = self._last_good
            step = theta - good
            height = 10.0 * (1.0 + abs(value_there))
            return float(value_there - height * (1.0 + step @ step)), -2.0 * height * step
        self._last_good = (theta, value)
        return value, gradient

    @property
    def failed(self) -> bool:
        """Whether there was a point without a value since jitter was last decided on."""
        return self._failed is not None

    def take_jitter(self) -> bool:
        """Decide on the jitter that the last point needs at which there was no value.

        Returns whether there was such a point, and a jitter that serves it.
        """
        if self._failed is None:
            return False
        try:
            jitter = self._jitter_for(self._failed)
        except NotPositiveDefiniteError:
            return False
        more = jitter > (self.jitter or 0.0)
        self.hold_jitter(jitter if more else self.jitter)
        return more

    def hold_jitter(self, jitter: float | None) -> None:
        """Go on with this jitter, whatever failed without it; None lets the next point decide."""
        self.jitter, self._failed = jitter, None
