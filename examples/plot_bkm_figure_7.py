r"""
Classification with unlabelled rows
===================================

Labels are often dear where inputs are cheap. Fig. 7 of *Bayesian Kernel Methods* (Smola and
Schölkopf, section 3.5; BKM below) has a classifier that takes notice of rows without a label, and
one that does not.

With f the latent function at the rows with labels Y, and f' at the others, whose labels Y' are
missing, :class:`mercer.TransductiveGPClassifier` maximises

.. math::

   \log p(Y, Y', f, f') = \log p(Y' | f') + \log p(Y | f) + \log p(f, f')

over Y', f and f' (BKM 58 and 59, with hard labels), or with minus the entropy of the missing labels
in the place of their log probability (BKM 61). A function that is smooth, and far from even odds
wherever there are rows, changes its sign where there are none. The paper does not print its data;
these are two moons.
"""  # noqa: D205, D400

# %%
# Figure 7
# --------
# Circles and stars are the rows with labels, three of each class, and crosses those without. The
# lines are where both classes are as probable, and one is three times as probable as the other. On
# the left the crosses are ignored, and the boundary runs across the moons, halfway between labels
# that happen to be known. On the right it finds the gap. The kernel is given, with a length scale
# below the width of the gap, and the same in both.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import GPClassifier, TransductiveGPClassifier
from mercer.kernels import RBF

kernel = 4.0 * RBF(0.2)


def moons(seed, n=160, known=3):
    """Return rows, their classes, and labels that are -1 but for a few of each class."""
    X, true = make_moons(n, noise=0.06, random_state=seed)
    rng = np.random.default_rng(seed)
    y = np.full(n, -1)
    for c in (0, 1):
        y[rng.choice(np.flatnonzero(true == c), known, replace=False)] = c
    return X, true, y


def draw(ax, model, X, y, title):
    """Draw the rows, and the probability of the second class."""
    u, v = np.meshgrid(np.linspace(-1.4, 2.4, 90), np.linspace(-0.9, 1.4, 70))
    p = model.predict_proba(np.column_stack([u.ravel(), v.ravel()]))[:, 1].reshape(u.shape)
    ax.contourf(u, v, p, np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.5)
    ax.contour(u, v, p, [0.25, 0.5, 0.75], colors="#444444", linewidths=[0.8, 1.6, 0.8])
    for c, marker, colour in ((-1, "x", "#222222"), (0, "o", "#0072B2"), (1, "*", "#D55E00")):
        size = 14 if c < 0 else 130
        ax.scatter(*X[y == c].T, size, colour, marker=marker, linewidths=0.8, zorder=3)
    ax.set(title=title, xticks=[], yticks=[])


X, true, y = moons(seed=0)
some = y >= 0
alone = GPClassifier(kernel, optimizer=None).fit(X[some], y[some])
model = TransductiveGPClassifier(kernel, optimizer=None).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
draw(left, alone, X, y, "rows with labels alone")
draw(right, model, X, y, "all rows")
print(f"errors without the unlabelled rows: {np.sum(alone.predict(X) != true)} of {len(X)}")
print(f"errors with them: {np.sum(model.transduction_ != true)}")

# %%
# How the labels come about
# -------------------------
# EM finds, in turn, label distributions q from the function and the function from these. If q were
# the probabilities of the labels, nothing would come of it: the slope of
# :math:`\sum_y q(y) \log p(y|f')` is 0 where q is p(y | f'), whatever f' is, and the function stays
# where the rows with labels put it. So q is made harder than that, in proportion to
# :math:`p(y | f')^{1/T}`, with a temperature T that falls from 1 to 0. Labels spread from the rows
# that have them along the moons, and are hard in the end. At each temperature the objective never
# falls; between temperatures it does, since what soft labels are worth is taken away.

from mercer.inference.transductive import ANNEALED, TransductiveProblem, solve  # noqa: E402
from mercer.likelihoods import Logistic  # noqa: E402

problem = TransductiveProblem(kernel, X, y, Logistic(), np.zeros((len(X), 1)))
stages = (1.0, 0.98, 0.93, 0.0)
figure, panels = plt.subplots(1, 4, figsize=(13, 3), layout="constrained")
for ax, T in zip(panels, stages, strict=True):
    until = (1.0, *(t for t in ANNEALED if t >= T))
    q = solve(problem, temperatures=until).held[:, 1]
    ax.scatter(*X.T, 14, q, cmap="RdBu_r", vmin=0, vmax=1, edgecolors="#888888", linewidths=0.3)
    shown = {"marker": "*", "cmap": "RdBu_r", "edgecolors": "#222222", "zorder": 3}
    ax.scatter(*X[some].T, 130, y[some], **shown)
    ax.set(title=f"T = {T:g}", xticks=[], yticks=[])
    certain, wrong = np.mean(np.abs(q[~some] - 0.5) > 0.25), np.sum((q > 0.5) != true)
    print(
        f"T = {T:<4g}: {100 * certain:3.0f}% of the missing labels certain to 3:1, {wrong:2d} wrong"
    )

# %%
# The methods compared
# --------------------
# On eight draws of the moons and of the labels. Hard labels from the beginning stay what the rows
# with labels say, or nearly so. Annealed ones, and (BKM 61) begun where these end, come to the
# right labels on most draws: there are many local maxima, and on some draws the labels that are
# known mislead. `description_length_` tells which of two solutions with one kernel is the shorter.

count = {"alone": [], "hard": [], "annealed": [], "joint": []}
for seed in range(8):
    X, true, y = moons(seed)
    some = y >= 0
    plain = GPClassifier(kernel, optimizer=None).fit(X[some], y[some])
    count["alone"].append(np.sum(plain.predict(X) != true))
    for name, options in (
        ("hard", {"labels": "hard"}),
        ("annealed", {}),
        ("joint", {"method": "joint"}),
    ):
        fitted = TransductiveGPClassifier(kernel, optimizer=None, **options).fit(X, y)
        count[name].append(np.sum(fitted.transduction_ != true))

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for place, (name, errors) in enumerate(count.items()):
    jitter = np.linspace(-0.15, 0.15, len(errors))
    ax.plot(errors, place + jitter, "o", color="#0072B2", alpha=0.6)
    print(
        f"{name:<9}: {np.mean(errors):.1f} errors of {len(X)} on average, {np.max(errors)} at most"
    )
ax.set(yticks=range(len(count)), yticklabels=count, xlabel=f"errors of {len(X)}")
ax.invert_yaxis()

# %%
# The kernel decides how far labels spread, and with so few of them the evidence hardly knows it.
# Left to itself, the classifier takes the kernel that is best for the rows with labels, and then
# for all rows with the labels it has found; a long length scale may confirm itself that way. Where
# the gap between the classes is known, give a kernel.

X, true, y = moons(seed=0)
for name, fitted in (
    ("given", model),
    ("learned", TransductiveGPClassifier().fit(X, y)),
):
    wrong = np.sum(fitted.transduction_ != true)
    print(f"kernel {name}: {wrong} errors with {fitted.kernel_}")

plt.show()
