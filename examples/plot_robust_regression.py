r"""
Regression with gross outliers
==============================

One target in five is wrong, and by far more than the others are noisy. Gaussian noise holds that to
be impossible, and bends the function, or the noise, until it is not. Noise with heavier tails knows
better.
"""  # noqa: D205, D400

# %%
# Four kinds of noise
# -------------------
# Eighty targets, sixteen of them gross errors. The four models differ in nothing but the likelihood
# that they are given; its scale is learned from the data with everything else, by an engine that
# suits it. Exact inference is for Gaussian noise alone. :class:`mercer.likelihoods.Huber` and
# :class:`mercer.likelihoods.Laplace` go by expectation propagation,
# :class:`mercer.likelihoods.StudentT` by Laplace's method.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor
from mercer.inference import LatentProblem
from mercer.inference import map as mode
from mercer.kernels import RBF
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, StudentT
from mercer.params import Parameter

rng = np.random.default_rng(2)
x = np.sort(rng.uniform(0, 10, 80))
X = x[:, None]


def truth(x):
    """Return the function that is to be found."""
    return np.sin(x) + 0.2 * x


y = truth(x) + 0.1 * rng.standard_normal(80)
wrong = rng.permutation(80) < 16
y[wrong] += rng.choice([-1, 1], 16) * rng.uniform(1, 5, 16)

student = StudentT(Parameter(3.0, fixed=True))
noises = {"Gaussian": Gaussian(), "Huber": Huber(), "Laplace": Laplace(), "Student t": student}
grid = np.linspace(0, 10, 300)[:, None]
figure, panels = plt.subplots(2, 2, figsize=(11, 7), sharex=True, sharey=True, layout="constrained")
models = {}
for ax, (name, noise) in zip(panels.flat, noises.items(), strict=True):
    model = GPRegressor(1.0 * RBF(1.0), noise).fit(X, y)
    models[name] = model
    mean, std = model.predict(grid, return_std=True, latent=True)
    ax.fill_between(grid[:, 0], mean - 1.96 * std, mean + 1.96 * std, color="#0072B2", alpha=0.25)
    ax.plot(grid, mean, color="#0072B2")
    ax.plot(grid, truth(grid), ":", color="#222222")
    ax.plot(x[~wrong], y[~wrong], ".", color="#222222", markersize=5)
    ax.plot(x[wrong], y[wrong], "x", color="#D55E00", markersize=5)
    ax.set(title=f"{name}, by {model.inference_}", ylim=(-5, 7))
    error = np.sqrt(np.mean((mean - truth(grid[:, 0])) ** 2))
    inside = np.mean(np.abs(mean - truth(grid[:, 0])) < 1.96 * std)
    print(
        f"{name:9s} error {error:.3f}, the 95% band holds the truth at {100 * inside:.0f}%", end=""
    )
    print(f" of the places, log evidence {model.log_marginal_likelihood_value_:.1f}")

# %%
# The dots are good targets and the crosses wrong ones; dotted is the truth. With Gaussian noise the
# band is wide and the function vague. The other three find it. The evidence, which has seen nothing
# but the data, puts them in the right order too.
#
# Which rows went wrong
# ---------------------
# The likelihood also says how surprising each target is. Leave-one-out predictions under Student's
# t noise find the wrong rows without being told that there are any: they are those whose log
# density is low.

left_out = models["Student t"].loo()
order = np.argsort(left_out.log_density)
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for rows, colour, label in [(~wrong, "#222222", "good"), (wrong, "#D55E00", "wrong")]:
    ax.vlines(np.flatnonzero(rows), left_out.log_density[rows], 2, color=colour, label=label)
ax.set(xlabel="row", ylabel="leave-one-out log density", ylim=(None, 2))
ax.legend(frameon=False, loc="lower left")
print(f"of the 16 least probable rows {wrong[order[:16]].sum()} are wrong ones")

# %%
# The mode alone
# --------------
# Laplacian, Huber's and epsilon-insensitive noise make the search for the most probable function a
# quadratic programme in as many unknowns as rows, each in a box: no observation can pull harder
# than the box allows. With the last of the three it is support vector regression.
# ``inference="map"`` solves it, to a duality gap that is part of the solution, and so says how good
# it is. Rows at the ends of the box pull as hard as they can; with an epsilon-insensitive zone most
# others do not pull at all, and the posterior needs only the ones that do.

found = models["Laplace"]
scale = found.likelihood_.scale
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for name, noise, style in [
    ("Laplace", Laplace(scale), {"color": "#0072B2"}),
    ("Huber", Huber(scale), {"color": "#009E73", "linestyle": "--"}),
    ("epsilon-insensitive", EpsilonInsensitive(0.3, scale), {"color": "#E69F00"}),
]:
    model = GPRegressor(found.kernel_, noise, mean=found.mean_, inference="map", optimizer=None)
    model.fit(X, y)
    ax.plot(grid, model.predict(grid), label=name, **style)
    problem = LatentProblem(found.kernel_, X, y, noise, found.mean_(X)[:, 0])
    solution = mode.solve(problem)
    pulls = np.abs(solution.alpha)
    print(
        f"{name:19s} duality gap {solution.gap:.1e}, {np.sum(pulls > 0.999 * pulls.max())} rows "
        f"at the ends of the box, {model.posterior_.n_basis} basis points"
    )
    if name == "epsilon-insensitive":
        used = pulls > 0
ax.plot(x[used], y[used], "o", color="#E69F00", markerfacecolor="none", label="support vectors")
ax.plot(x, y, ".", color="#222222", markersize=4)
ax.plot(grid, truth(grid), ":", color="#222222")
ax.set(xlabel="x", ylabel="y", ylim=(-5, 7))
_ = ax.legend(frameon=False, fontsize="small")

plt.show()
