"""Finding the public names of the package, without a list that somebody must keep."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from functools import cache
from inspect import isclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import mercer

TESTS = Path(__file__).resolve().parent.parent
# They hold examples of everything, which is not to say that anything was tested.
EXAMPLES = {TESTS / "conformance" / "examples.py", *(TESTS / "conformance").glob("broken*.py")}


class Public(NamedTuple):
    """A public name: where it is offered, and what it is."""

    module: str
    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def modules(package: ModuleType = mercer) -> list[ModuleType]:
    """Return the package and all public modules within, at any depth."""
    found = [package]
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if info.name.rpartition(".")[2].startswith("_"):
            continue
        try:
            module = importlib.import_module(info.name)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("mercer"):
                raise
            continue  # an extra that is not installed
        found += modules(module) if info.ispkg else [module]
    return found


def is_front(module: ModuleType) -> bool:
    """Whether users import from a module: a package, a module beside them, or an engine."""
    package, _, _ = module.__name__.rpartition(".")
    return hasattr(module, "__path__") or package in ("mercer", "mercer.inference")


@cache
def public() -> list[Public]:
    """Return the public names of the package, each once."""
    found: dict[int, Public] = {}
    for module in filter(is_front, modules()):
        for name in names_of(module):
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                found.setdefault(id(value), Public(module.__name__, name, value))
    return list(found.values())


def names_of(module: ModuleType) -> list[str]:
    """Return the names in a module's ``__all__``; without one, those it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def subclasses_of(base: type, *abstract: type) -> list[type]:
    """Return the public classes of a kind, those that are only bases left out."""
    classes = [p.value for p in public() if isclass(p.value)]
    return [c for c in classes if issubclass(c, base) and c is not base and c not in abstract]


# Modules beside the engines: what bounds the solutions of regression with Gaussian noise, and finds
# parts of them, which have no evidence; a process that takes rows in turn, and has no problem; and
# expansions in columns that no kernel of a process belongs to, sparse by their priors.
_BESIDE = {
    "certificate",
    "duals",
    "greedy",
    "laplacian",
    "online",
    "quadratic",
    "relevance",
    "relevance_classes",
    "subspace",
}


def engines() -> list[ModuleType]:
    """Return the modules of `mercer.inference` that solve an `ExactProblem`."""
    return [m for m in _inference() if _problem_of(m) == "ExactProblem"]


def latent_engines() -> list[ModuleType]:
    """Return its other modules: engines for other likelihoods than Gaussian noise."""
    return [m for m in _inference() if _problem_of(m) != "ExactProblem"]


def _inference() -> list[ModuleType]:
    package = importlib.import_module("mercer.inference")
    found = [m for m in modules(package) if m is not package]
    return [m for m in found if m.__name__.rpartition(".")[2] not in _BESIDE]


def _problem_of(module: ModuleType) -> Any:
    return getattr(module, "solve", None) and module.solve.__annotations__.get("problem")


def is_generated(docstring: str, name: str) -> bool:
    """Whether a docstring is the signature that Python writes for tuples and data classes."""
    return docstring.startswith(f"{name}(")


def stands_alone(p: Public) -> bool:
    """Whether a name needs tests that mention it.

    What a function returns is tested with the function, and a base by the classes made from it.
    """
    value = p.value
    if not isclass(value):
        return callable(value)
    is_record = dataclasses.is_dataclass(value) or hasattr(value, "_fields")
    if is_record or getattr(value, "_is_protocol", False):
        return False
    return not any(value in other.value.__mro__[1:] for other in public() if isclass(other.value))
