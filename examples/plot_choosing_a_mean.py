"""
Choosing a mean
===============

Far from the data a Gaussian process returns to its mean function. Near them the mean hardly
matters, beyond them it is all there is. This example shows what the choices do to predictions
outside the data, and how the evidence compares them.
"""  # noqa: D205, D400

# %%
# Four means
# ----------
# Observations on the left half of the picture: a slope with a wave on it. ``mean`` takes a name or
# an object of :mod:`mercer.means`:
#
# - ``"zero"`` returns to 0, which means something only if 0 does;
# - ``"constant"``, the default, estimates a level;
# - ``"linear"`` estimates a level and a slope;
# - a function of your own, such as last year's forecast or a law of physics, of which the process
#   then learns the error.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor, means
from mercer.kernels import RBF
from mercer.plotting import plot_fit

rng = np.random.default_rng(2)
x = np.sort(rng.uniform(0, 8, 40))
X, y = x[:, None], 3 + 0.7 * x + np.sin(2 * x) + 0.2 * rng.standard_normal(40)


def forecast(X):
    """Return what somebody thought beforehand: nearly the right line, without the wave."""
    return 2.5 + 0.8 * X[:, 0]


choices = {
    '"zero"': "zero",
    '"constant"': "constant",
    '"linear"': "linear",
    "a function": means.Function(forecast),
}
figure, panels = plt.subplots(2, 2, figsize=(12, 7), sharex=True, sharey=True, layout="constrained")
for ax, (name, mean) in zip(panels.flat, choices.items(), strict=True):
    model = GPRegressor(1.0 * RBF(1.0), mean=mean).fit(X, y)
    plot_fit(model, (-1, 14), ax=ax)
    ax.plot([-1, 14], [2.3, 12.8], color="#222222", linewidth=0.8, linestyle=":")
    ax.set_title(f"{name}: log evidence {model.log_marginal_likelihood_value_:.1f}", loc="left")
    ax.set_ylim(-3, 16)
    far, std = model.predict([[13.0]], return_std=True)
    print(f"{name:12s} at 13: {far[0]:6.2f} +- {std[0]:5.2f}   {model.kernel_}")

# %%
# The dotted line is the slope that the data were made with. With a zero or a constant mean the
# kernel has to explain the slope as well: its variance and its length scale grow to do so, and the
# intervals beyond the data with them. With the linear mean the kernel is left with the wave. Its
# evidence is the highest.
#
# The evidence with estimated coefficients is that at their best values. It therefore favours the
# mean with more of them a little: by about half a unit for each coefficient too many. The
# differences here are larger than that.
#
# Estimated, or integrated out
# ----------------------------
# By default coefficients are estimated, and predictions take them as known. Far from the data that
# is too sure: a slope has an error, and it counts the more the further one goes. With
# ``estimate="integrate"`` the coefficients have a flat prior and are integrated out, and their
# uncertainty becomes part of the prediction.

figure, panels = plt.subplots(1, 2, figsize=(12, 4), sharey=True, layout="constrained")
for ax, estimate in zip(panels, ["ml", "integrate"], strict=True):
    few = slice(0, 40, 3)
    model = GPRegressor(1.0 * RBF(1.0), mean=means.Linear(estimate=estimate)).fit(X[few], y[few])
    plot_fit(model, (-1, 14), ax=ax)
    ax.set_title(f'means.Linear(estimate="{estimate}"), fitted to 14 rows', loc="left")
    ax.set_ylim(-3, 20)
    far, std = model.predict([[13.0]], return_std=True)
    print(f"{estimate:10s} at 13: {far[0]:.2f} +- {std[0]:.2f}")

# %%
# The fitted coefficients are in ``mean_``, in the units of the columns.

model = GPRegressor(1.0 * RBF(1.0), mean="linear").fit(X, y)
print("fitted mean:", model.mean_)

plt.show()
