r"""
Labels that are not certain
===========================

Sometimes a label is not one of two classes but a probability of them: because several people gave
it and did not agree, or because the one who gave it was not sure. These are two different things,
and ``soft_labels`` takes both.
"""  # noqa: D205, D400

# %%
# Shares of many labels
# ---------------------
# At forty places ten people have each said yes or no. With ``soft_labels=True`` each row of y has
# the shares of the two answers, and counts as one label that is split (a cross-entropy); by
# ``sample_weight`` it counts as the ten that it is. Beside it is what most do instead: the answer
# of the majority as if it were certain.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPClassifier
from mercer.kernels import RBF

rng = np.random.default_rng(6)


def truth(x):
    """Return the true probability of yes."""
    return 0.2 + 0.6 / (1 + np.exp(-3 * np.sin(x)))


x = np.sort(rng.uniform(0, 10, 40))
X = x[:, None]
yes = rng.binomial(10, truth(x)) / 10
shares = np.column_stack([1 - yes, yes])

kernel = 4.0 * RBF(1.0)
soft = GPClassifier(kernel, soft_labels=True, classes=["no", "yes"])
soft.fit(X, shares, sample_weight=np.full(40, 10.0))
hard = GPClassifier(kernel).fit(X, np.where(yes > 0.5, "yes", "no"))

grid = np.linspace(0, 10, 300)[:, None]
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.plot(grid, truth(grid), ":", color="#222222", label="truth")
for name, model, colour in [("shares", soft, "#0072B2"), ("majority", hard, "#D55E00")]:
    probability = model.predict_proba(grid)[:, 1]
    ax.plot(grid, probability, color=colour, label=name)
    error = np.sqrt(np.mean((probability - truth(grid[:, 0])) ** 2))
    print(f"{name:8s} {model.kernel_}, probabilities off by {error:.3f}")
ax.plot(x, yes, ".", color="#222222", label="share of yes")
ax.set(xlabel="x", ylabel="probability of yes", xlim=(0, 10), ylim=(-0.05, 1.05))
_ = ax.legend(frameon=False, fontsize="small")

# %%
# The majority is nearly always the same where the probability is 0.8, so that the model of it must
# believe that the answer there is certain. The shares know that it is not.
#
# The same as ten rows
# --------------------
# A share of 0.6 with weight 10 is six rows of yes and four of no at the same place, to the last
# digit of the evidence:

repeated = np.repeat(X, 10, axis=0)
answers = np.concatenate([np.arange(10) < round(10 * share) for share in yes])
rows = GPClassifier(soft.kernel_, optimizer=None).fit(repeated, answers)
print(f"40 rows of shares: log evidence {soft.log_marginal_likelihood_value_:.8f}")
print(f"400 rows:          log evidence {rows.log_marginal_likelihood_value_:.8f}")

# %%
# One label, in doubt
# -------------------
# Now there is one label a place, and whoever gave it says how sure they are of it. A row (0.5, 0.5)
# then is no sign of even odds: it says nothing at all. That reading is ``soft_labels="mixture"``
# (BKM 57). Between 1.2 and 4.2 the labels below were given in doubt, and carry (0.4, 0.6); the
# others are certain. As shares the doubtful ones say that the probability there is 0.6. As doubts
# they hardly say anything, and leave it to the labels that are certain.

x = np.sort(rng.uniform(0, 10, 60))
X = x[:, None]
is_yes = np.sin(0.6 * x) > 0
sure = np.where((x > 1.2) & (x < 4.2), 0.6, 1.0)
given = np.where(is_yes, sure, 1 - sure)
doubts = np.column_stack([1 - given, given])

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for name, reading, colour in [
    ("shares", "cross_entropy", "#0072B2"),
    ("doubts", "mixture", "#009E73"),
]:
    model = GPClassifier(
        25.0 * RBF(2.0), soft_labels=reading, classes=["no", "yes"], optimizer=None
    )
    model.fit(X, doubts)
    ax.plot(grid, model.predict_proba(grid)[:, 1], color=colour, label=f"read as {name}")
    print(f"{name}: p(yes) at 2.7 is {model.predict_proba([[2.7]])[0, 1]:.3f}")
ax.plot(x, given, ".", color="#222222", label="what was said of yes")
ax.set(xlabel="x", ylabel="probability of yes", xlim=(0, 10), ylim=(-0.05, 1.05))
_ = ax.legend(frameon=False, fontsize="small")

plt.show()
