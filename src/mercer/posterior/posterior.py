"""The one form that inference ends in (SOGP, lemma 1), and all that is done with it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import blas_for, row_blocks
from mercer.errors import JitterWarning
from mercer.kernels import Kernel
from mercer.linalg import cholesky, inverse_lower, mirror_lower, product, semidefinite_root
from mercer.means import Mean, Zero
from mercer.posterior.basis import Basis
from mercer.posterior.factors import Factor, FactorSet, frozen
from mercer.posterior.predictive import InputGradients, Predictive
from mercer.posterior.pruning import at_least_one, prune
from mercer.registry import storable

__all__ = ["Posterior", "prior"]

Floats = NDArray[np.float64]
Factors = Factor | Sequence[Factor] | None

# Bytes of phi in one block of rows. A block is copied at most three times, which keeps the memory
# beside the result under 64 MB.
_BLOCK_BYTES = 16 * 2**20
_TILE = 256


@storable
class Posterior(Predictive):
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
        self.basis = basis
        self.alpha = frozen(np.array(alpha, dtype=float))
        if self.alpha.ndim != 2 or len(self.alpha) < basis.n_points:
            raise ValueError(
                f"alpha must have a row for each of the {basis.n_points} basis points and a "
                f"column for each output, got shape {self.alpha.shape}"
            )
        if not np.all(np.isfinite(self.alpha)):
            raise ValueError("alpha must be finite, got NaN or infinity in it")
        if basis.n_features not in (None, self.n_features):
            raise ValueError(
                f"alpha has {self.n_features} rows beyond the basis points, but the basis has "
                f"{basis.n_features} explicit functions"
            )
        if weight not in (0, 1) or (weight == 0 and A is not None):
            raise ValueError(f"weight must be 1, or 0 with A=None, got {weight!r} and A={A!r}")
        self.weight = int(weight)
        self.mean_function: Mean = Zero() if mean is None else mean
        P = self.n_outputs
        self._scale = frozen(np.ones(P) if scale is None else np.array(scale, dtype=float))
        if self.scale.shape != (P,) or not np.all(np.isfinite(self.scale) & (self.scale > 0)):
            raise ValueError(f"scale must be {P} positive numbers, one an output, got {scale!r}")
        self.is_coupled = any(F is not None and not isinstance(F, Factor) for F in (A, B))
        c = P if self.is_coupled else 1
        self._A = FactorSet("A", A, c, len(self.alpha))
        self._B = FactorSet("B", B, c, len(self.alpha))

    # --- its parts ----------------------------------------------------------------------------

    @property
    def A(self) -> Factor | tuple[Factor, ...] | None:
        """What the data have taken from the prior covariance."""
        return self._given(self._A)

    @property
    def B(self) -> Factor | tuple[Factor, ...] | None:
        """What they have left of it, or was there beside it."""
        return self._given(self._B)

    def _given(self, factors: FactorSet) -> Factor | tuple[Factor, ...] | None:
        if not factors.factors:
            return None
        return tuple(factors.factors) if self.is_coupled else factors.factors[0]

    @property
    def kernel(self) -> Kernel:
        """The kernel of the basis."""
        return self.basis.kernel

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return int(self.alpha.shape[1])

    @property
    def scale(self) -> Floats:
        """s (P,): the units of each output."""
        return self._scale

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
        """C of SOGP 2.5, so that cov = k + k_B' C k_B, in the units of `scale`.

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
        if not self.n_basis:
            return np.empty((0, 0))
        with blas_for(self.n_basis):
            factor = cholesky(np.asfortranarray(self.kernel(self.basis.points)))
            if factor.jitter > 0:
                warnings.warn(
                    f"{factor.jitter:.3g} was added to the diagonal of the basis points' Gram "
                    "matrix to invert it for Q: some points are redundant, they repeat or lie "
                    "closer together than the kernel tells apart; `prune` removes such points",
                    JitterWarning,
                    stacklevel=2,
                )
            return mirror_lower(inverse_lower(factor.L))

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
        X = self.kernel.inputs(X)
        out = np.empty((len(X), self.n_outputs))
        for rows in self._blocks(len(X), _BLOCK_BYTES):
            Phi = self.basis.phi(X[rows])
            out[rows] = self.var_from(Phi, self._prior_var(X[rows]), overwrite=True)
        return out

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
        if not self.kernel.is_numeric:
            raise ValueError(f"{self.kernel!r} takes inputs that are not numbers: no gradients")
        X = self.kernel.inputs(X)
        n, d, P = len(X), X.shape[1], self.n_outputs
        dmean, dvar = np.empty((n, d, P)), np.empty((n, d, P))
        for rows in self._blocks(n, _BLOCK_BYTES // 2):
            Xb = X[rows]
            Phi = self.basis.phi(Xb)
            for p in range(P):
                rise = np.tile(self.alpha[:, p], (len(Phi), 1))
                dmean[rows, :, p] = self.scale[p] * self._pull_phi(Xb, rise)
            dmean[rows] += self._fixed_part_gradient(Xb)
            prior_part = np.zeros((len(Xb), d))
            if self.weight:
                pulled = self.kernel.pullback_diag(Xb, np.ones(len(Xb))).X
                assert pulled is not None
                prior_part += pulled
            for p in range(P if self.is_coupled else 1):
                # var = w k(x,x) - |A phi|^2 + |B phi|^2
                with blas_for(self.n_basis):
                    G = 2.0 * (self._B.half_gradient(Phi, p) - self._A.half_gradient(Phi, p))
                shared = prior_part + self._pull_phi(Xb, G)
                outputs = slice(p, p + 1) if self.is_coupled else slice(None)
                dvar[rows, :, outputs] = shared[:, :, None] * self.scale[outputs] ** 2
        return InputGradients(dmean, dvar)

    # --- from phi -----------------------------------------------------------------------------

    def mean_from(self, Phi: Floats) -> Floats:
        """Return s_p phi' alpha_p, shape (n, P), for rows phi of Phi: the mean less m(x)."""
        with blas_for(self.n_basis):
            return product(Phi, self.alpha * self.scale)

    def var_from(self, Phi: Floats, kdiag: Floats | None, *, overwrite: bool = False) -> Floats:
        """Return the variances (n, P) for rows phi of Phi, kdiag their k(x, x) (n,).

        `overwrite` permits Phi to be destroyed.
        """
        with blas_for(self.n_basis):
            v = self._B.norms(Phi)
            v -= self._A.norms(Phi, overwrite=overwrite)
        if kdiag is not None:
            v += self.weight * kdiag[:, None]
        np.maximum(v, 0.0, out=v)  # below 0 only by rounding
        return np.asarray(v * self.scale**2)

    def cov_from(self, Phi: Floats, Kss: Floats | None) -> Floats:
        """Return the joint covariance for rows phi of Phi; Kss (n, n) is k between the points.

        The shape is (n, n, P), or (n, P, n, P) for coupled outputs.
        """
        with blas_for(max(len(Phi) * self._B.c, self.n_basis)):
            S = self._joint(Phi, Kss)
        if self.is_coupled:
            return np.asarray(S * np.multiply.outer(self.scale, self.scale)[:, None, :])
        return np.asarray(S[:, :, None] * self.scale**2)

    def sample_from(
        self, Phi: Floats, Kss: Floats | None, n_samples: int, rng: np.random.Generator
    ) -> Floats:
        """Return joint draws less their mean, (n, n_samples, P), for rows phi of Phi.

        Kss is as in `cov_from`.
        """
        n, c, P = len(Phi), self._B.c, self.n_outputs
        with blas_for(max(n * c, self.n_basis)):
            if self.weight:
                S = self._joint(Phi, Kss)
                images = semidefinite_root(S.reshape(n * c, n * c)).reshape(n, c, -1)
            else:  # a linear model's factor is a root of its covariance already
                images = np.zeros((n, c, self._B.n_rows))
                for p, F in enumerate(self._B.factors):
                    images[:, p] = F.apply(Phi).T
            shared = 1 if self.is_coupled else P  # independent outputs have draws of their own
            z = rng.standard_normal((images.shape[2], n_samples * shared))
            draws = (images @ z).transpose(0, 2, 1).reshape(n, n_samples, P)
        return np.asarray(self.scale * draws)

    def _joint(self, Phi: Floats, Kss: Floats | None) -> Floats:
        """Return the covariance in units of `scale`: (n, n), or (n, P, n, P) if coupled."""
        S = self._B.products(Phi)
        S -= self._A.products(Phi)
        n, c = S.shape[:2]
        if Kss is not None:
            for p in range(c):
                S[:, p, :, p] += self.weight * Kss
        flat = S.reshape(n * c, n * c)
        np.fill_diagonal(flat, np.maximum(np.diagonal(flat), 0.0))  # below 0 only by rounding
        return S if self.is_coupled else flat

    def _fixed_part(self, X: Any) -> Floats:
        return np.array(self.mean_function(X, self.n_outputs), dtype=float)

    def _fixed_part_gradient(self, X: Any) -> Floats:
        return np.asarray(self.mean_function.gradient(X, self.n_outputs))

    def _prior_var(self, X: Any) -> Floats | None:
        return self.kernel.diag(X) if self.weight else None

    def _pull_phi(self, X: Floats, G: Floats) -> Floats:
        """Return the derivative (n, d) of sum(G * phi(X)) in X, a row each."""
        m = self.n_basis
        out = np.zeros(X.shape)
        if m:
            pulled = self.kernel.pullback(X, self.basis.points, G[:, :m]).X
            assert pulled is not None
            out += pulled
        if self.basis.features is not None and self.n_features:
            out += self.basis.features.pull_features(X, G[:, m:])
        return out

    def _blocks(self, n: int, limit: int) -> list[slice]:
        widest = max(len(self.alpha), self._A.n_rows, self._B.n_rows, self.n_outputs, 1)
        size = max(1, limit // (8 * widest))
        return row_blocks(n, size if size < _TILE else size - size % _TILE)

    # --- changing, saving, describing ---------------------------------------------------------

    def prune(self, n: int, noise: float | None = None) -> tuple[Posterior, float]:
        """Return a posterior on at most n of the basis points, and what that costs.

        Points are removed one after the other, each time the one whose loss is least. With w = 1
        the removal is (SOGP 3.16), which minimises KL(this, pruned), and the loss is that
        divergence, in nats, added over the outputs. With w = 0 the functions are projected on the
        kept sections by least squares at the basis points, and the loss is the divergence of
        noisy observations there. Explicit functions are always kept.

        Parameters
        ----------
        n : int
            How many basis points to keep. Fewer are kept where the others are redundant: no
            variance but rounding is left of them, given those that stay. With n >= `n_basis`
            this posterior itself is returned, and 0.0.
        noise : float, optional
            The variance of the noise; needed for w = 0 and unused otherwise.

        Returns
        -------
        posterior : Posterior
        loss : float
            Monotone in n. With w = 1 it is additive over repeated pruning; with w = 0 it is
            measured at the points of the basis that is pruned, and is not. It is a difference of
            divergences from the prior: where the data all but determine the function at points
            that are nearly redundant, these are huge, and it has their rounding.
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
