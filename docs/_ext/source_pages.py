"""A page for each module of Mercer with its source, in which every line has an address.

`sphinx.ext.viewcode` has addresses for functions and classes only, and none for modules that no
page documents.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import equations
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

ROOT = equations.SOURCE.parent


def page_name(path: Path) -> str:
    """Return the page that shows a file of the package, given relative to its parent."""
    return f"source/{path.with_suffix('').as_posix()}"


def line_uri(env: BuildEnvironment, path: Path, line: int) -> str:
    """Return the address of a line, seen from the page that is being read."""
    return f"{env.app.builder.get_relative_uri(env.docname, page_name(path))}#L-{line}"


def object_uri(module: ModuleType, fullname: str, up: str) -> str | None:
    """Return the address of an object's first line, `up` leading to the root of the docs."""
    found: Any = module
    for name in fullname.split("."):
        found = inspect.getattr_static(found, name, None)
    if isinstance(found, property):
        found = found.fget
    elif isinstance(found, classmethod | staticmethod):
        found = found.__func__
    try:
        found = inspect.unwrap(found)
        path = Path(inspect.getsourcefile(found) or "").resolve().relative_to(ROOT)
        line = inspect.getsourcelines(found)[1]
    except (TypeError, ValueError, OSError):  # data, and what is not Mercer's
        return None
    return f"{up}{page_name(path)}.html#L-{line}"


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the pages, for the `html-collect-pages` event."""
    highlighter = getattr(app.builder, "highlighter", None)
    if highlighter is None:  # not HTML
        return
    for path in sorted(equations.SOURCE.rglob("*.py")):
        inside = path.relative_to(ROOT)
        code = highlighter.highlight_block(
            path.read_text(encoding="utf-8"), "python", linenos="inline", linespans="L"
        )
        title = inside.as_posix()
        body = f'<h1>{title}</h1><div class="mercer-source">{code}</div>'
        yield page_name(inside), {"title": title, "body": body, "parents": []}, "page.html"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the pages."""
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
