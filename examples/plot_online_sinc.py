r"""
A function that is learned as it comes
======================================

``OnlineGPRegressor`` learns one row at a time and keeps the posterior by no more than ``max_basis``
of them, the basis vectors: figure 4 of *Sparse On-Line Gaussian Processes* (Csató and Opper).
"""  # noqa: D205, D400

# %%
# After 10, 100 and 1000 rows
# ---------------------------
# The paper's function, :math:`\sin(x)/x`, with noise of variance 0.02. Ten basis vectors may be
# kept. Each call of ``learn`` goes on where the last one stopped, and returns what was predicted of
# each row before it was learned.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor, OnlineGPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

rng = np.random.default_rng(0)
X = rng.uniform(-20, 20, (1000, 1))
y = np.sinc(X[:, 0] / np.pi) + np.sqrt(0.02) * rng.standard_normal(1000)
grid = np.linspace(-22, 22, 500)[:, None]
truth = np.sinc(grid[:, 0] / np.pi)


def draw(ax, model, seen):
    """Draw the function, the rows so far, and the model with its basis vectors."""
    mean, std = model.predict(grid, return_std=True, latent=True)
    ax.plot(X[:seen, 0], y[:seen], ".", color="#8A8A8A", markersize=3, alpha=0.5)
    ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, color="#56B4E9", alpha=0.4)
    ax.plot(grid[:, 0], truth, "--", color="#333333", linewidth=1, label="function")
    ax.plot(grid[:, 0], mean, color="#0072B2", label="mean, two standard deviations")
    at = model.basis_[:, 0]
    ax.plot(at, model.predict(model.basis_), "D", color="#D55E00", markersize=5, label="basis vectors")
    ax.set(ylim=(-1.2, 1.8), xlabel="x")
    title = f"{seen} rows, {model.n_basis_} basis vectors"
    ax.set_title(title, loc="left", fontsize="medium")


noise = Gaussian(0.02)
figure, panels = plt.subplots(2, 3, figsize=(14, 7), sharey=True, layout="constrained")
for row, (length, size) in zip(panels, [(1.0, 35), (3.0, 14)], strict=True):
    model = OnlineGPRegressor(RBF(length), noise, max_basis=size, mean="zero")
    seen = 0
    for ax, upto in zip(row, [10, 100, 1000], strict=True):
        before = model.learn(X[seen:upto], y[seen:upto])
        seen = upto
        draw(ax, model, seen)
    print(f"length scale {length}: {model.projection_loss_:.2f} nats lost to {size} basis vectors")
    row[0].set_ylabel(f"length scale {length}")
_ = panels[0, 0].legend(frameon=False, fontsize="small", loc="upper left")
