"""The summary of a model in words, for ``mercer fit`` and ``mercer info``."""

from __future__ import annotations

from typing import Any

from mercer.cli.continuing import is_online
from mercer.cli.errors import listed
from mercer.cli.methods import METHODS
from mercer.cli.model import TableModel
from mercer.cli.stream_state import StreamState
from mercer.evidence.shares import relevance_in_words

__all__ = ["report"]

_COLUMNS_SHOWN = 15
_BAR = 20
_NAME = 28


def report(model: TableModel) -> str:
    """Return all there is to say of a model."""
    summary = model.summary
    if is_online(model):  # it has learned since the summary was written
        summary = {**summary, "online": _online(model.estimator)}
        if "log_evidence" in summary:
            summary["log_evidence"] = float(model.estimator.log_evidence_)
    sections = [_data(model), _quality(summary), _relevance(summary), _remarks(summary)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _data(model: TableModel) -> list[str]:
    summary = model.summary
    numbers = [c.name for c in model.columns if c.kind == "number"]
    lines = [f"target    {model.target}"]
    if "target_mean" in summary:
        mean, std = summary["target_mean"], summary["target_std"]
        lines[0] += f" (mean {mean:.4g}, standard deviation {std:.4g})"
    if "classes" in summary:
        counts = [f"{label} in {count} rows" for label, count in summary["classes"]]
        lines[0] += f" ({listed(counts, 10)})"
    if "rows" in summary:
        lines.append(f"rows      {summary['rows']} from {summary['source']}")
    lines.append(f"columns   {len(model.columns)}: " + listed([c.name for c in model.columns], 10))
    if len(numbers) < len(model.columns):
        encoded = [c for c in model.columns if c.kind != "number"]
        for i, column in enumerate(encoded[:_COLUMNS_SHOWN]):
            head = "encoded" if i == 0 else ""
            lines.append(f"{head:9} {column.name}: {column.describe()}")
        if len(encoded) > _COLUMNS_SHOWN:
            lines.append(f"{'':9} and {len(encoded) - _COLUMNS_SHOWN} more")
    if summary.get("constant"):
        lines.append(f"left out  {listed(summary['constant'], 10)}: the same in every row")
    if summary.get("weights"):
        lines.append(f"weights   {summary['weights']}")
    if "method" in summary:
        method = METHODS.get(summary["method"])
        about = f" ({method.summary})" if method else ""
        lines.append(f"method    {summary['method']}{about}, kernel {summary['kernel']}")
    if "seconds" in summary:
        lines.append(f"fitted    in {summary['seconds']:.1f} s")
    return lines


def _quality(summary: dict[str, Any]) -> list[str]:
    lines = []
    if "log_evidence" in summary:
        lines.append(f"log evidence   {summary['log_evidence']:.6g}")
    if "noise_std" in summary:
        lines.append(f"noise          standard deviation {summary['noise_std']:.4g}")
    if "gap" in summary:
        lines.append(
            f"certified      Gap {summary['gap']:.3g} with {summary['basis']} basis functions: the "
            "log posterior is so near the exact one's"
        )
    if "expansion" in summary:
        active, gap = summary["expansion"]["active"], summary["expansion"]["gap"]
        proved = "the log posterior is proved"
        if summary["expansion"].get("prior") == "feature_selection":
            proved = "that the log posterior is stationary is proved"  # it has many optima
        lines.append(f"expansion      {active} functions in use; {proved} to a part of {gap:.2g}")
    known = summary.get("expansion", {})
    if "prior" in known:
        scales = ", ".join(f"{scale:.4g}" for scale in known["scales"])
        of = "scale" if len(known["scales"]) == 1 else "scales"
        lines.append(f"prior          {known['prior']} with {of} {scales}")
        lines.append(f"likelihood     {known['likelihood']}")
    if "relevance_vectors" in summary:
        lines.append(f"functions      {summary['relevance_vectors']} kept of those at all rows")
    if "likelihood" in summary:
        lines.append(f"likelihood     {summary['likelihood']}")
    if "outliers" in summary:
        lines.append(f"outliers       {summary['outliers']} (rows with less than a tenth of a say)")
    if "online" in summary:
        lines.append(f"basis          {summary['online']}")
    lines += _stream(summary)
    left = summary.get("leave_one_out")
    if left:
        lines += [
            "leave-one-out  each row predicted from all the others:",
            f"  RMSE         {left['rmse']:.4g} (the target's standard deviation: "
            f"{summary['target_std']:.4g})",
            f"  NLPD         {left['nlpd']:.4g} (mean negative log predictive density)",
            f"  coverage     {100 * left['coverage_95']:.1f}% of the rows in their 95% intervals",
        ]
    return lines


def _online(estimator: Any) -> str:
    """Return what the basis of an on-line model is, and what it has cost."""
    count, rows = estimator.n_basis_, estimator.n_seen_
    if not estimator.posterior_.weight:
        return f"{count} functions, which stay; {rows} rows have changed their weights"
    return (
        f"{count} vectors, of {estimator.max_basis} at the most; projections on them have cost "
        f"{estimator.projection_loss_:.3g} nats in {rows} rows"
    )


def _stream(summary: dict[str, Any]) -> list[str]:
    state = StreamState.of(summary)
    if state is None or not state.line:
        return []
    end = "" if state.ended else ", and was then broken off"
    text = f"{state.learned} rows learned from {state.line} lines{end}"
    if state.learned:
        shown = listed(state.scores("classes" in summary))
        text += f"; of each, before it was: {shown}"
    return [f"last stream    {text}"]


def _relevance(summary: dict[str, Any]) -> list[str]:
    if summary.get("explains_nothing"):
        return ["nothing in the columns was found to tell of the target: predictions are its mean"]
    rows = summary.get("relevances") or []
    if not rows:
        return []
    width = min(_NAME, max(len(row[0]) for row in rows[:_COLUMNS_SHOWN]))
    kernel = summary.get("kernel", "").lower()
    what = relevance_in_words("+" in kernel, "linear" in kernel)
    lines = [f"columns, their length scales, and {what}"]
    largest = rows[0][2] or 1.0
    for name, scale, relevance in rows[:_COLUMNS_SHOWN]:
        short = name if len(name) <= width else name[: width - 3] + "..."
        shown = f"{scale:.4g}" if isinstance(scale, float) else scale or "categories"
        bar = "#" * round(_BAR * relevance / largest)
        lines.append(f"  {short:{width}}  {shown:>10}  {relevance:6.3g}  {bar}".rstrip())
    if len(rows) > _COLUMNS_SHOWN:
        lines.append(f"  and {len(rows) - _COLUMNS_SHOWN} less relevant columns")
    return lines


def _remarks(summary: dict[str, Any]) -> list[str]:
    remarks = [("Note", text) for text in summary.get("notes", [])]
    remarks += [("Warning", text) for text in summary.get("warnings", [])]
    return [f"{word}: {text[:1].upper()}{text[1:].rstrip('.')}." for word, text in remarks]
