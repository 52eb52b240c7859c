"""On-line Gaussian processes as the paper writes them, and as Gaussians over all points at once.

Nothing here is imported from Mercer. `Textbook` has alpha, C and Q (SOGP 2.9, 3.2, 3.15, 3.16);
`Everywhere` has the joint Gaussian of the function at every input that a test asks about, where a
row, a projection and forgetting are what their definitions say. Both measure each projection and
removal by the divergence of two dense Gaussians.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr


def rbf(X, Z, length_scale=1.0, variance=1.0):
    difference = (X[:, None, :] - Z[None, :, :]) / length_scale
    return variance * np.exp(-0.5 * np.sum(difference**2, axis=2))


def divergence(mean, cov, other_mean, other_cov):
    """KL(N(mean, cov), N(other_mean, other_cov))."""
    away = other_mean - mean
    total = np.trace(np.linalg.solve(other_cov, cov)) - len(mean)
    total += away @ np.linalg.solve(other_cov, away)
    return 0.5 * (total + np.linalg.slogdet(other_cov)[1] - np.linalg.slogdet(cov)[1])


# --- likelihoods: functions (y, mean, var) -> log Z, q, r (SOGP 2.7) ------------------------------


def gaussian_site(noise):
    def site(y, mean, var):  # (SOGP 4.3, 4.4)
        t = noise + var
        return -0.5 * ((y - mean) ** 2 / t + np.log(2 * np.pi * t)), (y - mean) / t, -1 / t

    return site


def probit_site(noise_std):
    def site(y, mean, var):  # (SOGP 4.5 to 4.7), sigma_0 a standard deviation
        t = np.sqrt(noise_std**2 + var)
        z = y * mean / t
        ratio = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
        return log_ndtr(z), y * ratio / t, -ratio * (z + ratio) / t**2

    return site


def panels(low, high, cuts, pieces=60):
    """Nodes and weights of Gauss-Legendre panels from low to high, cut where a density jumps."""
    ends = np.linspace(low, high, pieces + 1)
    ends = np.unique(np.concatenate([ends, [c for c in cuts if low < c < high]]))
    x, w = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(ends)[:, None]
    return (ends[:-1, None] + half * (x + 1)).ravel(), (half * w).ravel()


def moments_site(density, cuts):
    """q and r by matching the mean and variance of p(y | f) N(f; mean, var)."""

    def site(y, mean, var):
        sd = np.sqrt(var)
        f, w = panels(mean - 12 * sd, mean + 12 * sd, cuts(y))
        w = w * density(y, f) * np.exp(-0.5 * (f - mean) ** 2 / var) / np.sqrt(2 * np.pi * var)
        Z = np.sum(w)
        shift = w @ (f - mean) / Z
        spread = w @ (f - mean - shift) ** 2 / Z
        return np.log(Z), shift / var, (spread - var) / var**2

    return site


def normal(x, var):
    return np.exp(-0.5 * x**2 / var) / np.sqrt(2 * np.pi * var)


#: Densities of an observation, where they or their slopes jump, and observations that suit them.
DENSITIES = {
    "probit": (lambda y, f: ndtr(y * f / 0.7), lambda y: [], (1.0, -1.0, -1.0)),
    "laplace": (lambda y, f: np.exp(-np.abs(y - f) / 0.4) / 0.8, lambda y: [y], (0.8, -1.3, 0.2)),
    "step": (lambda y, f: (y * f > 0) * 1.0, lambda y: [0.0], (1.0, 1.0, -1.0)),
    "window": (  # 0 wherever f is further than 1.2 from y
        lambda y, f: np.where(np.abs(y - f) < 1.2, 1 / 2.4, 0.0),
        lambda y: [y - 1.2, y + 1.2],
        (0.9, -0.4, 1.5),
    ),
    "mixture": (
        lambda y, f: 0.7 * normal(y - f - 0.1, 0.04) + 0.3 * normal(y - f + 0.5, 2.25),
        lambda y: [],
        (1.1, -2.0, 0.3),
    ),
}


# --- exact regression -----------------------------------------------------------------------------


def exact(K, noise, Y, cross, new, H=None, H_new=None):
    """Mean (t, P), covariance (t, t) and log evidence; with H a flat prior on its coefficients.

    cross : (t, n), new : (t, t), noise : variances (n,) or (n, n)
    """
    noise = np.diag(noise) if np.ndim(noise) == 1 else noise
    inverse = np.linalg.inv(K + noise)
    n, P = Y.shape
    mean, cov = cross @ inverse @ Y, new - cross @ inverse @ cross.T
    quadratic, log_det, dimensions = np.sum(Y * (inverse @ Y)), -np.linalg.slogdet(inverse)[1], n
    if H is not None:
        information = H.T @ inverse @ H
        beta = np.linalg.solve(information, H.T @ inverse @ Y)
        rest = H_new - cross @ inverse @ H
        mean, cov = mean + rest @ beta, cov + rest @ np.linalg.solve(information, rest.T)
        quadratic -= np.sum(beta * (information @ beta))
        log_det += np.linalg.slogdet(information)[1]
        dimensions -= H.shape[1]
    return mean, cov, -0.5 * (quadratic + P * (log_det + dimensions * np.log(2 * np.pi)))


# --- the paper's recursion ------------------------------------------------------------------------


class Textbook:
    """(SOGP 3.3), by alpha, C and Q; several outputs share the basis, each with alpha and C."""

    def __init__(self, kernel, site, d, max_basis, tol, novelty="geometry", criterion="mean", P=1):
        self.kernel, self.site, self.max_basis, self.tol = kernel, site, max_basis, tol
        self.novelty, self.criterion = novelty, criterion
        self.B, self.Q = np.empty((0, d)), np.empty((0, 0))
        self.alpha, self.C = [np.empty(0)] * P, [np.empty((0, 0))] * P
        self.loss = self.log_evidence = 0.0
        self.counts = {"added": 0, "projected": 0, "deleted": 0}

    def at(self, X, p=0):
        """Mean and covariance of output p (SOGP 2.8)."""
        k = self.kernel(X, self.B)
        return k @ self.alpha[p], self.kernel(X, X) + k @ self.C[p] @ k.T

    def learn(self, x, y):
        x = x[None]
        k, variance = self.kernel(self.B, x)[:, 0], self.kernel(x, x)[0, 0]
        e = self.Q @ k  # (SOGP 3.7)
        gamma = variance - k @ e  # (SOGP 3.14)
        sites = [
            self.site(y[p], self.alpha[p] @ k, variance + k @ self.C[p] @ k)
            for p in range(len(self.C))
        ]
        self.log_evidence += sum(s[0] for s in sites)
        if self.novelty == "geometry":
            is_new = gamma > self.tol * variance
        else:  # (SOGP 3.13)
            is_new = max(abs(s[1]) for s in sites) * gamma > self.tol * np.sqrt(variance)
        everywhere = np.vstack([self.B, x])
        reduced = [c.copy() for c in self.alpha], [c.copy() for c in self.C]
        for p, (_, q, r) in enumerate(sites):
            s = self.C[p] @ k + e  # (SOGP 3.2)
            reduced[0][p] += q * s
            reduced[1][p] += r * np.outer(s, s)
            s = np.append(self.C[p] @ k, 1.0)  # (SOGP 2.9)
            self.alpha[p] = np.append(self.alpha[p], 0.0) + q * s
            self.C[p] = np.pad(self.C[p], (0, 1)) + r * np.outer(s, s)
        old, self.B = self.B, everywhere
        full = [self.at(everywhere, p) for p in range(len(self.C))]
        if not is_new:
            self.B, self.alpha, self.C = old, *reduced
            self.loss += sum(self._costs(full, everywhere))
            self.counts["projected"] += 1
            return
        difference = np.append(e, -1.0)
        self.Q = np.pad(self.Q, (0, 1)) + np.outer(difference, difference) / gamma  # (SOGP 3.15)
        self.counts["added"] += 1
        if len(self.B) > self.max_basis:
            self.delete(int(np.argmin(self.scores())))

    def scores(self):
        """What each point's removal costs the output that loses most by it (SOGP 4.8)."""
        if self.criterion == "mean":
            return np.max(np.abs(self.alpha), axis=0) / np.diag(self.Q)  # (SOGP 3.18)
        full = [self.at(self.B, p) for p in range(len(self.C))]
        return [max(self.without(i)._costs(full, self.B)) for i in range(len(self.B))]

    def without(self, i):
        """The process with one point fewer (SOGP 3.16)."""
        new = Textbook(self.kernel, self.site, self.B.shape[1], self.max_basis, self.tol)
        stay = np.arange(len(self.B)) != i
        own, q = self.Q[stay, i], self.Q[i, i]
        new.B, new.Q = self.B[stay], self.Q[np.ix_(stay, stay)] - np.outer(own, own) / q
        new.alpha = [a[stay] - a[i] * own / q for a in self.alpha]
        new.C = [
            C[np.ix_(stay, stay)]
            + C[i, i] * np.outer(own, own) / q**2
            - (np.outer(own, C[stay, i]) + np.outer(C[stay, i], own)) / q
            for C in self.C
        ]
        return new

    def delete(self, i):
        """Remove point i, and add what that costs by dense divergences at the points."""
        full, new = [self.at(self.B, p) for p in range(len(self.C))], self.without(i)
        self.loss += sum(new._costs(full, self.B))
        self.B, self.Q, self.alpha, self.C = new.B, new.Q, new.alpha, new.C
        self.counts["deleted"] += 1

    def _costs(self, full, X):
        return [divergence(*full[p], *self.at(X, p)) for p in range(len(self.C))]


# --- all points at once ---------------------------------------------------------------------------


class Everywhere:
    """The Gaussian of z = (beta, g_1..g_N) at all N points, where f_i = h_i'beta + g_i.

    K : (N, N) the prior covariance of g, by which what is not kept is filled in
    H : (N, r) explicit functions
    """

    def __init__(self, K, mean, cov, H=None, basis=()):
        self.K, self.H = K, np.empty((len(K), 0)) if H is None else H
        self.mean, self.cov, self.basis, self.loss = mean.copy(), cov.copy(), list(basis), 0.0
        self.log_evidence = 0.0

    def functions(self):
        """Mean (N, P) and covariance (N, N) of f."""
        to_f = np.hstack([self.H, np.eye(len(self.K))])
        return to_f @ self.mean, to_f @ self.cov @ to_f.T

    def forget(self, keep):
        r = self.H.shape[1]
        shrink = np.r_[np.ones(r), np.full(len(self.K), np.sqrt(keep))]
        self.mean *= shrink[:, None]
        self.cov *= np.outer(shrink, shrink)
        self.cov[r:, r:] += (1 - keep) * self.K

    def see(self, i, y, site):
        """Condition on the row at point i, by lemma 1 for one row (SOGP 2.6)."""
        a = np.r_[self.H[i], np.eye(len(self.K))[i]]
        s = self.cov @ a
        results = [site(y[p], a @ self.mean[:, p], a @ s) for p in range(len(y))]
        for p, (log_z, q, _) in enumerate(results):
            self.log_evidence += log_z
            self.mean[:, p] += q * s
        self.cov += results[0][2] * np.outer(s, s)  # which the outputs share

    def novelty(self, i):
        B = self.basis
        return self.K[i, i] - self.K[i, B] @ np.linalg.solve(self.K[np.ix_(B, B)], self.K[B, i])

    def kept(self, basis):
        """Mean and covariance when g away from the basis is the prior's, given g there."""
        r, B = self.H.shape[1], np.array(basis, dtype=int)
        T = np.linalg.solve(self.K[np.ix_(B, B)], self.K[B]).T
        z = np.r_[np.arange(r), r + B]
        to_all = np.zeros((r + len(self.K), len(z)))
        to_all[:r, :r], to_all[r:, r:] = np.eye(r), T
        cov = to_all @ self.cov[np.ix_(z, z)] @ to_all.T
        cov[r:, r:] += self.K - T @ self.K[B]
        return to_all @ self.mean[z], cov

    def costs(self, basis):
        """What keeping only a part of the basis costs each output, by dense divergences."""
        r = self.H.shape[1]
        z = np.r_[np.arange(r), r + np.array(self.basis, dtype=int)]
        mean, cov = self.kept(basis)
        old, new = self.cov[np.ix_(z, z)], cov[np.ix_(z, z)]
        return [
            divergence(self.mean[z, p], old, mean[z, p], new) for p in range(self.mean.shape[1])
        ]

    def keep(self, basis):
        self.loss += sum(self.costs(basis))
        self.mean, self.cov = self.kept(basis)
        self.basis = list(basis)

    def cheapest(self, criterion):
        """The basis without the point of the least score."""
        B, r = self.basis, self.H.shape[1]
        fewer = [[b for b in B if b != i] for i in B]
        Q = np.linalg.inv(self.K[np.ix_(B, B)])
        if criterion == "mean":
            scores = np.max(np.abs(Q @ self.mean[r:][B]), axis=1) / np.diag(Q)
        else:
            scores = [max(self.costs(basis)) for basis in fewer]
        return fewer[int(np.argmin(scores))]

    def learn(self, i, y, site, max_basis, tol, criterion="mean", keep=1.0):
        if keep < 1.0:
            self.forget(keep)
        is_new = max_basis > 0 and self.novelty(i) > tol * self.K[i, i]
        old = self.basis
        self.see(i, y, site)
        self.basis = [*old, i]
        if not is_new:
            self.keep(old)
        elif len(self.basis) > max_basis:
            self.keep(self.cheapest(criterion))
