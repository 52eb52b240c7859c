"""Tables and outcomes as text: Markdown to read, CSV to go on with."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from mercer.experiments.records import Cell, Estimate, Experiment, Outcome, Table

__all__ = ["shown", "to_csv", "to_markdown"]


def shown(cell: Cell) -> str:
    """Return a cell as it is read: five digits, and an estimate with its spread."""
    if cell is None:
        return ""
    if isinstance(cell, Estimate):
        return f"{_number(cell.mean)} ± {cell.spread:.2g}"
    if isinstance(cell, float):
        return _number(cell)
    return str(cell)


def _number(value: float) -> str:
    return f"{value:.5g}"


def to_csv(table: Table) -> str:
    """Return a table as CSV, numbers in full; an estimate's spread has a column of its own."""
    spread = [any(isinstance(row[i], Estimate) for row in table.rows) for i in _columns(table)]
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_widened(table.header, spread, [f"{name}, spread" for name in table.header]))
    for row in table.rows:
        values = [cell.mean if isinstance(cell, Estimate) else cell for cell in row]
        spreads = [cell.spread if isinstance(cell, Estimate) else None for cell in row]
        writer.writerow(_widened(values, spread, spreads))
    return file.getvalue()


def _columns(table: Table) -> range:
    return range(len(table.header))


def _widened(
    cells: Sequence[object], spread: Sequence[bool], beside: Sequence[object]
) -> list[object]:
    """Return the cells, each followed by what stands beside it where its column has spreads."""
    out: list[object] = []
    for cell, wide, second in zip(cells, spread, beside, strict=True):
        out += [cell, second] if wide else [cell]
    return out


def to_markdown(experiment: Experiment, outcome: Outcome, quick: bool = False) -> str:
    """Return the page of an experiment: what was published, tables, claims, figures and notes."""
    parts = [f"# {experiment.title}", f"{experiment.source}. {experiment.published}"]
    if quick:
        parts.append("**A quick run, of few rows and repetitions: the numbers mean nothing.**")
    for table in outcome.tables:
        parts += [f"## {table.title}", _markdown(table.header, table.rows)]
    if outcome.claims:
        rows = [(c.text, c.measured, "yes" if c.holds else "**no**") for c in outcome.claims]
        parts += ["## Claims", _markdown(("claim", "measured", "holds"), rows)]
    parts += [f"![{figure.title}]({figure.name}.png)" for figure in outcome.figures]
    parts += outcome.notes
    return "\n\n".join(parts) + "\n"


def _markdown(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    cells = [[shown(cell).replace("|", "\\|") for cell in row] for row in [header, *rows]]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(header))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)
