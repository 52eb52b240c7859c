r"""
Reading the evidence
====================

The evidence :math:`p(Y \mid \theta)` is the probability of the data under the whole prior, with the
function integrated out. Hyperparameters :math:`\theta` are chosen by maximising it (BKM 62). This
example looks at it as a landscape: its maximum, how sharp that is, and what to do when there are
several.
"""  # noqa: D205, D400

# %%
# A trade-off
# -----------
# The log evidence is :math:`-\frac12 Y^\top Q^{-1} Y - \frac12 \ln \det Q - \frac n2 \ln 2\pi` with
# :math:`Q = K + \sigma^2 \mathbf{1}`. The first term asks for a kernel that can follow the data;
# the second one charges for everything else that the kernel could have followed as well. Their sum
# has its maximum where the model is as simple as the data permit. No data are held out for that.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.plotting import plot_fit, plot_history

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 30))
X, y = x[:, None], np.sin(x) + 0.2 * rng.standard_normal(30)

lengths = np.logspace(-1.3, 1.5, 120)
fit, penalty = [], []
for length in lengths:
    Q = RBF(length)(X) + 0.04 * np.eye(len(X))
    fit.append(-0.5 * y @ np.linalg.solve(Q, y))
    penalty.append(-0.5 * np.linalg.slogdet(2 * np.pi * Q)[1])
fit, penalty = np.array(fit), np.array(penalty)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.semilogx(lengths, fit, color="#009E73", label="fit to the data")
ax.semilogx(lengths, penalty, color="#E69F00", label="price of flexibility")
ax.semilogx(lengths, fit + penalty, color="#0072B2", linewidth=2.5, label="log evidence")
best = np.argmax(fit + penalty)
ax.axvline(lengths[best], color="#8A8A8A", linestyle="--", linewidth=1)
ax.set(xlabel="length scale", ylabel="nats", ylim=(-110, 40))
ax.legend(frameon=False)
print(f"the evidence is highest at a length scale of {lengths[best]:.2f}")

# %%
# What the two slopes stand for: too short a length scale follows the noise, too long a one misses
# the function.

figure, panels = plt.subplots(1, 3, figsize=(13, 3.6), sharey=True, layout="constrained")
for ax, length in zip(panels, [0.15, lengths[best], 8.0], strict=True):
    given = GPRegressor(RBF(length), Gaussian(0.04), mean="zero", optimizer=None).fit(X, y)
    plot_fit(given, latent=True, ax=ax)
    evidence = given.log_marginal_likelihood_value_
    ax.set(title=f"length scale {length:.2f}: log evidence {evidence:.1f}", ylim=(-2.5, 2.5))
    ax.get_legend().remove()
# one legend below the panels, where no band is
handles = panels[0].get_legend_handles_labels()
_ = figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize="small")

# %%
# Two explanations of the same data
# ---------------------------------
# With few data there may be several maxima. These eight observations are either a function that
# changes fast, seen nearly without noise, or one that changes slowly, seen through much of it. As a
# function of length scale and noise, the variance of the function held at 1, the evidence has a
# summit for each.

x8 = np.array([-2.9, -1.9, -1.3, -0.9, 0.0, 1.2, 2.3, 2.9])
y8 = np.array([0.63, -0.46, -0.37, -0.39, -0.06, -0.71, -0.77, -0.82])
X8 = x8[:, None]


def log_evidence(length, noise):
    model = GPRegressor(RBF(length), Gaussian(noise), mean="zero", optimizer=None)
    return model.fit(X8, y8).log_marginal_likelihood_value_


lengths = np.logspace(-0.6, 1.6, 50)
noises = np.logspace(-3.3, 0.3, 50)
surface = np.array([[log_evidence(a, b) for a in lengths] for b in noises])

# %%
# A search climbs to the summit nearest to its start. Started twice, it ends twice:

starts = {"fast, little noise": (0.5, 0.01), "slow, much noise": (10.0, 1.0)}
found = {}
for name, (length, noise) in starts.items():
    model = GPRegressor(RBF(length), Gaussian(noise), mean="zero").fit(X8, y8)
    found[name] = model
    print(
        f"{name:20s} length scale {model.kernel_.length_scale:5.2f}, "
        f"noise {model.likelihood_.noise:.4f}, "
        f"log evidence {model.log_marginal_likelihood_value_:.3f}"
    )

figure, panels = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
top = surface.max()
levels = top - np.array([8, 6, 4.5, 3, 2, 1.4, 1, 0.7, 0.45, 0.3, 0.15, 0.0])
filled = panels[0].contourf(lengths, noises, surface, levels=levels, cmap="viridis", extend="min")
panels[0].contour(lengths, noises, surface, levels=levels, colors="white", linewidths=0.4)
figure.colorbar(filled, ax=panels[0], label="log evidence", format="%.1f")
panels[0].set(xscale="log", yscale="log", xlabel="length scale", ylabel="noise variance")
for ax, (name, model), marker in zip(panels[1:], found.items(), "os", strict=True):
    panels[0].plot(
        model.kernel_.length_scale,
        model.likelihood_.noise,
        marker,
        color="#D55E00",
        markeredgecolor="white",
        markersize=9,
        label=name,
    )
    plot_fit(model, (-3, 3), ax=ax)
    ax.set(title=name, ylim=(-1.8, 1.8))
_ = panels[0].legend(frameon=True, fontsize="small", loc="lower right")

# %%
# The two values differ by a quarter of a nat: the data do not decide, and it is honest to know of
# both. To be sure of the higher summit, ``n_restarts`` runs the search again from random starts and
# keeps the best. :func:`mercer.plotting.plot_history` shows the searches one after the other: the
# first, from the same start as above, found the lower one.

model = GPRegressor(RBF(10.0), Gaussian(1.0), mean="zero", n_restarts=4, random_state=0).fit(X8, y8)
plot_history(model)
print(f"with restarts: {model.kernel_}, log evidence {model.log_marginal_likelihood_value_:.3f}")

# %%
# How sure are the hyperparameters?
# ---------------------------------
# The sharper the summit, the better a hyperparameter is known. ``standard_errors`` reads it from
# the curvature; of a positive hyperparameter it is the error of its logarithm, so that 0.1 is about
# ten per cent.

for name, (rows, targets) in {"8 rows": (X8, y8), "30 rows": (X, y)}.items():
    fitted = GPRegressor(1.0 * RBF(1.0), mean="zero").fit(rows, targets)
    errors = {k.split(".")[-1]: round(v, 2) for k, v in fitted.standard_errors().items()}
    print(name, errors)

plt.show()
