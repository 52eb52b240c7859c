r"""
The mode is not the mean
========================

Where the posterior of a function has no closed form, the simplest way out is to take its mode for
the whole. This example repeats Fig. 3 of *Bayesian Kernel Methods* (Smola and Schölkopf, section
2.3; BKM below): sometimes that is exact, and sometimes it is arbitrarily bad. It uses a single
latent value :math:`\theta`, so that the posterior can be drawn and integrated by brute force, and
asks what Mercer's engines make of it.
"""  # noqa: D205, D400

# %%
# Figure 3
# --------
# The prior is :math:`\theta \sim N(0, 4)`, and there are two observations. Left, their noise is
# Gaussian: the posterior is Gaussian too, and its mode is its mean. Right, the noise has the heavy
# tails of Student's t distribution. If the two observations contradict each other, one of them is
# wrong by far, and the posterior has two peaks, one for either. The mode says nothing of the second
# peak, and the mean is where neither is.

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import trapezoid

from mercer.inference import LatentProblem, ep, laplace, variational
from mercer.kernels import Constant
from mercer.likelihoods import Gaussian, StudentT
from mercer.means import Zero

y = np.array([-1.5, 2.0])
theta = np.linspace(-6, 6, 12001)


def exact(likelihood):
    """Return the evidence of the observations and the posterior density on the grid."""
    log_joint = np.sum(likelihood.log_density(y[:, None], theta), axis=0)
    joint = np.exp(log_joint - theta**2 / 8) / np.sqrt(8 * np.pi)
    evidence = trapezoid(joint, theta)
    return evidence, joint / evidence


noises = {"Gaussian noise": Gaussian(1.0), "Student's t": StudentT(df=2.0, scale=0.4)}
figure, panels = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for ax, (name, noise) in zip(panels, noises.items(), strict=True):
    evidence, density = exact(noise)
    mean, top = trapezoid(theta * density, theta), theta[np.argmax(density)]
    ax.fill_between(theta, density, color="#E8E8E8")
    ax.plot(theta, density, color="#222222")
    ax.axvline(top, color="#0072B2", linestyle="--", label="mode")
    ax.axvline(mean, color="#D55E00", linestyle=":", linewidth=2, label="mean")
    ax.plot(y, np.zeros(2), "*", color="#222222", markersize=9, clip_on=False, label="observations")
    ax.set(title=name, xlabel=r"$\theta$", xlim=(-4, 4), ylim=(0, None))
    ax.legend(frameon=False)
    print(f"{name:14s}: mode {top:+.3f}, mean {mean:+.3f}, log evidence {np.log(evidence):.3f}")
_ = panels[0].set_ylabel("posterior density")

# %%
# What the engines make of it
# ---------------------------
# An engine is given the observations as rows of a problem; here both see the same :math:`\theta`,
# by a kernel that is constant. Laplace's method puts a Gaussian at the mode, with the curvature
# there (BKM 20): it misses the other peak, and nearly all of the uncertainty. Variational inference
# takes the Gaussian that is nearest in the sense of (BKM 21), and expectation propagation one whose
# moments are about right. Both cover the two peaks, and put much weight where there is none between
# them: one Gaussian does not have two peaks. Their evidences are much nearer to the exact one.

problem = LatentProblem(4.0 * Constant(), np.zeros((2, 1)), y, noises["Student's t"], np.zeros(2))
engines = {
    "Laplace": (laplace, "#0072B2"),
    "variational": (variational, "#009E73"),
    "EP": (ep, "#D55E00"),
}
evidence, density = exact(noises["Student's t"])
mean = trapezoid(theta * density, theta)
deviation = np.sqrt(trapezoid((theta - mean) ** 2 * density, theta))

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.fill_between(theta, density, color="#E8E8E8", label="exact")
print(f"exact      : mean {mean:+.3f}, deviation {deviation:.3f}, log evidence", end=" ")
print(f"{np.log(evidence):.3f}")
for name, (engine, colour) in engines.items():
    process, solution = engine.posterior(problem, Zero())
    centre, variance = (v.item() for v in process.mean_and_var(np.zeros((1, 1))))
    gaussian = np.exp(-((theta - centre) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    ax.plot(theta, gaussian, color=colour, label=name)
    print(f"{name:11s}: mean {centre:+.3f}, deviation {np.sqrt(variance):.3f}", end=", ")
    print(f"log evidence {solution.log_evidence:.3f}")
ax.set(xlabel=r"$\theta$", ylabel="posterior density", xlim=(-4, 4))
_ = ax.legend(frameon=False)

# %%
# Which peak?
# -----------
# Worse, the higher of two peaks can be the smaller one: what counts is the area under it. Two
# observations near -1 are plain ones, and that at 2 is from an instrument which is very precise
# when it is not out of order. Its peak is narrow and very tall, and has the mode; most of the
# probability is under the other.

plain, precise = StudentT(df=2.0, scale=0.5), StudentT(df=1.0, scale=0.005)
log_joint = np.sum(plain.log_density(np.array([[-1.3], [-1.1]]), theta), axis=0)
log_joint += precise.log_density(2.0, theta) - theta**2 / 8
density = np.exp(log_joint) / trapezoid(np.exp(log_joint), theta)
right = theta > 1.0

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.fill_between(theta, density, color="#E8E8E8")
ax.plot(theta, density, color="#222222")
ax.axvline(theta[np.argmax(density)], color="#0072B2", linestyle="--", label="mode")
ax.axvline(trapezoid(theta * density, theta), color="#D55E00", linestyle=":", label="mean")
ax.set(xlabel=r"$\theta$", ylabel="posterior density", xlim=(-4, 4), ylim=(0, 2))
ax.legend(frameon=False)
print(f"the mode is {theta[np.argmax(density)]:+.2f}, and the peak that it is on", end=" ")
print(f"has probability {trapezoid(density[right], theta[right]):.2f}")

plt.show()
