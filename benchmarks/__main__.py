"""``python -m benchmarks [names] [--quick] [--no-write] [--without peer]``."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from benchmarks import EXPERIMENTS
from benchmarks.report import Options, keep, machine, to_markdown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run experiments, print their tables, and keep them in RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(EXPERIMENTS)}; all if none")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that it runs; nothing is kept"
    )
    parser.add_argument(
        "--no-write", action="store_true", help="print the tables only, and leave RESULTS.md alone"
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=["scikit-learn", "gpytorch", "gpy", "river", "fastrvm"],
        help="leave this peer out of the races that can do without it",
    )
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(EXPERIMENTS))
    if unknown:
        parser.error(f"unknown experiment {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    kept = not (given.quick or given.no_write)  # the figures of a quick run mean nothing
    flags = "".join(f" --without {peer}" for peer in given.without)
    print(machine(), flush=True)
    if kept and not given.names:  # of a run of all: sections kept from before are of their machine
        keep("machine", machine())
    missed = []
    for name in given.names or EXPERIMENTS:
        print(f"(running {name})", file=sys.stderr, flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peers warn of their own affairs
            result = import_module(f"benchmarks.{name}").run(Options.of(given))
        command = (
            f"{_kernels()}python -m benchmarks {name}{' --quick' if given.quick else ''}{flags}"
        )
        section = to_markdown(result, command)
        print(section, flush=True)
        if kept:
            keep(name, section)
        missed += [f"{name}: {v.claim} ({v.measured})" for v in result.verdicts if not v.reached]
    if missed and not given.quick:
        print("Figures missed:\n" + "\n".join(f"- {line}" for line in missed))
    return 0


def _kernels() -> str:
    """Return how the kernels of OpenBLAS were chosen, if they were."""
    chosen = os.environ.get("OPENBLAS_CORETYPE")
    return f"OPENBLAS_CORETYPE={chosen} " if chosen else ""


if __name__ == "__main__":
    sys.exit(main())
