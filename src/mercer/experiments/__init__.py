"""The papers' experiments, repeated: ours beside what was published.

An experiment is one module with an `Experiment` called ``EXPERIMENT``: what is repeated, what was
published, which tables of data it reads, and a function from a `Setting` to an `Outcome` of tables,
claims and figures. To add one, write such a module and name it in ``_MODULES``: ``mercer
reproduce`` lists it, runs it, prints its tables and writes its files.
"""

from __future__ import annotations

from importlib import import_module

from mercer.experiments.drawing import draw
from mercer.experiments.records import (
    Claim,
    Estimate,
    Experiment,
    Figure,
    Line,
    Outcome,
    Setting,
    Surface,
    Table,
)
from mercer.experiments.text import to_csv, to_markdown

__all__ = [
    "Claim",
    "Estimate",
    "Experiment",
    "Figure",
    "Line",
    "Outcome",
    "Setting",
    "Surface",
    "Table",
    "draw",
    "experiments",
    "to_csv",
    "to_markdown",
]

#: In the order in which they are listed and run.
_MODULES = (
    "abalone_error",
    "abalone_kernels",
    "abalone_gap",
    "gaussians",
    "online_sinc",
    "online_friedman",
    "online_usps",
    "online_plateau",
    "laplacian_samples",
    "sparsity",
    "relevance",
)


def experiments() -> dict[str, Experiment]:
    """Return all experiments by name."""
    found = [import_module(f"{__name__}.{module}").EXPERIMENT for module in _MODULES]
    return {experiment.name: experiment for experiment in found}
