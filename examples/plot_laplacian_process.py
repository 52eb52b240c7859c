r"""
A function of a few kernels
===========================

A Gaussian process predicts by a sum over all rows. A Laplacian process predicts by a sum over few:

.. math::

   f(x) = \beta + \sum_i \theta_i\, k(x_i, x), \qquad p(\theta) \propto e^{-\sum_i |\theta_i|/s},

with a kernel at each row, of which the most probable coefficients (BKM 102, 109; Smola and
Schölkopf, *Bayesian Kernel Methods*, section 5) are zero but for a few. It fits in one convex
problem, and proves that it has solved it.
"""  # noqa: D205, D400

# %%
# A fit with error bars
# ---------------------
# 120 noisy values of a function that is quiet on the left and busy on the right. Noise, prior scale
# and kernel are chosen by what held-out rows are predicted. The marks above are the centres that
# are in use.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from mercer import GPRegressor, LaplacianProcessRegressor
from mercer.plotting import plot_fit

BLUE, VERMILION, INK = "#0072B2", "#D55E00", "#222222"
rng = np.random.default_rng(4)
X = np.sort(rng.uniform(0, 10, 120))[:, None]
true = lambda x: np.sin(0.06 * x**2.2)  # noqa: E731
y = true(X[:, 0]) + 0.15 * rng.normal(size=120)
grid = np.linspace(-1, 11, 481)[:, None]

model = LaplacianProcessRegressor().fit(X, y)
exact = GPRegressor().fit(X, y)
figure, panels = plt.subplots(1, 2, figsize=(12, 4), sharey=True, layout="constrained")
for ax, fitted in zip(panels, [model, exact], strict=True):
    plot_fit(fitted, X, y, ax=ax)
    ax.plot(grid, true(np.maximum(grid, 0)), "--", color=INK, linewidth=0.8)
    size = getattr(fitted, "n_active_", len(X))
    error = np.sqrt(np.mean((fitted.predict(X, latent=True) - true(X[:, 0])) ** 2))
    name = type(fitted).__name__
    ax.set_title(f"{name}, {size} kernels")
    print(f"{name}: {size} kernels, error of the function {error:.3f}")
centres = X[model.basis_indices_]
_ = panels[0].plot(centres, np.full(len(centres), y.max() + 0.2), "|", color=VERMILION, ms=12)

# %%
# Away from the data the two differ most. The Gaussian process widens to its prior; the bars of the
# Laplacian process are those of the coefficients that are not zero, and far from all centres there
# is nothing but the mean and the noise. **Its error bars tell of the data it has seen, not of where
# there are none.**
#
# What it is made of
# ------------------
# Each term of the sum, the constant left out, and the function that they add up to. The certificate
# says how near the objective is to its minimum: nobody has to believe the solver.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for centre, coef in zip(centres, model.coef_, strict=True):
    term = coef * model.kernel_(grid, centre[None])[:, 0]
    ax.plot(grid, term, color=BLUE if coef > 0 else VERMILION, linewidth=0.9, alpha=0.8)
ax.plot(grid, model.predict(grid), color=INK, linewidth=1.8, label="their sum and the constant")
ax.set(xlabel="x", xlim=(-1, 11))
ax.legend(frameon=False)
print(f"objective {model.objective_:.6f}, dual objective {model.dual_objective_:.6f}")
print(f"the minimum is within {model.gap_:.1e} of it, relative; {model.status_}")

# %%
# The path
# --------
# Under a small prior scale all coefficients are zero; as it grows they enter one by one, and leave
# again where a neighbour takes over. Left, coefficients at the kernel that was chosen above; the
# dotted line is the scale that was chosen. Right, what the choice was made by: the density of
# held-out rows, and how many functions were in use. The density is level over a wide range, while
# the number of functions grows.

least = model.likelihood_.noise / model.path_["penalty"][0]  # of which all coefficients are zero
scales = np.geomspace(1.05 * least, 30 * model.prior_.scale, 33)
paths = np.zeros((len(scales), len(X)))
one = clone(model).set_params(kernel=model.kernel_, likelihood=model.likelihood_, optimizer=None)
for row, scale in zip(paths, scales, strict=True):
    fitted = clone(one).set_params(prior_scale=scale).fit(X, y)
    row[fitted.basis_indices_] = fitted.coef_
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
used = np.any(paths != 0, axis=0)
left.semilogx(scales, paths[:, used], linewidth=1)
left.axvline(model.prior_.scale, color=INK, linestyle=":")
left.set(xlabel="prior scale", ylabel="coefficients", ylim=(-1.2, 1.2))
path = model.path_
right.semilogx(path["penalty"], path["value"], "o-", color=BLUE, ms=3)
right.set(xlabel="penalty")
right.set_ylabel("log density of held-out rows", color=BLUE)
right.invert_xaxis()
counts = right.twinx()
counts.semilogx(path["penalty"], path["n_active"], "s-", color=VERMILION, ms=3)
counts.set_ylabel("functions in use", color=VERMILION)
print(f"{used.sum()} of {len(X)} functions are in use somewhere on the path")

plt.show()
