r"""
Two links for two classes
=========================

A label is 1 or -1, and a probability is between 0 and 1. A latent function :math:`\theta(x)` may be
anything; a link makes a probability of it. This example repeats Fig. 2 of *Bayesian Kernel Methods*
(Smola and Schölkopf, section 2.2; BKM below) and looks at where the two usual links differ.

The logistic link has :math:`p(y \mid \theta) = 1 / (1 + e^{-y \theta})` (BKM 14), so that
:math:`\theta` is the logarithm of the odds (BKM 15). The probit link has :math:`p(y \mid \theta) =
\Phi(y \theta)`: the label is the sign of :math:`\theta`, seen through Gaussian noise (BKM 16, 17).
"""  # noqa: D205, D400

# %%
# Figure 2
# --------
# The probabilities, and what a label costs, its negative log probability. The product
# :math:`y \theta` is the margin: positive if the label is on the side it should be. A label that is
# far on the wrong side costs as much as its distance with the logistic link, and half the square of
# it with probit: that is like the linear and the quadratic loss of support vector machines
# (dotted), which are 0 beyond a margin of 1.

import matplotlib.pyplot as plt
import numpy as np

from mercer import GPClassifier
from mercer.kernels import Linear
from mercer.likelihoods import Logistic, Probit

margin = np.linspace(-4, 4, 401)
links = {"logistic": (Logistic(), "#0072B2"), "probit": (Probit(), "#D55E00")}
proxies = {"logistic": np.maximum(1 - margin, 0), "probit": np.maximum(1 - margin, 0) ** 2}

figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, (link, colour)) in zip(panels, links.items(), strict=True):
    log_p = link.log_density(1.0, margin)
    ax.plot(margin, np.exp(log_p), color=colour, label=r"$p(y \mid \theta)$")
    ax.plot(margin, -log_p, "--", color=colour, label=r"$-\ln p(y \mid \theta)$")
    ax.plot(margin, proxies[name], ":", color="#8A8A8A", label="soft margin loss")
    ax.set(title=name, xlabel=r"margin $y \theta$", xlim=(-4, 4), ylim=(0, 5))
    ax.legend(frameon=False)
    for at in (-4.0, 4.0):
        print(f"{name:8s} at margin {at:+.0f}: a label costs {-link.log_density(1.0, at):.4f}")

# %%
# The same but for the tails
# --------------------------
# On a scale of its own, probit is nearly logistic: :math:`\Phi(\theta / 1.702)` is nowhere more
# than 0.01 off. The difference is in the tails, where nothing is seen of it in the probabilities
# but all in their logarithms.

scaled = Probit(noise_std=1.702)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
theta = np.linspace(-10, 10, 801)
for name, link, style in [
    ("logistic", Logistic(), {"color": "#0072B2"}),
    ("probit, stretched by 1.702", scaled, {"color": "#D55E00", "linestyle": "--"}),
]:
    left.plot(theta, np.exp(link.log_density(1.0, theta)), label=name, **style)
    right.plot(theta, link.log_density(1.0, theta), label=name, **style)
left.set(xlabel=r"$\theta$", ylabel=r"$p(y = 1 \mid \theta)$", xlim=(-6, 6))
right.set(xlabel=r"$\theta$", ylabel=r"$\ln p(y = 1 \mid \theta)$", xlim=(-10, 10))
left.legend(frameon=False)
gap = np.exp(Logistic().log_density(1.0, theta)) - np.exp(scaled.log_density(1.0, theta))
print(f"the greatest difference of the probabilities is {np.max(np.abs(gap)):.4f}")

# %%
# A wrong label
# -------------
# Which tails are right matters where labels can be wrong. Sixty labels of a function that is a
# straight line, and one more, far out and on the wrong side. Under the logistic link it makes the
# boundary softer. Probit cannot live with such a label, and gives up far more of the others for it.
# Where wrong labels are to be expected, take the logistic link; where they are not, probit is
# faster with ``inference="ep"``, as all of its integrals are in closed form.

rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, 60)
y = np.where(rng.uniform(size=60) < 1 / (1 + np.exp(-3 * x)), 1, -1)
x_more, y_more = np.append(x, -7.0), np.append(y, 1)

grid = np.linspace(-8, 4, 300)[:, None]
figure, panels = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
for ax, (name, (link, colour)) in zip(panels, links.items(), strict=True):
    for rows, labels, style in [(x, y, "-"), (x_more, y_more, "--")]:
        model = GPClassifier(100.0 * Linear() + 100.0, link, inference="ep", optimizer=None)
        model.fit(rows[:, None], labels)
        text = "with the wrong label" if len(rows) > 60 else "without"
        ax.plot(grid, model.predict_proba(grid)[:, 1], style, color=colour, label=text)
        probability = model.predict_proba([[-1.5]])[0, 1]
        print(f"{name:8s} {text:20s} p(y = 1 | x = -1.5) = {probability:.3f}")
    ax.plot(x_more, 0.5 * (1 + y_more), "*", color="#222222", markersize=6)
    ax.set(title=name, xlabel="x", xlim=(-8, 4), ylim=(-0.05, 1.05))
    ax.legend(frameon=False, loc="center left")
_ = panels[0].set_ylabel("p(y = 1 | x)")

plt.show()
