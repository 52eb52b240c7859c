"""The evidence of sparse regression and its gradient, beside the bare BLAS, and by rows."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg.blas import dsymm, dsyrk, dtrsm

from benchmarks.children import in_child, resident_bytes
from benchmarks.evidence import NOISE, D, problem
from benchmarks.peers import GPyTorch, has_gpytorch
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, race
from mercer.compute import map_tiles, row_blocks
from mercer.inference import approximation, sparse
from mercer.inference.sparse import SparseProblem
from mercer.kernels import RBF

LENGTHS = np.full(D, np.sqrt(D))
# What Mercer takes for a block: a million entries.
ENTRIES = 1_000_000
SGPR, GPFLOW = "GPyTorch's SGPR", "GPflow's SGPR"
#: Peers and how many times faster than they Mercer is to be.
LEADS = {SGPR: 5, GPFLOW: 6}
#: A Python that has GPflow; it brings TensorFlow, which wants an environment of its own.
GPFLOW_PYTHON = os.environ.get("MERCER_GPFLOW")

NOTE = (
    "FITC's variances differ from row to row, so that its derivatives cannot do with one symmetric "
    "product: it needs 7 n m^2 multiplications where VFE, whose bound is SGPR's too, needs 4."
)


def ours(kind: str, n: int, m: int) -> SparseProblem:
    """Return what a fit evaluates: n rows, of which the first m are the inducing inputs."""
    X, y = problem(n)
    noise = np.full(n, NOISE)
    kernel = 1.0 * RBF(LENGTHS)
    return SparseProblem(kernel, X, y[:, None], noise, X[:m].copy(), approximation(kind))


class Bare:
    """The products of the same shapes, in the same blocks on the same threads, and the exps.

    Kernel values are not kept, so that either pass has its own; their distances, what is linear in
    the number of inducing inputs, and the derivatives of the kernel are not in this.
    """

    def __init__(self, n: int, m: int) -> None:
        rng = np.random.default_rng(0)
        self.blocks = row_blocks(n, max(1, ENTRIES // m))
        self.logarithms = np.asfortranarray(-rng.uniform(size=(m, min(n, ENTRIES // m))))
        self.L = np.asfortranarray(np.tril(np.full((m, m), 0.1 / m), -1) + np.eye(m))
        self.M = np.asfortranarray(np.eye(m))

    def _sections(self, block: slice) -> Any:
        return np.exp(self.logarithms[:, : block.stop - block.start])

    def _solve(self, K: Any, transpose: int = 0) -> Any:
        return dtrsm(1.0, self.L, K, lower=1, trans_a=transpose, overwrite_b=1)

    def _statistics(self, block: slice) -> None:
        dsyrk(1.0, self._solve(self._sections(block)), lower=1)

    def _vfe(self, block: slice) -> None:
        dsymm(1.0, self.M, self._sections(block), lower=1)

    def _fitc(self, block: slice) -> None:
        """V and B^-1 V, V diag(g) V', and L^-T of a sum of both: g differs from row to row."""
        V = self._solve(self._sections(block))
        dsyrk(1.0, V, lower=1)
        self._solve(self._solve(self._solve(V), 1), 1)

    def vfe(self) -> None:
        """Triangular solve and rank-k product; symmetric product."""
        map_tiles(self._statistics, self.blocks)
        map_tiles(self._vfe, self.blocks)

    def fitc(self) -> None:
        """Triangular solve and rank-k product; four solves and a rank-k product."""
        map_tiles(self._statistics, self.blocks)
        map_tiles(self._fitc, self.blocks)


class GPyTorchSGPR(GPyTorch):
    """GPyTorch's SGPR in double precision: the bound of "vfe", its inducing inputs learned."""

    def __init__(self, X: Any, y: Any, Z: Any) -> None:
        super().__init__(X, y, LENGTHS, NOISE)
        model = self.model
        points = self.torch.tensor(np.asarray(Z), dtype=self.torch.float64)
        model.covar_module = self.gpytorch.kernels.InducingPointKernel(
            model.covar_module, inducing_points=points, likelihood=self.likelihood
        ).double()


def _gpflow(given: SparseProblem, rounds: int) -> tuple[float, float]:
    """Return GPflow's bound and the seconds that it takes with all gradients."""
    assert GPFLOW_PYTHON is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        y = given.Y[:, 0]
        np.savez(path, X=given.X, y=y, Z=given.Z, length_scales=LENGTHS, noise=NOISE)
        script = Path(__file__).with_name("gpflow_child.py")
        command = [GPFLOW_PYTHON, str(script), str(path), str(rounds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"GPflow failed:\n{done.stderr[-2000:]}")
    value, seconds = json.loads(done.stdout.splitlines()[-1])
    return value, seconds


def _evaluation(kind: str, n: int, m: int) -> Callable[[], Any]:
    given = ours(kind, n, m)
    return lambda: sparse.evidence(given, inputs=True)


def _race(n: int, m: int, options: Options) -> tuple[dict[str, float], list[str]]:
    """Race both against their bare work, and GPyTorch; return times and notes."""
    bare = Bare(n, m)
    raced = [
        Contender("bare, vfe", bare.vfe),
        Contender("vfe", _evaluation("vfe", n, m)),
        Contender("bare, fitc", bare.fitc),
        Contender("fitc", _evaluation("fitc", n, m)),
    ]
    notes = []
    given = ours("vfe", n, m)
    value = sparse.solve(given).log_evidence
    if has_gpytorch(options):
        peer = GPyTorchSGPR(given.X, given.Y[:, 0], given.Z)
        other = peer.evaluate()
        np.testing.assert_allclose(other, value, rtol=1e-3)
        notes.append(f"The bound is {value:.2f} here and {other:.2f} by GPyTorch.")
        raced.append(Contender(SGPR, peer.evaluate, most=2))
    else:
        notes.append("GPyTorch was left out, or is not installed.")
    times = race(raced, 1 if options.quick else 4)
    if GPFLOW_PYTHON is None:
        notes.append("GPflow was left out: MERCER_GPFLOW names no Python that has it.")
    else:
        other, times[GPFLOW] = _gpflow(given, 1 if options.quick else 2)
        np.testing.assert_allclose(other, value, rtol=1e-3)
        notes.append(
            f"The bound is {value:.2f} here and {other:.2f} by GPflow, which ran after the others."
        )
    return times, notes


def child(n: int, m: int) -> None:
    """Measure in this process, which must be fresh, and print the bytes: resident and traced."""
    _evaluation("vfe", 2 * m, m)()  # compilers, buffers of the BLAS, lazy imports
    ready = _evaluation("vfe", n, m)
    resident = None
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        try:
            reset.write_text("5")  # peak := now
            before = resident_bytes("VmRSS")
            ready()
            resident = resident_bytes("VmHWM") - before
        except OSError:
            resident = None
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    ready()
    traced = tracemalloc.get_traced_memory()[1] - before
    print(json.dumps([resident, traced]))


def _by_rows(sizes: tuple[int, int], m: int, rounds: int) -> tuple[dict[int, float], float]:
    """Return the time of an evaluation at both sizes, and the peak memory at the larger, in GB."""
    times = race(
        [Contender(str(n), _evaluation("vfe", n, m)) for n in sizes], rounds, warm_up=rounds > 1
    )
    code = f"from benchmarks.sparse import child; child({sizes[1]}, {m})"
    found = [b for b in in_child(code) if b is not None]
    return {n: times[str(n)] for n in sizes}, max(found) / 1e9


def run(options: Options) -> Result:
    """Race an evaluation of "vfe" and "fitc", and "vfe" at ten times the rows."""
    n, m = (600, 20) if options.quick else (100_000, 500)
    times, notes = _race(n, m, options)
    named = {
        "bare, vfe": "bare: trsm, syrk, symm, exps",
        "vfe": "Mercer, VFE",
        "bare, fitc": "bare: 5 trsm, 2 syrk, exps",
        "fitc": "Mercer, FITC",
        SGPR: SGPR,
        GPFLOW: GPFLOW,
    }
    own = {"fitc": "bare, fitc", "bare, fitc": "bare, fitc"}
    lines = [
        [
            named[name],
            f"{seconds:.2f}",
            f"{seconds / times[own.get(name, 'bare, vfe')]:.2f}",
            f"{seconds / times['vfe']:.2f}",
        ]
        for name, seconds in times.items()
    ]
    sizes, few = ((500, 5000), 20) if options.quick else ((100_000, 1_000_000), 300)
    by_rows, gigabytes = _by_rows(sizes, few, 1 if options.quick else 2)
    growth = by_rows[sizes[1]] / by_rows[sizes[0]]
    verdicts = []
    for kind in ("vfe", "fitc"):
        ratio = times[kind] / times[f"bare, {kind}"]
        claim = f"{kind.upper()} over its bare work"
        verdicts.append(Verdict(claim, f"{ratio:.2f}", "at most 1.4", ratio <= 1.4))
    for peer, wanted in LEADS.items():
        for kind in ("vfe", "fitc") if peer in times else ():
            lead = times[peer] / times[kind]
            claim = f"{kind.upper()}, faster than {peer}"
            reached = f"at least {wanted} times"
            verdicts.append(Verdict(claim, f"{lead:.1f} times", reached, lead >= wanted))
    verdicts += [
        Verdict(
            f"time at n = {sizes[1]} over that at n = {sizes[0]}",
            f"{growth:.2f}",
            "at most 11, linear being 10",
            growth <= 11,
        ),
        Verdict(
            f"memory above the data at n = {sizes[1]}",
            f"{gigabytes:.2f} GB",
            "below 0.4 GB",
            gigabytes < 0.4,
        ),
    ]
    return Result(
        "Sparse regression",
        f"1.0 * RBF with {D} length scales plus noise, {D} columns: the evidence with its "
        f"derivatives in the kernel, the noise and the inducing inputs, n = {n}, m = {m}. The bare "
        "work has the same blocks and threads. By rows: VFE, "
        f"m = {few}; peak memory in a process of its own, the larger of resident and traced.",
        [
            table(["contender", "s", "over its bare work", "over Mercer's VFE"], lines),
            table(
                ["rows", "s", "us a row"],
                [[str(k), f"{t:.2f}", f"{1e6 * t / k:.1f}"] for k, t in by_rows.items()],
            ),
        ],
        verdicts,
        [*notes, NOTE],
    )
