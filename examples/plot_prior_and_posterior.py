"""
From prior to posterior
=======================

A kernel is a belief about functions, held before any data are seen. Data turn it into another one.
This example draws from both, and shows how the length scale, the variance and the smoothness of a
kernel read in its draws.
"""  # noqa: D205, D400

# %%
# Before any data
# ---------------
# :func:`mercer.plotting.plot_samples` takes a kernel, or a model, and draws functions from it. The
# length scale says how far apart two values must be to differ, the factor in front is the variance
# of a value, and the kind of kernel says how smooth the functions are.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor
from mercer.kernels import RBF, Matern
from mercer.likelihoods import Gaussian
from mercer.plotting import plot_fit, plot_samples

figure, panels = plt.subplots(2, 2, figsize=(11, 6.5), layout="constrained", sharey=True)
kernels = [1.0 * RBF(1.0), 1.0 * RBF(3.0), 4.0 * RBF(1.0), 1.0 * Matern(1.0, nu=0.5)]
for ax, kernel in zip(panels.flat, kernels, strict=True):
    plot_samples(kernel, (0, 10), n_samples=4, ax=ax)
    ax.set_title(repr(kernel), loc="left")

# %%
# The grey band holds 95% of the values at each place. It is as wide everywhere: a stationary kernel
# knows no place from another.
#
# After some data
# ---------------
# Each observation rules out the functions that do not pass near it. Those that are left make up the
# posterior. Here the hyperparameters are held, so that nothing changes but what is known.

rng = np.random.default_rng(4)
x = rng.permutation(np.linspace(0.5, 9.5, 12))
y = np.sin(x) + 0.1 * rng.standard_normal(12)

figure, panels = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained", sharey=True)
for ax, n in zip(panels, [1, 4, 12], strict=True):
    model = GPRegressor(RBF(1.0), Gaussian(0.01), mean="zero", optimizer=None)
    model.fit(x[:n, None], y[:n])
    plot_samples(model, (0, 10), n_samples=5, ax=ax)
    ax.set_title(f"after {n} observation{'s' if n > 1 else ''}", loc="left")
    _, std = model.predict(np.linspace(0, 10, 101)[:, None], return_std=True, latent=True)
    print(f"after {n:2d} observations the mean standard deviation is {std.mean():.3f}")

# %%
# With the hyperparameters learned
# --------------------------------
# As a rule the length scale, the variance and the noise come from the data as well. The same few
# lines then give a fit, its intervals for the function and for new observations, and draws.

model = GPRegressor().fit(x[:, None], y)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained", sharey=True)
plot_fit(model, (-1, 11), ax=left)
plot_samples(model, (-1, 11), n_samples=5, ax=right)
print("kernel:", model.kernel_)
print(f"noise: standard deviation {np.sqrt(model.likelihood_.noise):.3f}, true 0.1")

# %%
# Two columns
# -----------
# Of two columns :func:`mercer.plotting.plot_fit` draws the mean, with the data in the same colours,
# and beside it the standard deviation: low near the data, high in the corners. For more columns it
# draws slices.

X = rng.uniform(-2, 2, (50, 2))
z = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.standard_normal(50)
surface = GPRegressor().fit(X, z)
plot_fit(surface)
print("length scales:", np.round(surface.kernel_.kernel.length_scale, 2))

plt.show()
