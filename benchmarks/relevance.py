"""Relevance vector machines: beside fastrvm, beside bare products, and where memory is short."""

from __future__ import annotations

import json
import time
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dgemv, dsymv

from benchmarks.children import in_child, resident_bytes
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, milliseconds, race
from mercer.compute import blas_for
from mercer.inference._columns import KernelColumns
from mercer.inference._relevance_fast import Fast
from mercer.inference._relevance_rows import Rows
from mercer.inference._relevance_search import add
from mercer.inference.relevance import RelevanceProblem, solve
from mercer.kernels import RBF
from mercer.linalg.precisions import precisions
from mercer.priors import Flat

MERCER, PEER = 'Mercer, "fast"', "fastrvm"
STEPS = 200
MOST_BYTES = 2 * 10**9


class Case(NamedTuple):
    """Inputs, targets, and the width of the kernel."""

    name: str
    X: Any
    y: Any
    width: float


def sinc(n: int, seed: int = 0) -> Case:
    """Return Tipping's example: sin(x)/x on (-10, 10) with noise 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (n, 1))
    y = np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(n)
    return Case("sinc", X, y, 1.6)


def eight(n: int, seed: int = 0) -> Case:
    """Return a smooth function of five of eight inputs, with noise 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.cos(X[:, 3]) + 0.5 * X[:, 4]
    return Case("eight inputs", X, y + 0.1 * rng.standard_normal(n), 3.0)


def problem(case: Case) -> RelevanceProblem:
    """Return the case with its noise learned and a flat hyperprior, as fastrvm has it."""
    n = len(case.y)
    columns = KernelColumns(RBF(case.width), case.X)
    return RelevanceProblem(columns, case.y, np.zeros(n), None, Flat())


def dense_evidence(case: Case, indices: Any, s: Any, v: float) -> float:
    """Return ln N(y; 0, v + K S^-1 K') (BKM 127) by an n x n factor."""
    K = RBF(case.width)(case.X, case.X[indices])
    C = (K / s) @ K.T
    C.flat[:: len(C) + 1] += v
    L = np.linalg.cholesky(C)
    u = np.linalg.solve(L, case.y)
    n = len(case.y)
    return float(-0.5 * (n * np.log(2 * np.pi) + u @ u) - np.sum(np.log(np.diagonal(L))))


def _peer(case: Case) -> Any:
    from fastrvm import RVR

    return RVR(gamma=0.5 / case.width**2).fit(case.X, case.y)


def _against_peer(
    case: Case, rounds: int, with_peer: bool
) -> tuple[list[list[str]], list[Verdict]]:
    kept: dict[str, Any] = {}

    def ours() -> None:
        kept[MERCER] = solve(problem(case))

    def peer() -> None:
        kept[PEER] = _peer(case)

    contenders = [Contender(MERCER, ours)]
    if with_peer:
        contenders.append(Contender(PEER, peer, most=rounds))
    times = race(contenders, rounds)
    n, fit = str(len(case.y)), kept[MERCER]
    values = {MERCER: dense_evidence(case, fit.indices, fit.precisions, fit.noise)}
    counts = {MERCER: len(fit.indices)}
    noises = {MERCER: fit.noise}
    if with_peer:
        model = kept[PEER]
        K = RBF(case.width)(case.X, case.X[model.relevance_])
        # Its columns are scaled to length 1; of the precisions it divides by the squared length
        # where it has to multiply, so that alpha_ is undone here.
        s = model.alpha_.ravel() * np.sum(K**2, axis=0) ** 2
        values[PEER] = dense_evidence(case, model.relevance_, s, 1.0 / model.beta_)
        counts[PEER], noises[PEER] = model.n_relevance_, 1.0 / model.beta_
    lines = [
        [
            case.name,
            name,
            n,
            f"{times[name]:.3f}",
            str(counts[name]),
            f"{noises[name]:.4f}",
            f"{values[name]:.2f}",
        ]
        for name in times
    ]
    verdicts = []
    if with_peer:
        ratio, more = times[MERCER] / times[PEER], values[MERCER] - values[PEER]
        verdicts = [
            Verdict(f"{case.name}: time over {PEER}'s", f"{ratio:.2f}", "at most 1", ratio <= 1),
            Verdict(f"{case.name}: evidence above its", f"{more:+.2f}", "at least 0", more >= 0),
        ]
    return lines, verdicts


class Step:
    """A model of k functions, of which single steps are timed beside their products."""

    def __init__(self, case: Case, k: int, count: int) -> None:
        given = problem(case)
        self.rows, self.k, self.count = Rows(given), k, count
        some = np.sort(np.random.default_rng(0).choice(len(case.y), k + 1, replace=False))
        self.fast, self.new = Fast(given, self.rows, 1e-2), int(some[-1])
        self.some = some[:-1]
        self.fast.begin((self.some, np.full(k, 1.0), 0.1))
        self.fast._model = self.fast._model.with_room(k + 2)
        self.model, self.loops = self.fast._model, precisions()
        self.G = self.model.G[:k].T  # (M, k), Fortran order
        self.c = np.linspace(0.5, 1.0, k)
        self.Phi = self.rows.take(np.arange(len(case.y)))
        self.column = self.Phi[:, self.new].copy()

    def begin(self) -> None:
        """Take the precisions back to where steps gain, with no function to add."""
        self.fast._set(self.some, np.full(self.k, 1.0), 0.1)
        self.model = self.fast._model
        self.model.S[self.model.place == 0] = 1e200

    def changes(self) -> None:
        """Single steps inside the model: looked for, and made."""
        self.loops.run(self.model, 1e-300, self.count)

    def products(self) -> None:
        """The product that a step needs alone, as often."""
        for _ in range(self.count):
            dgemv(1.0, self.G, self.c)

    def additions(self) -> None:
        """A function is added and taken away again, the tenth part as often."""
        for _ in range(self.count // 10):
            self.loops.choose(self.model)
            self.fast._model = add(self.fast._model, self.rows, self.new, 1.0, 0.0)
            self.loops.choose(self.fast._model)
            self.loops.remove(self.fast._model, self.k)
            self.model = self.fast._model

    def products_of_additions(self) -> None:
        """The products that these need alone, as often."""
        for _ in range(self.count // 10):
            dsymv(1.0, self.Phi, self.column, lower=1)
            dgemv(1.0, self.G, self.c)
            dgemv(1.0, self.G, self.c)


def _steps(case: Case, k: int, count: int, rounds: int) -> dict[str, float]:
    """Return the seconds of a step and of an addition with a removal, and of their products."""
    step = Step(case, k, count)
    names = ["step inside the model", "its product", "addition and removal", "their products"]
    runs = [step.changes, step.products, step.additions, step.products_of_additions]
    begins = [step.begin, None, step.begin, None]
    each = zip(names, runs, begins, strict=True)
    with blas_for(0):  # one thread, as within a fit
        times = race([Contender(*one) for one in each], rounds)
    step.begin()
    step.changes()
    many = int(step.model.whole[1])
    counts = [many, count, count // 10, count // 10]
    return {name: times[name] / many for name, many in zip(names, counts, strict=True)}


def child(n: int) -> None:
    """Fit n rows in this process, which must be fresh; print seconds, bytes, and what was found."""
    solve(problem(sinc(200)))
    out = []
    for case in (sinc(n),):
        start = time.perf_counter()
        fit = solve(problem(case))
        seconds = time.perf_counter() - start
        peak = resident_bytes("VmHWM")
        out.append([case.name, seconds, peak, len(fit.indices), fit.noise])
    print(json.dumps(out))


def run(options: Options) -> Result:
    """Race the fits, the steps, and fit many rows in bounded memory."""
    n, rounds = (150, 1) if options.quick else (2000, 3)
    with_peer = PEER not in options.without and find_spec("fastrvm") is not None
    lines, verdicts = [], []
    for case in (sinc(n), eight(n)):
        found = _against_peer(case, rounds, with_peer)
        lines += found[0]
        verdicts += found[1]
    sizes, count = ((5,), 20) if options.quick else ((20, 100, 200), STEPS)
    steps = {k: _steps(eight(n), k, count, 1 if options.quick else 5) for k in sizes}
    for k, times in steps.items():
        for name, bare in (
            ("step inside the model", "its product"),
            ("addition and removal", "their products"),
        ):
            ratio = times[name] / times[bare]
            claim = f"{name} with {k} functions over {bare}"
            verdicts.append(Verdict(claim, f"{ratio:.2f}", "at most 1.5", ratio <= 1.5))
    many = 400 if options.quick else 20_000
    large = in_child(f"from benchmarks.relevance import child; child({many})")
    for name, seconds, peak, _, _ in large:
        claim = f"{name}, n = {many}"
        verdicts += [
            Verdict(f"{claim}: memory", f"{peak / 1e9:.2f} GB", "under 2 GB", peak < MOST_BYTES),
            Verdict(f"{claim}: time", f"{seconds:.0f} s", "minutes: under 600 s", seconds < 600),
        ]
    header = ["problem", "contender", "n", "seconds", "functions", "noise", "log evidence"]
    return Result(
        "Relevance vector machines",
        "The RBF kernel at all rows, of a width that is given, noise learned, no hyperprior; the "
        "kernel is in the time on both sides. The evidence is of one dense formula at each one's "
        "own functions, precisions and noise. A step is looked for and made, in a model of so many "
        "functions; its bare products are BLAS's, on one thread both. Many rows are fitted in a "
        "process of its own, whose peak of resident memory counts.",
        [
            table(header, lines),
            table(
                ["one step, ms", *(f"k = {k}" for k in steps)],
                [
                    [name, *(milliseconds(times[name]) for times in steps.values())]
                    for name in next(iter(steps.values()))
                ],
            ),
            table(
                ["problem", "n", "seconds", "peak, GB", "functions", "noise"],
                [
                    [name, str(many), f"{t:.0f}", f"{peak / 1e9:.2f}", str(k), f"{v:.4f}"]
                    for name, t, peak, k, v in large
                ],
            ),
        ],
        verdicts,
    )
