"""
Composing kernels
=================

Kernels add and multiply. A sum says that the function is a sum of parts, each with a covariance of
its own; a product, that two points must be alike in both respects. Small kernels so become a
description of what is known: a trend, a season that slowly changes its shape, a column that acts on
its own.
"""  # noqa: D205, D400

# %%
# What the signs mean
# -------------------
# Draws from a few kernels and their combinations.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor
from mercer.kernels import RBF, Linear, Matern, Periodic
from mercer.params import Parameter
from mercer.plotting import plot_fit, plot_relevance, plot_samples

year = Periodic(1.0, periodicity=1.0)
kernels = {
    "Linear(): straight lines": Linear(),
    "Periodic(): repeats for ever": year,
    "Linear() + Periodic(): a trend and a season": Linear() + year,
    "Linear() * Periodic(): a season that grows": Linear() * year,
    "RBF(3) * Periodic(): a season that changes its shape": RBF(3.0) * year,
    "RBF(3) + 0.05 * Matern(0.1): a smooth part and a rough one": RBF(3.0) + 0.05 * Matern(0.1),
}
figure, panels = plt.subplots(3, 2, figsize=(11, 8.5), layout="constrained")
for ax, (title, kernel) in zip(panels.flat, kernels.items(), strict=True):
    plot_samples(kernel, (-3, 3), n_samples=3, random_state=2, ax=ax)
    ax.set_title(title, loc="left", fontsize=10)
    ax.get_legend().remove()

# %%
# A trend and a season
# --------------------
# Monthly numbers over eight years: something that grows, with a season on it. The last two years
# are kept back. An RBF kernel alone finds it best to take the season for noise, and where the
# data end it returns to its mean; told of a line and of a period of one year, the model goes on.

rng = np.random.default_rng(0)
t = np.arange(96) / 12
season = 1.5 * np.sin(2 * np.pi * t) + 0.6 * np.cos(4 * np.pi * t)
y = 10 + 0.8 * t + season + 0.4 * rng.standard_normal(96)
T, past = t[:, None], t < 6

plain = 1.0 * RBF(1.0)
season_kernel = Periodic(1.0, periodicity=Parameter(1.0, fixed=True))  # a year is a year
composed = 1.0 * season_kernel + 1.0 * Linear()

figure, panels = plt.subplots(1, 2, figsize=(12, 4), layout="constrained", sharey=True)
for ax, (name, kernel) in zip(
    panels, {"RBF": plain, "trend + season": composed}.items(), strict=True
):
    model = GPRegressor(kernel).fit(T[past], y[past])
    plot_fit(model, (0.0, 8.0), ax=ax)
    ax.plot(t[~past], y[~past], ".", color="#D55E00", label="kept back")
    ax.set_title(f"{name}: log evidence {model.log_marginal_likelihood_value_:.1f}", loc="left")
    ax.set(xlabel="years")
    ax.legend(frameon=False, fontsize="small", loc="upper left")
    error = np.sqrt(np.mean((model.predict(T[~past]) - y[~past]) ** 2))
    density = model.log_predictive_density(T[~past], y[~past]).mean()
    print(f"{name:15s} error on the years kept back {error:.2f}, log density {density:.2f} a month")

# %%
# The evidence, printed above each panel, was computed from the first six years alone, and it
# already told the two apart. See :ref:`sphx_glr_auto_examples_plot_evidence.py`.
#
# Taking the fit apart
# --------------------
# A sum of kernels is a sum of functions, and the posterior of each part can be had from the same
# fit: its covariance with the data is that of its own kernel alone. The mean of a part is
# :math:`k_{part}(x, X)\,\alpha`, with the coefficients of the fit.

posterior = model.posterior_
parts = {"season": model.kernel_.kernels[0], "trend": model.kernel_.kernels[1]}
grid = np.linspace(0, 8, 400)[:, None]
figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
for (name, part), colour in zip(parts.items(), ["#0072B2", "#009E73"], strict=True):
    ax.plot(grid, part(grid, posterior.basis.points) @ posterior.alpha, color=colour, label=name)
ax.axhline(0, color="#8A8A8A", linewidth=0.8)
ax.set(xlabel="years", ylabel="part of the mean", title="the two parts, about the constant mean")
ax.legend(frameon=False)
print("kernel:", model.kernel_)

# %%
# Columns of their own
# --------------------
# ``kernel.on(columns)`` looks at some columns only. A sum of such kernels is an additive model:
# each column acts for itself. The relevance of a column is its spread in
# length scales, times the square root of the share that the term has in the variance.

X = rng.uniform(-2, 2, (60, 3))
z = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(60)
models = {
    "one kernel over all columns": None,  # the default
    "a sum over columns 0 and 1": 1.0 * RBF(1.0).on(0) + 1.0 * RBF(1.0).on(1),
}
figure, panels = plt.subplots(1, 2, figsize=(11, 2.6), layout="constrained")
for ax, (name, kernel) in zip(panels, models.items(), strict=True):
    model = GPRegressor(kernel).fit(X, z)
    plot_relevance(model, ax=ax)
    ax.set_title(name, loc="left")
    print(f"{name}: log evidence {model.log_marginal_likelihood_value_:.1f}")

# %%
# Both see that the third column does nothing. The sum knows more, that the first two do not act
# upon each other, and where that is true it needs fewer rows: its evidence is higher.

plt.show()
