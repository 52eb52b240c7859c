"""Expectation propagation as the textbook writes it: a site at a time, moments by brute force."""

from __future__ import annotations

import numpy as np


def log_evidence(problem, powers, tol=1e-8, sweeps=1000, damping=0.6):
    """ln Z of EP with a power for each row, K inverted, tilted moments summed over a fine grid.

    Z = int N(f; m, K) prod_i t_i(f_i), where each site t_i = exp(a_i + nu_i f - tau_i f^2/2) makes
    the integral of the cavity times t_i^power, and two moments, what p_i^power makes them.
    """
    n, m, K = problem.n, problem.mean, problem.kernel(problem.X)
    P = np.linalg.inv(K)
    tau, nu, a = np.zeros(n), np.zeros(n), np.zeros(n)
    for _ in range(sweeps):
        change = 0.0
        for i, power in enumerate(np.broadcast_to(powers, n)):
            Sigma = np.linalg.inv(P + np.diag(tau))
            mu = Sigma @ (P @ m + nu)
            precision = 1.0 / Sigma[i, i] - power * tau[i]
            shift = mu[i] / Sigma[i, i] - power * nu[i]
            mean, sd = shift / precision, precision**-0.5
            f, h = np.linspace(mean - 12.0 * sd, mean + 12.0 * sd, 8001, retstep=True)
            log_p = problem.likelihood.log_density(problem.y[i], f)
            weight = np.exp(power * log_p - 0.5 * ((f - mean) / sd) ** 2) * h
            Z = weight.sum()
            centre = (f * weight).sum() / Z
            spread = ((f - centre) ** 2 * weight).sum() / Z
            new = (1.0 / spread - precision) / power, (centre / spread - shift) / power
            change = max(change, abs(centre - mu[i]) / sd, abs(spread / Sigma[i, i] - 1.0))
            tau[i] += damping * (new[0] - tau[i])
            nu[i] += damping * (new[1] - nu[i])
            # of the cavity times t_i^power: Z over what it is with a_i = 0, for the new site
            whole = precision + power * tau[i]
            at = (shift + power * nu[i]) / whole
            log_plain = 0.5 * (whole * at**2 - precision * mean**2)
            log_plain += 0.5 * np.log(2.0 * np.pi / whole)
            a[i] = (np.log(Z) - log_plain) / power
        if change < tol:
            break
    else:
        raise AssertionError(f"not settled: {change}")
    Sigma = np.linalg.inv(P + np.diag(tau))
    mu = Sigma @ (P @ m + nu)
    value = np.sum(a) + 0.5 * (mu @ (P @ m + nu) - m @ P @ m)
    return float(value + 0.5 * (np.linalg.slogdet(Sigma)[1] - np.linalg.slogdet(K)[1]))
