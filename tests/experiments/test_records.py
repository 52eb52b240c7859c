"""Records of experiments, and their tables as text and files."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest

import mercer
from mercer import experiments
from mercer.experiments import (
    Claim,
    Estimate,
    Experiment,
    Figure,
    Line,
    Outcome,
    Setting,
    Surface,
    Table,
    draw,
    to_csv,
    to_markdown,
)

TABLE = Table(
    "errors",
    "Errors",
    ("who", "error", "kernels"),
    (("exact | all", Estimate(1.78254999, 0.333), None), ("sparse", 1.785, 257)),
)


def test_estimates():
    assert Estimate.of([1.0, 2.0, 3.0]) == (2.0, 1.0)
    assert Estimate.of([4.0]) == (4.0, 0.0)


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"'errors': a row of 3 cells is wanted, got \('a', 1\)"):
        Table("errors", "Errors", TABLE.header, (("a", 1),))


def test_csv_has_all_digits_and_the_spreads():
    rows = list(csv.reader(io.StringIO(to_csv(TABLE))))
    assert rows == [
        ["who", "error", "error, spread", "kernels"],
        ["exact | all", "1.78254999", "0.333", ""],
        ["sparse", "1.785", "", "257"],
    ]


def test_markdown():
    experiment = Experiment("e", "The title", "BKM 4.7", "It was 1.8.", lambda setting: None)
    figure = Figure("gap", "Gap", "m", "Gap", ())
    outcome = Outcome((TABLE,), (Claim("few", "2", True), Claim("best", "3", False)), (figure,))
    text = to_markdown(experiment, outcome)
    lines = text.splitlines()
    assert lines[0] == "# The title" and "BKM 4.7. It was 1.8." in lines
    assert "| exact \\| all | 1.7825 ± 0.33 |         |" in lines
    assert "| sparse       | 1.785         | 257     |" in lines
    assert re.search(r"^\| few +\| 2 +\| yes +\|$", text, re.M)
    assert re.search(r"^\| best +\| 3 +\| \*\*no\*\* +\|$", text, re.M)
    assert "![Gap](gap.png)" in lines
    assert "numbers mean nothing" not in text
    assert "numbers mean nothing" in to_markdown(experiment, outcome, quick=True)


def test_steps_are_told_of():
    heard = []
    setting = Setting(tell=lambda *told: heard.append(told))
    assert list(setting.steps(["a", "b"])) == [0, 1]
    assert heard == [(0, 2, "a"), (1, 2, "b"), (2, 2, "")]
    assert list(Setting().steps(["a"])) == [0]


def test_a_figure_is_drawn_and_closed(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    before = plt.get_fignums()
    x = np.arange(1.0, 20.0)
    lines = (Line("a", x, 1 / x), Line("b", x, 1 / x**2))
    draw(
        Figure("g", "Title", "x", "y", lines, log_x=True, log_y=True, mark=(0.1, "wanted")),
        tmp_path / "g.png",
    )
    assert (tmp_path / "g.png").read_bytes()[:4] == b"\x89PNG"
    assert plt.get_fignums() == before


def test_bars_and_bands_are_drawn(tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    from mercer.plotting import style

    kept = []
    axes_for = style.axes_for
    monkeypatch.setattr(style, "axes_for", lambda *a: kept.append(axes_for(*a)) or kept[-1])
    x = np.arange(1.0, 5.0)
    lines = (
        Line("plain", x, x),
        Line("band", x, x, np.full(4, 0.5)),
        Line("dots", x, 2 * x, dots=True),
        Line("bars", x, 3 * x, np.full(4, 0.25), dots=True),
    )
    draw(Figure("g", "Title", "x", "y", lines), tmp_path / "g.png")
    assert plt.get_fignums() == []
    (ax,) = kept
    assert len(ax.containers) == 2 and len(ax.collections) == 2  # a band, and the bars of one
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == 0.5 and band[:, 1].max() == 4.5
    ends = np.array([segment[:, 1] for segment in ax.collections[1].get_segments()])
    np.testing.assert_allclose(ends, np.stack([3 * x - 0.25, 3 * x + 0.25], axis=1))
    assert [line.get_linestyle() for line in ax.lines] == ["-", "-", "None", "None"]


def test_a_surface_is_drawn_twice(tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    from mercer.plotting import style

    kept = []
    axes_for = style.axes_for
    monkeypatch.setattr(style, "axes_for", lambda *a: kept.append(axes_for(*a)) or kept[-1])
    x, y = np.meshgrid(np.linspace(0.0, 2.0, 5), np.linspace(-1.0, 1.0, 3))
    points = np.array([[0.5, 0.25], [1.5, -0.5]])
    surface = Surface("s", "Title", x + 10.0 * y, (0.0, 2.0, -1.0, 1.0), points)
    draw(surface, tmp_path / "s.png")
    assert (tmp_path / "s.png").read_bytes()[:4] == b"\x89PNG" and plt.get_fignums() == []
    (grey,) = kept
    (image,) = grey.images
    np.testing.assert_array_equal(image.get_array(), surface.values)
    assert image.origin == "lower" and tuple(image.get_extent()) == surface.extent
    np.testing.assert_array_equal(grey.lines[0].get_xydata(), points)
    solid = grey.figure.axes[1]
    assert solid.name == "3d" and len(solid.collections) == 1
    assert solid.get_zlim()[0] < -9.0 and solid.get_zlim()[1] > 11.0


def test_every_experiment_says_what_it_is():
    found = experiments.experiments()
    assert set(found) >= {"laplacian-samples", "sparsity"}
    assert set(found) >= {"abalone-error", "abalone-kernels", "abalone-gap", "gaussians"}
    assert set(found) >= {"online-sinc", "online-friedman", "online-usps", "online-plateau"}
    for name, experiment in found.items():
        assert experiment.name == name and re.fullmatch(r"[a-z0-9-]+", name)
        assert experiment.source.startswith(("BKM ", "SOGP ", "UV "))
        assert experiment.title and experiment.published.endswith(".")
    assert mercer.experiments is experiments
