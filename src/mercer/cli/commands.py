"""What each command does, from files to files."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from mercer.cli.columns import TableColumn
from mercer.cli.errors import InputError, listed
from mercer.cli.fitting import FitOptions, fit_table
from mercer.cli.model import TableModel
from mercer.cli.output import published, require_table_name, require_writable, write_table
from mercer.cli.progress import watch
from mercer.cli.report import report
from mercer.cli.summary import with_options
from mercer.cli.tables import read_table
from mercer.posterior import load, save

__all__ = ["load_model", "run_fit", "run_info", "run_predict"]


def run_fit(data: str, output: str, options: FitOptions, force: bool) -> None:
    """Fit a model to a table, save it and tell of it."""
    if output == "-":
        raise InputError("a model is no text for standard output; give -o the name of a file")
    require_writable(output, force, data)  # before a long fit rather than after it
    table = read_table(data)
    _note(table.notes)
    model = fit_table(table, options, watch)
    with published(output, force) as scratch:
        save(model, scratch)
    print(report(model))
    print(f"\nSaved as {output}")


def run_predict(
    model: str, data: str, output: str, coverage: float, keep: bool, force: bool
) -> None:
    """Predict the rows of a table and write the predictions."""
    require_table_name(output)
    if output != "-":
        require_writable(output, force, model, data)
    fitted = load_model(model)
    table = read_table(data)
    if not len(table):
        raise InputError(f"{table.source} has no rows to predict")
    _note(table.notes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predictions = fitted.predict(table, coverage)
    _note(list(dict.fromkeys(with_options(str(w.message)) for w in caught)))
    ignored = fitted.ignored(table)
    if ignored:
        names = listed([repr(name) for name in ignored], 10)
        _note([f"the model does not know {names}, and did not look there"])
    first, *rest = predictions
    columns = [first, *(rest[0].T if fitted.of_classes else rest)]
    named = dict(zip(fitted.output_names, columns, strict=True))
    write_table(output, named, force, table if keep else None)
    if output != "-":
        what = (
            "the probability of each class"
            if fitted.of_classes
            else f"{100 * coverage:g}% intervals"
        )
        print(f"{len(table)} rows predicted, with {what}: {output}")


def run_info(model: str) -> None:
    """Tell what a model file holds."""
    found = load(model)
    if isinstance(found, TableModel):
        print(report(found))
        return
    print(f"{model} holds a {type(found).__name__} that was saved from Python:\n{found!r}")


def load_model(path: str) -> TableModel:
    """Return the model that ``mercer fit`` wrote to a file, or that was saved from Python.

    The latter knows the names of its columns if it was fitted to a frame, but not that of its
    target, which is called y.
    """
    found = load(path)
    if isinstance(found, TableModel):
        return found
    names = getattr(found, "feature_names_in_", None)
    what = f"{path} holds a {type(found).__name__} that was saved from Python and"
    if not (hasattr(found, "predict_interval") or hasattr(found, "predict_proba")):
        raise InputError(
            f"{what} has no predict_interval, whose intervals this command writes, and no "
            "predict_proba; use mercer.load in Python"
        )
    if names is None:
        raise InputError(
            f"{what} knows no names of columns; fit it to a frame, or give a file that "
            "`mercer fit` wrote"
        )
    outputs = found.predictive_.n_outputs if hasattr(found, "predict_interval") else 1
    if outputs > 1:
        raise InputError(
            f"{what} predicts {outputs} targets, where this command writes one; use mercer.load in "
            "Python"
        )
    return TableModel("y", [TableColumn(name, "number") for name in names], found, {})


def _note(notes: Sequence[str]) -> None:
    for note in notes:
        sys.stderr.write(f"mercer: note: {note}\n")
