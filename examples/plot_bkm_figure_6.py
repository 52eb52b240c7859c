r"""
Regression with additive normal noise
=====================================

The plainest use of a Gaussian process, as in Fig. 6 of *Bayesian Kernel Methods* (Smola and
Schölkopf, section 3.4; BKM below): a sine function, seen through noise at some places.

With :math:`y = f(x) + \xi`, the noise normal with variance :math:`\sigma^2`, a new observation at x
is normal with

.. math::

   \mu(x) = \mathbf{k}(x)^\top (K + \sigma^2 \mathbf{1})^{-1} Y, \qquad
   \mathrm{var}(x) = \sigma^2 + k(x, x)
   - \mathbf{k}(x)^\top (K + \sigma^2 \mathbf{1})^{-1} \mathbf{k}(x)

(BKM 48 and 47). The paper does not print its data; these are drawn anew.
"""  # noqa: D205, D400

# %%
# Figure 6
# --------
# Stars are the observations, dotted lines one standard deviation on either side of the prediction,
# and the solid line is the sine they come from. The lower panel has the width of the interval: it
# is narrow where observations are, and opens where there are none. Here nothing is learned: the
# kernel, of width 1, and the noise are given, and the mean is zero, as in the text.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.plotting import plot_fit

rng = np.random.default_rng(6)
x = np.sort(np.concatenate([rng.uniform(0, 3.6, 14), rng.uniform(6.2, 10, 14)]))
X, noise = x[:, None], 0.04
y = np.sin(x) + np.sqrt(noise) * rng.standard_normal(len(x))

model = GPRegressor(RBF(1.0), Gaussian(noise), mean="zero", optimizer=None).fit(X, y)
grid = np.linspace(-1, 11, 400)[:, None]
mean, std = model.predict(grid, return_std=True)

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(8, 5.5), sharex=True, height_ratios=(3, 1), layout="constrained"
)
top.plot(grid, np.sin(grid), color="#222222", label="the sine")
top.plot(grid, mean, color="#0072B2", label="prediction")
top.plot(grid, mean + std, ":", color="#0072B2", label=r"$\pm$ one standard deviation")
top.plot(grid, mean - std, ":", color="#0072B2")
top.plot(x, y, "*", color="#D55E00", markersize=9, label="observations")
top.set(ylabel="y", xlim=(-1, 11), ylim=(-2.3, 2.3))
top.legend(frameon=False, ncols=4, loc="upper center", fontsize="small")
bottom.plot(grid, 2 * std, color="#0072B2")
bottom.axhline(2 * np.sqrt(noise), color="#8A8A8A", linestyle="--", linewidth=1)
bottom.text(4.9, 0.36, "noise alone", color="#6A6A6A", size=8, ha="center", va="top")
bottom.set(xlabel="x", ylabel="width", ylim=(0, 2.3))

x_new = rng.uniform(0, 10, 1000)
y_new = np.sin(x_new) + np.sqrt(noise) * rng.standard_normal(1000)
predicted, spread = model.predict(x_new[:, None], return_std=True)
inside = np.mean(np.abs(y_new - predicted) < spread)
print(
    f"{100 * inside:.0f}% of 1000 new observations lie within one standard deviation (normal: 68%)"
)
print(f"width of the interval: {2 * std.min():.3f} at its least, {2 * std.max():.3f} at its most")

# %%
# Away from the observations the prediction goes towards the prior, whose mean is zero and whose
# standard deviation one, and says so. Between the two groups it does not get there: the gap is less
# than three widths of the kernel, and both sides still tell something of its middle. At x = 13,
# more than three widths from the last observation, hardly anything is left of them. The model does
# not know that the function is a sine.

for place in (5.0, 13.0):
    level, around = model.predict([[place]], return_std=True, latent=True)
    print(f"at x = {place:g}: mean {level[0]:.3f}, standard deviation {around[0]:.3f}")

# %%
# Shrinkage
# ---------
# At an observed place the prediction is not the observation. The fitted values are
# :math:`K (K + \sigma^2 \mathbf{1})^{-1} Y` (BKM 49): with noise of variance 0 the observations
# themselves; with more of it they are drawn towards zero and towards their neighbours.

figure, panels = plt.subplots(1, 3, figsize=(13, 3.6), sharey=True, layout="constrained")
for ax, variance in zip(panels, [0.002, 0.04, 1.0], strict=True):
    given = GPRegressor(RBF(1.0), Gaussian(variance), mean="zero", optimizer=None).fit(X, y)
    plot_fit(given, ax=ax)
    size = np.sqrt(np.mean(given.predict(X) ** 2) / np.mean(y**2))
    ax.set(title=f"noise variance {variance:g}", ylim=(-2.5, 2.5))
    ax.get_legend().remove()
    print(f"noise variance {variance:<6g}: fitted values are {size:.3f} times as large as the data")
# one legend below the panels, where no band is
handles = panels[0].get_legend_handles_labels()
_ = figure.legend(*handles, loc="outside lower center", ncols=4, frameon=False, fontsize="small")

# %%
# Learning the noise and the kernel
# ---------------------------------
# Neither is known as a rule. Left to itself, :class:`mercer.GPRegressor` finds both by maximising
# the evidence (BKM 62).

learned = GPRegressor().fit(X, y)
ax = plot_fit(learned)
ax.plot(grid, np.sin(grid), color="#222222", linewidth=1, label="the sine")
ax.legend(frameon=False, fontsize="small")
print("learned kernel:", learned.kernel_)
print(f"learned noise variance: {learned.likelihood_.noise:.3f}, true {noise}")

plt.show()
