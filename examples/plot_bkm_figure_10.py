r"""
Functions before any data, from any kernel
==========================================

A prior over functions need not come from a covariance. Take any function of two points for a
kernel, put its sections at some centres, and draw independent coefficients for them,

.. math:: f(x) = \sum_i \theta_i\, k(x_i, x), \qquad p(\theta) \propto e^{-\sum_i |\theta_i|}.

This is a Laplacian process (BKM 97, 100; Smola and Schölkopf, *Bayesian Kernel Methods*, section
5), and this example repeats Fig. 10 of the paper: 400 centres, uniform in the unit square, and
three kernels.
"""  # noqa: D205, D400

# %%
# Figure 10
# ---------
# From top to bottom: the Gaussian kernel with :math:`\sigma^2 = 0.1` (BKM 103), the exponential one
# with :math:`\sigma = 0.1` (BKM 104), and :math:`\tanh(10 \langle x, x' \rangle + 1)` (BKM 105),
# the same sample in grey and as a surface. Dots are the centres. A smooth kernel gives smooth
# functions, and the exponential one a tip at each centre. The last is different in different
# places: far from the origin tanh is all but 1, and nothing happens.

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import RBF, Exponential, Tanh
from mercer.priors import FeatureSelection, Laplacian, WeightDecay, sample_functions

kernels = {
    "Gaussian": RBF(np.sqrt(0.1)),
    "exponential": Exponential(0.1),
    "tanh": Tanh(scale=10.0, offset=1.0),
}
rng = np.random.default_rng(0)
centres = rng.uniform(size=(400, 2))
side = np.linspace(0, 1, 81)
a, b = np.meshgrid(side, side)
grid = np.column_stack([a.ravel(), b.ravel()])


def show(figure, place, rows, name, f):
    """Draw one sample in two panels: in grey with the centres, and as a surface."""
    values = f.reshape(a.shape)
    grey = figure.add_subplot(rows, 2, 2 * place + 1)
    grey.imshow(values, cmap="gray", origin="lower", extent=(0, 1, 0, 1), interpolation="bilinear")
    grey.plot(*centres.T, ".", color="black", markersize=2.5)
    grey.set(title=name, aspect="equal", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    surface = figure.add_subplot(rows, 2, 2 * place + 2, projection="3d")
    surface.plot_surface(a, b, values, cmap="gray", rcount=81, ccount=81, linewidth=0)
    surface.view_init(elev=40, azim=-125)
    surface.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])


figure = plt.figure(figsize=(8.5, 11.5), layout="constrained")
for place, (name, kernel) in enumerate(kernels.items()):
    f = sample_functions(Laplacian(), kernel, centres, grid, rng=3)[:, 0]
    show(figure, place, 3, name, f)
    K = kernel(centres)
    least, greatest = np.linalg.eigvalsh(K)[[0, -1]]
    print(f"{name:12s} {np.ptp(f):6.1f} from least to greatest", end=", ")
    print(f"eigenvalues of its matrix from {least:+.2g} to {greatest:.4g}")

# %%
# The matrix of tanh over the centres has eigenvalues below zero, by far more than rounding. No
# Gaussian process has it for a covariance; here it is a kernel as good as the others, since nothing
# is asked of the sum but that it can be written down.
#
# Where the centres are, the function can do something
# ----------------------------------------------------
# The prior depends on where inputs were seen, though not on any targets. Here the centres lie on a
# ring: functions vary along it, and are zero where nobody has been.

angle = rng.uniform(0, 2 * np.pi, 400)
centres = 0.5 + (0.36 + 0.03 * rng.normal(size=400))[:, None] * np.column_stack(
    [np.cos(angle), np.sin(angle)]
)
figure = plt.figure(figsize=(8.5, 4), layout="constrained")
f = sample_functions(Laplacian(), Exponential(0.05), centres, grid, rng=3)[:, 0]
show(figure, 0, 1, "exponential, centres on a ring", f)

# %%
# Other priors of the coefficients
# --------------------------------
# With as many centres as these the coefficients' own density is hardly to be seen in the functions:
# by the central limit theorem they are close to a Gaussian process (see
# :ref:`sphx_glr_auto_examples_plot_equivalent_gp.py`). What differs is the mode of the posterior,
# once there are data: the Laplacian prior sets most coefficients to zero, weight decay none. The
# feature-selection prior, which counts coefficients rather than adding up their sizes, is not even
# proper, and says so when it is asked for a sample.

x = np.linspace(0, 1, 401)[:, None]
few = rng.uniform(size=(25, 1))
figure, panels = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True, layout="constrained")
for ax, prior in zip(panels, [Laplacian(np.sqrt(0.5)), WeightDecay(np.sqrt(2.0))], strict=True):
    ax.plot(x[:, 0], sample_functions(prior, Exponential(0.05), few, x, 4, rng=1), linewidth=1.2)
    ax.plot(few[:, 0], np.full(25, -3.2), "|", color="#222222")
    ax.set(title=f"{prior}, variance {prior.variance:g}", xlabel="x", xlim=(0, 1))
try:
    sample_functions(FeatureSelection(), Exponential(0.05), few, x)
except ValueError as error:
    print(error)

plt.show()
