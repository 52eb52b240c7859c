"""The iterative engine: evidence and gradient beside the exact path and GPyTorch, and many rows."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.children import in_child, resident_bytes
from benchmarks.evidence import D
from benchmarks.peers import GPyTorch, has_gpytorch
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, race
from mercer import means
from mercer.evidence import Data, Objective
from mercer.inference import iterative
from mercer.inference.iterative import IterativeProblem, Settings
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

LENGTHS = np.full(D, np.sqrt(D))
NOISE = 0.01  # of the signal's variance, which is 1
TOL = 1e-4  # the Gap of a solve that is not part of a search
EXACT, OURS, PEER = "exact: LAPACK and pullback", "iterative", "GPyTorch, default"
SEEDS = 5


def rows(n: int) -> tuple[Any, Any]:
    """Return n rows of a smooth function with noise of variance 0.01."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, D))
    f = np.sin(X[:, 0]) + np.cos(X[:, 1] + 0.5 * X[:, 2]) + 0.5 * X[:, 3]
    return X, f + np.sqrt(NOISE) * rng.normal(size=n)


def problem(n: int, seed: int = 0, **settings: Any) -> IterativeProblem:
    """Return what a fit evaluates at n rows: a scaled RBF and noise."""
    X, y = rows(n)
    noise = np.full(n, NOISE)
    kernel = 1.0 * RBF(LENGTHS)
    return IterativeProblem(kernel, X, y[:, None], noise, seed=seed, settings=Settings(**settings))


def exact(n: int, zero: bool = False) -> Objective:
    """Return the exact objective; with targets of zero its gradient is the trace term alone."""
    X, y = rows(n)
    data = Data(X, (0.0 * y if zero else y)[:, None], None, np.ones(1))
    return Objective(1.0 * RBF(LENGTHS), Gaussian(NOISE), means.Zero(), data)


def gradient_of(given: IterativeProblem) -> tuple[float, Any]:
    """Return the estimated evidence and its gradient in the logarithms of the parameters."""
    solution, adjoints = iterative.evidence(given)
    return solution.log_evidence, np.append(adjoints.theta, adjoints.log_noise)


class Peer(GPyTorch):
    """GPyTorch as it comes: conjugate gradients and Lanczos beyond 800 rows."""

    def gradient(self) -> tuple[float, Any]:
        """Return the evidence and its gradient in logarithms, in Mercer's order."""
        value = self.evaluate()
        kernel, sigmoid = self.model.covar_module, self.torch.sigmoid
        out = []
        for owner, name in [
            (kernel, "outputscale"),
            (kernel.base_kernel, "lengthscale"),
            (self.likelihood.noise_covar, "noise"),
        ]:
            raw = getattr(owner, f"raw_{name}")
            natural = getattr(owner, name).detach()
            # raw -> softplus(raw) + lower, whose derivative is the sigmoid of raw
            out.append((raw.grad / sigmoid(raw.detach()) * natural).numpy().ravel())
        return value, np.concatenate(out)


def child(n: int) -> None:
    """Solve in this process, which must be fresh; print seconds, Gap, steps and resident bytes."""
    iterative.solve(problem(500, stored=False, tol=TOL))
    given = problem(n, stored=False, tol=TOL)
    before = None
    try:
        Path("/proc/self/clear_refs").write_text("5")  # peak := now
        before = resident_bytes("VmRSS")
    except OSError:
        before = None
    start = time.perf_counter()
    solution = iterative.solve(given)
    seconds = time.perf_counter() - start
    peak = None if before is None else resident_bytes("VmHWM")
    print(json.dumps([seconds, solution.bounds.gap, solution.iterations, peak]))


def _race(n: int, options: Options) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Return seconds of each, and the error of its gradient and of its evidence."""
    given, objective = problem(n), exact(n)
    theta = objective.theta
    value, gradient = objective(theta)
    trace = np.linalg.norm(exact(n, zero=True)(theta)[1])
    contenders = [
        Contender(EXACT, lambda: objective(theta), most=2),
        Contender(OURS, lambda: iterative.evidence(given), most=3),
    ]

    def errors(found: list[tuple[float, Any]]) -> tuple[float, float]:
        """Root mean squares over seeds: of the gradient relative to the trace term, and in nats."""
        slopes = [np.linalg.norm(g - gradient) / trace for _, g in found]
        values = [v - value for v, _ in found]
        return float(np.sqrt(np.mean(np.square(slopes)))), float(
            np.sqrt(np.mean(np.square(values)))
        )

    seeds = range(1 if options.quick else SEEDS)
    wrong = {EXACT: (0.0, 0.0), OURS: errors([gradient_of(problem(n, seed)) for seed in seeds])}
    if has_gpytorch(options):
        X, y = rows(n)
        peer = Peer(X, y, LENGTHS, NOISE)
        found = []
        for seed in list(seeds)[:2]:
            peer.torch.manual_seed(seed)
            found.append(peer.gradient())
        wrong[PEER] = errors(found)
        contenders.append(Contender(PEER, peer.evaluate, most=2))
    times = race(contenders, 1 if options.quick else 2, warm_up=options.quick)
    return times, wrong


def run(options: Options) -> Result:
    """Race an evaluation at 10,000 rows, and solve 50,000 without the matrix."""
    n, many = (300, 600) if options.quick else (10_000, 50_000)
    times, wrong = _race(n, options)
    lines = [
        [
            name,
            f"{seconds:.2f}",
            f"{times[EXACT] / seconds:.2f}",
            f"{100 * wrong[name][0]:.3f}",
            f"{wrong[name][1]:.2f}",
        ]
        for name, seconds in times.items()
    ]
    seconds, gap, steps, peak = in_child(f"from benchmarks.iterative import child; child({many})")
    memory = "unknown" if peak is None else f"{peak / 1e9:.2f} GB"
    lead = times[EXACT] / times[OURS]
    verdicts = [
        Verdict("faster than the exact path", f"{lead:.2f} times", "at least 3 times", lead >= 3),
        Verdict(
            "error of the gradient, of the norm of the trace term",
            f"{100 * wrong[OURS][0]:.2f}%",
            "below 1%",
            wrong[OURS][0] < 0.01,
        ),
    ]
    if PEER in times:
        lead = times[PEER] / times[OURS]
        better = wrong[OURS][0] <= wrong[PEER][0]
        verdicts.append(
            Verdict(
                "faster than GPyTorch's default, at no larger an error",
                f"{lead:.2f} times, {'no larger' if better else 'a larger'} error",
                "at least 1.5 times",
                lead >= 1.5 and better,
            )
        )
    verdicts.append(
        Verdict(
            f"peak memory of the process, n = {many}, K never stored",
            f"{memory}, Gap {gap:.1g}",
            "below 2 GB, certified",
            peak is not None and peak < 2e9 and gap <= TOL,
        )
    )
    return Result(
        "Iterative regression",
        f"1.0 * RBF with {D} length scales, noise of 0.01 of the signal's variance, {D} columns: "
        f"evidence and gradient at n = {n}. Errors are root mean squares over {SEEDS} seeds of the "
        "probes, of GPyTorch 2: of the gradient relative to the norm of the trace term, of the log "
        f"evidence in nats. At n = {many} in a process of its own: solution, Gap and evidence.",
        [
            table(
                ["contender", "s", "exact / it", "error of gradient, %", "error of evidence, nats"],
                lines,
            ),
            table(
                ["rows", "s", "steps", "Gap", "peak memory"],
                [[str(many), f"{seconds:.1f}", str(steps), f"{gap:.1e}", memory]],
            ),
        ],
        verdicts,
        [] if PEER in times else ["GPyTorch was left out, or is not installed."],
    )
