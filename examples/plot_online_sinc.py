r"""
A function that is learned as rows come
=======================================

``OnlineGPRegressor`` learns one row after another and keeps the posterior by no more than
``max_basis`` points, the basis vectors. This is figure 4 of *Sparse On-Line Gaussian Processes*
(Csató and Opper, 2002), and what a basis that is too small costs.
"""  # noqa: D205, D400

# %%
# After 10, 100 and 1000 rows
# ---------------------------
# The paper's function is :math:`\sin(x)/x` with noise of variance 0.02. Its kernels have widths
# :math:`\sigma_K^2` of 1 and of 0.1, with 10 and 15 basis vectors. Each ``partial_fit`` goes on
# where the last one stopped. The data of the first are not kept: what they said is in the mean and
# the covariance of the function at the basis vectors.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor, OnlineGPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

# A basis that is much too small is warned of, and here is what is to be seen.
warnings.filterwarnings("ignore", "max_basis=.* is too small")

rng = np.random.default_rng(0)
X = rng.uniform(-4, 4, (1000, 1))
y = np.sinc(X[:, 0] / np.pi) + np.sqrt(0.02) * rng.standard_normal(1000)
grid = np.linspace(-4.5, 4.5, 400)[:, None]
truth = np.sinc(grid[:, 0] / np.pi)


def online(width, size):
    """Return a model that has seen nothing yet; its kernel and noise are given, so it can start."""
    return OnlineGPRegressor(RBF(np.sqrt(width)), Gaussian(0.02), max_basis=size, mean="zero")


def draw(ax, model):
    """Draw the function, the rows so far, and the model with its basis vectors."""
    seen = model.n_seen_
    mean, std = model.predict(grid, return_std=True, latent=True)
    ax.plot(X[:seen, 0], y[:seen], ".", color="#8A8A8A", markersize=3, alpha=0.5)
    ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, color="#56B4E9", alpha=0.4)
    ax.plot(grid[:, 0], truth, "--", color="#333333", linewidth=1, label="function")
    ax.plot(grid[:, 0], mean, color="#0072B2", label="mean, 2 standard deviations")
    points = model.basis_
    ax.plot(points[:, 0], model.predict(points), "D", color="#D55E00", label="basis vectors")
    ax.set(ylim=(-1.6, 2.2), xlabel="x")
    ax.set_title(f"{seen} rows, {model.n_basis_} basis vectors", loc="left", fontsize="medium")


figure, panels = plt.subplots(2, 3, figsize=(14, 7.5), sharey=True, layout="constrained")
for row, (width, size) in zip(panels, [(1.0, 10), (0.1, 15)], strict=True):
    model, seen = online(width, size), 0
    for ax, upto in zip(row, [10, 100, 1000], strict=True):
        model.partial_fit(X[seen:upto], y[seen:upto])
        seen = upto
        draw(ax, model)
    mean, std = model.predict(grid, return_std=True, latent=True)
    inside = np.abs(grid[:, 0]) <= 4
    error = np.sqrt(np.mean((mean - truth)[inside] ** 2))
    row[0].set_ylabel(rf"$\sigma_K^2$ = {width}")
    print(
        f"width {width}: error {error:.3f}, standard deviation {std[inside].mean():.3f}, "
        f"{model.projection_loss_:.0f} nats lost"
    )
_ = panels[0, 0].legend(frameon=False, fontsize="small", loc="upper left")

# %%
# The kernel below is too narrow for 15 points: between them the process knows little. It says so:
# error bars are wide where no basis vector is near. This is what propagating the covariance is for,
# and not the mean alone.
#
# How many basis vectors
# ----------------------
# ``projection_loss_`` adds up what each projection and each removal has cost, as the divergence of
# the process before the step from that after it. The same rows with more and more basis vectors,
# beside the exact posterior that ``GPRegressor`` finds from all rows at once:

exact = GPRegressor(RBF(1.0), Gaussian(0.02), mean="zero", optimizer=None).fit(X, y)
inner = np.linspace(-4, 4, 400)[:, None]
mean, std = exact.predict(inner, return_std=True, latent=True)
sizes = np.arange(4, 19)
losses, wider, away = [], [], []
for size in sizes:
    model = online(1.0, int(size)).partial_fit(X, y)
    m, s = model.predict(inner, return_std=True, latent=True)
    losses.append(model.projection_loss_)
    wider.append(np.mean(s) / np.mean(std))
    away.append(np.sqrt(np.mean((m - mean) ** 2)) / np.mean(std))

figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
panels[0].semilogy(sizes, losses, "o-", color="#0072B2", markersize=4)
panels[0].set(xlabel="basis vectors", ylabel="projection_loss_, nats")
panels[1].semilogy(sizes, wider, "o-", color="#E69F00", markersize=4, label="width of error bars")
panels[1].semilogy(sizes, away, "s-", color="#009E73", markersize=4, label="distance of the mean")
panels[1].set(xlabel="basis vectors", ylabel="in standard deviations of the exact model")
panels[1].legend(frameon=False)
for size in (6, 10, 14, 18):
    i = size - sizes[0]
    print(
        f"{size} basis vectors: {losses[i]:.3g} nats, error bars {wider[i]:.2f} times the exact "
        f"ones, the mean {away[i]:.2g} standard deviations from the exact one"
    )

# %%
# Once a basis is nearly large enough the loss falls by orders of magnitude with a few vectors more,
# and then the answer is the exact one. Until then error bars are too wide here, not too narrow:
# what is lost was information.
#
# The order of rows
# -----------------
# With room enough the order does not matter, under Gaussian noise. With six basis vectors it does:
# here are the means of twenty orders of the same rows.

figure, panels = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
for ax, size in zip(panels, [6, 14], strict=True):
    means = []
    for _ in range(20):
        order = rng.permutation(1000)
        means.append(online(1.0, size).partial_fit(X[order], y[order]).predict(grid))
        ax.plot(grid[:, 0], means[-1], color="#0072B2", linewidth=0.6, alpha=0.6)
    ax.plot(grid[:, 0], truth, "--", color="#333333", linewidth=1)
    spread = np.mean(np.std(means, axis=0)[inside])
    ax.set(xlabel="x")
    ax.set_title(f"{size} basis vectors", loc="left", fontsize="medium")
    print(f"{size} basis vectors: means of different orders differ by {spread:.2g} (std)")

plt.show()
