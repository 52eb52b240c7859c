"""The gallery's examples run, without a warning, and draw."""

from __future__ import annotations

import io
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("plot_*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 9


@pytest.mark.slow  # `make docs` runs them too
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("pandas")
    plt.switch_backend("Agg")
    plt.close("all")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    names = runpy.run_path(str(path), run_name="__main__")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    try:
        assert len(figures) >= 2
        for figure in figures:
            picture = io.BytesIO()
            figure.savefig(picture, dpi=50)
            assert len(picture.getvalue()) > 5_000, "an empty picture"
    finally:
        plt.close("all")
    assert len(capsys.readouterr().out.splitlines()) >= 2, "an example prints a few numbers"
    # what the gallery takes for its title
    title, line = names["__doc__"].strip().splitlines()[:2]
    assert line == "=" * len(title)
    assert path.read_text(encoding="utf-8").count("\n# %%\n") >= 3
