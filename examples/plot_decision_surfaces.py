r"""
Probabilities of classes
========================

A classifier is worth as much as its probabilities: those by which a decision is weighed, and those
that say how little is known. This example draws them, for two classes and for three.
"""  # noqa: D205, D400

# %%
# Two classes
# -----------
# Two crescents that overlap. :class:`mercer.GPClassifier` without arguments finds its own kernel.
# The contours are the probability of the orange class, and the black one is where both are as
# likely. Between the crescents the probability changes fast. Where there are no data it returns to
# one half: the model does not pretend to know.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, make_moons

from mercer import GPClassifier

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
X, y = make_moons(120, noise=0.25, random_state=1)
model = GPClassifier().fit(X, y)
print(model.kernel_)

a, b = np.meshgrid(np.linspace(-4, 5, 90), np.linspace(-3.5, 4, 80))
rows = np.column_stack([a.ravel(), b.ravel()])


def draw_labels(ax):
    """Draw the two crescents."""
    for label, colour in enumerate((BLUE, ORANGE)):
        ax.scatter(*X[y == label].T, color=colour, s=14, edgecolor="white", linewidth=0.4)


figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4), sharey=True, layout="constrained")
levels = np.linspace(0, 1, 11)
probability = model.predict_proba(rows)[:, 1].reshape(a.shape)
filled = left.contourf(a, b, probability, levels=levels, cmap="RdBu_r", alpha=0.6)
left.contour(a, b, probability, levels=[0.5], colors="black")
mean, std = model.predict_latent(rows, return_std=True)
link = 1 / (1 + np.exp(-mean.reshape(a.shape)))
right.contourf(a, b, link, levels=levels, cmap="RdBu_r", alpha=0.6)
right.contour(a, b, link, levels=[0.5], colors="black")
for ax, title in [(left, "averaged over the functions"), (right, "of the mean function alone")]:
    draw_labels(ax)
    ax.set(title=title, xlabel=r"$x_1$")
left.set_ylabel(r"$x_2$")
figure.colorbar(filled, ax=[left, right], label="probability of the orange class")

# %%
# The right panel puts the mean of the latent function through the link instead. The boundary is the
# same, as the average of a symmetric link is one half where the mean is 0. But the probabilities
# are surer, most of all at the edge of the data, where the function is hardly known and may as well
# be on its way back.

X_new, y_new = make_moons(2000, noise=0.25, random_state=2)
print(f"accuracy on new rows {model.score(X_new, y_new):.3f}, log probability of a label", end=" ")
print(f"{model.log_predictive_density(X_new, y_new).mean():.3f}")
edge = np.array([[2.6, 0.5]])
print(f"at {edge[0]}: {model.predict_proba(edge)[0, 1]:.3f}, and", end=" ")
print(f"{1 / (1 + np.exp(-model.predict_latent(edge)[0])):.3f} of the mean function alone")

# %%
# What is not known
# -----------------
# An even probability can mean two things: that the classes are mixed there, which no number of
# labels will change, or that nothing is known yet. The standard deviation of the latent function
# tells them apart. It is small on the boundary between the crescents and large far from all data.

figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
filled = ax.contourf(a, b, std.reshape(a.shape), levels=12, cmap="viridis")
ax.contour(a, b, probability, levels=[0.5], colors="white")
draw_labels(ax)
ax.set(xlabel=r"$x_1$", ylabel=r"$x_2$")
_ = figure.colorbar(filled, ax=ax, label="standard deviation of the latent function")

# %%
# Three classes
# -------------
# Fisher's irises by two of their four measures. With three classes there are three latent
# functions, coupled by a softmax. Each panel has the probability of one kind. The first is told
# from the others without doubt; between the two others is a band where nothing is sure.

flowers, kinds = load_iris(return_X_y=True)
names = load_iris().target_names
flowers = flowers[:, 2:]
three = GPClassifier().fit(flowers, kinds)

a, b = np.meshgrid(np.linspace(0, 8, 60), np.linspace(-0.5, 3.5, 60))
surface = three.predict_proba(np.column_stack([a.ravel(), b.ravel()])).reshape(*a.shape, 3)
figure, panels = plt.subplots(1, 3, figsize=(13, 4), sharey=True, layout="constrained")
for kind, (ax, colours) in enumerate(zip(panels, ("Blues", "Oranges", "Greens"), strict=True)):
    filled = ax.contourf(a, b, surface[..., kind], levels=levels, cmap=colours)
    ax.contour(a, b, surface[..., kind], levels=[0.25, 0.5, 0.75], colors="black", linewidths=0.6)
    for each, colour in enumerate((BLUE, ORANGE, GREEN)):
        ax.scatter(*flowers[kinds == each].T, color=colour, s=10, edgecolor="white", linewidth=0.3)
    ax.set(title=f"probability of {names[kind]}", xlabel="petal length, cm")
_ = panels[0].set_ylabel("petal width, cm")

# %%
# ``multi_class="one_vs_rest"`` fits each kind against the others, each with a kernel of its own,
# and makes the probabilities add up to one afterwards. Leave-one-out, which takes no second fit,
# finds hardly a difference here.

rest = GPClassifier(multi_class="one_vs_rest").fit(flowers, kinds)
for name, fitted in [("softmax", three), ("one against the rest", rest)]:
    left_out = fitted.loo()
    right_ones = np.mean(np.argmax(left_out.proba, axis=1) == kinds)
    print(f"{name:20s} leave-one-out: accuracy {right_ones:.3f}", end=", ")
    print(f"log probability {left_out.log_density.mean():.4f} a flower")

plt.show()
