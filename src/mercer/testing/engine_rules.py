"""Rules for engines: the evidence, its adjoints, and the posterior."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotPositiveDefiniteError
from mercer.likelihoods import Gaussian
from mercer.means import Constant, Zero
from mercer.posterior import Posterior
from mercer.testing.compare import close, expect, frozen, identical, refused, slope
from mercer.testing.engine_case import (
    EngineCase,
    Parts,
    dense_evidence,
    dense_posterior,
    exact,
    takes_regressors,
)
from mercer.testing.rules import Rules

__all__ = ["ENGINE"]

Floats = NDArray[np.float64]

ENGINE: Rules[EngineCase] = Rules()


def _new_rows() -> Floats:
    return np.random.default_rng(5).normal(size=(4, 2))


def _process(case: EngineCase, parts: Parts, **options: Any) -> Posterior:
    mean, scale = options.get("mean", Zero()), options.get("scale", np.ones(parts.Y.shape[1]))
    process, _ = case.engine.posterior(case.of(case.kernel(), case.rows(), parts), mean, scale)
    return process  # type: ignore[no-any-return]


def _with_noise(case: EngineCase, parts: Parts, noise: Floats) -> float:
    return case.value(parts._replace(noise=noise))


def _with_targets(case: EngineCase, parts: Parts, Y: Floats) -> float:
    return case.value(parts._replace(Y=Y))


def _moved(case: EngineCase, parts: Parts, E: Floats, step: Floats) -> float:
    """Return the log evidence with the Gram matrix moved by a step along E."""
    return case.value(parts._replace(K=parts.K + step * E))


@ENGINE.add()
def rule_solution(case: EngineCase) -> None:
    """`solve` and `evidence` give the same finite log evidence, and so does `posterior`."""
    parts = case.parts(outputs=2)
    problem = case.problem(parts)
    value = case.engine.solve(problem).log_evidence
    expect(np.ndim(value) == 0 and np.isfinite(value), "a finite log_evidence", value)
    solution, _ = case.engine.evidence(problem)
    close("log_evidence of `evidence`", solution.log_evidence, value, 1e-12, 1e-12)
    _, solution = case.engine.posterior(problem, Zero(), np.ones(2))
    close("log_evidence of `posterior`", solution.log_evidence, value, 1e-12, 1e-12)


@ENGINE.add(exact)
def rule_evidence(case: EngineCase) -> None:
    """The log evidence is log N(Y; H beta, K + noise) (BKM 62)."""
    for kind in case.kinds():
        for outputs in (1, 3):
            parts = case.parts(outputs, kind)
            what = f"log evidence of {outputs} outputs, regressors {kind}"
            close(what, case.value(parts), dense_evidence(parts), 1e-9, 1e-9)


@ENGINE.add()
def rule_adjoint_of_the_gram_matrix(case: EngineCase) -> None:
    """`factor * K` of the adjoints is dL/dK, in its lower triangle, for a symmetric change."""
    for kind in case.kinds():
        parts = case.parts(2, kind)
        n = len(parts.K)
        _, adjoints = case.engine.evidence(case.problem(parts))
        expect(adjoints.K.shape == (n, n), f"an adjoint of shape {(n, n)}", adjoints.K)
        G = adjoints.factor * np.tril(adjoints.K)
        wanted = np.zeros((n, n))
        for i in range(n):
            for j in range(i + 1):
                E = np.zeros((n, n))
                E[i, j] = E[j, i] = 1.0
                rise = slope(partial(_moved, case, parts, E), 0.0)
                wanted[i, j] = rise if i == j else 0.5 * rise  # it moves two entries
        close(f"dL/dK, regressors {kind}", G, wanted, 1e-5, 1e-6)


@ENGINE.add()
def rule_adjoint_of_the_noise(case: EngineCase) -> None:
    """`noise` of the adjoints is dL/d(noise variances)."""
    for kind in case.kinds():
        parts = case.parts(2, kind)
        _, adjoints = case.engine.evidence(case.problem(parts))
        wanted = slope(partial(_with_noise, case, parts), parts.noise)
        close(f"dL/d noise, regressors {kind}", adjoints.noise, wanted, 1e-5, 1e-6)


@ENGINE.add()
def rule_adjoint_of_the_mean(case: EngineCase) -> None:
    """`mean` of the adjoints is dL/d(mean values): the targets less the mean are Y."""
    for kind in case.kinds():
        parts = case.parts(2, kind)
        _, adjoints = case.engine.evidence(case.problem(parts))
        wanted = -slope(partial(_with_targets, case, parts), parts.Y)
        close(f"dL/d mean, regressors {kind}", adjoints.mean, wanted, 1e-5, 1e-6)


@ENGINE.add()
def rule_outputs_are_independent(case: EngineCase) -> None:
    """The log evidence of several outputs is the sum of theirs, and each is predicted alone."""
    parts = case.parts(outputs=3)
    single = [parts._replace(Y=parts.Y[:, [p]]) for p in range(3)]
    close("log evidence", case.value(parts), sum(map(case.value, single)), 1e-9, 1e-9)
    X, together = _new_rows(), _process(case, parts)
    for p, part in enumerate(single):
        alone = _process(case, part)
        close(f"mean of output {p}", together.mean(X)[:, [p]], alone.mean(X), 1e-9, 1e-10)
        close(f"variance of output {p}", together.var(X)[:, [p]], alone.var(X), 1e-9, 1e-10)


@ENGINE.add(exact)  # an approximation may choose rows by their place
def rule_order_of_rows(case: EngineCase) -> None:
    """The order of the rows changes nothing."""
    parts = case.parts(2, case.kinds()[-1])
    order = np.random.default_rng(1).permutation(case.n)
    moved = Parts(
        parts.K[np.ix_(order, order)],
        parts.Y[order],
        parts.noise[order],
        None if parts.H is None else parts.H[order],
        parts.integrate,
    )
    close("log evidence", case.value(moved), case.value(parts), 1e-9, 1e-9)


@ENGINE.add(exact)
def rule_posterior(case: EngineCase) -> None:
    """Mean, variance and covariance are the conditional ones (BKM 44, 45, 47, 48)."""
    parts, X, k = case.parts(outputs=2), _new_rows(), case.kernel()
    _same("", _process(case, parts), X, dense_posterior(parts, k(X, case.rows()), k(X)), np.ones(2))


@ENGINE.add(exact, takes_regressors)
def rule_posterior_with_regressors(case: EngineCase) -> None:
    """The posterior includes H beta at any row, and the price of a beta that is integrated out."""
    X, k, s = _new_rows(), case.kernel(), np.array([3.0, 0.1])
    for kind in ("ml", "integrate"):
        parts, mean = case.parts(2, kind), case.mean(kind)
        wanted = dense_posterior(parts, k(X, case.rows()), k(X), mean.features(X))
        process = _process(case, parts, mean=mean, scale=s)
        _same(f" with regressors {kind}", process, X, wanted, s)


def _same(
    what: str, process: Posterior, X: Floats, wanted: tuple[Floats, Floats], scale: Floats
) -> None:
    """Compare a process with a mean (t, P) and a covariance (t, t) in units of `scale`."""
    mean, cov = wanted[0] * scale, wanted[1][:, :, None] * scale**2
    close(f"mean{what}", process.mean(X), mean, 1e-9, 1e-10)
    close(f"variance{what}", process.var(X), np.einsum("iip->ip", cov), 1e-9, 1e-10)
    close(f"covariance{what}", process.cov(X), cov, 1e-9, 1e-10)


@ENGINE.add()
def rule_posterior_units(case: EngineCase) -> None:
    """`scale` gives the units of the outputs: means and standard deviations are in them."""
    parts, X, s = case.parts(outputs=2), _new_rows(), np.array([3.0, 0.1])
    plain, scaled = _process(case, parts), _process(case, parts, scale=s)
    close("mean", scaled.mean(X), plain.mean(X) * s, 1e-10, 1e-12)
    close("variance", scaled.var(X), plain.var(X) * s**2, 1e-10, 1e-12)
    fixed = _process(case, parts, mean=Constant(5.0, estimate=None))
    close("mean with a fixed part", fixed.mean(X), plain.mean(X) + 5.0, 1e-10, 1e-12)


@ENGINE.add()
def rule_posterior_variance(case: EngineCase) -> None:
    """Variances are neither negative nor NaN nor above the prior's, at the rows as well."""
    X, k = case.rows(), case.kernel()
    for noise in (1e-6, 0.5):
        parts = case.parts()._replace(noise=np.full(case.n, noise))
        process = _process(case, parts)
        expect(isinstance(process, Posterior), "a mercer.posterior.Posterior", process)
        for rows in (X, _new_rows(), 1e3 * X):
            var, prior = process.var(rows)[:, 0], k.diag(rows)
            expect(np.all(var >= 0), "variances of at least 0", var)
            expect(np.all(var <= prior * (1 + 1e-9)), f"none above the prior's {prior}", var)


@ENGINE.add(exact)
def rule_weights(case: EngineCase) -> None:
    """Noise divided by a row's weight, with `weight_constant`, is the row repeated."""
    parts, likelihood = case.parts(outputs=2), Gaussian(0.4)
    weights = np.ones(case.n)
    weights[[1, 4]] = 2.0, 3.0
    rows = np.repeat(np.arange(case.n), weights.astype(int))
    weighted = parts._replace(noise=likelihood.variances(case.n, weights))
    repeated = Parts(
        parts.K[np.ix_(rows, rows)], parts.Y[rows], likelihood.variances(rows.size, None)
    )
    constant = 2 * likelihood.weight_constant(case.n, weights)
    close("log evidence", case.value(weighted) + constant, case.value(repeated), 1e-9, 1e-9)


@ENGINE.add()
def rule_purity(case: EngineCase) -> None:
    """Arrays of the problem are only read, and the same problem has the same answer again."""
    parts = case.parts(2, case.kinds()[-1])
    kept = parts._replace(
        K=frozen(parts.K),
        Y=frozen(parts.Y),
        noise=frozen(parts.noise),
        H=None if parts.H is None else frozen(parts.H),
    )
    problem = case.of(case.kernel(), frozen(case.rows()), kept)
    first, second = (case.engine.evidence(problem) for _ in range(2))
    identical("log evidence the second time", second[0].log_evidence, first[0].log_evidence)
    for name in ("noise", "mean"):
        got, wanted = getattr(second[1], name), getattr(first[1], name)
        identical(f"the adjoint of the {name} the second time", got, wanted)
    for name, array, wanted in zip(("K", "Y", "noise"), kept, parts, strict=False):
        identical(f"{name} of the problem", array, wanted)
    plain = case.parts()
    a, b = (_process(case, plain).mean(_new_rows()) for _ in range(2))
    identical("predictions the second time", b, a)


@ENGINE.add()
def rule_indefinite_covariance(case: EngineCase) -> None:
    """A covariance that is not positive definite raises NotPositiveDefiniteError."""
    parts = case.parts()
    bad = case.problem(parts._replace(K=parts.K - 5.0 * np.eye(case.n)))
    for name in ("solve", "evidence"):
        call = getattr(case.engine, name)
        refused(name, partial(call, bad), error=NotPositiveDefiniteError)
