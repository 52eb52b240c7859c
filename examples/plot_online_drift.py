r"""
A function that drifts
======================

Most streams do not stand still. With ``forget`` an on-line process takes the function to drift:
with each row it loses a part of what it knows, and error bars widen where nothing new comes in.
This example follows a wave that moves, with and without.
"""  # noqa: D205, D400

# %%
# What forgetting is
# ------------------
# With every row the function becomes :math:`\sqrt{1 - \text{forget}}` times itself and an
# independent draw of the prior with the rest of the variance. Rows that are t steps apart are then
# seen through :math:`k(x, x') (1 - \text{forget})^{t/2}`: an exact process over inputs and time.
# A rate of 0.001 halves the covariance after 1386 rows.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercer import OnlineGPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

n, noise = 4000, 0.2
rng = np.random.default_rng(0)
X = rng.uniform(0, 6, (n, 1))
grid = np.linspace(0, 6, 200)[:, None]


def wave(x, t):
    """Return a wave that travels one period in 2000 rows."""
    return np.sin(2 * x + 2 * np.pi * t / 2000)


f = wave(X[:, 0], np.arange(n))
y = f + noise * rng.standard_normal(n)


def online(forget):
    """Return a model that has seen nothing yet."""
    return OnlineGPRegressor(
        1.0 * RBF(0.7), Gaussian(noise**2), max_basis=30, mean="zero", forget=forget
    )


# Without forgetting a constant would do better, and the model says so.
warnings.filterwarnings("ignore", "the .* rows so far had a log density")
figure, panels = plt.subplots(2, 3, figsize=(14, 7), sharex=True, sharey=True, layout="constrained")
for row, forget in zip(panels, [0.0, 0.001], strict=True):
    model, seen = online(forget), 0
    for ax, upto in zip(row, [500, 1500, 4000], strict=True):
        model.partial_fit(X[seen:upto], y[seen:upto])
        seen = upto
        mean, std = model.predict(grid, return_std=True, latent=True)
        recent = slice(upto - 200, upto)
        ax.plot(X[recent, 0], y[recent], ".", color="#8A8A8A", markersize=3, label="last 200 rows")
        ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, color="#56B4E9", alpha=0.4)
        ax.plot(grid[:, 0], mean, color="#0072B2", label="mean, 2 standard deviations")
        ax.plot(grid[:, 0], wave(grid[:, 0], upto), "--", color="#333333", label="function now")
        ax.set_title(f"forget={forget}, after {upto} rows", loc="left", fontsize="medium")
_ = panels[0, 0].legend(frameon=False, fontsize="small", loc="upper right")

# %%
# Without forgetting the model takes what it sees for noise around a function that never changes:
# the mean of all the waves there have been, and it is sure of it.
#
# Error and coverage, row by row
# ------------------------------
# ``learn`` returns what was predicted of each row before it was learned (*prequential*
# predictions). They need no rows that are held out, and tell at once when the world has moved.


def running(values, width=200):
    """Return means over the last rows."""
    return np.convolve(values, np.full(width, 1 / width), mode="valid")


figure, panels = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
for forget, colour in {0.0: "#E69F00", 0.001: "#0072B2", 0.03: "#009E73"}.items():
    before = online(forget).learn(X, y)
    held = np.abs(y - before.mean) < 1.645 * before.std
    at = np.arange(199, n)
    error = np.sqrt(running((before.mean - f) ** 2))
    panels[0].plot(at, error, color=colour, label=f"forget={forget}")
    panels[1].plot(at, running(held), color=colour)
    print(
        f"forget={forget}: error {np.sqrt(np.mean((before.mean - f)[500:] ** 2)):.3f}, "
        f"90% intervals hold {np.mean(held[500:]):.0%}, mean log density "
        f"{np.mean(before.log_density[500:]):.2f}"
    )
panels[0].set(xlabel="row", ylabel="error of the last 200 rows, RMS", ylim=(0, None))
panels[1].axhline(0.9, color="#333333", linewidth=1, linestyle=":")
panels[1].set(xlabel="row", ylabel="held by 90% intervals", ylim=(0, 1.02))
_ = panels[0].legend(frameon=False)

# %%
# How much to forget
# ------------------
# ``log_evidence_`` is the sum of these log densities. Between rates it is a difference of log
# evidences, so that it may choose the rate, as it may choose a kernel: some models run side by side
# on the same stream.

rates = [0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]
models = [online(rate).partial_fit(X, y) for rate in rates]
evidence = np.array([model.log_evidence_ for model in models])
best = int(np.argmax(evidence))
print(f"forget={rates[best]}: {evidence[best]:.0f} nats, forget=0.0: {evidence[0]:.0f} nats")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.semilogx(rates[1:], evidence[1:] / n, "o-", color="#0072B2", markersize=4)
ax.set(xlabel="forget", ylabel="log_evidence_ a row, nats")

# %%
# Inputs that move
# ----------------
# The second kind of drift is that of the inputs. A basis vector that is well known costs much to
# remove, also where no row will ever come again, so that the basis fills up with the past and stays
# there. What has been forgotten costs nothing.

place = np.linspace(0, 60, n) + rng.uniform(0, 3, n)
target = np.sin(2 * place) + noise * rng.standard_normal(n)
figure, ax = plt.subplots(figsize=(10, 2.8), layout="constrained")
# Without forgetting the model warns that twenty basis vectors are too few.
warnings.filterwarnings("ignore", "max_basis=20 is too small")
for level, forget in enumerate([0.0, 0.001]):
    model = OnlineGPRegressor(
        1.0 * RBF(0.7), Gaussian(noise**2), max_basis=20, mean="zero", forget=forget
    )
    before = model.learn(place[:, None], target)
    error = np.sqrt(np.mean((before.mean - np.sin(2 * place))[500:] ** 2))
    print(f"moving inputs, forget={forget}: error {error:.2f}")
    ax.plot(model.basis_[:, 0], np.full(model.n_basis_, level), "D", color="#D55E00")
ax.axvspan(60, 63, color="#56B4E9", alpha=0.4)
ax.text(59.5, 0.5, "newest rows ", ha="right", va="center")
ax.set(yticks=[0, 1], yticklabels=["forget=0.0", "forget=0.001"], ylim=(-0.5, 1.5), xlim=(-1, 64))
ax.set_xlabel("where the basis vectors are at the end")

plt.show()
