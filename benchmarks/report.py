"""What an experiment returns, how it is printed, and how it is kept in RESULTS.md."""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "RESULTS.md"

_PREFACE = """# Results

Made by `make bench`, alone on the machine. Each section names the command that makes
it, and is rewritten by it; times are the best of several interleaved runs.
"""


@dataclass
class Options:
    """`quick` shrinks everything to a smoke test; `without` names peers to leave out."""

    quick: bool = False
    without: frozenset[str] = frozenset()

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Options:
        """Return the options given on the command line."""
        return cls(arguments.quick, frozenset(arguments.without))


@dataclass
class Verdict:
    """Whether a figure that was to be reached has been."""

    claim: str
    measured: str
    wanted: str
    reached: bool


@dataclass
class Result:
    """An experiment's outcome: `tables` are Markdown, `notes` paragraphs under them."""

    title: str
    setting: str
    tables: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, its columns padded; the first is text, the others numbers."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            c.ljust(w) if i == 0 else c.rjust(w)
            for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(header), line(rule), *(line(row) for row in rows)])


def to_markdown(result: Result, command: str) -> str:
    """Return the section that is printed and kept."""
    parts = [f"## {result.title}", f"`{command}`", result.setting, *result.tables]
    if result.verdicts:
        rows = [
            [v.claim, v.measured, v.wanted, "reached" if v.reached else "**missed**"]
            for v in result.verdicts
        ]
        parts.append(table(["figure", "measured", "wanted", "verdict"], rows))
    parts.extend(result.notes)
    return "\n\n".join(parts) + "\n"


def keep(name: str, section: str, path: Path = RESULTS) -> None:
    """Put a section into RESULTS.md in the place of the one of that name, or at the end."""
    text = path.read_text(encoding="utf-8") if path.exists() else _PREFACE
    block = f"<!-- {name} -->\n{section.rstrip()}\n<!-- end of {name} -->\n"
    old = re.compile(rf"<!-- {name} -->\n.*?<!-- end of {name} -->\n", re.DOTALL)
    if old.search(text):
        text = old.sub(lambda _: block, text)
    else:
        text = text.rstrip("\n") + "\n\n" + block
    path.write_text(text, encoding="utf-8")


def machine() -> str:
    """Return a section on what the figures were measured with; no names of machines or folders."""
    import numpy as np
    import scipy.linalg  # noqa: F401  (so that its BLAS is listed)
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    blas = {
        f"{i['internal_api']} {i['version']} ({i.get('architecture', '?')}, "
        f"{i['num_threads']} threads)"
        for i in threadpool_info()
        if i["user_api"] == "blas"
    }
    rows = [
        ["processor", f"{_processor()}, {cores} cores"],
        ["memory", _memory()],
        ["system", f"{platform.system()} {platform.machine()}"],
        ["Python", platform.python_version()],
        ["BLAS", "; ".join(sorted(blas))],
    ]
    for package in ("numpy", "scipy", "scikit-learn", "numba", "torch", "gpytorch", "river"):
        try:
            rows.append([package, version(package)])
        except PackageNotFoundError:
            rows.append([package, "not installed"])
    return "## Machine\n\n" + table(["", "value"], rows) + "\n"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    except (AttributeError, ValueError, OSError):
        return "unknown"
