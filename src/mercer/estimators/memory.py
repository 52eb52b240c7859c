"""Asking for memory before work begins."""

from __future__ import annotations

import os

from mercer.errors import TooLargeError

__all__ = ["available_memory", "require_memory"]


def available_memory() -> int | None:
    """Return how many bytes this machine can still give, or None where that is not known."""
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


def require_memory(n: int) -> None:
    """Raise TooLargeError at once if an exact fit to n rows cannot fit into memory."""
    needed = int(1.1 * 8 * n**2)
    available = available_memory()
    if available is None or needed <= available:
        return
    raise TooLargeError(
        f"an exact fit to {n:,} rows needs {needed / 2**30:,.1f} GiB for its covariance matrix, "
        f"and {available / 2**30:,.1f} GiB are available. Estimators made for this size: "
        "SparseGPRegressor, SparseGreedyGPRegressor, BayesianCommitteeRegressor and "
        "OnlineGPRegressor; or fit GPRegressor to a sample of the rows"
    )
