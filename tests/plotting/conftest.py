"""Fits to draw, without a display; no test leaves a figure behind."""

from __future__ import annotations

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import pandas as pd  # noqa: E402

from mercer import GPClassifier, GPRegressor  # noqa: E402
from mercer.kernels import RBF  # noqa: E402
from mercer.likelihoods import Poisson  # noqa: E402


@pytest.fixture(autouse=True)
def no_figures():
    plt.close("all")
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before, "a plot changed a setting of matplotlib's"
    plt.close("all")


@pytest.fixture
def ax():
    """Axes of a figure that pyplot does not know."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure()
    FigureCanvasAgg(figure)
    yield figure.subplots()
    figure.canvas.draw()
    assert plt.get_fignums() == [], "a figure was left in pyplot's registry"


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, -1] + 0.2 * rng.standard_normal(n)


@pytest.fixture(scope="session")
def one():
    X, y = data(40, 1)
    return GPRegressor().fit(X, y), X, y


@pytest.fixture(scope="session")
def two():
    X, y = data(50, 2)
    return GPRegressor().fit(X, y), X, y


@pytest.fixture(scope="session")
def frame():
    X, y = data(80, 4)
    X = pd.DataFrame(X, columns=["width", "height", "age", "mass"])
    y = pd.Series(y, name="strength")
    return GPRegressor().fit(X, y), X, y


@pytest.fixture(scope="session")
def outputs():
    X, y = data(40, 1)
    return GPRegressor().fit(X, np.column_stack([y, 10 + 0.5 * y])), X, y


@pytest.fixture(scope="session")
def classes():
    """A classifier with a search, and a kernel, for each of three classes."""
    X, y = data(40, 1)
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    return GPClassifier(multi_class="one_vs_rest").fit(X, labels), X


@pytest.fixture(scope="session")
def counts():
    """Counts, whose function is the logarithm of a rate."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, (40, 1)), axis=0)
    y = rng.poisson(np.exp(2.5 + 0.7 * np.sin(X[:, 0]))).astype(float)
    return GPRegressor(4.0 * RBF(1.5), Poisson(), optimizer=None).fit(X, y), X, y
