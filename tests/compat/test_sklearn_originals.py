"""scikit-learn's own examples draw the same figures with only the import changed.

Its wheel comes without them: the environment variable SKLEARN_EXAMPLES names the folder `examples`
of the source distribution of the installed version, or any folder that has the scripts. Every
script there is run that imports a Gaussian process and needs no network. The one on carbon dioxide
fetches its data, and is given the table `maunaloa-monthly` instead.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from mercer.datasets import load_table

# scikit-learn runs them without turning warnings into errors.
pytestmark = [pytest.mark.paper, pytest.mark.filterwarnings("ignore")]

IMPORT = re.compile(r"^from sklearn\.gaussian_process import\b", re.MULTILINE)
CARBON_DIOXIDE = "plot_gpr_co2"
WANTED = {
    "plot_compare_gpr_krr",
    CARBON_DIOXIDE,
    "plot_gpr_noisy_targets",
    "plot_gpr_prior_posterior",
}

# Relative to the range of a curve. Both searches take the same steps, so that rounding is all there
# is: 4e-9 where this was written. (How far theta is from the best is another matter: 5e-5, the root
# of the least gain of a step.)
TOLERANCE = 1e-5
# scikit-learn integrates the logistic function by five error functions, up to 4e-4 off.
TOLERANCE_OF_PROBABILITIES = 1e-3


class Excuse(NamedTuple):
    """A deliberate difference."""

    example: str
    artist: str  # a regular expression, for names such as "axes 1 of 'title', line 'label'"
    tolerance: float
    reason: str


EXCUSES = [
    Excuse(
        "plot_gpr_prior_posterior",
        r"line 'Sampled function",
        np.inf,
        "samples come from a Cholesky factor, scikit-learn's from singular vectors: other draws "
        "from the same distribution, for the same seed",
    ),
    Excuse(
        "plot_gpr_prior_posterior",
        r"axes 1 of 'Rational Quadratic",
        1e-2,
        "the shape goes to infinity, where r^2/shape is lost beside the 1 that it is added to; "
        "scikit-learn's search follows the rounding to 3e9 and computes -0.0640 for an evidence of "
        "-0.0674, which Mercer's has to nine digits",
    ),
    Excuse(
        "plot_gpr_prior_posterior",
        r"axes 1 of 'Dot-product",
        1e-2,
        "a quadratic cannot go through ten points, and with 1e-10 on the diagonal the evidence, "
        "-1.8e10, is rounded by more than it changes: each search follows its own rounding errors. "
        "Mercer's mean is 2e-5 from the quadratic of least squares, scikit-learn's 5e-4",
    ),
    Excuse(
        "plot_gpc_xor",
        r"axes 0 of",
        0.2,
        "scikit-learn's Newton's method stops away from the mode, and its search fails: Mercer's "
        "evidence is higher by 0.5. At scikit-learn's hyperparameters the two agree "
        "(test_examples.py)",
    ),
    Excuse(
        "plot_gpc_xor",
        r"axes 1 of",
        0.2,
        "with warm_start=True scikit-learn's search stops short, at an evidence of -9.284; without "
        "it, it ends where Mercer's does in either case, at -9.271 (test_examples.py)",
    ),
]


def _scripts() -> dict[str, Path]:
    """Return the scripts that can be run, by their names."""
    folder = os.environ.get("SKLEARN_EXAMPLES")
    found = {}
    for path in sorted(Path(folder).rglob("plot_*.py")) if folder else []:
        text = path.read_text(encoding="utf-8")
        if IMPORT.search(text) and ("fetch_" not in text or path.stem == CARBON_DIOXIDE):
            found[path.stem] = path
    return found


SCRIPTS = _scripts()


@pytest.mark.parametrize("name", sorted(WANTED | SCRIPTS.keys()))
def test_same_figures(name, monkeypatch):
    if not os.environ.get("SKLEARN_EXAMPLES"):
        pytest.skip(
            "SKLEARN_EXAMPLES is not set: name the folder `examples` of the source distribution of "
            "the installed scikit-learn"
        )
    assert name in SCRIPTS, f"there is no {name}.py in {os.environ['SKLEARN_EXAMPLES']}"
    monkeypatch.setattr("sklearn.datasets.fetch_openml", _carbon_dioxide)
    text = SCRIPTS[name].read_text(encoding="utf-8")
    theirs = _drawn(text, SCRIPTS[name], monkeypatch)
    ours = _drawn(IMPORT.sub("from mercer.compat import", text), SCRIPTS[name], monkeypatch)
    assert theirs
    assert list(ours) == list(theirs)
    usual = TOLERANCE_OF_PROBABILITIES if "GaussianProcessClassifier" in text else TOLERANCE
    excuses = [excuse for excuse in EXCUSES if excuse.example == name]
    used = set()
    for artist, expected in theirs.items():
        excuse = next((e for e in excuses if re.search(e.artist, artist)), None)
        used.add(excuse)
        rtol = usual if excuse is None else excuse.tolerance
        _check(ours[artist], expected, rtol, f"{name}: {artist}")
    assert used >= set(excuses), "something is excused that is not drawn"


def _check(ours, expected, rtol, message):
    """Compare arrays: those of shape (n, 2) hold x and y, all others one quantity."""
    assert ours.shape == expected.shape, message
    if np.isinf(rtol):
        assert np.all(np.isfinite(ours)), message
        return
    has_columns = expected.ndim == 2 and expected.shape[1] == 2
    for o, e in zip(ours.T, expected.T, strict=True) if has_columns else [(ours, expected)]:
        known = e[np.isfinite(e)]
        size = (np.ptp(known) or np.max(np.abs(known))) if known.size else 0.0
        np.testing.assert_allclose(o, e, rtol=0.0, atol=rtol * size, err_msg=message)


def _carbon_dioxide(*, data_id, as_frame):
    """Return what the example takes from OpenML, as monthly means in the place of weekly values."""
    pd = pytest.importorskip("pandas")
    assert (data_id, as_frame) == (41187, True)
    try:
        table = load_table("maunaloa-monthly")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    time = table.X[:, 0]
    year = np.floor(time)
    month = np.floor(12.0 * (time - year)) + 1.0  # times are the middles of the months
    frame = pd.DataFrame({"year": year, "month": month, "day": 15, "co2": table.y})
    return SimpleNamespace(frame=frame[year <= 2001].copy())  # OpenML's go to the end of 2001


# --- what a script draws --------------------------------------------------------------------------


def _drawn(text, path, monkeypatch):
    """Run a script; return the data of all that it draws, by names in the order of drawing."""
    matplotlib = pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    def with_heights(draw):
        # Where a contour of a nearly flat surface lies is known badly: heights are compared.
        def wrapper(axes, *args, **options):
            contours = draw(axes, *args, **options)
            contours.heights = args[2] if len(args) > 2 else args[0]
            return contours

        return wrapper

    with monkeypatch.context() as patch, matplotlib.rc_context():
        for name in ("contour", "contourf"):
            patch.setattr(Axes, name, with_heights(getattr(Axes, name)))
        plt.switch_backend("Agg")
        plt.close("all")
        np.random.seed(0)  # noqa: NPY002  what scripts without a random_state draw from
        try:
            exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
            figures = [plt.figure(number) for number in plt.get_fignums()]
            artists = [pair for figure in figures for pair in _artists(figure)]
        finally:
            plt.close("all")
    return {
        f"{i}: {name}": np.ma.filled(np.ma.asarray(data, dtype=float), np.nan)
        for i, (name, data) in enumerate(artists)
    }


def _artists(figure):
    """Yield the name and the data of everything in a figure, but for colour bars."""
    from matplotlib.collections import PathCollection
    from matplotlib.contour import ContourSet

    for i, axes in enumerate(a for a in figure.axes if a.get_label() != "<colorbar>"):
        place = f"axes {i} of {figure.get_suptitle()!r}"
        for line in axes.lines:
            yield f"{place}, line {line.get_label()!r}", line.get_xydata()
        for image in axes.images:
            yield f"{place}, image", image.get_array()
        for bar in axes.patches:
            yield f"{place}, bar", bar.get_path().transformed(bar.get_patch_transform()).vertices
        for collection in axes.collections:
            label = f"{place}, collection {collection.get_label()!r}"
            if isinstance(collection, ContourSet):
                # A surface may be masked where another is higher, to the last bit of both.
                yield label, np.ma.getdata(collection.heights)
            elif isinstance(collection, PathCollection):
                yield label, collection.get_offsets()
            elif collection.get_array() is not None:
                yield label, collection.get_array()
            else:  # bands, and error bars, of which there may be none
                vertices = [path.vertices for path in collection.get_paths()]
                yield label, np.concatenate([np.empty((0, 2)), *vertices])
