"""Docstrings as they are written: |K|, x_i and kernel_ are formulas and names, not markup.

Paragraphs of lines ``name : what it is``, as small classes have them, become lists. Runs after
numpydoc has made reStructuredText of the sections it knows.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from sphinx.application import Sphinx

_CODE = re.compile(r"(``.*?``|`[^`]*`)")
_REFERENCE = re.compile(r"(?<=[A-Za-z0-9])_(?![\w`])")
_FIELD = re.compile(r"(\s*)(\w+(?:, \w+)*) : (\S.*)")


def plain(lines: list[str]) -> list[str]:
    """Return the lines with bars and trailing underscores escaped, but for code."""
    out: list[str] = []
    literal: int | None = None  # the indentation above which lines are a literal block
    example = False
    for line in lines:
        indentation = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indentation <= literal:
            literal = None
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if literal is not None or example:
            out.append(line)
            continue
        if line.rstrip().endswith("::") or line.lstrip().startswith(".. code-block"):
            literal = indentation
        out.append("".join(_escaped(part) for part in _CODE.split(line)))
    return out


def _escaped(part: str) -> str:
    if part.startswith("`"):
        return part
    return _REFERENCE.sub(r"\\_", part.replace("|", r"\|"))


def listed(lines: list[str]) -> list[str]:
    """Return the lines with the paragraphs that describe fields as lists."""
    out: list[str] = []
    for filled, group in groupby(lines, key=lambda line: bool(line.strip())):
        paragraph = list(group)
        first = _FIELD.match(paragraph[0]) if filled else None
        if first is None or not all(_belongs(line, first[1]) for line in paragraph):
            out += paragraph
            continue
        for line in paragraph:
            field = _FIELD.match(line)
            is_new = field is not None and field[1] == first[1]
            out.append(f"{field[1]}- ``{field[2]}`` : {field[3]}" if is_new else line)
    return out


def _belongs(line: str, margin: str) -> bool:
    """Tell whether a line describes a field, or continues one."""
    field = _FIELD.match(line)
    return (field is not None and field[1] == margin) or line.startswith(f"{margin}  ")


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite the lines in place, for the `autodoc-process-docstring` event."""
    lines[:] = plain(listed(lines))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the rewriting."""
    app.connect("autodoc-process-docstring", process, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
