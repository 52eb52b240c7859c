r"""
Pruning a posterior
===================

An exact fit to n rows keeps all n of them: a prediction costs O(n) for its mean and :math:`O(n^2)`
for its standard deviation. Most rows say little that their neighbours do not. Pruning removes basis
points one by one, each time the one that is missed least, and reports what that cost: it is the
removal of *Sparse On-Line Gaussian Processes* (Csató and Opper, equation 3.16).
"""  # noqa: D205, D400

# %%
# Which points are kept
# ---------------------
# Sixty observations, pruned to eight basis points. The triangles at the foot are those that were
# kept: spread out evenly, somewhat closer than the length scale. The new posterior still knows what
# the other 52 rows said; they went into its coefficients.

import copy
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor
from mercer.plotting import plot_fit, plot_samples

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(0, 10, 60))
X, y = x[:, None], np.sin(x) + 0.2 * x + 0.2 * rng.standard_normal(60)
model = GPRegressor().fit(X, y)


def pruned(model, n):
    """Return a copy of the model that predicts from n basis points, and the loss in nats."""
    small = copy.copy(model)
    small.posterior_, loss = model.posterior_.prune(n)
    return small, loss


figure, panels = plt.subplots(1, 3, figsize=(14, 4), sharey=True, layout="constrained")
for ax, n in zip(panels, [60, 8, 5], strict=True):
    small, loss = pruned(model, n)
    plot_fit(small, X, y, ax=ax)
    points = small.posterior_.basis.points[:, 0]
    ax.plot(
        points,
        np.full(len(points), 0.02),
        "^",
        color="#D55E00",
        markersize=6,
        transform=ax.get_xaxis_transform(),
        label="basis points",
    )
    ax.set_title(f"{len(points)} basis points: loss {loss:.2f} nats", loc="left")
    ax.legend(frameon=False, fontsize="small", loc="upper left")

# %%
# With eight the picture is nearly the same. With five the posterior can no longer follow the data,
# and it knows: its intervals have become several times as wide where points are missing.
#
# What it costs
# -------------
# The loss is :math:`\mathrm{KL}(\text{original}, \text{pruned})`, the divergence between the two
# posteriors over functions, in nats. It is added up over the removals and never falls. No
# prediction can differ by more than the whole: nowhere does the mean move by more than
# :math:`\sqrt{2 \cdot \text{loss}}` standard deviations of the pruned posterior. A loss of 0.01 is
# therefore seen nowhere: 0.14 standard deviations at the most, and standard deviations that change
# by 11% at the most. How a larger one shows depends on where it falls. Here 3.5 nats fall into two
# gaps and are plainly seen; spread over hundreds of rows of several columns they may hardly show.

numbers = np.arange(3, 18)
losses = np.array([model.posterior_.prune(int(n))[1] for n in numbers])
grid = np.linspace(0, 10, 300)[:, None]
mean, std = model.predict(grid, return_std=True, latent=True)
shift, wider = [], []
for n in numbers:
    m, s = pruned(model, int(n))[0].predict(grid, return_std=True, latent=True)
    shift.append(np.max(np.abs(m - mean) / s))
    wider.append(np.max(s / std))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.semilogy(numbers, losses, "o-", color="#0072B2", markersize=4, label="loss in nats")
ax.semilogy(
    numbers, shift, "s-", color="#E69F00", markersize=4, label="largest shift of the mean, in std"
)
ax.semilogy(numbers, np.sqrt(2 * losses), ":", color="#E69F00", label="its bound")
ax.axhline(0.01, color="#8A8A8A", linestyle="--", linewidth=1)
ax.set(xlabel="basis points kept", xlim=(2.5, 17.5))
ax.legend(frameon=False)
for n in (5, 8, 10, 12):
    i = n - numbers[0]
    print(
        f"{n:2d} basis points: loss {losses[i]:.2g} nats, the mean moves by {shift[i]:.2g} "
        f"standard deviations at most, which become {wider[i]:.2f} times as wide at most"
    )

# %%
# The loss falls faster than exponentially: the eigenvalues of the kernel do (see
# :ref:`sphx_glr_auto_examples_plot_bkm_figure_5.py`), and what is beyond a dozen functions does not
# show in the data. A rougher kernel, such as the Matérn family, needs more points.
#
# In use
# ------
# A pruned posterior predicts, draws and is saved like any other. Put back into the model, noise,
# intervals and names come with it.

X_many = rng.uniform(-3, 3, (1500, 2))
y_many = np.sin(2 * X_many[:, 0]) * X_many[:, 1] + 0.1 * rng.standard_normal(1500)
X_new = rng.uniform(-3, 3, (2000, 2))
y_new = np.sin(2 * X_new[:, 0]) * X_new[:, 1] + 0.1 * rng.standard_normal(2000)
big = GPRegressor().fit(X_many, y_many)
small, loss = pruned(big, 60)
for name, one in {"1500 points": big, "60 points": small}.items():
    seconds = min(repeat(lambda one=one: one.predict(X_new, return_std=True), number=1, repeat=2))
    error = np.sqrt(np.mean((one.predict(X_new) - y_new) ** 2))
    size = one.posterior_.nbytes / 2**20
    print(f"{name:12s} {1000 * seconds:6.0f} ms, {size:6.2f} MB, error {error:.4f}")
print(f"loss {loss:.2g} nats")

# %%
# The draws below are from eight basis points.

plot_samples(pruned(model, 8)[0], (0, 10), n_samples=5)

plt.show()
