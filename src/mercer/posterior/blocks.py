"""New points that are joined to blocks of the training rows, given the inducing variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.linalg import cholesky, solve_lower
from mercer.means import Zero
from mercer.posterior.basis import Basis
from mercer.posterior.factors import Dense, InverseTriangular, frozen
from mercer.posterior.posterior import Posterior
from mercer.posterior.predictive import InputGradients, Predictive
from mercer.registry import storable

__all__ = ["BlockPredictive", "TrainingBlocks"]

Floats = NDArray[np.float64]


@storable
class TrainingBlocks:
    """The training rows of PIC, by blocks.

    Parameters
    ----------
    X : inputs, n rows
    groups : (n,) array
        The block that each row belongs to.
    noise : (n,) array
        Noise variances, over the weights.
    residuals : (n, P) array
        Sigma^-1 (Y - H beta), Sigma = Q + Lambda.
    regressors : (n, r) array
        Sigma^-1 H of coefficients that are integrated out; (n, 0) without any.
    centres : (g, d) array, optional
        Where the blocks are, in the order of ``np.unique(groups)``. Without them new points must
        say which block they belong to.
    widths : (d,) array, optional
        Units of the columns in which distances from the centres are taken; ones without it.
    """

    def __init__(
        self,
        X: Any,
        groups: ArrayLike,
        noise: ArrayLike,
        residuals: ArrayLike,
        regressors: ArrayLike,
        centres: ArrayLike | None = None,
        widths: ArrayLike | None = None,
    ) -> None:
        self.X, self.groups = frozen(np.asarray(X)), frozen(np.asarray(groups))
        self.noise = frozen(np.asarray(noise, dtype=float))
        self.residuals = frozen(np.asarray(residuals, dtype=float))
        self.regressors = frozen(np.asarray(regressors, dtype=float))
        self.labels = np.unique(self.groups)
        self.centres = None if centres is None else frozen(np.asarray(centres, dtype=float))
        self.widths = frozen(np.asarray(1.0 if widths is None else widths, dtype=float))
        n = len(self.X)
        lengths = {len(self.groups), len(self.noise), len(self.residuals), len(self.regressors)}
        placed = self.labels if self.centres is None else self.centres
        if lengths != {n} or len(placed) != len(self.labels):
            raise ValueError(
                f"{n} rows of inputs want as many groups, noise variances and residuals, and a "
                f"centre for each of their {len(self.labels)} blocks"
            )

    def nearest(self, X: Floats) -> NDArray[Any]:
        """Return the label of the block whose centre is nearest, for each row."""
        if self.centres is None:
            raise ValueError(
                "the blocks of these inputs have no centres to be near to: say by groups which "
                "block each point belongs to"
            )
        best = np.full(len(X), np.inf)
        found = np.zeros(len(X), dtype=np.intp)
        for i, centre in enumerate(self.centres):
            distance = np.sum(((X - centre) / self.widths) ** 2, axis=1)
            closer = distance < best
            best[closer], found[closer] = distance[closer], i
        return np.asarray(self.labels[found])

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "X": self.X,
            "groups": self.groups,
            "noise": self.noise,
            "residuals": self.residuals,
            "regressors": self.regressors,
            "centres": self.centres,
            "widths": self.widths,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TrainingBlocks:
        """Rebuild from `to_state`."""
        return cls(**state)


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
    O((m + b)^3) for each block of b rows that points are asked of, and then as a posterior on
    m + b basis functions.
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
        new = BlockPredictive(self.process, self.blocks)
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

    def _parts(self, X: Any) -> Iterator[_Part]:
        groups = self.blocks.nearest(X) if self._groups is None else self._groups
        if len(groups) != len(X):
            raise ValueError(f"groups are of {len(groups)} points, and X has {len(X)} rows")
        for label in np.unique(groups):
            yield _Part(np.flatnonzero(groups == label), self._block_posterior(label))

    def _block_posterior(self, label: Any) -> Posterior:
        """Return the posterior over inducing inputs and the rows of a block."""
        process, blocks = self.process, self.blocks
        rows = np.flatnonzero(blocks.groups == label)
        X, E = blocks.X[rows], blocks.residuals[rows]
        basis, kernel, m = process.basis, process.kernel, process.n_basis
        A = process.A
        assert isinstance(A, InverseTriangular)
        L = A.L
        V = solve_lower(L, np.asfortranarray(kernel(X, basis.points).T))  # (m, b)
        C = kernel.gram_lower(X)
        C -= V.T @ V
        C.reshape(-1, order="F")[:: len(C) + 1] += blocks.noise[rows]
        R = cholesky(C, 0.0).L
        joint = np.zeros((m + len(X), m + len(X)), order="F")
        joint[:m, :m], joint[m:, :m], joint[m:, m:] = L, V.T, R
        # r = k_s - V'L^-1 k_u
        change = np.hstack([-solve_lower(L, V, transpose=True).T, np.eye(len(X))])  # r from phi
        F = solve_lower(R, np.asfortranarray(V.T))  # (b, m)
        inverse = self._inverse_LB(L)
        # a = LB^-1 (v - F' rho), [v, rho] = joint^-1 phi: LB LB' >= F'F, so that nothing here is
        # large even where the noise is next to none
        image = np.asfortranarray(np.hstack([inverse, -inverse @ F.T]).T)
        top = solve_lower(joint, image, transpose=True, overwrite=True).T
        alpha = process.alpha
        weights = np.vstack([alpha[:m] + change[:, :m].T @ E, E, alpha[m:]])
        left = self._left(top, blocks.regressors[rows].T @ change)
        points = np.concatenate([basis.points, X])
        return Posterior(
            Basis(kernel, points, basis.features),
            weights,
            InverseTriangular(joint),
            Dense(left),
            1,
            process.mean_function if basis.features is None else Zero(),
            process.scale,
        )

    def _inverse_LB(self, L: Floats) -> Floats:
        """Return the inverse of the factor LB of L^-1 A L^-T."""
        B, m = self.process.B, self.process.n_basis
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
        for rows, process in self._parts(X):
            out[rows] = process.mean(X[rows])
        return out

    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, P)."""
        return self.mean_and_var(X)[1]

    def mean_and_var(self, X: Any) -> tuple[Floats, Floats]:
        """Return `mean(X)` and `var(X)`, which share work."""
        X = self.process.kernel.inputs(X)
        mean = np.empty((len(X), self.n_outputs))
        var = np.empty_like(mean)
        for rows, process in self._parts(X):
            mean[rows], var[rows] = process.mean_and_var(X[rows])
        return mean, var

    def cov(self, X: Any) -> Floats:
        """Return the joint covariance at the rows of X, (n, n, P).

        Within a block it is that of the block's posterior; between blocks only what the data
        leave, B phi, goes together.
        """
        X = self.process.kernel.inputs(X)
        n, parts = len(X), list(self._parts(X))
        images = np.empty((n, parts[0].process.B.n_rows if parts else 0))  # type: ignore[union-attr]
        for rows, process in parts:
            assert isinstance(process.B, Dense)
            images[rows] = process.B.apply(process.basis.phi(X[rows])).T
        cov = np.multiply.outer(images @ images.T, self.scale**2)
        for rows, process in parts:
            cov[np.ix_(rows, rows)] = process.cov(X[rows])
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
