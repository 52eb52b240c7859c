"""Functions drawn from expansions: the formula, moments, and kernels that are no covariances."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import RBF, Callable, Exponential, Tanh
from mercer.priors import FeatureSelection, Laplacian, WeightDecay, sample_functions

RNG = np.random.default_rng(0)
CENTRES = RNG.uniform(size=(40, 2))
X = RNG.uniform(size=(7, 2))
KERNELS = {"gaussian": RBF(0.4), "exponential": Exponential(0.3), "tanh": Tanh(10.0, 1.0)}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_a_function_is_a_sum_of_sections(kernel):
    f = sample_functions(Laplacian(0.7), kernel, CENTRES, X, 3, np.random.default_rng(5))
    coef = np.random.default_rng(5).laplace(0.0, 0.7, (40, 3))
    want = [[sum(coef[i, s] * kernel(CENTRES[[i]], x[None])[0, 0] for i in range(40))
             for s in range(3)] for x in X]  # fmt: skip
    np.testing.assert_allclose(f, want, rtol=1e-10, atol=1e-12)


def test_one_function_at_several_sets_of_points():
    prior = Laplacian()
    whole = sample_functions(prior, Tanh(3.0), CENTRES, X, 2, 9)
    np.testing.assert_allclose(
        whole[2:4], sample_functions(prior, Tanh(3.0), CENTRES, X[2:4], 2, 9)
    )


@pytest.mark.parametrize("prior", [Laplacian(0.6), WeightDecay(1.4)], ids=repr)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_moments(prior, kernel):
    """Mean 0 and covariance v K K', K the sections at X, v the coefficients' variance."""
    n = 40_000
    f = sample_functions(prior, kernel, CENTRES, X, n, 1)
    K = kernel(X, CENTRES)
    want = prior.variance * K @ K.T
    size = np.sqrt(np.diag(want))
    # standard errors: 1/sqrt(n) = 0.5% of the standard deviation for the mean, and at most
    # sqrt((2 + kurtosis)/n), here below 1%, of the variances for the covariance
    assert np.all(np.abs(np.mean(f, axis=1)) < 0.02 * size)
    np.testing.assert_allclose(f @ f.T / n / np.outer(size, size), want / np.outer(size, size),
                               rtol=0.0, atol=0.04)  # fmt: skip


def test_no_covariance_is_needed():
    K = Tanh(10.0, 1.0)(CENTRES)
    assert np.linalg.eigvalsh(K)[0] < -1e-3  # no Gaussian process has it
    assert np.all(np.isfinite(sample_functions(Laplacian(), Tanh(10.0, 1.0), CENTRES, X)))


def test_words():
    def shared(a, b):
        return len(set(a) & set(b))

    f = sample_functions(Laplacian(), Callable(shared), ["cat", "dog"], ["act", "cat", "xyz"], 2, 3)
    assert f.shape == (3, 2)
    np.testing.assert_array_equal(f[0], f[1])
    np.testing.assert_array_equal(f[2], 0.0)


def test_refusals():
    with pytest.raises(ValueError, match="improper"):
        sample_functions(FeatureSelection(), RBF(), CENTRES, X)
    with pytest.raises(ValueError, match=r"one of mercer\.priors"):
        sample_functions("laplacian", RBF(), CENTRES, X)
    with pytest.raises(ValueError, match=r"one of mercer\.kernels"):
        sample_functions(Laplacian(), np.minimum, CENTRES, X)
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match="n_samples"):
            sample_functions(Laplacian(), RBF(), CENTRES, X, wrong)
    with pytest.raises(ValueError, match="at least one row"):
        sample_functions(Laplacian(), RBF(), CENTRES[:0], X)
    with pytest.raises(ValueError, match="centres"):
        sample_functions(Laplacian(), RBF(), [1.0, 2.0], X)
