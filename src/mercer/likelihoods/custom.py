"""A likelihood from a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods.base import Likelihood
from mercer.registry import storable

__all__ = ["Custom"]

Floats = NDArray[np.float64]
Function = Callable[..., Any]

# Central differences over nine points: errors of h^8 (h^6 for the third derivative).
_POINTS = np.arange(-4, 5)
_STENCILS = np.linalg.solve(
    np.vander(_POINTS.astype(float), 9, increasing=True).T,
    np.eye(9)[:, 1:4] * np.array([1.0, 2.0, 6.0]),
)
# Steps as parts of the width. The one whose result agrees best with the next one's is taken.
_STEPS = 0.2 * 4.0 ** -np.arange(6)

_GIVEN = (
    "derivatives",
    "fisher",
    "conditional_mean",
    "conditional_var",
    "conditional_cdf",
    "sample",
    "initial",
)


@storable
class Custom(Likelihood):
    """The likelihood whose log density is a function that you give.

    EP takes any. With `twice_differentiable=True`, Laplace's approximation does too, by
    differences of the function unless `derivatives` is given. A class of your own
    (:doc:`/extending/likelihood`) can do more: it can have parameters that are learned.

    Parameters
    ----------
    logpdf : callable (y, f) -> array
        log p(y | f), normalised over y. Arguments are float arrays that broadcast against each
        other; -inf is density 0.
    twice_differentiable : bool, default True
        Whether log p has a second derivative in f that is worth using: one that is not 0 almost
        everywhere.
    log_concave, always_positive : bool, default False and True
        Whether log p is concave in f, and p > 0 everywhere: promises, which are not checked.
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
    >>> def log_sech(y, f):  # hyperbolic secant noise
    ...     return -np.logaddexp(y - f, f - y) - np.log(np.pi / 2)
    >>> noise = Custom(log_sech, log_concave=True)
    >>> [float(d.round(6)) for d in noise.derivatives(1.0, 0.5)]
    [0.462117, -0.786448, -0.726862]
    >>> noise.missing("derivatives", "fisher", "sample")
    ['fisher', 'sample']
    """

    def __init__(
        self,
        logpdf: Function,
        *,
        twice_differentiable: bool = True,
        log_concave: bool = False,
        always_positive: bool = True,
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
        self.logpdf = logpdf
        self.twice_differentiable = self.has_curvature = bool(twice_differentiable)
        self.log_concave = self.is_log_concave = bool(log_concave)
        self.always_positive = self.is_positive = bool(always_positive)
        self.width = float(width)
        self._knots = knots
        self._functions = functions
        self._set()

    def _options(self) -> dict[str, Any]:
        plain = ("logpdf", "twice_differentiable", "log_concave", "always_positive", "width")
        return {
            **{name: getattr(self, name) for name in plain},
            "knots": self._knots,
            **self._functions,
        }

    def __repr__(self) -> str:
        return f"Custom({getattr(self.logpdf, '__name__', type(self.logpdf).__name__)})"

    def missing(self, *methods: str) -> list[str]:
        """Return those of the named methods that there is no function for."""
        return [m for m in methods if m in _GIVEN[:-1] and not self._has(m)]

    def _has(self, method: str) -> bool:
        by_differences = method == "derivatives" and self.twice_differentiable
        return self._functions[method] is not None or by_differences

    def _call(self, method: str, *arguments: Any) -> Floats:
        function = self._functions[method]
        if function is None:
            raise self._lacking(method)
        return np.array(function(*arguments), dtype=float)

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return log p(y | f)."""
        y, f = np.asarray(y, dtype=float), np.asarray(f, dtype=float)
        out = np.array(self.logpdf(y, f), dtype=float)
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
            given = self._functions["derivatives"](y, f)
            first, second, third = (np.array(d, dtype=float) for d in given)
            return first, second, third
        if not self.twice_differentiable:
            raise self._lacking("derivatives")
        y, f = np.broadcast_arrays(y, f)
        results = []
        for step in _STEPS * self.width:
            points = f[..., None] + step * _POINTS
            values = self.log_density(np.repeat(y[..., None], _POINTS.size, axis=-1), points)
            # The value at f itself is taken off: the sums lose fewer digits.
            values = values - values[..., [_POINTS.size // 2]]
            results.append(
                np.moveaxis(values @ _STENCILS, -1, 0)
                / step ** np.arange(1, 4).reshape(3, *[1] * f.ndim)
            )
        all_ = np.array(results)  # (steps, 3, ...)
        with np.errstate(invalid="ignore"):
            disagreement = np.abs(np.diff(all_, axis=0))
        best = np.argmin(np.where(np.isnan(disagreement), np.inf, disagreement), axis=0)
        first, second, third = np.take_along_axis(all_[:-1], best[None], axis=0)[0]
        return first, second, third

    def fisher(self, f: ArrayLike) -> Floats:
        """Return the Fisher information, by the function given."""
        return self._call("fisher", np.asarray(f, dtype=float))

    def conditional_mean(self, f: ArrayLike) -> Floats:
        """Return E[y | f], by the function given."""
        return self._call("conditional_mean", np.asarray(f, dtype=float))

    def conditional_var(self, f: ArrayLike) -> Floats:
        """Return Var[y | f], by the function given."""
        return self._call("conditional_var", np.asarray(f, dtype=float))

    def conditional_cdf(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return P(Y <= y | f), by the function given."""
        return self._call("conditional_cdf", np.asarray(y, dtype=float), np.asarray(f, dtype=float))

    def sample(self, f: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one y for each f, by the function given."""
        return self._call("sample", np.asarray(f, dtype=float), rng)

    def initial(self, y: ArrayLike) -> Floats:
        """Return a latent value to start from for each y: y itself without a function."""
        if self._functions["initial"] is None:
            return super().initial(y)
        return self._call("initial", np.asarray(y, dtype=float))

    def knots(self, y: Floats) -> Floats | None:
        """Return the knots of the function given, or None."""
        return None if self._knots is None else np.array(self._knots(y), dtype=float)
