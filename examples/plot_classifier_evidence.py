r"""
Reading the evidence of a classifier
====================================

Hyperparameters of a classifier are chosen as those of a regression: by the evidence, the
probability of the labels with the latent function integrated out. There the integral is exact; here
an engine approximates it. This example looks at the landscape, and at what it is worth.
"""  # noqa: D205, D400

# %%
# Two engines, one landscape
# --------------------------
# Eighty labels in the plane, and a kernel of two hyperparameters: the variance of the latent
# function and its length scale. The log evidence by Laplace's method and by expectation
# propagation, with its maximum:

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPClassifier
from mercer.kernels import RBF
from mercer.plotting import plot_history


def sample(n, rng):
    """Return rows and labels; the odds go with the distance from a circle."""
    X = rng.uniform(-2, 2, (n, 2))
    odds = 5 * (1.3 - np.hypot(*X.T))
    return X, rng.uniform(size=n) < 1 / (1 + np.exp(-odds))


rng = np.random.default_rng(1)
X, y = sample(80, rng)
X_new, y_new = sample(400, rng)

lengths, variances = np.geomspace(0.3, 6, 8), np.geomspace(0.3, 300, 8)
surfaces, scores = {}, {}
for engine in ("laplace", "ep"):
    evidence, score = np.empty((2, 8, 8))
    for i, variance in enumerate(variances):
        for j, length in enumerate(lengths):
            model = GPClassifier(variance * RBF(length), inference=engine, optimizer=None).fit(X, y)
            evidence[i, j] = model.log_marginal_likelihood_value_
            score[i, j] = model.log_predictive_density(X_new, y_new).mean()
    surfaces[engine], scores[engine] = evidence, score


def landscape(ax, values, below, title):
    """Draw contours of values on both hyperparameters, and mark the greatest."""
    levels = values.max() - np.array(below)[::-1]
    filled = ax.contourf(lengths, variances, values, levels=levels, cmap="viridis", extend="min")
    i, j = np.unravel_index(np.argmax(values), values.shape)
    ax.plot(lengths[j], variances[i], "o", color="#D55E00", markeredgecolor="white", markersize=9)
    ax.set(xscale="log", yscale="log", xlabel="length scale", title=title)
    ax.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
    ax.minorticks_off()
    return filled


figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
for ax, (engine, name) in zip(panels, {"laplace": "Laplace", "ep": "EP"}.items(), strict=True):
    filled = landscape(ax, surfaces[engine], [0, 0.25, 0.5, 1, 2, 3, 4, 6, 8], f"evidence, {name}")
    figure.colorbar(filled, ax=ax, format="%.1f")
_ = panels[0].set_ylabel("variance")

# %%
# Both have their maximum at the same place, on a ridge that leads from the lower left to the upper
# right: a function that is larger and smoother gives nearly the same probabilities.
#
# Is the maximum where the predictions are best?
# ----------------------------------------------
# The mean log probability of new labels, which the evidence has not seen. They are best predicted
# further up the ridge, by less than a hundredth of a nat a label: along the ridge, where the
# evidence is flat, the predictions are so too. At the same hyperparameters EP predicts better than
# Laplace's method, whose probabilities are too near to even odds.

figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
for ax, (engine, name) in zip(panels, {"laplace": "Laplace", "ep": "EP"}.items(), strict=True):
    below = [0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12]
    filled = landscape(ax, scores[engine], below, f"log probability of new labels, {name}")
    figure.colorbar(filled, ax=ax, format="%.3f")
    top = np.unravel_index(np.argmax(surfaces[engine]), (8, 8))
    print(f"{name:7s} log evidence {surfaces[engine].max():.3f}", end=", ")
    print(f"new labels {scores[engine][top]:.4f} there, {scores[engine].max():.4f} at the best")
_ = panels[0].set_ylabel("variance")

# %%
# The search, and how sure its end is
# -----------------------------------
# ``fit`` climbs the landscape by its gradient. ``standard_errors`` reads from the curvature at the
# top how well each hyperparameter is known: of the logarithm, so that 0.3 is about thirty per cent.
# The variance is hardly known at all; it is the ridge. The default kernel has a hyperprior on it,
# without which labels that can be separated would let it grow without end.

for engine in ("laplace", "ep"):
    model = GPClassifier(1.0 * RBF(1.0), inference=engine).fit(X, y)
    errors = {name.split(".")[-1]: round(e, 2) for name, e in model.standard_errors().items()}
    print(f"{engine:7s} {model.kernel_}, log evidence {model.log_marginal_likelihood_value_:.3f}")
    print(f"        standard errors {errors}, leave-one-out {model.loo().log_density.mean():.4f}")
_ = plot_history(model)

plt.show()
