"""Parameters by path, as scikit-learn's searches name them."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np

from mercer.params.parameter import Parameter

__all__ = ["Named"]


class Named:
    """Gives an object with parameters and children `get_params`, and `with_params` to change them.

    scikit-learn's `set_params` would change the object itself; one that never changes gives a new
    one instead, which an estimator puts in its place (see `mercer.estimators.nested`).
    """

    _parameters: dict[str, Parameter]
    _children: tuple[Named, ...]

    def _options(self) -> dict[str, Any]:
        raise NotImplementedError

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        raise NotImplementedError

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state`."""
        raise NotImplementedError

    def with_parameters(self, **parameters: Any) -> Self:
        """Return a new object with some of its own parameters replaced."""
        raise NotImplementedError

    def _with(self, parameters: dict[str, Parameter], children: tuple[Any, ...]) -> Self:
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what `with_params` can change, by name, as scikit-learn's searches ask for it.

        Parameters
        ----------
        deep : bool, default True
            Whether to add what the children can change, each name after the child's and two
            underscores: the path of `parameter_names` with ``__`` for its dots.

        Examples
        --------
        >>> from mercer.kernels import RBF, Linear
        >>> for name, value in (2.0 * RBF([1.0, 3.0]) + Linear()).get_params().items():
        ...     print(name, "=", value)
        Scaled = 2 * RBF(length_scale=[1, 3])
        Scaled__variance = 2.0
        Scaled__RBF = RBF(length_scale=[1, 3])
        Scaled__RBF__length_scale = [1. 3.]
        Linear = Linear(offset=0)
        Linear__offset = 0.0
        Linear__length_scale = None
        """
        out = self._arguments()
        for label, child in self._labelled().items():
            out[label] = child
            if deep:
                out.update({f"{label}__{k}": v for k, v in child.get_params().items()})
        return out

    def with_params(self, **values: Any) -> Self:
        """Return a new object with some of what `get_params` names replaced.

        A number given for a parameter keeps its bounds, its hyperprior and whether it is fixed;
        a `Parameter` replaces them too.

        Examples
        --------
        >>> from mercer.kernels import RBF, Matern
        >>> (2.0 * Matern() + RBF()).with_params(Scaled__Matern__nu=0.5, RBF__length_scale=3.0)
        2 * Matern(length_scale=1, nu=0.5) + RBF(length_scale=3)
        """
        arguments = self._arguments()
        children: dict[str, Any] = dict(self._labelled())
        own: dict[str, Any] = {}
        inner: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            label, _, path = name.partition("__")
            if name in arguments:
                own[name] = self._kept(name, value)
            elif name in children:
                children[name] = value
            elif path and label in children:
                inner.setdefault(label, {})[path] = value
            else:
                known = ", ".join(self.get_params()) or "none"
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; its parameters: {known}"
                )
        if own.keys() <= self._parameters.keys():
            new = self.with_parameters(**own) if own else self
        else:
            new = self.from_state(self.to_state() | own)
        for label, changes in inner.items():
            children[label] = children[label].with_params(**changes)
        changed = tuple(children.values())
        if any(a is not b for a, b in zip(changed, self._children, strict=True)):
            new = new._with_children(changed)
        return new

    def __sklearn_clone__(self) -> Self:
        return self  # it does not change

    def _arguments(self) -> dict[str, Any]:
        """Return the constructor's arguments that are no children, parameters as plain values."""
        options = self._options()
        if any(hasattr(value, "get_params") for value in options.values()):
            # an object of another library, which is varied through its parameters alone
            return {name: p.value for name, p in self._parameters.items()}
        names = [
            name
            for name, argument in inspect.signature(type(self)).parameters.items()
            if argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
        ]
        found = {
            name: options[name] if name in options else getattr(self, name, None)
            for name in dict.fromkeys([*names, *self._parameters])
        }
        return {k: v for k, v in found.items() if not isinstance(v, Named)}

    def _kept(self, name: str, value: Any) -> Any:
        """Give a plain value what else the parameter that it replaces has."""
        held = self._parameters.get(name)
        if held is None or value is None or isinstance(value, Parameter) or np.ndim(value) > 1:
            return value
        if held.bounds is None and held.prior is None and not held.fixed:
            return value
        return held.replace(value=value)

    def _with_children(self, children: tuple[Any, ...]) -> Self:
        """Return a copy with other children, checked; where a constructor takes them, it does."""
        for child in children:
            if not isinstance(child, Named):
                raise ValueError(f"{type(self).__name__} cannot be made of {child!r}")
        return self._with({}, children)

    def _labelled(self) -> dict[str, Named]:
        """Return the children by class, numbered where several are of the same one."""
        labels = [type(c).__name__ for c in self._children]
        out = {}
        for i, (child, label) in enumerate(zip(self._children, labels, strict=True)):
            number = f"{labels[: i + 1].count(label)}" if labels.count(label) > 1 else ""
            out[f"{label}{number}"] = child
        return out
