"""Binary classification by Laplace's method, beside scikit-learn: one evaluation, and a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, milliseconds, race
from mercer import GPClassifier, means
from mercer.evidence import LatentData, LatentObjective
from mercer.kernels import RBF
from mercer.likelihoods import Logistic

D = 8
BARE, MERCER, SKLEARN = "potrf + potri", "Mercer", "scikit-learn"
FLAT = "Mercer, hyperprior=None"  # seeks what scikit-learn does
MAX_ITER = 200  # GPClassifier's default

# Of whole runs: a quick one measures none of it.
NOTE = (
    "Without its hyperprior Mercer finds scikit-learn's optimum and its log losses. The "
    "hyperprior is there for fits to few rows, and to labels that can be separated, whose log "
    "losses are far worse without it."
)


def rows(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Return n rows and labels -1 and +1, of 8 columns of which 5 do not matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    f = 3.0 * np.sin(X[:, 0]) + 2.0 * X[:, 1] * X[:, 2]
    return X, np.where(rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-f)), 1.0, -1.0)


def _peer(amplitude: float, **settings: Any) -> Any:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF as SklearnRBF
    from sklearn.gaussian_process.kernels import ConstantKernel

    lengths = np.full(D, np.sqrt(D))
    kernel = ConstantKernel(amplitude, (1e-3, 1e4)) * SklearnRBF(lengths, (1e-2, 1e3))
    return GaussianProcessClassifier(kernel, **settings)


def _evaluation(amplitude: float, n: int, rounds: int) -> dict[str, float]:
    """Race one evaluation of the evidence and its gradient, from a cold start."""
    X, y = rows(n)
    objective = LatentObjective(
        amplitude * RBF(np.full(D, np.sqrt(D))),
        Logistic(),
        means.Zero(),
        LatentData(X, y, None),
        "laplace",
    )
    theta = objective.theta
    peer = _peer(amplitude, optimizer=None).fit(X, y).base_estimator_
    peer_theta = peer.kernel_.theta

    def theirs() -> Any:
        return peer.log_marginal_likelihood(peer_theta, eval_gradient=True, clone_kernel=False)

    value, gradient = objective(theta)
    other, slope = theirs()
    np.testing.assert_allclose([value, *gradient], [other, *slope], rtol=1e-4, atol=1e-4)
    Q = objective.kernel.gram_lower(X)
    Q.reshape(-1, order="F")[:: n + 1] += 1.0
    work = np.empty((n, n), order="F")

    def bare() -> None:
        factor, _ = dpotrf(work, lower=1, clean=0, overwrite_a=1)
        dpotri(factor, lower=1, overwrite_c=1)

    def cold() -> None:
        objective.state = None

    return race(
        [
            Contender(BARE, bare, prepare=lambda: np.copyto(work, Q)),
            Contender(MERCER, lambda: objective(theta), prepare=cold),
            Contender(SKLEARN, theirs, most=4),
        ],
        rounds,
    )


def _lbfgs(function: Any, start: Any, bounds: Any) -> tuple[Any, float]:
    """scikit-learn's optimiser, with Mercer's budget."""
    options = {"maxiter": MAX_ITER, "maxfun": 10 * MAX_ITER}
    found = minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return found.x, found.fun


def _losses(model: Any, X: Any, y: Any) -> Any:
    """Return the log loss of each row."""
    P = model.predict_proba(X)
    return -np.log(P[np.arange(len(y)), (y > 0).astype(int)])


def _models() -> dict[str, Any]:
    return {
        MERCER: GPClassifier(max_iter=MAX_ITER),
        FLAT: GPClassifier(hyperprior=None, max_iter=MAX_ITER),
        SKLEARN: _peer(1.0, optimizer=_lbfgs),
    }


def _fit(n: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Race fits to n rows; return times, and the log losses on as many new rows."""
    X, y = rows(n, 1)
    X_test, y_test = rows(n, 2)
    models = _models()
    times = race(
        [
            Contender(name, lambda m=model: m.fit(X, y), most=2 if name == MERCER else 1)  # type: ignore[misc]
            for name, model in models.items()
        ],
        1,
    )
    return times, {name: _losses(model, X_test, y_test) for name, model in models.items()}


def _sets(n: int, count: int) -> dict[str, Any]:
    """Return the mean test losses of fits to several sets of n rows, each with 4000 new ones."""
    losses: dict[str, list[float]] = {name: [] for name in _models()}
    for k in range(count):
        X, y = rows(n, 100 + 2 * k)
        X_test, y_test = rows(4000, 101 + 2 * k)
        for name, model in _models().items():
            losses[name].append(float(np.mean(_losses(model.fit(X, y), X_test, y_test))))
    return {name: np.array(values) for name, values in losses.items()}


def _gap(differences: Any) -> tuple[float, float, str]:
    """Return the mean of paired differences, its standard error, and both as text."""
    mean = float(np.mean(differences))
    error = float(np.std(differences, ddof=1) / np.sqrt(len(differences)))
    return mean, error, f"{mean:+.4f} ± {error:.4f}"


def run(options: Options) -> Result:
    """Race an evaluation at two amplitudes, and a fit."""
    n = 80 if options.quick else 1000
    evaluations = {a: _evaluation(a, n, 1 if options.quick else 12) for a in (1.0, 10.0)}
    lines = [
        [
            name,
            *(
                cell
                for times in evaluations.values()
                for cell in (milliseconds(times[name]), f"{times[SKLEARN] / times[name]:.1f}")
            ),
        ]
        for name in (BARE, MERCER, SKLEARN)
    ]
    rows_of_fit = 100 if options.quick else 2000
    times, losses = _fit(rows_of_fit)
    few, count = (40, 2) if options.quick else (500, 6)
    sets = _sets(few, count)
    fits = [
        [
            name,
            f"{times[name]:.1f}",
            f"{times[SKLEARN] / times[name]:.1f}",
            f"{losses[name].mean():.4f}",
            f"{sets[name].mean():.4f}",
            _gap(sets[name] - sets[SKLEARN])[2] if name != SKLEARN else "",
        ]
        for name in (MERCER, FLAT, SKLEARN)
    ]
    faster = evaluations[1.0][SKLEARN] / evaluations[1.0][MERCER]
    faster_fit = times[SKLEARN] / times[MERCER]
    return Result(
        "Binary classification, Laplace's method",
        f"Logistic, constant * RBF with {D} length scales, {D} columns. One evaluation of the "
        f"evidence and its gradient from a cold start, n = {n}, at an amplitude of 1 and of 10; "
        f"a fit to {rows_of_fit} rows, Mercer's with its defaults, scikit-learn's from unit "
        "amplitude with bounds that suit it, both at most 200 iterations of L-BFGS-B; log losses "
        f"on as many new rows, and of {count} sets of {few} rows on 4000 new ones each, with the "
        "differences to scikit-learn's, set by set.",
        [
            table(["contender", "ms", "faster", "ms, amplitude 10", "faster"], lines),
            table(["fit", "s", "faster", "test log loss", f"{count} sets", "difference"], fits),
        ],
        [
            Verdict("one evaluation", f"{faster:.1f} times", "at least 12 times", faster >= 12),
            Verdict("fit", f"{faster_fit:.1f} times", "at least 6 times", faster_fit >= 6),
            *(
                Verdict(
                    f"test log loss of the fit, {name}",
                    text,
                    "at most one standard error above 0",
                    mean <= error,
                )
                for name in (FLAT, MERCER)
                for mean, error, text in [_gap(losses[name] - losses[SKLEARN])]
            ),
        ],
        [] if options.quick else [NOTE],
    )
