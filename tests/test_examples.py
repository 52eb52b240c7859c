"""The examples run, without a warning, and write their pictures."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.mark.parametrize("name", sorted(p.name for p in EXAMPLES.glob("plot_*.py")))
def test_example(name, tmp_path):
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("example", EXAMPLES / name)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    picture = example.main(tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10_000
