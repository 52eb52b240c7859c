"""Two classes whose labels are known as probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.likelihoods.base import Likelihood, broadcast, rows_of
from mercer.likelihoods.labels import Binary
from mercer.likelihoods.tilted import concave
from mercer.registry import storable

__all__ = ["SoftLabels"]

Floats = NDArray[np.float64]
Triple = tuple[Floats, Floats, Floats]

_KINDS = ("cross_entropy", "mixture")
# In units of how far log p is analytic; beyond, adaptive quadrature takes fewer nodes.
_WIDEST = 4.0


@storable
class SoftLabels(Likelihood):
    """Observations y in [0, 1]: the probability that the label is 1 and not -1.

    With p(1 | f) and p(-1 | f) those of a likelihood of labels, and two readings of y:

    - "cross_entropy": log p(y | f) = y log p(1 | f) + (1 - y) log p(-1 | f). A share y of many
      labels was 1: seven of ten labels are y = 0.7 with weight 10. The best f has p(1 | f) = y.
      This is what most people mean, and it stays concave in f.
    - "mixture": p(y | f) = y p(1 | f) + (1 - y) p(-1 | f) (BKM 57). There is one label, and whoever
      gave it is right with probability y. y = 1/2 says nothing at all about f, and the best f is
      never between: it is plus or minus infinity. It is not log-concave.

    y = 1 and y = 0 are the labels 1 and -1 in either reading, and new observations are these.

    Parameters
    ----------
    likelihood : Logistic or Probit
        The likelihood of labels. A step (`Probit` without noise) takes "mixture" only.
    kind : {"cross_entropy", "mixture"}, default "cross_entropy"
        How y is read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.likelihoods import Logistic, SoftLabels
    >>> f = np.log(3.0)  # p(1 | f) = 3/4
    >>> np.exp(SoftLabels(Logistic(), "mixture").log_density([1.0, 0.9, 0.0], f)).round(3)
    array([0.75, 0.7 , 0.25])
    >>> SoftLabels(Logistic()).derivatives([1.0, 0.9, 0.0], f)[0].round(3)  # y - p(1 | f)
    array([ 0.25,  0.15, -0.75])
    """

    is_of_labels = True

    def __init__(self, likelihood: Binary, kind: str = "cross_entropy") -> None:
        if not isinstance(likelihood, Binary):
            raise ValueError(
                f"SoftLabels takes a likelihood of two classes, Logistic() or Probit(), got "
                f"{likelihood!r}"
            )
        if kind not in _KINDS:
            raise ValueError(f"kind must be 'cross_entropy' or 'mixture', got {kind!r}")
        if kind == "cross_entropy" and not likelihood.is_positive:
            raise ValueError(
                f"{likelihood!r} gives every soft label probability 0 as a cross-entropy: use "
                "kind='mixture', or a positive noise_std"
            )
        self.kind = kind
        self.is_log_concave = kind == "cross_entropy"
        self.has_curvature = likelihood.has_curvature
        self.is_positive = likelihood.is_positive
        self._set(likelihood)

    @property
    def likelihood(self) -> Binary:
        """The likelihood of labels -1 and 1."""
        inside = self._children[0]
        assert isinstance(inside, Binary)
        return inside

    def _options(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"likelihood": self.likelihood, **super().to_state()}

    def _with_children(self, children: tuple[Any, ...]) -> Self:
        return self.from_state(self.to_state() | {"likelihood": children[0]})

    def __repr__(self) -> str:
        return f"SoftLabels({self.likelihood!r}, kind={self.kind!r})"

    def begun(self, y: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the likelihood, whose parameters have no units that the labels could tell."""
        return self

    def log_concave_at(self, y: ArrayLike) -> NDArray[np.bool_]:
        """Return for each y whether log p(y | f) is concave in f.

        A mixture's is where y is a label, or 1/2, which is all the same to f.
        """
        return super().log_concave_at(y) | np.isin(_shares(y), (0.0, 0.5, 1.0))

    def initial(self, y: ArrayLike) -> Floats:
        """Return zeros: even odds."""
        return np.zeros(np.shape(y))

    def missing(self, *methods: str) -> list[str]:
        """Return those of the named methods that there are not: a step has no derivatives."""
        of_labels = self.likelihood.missing("derivatives", "fisher")
        inherited = super().missing(*methods)
        return [m for m in methods if m in of_labels or m in inherited]

    # -------------------------------------------------------------------- density and derivatives

    def log_density(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return log p(y | f)."""
        y, f = _shares(y), np.asarray(f, dtype=float)
        yes, no = (self.likelihood.log_density(label, f) for label in (1.0, -1.0))
        if self.kind == "mixture":
            return _Mixture(y, yes, no).log_value
        # what has no share may have density 0
        out = np.where(y > 0, y * yes, 0.0) + np.where(y < 1, (1.0 - y) * no, 0.0)
        return np.asarray(out)

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> Triple:
        """Return the first three derivatives of log p(y | f) in f."""
        y, f = _shares(y), np.asarray(f, dtype=float)
        yes, no = (self.likelihood.derivatives(label, f) for label in (1.0, -1.0))
        if self.kind == "cross_entropy":
            return _averages(y, yes, no)
        log_yes, log_no = (self.likelihood.log_density(label, f) for label in (1.0, -1.0))
        return _Mixture(y, log_yes, log_no).derivatives(yes, no)

    def fisher(self, f: ArrayLike) -> Floats:
        """Return the information of a label."""
        return self.likelihood.fisher(f)

    def knots(self, y: Floats) -> Floats:
        """Return 0, where both labels are as probable."""
        return np.zeros((np.size(y), 1))

    # ------------------------------------------------------------------- integrals over a Gaussian

    def smoothed(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Triple:
        """Return log Z and its two derivatives in the mean, Z = E[p(y | f)].

        A mixture's are made of those of the labels, in closed form where these are.
        """
        (y, mean, var), shape = rows_of(y=y, mean=mean, var=var)
        y, of = _shares(y), self.likelihood
        if self.kind == "mixture":
            yes, no = (of.smoothed(label, mean, var) for label in (1.0, -1.0))
            mixture, zero = _Mixture(y, yes[0], no[0]), np.zeros(y.shape)
            first, second, _ = mixture.derivatives((*yes[1:], zero), (*no[1:], zero))
            out = np.stack([mixture.log_value, first, second])
        else:
            out = np.array(of.smoothed(np.where(y >= 0.5, 1.0, -1.0), mean, var))
            sd, soft = np.sqrt(var), (y > 0.0) & (y < 1.0)
            stepped = soft & (sd > 0.0) & (sd <= _WIDEST * of.analytic_within)
            for rows, by in ((stepped, self._by_steps), (soft & ~stepped, super().smoothed)):
                if np.any(rows):
                    out[:, rows] = by(y[rows], mean[rows], var[rows])
        log_z, first, second = out.reshape(3, *shape)
        return log_z, first, second

    def _by_steps(self, y: Floats, mean: Floats, var: Floats) -> Triple:
        return concave(self, y, mean, var, self.likelihood.analytic_within)

    def expected(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Triple:
        """Return E[log p(y | f)] and its derivatives in the mean and in the variance."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        y = _shares(y)
        if self.kind == "mixture":
            return super().expected(y, mean, var)
        yes, no = (self.likelihood.expected(label, mean, var) for label in (1.0, -1.0))
        return _averages(y, yes, no)

    # ------------------------------------------------------------------------------ new labels

    def _probability(self, label: float, mean: ArrayLike, var: ArrayLike) -> Floats:
        return np.asarray(np.exp(self.likelihood.log_predictive(label, mean, var)))

    def conditional_mean(self, f: ArrayLike) -> Floats:
        """Return p(1 | f)."""
        return np.asarray(np.exp(self.likelihood.log_density(1.0, f)))

    def conditional_var(self, f: ArrayLike) -> Floats:
        """Return p(1 | f) p(-1 | f)."""
        return np.asarray(0.25 * self.likelihood.conditional_var(f))

    def conditional_cdf(self, y: ArrayLike, f: ArrayLike) -> Floats:
        """Return 0 below 0, p(-1 | f) from there to 1, and 1."""
        return self.likelihood.conditional_cdf(_as_label(y), f)

    def predictive_mean(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the probability that a new label is 1."""
        return self._probability(1.0, mean, var)

    def predictive_var(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return the product of the probabilities of the two labels."""
        return self._probability(1.0, mean, var) * self._probability(-1.0, mean, var)

    def predictive_cdf(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return 0 below 0, the probability of the label -1 from there to 1, and 1."""
        y, mean, var = broadcast(y=y, mean=mean, var=var)
        return self.likelihood.predictive_cdf(_as_label(y), mean, var)

    def quantile(self, mean: ArrayLike, var: ArrayLike, level: ArrayLike) -> Floats:
        """Return 0 if a new label is -1 with that probability at least, else 1."""
        return np.asarray(0.5 + 0.5 * self.likelihood.quantile(mean, var, level))

    def sample(self, f: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw 0 or 1 for each f."""
        return np.asarray(0.5 + 0.5 * self.likelihood.sample(f, rng))

    # --------------------------------------------------------- derivatives in its own parameters

    def pull_derivatives(
        self, y: ArrayLike, f: ArrayLike, g0: ArrayLike, g1: ArrayLike, g2: ArrayLike
    ) -> Floats:
        """Return d/dtheta of sum(g0 log p + g1 d1 + g2 d2) at fixed y, f and g, shape (p,)."""
        if self.kind == "mixture":
            return super().pull_derivatives(y, f, g0, g1, g2)
        y, f, *g = broadcast(y=y, f=f, g0=g0, g1=g1, g2=g2)
        yes = self.likelihood.pull_derivatives(1.0, f, y * g[0], y * g[1], y * g[2])
        n = 1.0 - y
        return yes + self.likelihood.pull_derivatives(-1.0, f, n * g[0], n * g[1], n * g[2])

    def pull_smoothed(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g log Z) at fixed y, mean and var, shape (p,)."""
        if self.kind == "cross_entropy":
            return super().pull_smoothed(y, mean, var, g)
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        of = self.likelihood
        mixture = _Mixture(_shares(y), *(of.smoothed(label, mean, var)[0] for label in (1.0, -1.0)))
        yes = of.pull_smoothed(1.0, mean, var, g * mixture.yes)
        return yes + of.pull_smoothed(-1.0, mean, var, g * mixture.no)

    def pull_expected(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike, g: ArrayLike) -> Floats:
        """Return d/dtheta of sum(g E[log p]) at fixed y, mean and var, shape (p,)."""
        if self.kind == "mixture":
            return super().pull_expected(y, mean, var, g)
        y, mean, var, g = broadcast(y=y, mean=mean, var=var, g=g)
        yes = self.likelihood.pull_expected(1.0, mean, var, g * y)
        return yes + self.likelihood.pull_expected(-1.0, mean, var, g * (1.0 - y))


class _Mixture:
    """y exp(a) + (1 - y) exp(b), given a and b: its logarithm, and the two parts of it."""

    def __init__(self, y: Floats, a: Floats, b: Floats) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(y) + a, np.log1p(-y) + b
            self.log_value = np.asarray(np.logaddexp(*logs))
            self.yes, self.no = (np.exp(part - self.log_value) for part in logs)

    def derivatives(self, yes: Triple, no: Triple) -> Triple:
        """Return the derivatives of the logarithm from those of a and of b."""
        first = self.yes * yes[0] + self.no * no[0]
        second = third = np.zeros(())
        for part, (slope, curvature, change) in ((self.yes, yes), (self.no, no)):
            away = np.where(part > 0, slope - first, 0.0)  # what has no part may overflow
            second = second + part * (curvature + away**2)
            third = third + part * (change + 3.0 * away * curvature + away**3)
        return np.asarray(first), np.asarray(second), np.asarray(third)


def _averages(y: Floats, yes: Triple, no: Triple) -> Triple:
    first, second, third = (y * a + (1.0 - y) * b for a, b in zip(yes, no, strict=True))
    return np.asarray(first), np.asarray(second), np.asarray(third)


def _as_label(y: ArrayLike) -> Floats:
    """Return -1 for 0 and 1 for 1, and what is below, between or above accordingly."""
    return np.asarray(2.0 * np.asarray(y, dtype=float) - 1.0)


def _shares(y: ArrayLike) -> Floats:
    y = np.asarray(y, dtype=float)
    wrong = ~((y >= 0.0) & (y <= 1.0))
    if np.any(wrong):
        values = ", ".join(f"{v:g}" for v in y[wrong].ravel()[:3])
        raise ValueError(f"soft labels must be probabilities from 0 to 1, got {values}")
    return y
