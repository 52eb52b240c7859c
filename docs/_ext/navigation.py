"""The tree of all pages beside each page, as furo shows it.

Sphinx and furo make it anew for every page, by copying and parsing the whole of it: of five hundred
pages that was two thirds of the build. Here it is written from the contents of the environment.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_ARROW = '<span class="icon"><svg><use href="#svg-arrow-right"></use></svg></span>'


def parts(env: BuildEnvironment, page: str) -> Iterator[tuple[str | None, list[tuple[str, str]]]]:
    """Yield, for each table of contents on a page, its caption and pairs of title and page."""
    for table in env.tocs[page].findall(addnodes.toctree):
        entries = [
            (title or env.titles[name].astext(), name)
            for title, name in table["entries"]
            if name in env.titles and name != page
        ]
        if entries:
            yield table.get("caption"), entries


class Tree:
    """The tree, seen from one page."""

    def __init__(self, app: Sphinx, page: str) -> None:
        self._app, self._page = app, page
        self._boxes = 0

    def html(self) -> str:
        """Return the whole of it."""
        out = []
        for caption, entries in parts(self._app.env, self._app.config.root_doc):
            if caption:
                out.append(
                    f'<p class="caption" role="heading"><span class="caption-text">'
                    f"{escape(caption)}</span></p>"
                )
            out.append(self._list(entries, 1)[0])
        return "\n".join(out)

    def _list(self, entries: list[tuple[str, str]], depth: int) -> tuple[str, bool]:
        """Return a list of pages with those under them, and whether this page is among them."""
        items, any_current = [], False
        for title, name in entries:
            item, current = self._item(title, name, depth)
            items.append(item)
            any_current = any_current or current
        mark = ' class="current"' if any_current else ""
        return f"<ul{mark}>\n" + "\n".join(items) + "\n</ul>", any_current

    def _item(self, title: str, name: str, depth: int) -> tuple[str, bool]:
        here = name == self._page
        below = [entry for _, entries in parts(self._app.env, name) for entry in entries]
        number = self._boxes = self._boxes + bool(below)
        inner, inside = self._list(below, depth + 1) if below else ("", False)
        classes = [f"toctree-l{depth}"]
        if here or inside:
            classes.append("current")
        if below:
            classes.append("has-children")
        if here:
            classes.append("current-page")
        uri = "#" if here else self._app.builder.get_relative_uri(self._page, name)
        link = "current reference internal" if here else "reference internal"
        text = escape(title)
        item = f'<li class="{" ".join(classes)}"><a class="{link}" href="{uri}">{text}</a>'
        if below:
            box = f"toctree-checkbox-{number}"
            checked = " checked" if here or inside else ""
            item += (
                f'<input{checked} id="{box}" name="{box}" class="toctree-checkbox" role="switch" '
                f'type="checkbox" aria-label="Toggle navigation of {text}">'
                f'<label for="{box}">{_ARROW}</label>{inner}'
            )
        return item + "</li>", here or inside


def _forget(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    context.pop("toctree", None)  # furo calls it if it is there


def _put(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    context["furo_navigation_tree"] = Tree(app, page).html()


def setup(app: Sphinx) -> dict[str, Any]:
    """Come before and after the theme, whose own priority is 500."""
    app.connect("html-page-context", _forget, priority=400)
    app.connect("html-page-context", _put, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
