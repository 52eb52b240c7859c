r"""
The exact model without a factorisation
=======================================

``GPRegressor(inference="iterative")`` has the model of exact regression without its factorisation:
conjugate gradients that stop once the Gap of their solution is proved to be small, and an evidence
whose log determinant is estimated with random probes. This example compares it with the exact path.
"""  # noqa: D205, D400

# %%
# The mean is certified
# ---------------------
# The tolerance is a Gap. Errors of the function go with its square root, so that it is small by
# default; here larger ones show what it does. What the solution promises at most is
# ``mercer.certificate``'s, what it does is held against the exact mean.

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

import mercer
from mercer import GPRegressor, Iterative
from mercer.errors import MercerWarning
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

# Mercer warns of the columns that hardly matter, which this page has on purpose.
warnings.filterwarnings("ignore", category=MercerWarning)


def rows(n, seed=0):
    """Return a smooth function of four of six columns, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    f = np.sin(X[:, 0]) + np.cos(X[:, 1] + 0.5 * X[:, 2]) + 0.5 * X[:, 3]
    return X, f + 0.1 * rng.standard_normal(n)


kernel, noise = 1.0 * RBF(np.full(6, 2.5)), Gaussian(0.01)
X, y = rows(1500)
exact = GPRegressor(kernel, noise, optimizer=None).fit(X, y)
truth = exact.predict(X)
tolerances = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8]
promised, actual = [], []
for tol in tolerances:
    # a preconditioner of low rank, so that there is something left to iterate
    model = GPRegressor(
        kernel, noise, inference=Iterative(tol=tol, rank=30), optimizer=None, random_state=0
    ).fit(X, y)
    promised.append(mercer.certificate(model, X, y).fitted_error[0])
    actual.append(np.sqrt(np.mean((model.predict(X) - truth) ** 2)))
    print(f"tol {tol:.0e}: Gap {model.gap_:.1e} after {model.n_solver_iter_} steps")

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(tolerances, promised, "o-", color="#D55E00", markersize=4, label="promised at most")
ax.plot(tolerances, actual, "o-", color="#0072B2", markersize=4, label="actual")
ax.set(
    xlabel="tol, the Gap", ylabel="distance from the exact mean, RMS", xscale="log", yscale="log"
)
_ = ax.legend(frameon=False)

# %%
# The evidence has a standard error
# ---------------------------------
# The log determinant is that of the preconditioner, which is exact, and an estimate of the rest.
# The better the preconditioner the less is left to estimate.

ranks = [20, 50, 100, 200, 400]
values, errors = [], []
for rank in ranks:
    model = GPRegressor(
        kernel, noise, inference=Iterative(rank=rank), optimizer=None, random_state=0
    ).fit(X, y)
    values.append(model.log_marginal_likelihood_value_)
    errors.append(model.log_marginal_likelihood_std_error_)
away = np.array(values) - exact.log_marginal_likelihood_value_

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.errorbar(ranks, away, 2 * np.array(errors), fmt="o", color="#0072B2", capsize=3)
ax.axhline(0.0, color="#333333", linewidth=1)
_ = ax.set(
    xlabel="rank of the preconditioner",
    ylabel="log evidence less the exact, nats",
    xscale="log",
)

# %%
# Error bars on the safe side
# ---------------------------
# Standard deviations come from cached solves of low rank, and are never below the exact ones.

new = rows(400, seed=1)[0]
wanted = exact.predict(new, return_std=True, latent=True)[1]
figure, ax = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
for rank, colour in [(30, "#E69F00"), (100, "#009E73"), (400, "#0072B2")]:
    model = GPRegressor(
        kernel, noise, inference=Iterative(rank=rank), optimizer=None, random_state=0
    ).fit(X, y)
    found = model.predict(new, return_std=True, latent=True)[1]
    ax.plot(wanted, found, ".", color=colour, markersize=4, label=f"rank {rank}")
ax.axline((0.1, 0.1), slope=1, color="#333333", linewidth=1)
ax.set(
    xlabel="exact standard deviation", ylabel="by iterative inference", xscale="log", yscale="log"
)
_ = ax.legend(frameon=False)

# %%
# When it pays
# ------------
# A fit at given hyperparameters, error bars made ready, by the number of rows. Throughout this
# picture exact inference is the faster one; its lead shrinks, as it takes eight times as long for
# twice the rows. ``benchmarks/RESULTS.md`` has 10,000 rows, and 50,000, whose matrix is never
# stored.

numbers = [500, 1000, 2000, 4000]
seconds = {"exact": [], "iterative": []}
for n in numbers:
    A, b = rows(n)
    for engine, times in seconds.items():
        start = time.perf_counter()
        GPRegressor(kernel, noise, inference=engine, optimizer=None, random_state=0).fit(A, b)
        times.append(time.perf_counter() - start)

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for (engine, times), colour in zip(seconds.items(), ("#333333", "#0072B2"), strict=True):
    ax.plot(numbers, times, "o-", color=colour, markersize=4, label=engine)
ax.set(xlabel="rows", ylabel="seconds of a fit", xscale="log", yscale="log")
ax.legend(frameon=False)

plt.show()
