"""``mercer reproduce``: the papers' experiments, ours beside the published, into a folder."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mercer.cli.errors import InputError, listed
from mercer.cli.output import published
from mercer.datasets import load_table
from mercer.experiments import Experiment, Outcome, Setting, draw, experiments, to_csv, to_markdown
from mercer.experiments.text import shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["list_experiments", "run_reproduce"]

_PAGE = "results.md"
_WIDE = 150  # columns of what is not a terminal: nothing is cut off there
_PAUSE = 30.0  # seconds between lines there that tell how far an experiment is


@dataclass(frozen=True)
class _Options:
    output: str
    data: str | None
    quick: bool
    force: bool


def list_experiments() -> None:
    """Print the names of the experiments, and what each repeats."""
    found = experiments().values()
    width = max(len(experiment.name) for experiment in found)
    for experiment in found:
        needs = f"; reads {listed(list(experiment.data))}" if experiment.data else ""
        print(f"{experiment.name:{width}}  {experiment.title} ({experiment.source}{needs})")


def run_reproduce(
    names: Sequence[str], output: str, data: str | None, quick: bool, force: bool
) -> None:
    """Run the named experiments, or all whose data are at hand, and write their files."""
    options = _Options(output, data, quick, force)
    chosen = _chosen(names, options)
    for experiment in chosen:  # before hours of work rather than after them
        _require_free(experiment, options)
    _require_matplotlib()
    finished: list[str] = []
    try:
        for experiment in chosen:
            _run(experiment, options)
            finished.append(experiment.name)
    except KeyboardInterrupt:
        kept = f"{listed(finished)} in {output}" if finished else "nothing"
        typer.echo(f"mercer: interrupted; finished and written: {kept}", err=True)
        raise typer.Exit(130) from None


# --- before ---------------------------------------------------------------------------------------


def _chosen(names: Sequence[str], options: _Options) -> list[Experiment]:
    """Return the experiments that are named; of all, those whose data there are."""
    known = experiments()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(
            f"there is no experiment {listed(unknown)}; there are {', '.join(known)}"
        )
    if names:
        chosen = [known[name] for name in dict.fromkeys(names)]
        for experiment in chosen:
            problem = _missing(experiment, options)
            if problem:
                raise InputError(f"{experiment.name}: {problem}")
        return chosen
    missing = {name: _missing(experiment, options) for name, experiment in known.items()}
    for name, problem in missing.items():
        if problem:
            sys.stderr.write(f"mercer: note: {name} is left out: {problem}\n")
    return [known[name] for name, problem in missing.items() if not problem]


def _missing(experiment: Experiment, options: _Options) -> str:
    """Return what an experiment lacks, in words; nothing if its data are at hand."""
    for name in experiment.data:
        try:
            load_table(name, options.data)
        except FileNotFoundError as error:
            where = str(error).partition(". ")[0]
            return (
                f"{where}; give the folder that has it as --data, or in the environment variable "
                "MERCER_DATA"
            )
    return ""


def _require_free(experiment: Experiment, options: _Options) -> None:
    folder = Path(options.output) / experiment.name
    if (folder / _PAGE).exists() and not options.force:
        raise InputError(f"{folder / _PAGE} exists; --force replaces it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder} cannot be made: a file is in its way") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder} is read-only")


def _require_matplotlib() -> None:
    from mercer.plotting.style import pyplot

    try:
        pyplot()
    except ImportError as error:
        raise InputError(str(error)) from None


# --- running and writing --------------------------------------------------------------------------


def _run(experiment: Experiment, options: _Options) -> None:
    start = time.perf_counter()
    with _watched(experiment.name) as tell:
        outcome = experiment.run(Setting(options.quick, options.data, tell))
    seconds = time.perf_counter() - start
    if options.quick:
        print("A quick run, of few rows and repetitions: whatever it says below means nothing.")
    _show(experiment, outcome)
    folder = Path(options.output) / experiment.name
    _write(folder, experiment, outcome, options)
    print(f"{experiment.name}: {seconds:.0f} s, written to {folder}\n")
    sys.stdout.flush()


def _write(folder: Path, experiment: Experiment, outcome: Outcome, options: _Options) -> None:
    """Write tables and figures, and the page last: where it is, all of it is there."""
    for table in outcome.tables:
        # what stands beside no page is of a run that was broken off
        with published(str(folder / f"{table.name}.csv"), True) as scratch:
            Path(scratch).write_text(to_csv(table), encoding="utf-8", newline="")
    for figure in outcome.figures:
        with published(str(folder / f"{figure.name}.png"), True) as scratch:
            draw(figure, scratch)
    with published(str(folder / _PAGE), options.force) as scratch:
        text = to_markdown(experiment, outcome, options.quick)
        Path(scratch).write_text(text, encoding="utf-8", newline="")


def _show(experiment: Experiment, outcome: Outcome) -> None:
    """Print the tables, the claims and the notes."""
    console = _console()
    console.print(f"{experiment.title} ({experiment.source})", highlight=False)
    console.print(experiment.published, highlight=False)
    rows: Sequence[Sequence[str]]
    for table in outcome.tables:
        rows = [[shown(cell) for cell in row] for row in table.rows]
        console.print(_boxed(table.title, table.header, rows))
    if outcome.claims:
        rows = [[c.text, c.measured, "yes" if c.holds else "no"] for c in outcome.claims]
        console.print(_boxed("Claims", ("claim", "measured", "holds"), rows))
    for note in outcome.notes:
        console.print(note, highlight=False)


def _boxed(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    made = Table(*header, title=title, title_justify="left", box=box.SIMPLE)
    for row in rows:
        made.add_row(*row)
    return made


def _console() -> Console:
    from rich.console import Console

    return Console(markup=False, width=None if sys.stdout.isatty() else _WIDE)


@contextlib.contextmanager
def _watched(name: str) -> Iterator[Callable[[int, int, str], None]]:
    """Show a bar on a terminal while an experiment runs inside; elsewhere a line now and then."""
    if not sys.stderr.isatty():
        yield _lines(name)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        TextColumn("{task.completed} of {task.total},"),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:
        task = bar.add_task(name, total=1)

        def tell(done: int, total: int, what: str) -> None:
            about = f"{name}: {what}" if what else name
            bar.update(task, completed=done, total=total, description=about)

        yield tell


def _lines(name: str) -> Callable[[int, int, str], None]:
    """Return what tells of the first step on a line, and of others some time after the last."""
    told: float | None = None

    def tell(done: int, total: int, what: str) -> None:
        nonlocal told
        now = time.monotonic()
        if what and (told is None or now - told >= _PAUSE):
            sys.stderr.write(f"mercer: {name}: {done} of {total} done; {what}\n")
            sys.stderr.flush()
            told = now

    return tell
