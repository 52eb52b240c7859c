"""The docs' code runs as written, their links lead somewhere, the index of equations is whole."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from mercer import registry

from .page_blocks import has_code, run_blocks, write_tables

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GENERATED = {"api", "auto_examples", "_build"}
PAGES = sorted(
    page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in GENERATED
)
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def with_code() -> list[Path]:
    return [page for page in PAGES if has_code(page.read_text(encoding="utf-8"))]


# --- pages ----------------------------------------------------------------------------------------


def test_there_is_code() -> None:
    assert len(with_code()) >= 10


@pytest.mark.parametrize("page", with_code(), ids=name_of)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    write_tables(tmp_path)
    # classes that tests have registered are not a page's to know, nor a page's own the others';
    # those of Mercer's packages that a page is the first to import stay
    for name, cls in list(registry._CLASSES.items()):
        if not cls.__module__.startswith("mercer."):
            monkeypatch.delitem(registry._CLASSES, name)
    try:
        commands = run_blocks(page.read_text(encoding="utf-8"), name_of(page))
        assert commands >= 4 or page.name != "cli.md"
    finally:
        for name, cls in list(registry._CLASSES.items()):
            if not cls.__module__.startswith("mercer."):
                del registry._CLASSES[name]


def test_a_block_that_fails_is_found() -> None:
    with pytest.raises(ZeroDivisionError):
        run_blocks("```python\n1 / 0\n```\n", "page")
    with pytest.raises(AssertionError, match="Expected"):
        run_blocks("```python\na = 1\n```\n\n```pycon\n>>> a\n2\n```\n", "page")
    with pytest.raises(AssertionError, match="absent"):
        run_blocks("```sh\nmercer info absent.mercer  # that is not there\n```\n", "page")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", link):
            assert (page.parent / link).exists(), f"{name_of(page)} links to {link}"


def test_troubleshooting_quotes_what_the_code_says() -> None:
    text = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    said = [
        node.value
        for path in (ROOT / "src" / "mercer").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    quoted = re.findall(r'^### .*?"([^"]+)"', text, re.MULTILINE)
    assert len(quoted) > 8
    for quote in quoted:
        if re.search("GPRegressor is expecting|contains NaN|'Pipeline' object", quote):
            continue  # scikit-learn's, or in its words
        part = quote.removeprefix("X ").removesuffix(" ...")
        assert any(part in text for text in said), f"no message has {part!r}"


# --- equations ------------------------------------------------------------------------------------


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def equations() -> Iterator[ModuleType]:
    module = load(DOCS / "equations.py")
    module.index = cache(
        module.index
    )  # it reads the whole package, and nobody changes what it says
    yield module
    del sys.modules["equations"]


def test_no_equation_is_listed_twice(equations: ModuleType) -> None:
    entries = Counter((e.tag, e.label) for e in equations.index())
    assert entries and max(entries.values()) == 1
    anchors = Counter(e.anchor for e in equations.index())
    assert max(anchors.values()) == 1
    for entry in equations.index():
        places = Counter((c.path, c.line) for c in entry.citations)
        assert max(places.values()) == 1, entry


def test_no_equation_is_missing_that_the_code_cites(equations: ModuleType) -> None:
    """Against a plain search of the text, which knows nothing of tokens or ranges."""
    listed = {
        (c.tag, c.label, c.path.as_posix(), c.line)
        for entry in equations.index()
        for c in entry.citations
    }
    simple = re.compile(r"\((BKM|UV|SOGP) (\d+[a-d]?|\d\.\d+)[),]")
    found = 0
    for path in sorted((ROOT / "src" / "mercer").rglob("*.py")):
        inside = path.relative_to(ROOT / "src").as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for tag, label in simple.findall(line):
                kind = "section " if tag != "SOGP" and "." in label else ""
                assert (tag, kind + label, inside, number) in listed
                found += 1
    assert found > 15


def test_the_index_shows_the_cited_line(equations: ModuleType) -> None:
    for entry in equations.index():
        for citation in entry.citations:
            lines = (ROOT / "src" / citation.path).read_text(encoding="utf-8").splitlines()
            assert entry.tag in lines[citation.line - 1]
            assert citation.what


def test_every_citation_is_well_formed(equations: ModuleType) -> None:
    faults = [f"src/{f.path}:{f.line}: {f.text!r}: {f.reason}" for f in equations.malformed()]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("(BKM 72)", ["72"]),
        ("(SOGP 3.16)", ["3.16"]),
        ("(SOGP E.4)", ["E.4"]),
        ("(UV 24b)", ["24b"]),
        ("(BKM 44 to 48)", ["44", "45", "46", "47", "48"]),
        ("(SOGP 3.15 to 3.17)", ["3.15", "3.16", "3.17"]),
        ("(BKM 62, 63 and 64)", ["62", "63", "64"]),
        ("(BKM 44 to 46, and 62)", ["44", "45", "46", "62"]),
        ("(BKM 64, as corrected)", ["64"]),
        ("(BKM 62; SOGP 2.7)", ["62", "2.7"]),
        ("(SOGP, lemma 1)", ["lemma 1"]),
        ("(BKM Fig. 4)", ["figure 4"]),
        ("(BKM Alg. 1.1)", ["algorithm 1.1"]),
        ("(BKM 3.3)", ["section 3.3"]),
        ("C of SOGP 2.5, so that", ["2.5"]),
        ("as in BKM 62.", ["62"]),
        ("the BKM paper has 3 of them", []),
    ],
)
def test_forms_of_citations(equations: ModuleType, text: str, labels: list[str]) -> None:
    for source in (f"# {text}\n", f'"""{text}"""\n', f"x = f'{text}'\n"):
        citations, faults = equations.read(source)
        assert [c.label for c in citations] == labels
        assert not faults


@pytest.mark.parametrize(
    "text",
    [
        "BKM72",
        "(BKM eq. 72)",
        "(BKM equation 72)",
        "(BKM Eq 72)",
        "BKM (72)",
        "BKM-72",
        "BKM_72",
        "(BKM: 72)",
        "(BKM, 72)",
        "(bkm 72)",
        "(Sogp 3.16)",
        "(BKM 44-48)",
        "(BKM 44\N{EN DASH}48)",
        "(BKM 48 to 44)",
        "(SOGP 2.9 to 3.1)",
        "(UV 20a to 20b)",
        "(BKM 72a)",
        "(UV 24 b)",
        "(SOGP 3)",
        "(BKM 0)",
        "(BKM 140)",
        "(SOGP 3.19)",
        "(SOGP 5.1)",
        "(UV 39)",
        "(BKM Figs. 4 and 5)",
    ],
)
def test_malformed_citations_are_refused(equations: ModuleType, text: str) -> None:
    citations, faults = equations.read(f"def f():\n    # {text}\n    pass\n")
    assert not citations
    assert [f.line for f in faults] == [2]
    assert faults[0].reason


def test_where_a_citation_stands(equations: ModuleType) -> None:
    source = '''"""A module (BKM 1)."""

BKM72 = "no citation: it is code"


class Thing:
    """A thing.

    In full (BKM 2), and (BKM
    3).
    """

    @property
    def part(self):
        """Part of it."""
        # carried out here (BKM 4
        # to 6)
        return 1  # and here (BKM 7)

    def bare(self):
        return 2  # (BKM 8)
'''
    citations, faults = equations.read(source)
    assert not faults
    found = [(c.label, c.line, c.name, c.what) for c in citations]
    assert found == [
        ("1", 1, "", "A module (BKM 1)."),
        ("2", 9, "Thing", "A thing."),
        ("3", 9, "Thing", "A thing."),
        ("4", 16, "Thing.part", "Part of it."),
        ("5", 16, "Thing.part", "Part of it."),
        ("6", 16, "Thing.part", "Part of it."),
        ("7", 18, "Thing.part", "Part of it."),
        ("8", 21, "Thing", "A thing."),
    ]


def test_several_lines_share_an_entry(equations: ModuleType, tmp_path: Path) -> None:
    package = tmp_path / "mercer"
    package.mkdir()
    (package / "a.py").write_text('"""A (BKM 62), (BKM 9)."""\n# (BKM 62)\n')
    (package / "b.py").write_text('"""B (SOGP 3.9), (SOGP 3.16), (BKM 62) and (BKM 62)."""\n')
    entries = equations.index(package)
    assert [(e.tag, e.label) for e in entries] == [
        ("BKM", "9"),
        ("BKM", "62"),
        ("SOGP", "3.9"),
        ("SOGP", "3.16"),
    ]
    assert [(str(c.path), c.line) for c in entries[1].citations] == [
        ("mercer/a.py", 1),
        ("mercer/a.py", 2),
        ("mercer/b.py", 1),
    ]


# --- the site -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """All but the gallery's figures; `make docs` makes these too."""
    for needed in ("sphinx", "sphinx_gallery", "numpydoc", "furo", "myst_parser"):
        pytest.importorskip(needed)
    out = tmp_path / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, str(DOCS), str(out)],
        env={**os.environ, "MERCER_DOCS_GALLERY": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert len(list(out.rglob("*.html"))) > 100
    check = load(DOCS / "check_site.py")
    assert list(check.problems(out)) == []
    # and the check finds what it is there for
    page = out / "api" / "mercer.metrics.html"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("crps", "") + '<img src="https://example.org/a.png">')
    assert list(check.problems(out)) == [
        "mercer.metrics.crps has no place in api/mercer.metrics.html",
        "mercer.metrics.neg_crps has no place in api/mercer.metrics.html",
        "api/mercer.metrics.html loads https://example.org/a.png",
    ]
