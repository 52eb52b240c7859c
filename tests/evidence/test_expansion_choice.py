"""Whether a path of penalties has ended before the noise was small enough."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mercer.evidence.expansion_choice import wants_less_noise
from mercer.evidence.expansion_targets import Chosen
from mercer.inference._expansion_path import Path
from mercer.inference._residual_noise import Noise
from mercer.likelihoods import Gaussian
from mercer.priors import Laplacian, WeightDecay


def told(values=(-9.0, -1.23, -1.0), at=2, noise=None, **changed):
    """Return what is said of a path of three penalties, of which one was taken."""
    path = Path(10.0 ** (-0.2 * np.arange(3)), np.array(values), np.zeros(3))
    now = Gaussian() if noise is None else noise
    targets = SimpleNamespace(noise=Noise(now, 1.0))
    options = {"prior_scale": 1.0, "prior": Laplacian, "n_penalties": 3} | changed
    chosen = Chosen(path.penalties[at], now, path=path)
    return wants_less_noise(targets, SimpleNamespace(**options), chosen)


def test_a_path_whose_last_step_gains_what_a_variance_too_large_does():
    assert told()  # 0.23 nats: half of the logarithm of a fifth of a decade


@pytest.mark.parametrize(
    "how",
    [
        {"values": (-9.0, -1.05, -1.0)},
        {"at": 1},
        {"n_penalties": 30},
        {"prior_scale": None},
        {"prior": WeightDecay},
        {"noise": Gaussian(0.1)},
    ],
)
def test_paths_that_end_where_they_should(how):
    assert not told(**how)
