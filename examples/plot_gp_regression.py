"""Prior, posterior, and a smaller posterior.

Twenty-five noisy observations of one function. Left: draws from the prior that the kernel
describes. Middle: the posterior after the evidence has chosen the hyperparameters, with the 95%
intervals of the function and of a new observation. Right: the same posterior pruned to six basis
points, and what that cost.

Run it with ``python examples/plot_gp_regression.py``; it writes ``demo-output/gp_regression.png``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor
from mercer.kernels import RBF


def observations(n=25):
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 10, n))
    return x[:, None], np.sin(x) + 0.2 * x + 0.2 * rng.standard_normal(n)


def band(ax, x, mean, std, **style):
    ax.fill_between(x, mean - 1.96 * std, mean + 1.96 * std, linewidth=0, **style)


def main(folder="demo-output"):
    X, y = observations()
    grid = np.linspace(-2, 12, 300)[:, None]
    x = grid[:, 0]
    kernel = 1.0 * RBF(1.0)
    model = GPRegressor(kernel).fit(X, y)
    small, loss = model.posterior_.prune(6)

    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), sharey=True, layout="constrained")
    prior = GPRegressor(kernel)  # an unfitted model predicts from its prior
    axes[0].plot(x, prior.sample_y(grid, 5, random_state=2, latent=True), linewidth=1.2)
    axes[0].set_title("five draws from the prior")

    mean, latent = model.predict(grid, return_std=True, latent=True)
    _, std = model.predict(grid, return_std=True)
    band(axes[1], x, mean, std, color="C0", alpha=0.15, label="95% of new observations")
    band(axes[1], x, mean, latent, color="C0", alpha=0.35, label="95% for the function")
    axes[1].plot(x, mean, color="C0")
    axes[1].set_title(f"posterior, noise {np.sqrt(model.likelihood_.noise):.2f}")

    pruned_mean, pruned_var = small.mean_and_var(grid)
    band(axes[2], x, pruned_mean[:, 0], np.sqrt(pruned_var[:, 0]), color="C2", alpha=0.35)
    axes[2].plot(x, pruned_mean[:, 0], color="C2")
    axes[2].plot(x, mean, color="C0", linestyle=":", label="before")
    points = small.basis.points[:, 0]
    axes[2].plot(points, np.full(len(points), -4.2), "^", color="C2", label="basis points")
    axes[2].set_title(f"pruned from 25 to {small.n_basis} points: {loss:.2f} nats")
    for ax in axes[1:]:
        ax.plot(X[:, 0], y, "k.", markersize=5)
        ax.legend(loc="upper left", frameon=False)
    for ax in axes:
        ax.set_xlabel("x")
        ax.set_ylim(-4.5, 6)
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / "gp_regression.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    print(f"wrote {main()}")
