"""An engine with the problems it is tried on, and what dense formulas say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import RBF, Precomputed
from mercer.likelihoods.normal import LOG_2PI
from mercer.means import Linear, Mean
from mercer.posterior import Posterior

__all__ = [
    "Engine",
    "EngineCase",
    "Parts",
    "dense_evidence",
    "dense_posterior",
    "exact",
    "takes_regressors",
]

Floats = NDArray[np.float64]
_METHODS = ("solve", "evidence", "posterior")


class Engine(Protocol):
    """What an engine for Gaussian noise is today: three functions of one problem.

    The problem is an :class:`mercer.inference.exact.ExactProblem`, or has the same fields.
    """

    def solve(self, problem: Any) -> Any:
        """Return a solution: an object with a float `log_evidence`."""

    def evidence(self, problem: Any) -> tuple[Any, Any]:
        """Return the solution, and the adjoints of its log evidence.

        The adjoints are an object with `K` (n, n), of which the lower triangle counts, `factor`
        (dL/dK is `factor` times `K`), `noise` (n,) and `mean` (n, P).
        """

    def posterior(self, problem: Any, mean: Mean, scale: Floats) -> tuple[Posterior, Any]:
        """Return the posterior process, in units of `scale` (P,), and the solution.

        Where the problem has regressors they are `mean.features(X)`, and the process includes
        their part at any row, with the uncertainty of coefficients that are integrated out.
        """


class Parts(NamedTuple):
    """What a problem is made of; K is the Gram matrix."""

    K: Floats
    Y: Floats
    noise: Floats
    H: Floats | None = None
    integrate: bool = False


@dataclass(frozen=True)
class EngineCase:
    """An engine, how its problems are made, and what it claims.

    make : problem from kernel, X, Y and noise, by keyword, and H and integrate where not default
    regressors : whether it takes regressors of the mean
    is_exact : whether its evidence and posterior are the true ones
    """

    engine: Any
    make: Callable[..., Any]
    regressors: bool
    is_exact: bool

    n: int = 7

    def rows(self) -> Floats:
        """Return inputs (n, 2)."""
        return np.random.default_rng(0).normal(size=(self.n, 2))

    def kernel(self) -> Any:
        """Return a kernel for them."""
        return 1.7 * RBF([0.8, 1.5])

    def mean(self, regressors: str) -> Mean:
        """Return the mean whose regressors are H; its coefficients are not known yet."""
        return Linear(estimate=regressors)

    def parts(self, outputs: int = 1, regressors: str | None = None) -> Parts:
        """Return a problem's arrays; `regressors` is None, "ml" or "integrate"."""
        rng = np.random.default_rng(outputs)
        X = self.rows()
        Y = np.sin(X[:, :1]) + rng.normal(size=(self.n, outputs))
        H = None if regressors is None else self.mean(regressors).features(X)
        noise = rng.uniform(0.2, 0.9, self.n)
        return Parts(self.kernel()(X), Y, noise, H, regressors == "integrate")

    def problem(self, parts: Parts) -> Any:
        """Return the problem whose Gram matrix is that of the parts."""
        kernel = Precomputed(parts.K, is_mercer=False)
        return self.of(kernel, np.arange(len(parts.K), dtype=float)[:, None], parts)

    def of(self, kernel: Any, X: Any, parts: Parts) -> Any:
        """Return the problem of a kernel and rows, with the other arrays of the parts."""
        options = {} if parts.H is None else {"H": parts.H, "integrate": parts.integrate}
        return self.make(kernel=kernel, X=X, Y=parts.Y, noise=parts.noise, **options)

    def value(self, parts: Parts) -> float:
        """Return the log evidence."""
        return float(self.engine.solve(self.problem(parts)).log_evidence)

    def kinds(self) -> tuple[str | None, ...]:
        """Return the kinds of regressors to try."""
        return (None, "ml", "integrate") if self.regressors else (None,)


def exact(case: EngineCase) -> str:
    """Say whether rules on exact results do not apply."""
    return "" if case.is_exact else "it is an approximation, and says so"


def takes_regressors(case: EngineCase) -> str:
    """Say whether rules on regressors of the mean do not apply."""
    return "" if case.regressors else "it takes no regressors of the mean"


def name_of(engine: Any) -> str:
    """Return what to call an engine in a message."""
    if isinstance(engine, (ModuleType, type)):
        return engine.__name__
    return type(engine).__name__


def require_engine(engine: Any) -> None:
    """Raise ValueError for what has not the functions of an engine."""
    missing = [m for m in _METHODS if not callable(getattr(engine, m, None))]
    if missing:
        raise ValueError(
            f"an engine has the functions {', '.join(_METHODS)}; {name_of(engine)} has no "
            f"{', '.join(missing)}"
        )


def _projected(parts: Parts) -> tuple[Floats, Floats, float]:
    """Return P = Q^-1 - V V', Q^-1 H (H'Q^-1 H)^-1 and log det H'Q^-1 H (or none of them)."""
    inverse = np.asarray(np.linalg.inv(parts.K + np.diag(parts.noise)), dtype=np.float64)
    if parts.H is None:
        return inverse, np.zeros((len(inverse), 0)), 0.0
    middle = parts.H.T @ inverse @ parts.H
    W = np.asarray(inverse @ parts.H @ np.linalg.inv(middle))
    return np.asarray(inverse - W @ parts.H.T @ inverse), W, float(np.linalg.slogdet(middle)[1])


def dense_evidence(parts: Parts) -> float:
    """Return log N(Y; H beta, Q), beta estimated or integrated out, by the textbook (BKM 62)."""
    P, _, log_middle = _projected(parts)
    n, outputs = parts.Y.shape
    log_det = float(np.linalg.slogdet(parts.K + np.diag(parts.noise))[1])
    if parts.integrate and parts.H is not None:
        log_det += log_middle
        n -= parts.H.shape[1]
    quadratic = float(np.sum(parts.Y * (P @ parts.Y)))
    return float(-0.5 * (quadratic + outputs * (log_det + n * LOG_2PI)))


def dense_posterior(
    parts: Parts, Ks: Floats, Kss: Floats, Hs: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the mean (t, P) and covariance (t, t) at new points, by the textbook.

    (BKM 44, 45, 47, 48); with regressors, f(x) + h(x)' beta by generalised least squares, and the
    covariance of what is not known of beta where it is integrated out.

    Ks : (t, n) covariances with the rows; Kss : (t, t) among the new points
    Hs : (t, r) regressors of the new points
    """
    inverse = np.linalg.inv(parts.K + np.diag(parts.noise))
    cov = Kss - Ks @ inverse @ Ks.T
    if parts.H is None or Hs is None:
        return Ks @ inverse @ parts.Y, cov
    of_beta = np.linalg.inv(parts.H.T @ inverse @ parts.H)
    beta = of_beta @ parts.H.T @ inverse @ parts.Y
    rest = Hs - Ks @ inverse @ parts.H
    mean = Hs @ beta + Ks @ inverse @ (parts.Y - parts.H @ beta)
    return mean, cov + rest @ of_beta @ rest.T if parts.integrate else cov
