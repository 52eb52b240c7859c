r"""
The sparse family on one set
============================

An exact Gaussian process of n rows costs :math:`O(n^3)`. Sparse ones let the function reach new
points through its values u at m inducing inputs alone, and cost :math:`O(n m^2)`. There are many of
them. *A Unifying View of Sparse Approximate Gaussian Process Regression* (Quiñonero-Candela and
Rasmussen; UV below) showed that they differ in little: what each keeps of the covariance that f has
given u, :math:`K - Q` with :math:`Q = K_{fu} K_{uu}^{-1} K_{uf}`, at the training rows and at new
points. Mercer has one engine for all of them. This example repeats Fig. 5 of the paper.
"""  # noqa: D205, D400

# %%
# Who keeps what
# --------------
# Table 1 of the paper, printed from the objects that the engine works with, and with what has come
# since: PIC, VFE, power EP. The last column but one is the covariance that the training rows have
# given u, beyond the noise. The last says which are exact inference under some other kernel.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor, SparseGPRegressor
from mercer.inference import table
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

print(table())

# %%
# Figure 5
# --------
# A hundred noisy values of sin(x)/x; ten of them, drawn by chance, are the inducing inputs
# (crosses). Kernel and noise are the same for all and are not learned; the length scale is too
# short on purpose, which brings out what the error bars of each do between inducing inputs. The
# bands hold the function with a probability of 0.95, in grey those of the exact process.
#
# PITC's blocks are ten neighbours each. Augmented DTC adds the point that is predicted to the
# inducing inputs, one at a time.

rng = np.random.default_rng(135)
x = np.sort(rng.uniform(-12, 12, 100))
X, y = x[:, None], np.sinc(x / np.pi) + 0.1 * rng.standard_normal(100)
chosen = np.sort(rng.choice(100, 10, replace=False))
kernel, noise = 0.5 * RBF(1.1), Gaussian(0.01)
blocks = np.arange(100) // 10


def sparse(approximation, groups=None, rows=chosen, **settings):
    """Return a fit with everything but the approximation given."""
    model = SparseGPRegressor(
        kernel,
        noise,
        approximation=approximation,
        inducing=X[rows],
        mean="zero",
        optimizer=None,
        **settings,
    )
    return model.fit(X, y, groups=groups)


exact = GPRegressor(kernel, noise, mean="zero", optimizer=None).fit(X, y)
models = {
    "SoD": GPRegressor(kernel, noise, mean="zero", optimizer=None).fit(X[chosen], y[chosen]),
    "SoR": sparse("sor"),
    "DTC": sparse("dtc"),
    "augmented DTC": sparse("dtc", augment=True),
    "FITC": sparse("fitc"),
    "PITC": sparse("pitc", blocks),
}

line = np.linspace(-15, 15, 400)
true_mean, true_std = exact.predict(line[:, None], return_std=True, latent=True)
figure, panels = plt.subplots(
    3, 2, figsize=(11, 10), sharex=True, sharey=True, layout="constrained"
)
for ax, (name, model) in zip(panels.flat, models.items(), strict=True):
    mean, std = model.predict(line[:, None], return_std=True, latent=True)
    band = (true_mean - 1.96 * true_std, true_mean + 1.96 * true_std)
    ax.fill_between(line, *band, color="#D0D0D0", label="exact", linewidth=0)
    ax.plot(x, y, ".", color="#8A8A8A", markersize=4)
    ax.plot(x[chosen], y[chosen], "x", color="#D55E00", markersize=8, label="inducing")
    ax.plot(line, mean, color="#0072B2", label=name)
    for side in (-1.96, 1.96):
        ax.plot(line, mean + side * std, ":", color="#0072B2")
    ax.set_title(name, loc="left")
panels[0, 0].set(ylim=(-1.7, 1.9), xlim=(-15, 15))
_ = panels[0, 0].legend(frameon=False, loc="upper left", fontsize="small")

# %%
# SoD has forgotten ninety rows, and its bands are those of a set of ten. SoR knows all rows but is
# a sum of ten bumps, and takes what these cannot draw for impossible: its bands are too narrow
# among the data and vanish beyond. DTC has the same mean with the prior's variance given back
# wherever u says little, which is between any two inducing inputs here. With the point itself among
# the inducing inputs DTC comes close to the exact process, if somewhat too sure of itself. FITC and
# PITC know which rows u says little of, and trust these less.
#
# In numbers
# ----------
# How far the means are from the exact one where the data are, and how wide the error bars are
# beside the exact ones, there and beyond the data.

inside, outside = np.abs(line) < 12, np.abs(line) > 14
print("                 rms of mean - exact   median of std / exact: inside, beyond the data")
for name, model in models.items():
    mean, std = model.predict(line[:, None], return_std=True, latent=True)
    ratio = std / true_std
    print(
        f"{name:15s}  {np.sqrt(np.mean((mean - true_mean)[inside] ** 2)):19.3f}   "
        f"{np.median(ratio[inside]):22.2f}  {np.median(ratio[outside]):12.2f}"
    )

# %%
# With more inducing inputs
# -------------------------
# All of them become the exact process as the inducing inputs become the rows; SoR does so among
# the rows alone. The divergence of predictions from the exact ones, averaged over the line where
# the data are: KL(exact, approximation) in nats, for inducing inputs drawn by chance, each set
# holding the one before it. PIC, which ties new points to the block they lie in, and augmentation
# use what the rows nearby say, and need far fewer inducing inputs. SoR looks well here, and is
# hopeless beyond the data.


def divergence(model):
    """Return the mean of KL(exact, model) over the line, noise included."""
    mean, std = model.predict(line[inside, None], return_std=True)
    wanted, width = exact.predict(line[inside, None], return_std=True)
    ratio = (width / std) ** 2
    return np.mean(0.5 * (ratio - 1 - np.log(ratio) + ((mean - wanted) / std) ** 2))


order = np.concatenate([chosen, rng.permutation(np.setdiff1d(np.arange(100), chosen))])
numbers = [10, 14, 20, 28]
kinds = {
    "SoR": ("sor", {}, None, "#CC79A7"),
    "DTC": ("dtc", {}, None, "#E69F00"),
    "augmented DTC": ("dtc", {"augment": True}, None, "#D55E00"),
    "FITC": ("fitc", {}, None, "#0072B2"),
    "PITC": ("pitc", {}, blocks, "#009E73"),
    "PIC": ("pic", {}, blocks, "#333333"),
}
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
lost = []
for m in numbers:
    rows = order[:m]
    row = [divergence(sparse(k, groups, rows, **more)) for k, more, groups, _ in kinds.values()]
    subset = GPRegressor(kernel, noise, mean="zero", optimizer=None).fit(X[rows], y[rows])
    lost.append([*row, divergence(subset)])
styles = {name: (each[3], "-") for name, each in kinds.items()} | {"SoD": ("#8A8A8A", "--")}
for (name, (colour, style)), values in zip(styles.items(), np.transpose(lost), strict=True):
    ax.semilogy(numbers, values, style, marker="o", markersize=4, color=colour, label=name)
ax.set(xlabel="inducing inputs", ylabel="KL from the exact prediction, nats")
ax.legend(frameon=False, ncols=2)

plt.show()
