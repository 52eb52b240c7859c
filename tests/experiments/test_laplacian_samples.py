"""Fig. 10 of BKM: the three processes, and what the caption says of them."""

from __future__ import annotations

import numpy as np

from mercer.experiments import Setting, Surface, experiments
from mercer.experiments.laplacian_samples import _curvature, _slope
from mercer.kernels import RBF, Linear

EXPERIMENT = experiments()["laplacian-samples"]


def test_what_the_caption_says_holds():
    outcome = EXPERIMENT.run(Setting())
    assert [claim.holds for claim in outcome.claims] == [True, True, True]
    assert [figure.name for figure in outcome.figures] == ["Gaussian", "exponential", "tanh"]
    for figure in outcome.figures:
        assert isinstance(figure, Surface) and figure.points.shape == (400, 2)
        assert np.all((figure.points >= 0.0) & (figure.points <= 1.0))
    again = EXPERIMENT.run(Setting())
    assert again.tables == outcome.tables


def test_quickly():
    heard = []
    outcome = EXPERIMENT.run(Setting(quick=True, tell=lambda *told: heard.append(told)))
    assert outcome.figures[0].values.shape == (21, 21)
    assert heard[-1] == (3, 3, "")


def test_curvature_of_one_section():
    """A Gaussian bump c exp(-r^2/2): its second derivative in the first column, at fine steps."""
    centre = np.array([[0.4, 0.7]])
    X = 0.1 + 0.8 * np.random.default_rng(2).uniform(size=(1000, 2))
    t = X[:, 0] - 0.4
    f = np.exp(-0.5 * np.sum((X - centre) ** 2, axis=1))
    want = np.sqrt(np.sum(((t**2 - 1.0) * f) ** 2) / np.sum(f**2))
    np.testing.assert_allclose(_curvature(RBF(), centre, 1e-3), want, rtol=1e-5)


def test_slope_of_a_plane_is_the_same_everywhere():
    centres = np.array([[0.3, 0.1], [0.9, 0.5]])
    np.testing.assert_allclose(
        _slope(Linear(), centres, 0.0), _slope(Linear(), centres, 0.75), rtol=1e-9
    )
