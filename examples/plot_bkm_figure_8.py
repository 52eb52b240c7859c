r"""
Bounds on the logistic function
===============================

With the logistic likelihood of classification no integral over a Gaussian process has a closed
form. Bounds have. This example repeats Fig. 8 of *Bayesian Kernel Methods* (Smola and Schölkopf,
section 4.2; BKM below), and follows the bounds to what they are for: the evidence.

The logistic function :math:`p(y = 1 \mid t) = 1 / (1 + e^{-t})` lies above a Gaussian bump and
below an exponential (Jaakkola and Jordan),

.. math::

   \frac{1}{1 + e^{-\nu}} \exp\left(\frac{t - \nu}{2} - \lambda(\nu) (t^2 - \nu^2)\right)
   \;\leq\; p(y = 1 \mid t) \;\leq\; \exp(\mu t - H(\mu))

(BKM 76 and 77), with :math:`\lambda(\nu) = \tanh(\nu / 2) / (4 \nu)` and :math:`H(\mu) = -\mu \ln
\mu - (1 - \mu) \ln(1 - \mu)`. Here :math:`\nu` is any real number and :math:`\mu` is between 0 and
1; the paper prints that range for both.
"""  # noqa: D205, D400

# %%
# Figure 8
# --------
# Both bounds for :math:`\mu = \nu = 0.5`. The quality varies widely with t: the lower bound touches
# the function at :math:`t = \pm \nu`, the upper one at :math:`t = \ln((1 - \mu) / \mu) = 0`, and
# far from these places neither says much.

import matplotlib.pyplot as plt
import numpy as np

from mercer.inference import bounds, variational
from mercer.kernels import RBF
from mercer.likelihoods import Logistic
from mercer.means import Zero

t = np.linspace(-6, 6, 601)
logistic = 1 / (1 + np.exp(-t))
LOWER, UPPER, TRUTH = "#0072B2", "#D55E00", "#222222"

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(t, logistic, color=TRUTH, label=r"$1/(1 + e^{-t})$")
ax.plot(t, np.exp(bounds.log_lower(t, nu=0.5)), "--", color=LOWER, label=r"lower, $\nu = 0.5$")
ax.plot(t, np.exp(bounds.log_upper(t, mu=0.5)), "-.", color=UPPER, label=r"upper, $\mu = 0.5$")
ax.set(xlabel="t", ylabel="p(y = 1 | t)", xlim=(-6, 6), ylim=(0, 1.5))
ax.legend(frameon=False, loc="upper left")

for at in (0.0, 2.0, 5.0):
    low, high = np.exp(bounds.log_lower(at, 0.5)), np.exp(bounds.log_upper(at, 0.5))
    print(f"at t = {at:.0f}: {low:.4f} <= {1 / (1 + np.exp(-at)):.4f} <= {high:.4f}")

# %%
# A parameter for each place
# --------------------------
# The remedy is to choose the parameters anew wherever the function is looked at. Left, lower bounds
# for some :math:`\nu`, and right, upper ones for some :math:`\mu`: the best of each family at every
# t is the logistic function itself.

figure, panels = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
for ax in panels:
    ax.plot(t, logistic, color=TRUTH, zorder=3)
    ax.set(xlabel="t", xlim=(-6, 6), ylim=(0, 1.2))
for nu in (0.0, 1.0, 2.0, 3.5, 5.0):
    panels[0].plot(t, np.exp(bounds.log_lower(t, nu)), color=LOWER, linewidth=1, alpha=0.8)
for mu in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9):
    panels[1].plot(t, np.exp(bounds.log_upper(t, mu)), color=UPPER, linewidth=1, alpha=0.8)
panels[0].set(title=r"lower bounds, $\nu$ = 0, 1, 2, 3.5, 5", ylabel="p(y = 1 | t)")
_ = panels[1].set_title(r"upper bounds, $\mu$ = 0.02 to 0.9")

# %%
# The evidence between its bounds
# -------------------------------
# Each bound is the exponential of something linear or quadratic in t, and can be integrated against
# the process. With one observation the evidence is an integral over a line, and all is seen. Its
# logarithm, for y = 1 and a latent value with mean 1 and growing variance: as long as the value is
# nearly certain the bounds are nearly exact. Then they open. The upper one rises to 0 and knows in
# the end no more than that probabilities are at most one; the lower one falls without end. Between
# the lower bound and the truth is what :mod:`mercer.inference.variational` reaches, the best that a
# Gaussian can do (BKM 21). It bounds no likelihood, but takes an integral for each observation.

variances = np.geomspace(0.01, 100, 41)
curves = []
for variance in variances:
    one = bounds.LatentProblem(
        variance * RBF(1.0), np.zeros((1, 1)), np.ones(1), Logistic(), mean=np.ones(1)
    )
    curves.append(
        [
            bounds.solve(one).log_evidence,
            variational.solve(one).log_evidence,
            Logistic().smoothed(1.0, 1.0, variance)[0],
            bounds.upper_bound(one).log_evidence,
        ]
    )
lower, best, exact, upper = np.array(curves).T

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.fill_between(variances, lower, upper, color="#E8E8E8")
ax.plot(variances, upper, "-.", color=UPPER, label="upper bound")
ax.plot(variances, exact, color=TRUTH, label="evidence")
ax.plot(variances, best, ":", color="#009E73", label="best Gaussian")
ax.plot(variances, lower, "--", color=LOWER, label="lower bound")
ax.set(xscale="log", xlabel="variance of the latent value", ylabel="log evidence")
_ = ax.legend(frameon=False, loc="lower left")

# %%
# Classification with the lower bound
# -----------------------------------
# Maximising the lower bound over all :math:`\nu_i` gives a Gaussian posterior, by which new points
# are classified. Twenty-five labels on a line; the curves are the probability of the class above,
# averaged over the posterior of the bound, and over the best Gaussian. They agree well, although
# the bound is more than one below in the log evidence, and its posterior the more certain of the
# two.

rng = np.random.default_rng(8)
x = np.sort(rng.uniform(-5, 5, 25))
y = np.where(rng.uniform(size=25) < 1 / (1 + np.exp(-4 * np.sin(x))), 1.0, -1.0)
problem = bounds.LatentProblem(9.0 * RBF(1.2), x[:, None], y, Logistic(), mean=np.zeros(25))

grid = np.linspace(-7, 7, 400)[:, None]
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name, engine, style in [
    ("lower bound", bounds, {"color": LOWER, "linestyle": "--"}),
    ("best Gaussian", variational, {"color": "#009E73"}),
]:
    process, solution = engine.posterior(problem, Zero())
    mean, var = process.mean_and_var(grid)
    probability = 0.5 * (1 + Logistic().predictive_mean(mean, var))
    ax.plot(grid, probability, label=name, **style)
    print(
        f"{name:13s}: log evidence at least {solution.log_evidence:.3f}, "
        f"mean deviation at the data {np.sqrt(solution.variance).mean():.3f}"
    )
print(f"upper bound  : log evidence at most {bounds.upper_bound(problem).log_evidence:.3f}")
ax.plot(x, 0.5 * (1 + y), "*", color=UPPER, markersize=8, label="labels")
ax.axhline(0.5, color="#8A8A8A", linewidth=1, linestyle=":")
ax.set(xlabel="x", ylabel="p(y = 1 | x)", xlim=(-7, 7), ylim=(-0.05, 1.05))
_ = ax.legend(frameon=False)

plt.show()
