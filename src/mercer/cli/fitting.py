"""From a table and options to a fitted model."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.cells import missing, texts
from mercer.cli.columns import NamedColumns, TableColumn, encode, learn_columns, read_numbers
from mercer.cli.errors import InputError, listed
from mercer.cli.kernels import build_kernel
from mercer.cli.methods import METHODS
from mercer.cli.model import TableModel
from mercer.cli.summary import summarise, with_options
from mercer.cli.tables import Table
from mercer.estimators.memory import LONG
from mercer.evidence.defaults import deviation, spread
from mercer.evidence.optimum import Report

__all__ = ["FitOptions", "fit_table"]

Floats = NDArray[np.float64]
#: Given the number of starts and of inputs, a context in which to fit; it yields `verbose`.
Watch = Callable[[int, int], AbstractContextManager[int | Report]]


@dataclass(frozen=True)
class FitOptions:
    """What ``mercer fit`` was asked for; `own` are options of the method alone, by name."""

    target: str
    method: str = "gp"
    kernel: str = "rbf"
    periods: Mapping[str, float] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    weights: str | None = None
    restarts: int = 0
    seed: int = 0
    own: Mapping[str, Any] = field(default_factory=dict)


def fit_table(table: Table, options: FitOptions, watch: Watch) -> TableModel:
    """Fit a model to a table.

    Parameters
    ----------
    table : Table
        Inputs, target and perhaps weights.
    options : FitOptions
        What was asked for.
    watch : callable
        Shows the progress of the search; see `mercer.cli.progress`.
    """
    inputs = _input_names(table, options)
    method = METHODS[options.method]
    if method.of_classes:
        y: NDArray[Any] = _labels(table, options.target, options.method.removesuffix("-classes"))
    else:
        y = _target(table, options.target)
    weights = _weights(table, options.weights)
    columns, constant, notes = learn_columns(table, inputs, options.categorical)
    if not columns:
        raise InputError(f"{table.source}: no column but the target varies; there is no input left")
    X = encode(columns, table)
    widths = spread(X, weights)
    variance = 1.0 if method.of_classes else float(deviation(y, weights) ** 2)
    kernel = build_kernel(options.kernel, widths, variance, _periods(columns, options.periods))
    search = {"n_restarts": options.restarts, "random_state": options.seed}
    estimator = method.build(kernel=kernel, **search, **options.own)
    if options.method == "gp" and len(y) > LONG:  # warnings are shown when the fit is over
        sys.stderr.write(
            f"mercer: note: an exact fit to {len(y):,} rows may take hours; --method sparse is "
            "made for this size\n"
        )
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with watch(1 + options.restarts, X.shape[1]) as verbose:
            estimator.set_params(verbose=verbose)
            labels = [label for c in columns for label in c.labels]
            try:
                estimator.fit(NamedColumns(X, labels), y, sample_weight=weights)
            except ValueError as error:
                raise _for_the_command_line(error) from error
        estimator.set_params(verbose=0)
        # scikit-learn's checks take names from frames alone
        estimator.feature_names_in_ = np.array(labels, dtype=object)
    summary = summarise(
        estimator,
        columns,
        options,
        X,
        y,
        weights,
        left_out=[*options.drop, *constant, *([options.weights] if options.weights else [])],
        constant=constant,
        notes=notes,
        source=table.source,
        seconds=time.perf_counter() - started,
        warnings=[str(w.message) for w in caught],
    )
    return TableModel(options.target, columns, estimator, summary)


def _for_the_command_line(error: ValueError) -> ValueError:
    """Return an error of a fit with the command line's options in place of the estimator's."""
    text = with_options(str(error))
    try:
        return type(error)(text)
    except TypeError:  # one that is made of more than its text
        return ValueError(text)


def _input_names(table: Table, options: FitOptions) -> list[str]:
    """Return the columns to learn from, once every column that was named is there."""
    named = [options.target, *options.drop, *options.categorical, *options.periods]
    for name in [*named, *([options.weights] if options.weights else [])]:
        if name not in table.names:
            raise InputError(f"{table.source} has no column {name!r}{table.instead_of(name)}")
    others = {options.target, options.weights}
    both = sorted(others & {*options.drop, *options.categorical, *options.periods})  # type: ignore[type-var]
    if both or options.target == options.weights:
        shown = repr(both[0] if both else options.target)
        raise InputError(f"column {shown} was given two roles: as target or weights, and another")
    if len(table) < 2:
        rows = "no rows" if not len(table) else "only one row"
        raise InputError(f"{table.source} has {rows}; at least two are wanted to fit a model")
    inputs = [n for n in table.names if n not in others and n not in options.drop]
    if not inputs:
        raise InputError(f"{table.source} has no column to predict {options.target!r} from")
    return inputs


def _target(table: Table, name: str) -> Floats:
    try:
        y = read_numbers(table, name)
    except InputError as error:
        told = _of_role("target", name, error, table)
        if missing(table[name]).any():
            raise told from None
        labels = ", ".join(other for other, found in METHODS.items() if found.of_classes)
        raise InputError(f"{told}; if these are labels, --method is one of {labels}") from None
    if np.all(y == y[0]):
        raise InputError(
            f"{table.source}: the target, column {name!r}, is {y[0]:g} in every row; there is "
            "nothing to learn"
        )
    size, width = np.max(np.abs(y)), deviation(y)
    if size > 1e140 or width < 1e-140:
        raise InputError(
            f"{table.source}: the target, column {name!r}, is as large as {size:.3g} and varies by "
            f"{width:.3g}; give it in other units, from 1e-140 to 1e140, for its variance to be a "
            "number that doubles hold"
        )
    return y


def _labels(table: Table, name: str, of_numbers: str) -> NDArray[Any]:
    """Return a target of classes as text; `of_numbers` is the method for a target of numbers."""
    values = table[name]
    lost = missing(values)
    if lost.any():
        raise InputError(
            f"{table.source}: the target, column {name!r}, has missing values in "
            f"{table.rows_text(lost)}; fill them in, or leave out these rows"
        )
    labels = np.array(texts(values).tolist(), dtype=str)
    found = np.unique(labels)
    if len(found) == 1:
        raise InputError(
            f"{table.source}: the target, column {name!r}, is {str(found[0])!r} in every row; "
            "there is nothing to learn"
        )
    if 2 * len(found) > len(labels) and len(labels) > 2:
        raise InputError(
            f"{table.source}: the target, column {name!r}, has {len(found)} different labels in "
            f"{len(labels)} rows; for a target of numbers, --method {of_numbers}"
        )
    return labels


def _of_role(role: str, name: str, error: InputError, table: Table) -> InputError:
    """Return the error about a column as one about what it is for."""
    column = f"column {name!r}"
    text = str(error).removeprefix(f"{table.source}: ").removeprefix(f"{column} ")
    return InputError(f"{table.source}: the {role}, {column}, {text}")


def _weights(table: Table, name: str | None) -> Floats | None:
    if name is None:
        return None
    try:
        weights = read_numbers(table, name)
    except InputError as error:
        raise _of_role("weights", name, error, table) from None
    if np.any(weights < 0) or not np.any(weights > 0):
        wrong = table.rows_text(weights < 0) if np.any(weights < 0) else "every row is 0"
        raise InputError(
            f"{table.source}: weights must not be negative, and one must be above 0; column "
            f"{name!r}: {wrong}"
        )
    return weights


def _periods(columns: list[TableColumn], periods: Mapping[str, float]) -> dict[int, float]:
    """Return the periods by the number of the encoded column."""
    labels = [label for c in columns if c.kind in ("number", "date") for label in c.labels]
    wrong = [repr(name) for name in periods if name not in labels]
    if wrong:
        raise InputError(
            f"--period is for columns of numbers or dates that vary, and not for {listed(wrong)}"
        )
    every = [label for c in columns for label in c.labels]
    return {every.index(name): length for name, length in periods.items()}
