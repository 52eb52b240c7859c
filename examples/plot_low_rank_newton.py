r"""
Low-rank Newton
===============

Laplace's method finds the mode of the posterior by Newton's method, and a step of it costs
:math:`O(n^3)`. If the kernel matrix is nearly of rank m, the step can be had for :math:`O(n m^2)`:
*Bayesian Kernel Methods* (equations 73 to 75) replaces K by :math:`U^\top K_{mm} U`, with m basis
points chosen from the rows. This page chooses such points in three ways, and looks at what is lost.
"""  # noqa: D205, D400

# %%
# Which rows
# ----------
# Two thousand labelled points with long tails. Rows drawn by chance lie where the data lie. Pivoted
# Cholesky takes the row whose value is least certain given those it has, and so runs to the edge
# first. Sparse greedy approximation tries 59 rows at a time and takes the one that explains most of
# all the others: it covers the crowd evenly, and leaves the outlying rows for later.

from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np

from mercer.inference import LatentProblem, laplace
from mercer.inference.low_rank import LowRankProblem, posterior, solve
from mercer.kernels import RBF
from mercer.likelihoods import Logistic
from mercer.means import Zero
from mercer.selection import nystrom, pivoted_cholesky, random_subset, sparse_greedy_matrix

rng = np.random.default_rng(0)
n = 2000
X = rng.standard_t(5, size=(n, 2))
latent = 3 * np.sin(1.5 * X[:, 0]) + 2 * X[:, 1]
y = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-latent)), 1.0, -1.0)
kernel = 6.0 * RBF(1.0)

most = 240
greedy = {
    "pivoted Cholesky": pivoted_cholesky(kernel, X, most),
    "sparse greedy": sparse_greedy_matrix(kernel, X, most, rng=0),
}
rows = {"chance": random_subset(X, most, rng=0)}
rows |= {name: chosen.indices for name, chosen in greedy.items()}
colours = {"chance": "#8A8A8A", "pivoted Cholesky": "#0072B2", "sparse greedy": "#D55E00"}

figure, panels = plt.subplots(1, 3, figsize=(13, 4.2), sharey=True, layout="constrained")
for ax, (name, chosen) in zip(panels, rows.items(), strict=True):
    ax.plot(*X.T, ".", color="#D0D0D0", markersize=2)
    ax.plot(*X[chosen[:30]].T, "o", color=colours[name], markersize=6)
    ax.set(title=f"{name}: the first 30", xlabel=r"$x_1$", xlim=(-6, 6), ylim=(-6, 6))
_ = panels[0].set_ylabel(r"$x_2$")

# %%
# What they leave
# ---------------
# The trace of :math:`K - VV^\top` is the variance of the latent function at the rows that the basis
# points do not explain, added up. No m rows leave less than the smallest eigenvalues do (dotted).
# Early on pivoting spends its choices on the edge, and rows drawn by chance are better. Later most
# rows that chance draws lie next to others it has, and add nothing, while the two greedy choices
# follow the eigenvalues down.

eigenvalues = np.linalg.eigvalsh(kernel(X))[::-1]
numbers = np.array([10, 20, 40, 80, 120, 160, 200, 240])
left = {name: chosen.traces[numbers] for name, chosen in greedy.items()}
left["chance"] = np.array(
    [nystrom(kernel, X, X[rows["chance"][:m]]).residual.sum() for m in numbers]
)
total = np.sum(kernel.diag(X))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name in rows:
    ax.semilogy(numbers, left[name] / total, "o-", color=colours[name], markersize=4, label=name)
best = np.array([eigenvalues[m:].sum() for m in numbers])
ax.semilogy(numbers, best / total, ":", color="#333333", label="eigenvectors")
ax.set(xlabel="basis points", ylabel="part of the trace that is left")
_ = ax.legend(frameon=False)

# %%
# The evidence
# ------------
# How far the log evidence is from that of the whole matrix. The steps of Newton's method on the
# low-rank problem are those of the whole, in other letters: nothing but the matrix differs, so that
# the evidence of all n rows as basis points would be the same to rounding. With fewer it is that of
# another model, which may be above the whole one's as well as below: the error can change its sign.

whole = LatentProblem(kernel, X, y, Logistic(), np.zeros(n))
wanted = laplace.solve(whole).log_evidence


def low_rank(m, name):
    """Return the problem on the first m rows of a choice."""
    return LowRankProblem(kernel, X, y, Logistic(), np.zeros(n), points=X[rows[name][:m]])


figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name in rows:
    error = [abs(solve(low_rank(m, name)).log_evidence - wanted) for m in numbers]
    ax.semilogy(numbers, error, "o-", color=colours[name], markersize=4, label=name)
ax.axhline(1.0, color="#8A8A8A", linestyle="--", linewidth=1)
ax.set(xlabel="basis points", ylabel="error of the log evidence, nats")
ax.legend(frameon=False)

seconds = min(repeat(lambda: laplace.solve(whole), number=1, repeat=1))
print(f"all {n} rows: log evidence {wanted:.2f}, {1000 * seconds:.0f} ms")
for m in (40, 120, 240):
    problem = low_rank(m, "sparse greedy")
    seconds = min(repeat(lambda problem=problem: solve(problem), number=1, repeat=2))
    solution = solve(problem)
    print(
        f"{m:3d} basis points: log evidence {solution.log_evidence:.2f}, {1000 * seconds:.0f} ms, "
        f"{solution.residual:.2g} of the trace left"
    )

# %%
# What the model knows of its ignorance
# -------------------------------------
# The low-rank process is a sum of m functions, and where these are 0 it is certain of its mean: the
# dashed line, its standard deviation along a line through the data, falls to 0 away from the basis
# points. With ``lift=True`` the variance that the points leave is added. The mean stays as it is,
# and the uncertainty rises to that of the prior. It does so sooner than that of the whole matrix,
# which has rows further out.

line = np.column_stack([np.linspace(-9, 9, 400), np.zeros(400)])
problem = low_rank(40, "sparse greedy")
full = laplace.posterior(whole, Zero())[0]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for process, style, label in [
    (full, {"color": "#333333"}, f"all {n} rows"),
    (posterior(problem, Zero())[0], {"color": "#D55E00", "linestyle": "--"}, "40 points"),
    (posterior(problem, Zero(), lift=True)[0], {"color": "#009E73"}, "40 points, lifted"),
]:
    ax.plot(line[:, 0], np.sqrt(process.var(line)), label=label, **style)
ax.set(xlabel=r"$x_1$, at $x_2 = 0$", ylabel="standard deviation of the latent function")
_ = ax.legend(frameon=False)

plt.show()
