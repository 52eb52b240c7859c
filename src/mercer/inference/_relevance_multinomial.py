"""The sequential algorithm for several latent numbers a row that are coupled by the likelihood.

Not an engine. With W (q, q) at each row and q coefficients for a function, the statistics of one
function take O(nkq^2), so that they are computed for few: those whose slopes are largest beside
their own curvatures. All are looked at when none of these gains any more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mercer.inference._relevance_blocks import best_shared
from mercer.inference._relevance_evidence import covariance
from mercer.inference._relevance_growth import Addition, Growth
from mercer.linalg.precisions import COLLINEAR

__all__ = ["Coupled"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# The part of its square under the weights that a function has left under the curvatures, at least.
_BARE = 1e-30
# Functions whose statistics are computed: the likeliest, and in a piece of all of them.
_SOME, _PIECE = 32, 128
# Functions that come in together have no more than this in common, and are no more than a part of
# those in the model.
_ALIKE, _MOST = 0.7, 0.25
# The part of what was said that the evidence must gain, for longer and shorter runs, and of `tol`.
_GOOD, _POOR, _PART = 0.6, 0.3, 0.1


class Coupled(Growth):
    """A model of q latent numbers a row; see `Growth`."""

    def refresh(self) -> None:
        """Compute the slopes of all functions, and their curvatures without the model."""
        at, table = self.point, self.table
        q = self.sites.width
        self._Phi = table.plain(self.indices)
        self._Xi = covariance(at.R)
        table.weigh(np.einsum("cci->i", at.bend) / q)
        self._D = table.D.copy()
        self._Q = np.column_stack(
            [table.times(np.ascontiguousarray(g)) for g in at.pull.T]
        )  # (M, q)
        self._found: list[Addition] | None = None

    def _statistics(self, some: Indices) -> tuple[Floats, Floats]:
        """Return S (m, q, q) of functions, and Phi'W phi (kq, q, m)."""
        at, A = self.point, self.table.plain(some)
        (k, q), m = at.theta.shape, len(some)
        T = np.empty((k * q, q, m))
        S = np.empty((m, q, q))
        for c in range(q):
            for d in range(c, q):
                WA = at.bend[c, d][:, None] * A
                S[:, c, d] = S[:, d, c] = np.einsum("ij,ij->j", WA, A)
                T[c * k : (c + 1) * k, d] = T[d * k : (d + 1) * k, c] = self._Phi.T @ WA
        V = solve_triangular(at.R, T.reshape(k * q, q * m), trans=1, check_finite=False)
        V = V.reshape(k * q, q, m)
        S -= np.einsum("acm,adm->mcd", V, V, optimize=True)
        return S, T

    def _likely(self) -> Indices:
        """Return the functions that may come in, the likeliest first."""
        D = self._D
        outside = (D > _BARE * self.table.weight * self.widths) & ~self._zero
        outside[self.indices] = False
        outside[list(self._aside)] = False
        ratio = np.where(outside, np.sum(self._Q**2, axis=1) / np.where(D > 0, D, 1.0), -1.0)
        order = np.argsort(-ratio, kind="stable")
        return np.asarray(order[: int(np.sum(outside))], dtype=np.intp)

    def _gaining(self, some: Indices) -> list[Addition]:
        S, _ = self._statistics(some)
        s, gain = best_shared(S, self._Q[some], self.penalty)
        there = np.isfinite(s) & (gain >= self.tol)
        s = np.where(there, s, 1.0)
        left = s + np.einsum("mcc->m", S) / S.shape[1]
        there &= left > COLLINEAR * (s + self._D[some])
        return [
            (int(some[i]), float(s[i]), float(gain[i]))
            for i in np.argsort(-gain, kind="stable")
            if there[i]
        ]

    def additions(self, many: int) -> list[Addition]:
        """Return the best functions outside the model; all are looked at if the first do not do."""
        if self._found is None:
            order = self._likely()
            self._found = self._gaining(order[:_SOME]) if len(order) else []
            first = _SOME
            while not self._found and first < len(order):
                self._found = self._gaining(order[first : first + _PIECE])
                first += _PIECE
        return [one for one in self._found if one[0] not in self._aside][:many]

    def stride(self) -> bool:
        """Add functions that have little in common; False if none gains."""
        found = self.additions(_SOME)
        if not found:
            return False
        if not self.may_step():
            return True
        most = min(int(self._pace), self.left)
        A = self.table.take(np.array([i for i, _, _ in found], dtype=np.intp))
        A /= np.linalg.norm(A, axis=0)
        chosen: list[int] = []
        for place in range(len(found)):
            if len(chosen) >= most:
                break
            if not chosen or np.max(np.abs(A[:, place] @ A[:, chosen])) < _ALIKE:
                chosen.append(place)
        come = [found[place] for place in chosen]
        said = sum(gain for _, _, gain in come)
        self.n_steps += len(come)
        indices = np.append(self.indices, [i for i, _, _ in come]).astype(np.intp)
        s = np.append(self.point.s, [one for _, one, _ in come])
        before = self.point.value
        least = max(_PART * self.tol, _POOR * said if len(come) > 1 else 0.0)
        new = self.trial(indices, s, 2, least)
        if new is not None:
            self.take(indices, self.of(indices).ascended(new, 1, 0.0))
            if self.point.value - before >= _GOOD * said:
                self._pace = min(2.0 * self._pace, max(1.0, _MOST * len(indices)))
            return True
        if len(come) > 1:
            self._pace = max(1.0, 0.25 * self._pace)
            return True
        return self.add_one()

    def _blocks(self) -> Floats:
        """Return Xi_jj of the functions in the model, (k, q, q)."""
        k, q = self.point.theta.shape
        return np.asarray(np.einsum("cjdj->jcd", self._Xi.reshape(q, k, q, k)))

    def worth(self) -> Floats:
        """Return what the working regression would lose with each function."""
        at, own = self.point, self._blocks()
        logs = np.linalg.slogdet(own)[1] + own.shape[1] * np.log(at.s)
        fit = np.einsum("jc,jc->j", at.theta, np.linalg.solve(own, at.theta[:, :, None])[:, :, 0])
        worth = 0.5 * (logs + fit)
        if not self.penalty.is_flat:
            worth = worth + self.penalty.hyperprior.log_hyper(at.s)
        return np.asarray(worth)

    def swaps(self) -> list[tuple[int, int, float]]:
        """Return exchanges for the likeliest functions that gain, best first."""
        some = self._likely()[:_SOME]
        if not len(some):
            return []
        at = self.point
        k, q = at.theta.shape
        S, T = self._statistics(some)
        image = (self._Xi @ T.reshape(k * q, -1)).reshape(q, k, q, len(some))
        own, worth, found = self._blocks(), self.worth(), []
        for j in range(k):
            if self.indices[j] in self._always:
                continue
            X = image[:, j]  # (q, q, m)
            back = np.linalg.solve(own[j], X.reshape(q, -1)).reshape(X.shape)
            without = S + np.einsum("acm,adm->mcd", X, back)
            quality = self._Q[some] + np.einsum("acm,a->mc", back, at.theta[j])
            s, gain = best_shared(without, quality, self.penalty)
            best = int(np.argmax(gain))
            if np.isfinite(s[best]) and gain[best] - worth[j] >= self.tol:
                found.append((gain[best] - worth[j], j, best, float(s[best])))
        found.sort(key=lambda one: -one[0])
        return [(int(self.indices[j]), int(some[i]), s) for _, j, i, s in found]
