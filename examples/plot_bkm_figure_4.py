r"""
What one observation says of another
====================================

All that a Gaussian process does is already there with two variables. This example repeats Fig. 4 of
*Bayesian Kernel Methods* (Smola and Schölkopf, section 3.1; BKM below).

Two observations :math:`y_1` and :math:`y_2` are assumed to be normal, with mean zero and covariance

.. math:: K = \begin{pmatrix} 1 & 3/4 \\ 3/4 & 3/4 \end{pmatrix}.

Before anything is seen, :math:`y_2` has variance 3/4. Then :math:`y_1` is observed, and the
conditional density :math:`p(y_2 \mid y_1) = p(y_1, y_2) / p(y_1)` (BKM 30) is what is known of
:math:`y_2` from now on. It is normal again: a cut through the joint density, made to integrate to
one.
"""  # noqa: D205, D400

# %%
# The joint density
# -----------------
# Left the density as a surface, right its contours, as in the top row of the figure.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import multivariate_normal

from mercer.kernels import RBF
from mercer.plotting import plot_conditional

K = np.array([[1.0, 0.75], [0.75, 0.75]])
a, b = np.meshgrid(np.linspace(-3, 3, 121), np.linspace(-3, 3, 121))
density = multivariate_normal(cov=K).pdf(np.dstack([a, b]))

figure = plt.figure(figsize=(10, 4.2), layout="constrained")
surface = figure.add_subplot(1, 2, 1, projection="3d")
surface.plot_surface(a, b, density, cmap="viridis", rcount=60, ccount=60, linewidth=0)
surface.set(xlabel="$y_1$", ylabel="$y_2$", title="density $p(y_1, y_2)$")
surface.view_init(elev=35, azim=-65)
flat = figure.add_subplot(1, 2, 2)
flat.contour(a, b, density, levels=12, cmap="viridis")
flat.set(xlabel="$y_1$", ylabel="$y_2$", title="its contours", aspect="equal")

# %%
# One given the other
# -------------------
# The figure's lower row has the conditional densities for :math:`y_1 = 1` and :math:`y_1 = -2`.
# :func:`mercer.plotting.plot_conditional` draws them beside the joint density, at the height where
# they belong: each vertical line is a cut, and the curve of its colour is what the cut looks like.
# The dotted line is the conditional mean, which is linear in what was observed.

_ = plot_conditional(K, given=[1.0, -2.0])

# %%
# Two things have happened to :math:`y_2`. Its mean is no longer 0, but
# :math:`K_{21} K_{11}^{-1} y_1` (BKM 45). And its variance has fallen from 3/4 to
# :math:`K_{22} - K_{21} K_{11}^{-1} K_{12} = 3/16` (BKM 44), *whatever* was observed: that an
# observation was made takes the uncertainty away, its value only moves the mean.

variance = K[1, 1] - K[1, 0] * K[0, 1] / K[0, 0]
print(f"variance of y2: {K[1, 1]:.4f} before, {variance:.4f} after y1 was observed")
for y1 in (1.0, -2.0):
    print(f"mean of y2 given y1 = {y1:+.0f}: {K[1, 0] / K[0, 0] * y1:+.3f}")

# %%
# Where the covariance comes from
# -------------------------------
# A kernel says how much two observations have in common, from where they were made: :math:`K_{ij} =
# k(x_i, x_j)`. Near places share much and say much of each other, far ones nothing at all.

kernel = RBF(length_scale=1.0)
figure, panels = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
for ax, distance in zip(panels, [0.3, 1.0, 2.5], strict=True):
    cov = kernel(np.array([[0.0], [distance]]))
    joint, _ = plot_conditional(cov, given=1.0, names=("$f(0)$", f"$f({distance})$"), ax=ax)
    left = 1.0 - cov[0, 1] ** 2
    print(f"at distance {distance}: correlation {cov[0, 1]:.3f}, variance left {left:.3f}")

plt.show()
