"""The spread of latent values of labels that are calibrated."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference._calibration import Calibration, surest
from mercer.inference._columns import ArrayColumns
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.inference._expansion_spread import calibrated_spread
from mercer.inference.laplacian import solve
from mercer.likelihoods import Logistic
from mercer.priors import WeightDecay

RNG = np.random.default_rng(0)
PHI = RNG.normal(size=(30, 6))
LABELS = np.where(RNG.random(30) < 0.4, 1.0, -1.0)
WEIGHTS = RNG.integers(1, 4, 30).astype(float)


def variances(Phi, lam, weights=None):
    """Variances at the rows and a far point, of a calibration that decays leave uncertain."""
    one = np.ones((30, 1))
    problem = ExpansionProblem.of(ArrayColumns(Phi), "soft_margin", LABELS, H=one, weights=weights)
    found = solve(problem, WeightDecay, lam)
    own = Calibration(2.0, 0.1, (2.0, 0.1))
    spread = calibrated_spread(problem, found, Logistic(), WeightDecay, lam, own)
    return spread.var(np.hstack([Phi[:, found.indices], one]))


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_constants_that_a_free_one_takes_up_leave_as_much_uncertain(weights):
    """Functions that are nearly constant have the same error bars as what varies in them."""
    near = variances(PHI + 30.0, 1e-4, weights)
    np.testing.assert_allclose(near, variances(PHI, 1e-4, weights), rtol=1e-2)


def test_decays_that_all_but_vanish_have_one_limit():
    """That of a function with the variance that all labels could take away, at the rows."""
    found = [variances(PHI, lam) for lam in (1e-3, 1e-6, 1e-9)]
    np.testing.assert_allclose(found[2], found[1], rtol=1e-3)
    assert np.all(found[2] < surest(Logistic(), 30.0) ** 2 * 10.0)
