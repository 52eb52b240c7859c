"""The evidence and its gradient beside the bare factorisation and inversion, and the peers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from benchmarks.peers import GPyTorch, has_gpytorch, sklearn_regressor
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, milliseconds, race
from mercer import means
from mercer.evidence import Data, Objective
from mercer.kernels import RBF, Kernel
from mercer.likelihoods import Gaussian

D = 8
NOISE = 0.1
WANTED = {1000: 1.5, 2000: 1.25, 4000: 1.15}
BARE, MERCER, SKLEARN = "potrf + potri", "Mercer", "scikit-learn"
CHOLESKY, DEFAULT = "GPyTorch, Cholesky", "GPyTorch, default"


def problem(n: int, d: int = D) -> tuple[Any, Any]:
    """Return n rows of data that a GP suits."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + np.sqrt(NOISE) * rng.normal(size=n)


def objective(X: Any, y: Any, kernel: Kernel) -> Objective:
    """Return what a fit of Mercer's evaluates: this kernel and noise, zero mean."""
    data = Data(X, y[:, None], None, np.ones(1))
    return Objective(kernel, Gaussian(NOISE), means.Zero(), data)


def contenders(n: int, options: Options) -> list[Contender]:
    """Return all that are raced at n rows, checked to compute the same numbers."""
    X, y = problem(n)
    lengths = np.full(D, np.sqrt(D))
    ours = objective(X, y, 1.0 * RBF(lengths))
    theta = ours.theta
    value, gradient = ours(theta)
    Q = ours.kernel.gram_lower(X)
    Q.reshape(-1, order="F")[:: n + 1] += NOISE
    work = np.empty((n, n), order="F")

    def bare() -> None:
        factor, info = dpotrf(work, lower=1, clean=0, overwrite_a=1)
        inverse, info_inverse = dpotri(factor, lower=1, overwrite_c=1)
        if info or info_inverse or not np.shares_memory(inverse, work):
            raise RuntimeError("the bare work failed, or copied its matrix")

    raced = [
        Contender(BARE, bare, prepare=lambda: np.copyto(work, Q)),
        Contender(MERCER, lambda: ours(theta)),
    ]
    if "scikit-learn" not in options.without:
        peer = sklearn_regressor(lengths, NOISE, optimizer=None).fit(X, y)
        peer_theta = peer.kernel_.theta
        if n <= 1000:
            other, slope = peer.log_marginal_likelihood(peer_theta, eval_gradient=True)
            np.testing.assert_allclose([value, *gradient], [other, *slope], rtol=1e-7, atol=1e-7)

        def theirs() -> None:
            peer.log_marginal_likelihood(peer_theta, eval_gradient=True, clone_kernel=False)

        raced.append(Contender(SKLEARN, theirs, most=2 if n >= 4000 else 4))
    if has_gpytorch(options):
        torch_model = GPyTorch(X, y, lengths, NOISE)
        np.testing.assert_allclose(torch_model.evaluate_by_cholesky(), value, rtol=1e-6)
        most = 3 if n >= 4000 else 6
        raced.append(Contender(CHOLESKY, torch_model.evaluate_by_cholesky, most=most))
        raced.append(Contender(DEFAULT, torch_model.evaluate, most=most))
    return raced


def run(options: Options) -> Result:
    """Race them at each size."""
    sizes = (60, 100) if options.quick else (1000, 2000, 4000)
    names: list[str] = []
    times: dict[int, dict[str, float]] = {}
    for n in sizes:
        raced = contenders(n, options)
        names = [c.name for c in raced]
        times[n] = race(raced, 1 if options.quick else 6 if n >= 4000 else 15)
    rows = []
    for name in names:
        row = [name]
        for n in sizes:
            row += [milliseconds(times[n][name]), f"{times[n][name] / times[n][BARE]:.2f}"]
        rows.append(row)
    header = ["contender"]
    for n in sizes:
        header += [f"n = {n}, ms", "ratio"]
    result = Result(
        "Evidence and gradient",
        f"1.0 * RBF with {D} length scales plus noise, {D} columns. Ratios: to the bare potrf and "
        "potri of the same LAPACK, in place.",
        [table(header, rows)],
    )
    for n in sizes:
        wanted = WANTED.get(n, 1.5)
        ratio = times[n][MERCER] / times[n][BARE]
        result.verdicts.append(
            Verdict(f"ratio at n = {n}", f"{ratio:.2f}", f"at most {wanted}", ratio <= wanted)
        )
        rivals = [t for name, t in times[n].items() if name not in (BARE, MERCER)]
        if rivals:
            lead = min(rivals) / times[n][MERCER]
            result.verdicts.append(
                Verdict(f"ahead of every peer at n = {n}", f"{lead:.2f} times", "above 1", lead > 1)
            )
    return result
