"""From the citations in the source to an index of the papers' equations.

A citation is a paper's tag, a space and an equation's number: ``(BKM 72)``, ``(SOGP 3.16)``,
``(UV 24b)``. Several are ``(BKM 62, 63 and 64)``; a range, ``(BKM 44 to 48)``, counts as each of
its equations. Other places of a paper are cited by their kind: ``(SOGP, lemma 1)``,
``(BKM Fig. 4)``, ``(BKM Alg. 1.1)``, ``(BKM section 3.3)``. BKM and UV number equations without a
point, so that ``(BKM 3.3)`` is the section too. Words may follow, ``(BKM 64, as corrected)``, and
the brackets may be missing where a sentence carries the citation. Whatever else puts a number after
a tag is malformed: ``BKM72``, ``(BKM eq. 72)``, ``(BKM 44-48)``, and a number that the paper does
not have.

Only comments and strings are read. Nothing outside the standard library is needed, so that the
tests read the citations without Sphinx.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parent.parent / "src" / "mercer"


class Paper(NamedTuple):
    """A paper: its tag, what it is, the form of its equations' numbers, and which it has."""

    tag: str
    title: str
    number: str
    example: str
    has: Callable[[str], bool]


def _up_to(last: int) -> Callable[[str], bool]:
    return lambda number: 1 <= int(number.rstrip("abcd")) <= last


def _in_chapters(**last: int) -> Callable[[str], bool]:
    def has(number: str) -> bool:
        chapter, _, count = number.partition(".")
        return chapter.isalpha() or 1 <= int(count) <= last.get(f"of_{chapter}", 0)

    return has


PAPERS = (
    Paper("BKM", "Smola and Schölkopf, Bayesian Kernel Methods", r"\d+", "72", _up_to(139)),
    Paper(
        "SOGP",
        "Csató and Opper, Sparse On-Line Gaussian Processes",
        r"(?:\d+|[A-G])\.\d+",
        "3.16",
        _in_chapters(of_2=9, of_3=18, of_4=8),
    ),
    Paper(
        "UV",
        "Quiñonero-Candela and Rasmussen, A Unifying View of Sparse Approximate Gaussian Process "
        "Regression",
        r"\d+[a-d]?",
        "24b",
        _up_to(38),
    ),
)
_BY_TAG = {paper.tag: paper for paper in PAPERS}
_KINDS = ("algorithm", "appendix", "figure", "lemma", "section", "table", "theorem")
_SHORT = {"alg.": "algorithm", "fig.": "figure", "sec.": "section"}

_TAG = re.compile(r"(?<![\w/.-])(BKM|SOGP|UV)(?!_?[A-Za-z])", re.IGNORECASE)
_OTHER = re.compile(
    rf",?\s+({'|'.join([*_KINDS, *map(re.escape, _SHORT)])})\s+([A-G]|[\d.]*\d)(?!\w|[-\u2013]\d)",
    re.IGNORECASE,
)
# What puts a number after a tag, in whatever way.
_NUMBERED = re.compile(
    r"[\W_]{0,3}(?:(?:eqn?s?|equations?|no|numbers?|formulae?|algs?|figs?|tabs?|secs?|lem|thm)\b\.?)?"
    r"[\W_]{0,3}(?:[A-G]\.)?\d",
    re.IGNORECASE,
)


class Citation(NamedTuple):
    """One place of a paper that one line of the source cites."""

    tag: str
    label: str
    path: Path
    line: int
    name: str
    what: str


class Malformed(NamedTuple):
    """A line that cites in a form that is none."""

    path: Path
    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class Entry:
    """A place of a paper and all the lines that carry it out."""

    tag: str
    label: str
    citations: tuple[Citation, ...]

    @property
    def anchor(self) -> str:
        """The entry's address on the page of the index."""
        return re.sub(r"\W+", "-", f"{self.tag} {self.label}".lower())


def index(root: Path = SOURCE) -> list[Entry]:
    """Return an entry for each place of a paper that the source cites, in the papers' order."""
    found: dict[tuple[str, str], list[Citation]] = {}
    for path in _files(root):
        citations, _ = read(path.read_text(encoding="utf-8"), path.relative_to(root.parent))
        for citation in citations:
            lines = found.setdefault((citation.tag, citation.label), [])
            if all((c.path, c.line) != (citation.path, citation.line) for c in lines):
                lines.append(citation)
    return [Entry(tag, label, tuple(found[tag, label])) for tag, label in sorted(found, key=_order)]


def malformed(root: Path = SOURCE) -> list[Malformed]:
    """Return every line of the source whose citation has none of the forms."""
    faults = []
    for path in _files(root):
        faults += read(path.read_text(encoding="utf-8"), path.relative_to(root.parent))[1]
    return faults


def _files(root: Path) -> list[Path]:
    """Return the files in alphabetical order, but those that only check others last."""
    return sorted(root.rglob("*.py"), key=lambda path: ("testing" in path.parts, path))


def read(source: str, path: Path = Path("source.py")) -> tuple[list[Citation], list[Malformed]]:
    """Return the citations of one file, and those that are malformed."""
    text = _prose(source)
    scopes = _scopes(ast.parse(source))
    citations: list[Citation] = []
    faults: list[Malformed] = []
    for tag in _TAG.finditer(text):
        line = text.count("\n", 0, tag.start()) + 1
        try:
            labels = _labels(tag.group(), text[tag.end() : tag.end() + 200])
        except ValueError as error:
            shown = " ".join(text[tag.start() : tag.end() + 20].split())
            faults.append(Malformed(path, line, shown, str(error)))
            continue
        name, what = _enclosing(scopes, line)
        citations += [Citation(tag.group(), label, path, line, name, what) for label in labels]
    return citations, faults


def _labels(tag: str, after: str) -> list[str]:
    """Return what a tag cites by the text that follows it; nothing for the tag alone."""
    paper = _BY_TAG.get(tag)
    if paper is None:
        if _NUMBERED.match(after):
            raise ValueError(f"write the tag in capitals, {tag.upper()}")
        return []
    other = _OTHER.match(after)
    if other:
        kind = other[1].lower()
        return [f"{_SHORT.get(kind, kind)} {other[2]}"]
    section = re.match(r"\s+([1-9]\.[1-9])(?![\w.]*\d|[-\u2013]\d)", after)
    if section and tag != "SOGP":
        return [f"section {section[1]}"]
    number = rf"{paper.number}(?!\w|\.\d|[-\u2013]\d|\s[a-d]\))"
    item = rf"{number}(?:\s+to\s+{number})?"
    several = re.match(rf"\s+({item}(?:(?:,|,?\s+and)\s+{item})*)", after)
    if several is None:
        if _NUMBERED.match(after):
            raise ValueError(
                f"write ({tag} {paper.example}), ({tag} {paper.example} to ...) for a range, or "
                f"({tag} section 3.1) for what is no equation"
            )
        return []
    labels: list[str] = []
    for part in re.split(r",?\s+and\s+|,\s+", several[1]):
        labels += _expanded(re.split(r"\s+to\s+", part))
    for label in labels:
        if not paper.has(label):
            raise ValueError(f"{tag} has no equation {label}")
    return labels


def _expanded(ends: list[str]) -> list[str]:
    """Return the number alone, or all numbers from the first to the last."""
    if len(ends) == 1:
        return ends
    chapters, counts = zip(*(end.rpartition(".")[::2] for end in ends), strict=True)
    if chapters[0] != chapters[1] or not all(count.isdigit() for count in counts):
        raise ValueError(f"{ends[0]} to {ends[1]} is no range: name each equation")
    first, last = map(int, counts)
    if first >= last:
        raise ValueError(f"{ends[0]} to {ends[1]} is no range: it does not go up")
    before = f"{chapters[0]}." if chapters[0] else ""
    return [f"{before}{count}" for count in range(first, last + 1)]


def _prose(source: str) -> str:
    """Return the source with all but its comments and strings blanked, places unchanged."""
    lines = source.splitlines(keepends=True)
    kept = [["\n" if c == "\n" else " " for c in line] for line in lines]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        # f-strings are tokens of their own from Python 3.12 on
        if token.type == tokenize.COMMENT:
            start = (token.start[0], token.start[1] + 1)
        elif token.type == tokenize.STRING or "FSTRING" in tokenize.tok_name[token.type]:
            start = token.start
        else:
            continue
        for number in range(start[0], token.end[0] + 1):
            left = start[1] if number == start[0] else 0
            right = token.end[1] if number == token.end[0] else len(lines[number - 1])
            kept[number - 1][left:right] = lines[number - 1][left:right]
    return "".join("".join(line) for line in kept)


class _Scope(NamedTuple):
    first: int
    last: int
    name: str
    what: str


def _scopes(tree: ast.Module) -> list[_Scope]:
    """Return the functions and classes that have a docstring, and the module, outermost first."""
    return [_Scope(1, 10**9, "", _first_line(tree) or ""), *_inside(tree, "")]


def _inside(node: ast.AST, prefix: str) -> Iterator[_Scope]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _inside(child, prefix)
            continue
        name = prefix + child.name
        what = _first_line(child)
        if what is not None:
            first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
            yield _Scope(first, child.end_lineno or child.lineno, name, what)
        yield from _inside(child, f"{name}.")


def _first_line(
    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
) -> str | None:
    docstring = ast.get_docstring(node)
    return docstring.partition("\n")[0] if docstring else None


def _enclosing(scopes: list[_Scope], line: int) -> tuple[str, str]:
    inner = max((s for s in scopes if s.first <= line <= s.last), key=lambda s: (s.first, -s.last))
    return inner.name, inner.what


def _order(key: tuple[str, str]) -> tuple[object, ...]:
    """Sort by paper, equations before other places, numbers as numbers."""
    tag, label = key
    other = " " in label
    parts = re.findall(r"\d+|[A-Za-z]+", label)
    numbers = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in parts]
    return ([paper.tag for paper in PAPERS].index(tag), other, numbers)
