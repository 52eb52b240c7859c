"""Turning objects into a JSON tree and arrays, and back, without pickle.

A class opts in with the :func:`storable` decorator and two methods: ``to_state()`` returns a
dictionary, ``from_state(state)`` builds the object from it. States may hold numbers, strings,
None, arrays, lists, dictionaries with string keys, functions, and other storable objects. Only
registered classes are ever built while reading, and functions are never stored: a file names
them, and whoever reads it supplies them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar, overload

import numpy as np

from mercer.errors import StorageError

__all__ = ["Encoded", "decode", "encode", "from_json", "storable", "to_json"]

T = TypeVar("T")
Objects = Mapping[str, Callable[..., Any]]

_CLASSES: dict[str, type[Any]] = {}
_NAMES: dict[type[Any], str] = {}
# Where storable classes are defined: imported in turn, when a name is met that nothing imported so
# far has registered.
_ELSEWHERE = (
    "mercer.posterior",
    "mercer.likelihoods",
    "mercer.priors",
    "mercer.estimators.gp_regressor",
    "mercer.estimators.gp_classifier",
    "mercer.estimators.sparse_classifier",
    "mercer.estimators.sparse_regressor",
    "mercer.estimators.sparse_greedy",
    "mercer.inference.online",
    "mercer.estimators.online_regressor",
    "mercer.estimators.online_classifier",
    "mercer.estimators.laplacian_regressor",
    "mercer.estimators.laplacian_classifier",
    "mercer.estimators.relevance_regressor",
    "mercer.estimators.relevance_classifier",
    "mercer.estimators.committee",
    "mercer.estimators.transductive",
    "mercer.compat",
    "mercer.cli.model",
)

# What stands beside each tag in a tree; anything else is damage.
_KEYS = {
    "$float": {"$float"},
    "$ref": {"$ref"},
    "$array": {"$array", "dtype", "shape"},
    "$objects": {"$objects", "shape"},
    "$function": {"$function"},
    "$class": {"$class", "state"},
}
# The kinds of dtype whose items JSON can hold: booleans, integers, floats, strings.
_INLINE_KINDS = "biufU"


@overload
def storable(cls: type[T]) -> type[T]: ...
@overload
def storable(*, name: str) -> Callable[[type[T]], type[T]]: ...
def storable(
    cls: type[T] | None = None, *, name: str | None = None
) -> type[T] | Callable[[type[T]], type[T]]:
    """Register a class that has ``to_state`` and ``from_state``, under its own name or another.

    Stored names are one flat list: a class whose own name is taken (a constant mean beside a
    constant kernel) is registered with ``@storable(name="ConstantMean")``.
    """
    if cls is None:
        return lambda c: _register(c, name or c.__name__)
    return _register(cls, cls.__name__)


def _register(cls: type[T], name: str) -> type[T]:
    known = _CLASSES.setdefault(name, cls)
    if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(
            f"two storable classes are called {name}: {known.__module__}.{known.__qualname__} and "
            f"{cls.__module__}.{cls.__qualname__}; give one another name with "
            "@storable(name=...)"
        )
    _CLASSES[name] = cls
    _NAMES[cls] = name
    return cls


class Encoded:
    """A JSON-able tree, the arrays it refers to, and the names of the functions it needs."""

    def __init__(self, *, inline: bool = False) -> None:
        self.inline = inline
        self.tree: Any = None
        self.arrays: dict[str, np.ndarray] = {}
        self._functions: dict[str, Any] = {}

    @property
    def functions(self) -> list[str]:
        """The names of the functions, in the order they were met."""
        return list(self._functions)

    def add(self, value: Any) -> Any:
        """Return the tree of one value, collecting its arrays and functions."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            # JSON has no infinities; bounds do.
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._add_array(value)
        if isinstance(value, (list, tuple)):
            return [self.add(v) for v in value]
        if isinstance(value, dict):
            if not all(isinstance(k, str) and not k.startswith("$") for k in value):
                raise ValueError(f"a state's keys must be plain strings, got {list(value)!r}")
            return {k: self.add(v) for k, v in value.items()}
        name = _NAMES.get(type(value))
        if name is not None:
            return {"$class": name, "state": self.add(value.to_state())}
        if callable(value) and not hasattr(value, "to_state"):
            return {"$function": self._add_function(value)}
        raise ValueError(
            f"an object of type {type(value).__name__} cannot be saved: not one of Mercer's "
            "estimators, posteriors or kernels, nor a number, string, array, named function, or a "
            f"list or dictionary of these{_way_out(value)}"
        )

    def _add_array(self, value: np.ndarray) -> Any:
        if value.dtype == object:
            flat = value.ravel().tolist()
            return {"$objects": [self.add(v) for v in flat], "shape": list(value.shape)}
        if value.dtype.hasobject:
            raise ValueError(f"an array of dtype {value.dtype} cannot be saved")
        if self.inline:
            if value.dtype.kind not in _INLINE_KINDS:
                raise ValueError(
                    f"an array of dtype {value.dtype} cannot be written as JSON; booleans, "
                    "integers, floats and strings can"
                )
            items = [self.add(v) for v in value.ravel().tolist()]
            return {"$array": items, "dtype": value.dtype.str, "shape": list(value.shape)}
        name = f"array{len(self.arrays)}"
        self.arrays[name] = value
        return {"$ref": name}

    def _add_function(self, value: Any) -> str:
        name = getattr(value, "__name__", None)
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                f"{value!r} has no name to be saved under: define it with `def` (functions are "
                "saved by name and given back to `load` through `objects`)"
            )
        known = self._functions.setdefault(name, value)
        if known is not value and known != value:  # bound methods are new objects each time
            raise ValueError(
                f"two different functions are called {name!r}: functions are saved by name; "
                "rename one"
            )
        return name


def _way_out(value: Any) -> str:
    if hasattr(value, "to_state"):
        return "; its class is not registered with @mercer.registry.storable"
    if hasattr(value, "posterior_"):
        return "; save(model.posterior_, path) keeps the fitted process"
    if hasattr(value, "get_params"):  # scikit-learn's, which no file can be trusted to rebuild
        return (
            "; save the parts that are Mercer's, such as save(pipeline[-1], path) or "
            "save(search.best_estimator_, path), with [-1] where the search is over a pipeline"
        )
    return ""


def encode(value: Any, *, inline: bool = False) -> Encoded:
    """Take an object apart into a JSON tree and arrays (kept inside the tree if `inline`)."""
    encoded = Encoded(inline=inline)
    encoded.tree = encoded.add(value)
    return encoded


def decode(tree: Any, arrays: Mapping[str, np.ndarray], objects: Objects | None = None) -> Any:
    """Put together again what :func:`encode` took apart.

    Parameters
    ----------
    tree : JSON-able
        The tree; one made by hand or damaged raises :class:`StorageError`.
    arrays : mapping of str to ndarray
        The arrays that the tree refers to.
    objects : mapping of str to function, optional
        The functions that the tree names.
    """
    try:
        return _Reader(arrays, objects or {}).read(tree)
    except RecursionError:
        raise StorageError("the description is nested too deeply to be one of Mercer's") from None


class _Reader:
    """Builds values from trees; whatever does not fit raises :class:`StorageError`."""

    def __init__(self, arrays: Mapping[str, np.ndarray], objects: Objects) -> None:
        self.arrays = arrays
        self.objects = objects

    def read(self, tree: Any) -> Any:
        if tree is None or isinstance(tree, (bool, int, float, str)):
            return tree
        if isinstance(tree, list):
            return [self.read(v) for v in tree]
        if not isinstance(tree, dict) or not all(isinstance(k, str) for k in tree):
            raise StorageError(f"damaged description: {_brief(tree)} is no JSON value")
        tags = [k for k in tree if k.startswith("$")]
        if not tags:
            return {k: self.read(v) for k, v in tree.items()}
        if len(tags) > 1 or _KEYS.get(tags[0]) != set(tree):
            raise StorageError(f"damaged description: an entry with the keys {sorted(tree)}")
        return getattr(self, f"_read_{tags[0][1:]}")(tree)

    def _read_float(self, tree: dict[str, Any]) -> float:
        if tree["$float"] not in ("inf", "-inf", "nan"):
            raise StorageError(f"damaged description: {_brief(tree['$float'])} is no number")
        return float(tree["$float"])

    def _read_ref(self, tree: dict[str, Any]) -> np.ndarray:
        name = tree["$ref"]
        if not isinstance(name, str) or name not in self.arrays:
            raise StorageError(f"the array {_brief(name)} is missing")
        return self.arrays[name]

    def _read_array(self, tree: dict[str, Any]) -> np.ndarray:
        items = self._items(tree, "$array")
        if not all(isinstance(v, (bool, int, float, str)) for v in items):
            raise StorageError("damaged description: an array with items of no plain type")
        try:
            dtype = np.dtype(str(tree["dtype"]))
            if dtype.kind not in _INLINE_KINDS:
                raise StorageError(f"an array of dtype {dtype} is not read")
            return np.array(items, dtype=dtype).reshape(tree["shape"])
        except (TypeError, ValueError, OverflowError, SyntaxError) as error:
            raise StorageError(f"damaged description of an array: {error}") from error

    def _read_objects(self, tree: dict[str, Any]) -> np.ndarray:
        items = self._items(tree, "$objects")
        out = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # all at once, NumPy would unpack items that are lists
            out[i] = item
        return out.reshape(tree["shape"])

    def _items(self, tree: dict[str, Any], tag: str) -> list[Any]:
        """Return the items of an array, once they are known to fill its shape."""
        items, shape = tree[tag], tree["shape"]
        if (
            not isinstance(items, list)
            or not isinstance(shape, list)
            or not all(type(k) is int and k >= 0 for k in shape)
            or math.prod(shape) != len(items)
        ):
            raise StorageError(
                f"damaged description: items that do not fill an array of shape {_brief(shape)}"
            )
        return [self.read(v) for v in items]

    def _read_function(self, tree: dict[str, Any]) -> Callable[..., Any]:
        name = tree["$function"]
        if not isinstance(name, str) or name not in self.objects:
            raise StorageError(
                f"a function called {_brief(name)} was saved by name; give it back as "
                f"objects={{{_brief(name)}: the_function}}"
            )
        if not callable(self.objects[name]):
            raise StorageError(f"objects[{name!r}] must be a function, got {self.objects[name]!r}")
        return self.objects[name]

    def _read_class(self, tree: dict[str, Any]) -> Any:
        name = tree["$class"]
        if not isinstance(name, str) or not _find(name):
            raise StorageError(
                f"the class {_brief(name)} is not known here: import the package that defines "
                "it, or update Mercer if the file comes from a newer version"
            )
        state = self.read(tree["state"])
        if not isinstance(state, dict):
            raise StorageError(f"damaged description: the state of {name} is no dictionary")
        try:
            return _CLASSES[name].from_state(state)
        except (StorageError, RecursionError):
            raise
        except Exception as error:  # whatever a constructor makes of a state that is not its own
            raise StorageError(f"a stored {name} cannot be rebuilt: {error!r}") from error


def _find(name: str) -> bool:
    """Whether there is a class of that name, once all that may define it is imported."""
    for package in _ELSEWHERE:
        if name in _CLASSES:
            break
        module = import_module(package)
        for public in module.__all__:  # which may be in modules that are not imported yet
            getattr(module, public)
    return name in _CLASSES


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def to_json(value: Any) -> str:
    """Return a storable object as one JSON text, arrays included."""
    return json.dumps(encode(value, inline=True).tree, allow_nan=False)


def from_json(text: str, objects: Objects | None = None) -> Any:
    """Return the object whose :func:`to_json` text is given."""
    try:
        tree = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"not a JSON description: {error}") from error
    return decode(tree, {}, objects)
