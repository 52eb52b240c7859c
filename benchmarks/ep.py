"""Expectation propagation with probit, beside Laplace's method and GPy."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.classification import D, rows
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, milliseconds, race
from mercer.inference import LatentProblem, ep, laplace
from mercer.kernels import RBF
from mercer.likelihoods import Probit

LAPLACE, EP, GPY = "Mercer, Laplace", "Mercer, EP", "GPy, EP"


def run(options: Options) -> Result:
    """Race both to convergence, and with the gradient."""
    n = 60 if options.quick else 1000
    X, y = rows(n)
    kernel = 1.0 * RBF(np.full(D, np.sqrt(D)))
    problem = LatentProblem(kernel, X, y, Probit(), np.zeros(n))

    def gradient(engine: Any) -> Any:
        _, adjoints = engine.evidence(problem)
        return adjoints.factor * kernel.pullback(X, None, adjoints.K, inputs=False).theta

    rounds = 1 if options.quick else 10
    solved = race(
        [
            Contender(LAPLACE, lambda: laplace.solve(problem)),
            Contender(EP, lambda: ep.solve(problem)),
        ],
        rounds,
    )
    raced = [
        Contender(LAPLACE, lambda: gradient(laplace)),
        Contender(EP, lambda: gradient(ep)),
    ]
    ours = ep.solve(problem).log_evidence
    notes = []
    if find_spec("GPy") and "gpy" not in options.without:
        import GPy

        theirs = GPy.kern.RBF(D, 1.0, np.full(D, np.sqrt(D)), ARD=True)
        found: list[float] = []

        def peer() -> None:
            model = GPy.models.GPClassification(X, (y[:, None] > 0).astype(float), theirs.copy())
            found.append(float(model.log_likelihood()))

        raced.append(Contender(GPY, peer, most=2))
    else:
        notes.append("GPy was left out, or is not installed.")
    times = race(raced, rounds)
    if GPY in times:
        notes.append(
            f"The log evidence by EP is {ours:.6f} here and {found[-1]:.6f} by GPy, whose times "
            "include its gradient."
        )
    lines = [
        [
            name,
            milliseconds(solved[name]) if name in solved else "",
            milliseconds(seconds),
            f"{seconds / times[EP]:.2f}",
        ]
        for name, seconds in times.items()
    ]
    ratio = solved[EP] / solved[LAPLACE]
    verdicts = [Verdict("EP over Laplace, to convergence", f"{ratio:.2f}", "at most 4", ratio <= 4)]
    if GPY in times:
        faster = times[GPY] / times[EP]
        verdicts.append(
            Verdict("faster than GPy", f"{faster:.0f} times", "at least 5 times", faster >= 5)
        )
    return Result(
        "Expectation propagation",
        f"Probit, 1.0 * RBF with {D} length scales, n = {n}, cold starts.",
        [table(["contender", "solution, ms", "with gradient, ms", "over Mercer's EP"], lines)],
        verdicts,
        notes,
    )
