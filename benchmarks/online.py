"""On-line learning: samples a second, an update beside its bare BLAS, any likelihood."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.online_blas import Matrices
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, race
from mercer.inference import online
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import Custom, Gaussian, Likelihood, Logistic, Poisson, Probit, StudentT

D, NOISE = 8, 0.01
KERNEL = RBF(np.full(D, np.sqrt(D)))
CHUNK = 1000  # rows of one call
GROWTH = 0.1  # of the logarithm of targets, a row, where every row takes a point's place
COMPILED, WRAPPED = "BLAS alone, from compiled code", "BLAS alone, by SciPy's wrappers"
UPDATE, VALUES = "Mercer, one row", "of it kernel values"
TIMES = 1.8
FASTEST = 45_000
PAUSE = 0.002  # between many short runs: one thread does all, and none spins after it


def inputs(rng: Any, n: int = CHUNK) -> Any:
    """Return n rows."""
    return rng.normal(size=(n, D))


def function(X: Any) -> Any:
    """Return a smooth function of rows."""
    return np.sin(X[:, 0]) + np.cos(X[:, 1] + 0.5 * X[:, 2]) + 0.5 * X[:, 3]


class Steady:
    """A stream of one function, of which most rows are projected on the points there are."""

    def __init__(self, m: int, likelihood: Likelihood | None = None, targets: Any = None) -> None:
        self.rng = np.random.default_rng(m)
        self.targets = targets or (lambda f, rng: f + np.sqrt(NOISE) * rng.normal(size=len(f)))
        self.process = OnlineProcess(KERNEL, likelihood or Gaussian(NOISE), max_basis=m)
        self.rows: list[tuple[Any, Any]] = []

    def draw(self, n: int) -> None:
        """Make the next n rows, in chunks."""
        self.rows = [self.chunk(min(CHUNK, n - i)) for i in range(0, n, CHUNK)]

    def chunk(self, n: int) -> tuple[Any, Any]:
        """Return n rows and targets."""
        X = inputs(self.rng, n)
        return X, self.targets(function(X), self.rng)[:, None]

    def learn(self) -> None:
        """Learn the rows that were made."""
        for X, Y in self.rows:
            self.process.learn(X, Y)

    def replaced(self, n: int = 200) -> float:
        """Return the share of n more rows that each add a point and remove another."""
        changes = 0
        X, Y = self.chunk(n)
        for i in range(n):
            before = np.array(self.process.points)
            self.process.learn(X[i : i + 1], Y[i : i + 1])
            changes += not np.array_equal(before, self.process.points)
        return changes / n


class Turnover(Steady):
    """A stream in which nearly every row adds a point and removes another.

    Each target is larger than the one before, so that it is the oldest point that goes. After a
    chunk the unit of the targets is changed, which mean and weights are linear in: targets would
    overflow.
    """

    def chunk(self, n: int) -> tuple[Any, Any]:
        """Return n rows and targets."""
        signs = self.rng.choice([-1.0, 1.0], size=n)
        return inputs(self.rng, n), (signs * np.exp(GROWTH * np.arange(n)))[:, None]

    def learn(self) -> None:
        """Learn the rows that were made."""
        for X, Y in self.rows:
            self.process.learn(X, Y)
            unit = np.exp(-GROWTH * len(X))
            self.process._arrays.mu[:] *= unit
            self.process._arrays.alpha[:] *= unit


# --- samples a second -----------------------------------------------------------------------------


def _throughput(options: Options) -> tuple[list[list[str]], list[float]]:
    """Return lines of a table, and the samples a second of each."""
    part, many, rounds = (20, 100, 1) if options.quick else (CHUNK, 1_000_000, 60)
    streams = {
        "adds and removes a point": Turnover(100),
        "adds and removes a point, later": Turnover(100),
        "is projected": Steady(100),
    }
    for name, stream in streams.items():
        stream.draw(5 * part)
        stream.learn()
        while name.endswith("later") and stream.process.n_seen < many:
            stream.draw(part)
            stream.learn()
    seen = {name: stream.process.n_seen for name, stream in streams.items()}
    times = race(
        [
            Contender(name, stream.learn, prepare=partial(stream.draw, part))
            for name, stream in streams.items()
        ],
        rounds,
        pause=PAUSE,
    )
    lines, rates = [], []
    for name, seconds in times.items():
        share = streams[name].replaced(20 if options.quick else 300)
        rates.append(part / seconds)
        lines.append(
            [
                f"nearly every row {name}",
                f"{seen[name]:,}",
                f"{100 * share:.0f}%",
                f"{part / seconds:,.0f}",
                f"{1e6 * seconds / part:.1f}",
            ]
        )
    return lines, rates


# --- one update beside its BLAS ------------------------------------------------------------------


def _values(process: OnlineProcess, X: Any) -> None:
    """Find the kernel values that rows need, in blocks as the process does."""
    for start in range(0, len(X), online._BLOCK):
        some = X[start : start + online._BLOCK]
        process.kernel(some, np.concatenate([process.points, some]))


def _update(m: int, options: Options) -> dict[str, float]:
    """Return the seconds of one row that takes a point's place, and of the BLAS it needs."""
    count, rounds = (30, 1) if options.quick else (200, 60)
    stream, bare = Turnover(m), Matrices(m)
    stream.draw(m + 2 * CHUNK)
    stream.learn()
    compiled = bare.called_from_compiled_code()
    compiled(1)

    times = race(
        [
            Contender(COMPILED, lambda: compiled(count)),
            Contender(WRAPPED, lambda: bare.called_from_python(count)),
            Contender(UPDATE, stream.learn, prepare=partial(stream.draw, count)),
            Contender(
                VALUES,
                lambda: _values(stream.process, stream.rows[0][0]),
                prepare=partial(stream.draw, count),
            ),
        ],
        rounds,
        pause=PAUSE,
    )
    return {name: seconds / count for name, seconds in times.items()}


# --- likelihoods ----------------------------------------------------------------------------------


def _cauchy(y: Any, f: Any) -> Any:
    return -np.log(0.3 * np.pi) - np.log1p(((y - f) / 0.3) ** 2)


def _labels(f: Any, rng: Any) -> Any:
    return np.where(f + rng.normal(size=len(f)) > 0.5, 1.0, -1.0)


LIKELIHOODS: dict[str, tuple[Likelihood, Any]] = {
    "Gaussian": (Gaussian(NOISE), None),
    "Probit": (Probit(), _labels),
    "Logistic": (Logistic(), _labels),
    "StudentT": (StudentT(4.0, 0.1), lambda f, rng: f + 0.1 * rng.standard_t(4.0, size=len(f))),
    "Poisson": (Poisson(), lambda f, rng: rng.poisson(np.exp(f)).astype(float)),
    "Custom, a Cauchy density": (
        Custom(_cauchy),
        lambda f, rng: f + 0.3 * rng.standard_cauchy(size=len(f)),
    ),
}


def _likelihoods(options: Options) -> list[list[str]]:
    """Return lines of a table: samples a second."""
    lines = []
    for name, (likelihood, targets) in LIKELIHOODS.items():
        compiled = likelihood.compiled_site() is not None
        n = 20 if options.quick else (CHUNK if compiled else 200)
        stream = Steady(100, likelihood, targets)
        stream.draw(5 * n)
        stream.learn()
        times = race(
            [Contender(name, stream.learn, prepare=partial(stream.draw, n))],
            1 if options.quick else 30,
            pause=PAUSE,
        )
        how = "compiled" if compiled else "quadrature in Python"
        rate = n / times[name]
        lines.append([name, how, f"{rate:,.0f}", f"{1e6 / rate:.1f}"])
    return lines


# --- all ------------------------------------------------------------------------------------------


def _verdicts(
    rates: list[float], updates: dict[int, dict[str, float]]
) -> tuple[list[Verdict], list[list[str]]]:
    few, many = rates[:2]
    verdicts = [
        Verdict(
            "samples a second, each adding and removing a point",
            f"{few:,.0f}",
            f"at least {FASTEST:,}",
            few >= FASTEST,
        ),
        Verdict(
            "the same after a million rows, relative to the first",
            f"{many / few:.3f}",
            "at least 0.95",
            many / few >= 0.95,
        ),
    ]
    lines = []
    for m, times in updates.items():
        least = min(times[COMPILED], times[WRAPPED])
        ratio = times[UPDATE] / least
        verdicts.append(
            Verdict(
                f"one row over its bare BLAS, {m} points",
                f"{ratio:.2f}",
                f"at most {TIMES}",
                ratio <= TIMES,
            )
        )
        lines += [
            [f"{m} points: {name}", f"{1e6 * seconds:.1f}", f"{times[UPDATE] / seconds:.2f}"]
            for name, seconds in times.items()
        ]
    return verdicts, lines


def run(options: Options) -> Result:
    """Time streams of rows."""
    sizes = (5, 8) if options.quick else (100, 400)
    with threadpool_limits(1):
        throughput, rates = _throughput(options)
        updates = {m: _update(m, options) for m in sizes}
        likelihoods = _likelihoods(options)
    verdicts, lines = _verdicts(rates, updates)
    return Result(
        "On-line learning",
        f"{D} columns, normal; RBF with {D} length scales of sqrt({D}), noise of variance {NOISE}, "
        f"100 points unless said otherwise; criterion kl; `learn` is given {CHUNK} rows at a time, "
        "and BLAS one thread. Where nearly every row adds and removes a point each target is "
        "larger than the last, so that the oldest point goes; `replaced` is the share of rows "
        "that do, counted one at a time after the race. Other targets are a smooth function "
        "with noise, and after the first rows nearly all are projected on the points there are, "
        "which takes less. "
        "Bare BLAS: what a row that takes a point's place needs, the products Q k, S e, Q s, S Q_j "
        "and Q w (5 dsymv) and the rank-one updates of S, twice of Q and twice of P (5 dsyr), on "
        "the same sizes; the faster of the two ways to call it counts. A row's time has all in "
        "it: kernel values, the likelihood, the choice of the point that goes, and checks.",
        [
            table(
                ["", "rows seen before", "replaced", "samples/s", "us a row"],
                throughput,
            ),
            table(["one row", "us", "Mercer / it"], lines),
            table(["likelihood", "average over f", "samples/s", "us a row"], likelihoods),
        ],
        verdicts,
    )
