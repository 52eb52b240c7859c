"""The kernel matrix: RBF, 4000 x 4000, 8 columns, beside scikit-learn's."""

from __future__ import annotations

import numpy as np

from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, milliseconds, race
from mercer.kernels import RBF


def run(options: Options) -> Result:
    """Time the matrix: lower triangle into a given array, whole matrix, and scikit-learn's."""
    from sklearn.gaussian_process.kernels import RBF as PeerRBF

    n, d, rounds = (300, 8, 1) if options.quick else (4000, 8, 30)
    X = np.random.default_rng(0).normal(size=(n, d))
    out, whole_out = np.empty((n, n), order="F"), np.empty((n, n))
    kernel, peer = RBF(np.sqrt(d)), PeerRBF(np.sqrt(d))
    error = float(np.max(np.abs(kernel(X) - peer(X))))
    times = race(
        [
            Contender(
                "Mercer, lower triangle into a given array", lambda: kernel.gram_lower(X, out)
            ),
            Contender(
                "Mercer, both triangles into a given array", lambda: kernel(X, out=whole_out)
            ),
            Contender("Mercer, both triangles, fresh memory", lambda: kernel(X)),
            Contender("scikit-learn, both triangles, fresh memory", lambda: peer(X)),
        ],
        rounds,
    )
    lower, whole, _, theirs = times.values()
    rows = [[name, milliseconds(t), f"{theirs / t:.2f}"] for name, t in times.items()]
    return Result(
        "Kernel matrix",
        f"RBF, {n} x {n}, {d} columns. The largest difference between the two is {error:.1e}.",
        [table(["contender", "ms", "times faster than scikit-learn"], rows)],
        [
            Verdict("lower triangle", f"{theirs / lower:.2f}", "at least 3", theirs >= 3 * lower),
            Verdict("both triangles", f"{theirs / whole:.2f}", "at least 3", theirs >= 3 * whole),
        ],
    )
