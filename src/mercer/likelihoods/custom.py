"""A likelihood from a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods.base import Likelihood
from mercer.likelihoods.stencils import three_derivatives
from mercer.params import Parameter
from mercer.registry import storable

__all__ = ["Custom"]

Floats = NDArray[np.float64]
Function = Callable[..., Any]

_GIVEN = (
    "derivatives",
    "fisher",
    "conditional_mean",
    "conditional_var",
    "conditional_cdf",
    "sample",
    "initial",
)
_FLAGS = ("twice_differentiable", "log_concave", "always_positive", "unimodal")


@storable
class Custom(Likelihood):
    """The likelihood whose log density is a function that you give.

    EP takes any. With `twice_differentiable=True`, Laplace's approximation does too, by
    differences of the function unless `derivatives` is given. A class of your own
    (:doc:`/extending/likelihood`) can do more: closed forms take the place of quadrature.

    Parameters
    ----------
    logpdf : callable (y, f, ...) -> array
        log p(y | f), normalised over y. Arguments are float arrays that broadcast against each
        other; -inf is density 0.
    parameters : dict of name to number or Parameter, optional
        What is learned, and handed to `logpdf` by keyword; to the other functions too, as far as
        they have arguments of these names (compiled ones that do not tell theirs are given none).
        One that is positive is searched by its logarithm and
        stays so, unless its bounds reach down to 0 or below.
    twice_differentiable : bool, default True
        Whether log p has a second derivative in f that is worth using: one that is not 0 almost
        everywhere.
    log_concave, always_positive, unimodal : bool, default False, True and True
        Whether log p is concave in f, p > 0 everywhere, and has one peak in f: promises, which are
        not checked.
    width : float, default 1.0
        The distance in f over which log p changes its shape, for differences; the order of
        magnitude is enough.
    knots : callable (y (n,)) -> (n, j), optional
        See `Likelihood.knots`. Peaks must be named if log p is not concave.
    derivatives, fisher, conditional_mean, conditional_var, conditional_cdf, sample, initial
        Functions in place of the methods of these names, without `self`. Predictions need those
        of the observations: without `conditional_mean` there is no predictive mean.

    Notes
    -----
    Functions are saved by name: define them with ``def`` and give them back to `load`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.likelihoods import Custom
    >>> def log_sech(y, f, scale):  # hyperbolic secant noise
    ...     z = (y - f) / scale
    ...     return -np.logaddexp(z, -z) - np.log(scale * np.pi / 2)
    >>> noise = Custom(log_sech, parameters={"scale": 2.0}, log_concave=True)
    >>> [float(d.round(6)) for d in noise.derivatives(2.0, 1.0)]
    [0.231059, -0.196612, -0.090858]
    >>> noise.missing("derivatives", "fisher", "sample")
    ['fisher', 'sample']
    >>> noise.theta.round(4)
    array([0.6931])
    """

    def __init__(
        self,
        logpdf: Function,
        *,
        parameters: Mapping[str, float | Parameter] | None = None,
        twice_differentiable: bool = True,
        log_concave: bool = False,
        always_positive: bool = True,
        unimodal: bool = True,
        width: float = 1.0,
        knots: Function | None = None,
        derivatives: Function | None = None,
        fisher: Function | None = None,
        conditional_mean: Function | None = None,
        conditional_var: Function | None = None,
        conditional_cdf: Function | None = None,
        sample: Function | None = None,
        initial: Function | None = None,
    ) -> None:
        given = (derivatives, fisher, conditional_mean, conditional_var, conditional_cdf)
        functions = dict(zip(_GIVEN, (*given, sample, initial), strict=True))
        for name, function in {"logpdf": logpdf, "knots": knots, **functions}.items():
            if not callable(function) and (name == "logpdf" or function is not None):
                raise ValueError(f"{name} must be a function, got {function!r}")
        if not (np.isfinite(width) and width > 0):
            raise ValueError(f"width must be a positive number, got {width!r}")
        own = _parameters(parameters or {}, logpdf)
        self.logpdf = logpdf
        self.twice_differentiable = self.has_curvature = bool(twice_differentiable)
        self.log_concave = self.is_log_concave = bool(log_concave)
        self.always_positive = self.is_positive = bool(always_positive)
        self.unimodal = self.is_unimodal = bool(unimodal)
        self.width = float(width)
        self._functions = {**functions, "knots": knots}
        # The names of the parameters that each function takes.
        self._taken = {
            name: _taken(function, own) for name, function in self._functions.items() if function
        }
        self._set(**own)

    # ------------------------------------------------------------------------- what it is made of

    def _options(self) -> dict[str, Any]:
        plain = ("logpdf", *_FLAGS, "width")
        return {**{name: getattr(self, name) for name in plain}, **self._functions}

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**self._options(), "parameters": self.parameters}

    def with_parameters(self, **parameters: Any) -> Self:
        """Return a new object with some of its parameters replaced, by numbers or others."""
        unknown = set(parameters) - set(self._parameters)
        if unknown:
            raise ValueError(
                f"{self!r} has no parameter {sorted(unknown)}; it has {sorted(self._parameters)}"
            )
        return self.from_state(self.to_state() | {"parameters": self._parameters | parameters})

    def __repr__(self) -> str:
        parts = [getattr(self.logpdf, "__name__", type(self.logpdf).__name__)]
        parts += [f"{name}={p.show()}" for name, p in self._parameters.items()]
        return f"Custom({', '.join(parts)})"

    def missing(self, *methods: str) -> list[str]:
        """Return those of the named methods that there is no function for."""
        return [m for m in methods if m in _GIVEN[:-1] and not self._has(m)]

    def _has(self, method: str) -> bool:
        by_differences = method == "derivatives" and self.twice_differentiable
        return self._functions[method] is not None or by_differences

    def _call(self, method: str, *arguments: Any) -> Any:
        function = self._functions[method]
        if function is None:
            raise self._lacking(method)
        keywords = {name: self._parameters[name].value for name in self._taken[method]}
        return function(*arguments, **keywords)

    def _array(self, method: str, *arguments: Any) -> Floats:
        return np.array(self._call(method, *arguments), dtype=float)

    # ------------------------------------------------------------------------------- the functions

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return log p(y | f)."""
        y, f = np.asarray(y, dtype=float), np.asarray(f, dtype=float)
        keywords = {name: p.value for name, p in self._parameters.items()}
        out = np.array(self.logpdf(y, f, **keywords), dtype=float)
        shape = np.broadcast_shapes(y.shape, f.shape)
        if out.shape != shape:
            raise ValueError(f"{self!r} must return an array of shape {shape}, got {out.shape}")
        return out

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return the first three derivatives of log p in f, by differences if they are not given.

        Those are good to about 1e-10, 1e-8 and 1e-6 of log p's size, in units of the width.
        """
        y, f = np.asarray(y, dtype=float), np.asarray(f, dtype=float)
        if self._functions["derivatives"] is not None:
            given = self._call("derivatives", y, f)
            first, second, third = (np.array(d, dtype=float) for d in given)
            return first, second, third
        if not self.twice_differentiable:
            raise self._lacking("derivatives")
        y, f = np.broadcast_arrays(y, f)

        def around(points: Floats) -> Floats:
            return self.log_density(np.repeat(y[..., None], points.shape[-1], axis=-1), points)

        return three_derivatives(around, f, self.width)

    def fisher(self, f: ArrayLike) -> Floats:
        """Return the Fisher information, by the function given."""
        return self._array("fisher", np.asarray(f, dtype=float))

    def conditional_mean(self, f: ArrayLike) -> Floats:
        """Return E[y | f], by the function given."""
        return self._array("conditional_mean", np.asarray(f, dtype=float))

    def conditional_var(self, f: ArrayLike) -> Floats:
        """Return Var[y | f], by the function given."""
        return self._array("conditional_var", np.asarray(f, dtype=float))

    def conditional_cdf(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return P(Y <= y | f), by the function given."""
        y, f = np.asarray(y, dtype=float), np.asarray(f, dtype=float)
        return self._array("conditional_cdf", y, f)

    def sample(self, f: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one y for each f, by the function given."""
        return self._array("sample", np.asarray(f, dtype=float), rng)

    def initial(self, y: ArrayLike) -> Floats:
        """Return a latent value to start from for each y: y itself without a function."""
        if self._functions["initial"] is None:
            return super().initial(y)
        return self._array("initial", np.asarray(y, dtype=float))

    def knots(self, y: Floats) -> Floats | None:
        """Return the knots of the function given, or None."""
        return None if self._functions["knots"] is None else self._array("knots", y)


def _parameters(given: Mapping[str, Any], logpdf: Function) -> dict[str, Parameter]:
    """Return the parameters by name, checked; positive ones by their logarithm."""
    taken = {"y", "f", "rng", *inspect.signature(Custom).parameters}
    refused = [
        name
        for name in given
        if not str(name).isidentifier() or name[0] == "_" or name in taken or hasattr(Custom, name)
    ]
    if refused:
        raise ValueError(
            f"parameters must have names that are free to use, got {', '.join(map(repr, refused))}"
        )
    out = {
        name: _placed(p if isinstance(p, Parameter) else Parameter(p)) for name, p in given.items()
    }
    unused = [name for name in out if name not in _taken(logpdf, out, if_unknown=True)]
    if unused:
        raise ValueError(
            f"logpdf has no argument for the parameters {', '.join(unused)}: define it as "
            f"logpdf(y, f, {', '.join(out)})"
        )
    return out


def _placed(parameter: Parameter) -> Parameter:
    """Return the parameter with the logarithm for its transform, if it must stay positive."""
    if parameter.transform != "identity":
        return parameter
    bounds = (-np.inf, np.inf) if parameter.bounds is None else parameter.bounds
    if np.all(np.asarray(parameter.value) > 0) and (
        parameter.bounds is None or np.all(np.asarray(bounds[0]) > 0)
    ):
        return parameter.replace(transform="log")
    # Said in so many words, since the value may become positive.
    return parameter.replace(bounds=bounds)


def _taken(function: Function, names: Mapping[str, Any], if_unknown: bool = False) -> list[str]:
    """Return those of the names that a function takes by keyword.

    Of compiled functions nothing may be known; `if_unknown` says whether they take them all.
    """
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return list(names) if if_unknown else []
    if any(a.kind is a.VAR_KEYWORD for a in arguments):
        return list(names)
    by_name = {a.name for a in arguments if a.kind in (a.POSITIONAL_OR_KEYWORD, a.KEYWORD_ONLY)}
    return [name for name in names if name in by_name]
