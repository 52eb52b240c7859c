"""Prediction at 20,000 points from 2000 rows, beside the bare work it cannot do without."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsm

from benchmarks.evidence import NOISE, D, problem
from benchmarks.peers import sklearn_regressor
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, milliseconds, race
from mercer import GPRegressor
from mercer.compute import map_tiles, row_blocks
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

SOLVE, STD = "bare triangular solve", "Mercer, mean and std"
PASS, MEAN = "fused kernel-times-vector pass", "Mercer, mean"
PEER_STD, PEER_MEAN = "scikit-learn, mean and std", "scikit-learn, mean"


def fused_pass() -> Any:
    """Return the compiled loop sum_j exp(-s_ij/2) alpha_j for 8 columns, in one pass over j."""
    from numba import float64, njit, void

    from mercer.linalg._compiled import _exp

    matrix, vector = float64[:, ::1], float64[::1]

    @njit(void(matrix, matrix, vector, vector), nogil=True, fastmath={"contract", "reassoc", "nsz"})
    def weigh(A, Bt, alpha, out):  # type: ignore[no-untyped-def]
        b0, b1, b2, b3 = Bt[0], Bt[1], Bt[2], Bt[3]
        b4, b5, b6, b7 = Bt[4], Bt[5], Bt[6], Bt[7]
        for i in range(A.shape[0]):
            a0, a1, a2, a3 = A[i, 0], A[i, 1], A[i, 2], A[i, 3]
            a4, a5, a6, a7 = A[i, 4], A[i, 5], A[i, 6], A[i, 7]
            total = 0.0
            for j in range(alpha.size):
                t0, t1, t2, t3 = a0 - b0[j], a1 - b1[j], a2 - b2[j], a3 - b3[j]
                t4, t5, t6, t7 = a4 - b4[j], a5 - b5[j], a6 - b6[j], a7 - b7[j]
                s = (t0 * t0 + t1 * t1 + t2 * t2 + t3 * t3) + (
                    t4 * t4 + t5 * t5 + t6 * t6 + t7 * t7
                )
                total += _exp(-0.5 * s) * alpha[j]
            out[i] = total

    return weigh


def run(options: Options) -> Result:
    """Race predictions against the bare work, and against scikit-learn's."""
    n, points, rounds = (100, 600, 1) if options.quick else (2000, 20_000, 5)
    X, y = problem(n)
    X_new, _ = problem(points)
    lengths = np.full(D, np.sqrt(D))
    kernel = 1.0 * RBF(lengths)
    model = GPRegressor(kernel, Gaussian(NOISE), mean="zero", optimizer=None).fit(X, y)

    L = model.posterior_.A.L
    cross = kernel(X, X_new).T.copy().T  # Fortran order, as the solve wants it
    work = np.empty_like(cross, order="F")

    def solve() -> None:
        out = dtrsm(1.0, L, work, lower=1, overwrite_b=1)
        if not np.shares_memory(out, work):
            raise RuntimeError("the bare solve copied its matrix")

    weigh = fused_pass()
    alpha = np.array(model.posterior_.alpha[:, 0])  # the loop takes no read-only array
    means = np.empty(points)

    def one_pass() -> None:
        A, Bt = X_new / lengths, np.ascontiguousarray((X / lengths).T)
        map_tiles(lambda rows: weigh(A[rows], Bt, alpha, means[rows]), row_blocks(points, 256))

    one_pass()
    np.testing.assert_allclose(means, model.predict(X_new), rtol=1e-8, atol=1e-8)
    raced = [
        Contender(SOLVE, solve, prepare=lambda: np.copyto(work, cross)),
        Contender(STD, lambda: model.predict(X_new, return_std=True)),
        Contender(PASS, one_pass),
        Contender(MEAN, lambda: model.predict(X_new)),
    ]
    if "scikit-learn" not in options.without:
        peer = sklearn_regressor(lengths, NOISE, optimizer=None).fit(X, y)
        raced.append(Contender(PEER_STD, lambda: peer.predict(X_new, return_std=True), most=3))
        raced.append(Contender(PEER_MEAN, lambda: peer.predict(X_new), most=3))
    times = race(raced, rounds)
    base = {STD: SOLVE, PEER_STD: SOLVE, MEAN: PASS, PEER_MEAN: PASS}
    rows = []
    for name, seconds in times.items():
        bare = base.get(name, name)
        rows.append([name, milliseconds(seconds), f"{seconds / times[bare]:.2f}", bare])
    verdicts = []
    for name, wanted in ((STD, 1.25), (MEAN, 1.4)):
        ratio = times[name] / times[base[name]]
        verdicts.append(Verdict(name, f"{ratio:.2f}", f"at most {wanted}", ratio <= wanted))
    return Result(
        "Prediction",
        f"{points} points from n = {n} rows, 1.0 * RBF with {D} length scales, {D} columns.",
        [table(["contender", "ms", "ratio", "to"], rows)],
        verdicts,
    )
