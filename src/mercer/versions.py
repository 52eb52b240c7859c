"""What Mercer runs on: for bug reports."""

from __future__ import annotations

import os
import platform
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from threadpoolctl import threadpool_info

from mercer.compute import thread_count
from mercer.linalg import loops

__all__ = ["environment", "show_versions"]

#: Distributions that Mercer needs, and those that its extras add.
REQUIRED = ("numpy", "scipy", "scikit-learn", "numba", "threadpoolctl", "joblib")
OPTIONAL = (
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "typer",
    "rich",
    "highspy",
    "dask",
    "distributed",
)


def environment() -> dict[str, dict[str, Any]]:
    """Return what Mercer runs on, in four tables: see :func:`show_versions`.

    A package that is not installed has None for its version.

    Examples
    --------
    >>> from mercer.versions import environment
    >>> sorted(environment())
    ['optional', 'packages', 'system', 'threads']
    """
    import mercer

    return {
        "system": {
            "python": platform.python_version(),
            "executable": sys.executable,
            "machine": platform.platform(),
            "cores": os.cpu_count(),
        },
        "packages": {
            "mercer": mercer.__version__,
            **{name: _version(name) for name in REQUIRED},
        },
        "optional": {name: _version(name) for name in OPTIONAL},
        "threads": {
            "mercer": thread_count(),
            **_libraries(),
            "loops": _loops(),
        },
    }


def show_versions() -> None:
    """Print what Mercer runs on: the system, packages, BLAS and threads, and compiled loops.

    Put it into a bug report.

    Examples
    --------
    >>> import mercer
    >>> mercer.show_versions()  # doctest: +ELLIPSIS
    system
        python: ...
    """
    lines = []
    for title, table in environment().items():
        lines.append(title)
        width = max(map(len, table)) + 1
        for name, value in table.items():
            label = f"{name}:".ljust(width)
            lines.append(f"    {label} {'not installed' if value is None else value}")
    sys.stdout.write("\n".join(lines) + "\n")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _libraries() -> dict[str, str]:
    """Return a line for each library that has threads of its own."""
    out = {}
    for library in threadpool_info():
        name = library["prefix"]
        while name in out:  # NumPy and SciPy may each bring an OpenBLAS
            name += "'"
        about = [library["user_api"], library["version"], library.get("architecture")]
        known = ", ".join(str(part) for part in about if part)
        out[name] = f"{library['num_threads']} ({known})"
    return out


def _loops() -> str:
    """Return whether the compiled loops are used, and where they are kept."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = loops()
    if not module.__name__.endswith("_compiled"):
        reason = f": {caught[0].message}" if caught else ""
        return f"NumPy, not compiled{reason}"
    stats = module.value.stats
    how = "read from" if sum(stats.cache_hits.values()) else "compiled now, and kept in"
    return f"compiled by Numba, {how} {stats.cache_path}"
