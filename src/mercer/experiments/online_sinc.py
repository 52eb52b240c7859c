"""Fig. 4 of SOGP: sin(x)/x from noisy values, with ten basis vectors and with fifteen."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.experiments.records import (
    Cell,
    Claim,
    Estimate,
    Experiment,
    Figure,
    Line,
    Outcome,
    Setting,
    Table,
)
from mercer.experiments.sogp import kernel, latent
from mercer.inference.online import CRITERIA, OnlineProcess
from mercer.likelihoods import Gaussian
from mercer.metrics import coverage

__all__ = ["EXPERIMENT"]

Floats = NDArray[np.float64]

_ROWS, _NOISE, _EDGE = 1000, 0.02, 4.0
#: sigma_K^2, and how many basis vectors are kept.
_CASES = ((1.0, 10), (0.1, 15))
_DRAWS = 50
_Z = 1.959964  # 95%


class _Found(NamedTuple):
    """Of one run: errors and error bars of the mean against the function, and of new values."""

    error: float
    bar: float
    function: float
    values: float


def _function(x: Floats) -> Floats:
    return np.sinc(x / np.pi)  # NumPy's is sin(pi x)/(pi x)


def _learned(width: float, size: int, criterion: str, n: int, seed: int) -> OnlineProcess:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-_EDGE, _EDGE, (n, 1))
    y = _function(X) + np.sqrt(_NOISE) * rng.normal(size=(n, 1))
    process = OnlineProcess(kernel(width, 1), Gaussian(_NOISE), max_basis=size, criterion=criterion)
    process.learn(X, y)
    return process


def _grid() -> Floats:
    return np.linspace(-_EDGE, _EDGE, 401)


def _measured(process: OnlineProcess, seed: int) -> _Found:
    x = _grid()
    f = _function(x)
    mean, std = (part[:, 0] for part in latent(process, x[:, None]))
    noise = np.random.default_rng([seed, 1]).normal(size=len(x))
    values, wide = f + np.sqrt(_NOISE) * noise, np.hypot(std, np.sqrt(_NOISE))
    return _Found(
        float(np.sqrt(np.mean((mean - f) ** 2))),
        float(np.mean(std)),
        coverage(f, mean - _Z * std, mean + _Z * std),
        coverage(values, mean - _Z * wide, mean + _Z * wide),
    )


def _drawn(process: OnlineProcess, width: float, criterion: str) -> Figure:
    """Return the picture of the paper: the function, the mean with error bars, and the basis."""
    x = _grid()
    mean, std = (part[:, 0] for part in latent(process, x[:, None]))
    points = np.sort(process.points[:, 0])
    return Figure(
        f"width-{width:g}-{criterion}",
        f"sigma_K^2 = {width:g}, {process.n_basis} basis vectors by criterion {criterion!r}",
        "x",
        "f(x)",
        (
            Line("mean and two standard deviations", x, mean, 2.0 * std),
            Line("sin(x)/x", x, _function(x)),
            Line("basis vectors", points, latent(process, points[:, None]).mean[:, 0], dots=True),
        ),
    )


def _run(setting: Setting) -> Outcome:
    n, draws = (100, 2) if setting.quick else (_ROWS, _DRAWS)
    tasks = list(product(_CASES, CRITERIA))
    found: dict[tuple[float, int, str], list[_Found]] = {}
    figures = []
    for number in setting.steps([f"width {w:g}, criterion {c}" for (w, _), c in tasks]):
        (width, size), criterion = tasks[number]
        runs = []
        for seed in range(draws):
            process = _learned(width, size, criterion, n, seed)
            runs.append(_measured(process, seed))
            if seed == 0:
                figures.append(_drawn(process, width, criterion))
        found[width, size, criterion] = runs
    rows: list[tuple[Cell, ...]] = [
        (*key, *map(Estimate.of, zip(*runs, strict=True))) for key, runs in found.items()
    ]
    return Outcome(
        (
            Table(
                "errors",
                f"{n} values with noise of variance {_NOISE}, mean and spread of {draws} draws",
                (
                    "sigma_K^2",
                    "basis vectors",
                    "criterion",
                    "root mean squared error",
                    "mean error bar",
                    "95% bars cover sin(x)/x",
                    "95% bars cover new values",
                ),
                tuple(rows),
            ),
        ),
        _claims(found),
        tuple(figures),
        (
            f"The paper does not say where the inputs lie: here uniformly from {-_EDGE:g} to "
            f"{_EDGE:g}, which ten kernels of width 1 can span. Criterion 'mean' is the paper's "
            "score; 'kl' removes what the divergence says, and keeps the basis spread out.",
        ),
    )


def _claims(found: dict[tuple[float, int, str], list[_Found]]) -> tuple[Claim, ...]:
    claims = []
    for criterion in CRITERIA:
        (fits, broad) = [
            _Found(*np.mean(found[width, size, criterion], axis=0)) for width, size in _CASES
        ]
        claims += [
            Claim(
                f"criterion {criterion!r}: with sigma_K^2 = 1 the mean is nearer to the function "
                "than the data are",
                f"error {fits.error:.3f}, noise {np.sqrt(_NOISE):.3f}",
                fits.error < np.sqrt(_NOISE),
            ),
            Claim(
                f"criterion {criterion!r}: the function is within the error bars: 95% cover 95%",
                f"{fits.function:.1%} and {broad.function:.1%}",
                min(fits.function, broad.function) >= 0.95,
            ),
            Claim(
                f"criterion {criterion!r}: with sigma_K^2 = 0.1 error bars are broader",
                f"{broad.bar:.3f} beside {fits.bar:.3f}",
                broad.bar > fits.bar,
            ),
        ]
    return tuple(claims)


EXPERIMENT = Experiment(
    name="online-sinc",
    title="sin(x)/x by ten and by fifteen basis vectors, one row at a time",
    source="SOGP section 4.1, Fig. 4",
    published="1000 values with noise of variance 0.02: with sigma_K^2 = 1 and 10 basis vectors a "
    "good fit with tight error bars, with 0.1 and 15 broader ones. No numbers are given.",
    run=_run,
)
