"""The README's code runs, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mercer.cli.methods import METHODS

from .page_blocks import run_blocks, write_tables

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = sorted(
    {
        link.split("#")[0]
        for link in re.findall(r"\]\(([^)\s]+)\)", README)
        if not re.match(r"[a-z]+:|#", link)
    }
)


# The README says that its fit ends at a bound, and why.
@pytest.mark.filterwarnings("ignore::mercer.errors.BoundWarning")
def test_code_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    assert run_blocks(README, "README.md") >= 2
    (row, *_) = (tmp_path / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert row.endswith("y_mean,y_std,y_lower,y_upper")


def test_what_there_is_without_code_takes_labels_too() -> None:
    section = README.split("## Without writing code")[1].split("\n## ")[0]
    methods = re.findall(r"--method ([\w-]+)", section)
    assert "label" in section and methods and all(METHODS[name].of_classes for name in methods)


@pytest.mark.parametrize("link", LINKS)
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists(), f"README.md links to {link}, which is not in the repository"
