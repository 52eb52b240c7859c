"""`mercer.show_versions`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import mercer
from mercer import versions
from mercer.compute import thread_count
from mercer.linalg import _twins

ROOT = Path(__file__).resolve().parents[1]


def test_what_is_printed(capsys):
    mercer.show_versions()
    printed = capsys.readouterr().out
    assert f"mercer:        {mercer.__version__}\n" in printed
    for title in ("system", "packages", "optional", "threads"):
        assert f"{title}\n" in printed
    for name in versions.REQUIRED:
        assert re.search(rf"^    {name}: +[0-9]", printed, re.M)
    assert "blas" in printed and "compiled" in printed


def test_what_is_missing_is_said(monkeypatch, capsys):
    monkeypatch.setattr(versions, "OPTIONAL", ("no-such-package",))
    assert versions.environment()["optional"] == {"no-such-package": None}
    mercer.show_versions()
    assert "no-such-package: not installed" in capsys.readouterr().out


def test_threads_and_loops(monkeypatch):
    threads = versions.environment()["threads"]
    assert threads["mercer"] == thread_count()
    assert len(threads) >= 3  # at least one BLAS
    monkeypatch.setattr(versions, "loops", lambda: _twins)
    assert versions.environment()["threads"]["loops"].startswith("NumPy, not compiled")


def test_the_lists_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def names(requirements):
        return {re.match(r"[\w-]+", text)[0] for text in requirements}

    assert set(versions.REQUIRED) == names(project["dependencies"])
    extras = project["optional-dependencies"]
    used = set().union(*(names(extras[e]) for e in ("plot", "cli", "l1", "distributed")))
    assert used <= {*versions.OPTIONAL, *versions.REQUIRED}


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="module 'mercer' has no attribute 'nothing'"):
        _ = mercer.nothing
    assert mercer.metrics.__name__ == "mercer.metrics"
