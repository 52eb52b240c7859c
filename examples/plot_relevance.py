"""
Which columns matter
====================

With one length scale a column, a fit finds out which columns the function depends on: where nothing
changes along a column, its length scale becomes long. This is known as automatic relevance
determination.
"""  # noqa: D205, D400

# %%
# Ten columns, five of them of use
# --------------------------------
# Friedman's function :math:`10 \sin(\pi x_0 x_1) + 20 (x_2 - 1/2)^2 + 10 x_3 + 5 x_4` with noise;
# the other five columns have no part in it.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1

from mercer import GPRegressor
from mercer.plotting import plot_calibration, plot_fit, plot_history, plot_relevance

X, y = make_friedman1(300, n_features=10, noise=1.0, random_state=0)
names = ["angle", "radius", "bend", "slope", "tilt", *(f"noise {i}" for i in range(1, 6))]
X = pd.DataFrame(X, columns=names)
model = GPRegressor().fit(X[:200], y[:200])

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.8), layout="constrained")
plot_relevance(model, ax=left)
plot_history(model, ax=right)
print(f"noise variance {model.likelihood_.noise:.2f}, true 1.00")

# %%
# A bar is the spread of the column in length scales. The function bends most along the first three
# columns. Along the next two it is a straight line, for which a long length scale will do: a short
# bar says that the function hardly *bends*, not that it is flat. The last five are shorter still.
#
# Slices
# ------
# What the function does along a column, :func:`mercer.plotting.plot_fit` shows, the others held at
# their medians or at values of your choice. Marks at the foot are where the rows are.

figure, panels = plt.subplots(2, 3, figsize=(13, 7), sharey=True, layout="constrained")
for ax, column in zip(panels.flat, [*names[:5], "noise 1"], strict=True):
    plot_fit(model, columns=column, ax=ax)
    ax.get_legend().remove()

# %%
# Two columns at once, here the two that act together:

_ = plot_fit(model, columns=["angle", "radius"], at={"bend": 0.5})

# %%
# And last a look at the hundred rows that were not used: do the intervals hold what they promise?

plot_calibration(model, X[200:], y[200:])
low, high = model.predict_interval(X[200:], coverage=0.9)
inside = np.mean((low < y[200:]) & (y[200:] < high))
print(f"{100 * inside:.0f} of 100 new rows lie in their 90% interval")

plt.show()
