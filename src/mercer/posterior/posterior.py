"""The one form that inference ends in (SOGP, lemma 1), and all that is done with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import blas_for, row_blocks
from mercer.kernels import Kernel
from mercer.kernels.tiles import TILE
from mercer.means import Mean, Zero
from mercer.posterior.basis import Basis
from mercer.posterior.bilinear import Bilinear, Factors
from mercer.posterior.gradients import input_gradients
from mercer.posterior.predictive import InputGradients, Predictive, at_least_one
from mercer.posterior.pruning import prune
from mercer.registry import storable

__all__ = ["Posterior", "prior"]

Floats = NDArray[np.float64]

# Bytes of phi in one block of rows. A block is copied at most three times, which keeps the memory
# beside the result under 64 MB.
_BLOCK_BYTES = 16 * 2**20


@storable
class Posterior(Bilinear, Predictive):
    """A Gaussian process whose mean and covariance are (bi)linear in a finite basis.

    With phi(x) the basis, and for outputs p = 1..P that are independent and share A and B::

        mean_p(x)    = m_p(x) + s_p phi(x)' alpha_p
        cov_p(x, x') = s_p^2 (w k(x, x') - <A phi(x), A phi(x')> + <B phi(x), B phi(x')>)

    With A and B tuples of P factors the outputs are coupled::

        cov_pq(x, x') = s_p s_q ([p = q] w k(x, x') - <A_p phi(x), A_q phi(x')>
                                                    + <B_p phi(x), B_q phi(x')>)

    Parameters
    ----------
    basis : Basis
        m kernel sections and r explicit functions.
    alpha : array of shape (m + r, P)
        Coefficients of the mean.
    A, B : Factor, sequence of P factors, or None
        What the data have taken from the prior covariance, and what they have left of it.
        Sequences make the outputs coupled; None is 0.
    weight : {1, 0}
        w: 1 with the full kernel, 0 for a degenerate model, which is linear in the basis.
    mean : Mean, optional
        The fixed part m(x); zero without it.
    scale : array of shape (P,), optional
        s: the units of each output; ones without it.

    Notes
    -----
    Predictions at n points cost O(n m) for the mean and O(n m^2) for the variance. They go through
    blocks of rows, so that the memory needed beside the result does not grow with n. Joint
    covariances and samples need O(n (n + m)) of it.
    """

    def __init__(
        self,
        basis: Basis,
        alpha: ArrayLike,
        A: Factors = None,
        B: Factors = None,
        weight: int = 1,
        mean: Mean | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        super().__init__(alpha, A, B, weight, scale)
        self.basis = basis
        self.mean_function: Mean = Zero() if mean is None else mean
        if self.n_features < 0:
            raise ValueError(
                f"alpha must have a row for each of the {basis.n_points} basis points and a "
                f"column for each output, got shape {self.alpha.shape}"
            )
        if basis.n_features not in (None, self.n_features):
            raise ValueError(
                f"alpha has {self.n_features} rows beyond the basis points, but the basis has "
                f"{basis.n_features} explicit functions"
            )

    # --- its parts ----------------------------------------------------------------------------

    @property
    def kernel(self) -> Kernel:
        """The kernel of the basis."""
        return self.basis.kernel

    @property
    def n_basis(self) -> int:
        """The number m of kernel sections in the basis."""
        return self.basis.n_points

    @property
    def n_features(self) -> int:
        """The number r of explicit functions in the basis."""
        return len(self.alpha) - self.basis.n_points

    @property
    def C(self) -> Floats:
        """C of (SOGP 2.8), so that cov = k + k_B' C k_B, in the units of `scale`.

        Shape (m, m), or (P, m, P, m) for coupled outputs.
        """
        m = self.n_basis
        sections = np.eye(m, len(self.alpha))
        with blas_for(m):
            C = self._B.products(sections) - self._A.products(sections)
        return C.transpose(1, 0, 3, 2) if self.is_coupled else C.reshape(m, m)

    @property
    def Q(self) -> Floats:
        """The inverse Gram matrix of the basis points (SOGP 3.15), shape (m, m).

        A `JitterWarning` tells how much had to be added to the diagonal of a singular one.
        """
        return self.basis.inverse_gram()

    # --- predictions --------------------------------------------------------------------------

    def mean(self, X: Any) -> Floats:
        """Return the mean at the rows of X, shape (n, P)."""
        X = self.kernel.inputs(X)
        out = self._fixed_part(X)
        if self.n_basis:
            coefficients = self.alpha[: self.n_basis] * self.scale
            out += self.kernel.times(X, self.basis.points, coefficients)
        if self.basis.features is not None:
            out += self.basis.features.features(X) @ (self.alpha[self.n_basis :] * self.scale)
        return out

    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, P); never negative."""
        return self.mean_and_var(X)[1]

    def mean_and_var(self, X: Any) -> tuple[Floats, Floats]:
        """Return `mean(X)` and `var(X)`, with the basis evaluated once."""
        X = self.kernel.inputs(X)
        mean = self._fixed_part(X)
        var = np.empty_like(mean)
        for rows in self._blocks(len(X), _BLOCK_BYTES):
            Phi = self.basis.phi(X[rows])
            mean[rows] += self.mean_from(Phi)
            var[rows] = self.var_from(Phi, self._prior_var(X[rows]), overwrite=True)
        return mean, var

    def cov(self, X: Any) -> Floats:
        """Return the joint covariance at the rows of X: (n, n, P), or (n, P, n, P) if coupled."""
        X = self.kernel.inputs(X)
        return self.cov_from(self.basis.phi(X), self.kernel(X) if self.weight else None)

    def sample(
        self, X: Any, n_samples: int = 1, rng: np.random.Generator | int | None = None
    ) -> Floats:
        """Return joint draws at the rows of X, shape (n, n_samples, P).

        Parameters
        ----------
        X : inputs
            n rows.
        n_samples : int, default 1
            How many functions to draw.
        rng : Generator, int or None
            Where the randomness comes from.
        """
        n_samples = at_least_one("n_samples", n_samples)
        X = self.kernel.inputs(X)
        rng = np.random.default_rng(rng)
        deviations = self.sample_from(
            self.basis.phi(X), self.kernel(X) if self.weight else None, n_samples, rng
        )
        return np.asarray(self.mean(X)[:, None, :] + deviations)

    def gradients(self, X: Any) -> InputGradients:
        """Return the derivatives of mean and variance in the inputs, each (n, d, P)."""
        X = self.kernel.inputs(X)
        return input_gradients(self, X, self._blocks(len(X), _BLOCK_BYTES // 2))

    def _fixed_part(self, X: Any) -> Floats:
        return np.array(self.mean_function(X, self.n_outputs), dtype=float)

    def _prior_var(self, X: Any) -> Floats | None:
        return self.kernel.diag(X) if self.weight else None

    def _blocks(self, n: int, limit: int) -> list[slice]:
        widest = max(len(self.alpha), self._A.n_rows, self._B.n_rows, self.n_outputs, 1)
        size = max(1, limit // (8 * widest))
        return row_blocks(n, size if size < TILE else size - size % TILE)

    # --- changing, saving, describing ---------------------------------------------------------

    def prune(self, n: int, noise: float | None = None) -> tuple[Posterior, float]:
        """Return a posterior on at most n of the basis points, and what that costs.

        Points are removed one after the other, each time the one whose loss is least. With w = 1
        the removal is (SOGP 3.16), which minimises KL(this, pruned), and the loss is that
        divergence, in nats, added over the outputs. With w = 0 the function is linear, and its
        coefficients are projected on those that are kept by least squares, weighted by their
        precision: as if at the rows they were learned from. The loss is the divergence of noisy
        observations there. Explicit functions are always kept.

        Parameters
        ----------
        n : int
            How many basis points to keep. Fewer are kept where the others are redundant: no
            variance but rounding is left of them, given those that stay. With n >= `n_basis`
            this posterior itself is returned, and 0.0.
        noise : float, optional
            The variance of the noise, needed where w = 0 and coefficients have no covariance:
            rows and noise are the basis points and this then. Elsewhere the posterior knows both.

        Returns
        -------
        posterior : Posterior
        loss : float
            Monotone in n. With w = 1 it is additive over repeated pruning; with w = 0 it is
            measured by the precision of the posterior that is pruned, and is not.

        Notes
        -----
        With w = 1 the loss has as many digits as the Gram matrix has on the points that go: with v
        the least of their prior variances given those that stay, in units of the largest prior
        variance, its relative error is about 1e-15/v. Beyond the numerical rank, v below 1e-15, a
        loss may be wrong by its own size. That shows only where the data all but determine the
        function at such points (noise of 1e-8 of the signal or less), and is then still below 1e-5
        of this posterior's divergence from the prior.
        """
        return prune(self, n, noise)

    def replace(self, **changes: Any) -> Posterior:
        """Return a posterior with some of the constructor's arguments changed."""
        state = self.to_state()
        unknown = set(changes) - set(state)
        if unknown:
            raise ValueError(f"a Posterior has no {sorted(unknown)}; it has {sorted(state)}")
        return Posterior(**(state | changes))

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "basis": self.basis,
            "alpha": self.alpha,
            "A": self.A,
            "B": self.B,
            "weight": self.weight,
            "mean": self.mean_function,
            "scale": self.scale,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Posterior:
        """Rebuild from `to_state`."""
        return cls(**state)

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take."""
        factors = self._A.nbytes + self._B.nbytes
        return int(self.basis.points.nbytes + self.alpha.nbytes + factors)

    def describe(self) -> str:
        """Return a few lines of text on what this is made of."""
        kind = "full kernel (w = 1)" if self.weight else "degenerate (w = 0): linear in the basis"
        outputs = f"{self.n_outputs} {'coupled' if self.is_coupled else 'independent'}"
        return "\n".join(
            [
                f"Posterior, {kind}",
                f"  basis points        {self.n_basis}",
                f"  explicit functions  {self.n_features}",
                f"  outputs             {outputs if self.n_outputs > 1 else 1}",
                f"  kernel              {self.kernel!r}",
                f"  mean                {self.mean_function!r}",
                f"  memory              {self.nbytes / 2**20:.2f} MB",
            ]
        )

    def __repr__(self) -> str:
        return (
            f"<Posterior: {self.n_basis} basis points, {self.n_features} explicit functions, "
            f"{self.n_outputs} output(s), w={self.weight}>"
        )


def prior(kernel: Kernel, mean: Mean | None = None, n_outputs: int = 1) -> Posterior:
    """Return the posterior without data: an empty basis, the kernel and the mean as they are."""
    return Posterior(Basis(kernel), np.zeros((0, n_outputs)), mean=mean)
