"""Processes side by side: independent outputs, each with a kernel of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.posterior import Posterior
from mercer.posterior.predictive import InputGradients, Predictive
from mercer.registry import storable

__all__ = ["Stacked"]

Floats = NDArray[np.float64]


@storable
class Stacked(Predictive):
    """P independent processes of one output each, over the same inputs.

    The outputs of a `Posterior` share a kernel; these need not.

    Parameters
    ----------
    members : sequence of Predictive
        One or more, with one output each.
    """

    def __init__(self, members: Sequence[Predictive]) -> None:
        self.members = tuple(members)
        outputs = [member.n_outputs for member in self.members]
        if not outputs or set(outputs) != {1}:
            raise ValueError(f"one or more processes of one output are wanted, got {outputs}")

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return len(self.members)

    @property
    def scale(self) -> Floats:
        """The units of the outputs (P,)."""
        return np.concatenate([member.scale for member in self.members])

    def mean(self, X: Any) -> Floats:
        """Return the mean at the rows of X, shape (n, P)."""
        return np.hstack([member.mean(X) for member in self.members])

    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, P)."""
        return np.hstack([member.var(X) for member in self.members])

    def mean_and_var(self, X: Any) -> tuple[Floats, Floats]:
        """Return `mean(X)` and `var(X)`, which share work."""
        means, variances = zip(*(member.mean_and_var(X) for member in self.members), strict=True)
        return np.hstack(means), np.hstack(variances)

    def cov(self, X: Any) -> Floats:
        """Return the joint covariance of the rows of X for each output, shape (n, n, P)."""
        return np.concatenate([member.cov(X) for member in self.members], axis=2)

    def sample(
        self, X: Any, n_samples: int = 1, rng: np.random.Generator | int | None = None
    ) -> Floats:
        """Return joint draws at the rows of X, shape (n, n_samples, P)."""
        rng = np.random.default_rng(rng)
        return np.concatenate([m.sample(X, n_samples, rng) for m in self.members], axis=2)

    def gradients(self, X: Any) -> InputGradients:
        """Return the derivatives of mean and variance in the inputs, each (n, d, P)."""
        means, variances = zip(*(member.gradients(X) for member in self.members), strict=True)
        return InputGradients(np.concatenate(means, axis=2), np.concatenate(variances, axis=2))

    def prune(self, n: int, noise: float | None = None) -> tuple[Stacked, float]:
        """Return each process on at most n of its basis points, and what that costs together.

        See :meth:`Posterior.prune`.
        """
        pruned, losses = [], []
        for member in self.members:
            if not isinstance(member, Posterior):
                raise ValueError(f"only a Posterior can be pruned, got a {type(member).__name__}")
            small, loss = member.prune(n, noise)
            pruned.append(small)
            losses.append(loss)
        return Stacked(pruned), float(np.sum(losses))

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's argument."""
        return {"members": self.members}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Stacked:
        """Rebuild from `to_state`."""
        return cls(**state)

    def describe(self) -> str:
        """Return what each of them is made of."""
        texts = [f"output {p}: {member.describe()}" for p, member in enumerate(self.members)]
        return "\n".join([f"Stacked, {self.n_outputs} independent outputs", *texts])

    def __repr__(self) -> str:
        return f"<Stacked: {self.n_outputs} independent processes>"
