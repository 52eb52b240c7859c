"""Rows left out where other sites leave no Gaussian, and where one of them is all that is known."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.inference._sparse_latent import without_own_site
from mercer.inference._sparse_sites import SparseSites

from . import sparse_latent_cases as cases
from .latent import make


@pytest.mark.parametrize("kind", ["sor", "dtc", "fitc"])
def test_without_a_row_that_holds_negative_sites_the_prior_is_all_that_is_known(kind):
    p = make("student", 2, kernel=cases.ROUGH, mean=True)
    p.X[1] = p.X[0] + 0.01
    q = cases.sparse(p, kind, Z=p.X[:1])
    prior = q.prior()
    sites = SparseSites(prior, np.array([-1.5, 10.0]) / prior.variances)
    alpha = sites.increment(np.array([0.3, 2.0]))[0]
    left = without_own_site(q, sites, alpha)
    kept = np.sum(prior.V[1] ** 2) if kind == "sor" else 1.7
    assert left.variance[1] == pytest.approx(kept, rel=1e-12)
    assert left.mean[1] == q.mean[1]
    assert left.variance[0] < kept and left.mean[0] != q.mean[0]


@pytest.mark.parametrize("kind", ["dtc", "fitc"])
def test_a_row_that_is_all_that_is_known_leaves_no_more_than_the_prior(kind):
    p = make("logistic", 9, kernel=cases.ROUGH)
    q = cases.sparse(p, kind, Z=p.X[2:3])
    prior = q.prior()
    for precision in 10.0 ** np.arange(13, 19, 0.25):
        S = np.where(np.arange(9) == 2, precision, 0.0)
        sites = SparseSites(prior, S)
        left = without_own_site(q, sites, sites.increment(S)[0])
        assert np.all((left.variance > 0) & (left.variance <= 1.7 * (1 + 1e-12)))
