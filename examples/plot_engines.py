r"""
Four engines and the truth
==========================

Without Gaussian noise the posterior of a latent function has no closed form. An engine replaces it
by a Gaussian, and there are several ways to choose one. On a problem that is small enough for a
sampler to be run until nothing changes, this example shows how good each of them is.
"""  # noqa: D205, D400

# %%
# A problem
# ---------
# Thirty labels on a line, a logistic link, and a kernel whose variance is large, so that the labels
# alone hold the function back. That is where the engines differ most: the posterior of each value
# is skewed, with a long tail away from 0.
#
# The truth is from :func:`mercer.testing.elliptical_slice`, a Markov chain on the function's values
# that has nothing to tune. It needs many thousand steps where the engines need ten or so.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import multivariate_t

from mercer.inference import LatentProblem, bounds, ep, laplace, variational
from mercer.kernels import RBF
from mercer.likelihoods import Logistic
from mercer.means import Zero
from mercer.testing import elliptical_slice

rng = np.random.default_rng(1)
n = 30
x = np.sort(rng.uniform(-5, 5, n))
y = np.where(rng.uniform(size=n) < expit(5 * np.sin(x)), 1.0, -1.0)
kernel = 25.0 * RBF(1.0)
X = x[:, None]
problem = LatentProblem(kernel, X, y, Logistic(), np.zeros(n))

began = perf_counter()
draws = elliptical_slice(
    lambda f: np.sum(log_expit(y * f)), kernel(X), 2500, n_burn=500, thin=10, rng=0
)
print(f"sampler: {perf_counter() - began:.1f} s")

# %%
# One value of the function
# -------------------------
# The posterior of the function where it is the least certain, as a histogram of the draws, and the
# engines' Gaussians. Laplace's is at the mode, and so on the wrong side of the long tail: too near
# to 0 and too narrow. The bounds on the logistic function (BKM 76) give the narrowest. The
# variational Gaussian is the nearest in the sense of (BKM 21), and expectation propagation, which
# matches moments, has mean and width about right.

engines = {
    "Laplace": (laplace, "#0072B2", "-"),
    "bounds": (bounds, "#8A8A8A", "-."),
    "variational": (variational, "#009E73", "--"),
    "EP": (ep, "#D55E00", "-"),
}
fitted = {}
for name, (engine, _, _) in engines.items():
    began = perf_counter()
    process, solution = engine.posterior(problem, Zero())
    fitted[name] = process, solution
    mean, var = (v[:, 0] for v in process.mean_and_var(X))
    print(
        f"{name:11s} {1000 * (perf_counter() - began):5.0f} ms; means off by "
        f"{np.mean(np.abs(mean - draws.mean(axis=0)) / draws.std(axis=0)):.3f} deviations, "
        f"deviations {np.mean(np.sqrt(var) / draws.std(axis=0)):.3f} of the right ones"
    )

row = int(np.argmax(draws.std(axis=0)))
f = np.linspace(-12, 22, 400) if draws[:, row].mean() > 0 else np.linspace(-22, 12, 400)
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.hist(draws[:, row], bins=60, density=True, color="#E0E0E0", label="sampler")
for name, (_, colour, style) in engines.items():
    mean, var = (v.item() for v in fitted[name][0].mean_and_var(X[[row]]))
    density = np.exp(-((f - mean) ** 2) / (2 * var)) / np.sqrt(2 * np.pi * var)
    ax.plot(f, density, style, color=colour, label=name)
ax.set(xlabel=f"f at x = {x[row]:.2f}", ylabel="density", xlim=(f[0], f[-1]))
_ = ax.legend(frameon=False)

# %%
# Probabilities
# -------------
# What is asked of a classifier is a probability, an average over the function. Here the differences
# are smaller. Laplace's method is too near to even odds, by a tenth at the most; the others are
# hard to tell from the truth.

grid = np.linspace(-7, 7, 200)[:, None]
# the sampler's function between the rows: its mean given the values there, and what is left
K = kernel(X) + 1e-9 * np.eye(n)
weights = np.linalg.solve(K, kernel(X, grid))
spread = np.maximum(kernel.diag(grid) - np.sum(kernel(X, grid) * weights, axis=0), 0.0)
right = 0.5 * (1 + Logistic().predictive_mean(draws[::8] @ weights, spread)).mean(axis=0)

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.plot(grid, right, color="#C8C8C8", linewidth=6, label="sampler")
for name, (_, colour, style) in engines.items():
    mean, var = fitted[name][0].mean_and_var(grid)
    probability = 0.5 * (1 + Logistic().predictive_mean(mean, var))[:, 0]
    ax.plot(grid, probability, style, color=colour, label=name)
    print(f"{name:11s} probabilities off by at most {np.max(np.abs(probability - right)):.3f}")
ax.plot(x, 0.5 * (1 + y), "*", color="#222222", markersize=7)
ax.set(xlabel="x", ylabel="p(y = 1 | x)", xlim=(-7, 7), ylim=(-0.05, 1.05))
_ = ax.legend(frameon=False, fontsize="small")

# %%
# Evidence
# --------
# Hyperparameters are chosen by the evidence, so that it matters how its error changes with them.
# The truth is found by importance sampling: draws from a distribution a little wider than EP's
# posterior, each weighted by the joint density over its own. Laplace's method and EP follow the
# truth, within half a nat over three decades of the variance. The variational evidence lies below,
# as a bound does, and the more so the larger the variance; its maximum is still where it should be.
# The bounds on the logistic function fall far behind, and prefer a variance that is much too small.


def log_evidence(case):
    """Return the log evidence by importance sampling around EP's posterior."""
    near = ep.solve(case)
    # f = root z, so that the prior of z is white and EP's posterior a Gaussian again
    root = np.linalg.cholesky(case.kernel(X) + 1e-8 * case.kernel.diag(X)[0] * np.eye(n))
    shape = np.linalg.inv(np.eye(n) + (root.T * near.precision) @ root)
    proposal = multivariate_t(root.T @ near.alpha, 1.1 * shape, df=30, seed=0)
    z = proposal.rvs(5000)
    joint = np.sum(log_expit(y * (z @ root.T)), axis=1)
    joint -= 0.5 * np.sum(z**2, axis=1) + 0.5 * n * np.log(2 * np.pi)
    return logsumexp(joint - proposal.logpdf(z)) - np.log(len(z))


variances = np.geomspace(0.3, 300, 10)
curves = {name: [] for name in engines}
truth = []
for variance in variances:
    case = LatentProblem(variance * RBF(1.0), X, y, Logistic(), np.zeros(n))
    for name, (engine, _, _) in engines.items():
        curves[name].append(engine.solve(case).log_evidence)
    truth.append(log_evidence(case))

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.plot(variances, truth, color="#C8C8C8", linewidth=6, label="importance sampling")
for name, (_, colour, style) in engines.items():
    ax.plot(variances, curves[name], style, color=colour, label=name)
    best = variances[np.argmax(curves[name])]
    print(f"{name:11s} log evidence off by at most", end=" ")
    print(f"{np.max(np.abs(np.array(curves[name]) - truth)):.2f}, largest at {best:.0f}")
print(f"truth: largest at a variance of {variances[np.argmax(truth)]:.0f}")
ax.set(xscale="log", xlabel="variance of the function", ylabel="log evidence")
_ = ax.legend(frameon=False)

plt.show()
