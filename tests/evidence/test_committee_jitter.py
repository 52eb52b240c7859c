"""The jitter of a committee, of which one member alone needs any."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import means
from mercer.evidence import Data
from mercer.evidence.committee import CommitteeObjective
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian
from mercer.params import Parameter


def test_all_members_have_the_jitter_of_the_first_evaluation_in_it():
    rng = np.random.default_rng(4)
    X, Y = rng.uniform(-2.0, 2.0, (20, 1)), rng.normal(size=(20, 1))
    X[15:], Y[15:] = X[10:15], Y[10:15]
    data, parts = Data(X, Y, None, np.ones(1)), np.repeat([0, 1], 10)
    noise = Gaussian(Parameter(1e-30, fixed=True))
    objective = CommitteeObjective(2.0 * RBF(0.5), noise, means.Zero(), data, parts)
    first = objective.value(objective.theta)
    assert objective.jitter > 0
    assert first == pytest.approx(objective.value(objective.theta), rel=1e-12)
