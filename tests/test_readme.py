"""The README's code runs, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
LINKS = sorted(
    {
        link.split("#")[0]
        for link in re.findall(r"\]\(([^)\s]+)\)", README)
        if not re.match(r"[a-z]+:|#", link)
    }
)


def test_the_readme_has_code_and_links() -> None:
    assert BLOCKS
    assert LINKS


# The README says that its fit ends at a bound, and why.
@pytest.mark.filterwarnings("ignore::mercer.errors.BoundWarning")
def test_code_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block may use the names of the blocks before it, as a reader would."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS, start=1):
        exec(compile(block, f"README.md, python block {number}", "exec"), names)


@pytest.mark.parametrize("link", LINKS)
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists(), f"README.md links to {link}, which is not in the repository"
