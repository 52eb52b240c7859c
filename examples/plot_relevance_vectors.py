r"""
Relevance vectors
=================

A sum of few kernels, each with a prior variance of its own (BKM 118; Smola and Schölkopf, *Bayesian
Kernel Methods*, section 6):

.. math::

   f(x) = \beta + \sum_i \theta_i\, k(x_i, x), \qquad \theta_i \sim N(0, 1/s_i).

The evidence is highest where most precisions are infinite; the rows of the others are the relevance
vectors.
"""  # noqa: D205, D400

# %%
# A fit, and how it grew
# ----------------------
# 150 noisy values of sin(x)/x. Left, the fit with rings around its relevance vectors. Right, the
# evidence after each step of the algorithm "fast" under the width that was found: it adds, changes
# or removes one function at a time and never goes down.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercer import RelevanceVectorClassifier, RelevanceVectorRegressor
from mercer.plotting import plot_fit

BLUE, VERMILION, INK = "#0072B2", "#D55E00", "#222222"
rng = np.random.default_rng(1)
X = np.sort(rng.uniform(-10, 10, 150))[:, None]
y = np.sinc(X[:, 0] / np.pi) + 0.1 * rng.normal(size=150)

model = RelevanceVectorRegressor().fit(X, y)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
plot_fit(model, X, y, ax=left)
chosen = model.relevance_indices_
left.plot(X[chosen], y[chosen], "o", mfc="none", color=VERMILION, ms=10)
left.set_title(f"{model.n_relevance_} relevance vectors of {len(X)} rows")
again = RelevanceVectorRegressor(model.kernel_, optimizer=None).fit(X, y)
right.plot(again.history_["steps"], color=BLUE)
top = again.history_["steps"][-1]
right.set(xlabel="step", ylabel="penalised log evidence", ylim=(top - 150, top + 10))
print(f"noise {np.sqrt(model.noise_variance_):.3f}, of which the data were made: 0.1")

# %%
# Error bars that collapse, and how they heal
# -------------------------------------------
# Far from the relevance vectors all functions are zero, and the model is certain of its mean. A
# further function at each point that is predicted (UV 8.1, 10.2) heals it, for the price of O(nk)
# a point. Near the data the two agree.

healed = RelevanceVectorRegressor(model.kernel_, augment=True, optimizer=None).fit(X, y)
grid = np.linspace(-25, 25, 400)[:, None]
figure, panels = plt.subplots(1, 2, figsize=(12, 4), sharey=True, layout="constrained")
for ax, fitted, name in zip(panels, [again, healed], ["as it is", "augment=True"], strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of points far from all relevance vectors
        mean, std = fitted.predict(grid, return_std=True)
    ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, color=BLUE, alpha=0.2)
    ax.plot(grid, mean, color=BLUE)
    ax.plot(X, y, ".", color=INK, ms=3)
    ax.set_title(name)

# %%
# Labels
# ------
# Two classes that overlap. The lines are at probabilities of 0.1, 0.5 and 0.9, which are averages
# over the posterior of the coefficients, and so come nearer to 0.5 than those of the mode alone.

middles = np.repeat([[-0.3, 0.7], [0.4, 0.7], [-0.7, 0.3], [0.3, 0.3]], 60, axis=0)
Z = middles + 0.17 * rng.normal(size=(240, 2))
label = np.repeat([1, 1, 0, 0], 60)
classes = RelevanceVectorClassifier().fit(Z, label)
a, b = np.meshgrid(np.linspace(-1.5, 1.3, 90), np.linspace(-0.3, 1.5, 90))
probability = classes.predict_proba(np.column_stack([a.ravel(), b.ravel()]))[:, 1].reshape(a.shape)
figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.scatter(*Z.T, c=np.where(label == 1, BLUE, VERMILION), s=10)
lines = ax.contour(a, b, probability, levels=[0.1, 0.5, 0.9], colors=INK, linewidths=[1, 2, 1])
ax.clabel(lines)
ax.plot(*Z[classes.relevance_indices_].T, "o", mfc="none", color=INK, ms=12)
_ = ax.set_title(f"{classes.n_relevance_} relevance vectors of {len(Z)} rows")

print(f"{np.mean(classes.predict(Z) == label):.0%} of the labels are right")

plt.show()
