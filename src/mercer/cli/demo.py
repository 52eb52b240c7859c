"""``mercer demo``: the whole trip on made-up data, whose noise is known."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mercer.cli.commands import load_model, run_fit, run_predict
from mercer.cli.fitting import FitOptions
from mercer.cli.model import RowPredictions
from mercer.cli.output import require_writable, write_table
from mercer.cli.tables import read_table

__all__ = ["run_demo"]

_ROWS, _NEW, _NOISE = 200, 100, 0.5
_TASTE = {"Roma": 0.0, "Moneymaker": 1.5, "Black Krim": -2.0}
_FILES = ("harvest.csv", "harvest.mercer", "new.csv", "predictions.csv")


def run_demo(folder: str | None, force: bool) -> None:
    """Write data, fit, predict new rows, and compare with what these turned out to be."""
    data, model, new, out = _FILES
    with _inside(folder):
        for path in _FILES:
            require_writable(path, force)
        table = _harvest(_ROWS + _NEW, np.random.default_rng(0))
        write_table(data, {k: v[:_ROWS] for k, v in table.items()}, force)
        write_table(new, {k: v[_ROWS:] for k, v in table.items()}, force)
        print(
            f"Kilograms of tomatoes from {_ROWS} made-up plants, with noise of standard deviation "
            f"{_NOISE},\nand a column that matters to nothing.\n"
        )
        print(f"$ mercer fit {data} --target kilograms -o {model}\n")
        run_fit(data, model, FitOptions("kilograms"), force)
        print(f"\n$ mercer predict {model} {new} -o {out}\n")
        run_predict(model, new, out, 0.95, False, force)
        found = load_model(model).predict(read_table(new))
        assert isinstance(found, RowPredictions)
    y = table["kilograms"][_ROWS:]
    inside = int(np.sum((found.lower <= y) & (y <= found.upper)))
    error = float(np.sqrt(np.mean((y - found.mean) ** 2)))
    print(
        f"\nOf the {_NEW} new plants, {inside} are in their 95% intervals. The root mean square "
        f"error is {error:.2f};\nknowing the truth would leave {_NOISE:.2f}."
    )
    kept = f"are in {folder}" if folder else "were not kept; --folder NAME keeps them"
    print(f"The files {kept}.")


@contextlib.contextmanager
def _inside(folder: str | None) -> Iterator[None]:
    """Work in a folder, or in one that is removed at the end."""
    with contextlib.ExitStack() as stack:
        place = folder or stack.enter_context(tempfile.TemporaryDirectory())
        Path(place).mkdir(parents=True, exist_ok=True)
        stack.enter_context(contextlib.chdir(place))
        yield


def _harvest(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    warmth, water = rng.uniform(12, 32, n), rng.uniform(0.5, 4, n)
    variety = rng.choice(np.array(list(_TASTE), dtype=object), n)
    bees = rng.integers(0, 2, n).astype(bool)
    kilograms = 9 * np.exp(-(((warmth - 23) / 6) ** 2)) + 2 * np.sqrt(water) + 0.8 * bees
    kilograms += np.array([_TASTE[v] for v in variety]) + rng.normal(0, _NOISE, n)
    return {
        "warmth": warmth.round(1),
        "water": water.round(2),
        "variety": variety,
        "bees": np.where(bees, "true", "false").astype(object),
        "plot number": rng.integers(1, 100, n),
        "kilograms": kilograms.round(2),
    }
