r"""
Counts
======

Counts are whole and never negative, and they scatter more where there are more of them. Gaussian
noise knows none of this. With the Poisson likelihood the latent function is the logarithm of the
rate, :math:`y_i \sim \mathrm{Poisson}(e^{f(x_i)})`, and all of it comes by itself.
"""  # noqa: D205, D400

# %%
# Calls at an office
# ------------------
# The calls in each of 120 quarters of an hour, from a rate that falls from some twenty to less than
# one. The panels show the mean and the 90% interval of a new count, by Gaussian and by Poisson
# noise. The Gaussian interval is of one width: too narrow where calls are many, and below zero
# where they are few. ``predict`` gives the expected count, and ``latent=True`` asks for the
# function itself, here the logarithm of the rate.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Poisson

rng = np.random.default_rng(4)


def rate(hour):
    """Return the true rate."""
    return np.exp(1.3 + 1.6 * np.sin(0.45 * hour + 0.4) + 0.4 * np.sin(2 * hour))


hours = np.sort(rng.uniform(0, 14, 120))
X, y = hours[:, None], rng.poisson(rate(hours))
grid = np.linspace(0, 14, 150)[:, None]

models = {
    "Gaussian": GPRegressor(10.0 * RBF(2.0)).fit(X, y),
    "Poisson": GPRegressor(1.0 * RBF(2.0), Poisson()).fit(X, y),
}
figure, panels = plt.subplots(1, 2, figsize=(12, 4.2), sharey=True, layout="constrained")
for ax, (name, model) in zip(panels, models.items(), strict=True):
    low, high = model.predict_interval(grid, coverage=0.9)
    ax.fill_between(grid[:, 0], low, high, color="#0072B2", alpha=0.2, label="90% of new counts")
    ax.plot(grid, model.predict(grid), color="#0072B2", label="expected count")
    ax.plot(grid, rate(grid), ":", color="#222222", label="true rate")
    ax.plot(hours, y, ".", color="#D55E00", markersize=5)
    ax.set(title=f"{name} noise", xlabel="hour")
panels[0].set_ylabel("calls")
_ = panels[1].legend(frameon=False)

# %%
# New counts
# ----------
# How often do the intervals hold what they should, where calls are many and where they are few? And
# how probable were the new counts? To compare the two, the Gaussian density has to be made a
# probability: that of the whole number is the probability of half a unit to either side.

places = rng.uniform(0, 14, 100)
many = rate(places) > 4
counts = rng.poisson(rate(places), (50, 100))  # fifty at each of the places
X_new, y_new = places[:, None], counts[0]
for name, model in models.items():
    low, high = model.predict_interval(X_new, coverage=0.9)
    inside = (low <= counts) & (counts <= high)
    if name == "Gaussian":
        above, below = (model.predict_cdf(X_new, y_new + d) for d in (0.5, -0.5))
        log_p = np.log(np.maximum(above - below, 1e-12))
    else:
        log_p = model.log_predictive_density(X_new, y_new)
    print(
        f"{name:8s} in the 90% interval: {100 * inside[:, many].mean():.0f}% where calls are many, "
        f"{100 * inside[:, ~many].mean():.0f}% where they are few; "
        f"log probability {log_p.mean():.3f} a count"
    )

# %%
# The interval of a count ends at whole numbers and holds at least what was asked for, and more
# where counts are few: with a rate of one half, no interval of whole numbers has 90% exactly.
#
# The rate
# --------
# Of the logarithm of the rate the error bars are Gaussian, and those of the rate are not. The band
# of the rate is the exponential of the band of the function. Draws of the function show which rates
# go with the counts.

log_rate, std = models["Poisson"].predict(grid, return_std=True, latent=True)
draws = models["Poisson"].sample_y(grid, n_samples=6, random_state=0, latent=True)
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
band = np.exp(log_rate - 1.645 * std), np.exp(log_rate + 1.645 * std)
ax.fill_between(grid[:, 0], *band, color="#009E73", alpha=0.25, label="90% for the rate")
ax.plot(grid, np.exp(draws), color="#009E73", linewidth=0.7, alpha=0.8)
ax.plot(grid, rate(grid), ":", color="#222222", label="true rate")
ax.set(xlabel="hour", ylabel="rate", yscale="log")
ax.legend(frameon=False)
held = np.mean((band[0] <= rate(grid[:, 0])) & (rate(grid[:, 0]) <= band[1]))
print(f"the band holds the true rate at {100 * held:.0f}% of the hours")
print(f"fitted: {models['Poisson'].kernel_}, by {models['Poisson'].inference_}")

plt.show()
