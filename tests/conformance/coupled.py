"""Rules for likelihoods of several latent values a row, which are no `Likelihood`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mercer.testing.compare import close, refused, slope
from mercer.testing.parametrised import PARAMETRISED, subject_of
from mercer.testing.rules import BoundRule, Rules, bind

COUPLED: Rules[CoupledCase] = Rules()


@dataclass(frozen=True)
class CoupledCase:
    """A likelihood of classes, latent values F (n, C) and targets Y, some of them soft."""

    subject: Any
    objects: dict[str, Any] = field(default_factory=dict)

    @property
    def F(self) -> Any:
        return np.random.default_rng(0).normal(size=(5, self.subject.n_classes))

    @property
    def Y(self) -> Any:
        C = self.subject.n_classes
        soft = np.random.default_rng(1).dirichlet(np.ones(C), 3)
        return np.vstack([self.subject.one_hot([0, C - 1]), soft])

    def values(self, subject: Any) -> Any:
        return subject.log_density(self.Y, self.F)


def coupled_rules(likelihood: Any) -> list[BoundRule]:
    """Return the rules, each to be called, as those of `mercer.testing` are."""
    return bind(subject_of(likelihood), [*COUPLED, *PARAMETRISED], CoupledCase(likelihood))


@COUPLED.add()
def rule_probabilities(case: CoupledCase) -> None:
    """Probabilities are positive, sum to one, and are the densities of one-hot targets."""
    it, F = case.subject, case.F
    P = it.probabilities(F)
    assert np.all(P > 0), f"probabilities must be positive, the least is {np.min(P)}"
    close("sums of probabilities", P.sum(axis=1), np.ones(len(F)), 1e-12)
    for c in range(it.n_classes):
        Y = it.one_hot(np.full(len(F), c))
        close(f"density of class {c}", np.exp(it.log_density(Y, F)), P[:, c], 1e-12)


@COUPLED.add()
def rule_derivatives(case: CoupledCase) -> None:
    """Y - P is the gradient, `curvature_times` minus its derivative, `pull_curvature` the next."""
    it, F, Y = case.subject, case.F, case.Y
    P, (n, C) = it.probabilities(F), F.shape
    close("Y - P", Y - P, slope(lambda F: it.log_density(Y, F).sum(), F), 1e-6, 1e-8)
    V, S = (np.random.default_rng(2).normal(size=(n, *s)) for s in ((C,), (C, C)))
    moved = slope(lambda h: it.probabilities(F + h * V), 0.0)
    close("W V", it.curvature_times(P, V), moved, 1e-6, 1e-8)

    def trace(F: Any) -> float:
        return float(np.sum(S * it.curvature_times(it.probabilities(F), np.stack([np.eye(C)] * n))))

    S = S + S.transpose(0, 2, 1)
    close("d tr(S W)/dF", it.pull_curvature(P, S), slope(trace, F), 1e-6, 1e-8)


@COUPLED.add()
def rule_samples(case: CoupledCase) -> None:
    """Samples are class numbers, as often as the probabilities say."""
    it, F = case.subject, np.repeat(case.F[:1], 20_000, axis=0)
    shares = np.bincount(it.sample(F, np.random.default_rng(3)), minlength=it.n_classes) / len(F)
    close("shares of the classes", shares, it.probabilities(F[:1])[0], 0.0, 0.02)


@COUPLED.add()
def rule_bad_input(case: CoupledCase) -> None:
    """Targets that are no distributions, and arrays of other shapes or with NaN, are refused."""
    it, F, Y = case.subject, case.F, case.Y
    for what, bad in {
        "targets that sum to 2": (2.0 * Y, F),
        "negative targets": (1.5 * Y - 0.5 / it.n_classes, F),
        "a class too few": (Y[:, 1:], F),
        "rows too few": (Y[1:], F),
        "a vector": (Y, F[:, 0]),
        "NaN": (Y, np.full(F.shape, np.nan)),
    }.items():
        refused(what, partial(it.log_density, *bad))
    refused("a class that there is not", partial(it.one_hot, [it.n_classes]))
