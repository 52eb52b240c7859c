"""plot_conditional, on the numbers of (BKM Fig. 4)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import norm

from mercer import GPRegressor
from mercer.kernels import RBF
from mercer.plotting import plot_conditional

from . import look

K = np.array([[1.0, 0.75], [0.75, 0.75]])


def test_figure_4(ax):
    joint, side = plot_conditional(K, [1.0, -2.0], ax=ax)
    assert joint is ax
    density, y2 = look.line(side, "p($y_2$)")
    np.testing.assert_allclose(density, norm.pdf(y2, 0, np.sqrt(0.75)), atol=1e-12)
    # the paper: the variance becomes 3/16, whatever was observed
    for given, mean in [(1, 0.75), (-2, -1.5)]:
        density, y2 = look.line(side, f"p($y_2$ | $y_1$ = {given})")
        np.testing.assert_allclose(density, norm.pdf(y2, mean, np.sqrt(3 / 16)), atol=1e-12)
    assert (joint.get_xlabel(), joint.get_ylabel()) == ("$y_1$", "$y_2$")
    assert joint.get_ylim() == side.get_ylim()


def test_contours_hold_what_they_say(ax):
    joint, _ = plot_conditional(K, 0.0, ax=ax)
    draws = np.random.default_rng(0).multivariate_normal([0, 0], K, 20_000)
    lines = next(c for c in joint.collections if hasattr(c, "levels") and not c.filled)

    def distance(points):
        return np.einsum("ni,ij,nj->n", points, np.linalg.inv(K), points)

    for path, share in zip(lines.get_paths(), [0.5, 0.9, 0.99], strict=True):
        level = np.median(distance(path.vertices))
        np.testing.assert_allclose(distance(path.vertices), level, rtol=0.02)
        assert np.mean(distance(draws) < level) == pytest.approx(share, abs=0.01)


def test_a_pair_among_several(ax):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    S, m = A @ A.T, rng.normal(size=4)
    _, side = plot_conditional(S, 0.3, m, variables=(3, 1), names=("a", "b"), ax=ax)
    density, b = look.line(side, "p(b | a = 0.3)")
    mean = m[1] + S[1, 3] / S[3, 3] * (0.3 - m[3])
    std = np.sqrt(S[1, 1] - S[1, 3] ** 2 / S[3, 3])
    np.testing.assert_allclose(density, norm.pdf(b, mean, std), atol=1e-12)


def test_two_axes_and_free_standing_ones():
    figure, pair = plt.subplots(1, 2)
    assert list(plot_conditional(K, 1.0, ax=pair)) == list(pair)
    free = figure.add_axes((0.1, 0.1, 0.3, 0.3))
    joint, side = plot_conditional(K, 1.0, ax=free)
    assert joint is free
    assert side in free.child_axes
    figure.canvas.draw()


def test_new_axes():
    joint, side = plot_conditional(K, 1.0)
    assert joint.figure is side.figure
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([[1.0, 2.0]], 0.0), "symmetric"),
        (([[1.0, 0.5], [0.2, 1.0]], 0.0), "symmetric"),
        (([[1.0, 1.0], [1.0, 1.0]], 0.0), "no joint density"),
        (([[1.0, 2.0], [2.0, 1.0]], 0.0), "no joint density"),
        (([[0.0, 0.0], [0.0, 1.0]], 0.0), "no joint density"),
        ((K, np.nan), "finite"),
        ((K, "high"), "given must be one or more finite numbers; got 'high'"),
        ((K, 0.0, ["high", "low"]), "mean must be 2 numbers"),
        ((GPRegressor(), 0.0), r"cov must be .*predict\(X, return_cov=True\); got GPRegressor"),
        ((RBF(1.0), 0.0), r"cov must be a covariance matrix .*kernel\(X\)"),
        ((K, 0.0, [1.0]), "mean must have shape"),
    ],
)
def test_wrong_use(arguments, text):
    with pytest.raises(ValueError, match=text):
        plot_conditional(*arguments)
    with pytest.raises(ValueError, match="two different numbers"):
        plot_conditional(K, 0.0, variables=(0, 2))
    assert plt.get_fignums() == []
