"""Holding a mean function to its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.means import Mean
from mercer.testing.compare import close, expect, frozen, identical, refused, slope
from mercer.testing.parametrised import PARAMETRISED, functions_of, subject_of
from mercer.testing.rules import BoundRule, Report, Rule, Rules, bind, run

__all__ = ["check_mean", "mean_rules"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeanCase:
    """A mean with rows X (n, d) that it is tried on."""

    subject: Mean
    X: Floats
    objects: dict[str, Callable[..., Any]]

    @property
    def mean(self) -> Mean:
        """The mean."""
        return self.subject

    @property
    def known(self) -> Mean:
        """The mean, with coefficients for two outputs if it has any and they are not known."""
        r = self.mean.features(self.X).shape[1]
        if r == 0 or self.mean.coefficients is not None:
            return self.mean
        return self.mean.with_coefficients(np.cos(np.arange(2.0 * r)).reshape(r, 2))

    def values(self, subject: Any) -> Floats:
        """Return m(X)."""
        return np.array(subject(self.X))


def _linear(case: MeanCase) -> str:
    return "" if case.mean.features(case.X).shape[1] else "it has no coefficients"


def _estimated(case: MeanCase) -> str:
    return "" if case.known.theta.size else "its coefficients are not in theta"


MEAN: Rules[MeanCase] = Rules()


@MEAN.add()
def rule_shapes(case: MeanCase) -> None:
    """m(X) is (n, P), features are (n, r), gradients (n, d, P), all finite doubles."""
    m, X = case.known, case.X
    n, d = X.shape
    value = m(X)
    expect(value.ndim == 2 and len(value) == n, f"m(X) of shape ({n}, P)", value)
    outputs = value.shape[1]
    for count in {outputs, 1, 3} if outputs == 1 else {outputs}:
        for what, value, shape in (
            ("m(X)", m(X, count), (n, count)),
            ("fixed_part(X)", m.fixed_part(X, count), (n, count)),
            ("gradient(X)", m.gradient(X, count), (n, d, count)),
        ):
            expect(value.shape == shape, f"{what} of shape {shape}", value)
            expect(np.all(np.isfinite(value)), f"a finite {what}", value)
    H = m.features(X)
    expect(H.ndim == 2 and len(H) == n, f"features of shape ({n}, r)", H)
    if outputs > 1:
        refused("another number of outputs", lambda: m(X, outputs + 1), "output")


@MEAN.add()
def rule_parts(case: MeanCase) -> None:
    """The mean is its fixed part plus features times coefficients."""
    m, X = case.known, case.X
    wanted = m.fixed_part(X)
    beta = m.coefficients
    if beta is not None:
        wanted = wanted + m.features(X) @ beta
    close("m(X)", m(X), wanted, 1e-12, 1e-12)
    rows = np.concatenate([m(X[i : i + 1]) for i in range(len(X))])
    close("m row by row", rows, m(X), 1e-12, 1e-12)


@MEAN.add(_linear)
def rule_coefficients(case: MeanCase) -> None:
    """`with_coefficients(beta)` returns a new mean with these; one of another shape is refused."""
    m, before = case.mean, case.mean.coefficients
    r = m.features(case.X).shape[1]
    for outputs in (1, 2):
        beta = np.cos(np.arange(float(r * outputs))).reshape(r, outputs)
        new = m.with_coefficients(beta)
        identical("coefficients", new.coefficients, beta)
        wanted = m.fixed_part(case.X) + m.features(case.X) @ beta
        close("m(X) with these", new(case.X), wanted, 1e-12, 1e-12)
        expect(new.estimate == m.estimate, f"estimate={m.estimate!r} to stay", new.estimate)
    if before is None:
        expect(m.coefficients is None, "the old mean to be as it was", m.coefficients)
    else:
        identical("the old mean's coefficients", m.coefficients, before)
    refused("coefficients with NaN", lambda: m.with_coefficients(np.full((r, 1), np.nan)))


@MEAN.add()
def rule_gradient(case: MeanCase) -> None:
    """`gradient` is the derivative of the mean in x."""
    m, X = case.known, case.X
    slopes = slope(lambda A: m(A), X)  # (n, d, n, P); rows do not see each other
    rows = np.arange(len(X))
    size = 1.0 + float(np.max(np.abs(m(X)), initial=0.0))
    close("gradient(X)", m.gradient(X), slopes[rows, :, rows], 1e-5, 1e-7 * size)


@MEAN.add()
def rule_pull_features(case: MeanCase) -> None:
    """`pull_features(X, G)` is the derivative of sum(G * features(X)) in X."""
    m, X = case.mean, case.X
    G = np.random.default_rng(3).normal(size=m.features(X).shape)
    wanted = slope(lambda A: np.sum(G * m.features(A)), X)
    close("pull_features(X, G)", m.pull_features(X, G), wanted, 1e-5, 1e-7 * (1.0 + G.size))


@MEAN.add(_estimated)
def rule_pullback(case: MeanCase) -> None:
    """`pullback(X, G)` is the derivative of sum(G * m(X)) in theta."""
    m, X = case.known, case.X
    G = np.random.default_rng(4).normal(size=m(X).shape)
    wanted = slope(lambda theta: np.sum(G * m.with_theta(theta)(X)), m.theta)
    close("pullback(X, G)", m.pullback(X, G), wanted, 1e-6, 1e-7)


@MEAN.add()
def rule_rows_are_only_read(case: MeanCase) -> None:
    """Rows may stand in read-only memory, and results are new arrays."""
    m, X = case.known, frozen(case.X)
    identical("m of read-only rows", m(X), m(case.X))
    identical("gradient of read-only rows", m.gradient(X), m.gradient(case.X))
    value = m(case.X)
    kept = value.copy()
    value[:] = 7.0
    identical("m the second time", m(case.X), kept)


_RULES: list[Rule[Any]] = [*MEAN, *PARAMETRISED]


def _case(
    mean: Any, X: ArrayLike | None, objects: dict[str, Callable[..., Any]] | None
) -> MeanCase:
    if not isinstance(mean, Mean):
        raise ValueError(f"a mercer.means.Mean is wanted, got {mean!r}")
    beta = mean.coefficients
    d = 2 if beta is None or beta.shape[0] < 2 else beta.shape[0] - 1
    rows = np.random.default_rng(0).normal(size=(5, d)) if X is None else np.array(X, dtype=float)
    return MeanCase(mean, rows, functions_of(mean) if objects is None else objects)


def check_mean(
    mean: Mean,
    X: ArrayLike | None = None,
    *,
    objects: dict[str, Callable[..., Any]] | None = None,
    only: Iterable[str] | None = None,
) -> Report:
    """Hold a mean function to all rules of its interface.

    Parameters
    ----------
    mean : Mean
        The mean.
    X : array of shape (n, d), optional
        Rows to try it on; normal random numbers without it.
    objects : dict, optional
        Functions by name, for a mean that is saved with some; found by themselves in most.
    only : names of rules, optional
        The rules to check, instead of all.

    Returns
    -------
    Report
        The rules that hold, and those that do not apply.

    Raises
    ------
    ConformanceError
        If any rule is broken. The message names each, with what was expected and what came.

    Examples
    --------
    >>> from mercer.means import Constant
    >>> from mercer.testing import check_mean
    >>> report = check_mean(Constant(1.5))
    >>> "rule_gradient" in report.held
    True
    """
    return run(subject_of(mean), _RULES, _case(mean, X, objects), only)


def mean_rules(
    mean: Mean,
    X: ArrayLike | None = None,
    *,
    objects: dict[str, Callable[..., Any]] | None = None,
) -> list[BoundRule]:
    """Return the rules that apply to a mean, each to be called: one test a rule.

    The arguments are those of :func:`check_mean`.
    """
    return bind(subject_of(mean), _RULES, _case(mean, X, objects))
