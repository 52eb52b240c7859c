"""Pruning of nearly noise-free posteriors, against decimals of many digits."""

from __future__ import annotations

import decimal
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.kernels import RBF
from mercer.posterior import Basis, InverseTriangular, Posterior

from .kept_points import where

DIGITS = 70


def decimals(array):
    return np.vectorize(Decimal, otypes=[object])(np.asarray(array, dtype=float))


def exact_root(S):
    """The lower Cholesky factor, in decimals."""
    L = S * 0
    for j in range(len(S)):
        for i in range(j, len(S)):
            rest = S[i, j] - L[i, :j] @ L[j, :j] if j else S[i, j]
            L[i, j] = rest.sqrt() if i == j else rest / L[j, j]
    return L


def exact_solve(L, B):
    out = B.copy()
    for i in range(len(L)):
        if i:
            out[i] -= L[i, :i] @ out[:i]
        out[i] /= L[i, i]
    return out


class Misfit:
    """12 points or so, next to no noise, and targets that do not suit the kernel."""

    def __init__(self, length, m, noise, seed, size=1.0):
        self.X = np.linspace(0, 5, m)[:, None]
        self.length = length
        Q = RBF(length)(self.X) + noise * np.eye(m)
        y = size * np.random.default_rng(seed).standard_normal((m, 1))
        A = InverseTriangular(np.linalg.cholesky(Q))
        self.posterior = Posterior(Basis(RBF(length), self.X), np.linalg.solve(Q, y), A)
        with decimal.localcontext() as context:
            context.prec = DIGITS
            X = decimals(self.X[:, 0])
            factor = decimals(np.tril(A.L))
            exponent = -((X[:, None] - X) ** 2) / Decimal(2 * length**2)
            self.K = np.vectorize(lambda e: e.exp(), otypes=[object])(exponent)
            image = exact_solve(factor, self.K)
            self.S = self.K - image.T @ image
            self.mean = self.K @ decimals(self.posterior.alpha[:, 0])

    def divergence(self, R):
        """D(R), to some 40 digits."""
        R = list(R)
        with decimal.localcontext() as context:
            context.prec = DIGITS
            L, S = exact_root(self.K[np.ix_(R, R)]), exact_root(self.S[np.ix_(R, R)])
            u = exact_solve(L, self.mean[R])
            V = exact_solve(L, S)
            ratio = sum((S[i, i] / L[i, i]).ln() for i in range(len(R)))
            return (np.sum(V * V) - len(R) + u @ u) / 2 - ratio

    def least_variance(self, R):
        """The least prior variance among the other points, each given R and the others before."""
        order = [*R, *(i for i in range(len(self.X)) if i not in R)]
        with decimal.localcontext() as context:
            context.prec = DIGITS
            root = exact_root(self.K[np.ix_(order, order)])
        return float(min(root[i, i] for i in range(len(R), len(order)))) ** 2

    def loss(self, R):
        return float(self.divergence(range(len(self.X))) - self.divergence(R))

    def greedy(self, n):
        R = list(range(len(self.X)))
        while len(R) > n:
            rests = [R[:i] + R[i + 1 :] for i in range(len(R))]
            R = max(rests, key=self.divergence)
        return R


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("length", "m", "noise"), [(4, 9, 1e-8), (3, 10, 1e-8), (3, 9, 1e-6), (1, 15, 1e-4)]
)
def test_nearly_redundant_points_are_weighed_like_others(length, m, noise, seed):
    # Conditional variances fall to 1e-12 of the prior's, but the targets make them count. They are
    # known to the rounding of the Gram matrix's entries, and so is the loss, however small.
    case = Misfit(length, m, noise, seed, size=0.01)
    for n in (m - 1, m - 2, m - 3, m // 2):
        pruned, found = case.posterior.prune(n)
        kept = where(pruned, case)
        assert kept == case.greedy(n)
        accuracy = 20 * np.finfo(float).eps / case.least_variance(kept)
        assert_allclose(found, case.loss(kept), rtol=accuracy)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("length", "m"), [(4, 12), (3, 20)])
def test_points_go_by_their_loss_down_to_the_numerical_rank(length, m, seed):
    case = Misfit(length, m, 1e-8, seed)
    total = float(case.divergence(range(m)))
    rank = int(np.linalg.matrix_rank(RBF(length)(case.X)))
    for n in (m - 1, rank):
        pruned, found = case.posterior.prune(n)
        assert min(n, rank) <= pruned.n_basis <= n
        loss = case.loss(where(pruned, case))
        # Rounding of the Gram matrix leaves divergences with six digits or so, and of what such
        # points cost the size at best: the bound that `prune` documents.
        assert loss < 1e-5 * total
        assert abs(found - loss) < 1e-5 * total
