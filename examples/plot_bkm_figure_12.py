r"""
The prior of relevance vector machines
======================================

Tipping's relevance vector machine puts a Gamma density on the precision of each coefficient (BKM
123), with shape and rate :math:`a = b = 10^{-4}`: next to flat in :math:`\ln s`. The coefficient
then has Student's t distribution,

.. math:: p(\theta) = \frac{b^a\, \Gamma(a + \frac12)}{\Gamma(a) \sqrt{2\pi}}
          \left(b + \tfrac12 \theta^2\right)^{-(a + \frac12)}

(BKM 124 with its constant; Smola and Schölkopf, *Bayesian Kernel Methods*, section 6.1). This
example repeats Fig. 12, and shows what such a hyperprior does to one coefficient.
"""  # noqa: D205, D400

# %%
# Figure 12
# ---------
# The negative log density grows like :math:`\ln|\theta|` only: large coefficients cost next to
# nothing more than moderate ones. Around 0 it is rounded, on the scale of
# :math:`\sqrt{2b} = 0.014`; there is no pole.

import matplotlib.pyplot as plt
import numpy as np

from mercer.priors import Flat, GammaPrecision, NormalDeviation

prior = GammaPrecision(a=1e-4, b=1e-4)
theta = np.linspace(-3, 3, 2001)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(theta, prior.density(theta), color="black")
left.set(title=r"$p(\theta)$", xlabel=r"$\theta$", xlim=(-3, 3))
right.plot(theta, -prior.log_density(theta), color="black")
right.set(title=r"$-\log\, p(\theta)$", xlabel=r"$\theta$", xlim=(-3, 3))

# %%
# Most of the mass is nowhere near: the prior is proper, but a coefficient is beyond what a computer
# holds with a probability of 87%.

try:
    prior.sample(np.random.default_rng(0), 1000)
except ValueError as error:
    print(error)

# %%
# What becomes of one coefficient
# -------------------------------
# Under a model without it, a function has a sparsity S and a quality Q. With the precision s for
# its coefficient the log evidence changes by :math:`\frac12 [\ln s - \ln(s + S) + Q^2/(s + S)]`,
# and the hyperprior's log density of :math:`\ln s` is added. Under a flat one the best s is finite
# just if :math:`Q^2 > S`; otherwise it is infinite, and the function is left out, although no
# prior that was written down has a point mass at 0.

s = np.geomspace(1e-2, 1e6, 400)
figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, Q in zip(panels, (0.8, 2.5), strict=True):
    for hyperprior, style in ((Flat(), "-"), (prior, "--"), (NormalDeviation(1.0), ":")):
        change = 0.5 * (np.log(s / (s + 1)) + Q**2 / (s + 1)) + hyperprior.log_hyper(s)
        ax.plot(s, change, style, color="black", label=repr(hyperprior))
        best, gain = hyperprior.best_precision(1.0, Q)
        if np.isfinite(best):
            ax.plot(best, gain, "o", color="#b3403a")
        print(f"Q = {Q}: {hyperprior!r:33} best precision {best:6.3f}, gain {gain:.3f}")
    ax.axhline(0, color="#999999", linewidth=0.8)
    ax.set(xscale="log", ylim=(-2.5, 1.9), title=f"S = 1, Q = {Q}", xlabel="precision s")
panels[0].set_ylabel("change of the log evidence")
panels[1].legend(fontsize="small")

plt.show()
