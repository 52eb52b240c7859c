"""What every likelihood offers, with quadrature wherever there is no closed form."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods import pulls
from mercer.likelihoods.expectations import expected, moments
from mercer.likelihoods.quantiles import bracket, root
from mercer.linalg.quadrature import smoothed
from mercer.params import Parametrised

__all__ = ["Likelihood"]

Floats = NDArray[np.float64]


class Likelihood(Parametrised):
    """The density p(y | f) of an observation given the latent value, one number each.

    A subclass gives `log_density` and, as far as it can, `derivatives`, `fisher`,
    `conditional_mean`, `conditional_var`, `conditional_cdf`, `sample` and `knots`. All else
    follows by quadrature; a closed form overrides it. Arguments are arrays of any shape that
    broadcast against each other, and the results have their common shape.

    `mean` and `var` are always those of a Gaussian over f. The integrals over it are good to
    1e-8 (see :mod:`mercer.linalg.quadrature`) and cost a few hundred evaluations of p a row.

    Flags tell engines and predictions what to expect. An object may differ from its class.

    Attributes
    ----------
    is_log_concave : bool
        Whether log p(y | f) is concave in f for every y.
    has_curvature : bool
        False if the second derivative in f is 0 almost everywhere, so that a Laplace
        approximation has nothing to go by.
    is_positive : bool
        Whether p(y | f) > 0 for every f, so that E[log p] is finite.
    is_unimodal : bool
        Whether p(y | f) rises to one peak in f and falls from there. One Gaussian around a mode
        misleads where it does not: the other peaks are lost, and EP is the engine.
    adds_noise : bool
        Whether y is f and noise that does not depend on f. Then the mean of a new observation
        takes no variance, and covariances between observations are those of the function.
    is_symmetric : bool
        Whether y is as likely above f as below, by any amount, so that one end of an interval
        gives the other. A subclass does not inherit it: what it changes may undo it.
    counts_events : bool
        Whether y is a number of events whose rate grows with f. Where there are none at all the
        evidence grows as the rate shrinks, and no search can end.
    is_of_labels : bool
        Whether y is a label, or the probability of one. Where labels can be separated the evidence
        grows with the variance of f.
    preferred_inference : {"laplace", "ep", "vi"}
        The engine to be taken where none is named, if it takes the likelihood: the most accurate
        that is not many times slower than the fastest.
    """

    is_log_concave: bool = False
    has_curvature: bool = True
    is_positive: bool = True
    is_unimodal: bool = True
    adds_noise: bool = False
    is_symmetric: bool = False
    counts_events: bool = False
    is_of_labels: bool = False
    preferred_inference: str = "laplace"
    # by what parameters an observation has a variance, for a warning where it has none
    _variance_advice: str = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "is_symmetric" not in vars(cls):
            cls.is_symmetric = False
        if "compiled_site" not in vars(cls):
            setattr(cls, "compiled_site", Likelihood.compiled_site)  # noqa: B010  (mypy)

    # ------------------------------------------------------------------ what a subclass gives

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return log p(y | f)."""
        raise self._lacking("log_density")

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return the first three derivatives of log p(y | f) in f."""
        raise self._lacking("derivatives")

    def fisher(self, f: ArrayLike) -> Floats:
        """Return the Fisher information, -E[d^2 log p(y | f) / df^2] over y given f."""
        raise self._lacking("fisher")

    def conditional_mean(self, f: ArrayLike) -> Floats:
        """Return E[y | f]."""
        raise self._lacking("conditional_mean")

    def conditional_var(self, f: ArrayLike) -> Floats:
        """Return Var[y | f]."""
        raise self._lacking("conditional_var")

    def conditional_cdf(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return P(Y <= y | f)."""
        raise self._lacking("conditional_cdf")

    def sample(self, f: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one y for each f."""
        raise self._lacking("sample")

    def knots(self, y: Floats) -> Floats | None:
        """Return values of f, shape (len(y), j), that quadrature should know of, or None.

        Kinks and jumps of log p(y | f) in f are named for speed; peaks must be named if log p is
        not concave in f, since a narrow one far from the mean is not found otherwise.
        """
        return None

    def log_concave_at(self, y: ArrayLike) -> NDArray[np.bool_]:
        """Return for each y whether log p(y | f) is concave in f; by default `is_log_concave`."""
        return np.full(np.shape(y), self.is_log_concave)

    def initial(self, y: ArrayLike) -> Floats:
        """Return latent values to start a search from, one for each y; by default y itself."""
        return np.array(y, dtype=float)

    def begun(self, y: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the likelihood with which a search for its parameters may begin.

        A parameter that was left open gets a start from the data, and one without bounds gets
        bounds in their units. What is given stays as it is; by default that is everything.

        Parameters
        ----------
        y : array of shape (n,)
            The observations, less the mean function where that is known.
        weights : array of shape (n,), optional
            Powers of their likelihoods.
        """
        return self

    def compiled_site(self) -> tuple[str, Floats] | None:
        """Return by what name and parameters `smoothed` is compiled, None if it is not.

        The names are in ``mercer/linalg/smoothing.py``, and what parameters each takes is said
        with the compiled code. A loop over observations one after another, as on-line learning is,
        then runs without Python. A subclass does not inherit it: what it changes, the compiled
        code does not know of.
        """
        return None

    def missing(self, *methods: str) -> list[str]:
        """Return those of the named methods that this class does not give.

        An engine that needs derivatives, say, refuses a likelihood by this list.
        """
        return [m for m in methods if getattr(type(self), m) is getattr(Likelihood, m)]

    def _lacking(self, method: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} has no {method}: a likelihood that is to be used so must "
            "define it"
        )

    # --------------------------------------------------------------- what follows by quadrature

    def smoothed(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return log Z, d log Z/d mean and d^2 log Z/d mean^2 with Z = E[p(y | f)].

        The derivatives are q and r of (SOGP 2.7). A variance of 0 gives log p and its own
        derivatives, NaN if the class has none.
        """
        (y_, m, v), shape = rows_of(y=y, mean=mean, var=var)
        out = np.full((3, m.size), np.nan)
        some = v > 0
        ys = y_[some]

        def log_density(row: NDArray[np.intp], f: Floats) -> Floats:
            return self.log_density(ys[row], f)

        out[:, some] = smoothed(log_density, m[some], v[some], self.knots(ys))
        none = ~some
        if none.any():
            with np.errstate(over="ignore"):  # a density that underflows is 0
                out[0, none] = self.log_density(y_[none], m[none])
                if not self.missing("derivatives"):
                    out[1:, none] = self.derivatives(y_[none], m[none])[:2]
        log_z, first, second = out.reshape(3, *shape)
        return log_z, first, second

    def log_predictive(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the log density of a new observation, log E[p(y | f)]."""
        return self.smoothed(y, mean, var)[0]

    def predictive_mean(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the mean of a new observation; NaN where it has none.

        A mean that floating-point numbers cannot hold, or that `conditional_mean` cannot tell
        because it overflows on the way, raises ValueError.
        """
        (m, v), shape = rows_of(mean=mean, var=var)
        return self._expected("mean", lambda _, f: self.conditional_mean(f), m, v).reshape(shape)

    def predictive_var(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the variance of a new observation, E[Var[y | f]] + Var[E[y | f]].

        Likewise NaN where it has none, and ValueError where it overflows.
        """
        (m, v), shape = rows_of(mean=mean, var=var)
        centre = self.predictive_mean(m, v)
        within = self._expected("variance", lambda _, f: self.conditional_var(f), m, v)
        between = self._expected(
            "variance", lambda i, f: (self.conditional_mean(f) - centre[i]) ** 2, m, v
        )
        return (within + between).reshape(shape)

    def training_var(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the variance of an observation at each of the n training rows, shape (n,).

        It is `predictive_var`, unless the rows have noise of their own, as under `Gaussian` with
        known variances: then each has its own. What leave-one-out predicts goes by it.

        Parameters
        ----------
        mean, var : arrays of shape (n,)
            Those of the latent function, in the order of the training rows.
        """
        return self.predictive_var(mean, var)

    def predictive_cdf(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the probability that a new observation is at most y."""
        (y_, m, v), shape = rows_of(y=y, mean=mean, var=var)
        return self._expected(
            "distribution function",
            lambda i, f: self.conditional_cdf(y_[i], f),
            m,
            v,
            self.knots(y_),
            bounded=True,
        ).reshape(shape)

    def quantile(self, mean: ArrayLike, var: ArrayLike, level: ArrayLike) -> Floats:
        """Return the least value that a new observation is at most with probability `level`.

        Found on the predictive distribution function: until that is within 1e-10 of the level, as
        a part of the tail beyond it, or until rounding lets nothing between, where it jumps. Above
        1/2 that tail is what the function lacks to 1, of which rounding takes 1e-15: at a level of
        1 - 1e-12, a thousandth of the tail.
        """
        (m, v, p), shape = rows_of(mean=mean, var=var, level=level)
        check_level(p)

        def excess(row: NDArray[np.intp], y: Floats) -> Floats:
            return self.predictive_cdf(y, m[row], v[row]) - p[row]

        low, high = bracket(excess, m, np.where(v > 0, np.sqrt(v), 1.0))
        return root(excess, low, high, 1e-10 * np.minimum(p, 1.0 - p)).reshape(shape)

    def expected(
        self, y: ArrayLike, mean: ArrayLike, var: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Return E[log p(y | f)] and its derivatives in the mean and in the variance.

        The derivatives are E[d1] and E[d2]/2 with d1 and d2 the first two of `derivatives`. A
        variance of 0 gives log p, d1 and d2/2 themselves.
        """
        self._check_positive()
        (y_, m, v), shape = rows_of(y=y, mean=mean, var=var)
        what = f"the expected log density of {type(self).__name__}"
        value, first, second = moments(self, what, y_, m, v).reshape(3, *shape)
        return value, first, second

    def _expected(self, what: str, *arguments: Any, **options: Any) -> Floats:
        return expected(f"the predictive {what} of {type(self).__name__}", *arguments, **options)

    def _check_positive(self) -> None:
        if not self.is_positive:
            raise ValueError(
                f"{self!r} has density 0 at some f, so that E[log p(y | f)] is minus infinity: "
                "use EP, or noise that is positive everywhere"
            )

    # --------------------------------------------------------- derivatives in its own parameters

    def pull_derivatives(
        self, y: ArrayLike, f: ArrayLike, g0: ArrayLike, g1: ArrayLike, g2: ArrayLike
    ) -> Floats:
        """Return d/dtheta of sum(g0 log p + g1 d1 + g2 d2) at fixed y, f and g, shape (p,).

        d1 and d2 are the first two of `derivatives`; the sum runs over all entries of the arrays,
        which broadcast. The engine that has dL/d(log p), dL/d(d1) and dL/d(d2) chains them so.
        """
        if not self.theta.size:
            return np.empty(0)
        y, f, *g = broadcast(y=y, f=f, g0=g0, g1=g1, g2=g2)
        return pulls.derivatives(self, y, f, (g[0], g[1], g[2]))

    def pull_smoothed(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g log Z) at fixed y, mean and var, shape (p,); see `smoothed`."""
        if not self.theta.size:
            return np.empty(0)
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        return pulls.smoothed(self, y, mean, var, g)

    def pull_expected(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g E[log p]) at fixed y, mean and var, (p,); see `expected`."""
        if not self.theta.size:
            return np.empty(0)
        self._check_positive()
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        return pulls.expected(self, y, mean, var, g)

    def _slopes(self, y: Floats, f: Floats) -> pulls.Slopes | None:
        """Return the derivatives of log p, d1 and d2 in each parameter, in its natural units.

        By name; a vector parameter's come with a first axis for its components. None: they are
        taken by differences.
        """
        return None


def check_level(level: Floats) -> None:
    """Refuse probabilities that have no quantile."""
    if not np.all((level > 0) & (level < 1)):
        raise ValueError(f"level must be between 0 and 1, both excluded, got {_brief(level)}")


def broadcast(**arguments: ArrayLike) -> list[Floats]:
    """Return float arrays of one common shape; check a `mean` and a `var` for their domains."""
    try:
        arrays = [np.asarray(a, dtype=float) for a in arguments.values()]
        out = [np.array(a) for a in np.broadcast_arrays(*arrays)]
    except (TypeError, ValueError):
        shapes = {name: np.shape(a) for name, a in arguments.items()}
        raise ValueError(
            f"{list(arguments)} must be numbers of shapes that fit, got {shapes}"
        ) from None
    for name, array in zip(arguments, out, strict=True):
        wrong = ~np.isfinite(array) | ((array < 0) if name == "var" else False)
        if np.any(wrong):
            kind = "finite and not negative" if name == "var" else "finite"
            raise ValueError(f"{name} must be {kind}, got {_brief(array[wrong])}")
    return out


def rows_of(**arguments: ArrayLike) -> tuple[list[Floats], tuple[int, ...]]:
    """Return `broadcast` arrays made flat, and their shape."""
    arrays = broadcast(**arguments)
    return [a.ravel() for a in arrays], arrays[0].shape


def _brief(array: Any) -> str:
    return np.array2string(np.asarray(array), threshold=6, edgeitems=3)
