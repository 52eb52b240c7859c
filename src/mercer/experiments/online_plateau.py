"""Fig. 7 of SOGP: the error on ten digits while basis vectors are removed, without retraining."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.experiments.records import (
    Cell,
    Claim,
    Experiment,
    Figure,
    Line,
    Outcome,
    Setting,
    Table,
)
from mercer.experiments.usps import CLASSES, error, process, read, signs

__all__ = ["EXPERIMENT"]

Floats = NDArray[np.float64]

_BASIS, _STEP = 1500, 75
#: The paper's score, of each vector the largest of its classes'.
_CRITERION = "mean"
_ROWS = 243  # learned between two signs of life
#: What removing half of the basis may cost, in points; the paper's plateau is 70% long.
_COST, _PLATEAU = 1.0, 0.7


def _run(setting: Setting) -> Outcome:
    digits = read(setting)
    basis, step = (40, 10) if setting.quick else (_BASIS, _STEP)
    learned = process(digits.X.shape[1], CLASSES, basis, _CRITERION)
    Y = signs(digits.y, CLASSES)
    parts = range(0, len(Y), _ROWS)
    sizes = list(range(basis, 0, -step))
    names = [f"{min(at + _ROWS, len(Y))} images" for at in parts]
    errors, losses = [], []
    for number in setting.steps([*names, *(f"{size} basis vectors left" for size in sizes)]):
        if number < len(parts):
            rows = slice(parts[number], parts[number] + _ROWS)
            learned.learn(digits.X[rows], Y[rows])
            trained = learned.projection_loss
        else:
            learned.prune(sizes[number - len(parts)])
            losses.append(learned.projection_loss - trained)
            errors.append(error(learned, digits, CLASSES))
    return _outcome(np.array(sizes, dtype=float), np.array(errors), losses, len(Y))


def _outcome(sizes: Floats, errors: Floats, losses: list[float], n: int) -> Outcome:
    rows: list[tuple[Cell, ...]] = [
        (int(size), float(100.0 * (1.0 - size / sizes[0])), float(wrong), loss)
        for size, wrong, loss in zip(sizes, errors, losses, strict=True)
    ]
    claims = [
        _claim(
            f"{share:.0%} of the basis removed costs under {_COST:g} point", sizes, errors, share
        )
        for share in (0.5, _PLATEAU)
    ]
    return Outcome(
        (
            Table(
                "errors",
                f"Ten digits, {n} training images, {int(sizes[0])} basis vectors at first",
                ("basis vectors", "removed, percent", "test error, percent", "divergence, nats"),
                tuple(rows),
            ),
        ),
        tuple(claims),
        (
            Figure(
                "error",
                "Ten digits: vectors removed one after another, without retraining",
                "basis vectors",
                "test error, percent",
                (Line("removal", sizes, errors),),
                mark=(float(errors[0]) + _COST, f"{_COST:g} point above the start"),
            ),
        ),
        (
            "sigma_K^2 = 1 and sigma_0 = 0, one sweep, by the paper's score. The divergence is "
            "what all removals together have cost, of the ten latent functions.",
        ),
    )


def _claim(text: str, sizes: Floats, errors: Floats, share: float) -> Claim:
    """Return a claim about all sizes down to where that share has been removed."""
    here = errors[sizes >= (1.0 - share) * sizes[0] - 0.5]
    cost = float(here.max() - errors[0])
    return Claim(text, f"{cost:+.2f} points at the most, from {errors[0]:.2f}%", cost < _COST)


EXPERIMENT = Experiment(
    name="online-plateau",
    title="Handwritten digits: 1500 basis vectors, removed one after another",
    source="SOGP section 4.2, Fig. 7",
    published="Trained with 1500 basis vectors, the error on ten digits stays almost constant "
    "while up to 70% of them are removed.",
    run=_run,
    data=("usps",),
)
