"""Fig. 10 of BKM: functions drawn from Laplacian processes of three kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.experiments.records import Claim, Experiment, Outcome, Setting, Surface, Table
from mercer.kernels import RBF, Exponential, Kernel, Tanh
from mercer.priors import Laplacian, sample_functions

__all__ = ["EXPERIMENT"]

Floats = NDArray[np.float64]

_CENTRES, _SIDE = 400, 121
#: The parameters of the caption.
_KERNELS: dict[str, Kernel] = {
    "Gaussian": RBF(np.sqrt(0.1)),
    "exponential": Exponential(0.1),
    "tanh": Tanh(scale=10.0, offset=1.0),
}
_STEPS = (0.04, 0.005)


def _squares(n: int, side: float, corner: float) -> Floats:
    """Return n points uniform in a square of that side; `corner` is its least in both columns."""
    return corner + side * np.random.default_rng(2).uniform(size=(n, 2))


def _curvature(kernel: Kernel, centres: Floats, step: float) -> float:
    """Return the second difference quotient of f over a step, relative to the size of f.

    Both are root mean squares, over coefficients of mean 0 and one variance and over the square.
    """
    X = _squares(1000, 0.8, 0.1)
    ahead = np.array([step, 0.0])
    values = kernel(X, centres)
    second = (kernel(X + ahead, centres) - 2.0 * values + kernel(X - ahead, centres)) / step**2
    return float(np.sqrt(np.sum(second**2) / np.sum(values**2)))


def _slope(kernel: Kernel, centres: Floats, corner: float) -> float:
    """Return the root mean square slope of f in a quarter of the square, times any constant."""
    X, step = _squares(1000, 0.25, corner), 1e-4
    slopes = [kernel(X + step * e, centres) - kernel(X - step * e, centres) for e in np.eye(2)]
    return float(np.sqrt(sum(np.sum(slope**2) for slope in slopes)))


def _run(setting: Setting) -> Outcome:
    m, side = (50, 21) if setting.quick else (_CENTRES, _SIDE)
    centres = np.random.default_rng(0).uniform(size=(m, 2))
    x, y = np.meshgrid(*2 * [np.linspace(0.0, 1.0, side)])
    grid = np.column_stack([x.ravel(), y.ravel()])
    rows: list[tuple[str, float, float, float, float]] = []
    figures = []
    for number in setting.steps(list(_KERNELS)):
        name, kernel = list(_KERNELS.items())[number]
        f = sample_functions(Laplacian(), kernel, centres, grid, rng=3)
        figures.append(Surface(name, name, f.reshape(side, side), (0, 1, 0, 1), centres))
        spectrum = np.linalg.eigvalsh(kernel(centres))
        rows.append(
            (
                name,
                float(spectrum[0] / spectrum[-1]),
                _curvature(kernel, centres, _STEPS[0]),
                _curvature(kernel, centres, _STEPS[1]),
                _slope(kernel, centres, 0.0) / _slope(kernel, centres, 0.75),
            )
        )
    return Outcome(
        (
            Table(
                "samples",
                f"Laplacian processes over {m} centres, uniform in the unit square",
                (
                    "kernel",
                    "least over greatest eigenvalue",
                    *(f"curvature at step {step:g}" for step in _STEPS),
                    "slope at the origin over that at the far corner",
                ),
                tuple(rows),
            ),
        ),
        _claims({row[0]: row[1:] for row in rows}),
        tuple(figures),
        (
            "Curvature is the second difference quotient over that step, relative to the size of "
            "the function, in the root mean square over the coefficients and over the square; "
            "slopes are those in the quarter of a side next to a corner. Both are computed from "
            "the sections, without sampling. The pictures are one draw each.",
        ),
    )


def _claims(found: dict[str, tuple[float, ...]]) -> tuple[Claim, ...]:
    (_, smooth, smooth_near, even), (_, rough, rough_near, level), (least, _, _, uneven) = (
        found[name] for name in _KERNELS
    )
    return (
        Claim(
            "functions of the exponential kernel are significantly less smooth than those of the "
            "Gaussian one: their curvature grows as one looks closer",
            f"{rough_near / smooth_near:.1f} times the curvature; from step {_STEPS[0]:g} to "
            f"{_STEPS[1]:g} times {rough_near / rough:.2f}, Gaussian {smooth_near / smooth:.2f}",
            rough_near > 3.0 * smooth_near and rough_near / rough > 1.2 > smooth_near / smooth,
        ),
        Claim(
            "the neural networks kernel has a process that is not stationary: it is steep in one "
            "corner, as those of the others are not",
            f"slopes at the origin over those at the far corner: {uneven:.3g}, beside {even:.3g} "
            f"and {level:.3g}",
            uneven > 5.0 > 2.0 > max(even, level),
        ),
        Claim(
            "the neural networks kernel does not satisfy Mercer's condition",
            f"least eigenvalue {least:.2g} of the greatest",
            least < -1e-6,
        ),
    )


EXPERIMENT = Experiment(
    name="laplacian-samples",
    title="Functions drawn from Laplacian processes of three kernels, one of them no covariance",
    source="BKM 5.2, Fig. 10",
    published="Samples with 400 points in the unit square: Gaussian (sigma^2 = 0.1), Laplacian "
    "(sigma = 0.1) and neural networks kernel (theta = 10, vartheta = 1). No numbers are given.",
    run=_run,
)
