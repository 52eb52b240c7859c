"""The code of the how-to pages runs as it is written."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGES = Path(__file__).resolve().parent.parent.parent / "docs" / "extending"
NAME = "mercer_page"
POINTS = ["kernel", "likelihood", "engine"]


@pytest.fixture
def module(monkeypatch):
    """A module to run a page in: classes can be pickled only if they are in one."""
    module = ModuleType(NAME)
    monkeypatch.setitem(sys.modules, NAME, module)
    return module


@pytest.fixture
def no_classes_left():
    """Forget the classes that a page registers: pages may use the same names."""
    from mercer import registry

    yield
    for name, cls in list(registry._CLASSES.items()):  # and not those of modules that it imported
        if cls.__module__ == NAME:
            del registry._CLASSES[name], registry._NAMES[cls]


@pytest.mark.parametrize("point", POINTS)
def test_page(point, module, no_classes_left, capsys):
    page = (PAGES / f"{point}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert any(f"check_{point}(" in block for block in blocks)
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"{point}.md, block {number}", "exec"), vars(module))
    assert "rules hold" in capsys.readouterr().out


def test_every_extension_point_has_a_page():
    assert {p.stem for p in PAGES.glob("*.md")} >= set(POINTS)
