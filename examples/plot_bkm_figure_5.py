r"""
The functions that a kernel holds simple
========================================

A Gaussian process prefers some functions to others. Which ones, its eigenfunctions show. This
example repeats Fig. 5 of *Bayesian Kernel Methods* (Smola and Schölkopf, section 3.3; BKM below).

A vector of function values :math:`Y` has prior density proportional to :math:`\exp(-\frac12 Y^\top
K^{-1} Y)`. It is high for the eigenvectors :math:`v_i` of :math:`K` with large eigenvalues, since
:math:`v_i^\top K^{-1} v_i = 1 / \lambda_i` (BKM 38). Looking at them is a practical way of *seeing*
what a prior believes.
"""  # noqa: D205, D400

# %%
# Figure 5
# --------
# A Gaussian kernel :math:`\exp(-(x - x')^2 / 2)` (BKM 39), and x uniform on [-5, 5]: the first
# eight eigenfunctions, and the first twenty eigenvalues. The paper takes the eigenvectors of K on a
# grid of 200 points; here :func:`mercer.kernels.eigensystem` uses the 200 nodes of a Gauss rule,
# and scales the functions so that their mean square over [-5, 5] is one.

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import RBF, Exponential, Matern, Periodic, eigensystem
from mercer.plotting import plot_eigenfunctions, plot_eigenvalues, plot_samples

figure, panels = plt.subplots(3, 3, figsize=(10, 7.5), layout="constrained")
plot_eigenfunctions(RBF(1.0), (-5, 5), n=8, ax=panels.flat[:8])
_ = plot_eigenvalues(RBF(1.0), (-5, 5), n=20, ax=panels.flat[8])

# %%
# They look like the terms of a Fourier series: the kernel prefers functions that oscillate slowly,
# and the faster ones are the less likely, the smaller their eigenvalues. These fall so fast that
# ten functions hold nearly all there is. The eigenvalues add up to the variance of the process,
# :math:`\mathrm{E}[k(x, x)] = 1`.

grid = np.linspace(-5, 5, 200)[:, None]
values, functions = eigensystem(RBF(1.0), grid, n=20)  # the paper's own grid
print("eigenvalues on the paper's grid of 200 points:", values[:5].round(4))
for n in (5, 10, 15):
    print(f"the first {n:2d} of them hold {100 * values[:n].sum():.3f}% of the variance")

# %%
# A draw from the process
# -----------------------
# The eigenfunctions are also what draws are made of: :math:`f(x) = \sum_i \sqrt{\lambda_i} z_i
# \phi_i(x)` with independent standard normal :math:`z_i`. With more and more terms the same draw
# gets its details; after ten nothing more is seen to change.

rng = np.random.default_rng(1)
terms = functions(grid) * np.sqrt(values) * rng.standard_normal(20)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for n, colour in [(2, "#CC79A7"), (4, "#E69F00"), (7, "#009E73"), (20, "#0072B2")]:
    ax.plot(grid[:, 0], terms[:, :n].sum(axis=1), color=colour, label=f"{n} terms")
ax.set(xlabel="x", ylabel="f(x)", xlim=(-5, 5), title="one draw, term by term")
_ = ax.legend(frameon=False)

# %%
# Other kernels, other beliefs
# ----------------------------
# How fast the eigenvalues fall says how smooth the functions are: faster than any power for the
# RBF, by a power for the Matérn family, slowest for the exponential kernel, the paper's Laplacian
# (BKM 42), whose draws are nowhere smooth. Over whole periods, here two of length 5, a periodic
# kernel has its eigenvalues in pairs, a sine and a cosine each, but for the first, which belongs to
# the constant.

kernels = {
    "RBF": (RBF(1.0), "#0072B2"),
    "Matérn 3/2": (Matern(1.0, nu=1.5), "#009E73"),
    "exponential": (Exponential(1.0), "#D55E00"),
    "periodic": (Periodic(1.0, periodicity=5.0), "#CC79A7"),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for name, (kernel, colour) in kernels.items():
    plot_eigenvalues(kernel, (-5, 5), n=30, color=colour, label=name, ax=left)
left.set_ylim(1e-12, 1)
nodes, weights = np.polynomial.legendre.leggauss(200)
pairs, _ = eigensystem(Periodic(1.0, periodicity=5.0), 5 * nodes[:, None], weights / 2, n=7)
print("eigenvalues of the periodic kernel:", pairs.round(5))
plot_samples(Exponential(1.0), (-5, 5), n_samples=3, ax=right)
right.set_title("three draws with the exponential kernel", loc="left")

plt.show()
