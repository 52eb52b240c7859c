"""The kernels of a relevance vector machine: where the default one begins, and the search.

They are chosen by some of the rows, moved on by all of them, and with the centres if these move.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MercerWarning
from mercer.estimators.expansion_options import check_centres, check_symmetry
from mercer.estimators.options import as_generator
from mercer.estimators.relevance_columns import COMPARED, useful
from mercer.estimators.relevance_frame import Frame, Model
from mercer.estimators.rows import is_precomputed
from mercer.estimators.sampled_widths import Sampled, sampled_widths
from mercer.evidence.defaults import default_class_kernel, default_kernel, spread
from mercer.evidence.optimum import Report, tell
from mercer.evidence.relevance_search import Ended, Search, width_starts
from mercer.kernels import RBF, Kernel

__all__ = ["Choice", "choose_kernels"]

Floats = NDArray[np.float64]

# Rows by which kernels are chosen, at the most; rounds on all of them after that; starts that are
# gone on with; and length scales that are tried, in units of those that a search begins with.
_ROWS, _ROUNDS, _TRIES = 1000, 2, 2
_FACTORS = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)
# Nats that a step of the sparse algorithm must gain while kernels are looked for, and those that a
# model of numbers is charged for each of its functions where kernels are compared.
_COARSE, _CHARGE = 0.3, 2.0


class Choice(NamedTuple):
    """A model with kernels, and how they were come by.

    frame : Frame
    beta : (r, P) about what the coefficients of the mean have their priors
    search : of the kernels' parameters, if there was one
    start : where the choice has ended, for the last fit to begin at; None without a choice
    is_whole : whether no interrupt has ended it
    """

    frame: Frame
    beta: Floats
    search: Search | None
    start: Ended | None
    is_whole: bool


def choose_kernels(estimator: Any, model: Model, report: Report | None) -> Choice:
    """Return the model with what was left open of its kernels, and of its centres, chosen."""
    rows, kernels = model.rows, model.kernels
    rng = as_generator(estimator.random_state)
    numeric = kernels is None or kernels[0].is_numeric
    widths = spread(rows.X, rows.weights) if numeric and not is_precomputed(estimator) else None
    no_sections = estimator.centres is not None and len(estimator.centres) == 0
    default, is_open, is_whole = None, True, True
    if kernels is None:
        assert widths is not None
        default = _default_kernel(model, widths)
        begun = Sampled(default)
        if not no_sections:
            begun = _begun(estimator, model, default, widths, rng, report)
        kernels, is_whole = (begun.kernel,), begun.is_whole
        # Length scales that a sample of labels cannot tell apart, the evidence of relevance vectors
        # cannot either: it grows as kernels narrow (decision 0016).
        is_open = is_whole and begun.kernel is not begun.common
    if estimator.learn_centres and widths is None:
        raise ValueError(f"learn_centres=True needs inputs of numbers, got {kernels[0]!r}")
    for kernel in kernels:
        check_centres(estimator.centres, rows.X, kernel)
    kernels = tuple(kernel.anchored(rows.X) for kernel in kernels)
    for kernel in kernels:
        check_symmetry(kernel, rows.X)
    frame = Frame(model, kernels, estimator.centres, estimator.functions)
    beta = frame.coefficients(rows)
    searches = estimator.optimizer is not None and not no_sections and is_open
    searches = searches and any(kernel.theta.size for kernel in kernels)
    searches = searches and bool(np.any(rows.Y != frame.offset(rows, beta)))
    search: Search | None = None
    start: Ended | None = None
    with warnings.catch_warnings():  # those of models on the way are of no use
        warnings.simplefilter("ignore", MercerWarning)
        if searches:
            frame, search, start = _searched(estimator, frame, beta, widths, default, rng, report)
            is_whole = start.status != "interrupted"
        if estimator.learn_centres and is_whole:
            start = _moved(estimator, frame, beta, widths, start, report)
            is_whole = start.status != "interrupted"
    return Choice(frame, beta, search, start, is_whole)


def _default_kernel(model: Model, widths: Floats) -> RBF:
    """Return the kernel that is meant by none, from the deviations of the columns."""
    default = default_class_kernel if model.has_labels else default_kernel
    kernel = default(widths, 1.0).kernel
    assert isinstance(kernel, RBF)
    return kernel


def _begun(
    estimator: Any,
    model: Model,
    kernel: RBF,
    widths: Floats,
    rng: np.random.Generator,
    report: Report | None,
) -> Sampled:
    """Return the default kernel where a search begins: with the length scales of a sample."""
    rows = model.rows
    if estimator.optimizer is None or not np.any(np.ptp(rows.Y, axis=0)):
        return Sampled(kernel)
    tell(report, "choosing relative length scales")
    if model.has_labels:  # which may be distributions over classes
        rows = rows._replace(Y=np.where(rows.Y > 0, 1.0, -1.0))
    outliers = not model.has_labels and bool(estimator.robust)
    found = sampled_widths(estimator, rows, widths, model.mean, model.has_labels, outliers, rng)
    found = found._replace(kernel=kernel.with_theta(found.kernel.theta))
    if found.common is None:
        return found
    found = found._replace(common=kernel.with_theta(found.common.theta))
    return useful(estimator, rows.some(COMPARED, rng), found)


def _searched(
    estimator: Any,
    frame: Frame,
    beta: Floats,
    widths: Floats | None,
    default: Kernel | None,
    rng: np.random.Generator,
    report: Report | None,
) -> tuple[Frame, Search, Ended]:
    """Return the model with parameters of its kernels, from a search by some of the rows."""
    rows = frame.model.rows
    some = rows.some(_ROWS, rng)
    if not np.all(np.ptp(some.Y, axis=0)):  # a class is not among them
        some = rows
    tell(report, f"choosing the kernel by {len(some.Y)} rows")
    engine, limits = frame.engine(some, beta), _bounds(frame, widths)
    coarse, max_iter = max(float(estimator.tol), _COARSE), int(estimator.max_iter)
    rich = not frame.model.has_labels
    # Of labels the evidence is too high where functions are many and narrow, and the more so the
    # more rows there are (decision 0016): the charge is Schwarz's.
    charge = _CHARGE if rich else 0.5 * float(np.log(len(some.Y)))
    search = Search(engine, limits, coarse, charge, max_iter, report=report)
    functions = frame.dictionary(some)
    # Where there is nothing but noise, the sample's length scales are as short as can be.
    starts = [] if default is None else [default.theta]
    starts += [
        np.concatenate([kernel.draw_theta(rng) for kernel in frame.kernels])
        for _ in range(estimator.n_restarts)
    ]
    narrowing = width_starts(functions, _FACTORS)
    end = search.best_of(functions, starts, narrowing, _TRIES + estimator.n_restarts, rich)
    frame = frame.with_kernels(end.functions.kernels)
    if len(some.Y) == len(rows.Y):
        return frame, search, end
    begun, functions = frame.carried(some, rows, end.machines), frame.dictionary(rows)
    if end.status == "interrupted":
        return frame, search, end._replace(functions=functions, machines=begun)
    search.machines = frame.engine(rows, beta)
    whole = search.solved(functions, begun)
    if whole.status != "interrupted":
        whole = search.climb(whole, _ROUNDS)
    return frame.with_kernels(whole.functions.kernels), search, whole


def _bounds(frame: Frame, widths: Floats | None) -> Floats:
    """Return the bounds (p, 2) of the kernels' parameters, by the deviations of the columns."""
    units = np.ones(1) if widths is None else widths
    return np.concatenate([kernel.with_bounds_from(units, 1.0).bounds for kernel in frame.kernels])


def _moved(
    estimator: Any,
    frame: Frame,
    beta: Floats,
    widths: Floats | None,
    start: Ended | None,
    report: Report | None,
) -> Ended:
    """Return the model with centres that were moved, and the kernels with them."""
    rows = frame.model.rows
    limits = _bounds(frame, widths)
    if estimator.optimizer is None:  # which holds the parameters
        limits = np.repeat(np.concatenate([k.theta for k in frame.kernels])[:, None], 2, axis=1)
    engine, tol, max_iter = frame.engine(rows, beta), float(estimator.tol), int(estimator.max_iter)
    search = Search(engine, limits, tol, 0.0, max_iter, True, widths, report=report)
    if start is None:
        start = search.solved(frame.dictionary(rows), None)
    if start.status == "interrupted":
        return start
    tell(report, "moving centres")
    return search.climb(start)
