"""plot_eigenfunctions and plot_eigenvalues."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from mercer.kernels import RBF, Callable, Exponential, Tanh, eigensystem
from mercer.plotting import plot_eigenfunctions, plot_eigenvalues

from . import look

NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


def test_functions_in_one_picture(ax):
    assert plot_eigenfunctions(RBF(1.0), (-5, 5), n=4, ax=ax) is ax
    values, functions = eigensystem(RBF(1.0), 5 * NODES[:, None], WEIGHTS / 2, n=4)
    lines = [one for one in ax.lines if not one.get_label().startswith("_")]
    assert len(lines) == 4
    for i, one in enumerate(lines):
        x = one.get_xdata()
        assert (x[0], x[-1]) == (-5, 5)
        np.testing.assert_allclose(one.get_ydata(), functions(x[:, None])[:, i], atol=1e-9)
        assert f"{values[i]:.3g}" in one.get_label()


def test_functions_in_panels():
    figure, panels = plt.subplots(2, 2)
    sample = np.random.default_rng(0).normal(size=(60, 1))
    weights = np.linspace(1, 2, 60)
    drawn = plot_eigenfunctions(Exponential(1.0), sample, n=4, weights=weights, ax=panels)
    assert list(drawn) == list(panels.flat)
    _, functions = eigensystem(Exponential(1.0), sample, weights, n=4)
    for i, panel in enumerate(drawn):
        x, phi = panel.lines[-1].get_data()
        np.testing.assert_allclose(phi, functions(x[:, None])[:, i], atol=1e-9)
        assert panel.get_title().startswith(rf"$\lambda_{{{i + 1}}}$")
    assert plt.get_fignums() == [figure.number]


def test_values(ax):
    assert plot_eigenvalues(RBF(1.0), (-5, 5), n=12, ax=ax) is ax
    wanted = eigensystem(RBF(1.0), 5 * NODES[:, None], WEIGHTS / 2, n=12).values
    (label,) = look.labels(ax)
    at = look.points(ax, label)
    np.testing.assert_allclose(at, np.column_stack([np.arange(1, 13), wanted]), rtol=1e-9)
    assert ax.get_yscale() == "log"
    held = int(np.argmax(np.cumsum(wanted) >= 0.99)) + 1
    assert label == f"the first {held}: 99% of the variance"
    faces = next(c for c in ax.collections if c.get_label() == label).get_facecolors()
    assert np.sum(np.any(faces[:, :3] < 1, axis=1)) == held


def test_values_that_do_not_reach_and_those_that_vanish(ax):
    plot_eigenvalues(Exponential(0.1), (-5, 5), n=5, ax=ax)
    assert look.labels(ax)[0].startswith("all 5: ")
    ax.clear()
    plot_eigenvalues(RBF(50.0), (-1, 1), n=20, label="flat", ax=ax)
    (label,) = look.labels(ax)
    assert label.startswith("flat: the first 1:")
    assert len(look.points(ax, label)) < 20


def test_values_on_many_columns_and_objects(ax):
    X = np.random.default_rng(0).normal(size=(40, 3))
    plot_eigenvalues(3.0 * RBF(1.0), X, n=40, share=0.5, weights=np.full(40, 2.0), ax=ax)
    (label,) = look.labels(ax)
    # the eigenvalues add up to the mean of k(x, x), times the mass of the measure
    values = look.points(ax, label)[:, 1]
    assert np.sum(values) == pytest.approx(3.0 * 80, rel=1e-6)
    held = int(np.argmax(np.cumsum(values) >= 0.5 * 240)) + 1
    assert label == f"the first {held}: 50% of the variance"
    ax.clear()

    def shared(a, b):
        return len(set(a) & set(b))

    plot_eigenvalues(Callable(shared), ["cat", "act", "dog"], n=3, ax=ax)
    assert len(look.points(ax, look.labels(ax)[0])) == 2


def test_no_more_than_there_are_rows(ax):
    X = np.arange(5.0)[:, None]
    plot_eigenvalues(RBF(1.0), X, ax=ax)
    assert len(look.points(ax, look.labels(ax)[0])) == 5
    ax.clear()
    plot_eigenfunctions(RBF(1.0), X, weights=[1.0, 0.0, 1.0, 2.0, 1.0], ax=ax)
    assert len(look.labels(ax)) == 4


def test_a_kernel_that_is_no_covariance(ax):
    X = np.random.default_rng(0).normal(size=(60, 2))
    plot_eigenvalues(Tanh(1.0, -2.0), X, ax=ax)
    (label,) = look.labels(ax)
    assert label == "those above 0; the kernel is no covariance"  # there is no variance to share
    values = eigensystem(Tanh(1.0, -2.0), X, n=20).values
    np.testing.assert_allclose(look.points(ax, label)[:, 1], values[values > 0])


def test_scikit_learns_kernels(ax):
    plot_eigenvalues(sk.RBF(1.0), (-5, 5), ax=ax)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: plot_eigenfunctions(RBF(1.0), np.ones((5, 2))), "over one column of numbers"),
        (lambda: plot_eigenfunctions("rbf", (0, 1)), "a kernel is wanted"),
        (lambda: plot_eigenfunctions(RBF(1.0), (0, 1), n=201), "from 1 to 200"),
        (lambda: plot_eigenvalues(RBF(1.0), (1, 1)), "two ends"),
        (lambda: plot_eigenvalues(RBF(1.0), (0, 1), weights=[1.0]), "leave weights out"),
        (lambda: plot_eigenvalues(RBF(1.0), (0, 1), share=1.0), "share must lie"),
    ],
)
def test_wrong_use(call, text):
    with pytest.raises(ValueError, match=text):
        call()
    assert plt.get_fignums() == []


def test_the_number_of_panels():
    figure, panels = plt.subplots(1, 3)
    with pytest.raises(ValueError, match="ax must be 2 axes"):
        plot_eigenfunctions(RBF(1.0), (0, 1), n=2, ax=panels)
    plt.close(figure)
