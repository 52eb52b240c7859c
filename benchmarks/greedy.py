"""Sparse greedy regression: against the exact solve, against its bare products, and BKM Table 1."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotrs

from benchmarks.costs import STEPS as COST_STEPS
from benchmarks.costs import exponents
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, milliseconds, race
from benchmarks.uci import made_up
from mercer import GPRegressor, SparseGreedyGPRegressor
from mercer.datasets import load_table
from mercer.inference.greedy import Greedy
from mercer.kernels import RBF, Kernel
from mercer.likelihoods import Gaussian
from mercer.linalg import cholesky

TOL = 0.025
# Abalone's, of BKM 4.7: 2 omega^2 = 10 and 2 sigma^2 = 0.1.
LENGTH, NOISE = np.sqrt(5.0), 0.05
JITTER = 0.1  # standard deviations of the inputs that resampled rows are moved by
CANDIDATES, STEPS = 59, 20
PRODUCT, COLUMNS, STEP = "the product W'K_c", "kernel columns and W'K_c", "Mercer, one step"
START = 1000  # rows of kin40k that give its hyperparameters


class Rows(NamedTuple):
    """A problem: rows, targets less their mean, kernel and noise."""

    name: str
    X: Any
    y: Any
    kernel: Kernel
    noise: float


def _standardised(options: Options, name: str) -> tuple[Any, Any]:
    data = made_up() if options.quick else load_table(name)
    assert data.y is not None
    if data.splits is not None:
        X, y = data.split(0)[:2]
    else:
        X, y = data.X, data.y
    width = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(width > 0, width, 1.0), y - y.mean()


def like_abalone(n: int, options: Options) -> Rows:
    """Return rows drawn from Abalone with replacement, moved and with noise, rings centred."""
    X, y = _standardised(options, "abalone")
    rng = np.random.default_rng(n)
    drawn = rng.integers(0, len(y), n)
    X = X[drawn] + JITTER * rng.normal(size=(n, X.shape[1]))
    y = y[drawn] + np.sqrt(NOISE) * rng.normal(size=n)
    return Rows("like Abalone", X, y - y.mean(), RBF(LENGTH), NOISE)


def kin40k(options: Options) -> Rows:
    """Return the training rows of kin40k, under hyperparameters of an exact fit to some of them."""
    X, y = _standardised(options, "kin40k")
    some = np.random.default_rng(0).permutation(len(y))[: 50 if options.quick else START]
    found = GPRegressor(mean="zero", random_state=0).fit(X[some], y[some])
    return Rows("kin40k", X, y, found.kernel_, float(found.likelihood_.noise))


def greedy(rows: Rows, **settings: Any) -> Any:
    """Return the greedy fit at these hyperparameters, certified."""
    options = {"tol": TOL, "dual": "best", "mean": "zero", "random_state": 0, **settings}
    model = SparseGreedyGPRegressor(rows.kernel, Gaussian(rows.noise), optimizer=None, **options)
    return model.fit(rows.X, rows.y)


def exact(rows: Rows) -> Any:
    """Return (K + s2)^-1 y by the kernel matrix and its Cholesky factor, in place.

    LAPACK's, in blocks from 14,000 rows on (`mercer.linalg.cholesky`): with two threads and its
    kernels for AVX-512 OpenBLAS (0.3.30) writes beyond a buffer in potrf there, and dies.
    """
    Q = rows.kernel.gram_lower(rows.X)
    Q.reshape(-1, order="F")[:: len(rows.y) + 1] += rows.noise
    return dpotrs(cholesky(Q, jitter=0.0).L, rows.y, lower=1)[0]


def _against_exact(rows: Rows, rounds: int) -> tuple[list[str], float]:
    """Return a line of the table, and how many times faster than the exact solve it is."""
    kept: dict[str, Any] = {}

    def solve() -> None:
        kept["alpha"] = exact(rows)

    def fit() -> None:
        kept["model"] = greedy(rows)

    times = race([Contender("exact", solve), Contender("greedy", fit)], rounds, warm_up=False)
    model, n = kept["model"], len(rows.y)
    F = rows.y - rows.noise * kept["alpha"]
    away = float(np.sqrt(np.mean((model.predict(rows.X) - F) ** 2)) / np.std(F))
    lead = times["exact"] / times["greedy"]
    line = [
        rows.name,
        str(n),
        f"{times['exact']:.2f}",
        f"{times['greedy']:.2f}",
        f"{lead:.1f}",
        str(len(model.basis_indices_)),
        f"{model.gap_:.4f}",
        f"{100 * away:.1f}",
    ]
    return line, lead


class Step:
    """Steps of a greedy fit with k rows in its basis, beside the products that they need."""

    def __init__(self, rows: Rows, k: int, count: int) -> None:
        self.rows, self.k, self.count = rows, k, count
        self.path = self._path()
        self.path.grow(0.0, most=k, certify=False)
        self.state = self.path.state
        rng, n = np.random.default_rng(0), len(rows.y)
        self.W = np.asfortranarray(rng.normal(size=(n, k)))
        self.some = np.sort(rng.choice(n, min(n, CANDIDATES), replace=False))
        self.K = np.asfortranarray(rows.kernel(rows.X, rows.X[self.some]))

    def _path(self) -> Greedy:
        rows = self.rows
        return Greedy(rows.kernel, rows.X, rows.y, rows.noise, dual="residual")

    def begin(self) -> None:
        """Take the fit back to k rows."""
        self.path = self._path()
        self.path.resume(self.state)

    def steps(self) -> None:
        """Candidates drawn and compared, and one of them added to the factor, so often."""
        self.path.grow(0.0, most=self.k + self.count, certify=False)

    def product(self) -> None:
        """W'K_c alone, as often."""
        for _ in range(self.count):
            dgemm(1.0, self.W, self.K, trans_a=1)

    def kernel_and_product(self) -> None:
        """The columns K_c of the kernel, and W'K_c, as often."""
        for _ in range(self.count):
            K = self.rows.kernel(self.rows.X, self.rows.X[self.some])
            dgemm(1.0, self.W, K.T, trans_a=1, trans_b=1)


def _step_times(rows: Rows, k: int, count: int, rounds: int) -> dict[str, float]:
    """Return the seconds of one step, and of the products it needs."""
    step = Step(rows, k, count)
    times = race(
        [
            Contender(PRODUCT, step.product),
            Contender(COLUMNS, step.kernel_and_product),
            Contender(STEP, step.steps, prepare=step.begin),
        ],
        rounds,
    )
    if step.path.factor.size < k + count:  # where no row has anything to add
        raise RuntimeError(f"the fit ended with {step.path.factor.size} rows, before {k + count}")
    return {name: seconds / count for name, seconds in times.items()}


def run(options: Options) -> Result:
    """Race the fit against the exact solve, and a step against its products."""
    n = 300 if options.quick else 20_000
    abalone = like_abalone(n, options)
    lines, leads = zip(
        *(_against_exact(rows, 1 if options.quick else 2) for rows in (abalone, kin40k(options))),
        strict=True,
    )
    sizes, count = ((3, 6), 2) if options.quick else ((100, 400), STEPS)
    steps = {k: _step_times(abalone, k, count, 1 if options.quick else 5) for k in sizes}
    verdicts = [
        Verdict(
            f"like Abalone, n = {n}, faster than the exact solve",
            f"{leads[0]:.1f} times",
            "at least 4 times",
            leads[0] >= 4,
        )
    ]
    for k, times in steps.items():
        for name in (PRODUCT, COLUMNS):
            ratio = times[STEP] / times[name]
            claim = f"a step with {k} rows over {name}"
            verdicts.append(Verdict(claim, f"{ratio:.2f}", "at most 1.8", ratio <= 1.8))
    return Result(
        "Sparse greedy regression",
        f'Hyperparameters are given, targets centred, Gap {TOL} by dual="best"; the certificate is '
        "in the time. The exact solve is the kernel matrix and its Cholesky factor, in place, by "
        "LAPACK, in blocks of 2048 columns from 14,000 rows on. "
        f"Rows like Abalone's are drawn from it and moved by {JITTER} standard deviations. "
        f"`away`: the root mean square of the fitted values' distance from the exact ones, in per "
        f"cent of their deviation. A step has {CANDIDATES} candidates. Below, exponents of BKM "
        "Table 1 as measured: n rows, m basis functions; of conjugate gradients with "
        f"{COST_STEPS} steps.",
        [
            table(
                [
                    "rows",
                    "n",
                    "exact, s",
                    "greedy, s",
                    "exact / greedy",
                    "kernels",
                    "Gap",
                    "away, %",
                ],
                list(lines),
            ),
            table(
                ["one step", *(f"k = {k}, ms" for k in steps)],
                [
                    [name, *(milliseconds(times[name]) for times in steps.values())]
                    for name in (PRODUCT, COLUMNS, STEP)
                ],
            ),
            exponents(options.quick),
        ],
        verdicts,
    )
