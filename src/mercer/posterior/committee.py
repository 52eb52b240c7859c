"""Committees: posteriors of parts of the data, whose precisions add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.compute import blas_for
from mercer.errors import NotPositiveDefiniteError
from mercer.linalg import JITTERS, cholesky, inverse_lower, mirror_lower, solve_lower
from mercer.posterior.posterior import Posterior
from mercer.posterior.predictive import InputGradients, MarginalPredictive, Predictive
from mercer.registry import storable

__all__ = ["RULES", "CommitteePredictive", "joint_committee"]

Floats = NDArray[np.float64]

#: How members are weighted.
RULES = ("bcm", "rbcm", "gpoe")

# Of the prior variance: members are never surer than rounding lets them be.
_SUREST = 1e-14


class _Votes(NamedTuple):
    """What members say of n points, in units of the prior standard deviation; each (n, P).

    deviation : of the mean from that of the prior, (M, n, P)
    var : at most that of the prior, (M, n, P)
    share : the weights of the members, (M, n, P)
    slope : their derivatives in the logarithm of var, (M, n, P)
    precision, total : of the committee, and times its deviation
    """

    deviation: Floats
    var: Floats
    share: Floats
    slope: Floats
    precision: Floats
    total: Floats


@storable
class CommitteePredictive(MarginalPredictive):
    """Posteriors of parts of the data, brought together at each point.

    Member k has the mean m_k and the variance v_k; m and v are those of the prior. What members
    know beyond the prior is added up with shares b_k::

        1/var = 1/v + sum_k b_k (1/v_k - 1/v)
        mean  = m + var sum_k b_k (m_k - m)/v_k

    Parameters
    ----------
    members : sequence of Predictive
        Posteriors of M parts of the data under one prior, with independent outputs.
    prior : Posterior
        That prior: an empty basis.
    rule : {"rbcm", "bcm", "gpoe"}, default "rbcm"
        The shares. "bcm", the Bayesian committee machine: 1, as if the parts were independent
        given the function at the point. "rbcm", the robust one: (ln v - ln v_k)/2, what the
        member has learnt in nats, so that members who know nothing say nothing. "gpoe", the
        generalised product of experts: 1/M, which never overstates what is known, and returns to
        the prior far from the data.

    Notes
    -----
    A posterior is never less sure than its prior, so that precisions are positive. Members that
    claim more than the prior variance (approximate ones, or such with more to them than the
    prior: coefficients of a mean integrated out) are taken to have the prior's: they add no
    negative precision.

    Points are brought together one by one, and have no joint distribution: `cov` and `sample` take
    one row. `joint_committee` is the form that has one.

    References
    ----------
    Tresp, *A Bayesian committee machine*, 2000. Cao and Fleet, *Generalized product of experts*,
    2014. Deisenroth and Ng, *Distributed Gaussian processes*, 2015.
    """

    _alone = (
        "a committee brings its members together at each point apart; ask for one row, or for "
        "Tresp's joint form: `predict_joint` of an estimator, `joint_committee` of members"
    )

    def __init__(self, members: Sequence[Predictive], prior: Posterior, rule: str = "rbcm") -> None:
        self.members, self.prior, self.rule = tuple(members), prior, rule
        _check(self.members, prior)
        if rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(map(repr, RULES))}, got {rule!r}")

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return self.prior.n_outputs

    @property
    def scale(self) -> Floats:
        """The units of the outputs (P,)."""
        return self.prior.scale

    # --- predictions --------------------------------------------------------------------------

    def mean(self, X: Any) -> Floats:
        """Return the mean at the rows of X, shape (n, P)."""
        return self.mean_and_var(X)[0]

    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, P)."""
        return self.mean_and_var(X)[1]

    def mean_and_var(self, X: Any) -> tuple[Floats, Floats]:
        """Return `mean(X)` and `var(X)`, which share nearly all work."""
        X = self.prior.kernel.inputs(X)
        mean, var = self.prior.mean_and_var(X)
        votes = self._votes(X, mean, var)
        root = np.sqrt(var)
        return mean + root * votes.total / votes.precision, var / votes.precision

    def _votes(self, X: Any, mean: Floats, var: Floats) -> _Votes:
        safe = np.where(var > 0, var, 1.0)  # where nothing is to be learnt nobody deviates
        moments = [member.mean_and_var(X) for member in self.members]
        deviation = np.stack([(m - mean) / np.sqrt(safe) for m, _ in moments])
        ratio = np.stack([np.where(var > 0, v / safe, 1.0) for _, v in moments])
        ratio = np.clip(ratio, _SUREST, 1.0)
        share, slope = np.ones_like(ratio), np.zeros_like(ratio)
        if self.rule == "rbcm":
            share, slope = -0.5 * np.log(ratio), np.full_like(ratio, -0.5)
        elif self.rule == "gpoe":
            share = share / len(self.members)
        precision = 1.0 + np.sum(share * (1.0 / ratio - 1.0), axis=0)
        total = np.sum(share * deviation / ratio, axis=0)
        return _Votes(deviation, ratio, share, slope, precision, total)

    def gradients(self, X: Any) -> InputGradients:
        """Return the derivatives of mean and variance in the inputs, each (n, d, P)."""
        X = self.prior.kernel.inputs(X)
        mean, var = self.prior.mean_and_var(X)
        votes, own = self._votes(X, mean, var), self.prior.gradients(X)
        safe = np.where(var > 0, var, 1.0)
        dlog = own.var / safe[:, None]  # of ln v
        root = np.sqrt(var)
        dprecision, dtotal = np.zeros_like(own.var), np.zeros_like(own.var)
        known = zip(self.members, votes.deviation, votes.var, votes.share, votes.slope, strict=True)
        for member, deviation, ratio, share, slope in known:
            slopes = member.gradients(X)
            # of ln (v_k/v), where that is not cut off, and of the deviation
            inside = (ratio > _SUREST) & (ratio < 1.0)
            dratio = slopes.var / (ratio * safe)[:, None] - dlog
            dratio *= inside[:, None]
            moved = (slopes.mean - own.mean) / np.sqrt(safe)[:, None]
            moved = moved - 0.5 * deviation[:, None] * dlog
            gain = slope * (1.0 / ratio - 1.0) - share / ratio
            dprecision += gain[:, None] * dratio
            dtotal += (share / ratio)[:, None] * moved
            dtotal += ((slope - share) * deviation / ratio)[:, None] * dratio
        precision = votes.precision[:, None]
        bent = votes.total[:, None] / precision
        dmean = own.mean + 0.5 * root[:, None] * dlog * bent
        dmean = dmean + root[:, None] * (dtotal - bent * dprecision) / precision
        dvar = (own.var - var[:, None] * dprecision / precision) / precision
        return InputGradients(dmean, dvar)

    # --- saving, describing -------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"members": self.members, "prior": self.prior, "rule": self.rule}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CommitteePredictive:
        """Rebuild from `to_state`."""
        return cls(**state)

    def describe(self) -> str:
        """Return a few lines of text on what this is made of."""
        return f"Committee of {len(self.members)}, rule {self.rule}, under\n{self.prior.describe()}"

    def __repr__(self) -> str:
        return f"<CommitteePredictive: {len(self.members)} members, rule {self.rule!r}>"


def _check(members: Sequence[Predictive], prior: Posterior) -> None:
    outputs = [member.n_outputs for member in members]
    if set(outputs) != {prior.n_outputs}:
        raise ValueError(
            f"one or more members of {prior.n_outputs} outputs, as the prior has, are wanted, got "
            f"members of {outputs}"
        )
    coupled = any(isinstance(m, Posterior) and m.is_coupled for m in members)
    if prior.n_basis or not prior.weight or coupled:
        raise ValueError("a prior with an empty basis, and independent outputs are wanted")


def joint_committee(
    members: Sequence[Predictive], prior: Posterior, X: Any
) -> tuple[Floats, Floats]:
    """Return mean (n, P) and joint covariance (n, n, P) of Tresp's committee at query points.

    The members' precisions at the query points, less M - 1 times that of the prior, are those of
    the committee: parts of the data are independent given the function there. That is PITC with
    the query points as inducing inputs and the parts as blocks, and depends on which points are
    asked for together.

    Parameters
    ----------
    members : sequence of Predictive
        Posteriors of parts of the data under one prior, with independent outputs.
    prior : Posterior
        That prior: an empty basis.
    X : inputs
        The query, n rows; O(M n^3). Where covariances there are singular to rounding the smallest
        jitter that helps is added to the prior's and the members'.
    """
    members = tuple(members)
    _check(members, prior)
    kernel, scale = prior.kernel, prior.scale
    X = kernel.inputs(X)
    mean, n = prior.mean(X), len(X)
    if not n:
        return mean, np.empty((0, 0, prior.n_outputs))
    deviations = [(member.mean(X) - mean) / scale for member in members]
    covariances = [member.cov(X) / scale**2 for member in members]
    error: NotPositiveDefiniteError | None = None
    with blas_for(n):
        for jitter in JITTERS:
            # A prior that is all but singular is of no use as the unit of the members': these
            # need jitter then where the factorisation of the prior by itself does not.
            try:
                shift, cov = _joint(kernel.gram_lower(X), deviations, covariances, jitter)
            except NotPositiveDefiniteError as failed:
                error = failed
            else:
                return mean + scale * shift, cov * scale**2
    raise NotPositiveDefiniteError(
        "a member's covariance at the query points is singular beside the prior's: points "
        "repeat, or the noise is too small for so many of them"
    ) from error


def _joint(
    gram: Floats, deviations: list[Floats], covariances: list[Floats], jitter: float
) -> tuple[Floats, Floats]:
    """Return the committee's deviation from the prior mean (n, P) and its covariance (n, n, P).

    gram : (n, n) prior covariance, lower triangle, overwritten
    deviations : of each member's mean from the prior's, (n, P)
    covariances : the members', (n, n, P)
    jitter : to be added to all of these, a part of the prior's mean diagonal
    """
    n, outputs = deviations[0].shape
    jitter *= float(np.mean(np.diagonal(gram)))
    L = cholesky(gram, jitter).L
    shift, cov = np.empty((n, outputs)), np.empty((n, n, outputs))
    for p in range(outputs):
        # with the prior white, each member adds its precision less the prior's: W^-1 - 1
        precision, total = np.eye(n, order="F"), np.zeros(n)
        for deviation, whole in zip(deviations, covariances, strict=True):
            inverse = mirror_lower(inverse_lower(_whitened(L, whole[:, :, p], jitter)))
            total += inverse @ solve_lower(L, deviation[:, p].copy())
            precision += inverse
            precision.reshape(-1, order="F")[:: n + 1] -= 1.0
        half = cholesky(precision, 0.0).L
        root = solve_lower(half, np.asfortranarray(np.tril(L).T))
        cov[:, :, p] = root.T @ root
        shift[:, p] = root.T @ solve_lower(half, total)
    return shift, cov


def _whitened(L: Floats, S: Floats, jitter: float) -> Floats:
    """Return the factor of L^-1 (S + jitter) L^-T."""
    S = np.array(S, order="F")
    S.reshape(-1, order="F")[:: len(S) + 1] += jitter
    half = solve_lower(L, S, overwrite=True)
    W = solve_lower(L, np.asfortranarray(half.T), overwrite=True)
    return cholesky(np.asfortranarray(0.5 * (W + W.T)), 0.0).L
