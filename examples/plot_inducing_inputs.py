r"""
Learning where the inducing inputs stand
========================================

A sparse Gaussian process sees the function through its values at m inducing inputs. These need not
be rows: Snelson and Ghahramani moved them, together with the hyperparameters, to where the evidence
is largest (section 9 of *A Unifying View*, UV below). Mercer's ``SparseGPRegressor`` does so for an
approximation that is named, unless it is told not to; left to itself it predicts by PIC, whose
inducing inputs stay. This example follows them on the set on which it was first shown.
"""  # noqa: D205, D400

# %%
# Moved by the evidence
# ---------------------
# Two hundred rows on a line, with a gap, from Snelson's set; where the table is not at hand, rows
# of the same kind are made from a formula. Ten inducing inputs start crowded in the middle (top
# of each panel) and end spread over the data (foot). VFE maximises a lower bound on the exact
# evidence. FITC has an evidence of its own: it may explain scatter by rows that u says little of.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor, SparseGPRegressor
from mercer.datasets import load_table
from mercer.errors import MercerWarning
from mercer.kernels import RBF
from mercer.plotting import plot_fit

# Mercer warns of too few inducing inputs and of crowded ones, which this page has on purpose.
warnings.filterwarnings("ignore", category=MercerWarning)

try:
    data = load_table("snelson1d-train")
    X, y = data.X, data.y
except FileNotFoundError:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0.0, 2.9, 110), rng.uniform(3.6, 6.0, 90)])
    X = x[:, None]
    y = np.sin(2.5 * x) - 0.8 * np.cos(1.1 * x) + 0.28 * rng.standard_normal(200)

start = np.linspace(2.0, 3.0, 10)[:, None]
exact = GPRegressor(1.0 * RBF(1.0)).fit(X, y)


def learned(approximation, points, **settings):
    """Return a fit whose inducing inputs start at these points."""
    model = SparseGPRegressor(
        1.0 * RBF(1.0), approximation=approximation, inducing=points, random_state=0, **settings
    )
    return model.fit(X, y)


models = {name: learned(name, start) for name in ("vfe", "fitc")}
figure, panels = plt.subplots(1, 2, figsize=(12, 4.2), sharey=True, layout="constrained")
for ax, (name, model) in zip(panels, models.items(), strict=True):
    plot_fit(model, X, y, ax=ax)
    foot = ax.get_xaxis_transform()
    ax.plot(start[:, 0], np.full(10, 0.97), "v", color="#8A8A8A", transform=foot, label="start")
    ends = model.inducing_[:, 0]
    ax.plot(ends, np.full(len(ends), 0.03), "^", color="#D55E00", transform=foot, label="learned")
    ax.set_title(name.upper(), loc="left")
    ax.legend(frameon=False, fontsize="small", loc="upper right")

for name, model in {"exact": exact, **models}.items():
    lengths, noise = model.kernel_.kernel.length_scale, model.likelihood_.noise
    print(
        f"{name:5s}  log evidence {model.log_marginal_likelihood_value_:8.2f}   "
        f"length scale {lengths:.2f}   noise variance {noise:.4f}"
    )

# %%
# How many
# --------
# ``evidence_bounds_`` are a lower and an upper bound on the exact log evidence at the fitted
# hyperparameters, whatever the approximation. Where they meet nothing is left to be gained. Learned
# inducing inputs get there with fewer than rows drawn by chance.

numbers = [4, 6, 8, 10, 12, 15]
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for label, colour, settings in [
    ("rows drawn by chance", "#E69F00", {"inducing": "random", "learn_inducing": False}),
    ("k-means", "#009E73", {"inducing": "kmeans", "learn_inducing": False}),
    ("learned", "#0072B2", {"inducing": "kmeans", "learn_inducing": True}),
]:
    fits = [
        SparseGPRegressor(
            1.0 * RBF(1.0), approximation="vfe", n_inducing=m, random_state=0, **settings
        ).fit(X, y)
        for m in numbers
    ]
    lower, upper = np.transpose([fit.evidence_bounds_ for fit in fits])
    ax.plot(numbers, lower, "o-", color=colour, markersize=4, label=label)
    ax.plot(numbers, upper, "o:", color=colour, markersize=4)
    print(f"{label}: bounds of {numbers[-1]} are {upper[-1] - lower[-1]:.3g} nats apart")
wanted = exact.log_marginal_likelihood_value_
ax.axhline(wanted, color="#333333", linewidth=1, label="exact, at its own optimum")
ax.set(xlabel="inducing inputs", ylabel="log evidence", ylim=(wanted - 70, wanted + 150))
_ = ax.legend(frameon=False, fontsize="small")

# %%
# The solid lines are lower bounds, the dotted ones upper bounds. A fit with too few inducing inputs
# takes what it cannot follow for noise, so that its bounds are those of another model, with more
# noise; as m grows the hyperparameters become those of the exact fit, and both bounds its evidence.
#
# What the noise is taken for
# ---------------------------
# The noise variance that either approximation finds. VFE's comes down to the exact one. FITC's
# evidence can gain from rows of unequal variance, and often settles below it. This is why VFE is
# the one to take where inducing inputs move, and why FITC's evidence should not be compared with
# an exact one.

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, colour in [("vfe", "#0072B2"), ("pep", "#009E73"), ("fitc", "#D55E00")]:
    found = [
        SparseGPRegressor(1.0 * RBF(1.0), approximation=name, n_inducing=m, random_state=0)
        .fit(X, y)
        .likelihood_.noise
        for m in numbers
    ]
    ax.plot(numbers, found, "o-", color=colour, markersize=4, label=name)
ax.axhline(exact.likelihood_.noise, color="#333333", linewidth=1, label="exact")
ax.set(xlabel="inducing inputs", ylabel="noise variance", ylim=(0, None))
ax.legend(frameon=False)

plt.show()
