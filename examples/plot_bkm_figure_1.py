r"""
How far off a target may be
===========================

The likelihood says how an observation comes about from the function's value. For targets that are
numbers it is mostly a density of the noise, and which one that is decides how much a single target
can do to a fit. This example repeats Fig. 1 of *Bayesian Kernel Methods* (Smola and Schölkopf,
section 2.2; BKM below).
"""  # noqa: D205, D400

# %%
# Figure 1
# --------
# Four densities of the noise :math:`\xi = y - \theta` and, dashed, their negative logarithms:
# Gaussian, Laplacian (BKM 10), Huber's (BKM 12) and the epsilon-insensitive one (BKM 13). Each has
# a scale of 1, and so have Huber's threshold and the zone of the last. Huber's density is Gaussian
# in the middle and Laplacian in the tails. The last is Laplacian too, but flat in the middle.

import matplotlib.pyplot as plt
import numpy as np

from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, StudentT

noises = {
    "Gaussian": Gaussian(1.0),
    "Laplacian": Laplace(scale=1.0),
    "Huber's": Huber(scale=1.0, threshold=1.0),
    "epsilon-insensitive": EpsilonInsensitive(epsilon=1.0, scale=1.0),
}
COLOURS = dict(
    zip(
        [*noises, "Student t"], ["#222222", "#0072B2", "#009E73", "#E69F00", "#D55E00"], strict=True
    )
)

xi = np.linspace(-4, 4, 401)
figure, panels = plt.subplots(2, 2, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
for ax, (name, noise) in zip(panels.flat, noises.items(), strict=True):
    log_p = noise.log_density(xi, 0.0)
    ax.plot(xi, np.exp(log_p), color=COLOURS[name], label=r"$p(\xi)$")
    ax.plot(xi, -log_p, "--", color=COLOURS[name], label=r"$-\ln p(\xi)$")
    ax.set(title=name, xlim=(-4, 4), ylim=(0, 5))
    ax.legend(frameon=False, loc="upper center")
    print(f"{name:20s} p(0) = {np.exp(noise.log_density(0.0, 0.0)):.4f}", end=", ")
    print(f"p(4) = {np.exp(noise.log_density(4.0, 0.0)):.5f}")
for ax in panels[1]:
    ax.set_xlabel(r"$\xi$")

# %%
# How hard an observation pulls
# -----------------------------
# The derivative of the logarithm in :math:`\theta` is the force by which an observation draws the
# function to itself. With Gaussian noise it grows with the distance without end, so that the worst
# observation has the most to say. The three others pull no harder than 1. Student's t distribution,
# which the figure does not have, pulls less the further off the observation is: it gives up on an
# outlier. The price is a logarithm that is not concave, and perhaps several fits that are each the
# best nearby.

noises["Student t"] = StudentT(df=3.0, scale=1.0)
distance = np.linspace(-6, 6, 601)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, noise in noises.items():
    ax.plot(distance, noise.derivatives(distance, 0.0)[0], color=COLOURS[name], label=name)
ax.set(xlabel=r"distance $y - \theta$", ylabel="pull", xlim=(-6, 6), ylim=(-3, 3))
_ = ax.legend(frameon=False)

# %%
# Mean, median, and what is between
# ---------------------------------
# Take twenty observations of one number :math:`\theta`, whose true value is 0, and one more that
# goes wrong. The most probable :math:`\theta` is the mean under Gaussian noise (BKM 9), which
# follows the last one wherever it goes. Under Laplacian noise it is the median (BKM 11), which does
# not mind how far away a point is. Huber's density takes the mean of those nearby, which does
# without the outlier and uses more of the rest. The epsilon-insensitive density settles between the
# two observations at the ends of its zone.

rng = np.random.default_rng(3)
good = rng.standard_normal(20)
theta = np.linspace(-3, 3, 6001)


def most_probable(noise, observations):
    """Return the middle of the thetas with the greatest likelihood."""
    log_p = np.sum(noise.log_density(observations[:, None], theta), axis=0)
    return theta[log_p >= log_p.max() - 1e-9].mean()


places = np.linspace(0, 30, 61)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, noise in noises.items():
    curve = [most_probable(noise, np.append(good, place)) for place in places]
    ax.plot(places, curve, color=COLOURS[name], label=name)
    print(f"{name:20s} theta = {curve[0]:+.3f} with the last at 0, {curve[-1]:+.3f} at 30")
ax.set(xlabel="where the last observation is", ylabel=r"most probable $\theta$", xlim=(0, 30))
ax.legend(frameon=False)
print(f"the mean of the good ones is {good.mean():+.3f}, their median {np.median(good):+.3f}")

plt.show()
