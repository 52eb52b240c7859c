"""Directive ``equation-index``: a table for each paper, equation by equation, linked to the source.

The pages of the source, one a module with an address for each line, are made by `source_pages`.
"""

from __future__ import annotations

from typing import Any

import equations
from docutils import nodes
from source_pages import line_uri
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

_logger = logging.getLogger(__name__)


class EquationIndex(SphinxDirective):
    """Put the index here."""

    def run(self) -> list[nodes.Node]:
        """Return a heading and a table for each paper that is cited."""
        for fault in equations.malformed():
            _logger.warning(
                "malformed citation %r: %s",
                fault.text,
                fault.reason,
                location=f"src/{fault.path}:{fault.line}",
            )
        entries = equations.index()
        self.env.note_reread()  # any file may cite
        out: list[nodes.Node] = []
        for paper in equations.PAPERS:
            own = [entry for entry in entries if entry.tag == paper.tag]
            if own:
                section = nodes.section(ids=[paper.tag.lower()], names=[paper.tag.lower()])
                section += nodes.title(text=f"{paper.tag}: {paper.title}")
                section += self._table(own)
                out.append(section)
        return out

    def _table(self, entries: list[equations.Entry]) -> nodes.table:
        table = nodes.table(classes=["equation-index"])
        group = nodes.tgroup(cols=3)
        group += [nodes.colspec(colwidth=width) for width in (15, 55, 30)]
        head = nodes.thead()
        head += _row([nodes.paragraph(text=t) for t in ("Equation", "What", "Line")])
        group += head
        body = nodes.tbody()
        for entry in entries:
            body += self._rows(entry)
        group += body
        table += group
        return table

    def _rows(self, entry: equations.Entry) -> list[nodes.row]:
        rows = []
        for number, citation in enumerate(entry.citations):
            what = nodes.paragraph()
            if citation.name:
                what += [nodes.literal(text=citation.name), nodes.Text(": ")]
            what += _prose(citation.what)
            place = f"{citation.path.as_posix().removeprefix('mercer/')}:{citation.line}"
            uri = line_uri(self.env, citation.path, citation.line)
            link = nodes.paragraph()
            link += nodes.reference("", "", nodes.literal(text=place), refuri=uri, internal=True)
            cells = [what, link]
            if number == 0:
                label = nodes.paragraph(text=f"{entry.tag} {entry.label}", ids=[entry.anchor])
                cells = [label, *cells]
            row = _row(cells)
            if number == 0 and len(entry.citations) > 1:
                row[0]["morerows"] = len(entry.citations) - 1
            rows.append(row)
        return rows


def _prose(text: str) -> list[nodes.Node]:
    """Return text whose names in single or double backticks are set as code."""
    out: list[nodes.Node] = []
    for part, is_code in zip(text.replace("``", "`").split("`"), _alternating(), strict=False):
        if part:
            out.append(nodes.literal(text=part) if is_code else nodes.Text(part))
    return out


def _alternating() -> Any:
    while True:
        yield False
        yield True


def _row(cells: list[nodes.paragraph]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        row += nodes.entry("", cell)
    return row


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("equation-index", EquationIndex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
