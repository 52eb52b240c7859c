"""The API pages: one for each public module and one for each name in its ``__all__``.

They are written before Sphinx looks for its sources, so that a new class appears by itself and a
module that does not exist is not missed. A name that several modules have is documented once, under
the shortest; the others link there.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import equations
from source_pages import object_uri, page_name
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

import mercer

_logger = logging.getLogger(__name__)

# The command line has a page of its own, but for what its files hold.
_LEFT_OUT = {"cli"}
_ALSO = ("mercer.cli.model",)
# Packages whose modules are public themselves: each engine is one.
_OF_MODULES = {"inference"}
# What a user meets first; the others follow in alphabetical order.
_FIRST = [
    "mercer",
    "mercer.estimators",
    "mercer.kernels",
    "mercer.likelihoods",
    "mercer.means",
    "mercer.priors",
    "mercer.params",
    "mercer.posterior",
    "mercer.metrics",
    "mercer.plotting",
    "mercer.datasets",
    "mercer.compat",
    "mercer.experiments",
    "mercer.testing",
    "mercer.errors",
]


class Names(NamedTuple):
    """What a module offers."""

    pages: list[str]  # functions and classes
    data: list[str]


@cache
def modules() -> dict[str, ModuleType]:
    """Return the public modules by name."""
    found = {"mercer": mercer}
    for info in pkgutil.iter_modules(mercer.__path__):
        if info.name.startswith("_") or info.name in _LEFT_OUT:
            continue
        try:
            module = importlib.import_module(f"mercer.{info.name}")
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("mercer"):
                raise
            _logger.info("mercer.%s is left out: %s is not installed", info.name, error.name)
            continue
        if names(module).pages:
            found[module.__name__] = module
        if info.name in _OF_MODULES:
            for inner in pkgutil.iter_modules(module.__path__):
                if not inner.name.startswith("_"):
                    inside = importlib.import_module(f"{module.__name__}.{inner.name}")
                    found[inside.__name__] = inside
    found.update((name, importlib.import_module(name)) for name in _ALSO)
    order = {name: place for place, name in enumerate(_FIRST)}
    return dict(sorted(found.items(), key=lambda item: (order.get(item[0], len(order)), item[0])))


def names(module: ModuleType) -> Names:
    """Return the public names of a module."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
    own = {name: getattr(module, name) for name in listed if not name.startswith("__")}
    pages = [n for n, v in own.items() if isinstance(v, type) or inspect.isroutine(v)]
    data = [n for n, v in own.items() if n not in pages and not isinstance(v, ModuleType)]
    return Names(sorted(pages, key=str.lower), sorted(data, key=str.lower))


@cache
def homes() -> dict[int, str]:
    """Return where each object is documented, by its identity: the module of the shortest name."""
    where: dict[int, str] = {}
    for module in sorted(modules().values(), key=lambda m: (m.__name__.count("."), m.__name__)):
        for name in names(module).pages:
            where.setdefault(id(getattr(module, name)), f"{module.__name__}.{name}")
    return where


def write(folder: Path) -> None:
    """Write the pages of the modules, and leave files that would not change alone."""
    folder.mkdir(exist_ok=True)
    found = modules()
    where = homes()
    texts = {f"{name}.rst": _page(module, where) for name, module in found.items()}
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()
    for path in (folder / "objects").glob("*.rst"):  # of names that are gone
        if path.stem not in where.values():
            path.unlink()


def _page(module: ModuleType, where: dict[int, str]) -> str:
    name, public = module.__name__, names(module)
    lines = [name, "=" * len(name), "", f".. automodule:: {name}", "   :no-members:", ""]
    lines += [f".. currentmodule:: {name}", ""]
    own, elsewhere = [], []
    for item in public.pages:
        home = where[id(getattr(module, item))]
        (own if home == f"{name}.{item}" else elsewhere).append(home)
    if own:
        lines += [".. autosummary::", "   :toctree: objects", "   :nosignatures:", ""]
        lines += [f"   {home.rpartition('.')[2]}" for home in own] + [""]
    if elsewhere:
        lines += ["Also here, documented under a shorter name:", ""]
        lines += [".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {home}" for home in elsewhere] + [""]
    for item in public.data:
        lines += [f".. autodata:: {name}.{item}", ""]
    return "\n".join(lines)


class Members(NamedTuple):
    """The public members of a class."""

    own: list[tuple[str, str]]  # the directive's kind, and the name
    inherited: dict[str, list[str]]  # by the class whose page has them


def members(fullname: str) -> Members:
    """Return which members a class's page documents, and which are on the pages of its bases.

    A member that a class without a page defines belongs to the page of the most basic class with
    one that has it. Members of other packages' classes are left out.
    """
    module_name, _, name = fullname.rpartition(".")
    cls = getattr(importlib.import_module(module_name), name)
    where = homes()
    documented = [c for c in cls.__mro__ if id(c) in where]
    own: list[tuple[str, str]] = []
    inherited: dict[str, list[str]] = {}
    for member in sorted(dir(cls), key=str.lower):
        definer = next((c for c in cls.__mro__ if member in vars(c)), None)
        if definer is None or not definer.__module__.startswith("mercer"):
            continue
        kind = _kind(member, vars(definer)[member])
        if kind is None:
            continue
        holders = [c for c in documented if _holds(c, member, definer)]
        if holders[-1] is cls:
            own.append((kind, member))
        else:
            inherited.setdefault(where[id(holders[-1])], []).append(member)
    return Members(own, inherited)


def _kind(name: str, value: Any) -> str | None:
    """Return how a member is documented, None where it is not."""
    if name.startswith("_") and name != "__call__":
        return None
    if isinstance(value, property):
        return "property"
    routine = inspect.isroutine(value) or isinstance(value, classmethod | staticmethod)
    # scikit-learn puts set_fit_request and its kin, and namedtuple its fields, on the class itself
    foreign = type(value).__module__.startswith(("sklearn", "_collections", "collections"))
    return "method" if routine and not foreign else None


def _holds(cls: type, member: str, definer: type) -> bool:
    return next((c for c in cls.__mro__ if member in vars(c)), None) is definer


def resolve(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Lead a reference to where its object is documented, for the `missing-reference` event.

    The name may be that of a module which has the object too, or alone if no other is called so, or
    that of a member after its class's, `Posterior.mean`.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    if node.get("reftype") == "mod":
        return _source_of(app, node, content)
    where = homes()
    module_name, _, name = target.rpartition(".")
    home = None
    for place in (module_name, node.get("py:module")):
        found = getattr(sys.modules.get(place or ""), name, None)
        home = home or where.get(id(found))
    if home is None:
        first, *members = target.split(".")
        alike = [full for full in where.values() if full.rpartition(".")[2] == first]
        home = ".".join([*alike, *members]) if len(alike) == 1 else None
    if home is None:
        return None
    objects = env.get_domain("py").objects
    if home not in objects:
        return None
    entry = objects[home]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, home)


def _source_of(app: Sphinx, node: Any, content: Any) -> Any:
    """Lead a reference to a module without a page to its source."""
    path = equations.SOURCE.parent / (node["reftarget"].replace(".", "/") + ".py")
    if not path.exists():
        return None
    page = page_name(path.relative_to(equations.SOURCE.parent))
    return make_refnode(app.builder, node["refdoc"], page, "", content)


def linkcode_resolve(domain: str, info: dict[str, Any]) -> str | None:
    """Return the page and line of an object; the pages of objects are two folders down."""
    if domain != "py" or not info["module"]:
        return None
    try:
        module = importlib.import_module(info["module"])
    except ImportError:
        return None
    return object_uri(module, info["fullname"], up="../../")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the resolution of names."""
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
