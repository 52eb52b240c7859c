"""Predictions for which each point joins the inducing inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compute import row_blocks
from mercer.means import Mean, Zero
from mercer.posterior._augmentation import Augmented, augment
from mercer.posterior._solved_rows import Point, SolvedRows
from mercer.posterior.factors import frozen
from mercer.posterior.predictive import InputGradients, MarginalPredictive
from mercer.registry import storable

__all__ = ["AugmentedPredictive"]

Floats = NDArray[np.float64]

# Entries of all arrays that are worked on at once, about.
_ENTRIES = 4_000_000


class _Solved(NamedTuple):
    """The points of a block, the rows' solutions with each of them, and the mean there.

    rise : (t, r, P) what the coefficients of the mean gain by the point
    rest : (t, r) regressors less what the rows predict of them
    inverse : (t, r, r) covariance of these coefficients
    """

    X: Any
    point: Point
    augmented: Augmented
    h: Floats
    rise: Floats
    rest: Floats
    inverse: Floats


@storable
class AugmentedPredictive(MarginalPredictive):
    """Each point is predicted with itself among the inducing inputs (UV 8.1).

    Far from all inducing inputs the prior variance comes back, whatever the approximation; that of
    SoR is the same as that of DTC (UV Remark 12). Coefficients of the mean that are estimated or
    integrated out are so with the point added, as everything else.

    Points are predicted one by one: two of them belong to two models, and have no joint
    distribution. `cov` and `sample` take one row.

    Parameters
    ----------
    rows : SolvedRows
        T has the targets, less the mean, and the r regressors.
    n_outputs : int
    features : Mean, optional
        Whose regressors they are; none without it.
    change : (r, r) array, optional
        What they have been multiplied by.
    beta : (r, P) array, optional
        Coefficients, of regressors times `change`, that the targets have been lessened by and
        `mean` does not have.
    integrate : bool
        Whether the coefficients are integrated out.
    mean : Mean, optional
        What the targets have been lessened by.
    scale : (P,) array, optional

    Notes
    -----
    Keeps the training rows. With n of them and m inducing inputs a point costs O(n m) for SoR, DTC
    and VFE; O(n m) for PITC and PIC with blocks of order m, after O(n m^2) once; and O(n m^2) for
    FITC and power EP, where the point changes the variance of every row.
    """

    _alone = (
        "each point is predicted with itself among the inducing inputs, in a model of its own; "
        "take the points for inducing inputs together, inducing='query', or ask for one row"
    )

    def __init__(
        self,
        rows: SolvedRows,
        n_outputs: int,
        features: Mean | None = None,
        change: ArrayLike | None = None,
        beta: ArrayLike | None = None,
        integrate: bool = False,
        mean: Mean | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        self.rows, self._n_outputs, self.features = rows, int(n_outputs), features
        r = rows.T.shape[1] - self._n_outputs
        self.change = frozen(np.eye(r) if change is None else np.asarray(change, dtype=float))
        zeros = np.zeros((r, self._n_outputs))
        self.beta = frozen(zeros if beta is None else np.asarray(beta, dtype=float))
        if r < 0 or (features is None) != (r == 0) or len(self.change) != r:
            raise ValueError(
                f"T has {rows.T.shape[1]} columns: those beyond the {n_outputs} outputs must be "
                "the regressors of `features`"
            )
        self.integrate = bool(integrate)
        self.mean_function: Mean = Zero() if mean is None else mean
        ones = np.ones(self._n_outputs)
        self._scale = frozen(ones if scale is None else np.asarray(scale, dtype=float))

    @property
    def n_outputs(self) -> int:
        """The number P of outputs."""
        return self._n_outputs

    @property
    def scale(self) -> Floats:
        """The units of the outputs (P,)."""
        return self._scale

    # --- predictions --------------------------------------------------------------------------

    def _solved(self, X: Any, arrays: int) -> Iterator[tuple[slice, _Solved]]:
        """Yield blocks of points with what is known of them; `arrays` of (n, t) are at work."""
        rows, P = self.rows, self.n_outputs
        (n, q), m = rows.T.shape, len(rows.Z)
        widest = max(arrays * n, m * (q + 3))
        if rows.training == "blocks":
            widest = max(widest, m * len(rows.spans()))
        elif rows.training == "independent":
            widest = max(widest, 4 * (m + 1 + q) ** 2)  # records of some blocks of rows wait
        for s in row_blocks(len(X), max(1, _ENTRIES // widest)):
            point = rows.point(X[s])
            solution = augment(rows, X[s], point)
            h = np.empty((len(point.delta), 0))
            if self.features is not None:
                h = self.features.features(X[s]) @ self.change
            # dependent regressors get the smallest coefficients
            inverse: Any = np.linalg.pinv(
                solution.S[:, P:, P:], rcond=max(n, q) * np.finfo(float).eps, hermitian=True
            )
            rise = inverse @ solution.S[:, P:, :P]
            yield s, _Solved(X[s], point, solution, h, rise, h - solution.mean[:, P:], inverse)

    def mean(self, X: Any) -> Floats:
        """Return the mean at the rows of X, shape (n, P)."""
        return self.mean_and_var(X)[0]

    def var(self, X: Any) -> Floats:
        """Return the variance at the rows of X, shape (n, P)."""
        return self.mean_and_var(X)[1]

    def mean_and_var(self, X: Any) -> tuple[Floats, Floats]:
        """Return `mean(X)` and `var(X)`, which share nearly all work."""
        X, P = self.rows.kernel.inputs(X), self.n_outputs
        mean = np.array(self.mean_function(X, P), dtype=float)
        var = np.empty(len(X))
        for s, solved in self._solved(X, 0):
            own = solved.augmented.mean[:, :P] + solved.h @ self.beta
            own += np.einsum("tr,trp->tp", solved.rest, solved.rise)
            mean[s] += self.scale * own
            var[s] = np.maximum(solved.augmented.var, 0.0)
            if self.integrate:
                var[s] += np.einsum("tr,trs,ts->t", solved.rest, solved.inverse, solved.rest)
        return mean, var[:, None] * self.scale**2

    def gradients(self, X: Any) -> InputGradients:
        """Return the derivatives of mean and variance in the inputs, each (n, d, P).

        The mean is w'(Y - H beta) + h'beta and the variance k(x,x) - 2 w'k_f + w' Sigma w, at
        weights w that make the latter least: to first order these stay as they are, and what
        remains are the derivatives of k_f, h, and Sigma.
        """
        X, P = self.rows.kernel.inputs(X), self.n_outputs
        dmean = np.array(self.mean_function.gradient(X, P), dtype=float)
        dvar = np.empty(X.shape)
        for s, solved in self._solved(X, 2 * (self.rows.T.shape[1] + 2)):
            pulls, weights, E, rho = _Pulls(self, solved), *self._weights(solved)
            coefficients = self.beta + solved.rise
            best = weights[:, :, 1]
            for p in range(P):
                drho, ddelta = self._sigma_slopes(solved.point, rho, best, E[:, :, p])
                pulled = pulls(E[:, :, p], -drho, -ddelta, 0.0, coefficients[:, :, p])
                dmean[s, :, p] += self.scale[p] * pulled
            w = best if self.integrate else weights[:, :, 0]
            drho, ddelta = self._sigma_slopes(solved.point, rho, w, w)
            dh = np.einsum("trs,ts->tr", solved.inverse, solved.rest) * (2.0 * self.integrate)
            dvar[s] = pulls(-2.0 * w, drho, ddelta, 1.0, dh)
        return InputGradients(dmean, dvar[:, :, None] * self.scale**2)

    def _weights(self, solved: _Solved) -> tuple[Floats, Floats, Floats]:
        """Return weights of the targets (n, t, 2), Sigma^-1 (Y - H beta) (n, t, P), and rho.

        The weights are Sigma^-1 k_f, and those that predict the regressors right.
        """
        rows, point, P = self.rows, solved.point, self.n_outputs
        omega, eta = solved.augmented.omega, solved.augmented.eta
        K = rows.kernel(rows.X, rows.Z)
        rho = rows.rho(rows.X, K, solved.X, point)
        t, m, k = omega.shape
        flat = K @ omega.transpose(1, 0, 2).reshape(m, t * k)
        both = flat.reshape(len(K), t, k) + rho[:, :, None] * eta
        both[:, :, :-1] = rows.T[:, None, :] - both[:, :, :-1]
        both = rows.over_lambda(rho, point.delta, both)
        E = both[:, :, :P] - np.einsum("ntr,trp->ntp", both[:, :, P:-1], solved.rise)
        gain = np.einsum("trs,ts->tr", solved.inverse, solved.rest)
        best = both[:, :, -1] + np.einsum("ntr,tr->nt", both[:, :, P:-1], gain)
        return np.stack([both[:, :, -1], best], axis=2), E, rho

    def _sigma_slopes(
        self, point: Point, rho: Floats, a: Floats, b: Floats
    ) -> tuple[Floats, Floats]:
        """Return the derivatives of a' Sigma b in rho (n, t) and delta (t,)."""
        rows = self.rows
        with_a, with_b = np.einsum("nt,nt->t", rho, a), np.einsum("nt,nt->t", rho, b)
        drho, form = a * with_b + b * with_a, with_a * with_b
        if rows.training == "independent":
            share = (rows.power / rows.weights)[:, None] * a * b
            drho -= 2.0 * share * rho
            form = form - np.einsum("nt,nt->t", share, rho**2)
        elif rows.training == "blocks":
            for s in rows.spans():
                in_a = np.einsum("nt,nt->t", rho[s], a[s])
                in_b = np.einsum("nt,nt->t", rho[s], b[s])
                drho[s] -= a[s] * in_b + b[s] * in_a
                form = form - in_a * in_b
        return drho / point.delta * point.joins, -form / point.delta**2 * point.joins

    # --- saving, describing -------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "rows": self.rows,
            "n_outputs": self.n_outputs,
            "features": self.features,
            "change": self.change,
            "beta": self.beta,
            "integrate": self.integrate,
            "mean": self.mean_function,
            "scale": self.scale,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> AugmentedPredictive:
        """Rebuild from `to_state`."""
        return cls(**state)

    def describe(self) -> str:
        """Return a few lines of text on what this is made of."""
        rows = self.rows
        return (
            f"Each point beside {len(rows.Z)} inducing inputs, {len(rows.X)} training rows, "
            f"training conditional {rows.training}\n"
            f"  kernel  {rows.kernel!r}\n  mean    {self.mean_function!r}"
        )


class _Pulls:
    """Derivatives in k_f, rho, delta, k(x,x) and h, to those in x."""

    def __init__(self, made: AugmentedPredictive, solved: _Solved) -> None:
        self.made, self.solved = made, solved
        self.K = made.rows.kernel(made.rows.X, made.rows.Z)

    def __call__(self, dk: Floats, drho: Floats, ddelta: Floats, own: float, dh: Floats) -> Floats:
        """Return (t, d), for dk and drho (n, t), ddelta (t,) and dh (t, r)."""
        rows, point, X = self.made.rows, self.solved.point, self.solved.X
        # of a point that has joined already k_f is K_fu w, and k(x,x) is k_u'w
        known = dk * (1.0 - point.joins) - drho
        du = _over_gram(rows, self.K.T @ known)
        du += 2.0 * (own * (1.0 - point.joins) - ddelta) * point.w
        df = dk * point.joins + drho
        kernel = rows.kernel
        parts = (
            kernel.pullback(X, rows.X, np.ascontiguousarray(df.T)).X,
            kernel.pullback(X, rows.Z, np.ascontiguousarray(du.T)).X,
            kernel.pullback_diag(X, own * point.joins + ddelta).X,
        )
        out = np.sum([part for part in parts if part is not None], axis=0)
        if self.made.features is not None:
            out = out + self.made.features.pull_features(X, dh @ self.made.change.T)
        return np.asarray(out)


def _over_gram(rows: SolvedRows, B: Floats) -> Floats:
    """Return K_uu^-1 B."""
    half = rows.L.apply(np.ascontiguousarray(B.T), overwrite=True)
    return rows.L.pull(half, overwrite=True)
