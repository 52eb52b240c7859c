"""Asking for memory before work begins."""

from __future__ import annotations

import os

from mercer.errors import MercerWarning, TooLargeError, warn

__all__ = [
    "LONG",
    "available_memory",
    "require_basis",
    "require_memory",
    "require_preconditioner",
    "require_sections",
    "require_sweeps",
]


def available_memory() -> int | None:
    """Return how many bytes this process can still have, or None where that is not known."""
    known = [found for found in (_machine_memory(), _container_memory()) if found is not None]
    return min(known, default=None)


def _machine_memory() -> int | None:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _container_memory() -> int | None:
    """Return what a Linux control group leaves."""
    try:
        with (
            open("/sys/fs/cgroup/memory.max") as most,
            open("/sys/fs/cgroup/memory.current") as now,
        ):
            return max(0, int(most.read()) - int(now.read()))
    except (OSError, ValueError):  # no group, or "max": no limit
        return None


# Rows above which an evaluation of the evidence takes minutes on most machines.
LONG = 20_000
_REGRESSORS = "SparseGPRegressor and BayesianCommitteeRegressor are made for this size"
_CLASSIFIERS = "SparseGPClassifier is made for this size"


def require_memory(
    n: int, matrices: float = 1.0, what: str = "an exact fit", classes: bool = False
) -> None:
    """Raise TooLargeError at once if so many n x n matrices cannot fit into memory.

    `what` needs them, in words; `classes` says whether it is a classifier. Warn where they fit,
    but work on them takes hours.
    """
    work, advice = f"{what} to {n:,} rows", _CLASSIFIERS if classes else _REGRESSORS
    _require(matrices * n**2, work, advice)
    if n > LONG:
        warn(
            f"{work} may take hours: each evaluation of the evidence takes some {n / 1e3:.0f}^3 "
            f"billion operations; {advice}",
            MercerWarning,
        )


def require_sections(n: int, m: int, count: int = 1) -> None:
    """Raise TooLargeError at once if so many fits with m inducing inputs cannot fit into memory.

    Each has an n x m matrix, and a copy of it for a while.
    """
    what = f"a fit with {m:,} inducing inputs to {n:,} rows"
    _require(2.0 * count * n * m, what, "Take fewer inducing inputs, or a sample of the rows")


def require_preconditioner(n: int, rank: int) -> None:
    """Raise TooLargeError at once if the columns of iterative inference cannot fit into memory.

    At the peak, which is where the posterior is made, there are five to six matrices of n x rank.
    """
    what = f"iterative inference of rank {rank:,} for {n:,} rows"
    _require(6.0 * n * min(n, rank), what, "Iterative(rank=...) takes fewer columns")


def require_basis(m: int, covariances: int = 1) -> None:
    """Raise TooLargeError at once if an on-line process of m points cannot fit into memory.

    It has the Gram matrix and its inverse, and for each covariance that and its inverse.
    """
    what = f"on-line learning with max_basis={m:,}"
    _require((2.0 + 2.0 * covariances) * m**2, what, "Take a smaller max_basis")


def require_sweeps(n: int, m: int) -> None:
    """Raise TooLargeError at once if finding the sites of n rows again cannot fit into memory.

    On m basis vectors that has an n x m matrix, and a copy of it for a while.
    """
    what = f"n_sweeps above 1 with max_basis={m:,} and {n:,} rows"
    remedy = "Take a smaller max_basis, n_sweeps=1, or recycle='heuristic'"
    _require(2.0 * n * min(n, m), what, remedy)


def _require(numbers: float, what: str, remedy: str) -> None:
    needed = int(1.1 * 8 * numbers)
    available = available_memory()
    if available is None or needed <= available:
        return
    raise TooLargeError(
        f"{what} with these options needs {needed / 2**30:,.1f} GiB for its "
        f"matrices, and {available / 2**30:,.1f} GiB are available. {remedy}"
    )
