"""Whether a built site is whole: ``python docs/check_site.py build/docs``, as `make docs` runs it.

Every public name has a place on the page of its module, and every such page in the tree of pages;
nothing is loaded from the network, and the index of equations leads to lines that are there.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import mercer

_LOADED = re.compile(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="([^"]+)')
_ELSEWHERE = re.compile(r"(https?:)?//|/")
_SOURCE_LINE = re.compile(r'href="(source/[^"#]+)#(L-\d+)"')


def public_names() -> Iterator[tuple[str, str]]:
    """Yield module and name of everything that is promised to stay."""
    modules = [f"mercer.{info.name}" for info in pkgutil.iter_modules(mercer.__path__)]
    for module in ("mercer", *modules, "mercer.cli.model"):
        for name in getattr(importlib.import_module(module), "__all__", ()):
            if not name.startswith("_") and module != "mercer.cli":
                yield module, name


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong with the site in a folder."""
    for module, name in public_names():
        page = site / "api" / f"{module}.html"
        there = page.exists() and re.search(
            rf'(?:id|href)="[^"]*mercer[\w.]*\.{name}"', page.read_text(encoding="utf-8")
        )
        if not there:
            yield f"{module}.{name} has no place in api/{page.name}"
    pages = list(site.rglob("*.html"))
    for page in pages:
        for uri in _LOADED.findall(page.read_text(encoding="utf-8")):
            if _ELSEWHERE.match(uri):
                yield f"{page.relative_to(site)} loads {uri}"
    for page in site.glob("api/**/*.html"):
        if "current-page" not in page.read_text(encoding="utf-8"):
            yield f"{page.relative_to(site)} is not in the tree of pages beside it"
    links = _SOURCE_LINE.findall((site / "equations.html").read_text(encoding="utf-8"))
    if len(links) < 20:
        yield f"equations.html has {len(links)} links to lines"
    for link, anchor in links:
        if f'id="{anchor}"' not in (site / link).read_text(encoding="utf-8"):
            yield f"equations.html links to {link}#{anchor}, which is not there"


if __name__ == "__main__":
    sys.exit("\n".join(problems(Path(sys.argv[1]))) or None)
