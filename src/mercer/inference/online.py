"""Sparse on-line Gaussian processes: one row at a time, in bounded memory (SOGP section 3.3).

The posterior so far is the prior of the next row. Its likelihood is projected on the nearest
Gaussian process by two numbers, the derivatives q and r of log E[p(y | f)] (SOGP 2.7), and the
function is kept by its moments at no more than `max_basis` points: a row that the points nearly
determine changes the moments there, any other becomes a point, and the one that costs least goes.
With Gaussian noise and room for all rows the result is exact, whatever their order.

Each projection and removal is a step to the posterior of the least KL divergence from the one
before it (SOGP 3.16), and what these come to is added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.inference._online_kept import KeptProcess
from mercer.inference._online_moments import arrays_of, grown, n_covariances, refresh
from mercer.inference._online_rows import (
    block_of,
    learn_rows,
    prior_variances,
    require_units,
)
from mercer.inference._online_rules import require_defaults, rules_of
from mercer.inference._online_takeover import (
    lifted,
    remove_redundant,
    require_same_model,
    within,
)
from mercer.kernels import Kernel
from mercer.likelihoods import Likelihood
from mercer.linalg.recursion import CRITERIA, NOVELTIES, Rules, empty_arrays, recursion
from mercer.means import Mean
from mercer.posterior import Basis, Posterior
from mercer.posterior.chart import Chart
from mercer.registry import storable

__all__ = ["CRITERIA", "NOVELTIES", "Before", "OnlineProcess"]

Floats = NDArray[np.float64]

# Rows whose kernel values are found together: with the points and with each other.
_BLOCK = 128


class Before(NamedTuple):
    """What the process said of rows before it learned them.

    mean, var : (n, P) of the latent functions; 0 and 1e140 squared units of a row too large
    log_density : (n,) of the observations, added over outputs; NaN for a row that was skipped: its
        likelihood is 0 wherever the process can be, or tells no Gaussian, or the row is too large
        for floating point. 0 for one of weight 0.
    """

    mean: Floats
    var: Floats
    log_density: Floats


@storable
class OnlineProcess(KeptProcess):
    """A posterior that learns rows as they come.

    Parameters
    ----------
    kernel : Kernel
        A covariance.
    likelihood : Likelihood
        Of one latent value; several outputs have a latent function each.
    mean : Mean, optional
        The mean function; zero without it.
    max_basis : int, default 100
        How many points the function is kept by.
    tol : float, default 1e-6
        What a row must add to become a point: its variance given the points, in units of k(x, x)
        (SOGP 3.14; less than 1e-8 counts as 1e-8), or by ``novelty="mean"`` what leaving it out
        would change the mean by, in units of the function's standard deviation (SOGP 3.13).
    novelty : {"geometry", "mean"}
    criterion : {"kl", "mean"}
        Which point goes: the one that the process as a whole, by the divergence, or its mean
        (SOGP 3.18) loses least by. Of several outputs that which loses most counts (SOGP 4.8).
    forget : float, default 0.0
        The part of what is known that is lost with each row, for functions that drift; below 1.
    n_outputs : int, default 1
    scale : (P,) array, optional
        The units of the outputs.

    Notes
    -----
    O(m^2) time a row and output, whatever has been seen, and some arrays of m^2. One compiled loop
    for a block of rows where the likelihood has a `compiled_site`; else a call of `smoothed` a row.
    """

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Likelihood,
        mean: Mean | None = None,
        *,
        max_basis: int = 100,
        tol: float = 1e-6,
        novelty: str = "geometry",
        criterion: str = "kl",
        forget: float = 0.0,
        n_outputs: int = 1,
        scale: ArrayLike | None = None,
    ) -> None:
        covariances = n_covariances(likelihood, n_outputs)
        arrays = empty_arrays(max_basis + 1, 0, n_outputs, covariances)
        units = np.ones(n_outputs) if scale is None else np.array(scale, dtype=float)
        none = Chart(np.empty((0, n_outputs)))
        self._set(Basis(kernel), likelihood, mean, arrays, none, units, 1)
        self.rules = rules_of(max_basis, tol, novelty, criterion, forget)

    @classmethod
    def from_posterior(
        cls,
        posterior: Posterior,
        likelihood: Likelihood,
        *,
        max_basis: int | None = None,
        lift: float = 0.0,
        tol: float = 1e-6,
        novelty: str = "geometry",
        criterion: str = "kl",
        forget: float = 0.0,
    ) -> Self:
        """Go on from any posterior whose outputs are not coupled.

        Points that are all but determined by others are left out, and one of more than `max_basis`
        points is pruned, by the least divergence added over outputs (`Posterior.prune`) whatever
        the criterion; what that costs is the first part of `projection_loss`. Of a degenerate one
        (w = 0) only weights are updated, and all options must be left as they are, unless `lift`
        is above 0 and re-bases it on the full kernel: the posterior of DTC on the same points,
        under so many times the kernel.
        """
        if lift and not posterior.weight:
            posterior = lifted(posterior, lift)
        most = max(posterior.n_basis, 1) if max_basis is None else max_basis
        rules = rules_of(most, tol, novelty, criterion, forget)
        if not posterior.weight:
            require_defaults(max_basis, rules)
            rules = rules._replace(max_basis=-1)
        return cls._taking_over(posterior, likelihood, rules)

    @classmethod
    def _taking_over(cls, posterior: Posterior, likelihood: Likelihood, rules: Rules) -> Self:
        loss = 0.0
        if posterior.weight:
            posterior, loss = within(posterior, rules.max_basis, rules.floor)
        c = n_covariances(likelihood, posterior.n_outputs)
        arrays, chart = arrays_of(posterior, rules.max_basis + 1, c)
        new = cls.__new__(cls)
        mean, scale = posterior.mean_function, np.array(posterior.scale)
        new._set(posterior.basis, likelihood, mean, arrays, chart, scale, posterior.weight)
        new.rules = rules
        arrays.sums[0] = loss
        remove_redundant(arrays, rules.floor)
        return new

    def replaced(self, posterior: Posterior) -> Self:
        """Return a process that goes on from another posterior of the same model.

        By the same rules, and with what this one has seen, added up and lost; what it costs to take
        the posterior over comes to that. Kernel, mean, outputs, their units and the weight w must
        be those of this one.
        """
        require_same_model(posterior, self.kernel, self.mean_function, self.scale, self._weight)
        new = self._taking_over(posterior, self.likelihood, self.rules)
        new._arrays.sums[:] += self._arrays.sums
        new.n_seen = self.n_seen
        return new

    # --- learning -------------------------------------------------------------------------------

    def learn(self, X: Any, Y: ArrayLike, weights: ArrayLike | None = None) -> Before:
        """Learn rows in their order; return what was predicted of each before.

        Parameters
        ----------
        X : inputs
            n rows.
        Y : array of shape (n, P)
            Observations; labels are -1 and 1.
        weights : array of shape (n,), optional
            Powers of the likelihood, at once for Gaussian noise. For other noise a row of weight 2
            is learned twice, one of weight 1.5 in two steps of power 3/4, and one of weight 1000
            in 100 of power 10: more there are not.
        """
        X = self.kernel.inputs(X)
        n, outputs = len(X), len(self._arrays.mu)
        Y = np.ascontiguousarray(np.asarray(Y, dtype=float).reshape(n, outputs) / self.scale)
        w = np.ones(n) if weights is None else np.array(weights, dtype=float)
        shape = (n, outputs)
        before = Before(np.zeros(shape), np.zeros(shape), np.zeros(n))
        for start in range(0, n, _BLOCK):
            rows = slice(start, start + _BLOCK)
            self._learn_block(X[rows], Y[rows], w[rows], Before(*(a[rows] for a in before)))
            self.n_seen += len(Y[rows])
        before.mean[:] *= self.scale
        before.var[:] *= self.scale**2
        before.log_density[:] -= w * np.sum(np.log(self.scale))
        return before

    def require_units(self, X: Any) -> None:
        """Raise ValueError if the kernel is too large or small for floating point at all rows."""
        if self._weight:
            require_units(prior_variances(self.kernel, X), self.likelihood)

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Let rows be learned that are known already: they count neither as seen nor as evidence.

        This is the paper's way to go over rows again, as if they were new.
        """
        evidence, seen = self._arrays.sums[1:].copy(), self.n_seen
        try:
            yield
        finally:
            self._arrays.sums[1:], self.n_seen = evidence, seen

    def _learn_block(self, X: Any, Y: Floats, w: Floats, before: Before) -> None:
        values, variances = np.empty((len(X), 0)), np.zeros(len(X))
        if self._weight:
            points = self.points
            rows = np.concatenate([points, X]) if len(points) else np.array(X)
            source = np.zeros_like(self._arrays.source)
            source[: len(points)] = np.arange(len(points))
            self._arrays, self._rows = self._arrays._replace(source=source), rows
            # In one call: what rows of the block have with each other is found twice, which costs
            # less than a call for each half.
            variances = prior_variances(self.kernel, X)
            with np.errstate(over="ignore", invalid="ignore"):  # of rows that will be skipped
                values = self.kernel(X, rows)
        A = self._arrays
        with np.errstate(over="ignore", invalid="ignore"):
            H = self._functions(X)
            features = self._chart.features(H)
            offsets = self.mean_function(X, len(A.mu)) / self.scale + H @ self._chart.coef
        block = block_of(values, variances, features, offsets, Y, w, len(A.S))
        learn_rows(A, self.rules, block, self.likelihood)
        before.mean[:], before.var[:] = block.mean, block.spread
        before.log_density[:] = block.log_density

    def _functions(self, X: Any) -> Floats:
        """Return h(x), or of a degenerate process phi(x), at the rows of X."""
        if not self._weight:
            return self._basis.phi(X)
        if self._explicit is None:
            return np.empty((len(X), 0))
        return np.array(self._explicit.features(X), dtype=float, order="C")

    # --- changing -------------------------------------------------------------------------------

    def prune(self, n: int) -> float:
        """Remove points by the criterion until n are left; return what that cost, in nats."""
        if not self._weight:
            raise ValueError(
                "a degenerate posterior keeps its basis while it is continued: prune it before, by "
                "posterior.prune(n), or continue it with lift=True"
            )
        before = self.projection_loss
        if self.rules.keep < 1.0 and self._arrays.m > n:  # P is of the past
            refresh(self._arrays)
        while self._arrays.m > n:
            self._remove_one()
        return self.projection_loss - before

    def _remove_one(self) -> None:
        A = self._arrays
        recursion().remove(A, recursion().cheapest(A, self.rules))
        A.whole[1] += 1
        if A.whole[1] >= 64:  # as rounding builds up
            refresh(A)

    def obey(
        self, max_basis: int, tol: float, novelty: str, criterion: str, forget: float
    ) -> float:
        """Go on under other rules; return what it cost if there are now too many points.

        The parameters are those of the class.
        """
        rules = rules_of(max_basis, tol, novelty, criterion, forget)
        if not self._weight:
            require_defaults(None, rules)
            return 0.0
        if self.rules.keep < 1.0 and rules.keep == 1.0:
            refresh(self._arrays)
        self.rules = rules
        if max_basis >= len(self._arrays.K):
            self._arrays = grown(self._arrays, max_basis + 1)
        return self.prune(max_basis)
