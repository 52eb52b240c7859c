"""What to know of a fit, as plain values that are stored with the model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os.path import basename
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.columns import TableColumn
from mercer.evidence.defaults import spread

if TYPE_CHECKING:
    from mercer.cli.fitting import FitOptions

__all__ = ["plain_warning", "relevances", "summarise"]

Floats = NDArray[np.float64]

_SCALE = re.compile(r"(?P<term>.*)length_scale(\[(?P<column>\d+)\])?")
_SCALE_IN_TEXT = re.compile(r"[\w.]*length_scale\[(\d+)\]")
# Half the width of a Gaussian's central 95% interval, in standard deviations.
_HALF_95 = 1.959963984540054


def summarise(
    estimator: Any,
    columns: Sequence[TableColumn],
    X: Floats,
    y: Floats,
    options: FitOptions,
    *,
    left_out: Sequence[str],
    constant: Sequence[str],
    source: str,
    seconds: float,
    warnings: Sequence[str],
) -> dict[str, Any]:
    """Return the summary of a fit; what a method has not is left out."""
    labels = [label for c in columns for label in c.labels]
    summary: dict[str, Any] = {
        "method": options.method,
        "kernel": options.kernel,
        "source": basename(source),
        "rows": len(y),
        "seconds": seconds,
        "target_mean": float(np.mean(y)),
        "target_std": float(np.std(y)),
        "left_out": list(left_out),
        "constant": list(constant),
        "weights": options.weights,
        "warnings": list(dict.fromkeys(plain_warning(text, labels) for text in warnings)),
    }
    if hasattr(estimator, "log_marginal_likelihood_value_"):
        summary["log_evidence"] = float(estimator.log_marginal_likelihood_value_)
    if hasattr(estimator, "kernel_"):
        summary["fitted_kernel"] = repr(estimator.kernel_)
        summary["relevances"] = relevances(estimator.kernel_, columns, spread(X))
    noise = getattr(getattr(estimator, "likelihood_", None), "new_variance", None)
    if noise is not None:
        summary["noise_std"] = float(np.sqrt(noise))
    if hasattr(estimator, "loo"):
        summary["leave_one_out"] = _leave_one_out(estimator)
    return summary


def _leave_one_out(estimator: Any) -> dict[str, float]:
    left = estimator.loo()
    y, weights = estimator.y_train_[:, 0], estimator.sample_weight_
    error = y - left.mean
    return {
        "rmse": float(np.sqrt(np.average(error**2, weights=weights))),
        "nlpd": float(-np.average(left.log_density, weights=weights)),
        "coverage_95": float(np.average(np.abs(error) <= _HALF_95 * left.std, weights=weights)),
    }


def relevances(kernel: Any, columns: Sequence[TableColumn], widths: Floats) -> list[list[Any]]:
    """Return [name, length scale or None, relevance] of each column, the most relevant first.

    The relevance of a column is its standard deviation over its length scale; that of a category
    takes all its columns together. From the first term of the kernel that has a length scale for
    each column; empty if none has.
    """
    terms: dict[str, dict[int, float]] = {}
    for name, value in zip(kernel.parameter_names, kernel.theta, strict=True):
        match = _SCALE.fullmatch(name)
        if match and ".On." not in f".{name}" and (match["column"] or len(widths) == 1):
            terms.setdefault(match["term"], {})[int(match["column"] or 0)] = float(np.exp(value))
    found = next((term for term in terms.values() if len(term) == len(widths)), None)
    if found is None:
        return []
    scales = np.array([found[j] for j in range(len(widths))])
    moved, start = widths / scales, 0
    rows: list[tuple[str, float | None, float]] = []
    for column in columns:
        own = slice(start, start + len(column.labels))
        start = own.stop
        scale = None if column.kind == "category" else float(scales[own][0])
        rows.append((column.name, scale, float(np.linalg.norm(moved[own]))))
    return [list(row) for row in sorted(rows, key=lambda row: -row[2])]


def plain_warning(text: str, labels: Sequence[str]) -> str:
    """Return a warning in the words of the command line: its columns' names and its options."""

    def named(match: re.Match[str]) -> str:
        column = int(match[1])
        return f"the length scale of {labels[column]!r}" if column < len(labels) else match[0]

    text = _SCALE_IN_TEXT.sub(named, text)
    return re.sub(r"n_restarts=(\d+)", r"--restarts \1", text)
