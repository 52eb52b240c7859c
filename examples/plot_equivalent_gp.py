r"""
A sum of many sections is a Gaussian process
============================================

A Laplacian process draws independent coefficients :math:`\theta_i`, and adds up sections of a
kernel,

.. math:: f(x) = m^{-1/2} \sum_{i=1}^m \theta_i\, k(x_i, x)

(BKM 113; Smola and Schölkopf, *Bayesian Kernel Methods*). Its samples are no Gaussian process, but
with many centres they are hard to tell from one: the sum has variance, and the central limit
theorem does the rest. This is Theorem 5 of the paper. The covariance of that process is
:class:`mercer.kernels.EquivalentGP`,

.. math:: \tilde k(x, x') = \frac{1}{m} \sum_i k(x, x_i)\, k(x', x_i),

and it is a covariance whatever :math:`k` is.
"""  # noqa: D205, D400

# %%
# More and more centres
# ---------------------
# Three functions each of 3, 30 and 3000 centres, drawn uniformly from [0, 1], with coefficients of
# a Laplacian density of variance 1. With three centres one sees the kernel: each function is a few
# bumps, and some are nearly zero. The band is two standard deviations of the equivalent process,
# and knows nothing of that.

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from scipy.special import erf

from mercer import GPRegressor
from mercer.kernels import RBF, EquivalentGP, Flipped, Tanh
from mercer.likelihoods import Gaussian
from mercer.plotting import plot_fit
from mercer.priors import Laplacian, sample_functions

BLUE, VERMILION, GREEN, INK = "#0072B2", "#D55E00", "#009E73", "#222222"
kernel = RBF(0.08)
prior = Laplacian(np.sqrt(0.5))  # of variance 1
x = np.linspace(0, 1, 401)[:, None]
rng = np.random.default_rng(1)

figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True, layout="constrained")
for ax, m in zip(panels, [3, 30, 3000], strict=True):
    centres = rng.uniform(size=(m, 1))
    f = sample_functions(prior, kernel, centres, x, 3, rng) / np.sqrt(m)
    std = np.sqrt(EquivalentGP(kernel, centres).diag(x))
    ax.fill_between(x[:, 0], -2 * std, 2 * std, color="0.9", linewidth=0)
    for draw, colour in zip(f.T, [BLUE, VERMILION, GREEN], strict=True):
        ax.plot(x[:, 0], draw, color=colour, linewidth=1.3)
    if m <= 30:
        ax.plot(centres[:, 0], np.full(m, -1.75), "|", color=INK, markersize=9)
    ax.set(title=f"{m} centres", xlabel="x", xlim=(0, 1), ylim=(-1.9, 1.9))
_ = panels[0].set_ylabel("f(x)")

# %%
# How nearly normal
# -----------------
# The value at one point, over 50,000 functions. The excess kurtosis of a Laplacian density is 3;
# that of the sum is 3 times :math:`\sum_i c_i^4 / (\sum_i c_i^2)^2` with :math:`c_i = k(x_i, x)`,
# and falls like :math:`1/m`. The tails are the last to become normal.

middle = np.array([[0.5]])
quantiles = np.linspace(-3.5, 3.5, 61)
figure, (tails, falling) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
sizes = [2, 8, 32, 128, 512]
measured, exact = [], []
for m, colour in zip(sizes, plt.cm.viridis(np.linspace(0, 0.85, len(sizes))), strict=True):
    centres = rng.uniform(size=(m, 1))
    f = sample_functions(prior, kernel, centres, middle, 50_000, rng)[0]
    c = kernel(middle, centres)[0]
    measured.append(stats.kurtosis(f))
    exact.append(3 * np.sum(c**4) / np.sum(c**2) ** 2)
    f = np.sort(f / np.sqrt(np.sum(c**2)))
    tails.plot(quantiles, np.quantile(f, stats.norm.cdf(quantiles)), color=colour, label=f"m = {m}")
    print(f"{m:5d} centres: kurtosis {measured[-1]:6.3f}, by the formula {exact[-1]:6.3f}")
tails.plot(quantiles, quantiles, ":", color=INK, label="normal")
tails.set(
    xlabel="quantile of a normal variable",
    ylabel="quantile of f(0.5)",
    xlim=(-3.5, 3.5),
    ylim=(-7, 7),
)
tails.legend(frameon=False, fontsize="small")
falling.loglog(sizes, exact, "-", color=BLUE, label="by the formula")
falling.loglog(
    sizes, np.maximum(measured, 0.003), "o", color=VERMILION, label="of 50,000 functions"
)
noise = np.sqrt(24 / 50_000)
falling.axhline(noise, color=INK, linestyle=":", label="standard error of the measured one")
falling.set(xlabel="centres m", ylabel="excess kurtosis")
_ = falling.legend(frameon=False, fontsize="small")

# %%
# The limit
# ---------
# As the centres grow in number the covariance tends to
# :math:`\int k(x, t)\, k(x', t)\, p(t)\, dt` (BKM 117): it depends on where inputs are likely. For
# a Gaussian kernel and uniform inputs the integral is closed. At the ends of the interval there are
# centres on one side only, and the variance is half of what it is inside.


def limit(a, b, width):
    half = 0.5 * (a + b)
    mass = 0.5 * np.sqrt(np.pi) * width * (erf((1 - half) / width) + erf(half / width))
    return np.exp(-((a - b) ** 2) / (4 * width**2)) * mass


grid = np.linspace(0, 1, 101)[:, None]
exact = limit(grid, grid.T, 0.08)
figure, panels = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
for ax, m in zip(panels, [20, 1000, None], strict=True):
    K = exact if m is None else EquivalentGP(kernel, rng.uniform(size=(m, 1)))(grid)
    shown = ax.imshow(K, extent=(0, 1, 1, 0), cmap="magma", vmin=0, vmax=exact.max() * 1.3)
    ax.set(title="limit" if m is None else f"{m} centres", xlabel="x'")
    print(f"{m or 'no end of':>9} centres: variance {K[50, 50]:.4f} inside, {K[0, 0]:.4f} at 0")
panels[0].set_ylabel("x")
_ = figure.colorbar(shown, ax=panels, shrink=0.85)

# %%
# A covariance from a kernel that is none
# ---------------------------------------
# tanh of an inner product is not a covariance: some of its matrices have negative eigenvalues.
# ``EquivalentGP`` makes one of it, at the price of squaring its spectrum, which makes it smoother;
# ``Flipped`` turns the negative eigenvalues over, and keeps their sizes.

X = rng.uniform(-1, 1, (30, 1))
y = np.sin(4 * X[:, 0]) + 0.1 * rng.normal(size=30)
tanh = Tanh(scale=4.0, offset=1.0)
print(f"least eigenvalue of tanh: {np.linalg.eigvalsh(tanh(X))[0]:.3f}")
figure, panels = plt.subplots(1, 2, figsize=(11, 3.8), sharey=True, layout="constrained")
for ax, made in zip(panels, [EquivalentGP(tanh, X), Flipped(tanh)], strict=True):
    model = GPRegressor(5.0 * made, Gaussian(0.01)).fit(X, y)
    plot_fit(model, (-1.5, 1.5), ax=ax)
    evidence = model.log_marginal_likelihood()
    ax.set(title=f"{type(made).__name__}, log evidence {evidence:.1f}", ylim=(-2.5, 2.5))

plt.show()
