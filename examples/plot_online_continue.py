r"""
Going on from a posterior
=========================

Every method of Mercer ends in a ``Posterior``, and on-line learning goes on from any of them: fit
some rows by the method that suits them, then learn the others as they come. This example starts
from an exact fit and from FITC, prunes what comes out, and saves it.
"""  # noqa: D205, D400

# %%
# An exact fit, and then a stream
# -------------------------------
# 300 rows of one half of the plane choose the hyperparameters. Then 6000 more come, from all of it.
# ``from_posterior`` takes the posterior and the noise; a basis that is larger than ``max_basis`` is
# pruned first, and grows again where rows are new.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPRegressor, OnlineGPRegressor, SparseGPRegressor, load, save

rng = np.random.default_rng(0)


def function(X):
    """Return what is to be learned."""
    return np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1])


def rows(n, left, right):
    """Return rows with the first column between two ends."""
    X = np.column_stack([rng.uniform(left, right, n), rng.uniform(-2, 2, n)])
    return X, function(X) + 0.2 * rng.standard_normal(n)


X, y = rows(300, -3, 0)
X_more, y_more = rows(6000, -3, 3)
X_test, y_test = rows(1000, -3, 3)

exact = GPRegressor().fit(X, y)
# Inducing inputs stay: FITC that moves them takes noise for detail, and the stream has its noise.
fitc = SparseGPRegressor(
    approximation="fitc", n_inducing=40, learn_inducing=False, random_state=0
).fit(X, y)
print(f"exact: {exact.kernel_}, {exact.likelihood_}")


def going_on(model):
    """Return an on-line model that starts as this one ends."""
    return OnlineGPRegressor.from_posterior(model.posterior_, model.likelihood_, max_basis=80)


def error(model):
    """Return the error of the function at the test rows."""
    return np.sqrt(np.mean((model.predict(X_test) - function(X_test)) ** 2))


def running(values, width=100):
    """Return means over the last rows."""
    return np.convolve(values, np.full(width, 1 / width), mode="valid")


figure, panels = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
going, at = {}, np.arange(99, 6000)
for (name, model), style in zip({"exact": exact, "FITC": fitc}.items(), ["-", "--"], strict=True):
    going[name] = going_on(model)
    start = error(going[name])
    before = going[name].learn(X_more, y_more)
    squares = running((before.mean - function(X_more)) ** 2)
    panels[0].loglog(at, np.sqrt(squares), style, color="#0072B2", label=f"going on from {name}")
    held = running(np.abs(before.mean - y_more) < 1.645 * before.std)
    panels[1].semilogx(at, held, style, color="#0072B2")
    print(
        f"from {name}: error {start:.3f} before, {error(going[name]):.3f} after 6000 rows, "
        f"{going[name].n_basis_} basis vectors, {going[name].projection_loss_:.2f} nats lost"
    )
squares = running((exact.predict(X_more) - function(X_more)) ** 2)
panels[0].loglog(at, np.sqrt(squares), color="#E69F00", label="the exact fit as it was")
panels[0].set(xlabel="row", ylabel="error of the last 100 predictions, RMS")
panels[0].legend(frameon=False)
panels[1].axhline(0.9, color="#333333", linewidth=1, linestyle=":")
_ = panels[1].set(xlabel="row", ylabel="held by 90% intervals", ylim=(0.5, 1.02))

# %%
# The predictions are of rows that were not learned yet. Both models know nothing of the right half
# at first, and say so by their error bars, so that their intervals hold nearly what they promise
# throughout. With the first hundreds of rows the basis spreads out.
#
# Where the basis goes
# --------------------

figure, panels = plt.subplots(1, 3, figsize=(14, 4.2), sharex=True, sharey=True, layout="constrained")
model = going_on(exact)
parts = {"the exact fit, pruned": slice(0), "200 rows on": slice(200), "6000 rows on": slice(200, 6000)}
for ax, (title, some) in zip(panels, parts.items(), strict=True):
    if some.stop:
        model.partial_fit(X_more[some], y_more[some])
    shown = X_more[: some.stop] if some.stop else X
    ax.plot(*shown.T, ".", color="#8A8A8A", markersize=2, alpha=0.5)
    ax.plot(*model.basis_.T, "D", color="#D55E00", markersize=4)
    ax.set(xlabel="first column", xlim=(-3.2, 3.2))
    ax.set_title(f"{title}: {model.n_basis_} basis vectors", loc="left", fontsize="medium")
_ = panels[0].set_ylabel("second column")

# %%
# Smaller, with its price
# -----------------------
# ``prune`` removes basis vectors and returns the divergence in nats. It is that of the whole
# process from what is left of it. Under 0.01 nats nothing is seen anywhere.

sizes = [70, 60, 50, 40, 30, 20]
small = going_on(exact).partial_fit(X_more, y_more)
losses, errors = [], []
for size in sizes:
    losses.append(small.prune(size) + (losses[-1] if losses else 0.0))
    errors.append(error(small))
    print(f"{size} basis vectors: {losses[-1]:.3g} nats in all, error {errors[-1]:.4f}")

figure, panels = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
panels[0].semilogy(sizes, losses, "o-", color="#0072B2", markersize=4)
panels[0].set(xlabel="basis vectors left", ylabel="divergence, nats")
panels[1].semilogy(sizes, errors, "o-", color="#E69F00", markersize=4)
panels[1].set(xlabel="basis vectors left", ylabel="error at test rows")

# %%
# To be continued
# ---------------
# A saved model has every number that later rows depend on. Loaded, it learns on as if nothing had
# been: the results are the same to the last digit.

model = going["exact"]
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "going.mercer"
    save(model, path)
    print(f"{path.stat().st_size / 1024:.0f} kB for a model that has seen {model.n_seen_} rows")
    again = load(path)
X_last, y_last = rows(500, -3, 3)
model.partial_fit(X_last, y_last)
again.partial_fit(X_last, y_last)
same = np.array_equal(model.predict(X_test), again.predict(X_test))
print(f"the same after 500 rows more: {same}")

plt.show()
