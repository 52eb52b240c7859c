"""How soon the command line answers."""

from __future__ import annotations

from benchmarks.children import child_output
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.timing import Contender, race

HELP = "mercer --help"
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    HELP: ["-m", "mercer.cli", "--help"],
    "mercer fit --help": ["-m", "mercer.cli", "fit", "--help"],
}
WANTED = 0.7


def run(options: Options) -> Result:
    """Time whole processes."""
    rounds = 1 if options.quick else 9
    contenders = [_contender(name, arguments) for name, arguments in COMMANDS.items()]
    times = race(contenders, rounds)
    return Result(
        "Command line",
        f"Whole processes, from start to end; best of {rounds}.",
        [table(["command", "s"], [[name, f"{seconds:.3f}"] for name, seconds in times.items()])],
        [Verdict(HELP, f"{times[HELP]:.3f} s", f"below {WANTED} s", times[HELP] < WANTED)],
    )


def _contender(name: str, arguments: list[str]) -> Contender:
    return Contender(name, lambda: child_output(arguments))
