r"""
Leaving one out
===============

How would the model have predicted each of its own observations, had that one not been there? For an
exact Gaussian process the answer needs no second fit: the leave-one-out predictions follow from the
one factorisation,

.. math::

   \mu_i = y_i - [Q^{-1} y]_i / [Q^{-1}]_{ii}, \qquad \sigma_i^2 = 1 / [Q^{-1}]_{ii},

with :math:`Q = K + \sigma^2 \mathbf{1}`. They are honest predictions of every row, so that a small
data set can be used whole both to fit and to check.
"""  # noqa: D205, D400

# %%
# Finding an outlier
# ------------------
# Thirty observations of a smooth function, one of which went wrong. Next to its own observation a
# flexible model looks as if nothing had happened. Predicted from the others, the row stands out.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from mercer import GPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.plotting import plot_calibration, plot_fit, plot_pit, plot_residuals

rng = np.random.default_rng(5)
x = np.sort(rng.uniform(0, 10, 30))
X, y = x[:, None], np.sin(x) + 0.1 * rng.standard_normal(30)
y[11] += 0.9

model = GPRegressor(RBF(1.0), Gaussian(0.01), mean="zero", optimizer=None).fit(X, y)
left_out = model.loo()
worst = int(np.argmin(left_out.log_density))

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
plot_fit(model, ax=left)
left.errorbar(
    x[worst],
    left_out.mean[worst],
    yerr=1.96 * left_out.std[worst],
    fmt="D",
    color="#D55E00",
    capsize=4,
    label="predicted from the others",
)
left.legend(frameon=False, fontsize="small")
plot_residuals(model, ax=right)
print(f"row {worst}: observed {y[worst]:.2f}, from the others {left_out.mean[worst]:.2f}", end=" ")
print(f"+- {left_out.std[worst]:.2f}")

# %%
# It is the same as fitting again without the row, at the same hyperparameters:

others = np.arange(30) != worst
refitted = GPRegressor(RBF(1.0), Gaussian(0.01), mean="zero", optimizer=None)
mean, std = refitted.fit(X[others], y[others]).predict(X[[worst]], return_std=True)
print(f"fitted again without it: {mean[0]:.12f} +- {std[0]:.12f}")
print(f"in closed form:          {left_out.mean[worst]:.12f} +- {left_out.std[worst]:.12f}")

# %%
# Are the error bars right?
# -------------------------
# The 442 people of scikit-learn's diabetes data, each predicted from the 441 others. In the left
# panel the share of people in their intervals is compared with the probability of the intervals; in
# the middle is the histogram of the probability integral transform, flat if the predicted
# distributions are right; on the right are the standardised residuals. The grey bands are what
# chance alone does to a perfect model.

data, target = load_diabetes(return_X_y=True, as_frame=True)
model = GPRegressor().fit(data, target)

figure, panels = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
plot_calibration(model, ax=panels[0])
plot_pit(model, ax=panels[1])
plot_residuals(model, ax=panels[2])

left_out = model.loo()
error = np.sqrt(np.mean((left_out.mean - target) ** 2))
inside = np.mean(np.abs(left_out.mean - target) < 1.645 * left_out.std)
print(f"leave-one-out error {error:.1f}, in the 90% interval {100 * inside:.1f}%")

# %%
# The curve stays in its band. A closer look at the residuals finds what a constant noise cannot
# describe: they scatter less where the prediction is low.
#
# A noise that is ten times too small shows at once: far fewer people lie in their intervals than
# should, and the histogram piles up at its ends.

proud = GPRegressor(model.kernel_, Gaussian(0.1 * model.likelihood_.noise), optimizer=None)
proud.fit(data, target)
figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
plot_calibration(model, label="fitted noise", ax=panels[0])
plot_calibration(proud, label="a tenth of it", color="#D55E00", ax=panels[0])
_ = plot_pit(proud, color="#D55E00", ax=panels[1])

# %%
# Choosing hyperparameters by it
# ------------------------------
# ``objective="loo"`` maximises the leave-one-out log density instead of the evidence. The evidence
# asks how probable the data are under the prior; leave-one-out only how well they predict each
# other, which suffers less where the prior is wrong.

for objective in ("evidence", "loo"):
    fitted = GPRegressor(objective=objective).fit(data, target)
    density = fitted.loo().log_density.mean()
    print(f"maximised: {objective:9s} leave-one-out log density {density:.4f} a row")

plt.show()
