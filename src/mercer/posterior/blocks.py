"""New points that are joined to blocks of the training rows, given the inducing variables."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dsyrk

from mercer.compute import map_tiles
from mercer.linalg import cholesky, solve_lower
from mercer.means import Zero
from mercer.posterior.basis import Basis
from mercer.posterior.factors import Dense, InverseTriangular
from mercer.posterior.posterior import Posterior
from mercer.posterior.predictive import InputGradients, Predictive
from mercer.posterior.training_blocks import TrainingBlocks, rows_by_label
from mercer.registry import storable

__all__ = ["BlockPredictive"]

Floats = NDArray[np.float64]
_Rows = tuple[NDArray[np.intp], NDArray[np.intp]]


class _Part(NamedTuple):
    """The rows of X that belong to one block, and the posterior there."""

    rows: NDArray[np.intp]
    process: Posterior


@storable
class BlockPredictive(Predictive):
    """PIC: the posterior of a point has its block of training rows in the basis (UV 7).

    A point x that is joined to block s has, with r = k_s(x) - K_su K_uu^-1 k_u(x),

        mean(x) = m(x) + k_u(x)' alpha + r' E_s
        var(x)  = k(x,x) - |L^-1 k_u|^2 - |R^-1 r|^2 + |LA^-1 (k_u - K_us Lambda_s^-1 r)|^2

    where E = Sigma^-1 (y - H beta), L L' = K_uu, R R' = Lambda_s and LA LA' = A: a posterior over
    the inducing inputs and the rows of the block together. Points of two blocks go together
    through the inducing variables alone.

    Parameters
    ----------
    process : Posterior
        That of PITC: over the inducing inputs, A and B triangles L and LA (B with rows for
        coefficients of the mean below, if these are integrated out).
    blocks : TrainingBlocks

    Notes
    -----
    Means cost O(m^2 b) for each block of b rows that points are asked of, variances O((m + b)^3),
    and then as a posterior on m + b basis functions.
    """

    def __init__(self, process: Posterior, blocks: TrainingBlocks) -> None:
        if not isinstance(process.A, InverseTriangular):
            raise ValueError("the posterior of a sparse fit is wanted, A a triangle")
        self.process, self.blocks = process, blocks
        self._groups: NDArray[Any] | None = None

    def at(self, groups: ArrayLike) -> BlockPredictive:
        """Return the predictions of points that belong to these blocks, a label a point."""
        labels = np.asarray(groups)
        unknown = ~np.isin(labels, self.blocks.labels)
        if labels.ndim != 1 or np.any(unknown):
            raise ValueError(
                f"groups must hold labels of training blocks, such as {self.blocks.labels[:5]}, a "
                f"label a row, got {labels[unknown][:5] if labels.ndim == 1 else labels!r}"
            )
        new = copy.copy(self)
        new._groups = labels
        return new

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return self.process.n_outputs

    @property
    def scale(self) -> Floats:
        """The units of the outputs (P,)."""
        return self.process.scale

    def _asked(self, X: Any) -> Iterator[_Rows]:
        """Yield the rows of X that belong to a block, and the training rows of it."""
        groups = self.blocks.nearest(X) if self._groups is None else self._groups
        if len(groups) != len(X):
            raise ValueError(f"groups are of {len(groups)} points, and X has {len(X)} rows")
        for label, asked in zip(*rows_by_label(groups), strict=True):
            yield asked, self.blocks.rows(label)

    def _parts(self, X: Any) -> Iterator[_Part]:
        for asked, rows in self._asked(X):
            yield _Part(asked, self._block_posterior(rows))

    def _block_means(self, rows: NDArray[np.intp]) -> Posterior:
        """Return a process whose means alone are those of `_block_posterior`."""
        return self._joined(rows, self._explained(rows), None, None)

    def _explained(self, rows: NDArray[np.intp]) -> Floats:
        """Return V = L^-1 K_us, (m, b)."""
        K = self.process.kernel(self.blocks.X[rows], self.process.basis.points)
        return solve_lower(self._L, np.asfortranarray(K.T), overwrite=True)

    def _of_residual(self, V: Floats, E: Floats) -> Floats:
        """Return (m + b, k) what makes r'E of [k_u, k_s]: r = k_s - V'L^-1 k_u."""
        own = solve_lower(self._L, np.asfortranarray(V @ E), transpose=True, overwrite=True)
        return np.vstack([-own, E])

    def _joined(self, rows: NDArray[np.intp], V: Floats, A: Any, B: Any) -> Posterior:
        """Return a posterior over inducing inputs and rows of a block, with its means."""
        process, basis, m = self.process, self.process.basis, self.process.n_basis
        weights = np.vstack([self._of_residual(V, self.blocks.residuals[rows]), process.alpha[m:]])
        weights[:m] += process.alpha[:m]
        points = np.concatenate([basis.points, self.blocks.X[rows]])
        mean = process.mean_function if basis.features is None else Zero()
        wider = Basis(process.kernel, points, basis.features)
        return Posterior(wider, weights, A, B, 1, mean, process.scale)

    def _block_posterior(self, rows: NDArray[np.intp]) -> Posterior:
        """Return the posterior over inducing inputs and the rows of a block."""
        blocks, m, b = self.blocks, self.process.n_basis, len(rows)
        V = self._explained(rows)
        C = self.process.kernel.gram_lower(blocks.X[rows])
        C = dsyrk(-1.0, V, 1.0, C, trans=1, lower=1, overwrite_c=1)
        C.reshape(-1, order="F")[:: b + 1] += blocks.noise[rows]
        R = cholesky(C, 0.0).L
        joint = np.zeros((m + b, m + b), order="F")
        joint[:m, :m], joint[m:, :m], joint[m:, m:] = self._L, V.T, R
        F = solve_lower(R, np.asfortranarray(V.T))  # (b, m)
        inverse = self._inverse_LB
        # a = LB^-1 (v - F' rho), [v, rho] = joint^-1 phi: LB LB' >= F'F, so that nothing here is
        # large even where the noise is next to none
        image = np.asfortranarray(np.hstack([inverse, -inverse @ F.T]).T)
        top = solve_lower(joint, image, transpose=True, overwrite=True).T
        left = self._left(top, self._of_residual(V, blocks.regressors[rows]).T)
        return self._joined(rows, V, InverseTriangular(joint), Dense(left))

    @property
    def _L(self) -> Floats:
        A = self.process.A
        assert isinstance(A, InverseTriangular)
        return A.L

    @cached_property
    def _inverse_LB(self) -> Floats:
        """The inverse of the factor LB of L^-1 A L^-T."""
        B, m, L = self.process.B, self.process.n_basis, self._L
        if isinstance(B, InverseTriangular):
            LB = solve_lower(L, np.array(B.L, order="F"), overwrite=True)
            return solve_lower(LB, np.eye(m, order="F"), overwrite=True)
        assert isinstance(B, Dense)
        return np.asarray(B.M[:m, :m] @ np.tril(L))

    def _left(self, top: Floats, regressed: Floats) -> Floats:
        """Return B (of what the data leave) for phi = [k_u, k_s, h].

        `top` makes LA^-1 (k_u - K_us Lambda_s^-1 r) of [k_u, k_s], and `regressed` H'Sigma^-1 r.
        """
        B, m = self.process.B, self.process.n_basis
        if isinstance(B, InverseTriangular):
            return top
        assert isinstance(B, Dense)
        # [[LA^-1, 0], [-root alpha_H', root]], and root (h - alpha_H' k_u - H'Sigma^-1 r)
        root = B.M[m:, m:]
        below = -root @ regressed
        below[:, :m] += B.M[m:, :m]
        return np.block([[top, np.zeros((m, root.shape[1]))], [below, root]])

    # --- predictions --------------------------------------------------------------------------

    def mean(self, X: Any) -> Floats:
        """Return the mean at the rows of X, shape (n, P)."""
        X = self.process.kernel.inputs(X)
        out = np.empty((len(X), self.n_outputs))

        def fill(part: _Rows) -> None:
            asked, rows = part
            out[asked] = self._block_means(rows).mean(X[asked])

        map_tiles(fill, list(self._asked(X)))
        return out

    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, P)."""
        return self.mean_and_var(X)[1]

    def mean_and_var(self, X: Any) -> tuple[Floats, Floats]:
        """Return `mean(X)` and `var(X)`, which share work."""
        X = self.process.kernel.inputs(X)
        mean = np.empty((len(X), self.n_outputs))
        var = np.empty_like(mean)
        _ = self._inverse_LB  # before threads ask for it

        def fill(part: _Rows) -> None:
            asked, rows = part
            mean[asked], var[asked] = self._block_posterior(rows).mean_and_var(X[asked])

        map_tiles(fill, list(self._asked(X)))
        return mean, var

    def cov(self, X: Any) -> Floats:
        """Return the joint covariance at the rows of X, (n, n, P).

        Within a block it is that of the block's posterior; between blocks only what the data
        leave, B phi, goes together.
        """
        X = self.process.kernel.inputs(X)
        height = self.process.n_basis + self.process.n_features
        images, within = np.empty((len(X), height)), []
        for rows, process in self._parts(X):
            assert isinstance(process.B, Dense)
            images[rows] = process.B.apply(process.basis.phi(X[rows])).T
            within.append((rows, process.cov(X[rows])))
        cov = np.multiply.outer(images @ images.T, self.scale**2)
        for rows, own in within:
            cov[np.ix_(rows, rows)] = own
        return np.asarray(cov)

    def gradients(self, X: Any) -> InputGradients:
        """Return the derivatives of mean and variance in the inputs, each (n, d, P).

        Within a block: where a point would change to another block predictions jump.
        """
        X = self.process.kernel.inputs(X)
        dmean = np.empty((*X.shape, self.n_outputs))
        dvar = np.empty_like(dmean)
        for rows, process in self._parts(X):
            dmean[rows], dvar[rows] = process.gradients(X[rows])
        return InputGradients(dmean, dvar)

    # --- saving, describing -------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"process": self.process, "blocks": self.blocks}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BlockPredictive:
        """Rebuild from `to_state`."""
        return cls(**state)

    def describe(self) -> str:
        """Return a few lines of text on what this is made of."""
        blocks = self.blocks
        return (
            f"Points joined to {len(blocks.labels)} blocks of {len(blocks.X)} training rows, over\n"
            + self.process.describe()
        )
