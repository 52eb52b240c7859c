r"""
A prior for sparse coefficients from normal ones
================================================

A coefficient that is normal given its precision, :math:`\theta \mid s \sim N(0, 1/s)` (BKM 118), is
anything but normal once the precision is unknown,

.. math:: p(\theta) = \int N(\theta; 0, 1/s)\, p(s)\, ds,

(BKM 119; Smola and Schölkopf, *Bayesian Kernel Methods*, section 6.1). This is how relevance
vector machines come by a prior that favours few large coefficients, and keep the algebra of normal
ones. Here the standard deviations are normal themselves (BKM 121). The example repeats Fig. 11.
"""  # noqa: D205, D400

# %%
# Figure 11
# ---------
# The density is :math:`K_0(|\theta|/\omega)/(\pi\omega)`, with the modified Bessel function
# :math:`K_0`. (The paper's (BKM 122) has the argument upside down.) It has a pole at 0, and its
# negative logarithm is next to linear further out: a tip sharper than the Laplacian's, and the
# same tails.

import matplotlib.pyplot as plt
import numpy as np

from mercer.priors import Laplacian, NormalDeviation, WeightDecay, mixing_density

prior = NormalDeviation(width=1.0)
theta = np.linspace(-3, 3, 1201)
theta = theta[theta != 0]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(theta, prior.density(theta), color="black")
left.set(title=r"$p(\theta)$", xlabel=r"$\theta$", ylim=(0, 2), xlim=(-3, 3))
right.plot(theta, -prior.log_density(theta), color="black")
right.set(title=r"$-\log\, p(\theta)$", xlabel=r"$\theta$", xlim=(-3, 3))

# %%
# Draws, and two other priors of the same variance
# ------------------------------------------------
# A draw of a precision and then of a coefficient has this density. Beside it are the Laplacian and
# the normal density of the same variance: it puts more near 0, and more far out, than either.

draws = prior.sample(np.random.default_rng(0), 20_000)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.hist(draws, np.linspace(-4, 4, 121), density=True, color="#c9d7e6", label="draws")
wide = np.linspace(-4, 4, 1601) + 1e-4
for other, style in (
    (prior, "-"),
    (Laplacian(np.sqrt(0.5)), "--"),
    (WeightDecay(np.sqrt(2.0)), ":"),
):
    ax.plot(wide, np.exp(other.log_density(wide)), style, color="black", label=repr(other))
ax.set(yscale="log", ylim=(1e-4, 5), xlabel=r"$\theta$", ylabel="density")
ax.legend(fontsize="small")
print(f"variance of the draws {np.var(draws):.3f}")
for size in (0.1, 3.0):
    print(f"beyond {size}: {np.mean(np.abs(draws) > size):.4f} of them")

# %%
# And back
# --------
# As a function of :math:`\theta^2` the density is a Laplace transform (BKM 120), so that the way
# back from a prior to its hyperprior is an inverse one, which :func:`~mercer.priors.mixing_density`
# carries out numerically. The Laplacian prior has exponential variances, and the density above
# those of a squared normal variable.

variance = np.linspace(0.02, 6, 300)
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
found = mixing_density(Laplacian(np.sqrt(0.5)), variance)
ax.plot(variance, found.density, "--", color="black", label="of the Laplacian prior")
own = mixing_density(prior, variance)
ax.plot(variance, own.density, "-", color="black", label="of the normal hyperprior")
ax.set(xlabel="variance of a coefficient", ylabel="density", ylim=(0, 2))
ax.legend()
print(
    f"largest error of the inversion: {np.max(np.abs(found.density - np.exp(-variance))):.1e}, ",
    end="",
)
print(f"estimated as {np.max(found.error):.1e}")

# %%
# Not every prior comes from normal ones.

try:
    mixing_density(lambda theta: np.exp(-(theta**4)), variance)
except ValueError as error:
    print(error)

plt.show()
