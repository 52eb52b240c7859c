"""scikit-learn's kernels, converted and behind the adaptor."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as skl

from mercer.kernels import (
    RBF,
    Constant,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Product,
    RationalQuadratic,
    Scaled,
    SklearnKernel,
    from_sklearn,
)
from mercer.params import LogNormal, Parameter

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(7, 2)), rng.normal(size=(5, 2))
X1, Z1 = X[:, :1], Z[:, :1]
G = rng.normal(size=(7, 7))
G = G + G.T

# a scikit-learn kernel, the class it becomes, and for each component of the converted theta which
# component of scikit-learn's it is and what a unit of it counts there
CONVERTED = {
    "constant": (skl.ConstantKernel(2.5), Constant, [(0, 1)]),
    "rbf": (skl.RBF(0.7), RBF, [(0, 1)]),
    "rbf-ard": (skl.RBF([0.7, 1.9]), RBF, [(0, 1), (1, 1)]),
    "rbf-one": (skl.RBF([0.7]), RBF, [(0, 1)]),
    "matern-inf": (skl.Matern(0.7, nu=np.inf), RBF, [(0, 1)]),
    "matern12": (skl.Matern(0.7, nu=0.5), Matern, [(0, 1)]),
    "matern32": (skl.Matern([0.7, 1.9], nu=1.5), Matern, [(0, 1), (1, 1)]),
    "matern52": (skl.Matern([0.7, 1.9], nu=2.5), Matern, [(0, 1), (1, 1)]),
    "rational": (skl.RationalQuadratic(0.7, 1.3), RationalQuadratic, [(1, 1), (0, 1)]),
    "dot": (skl.DotProduct(0.7), Linear, [(0, 0.5)]),
    "product": (skl.RBF(0.7) * skl.DotProduct(0.6), Product, [(0, 1), (1, 0.5)]),
    "scaled": (2.0 * skl.RBF(0.7), Scaled, [(0, 1), (1, 1)]),
    "scaled-after": (skl.RBF(0.7) * 2.0, Scaled, [(1, 1), (0, 1)]),
    "scaled-twice": (2.0 * (3.0 * skl.RBF(0.7)), Scaled, [(0, 1), (1, 1), (2, 1)]),
    "fixed": (skl.ConstantKernel(2.0, "fixed") * skl.RBF([0.7, 1.9]), Scaled, [(0, 1), (1, 1)]),
    "power": ((2.0 * skl.RBF(0.7)) ** 1.5, None, [(0, 1), (1, 1)]),
    "sum": (
        skl.RationalQuadratic(0.7, 1.3) + 0.5 * skl.DotProduct(0.6) ** 2 + skl.Matern(0.7, nu=1.5),
        None,
        [(1, 1), (0, 1), (2, 1), (3, 0.5), (4, 1)],
    ),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_converted(name):
    k, cls, order = CONVERTED[name]
    ours, noise = from_sklearn(k)
    assert noise is None
    assert cls is None or type(ours) is cls
    np.testing.assert_allclose(ours(X), k(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours(X, Z), k(X, Z), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.diag(X), k.diag(X), rtol=1e-12)
    _, dK = k(X, eval_gradient=True)
    slopes = np.einsum("ij,ijk->k", G, dK)
    expected = [slopes[i] * unit for i, unit in order]
    np.testing.assert_allclose(ours.pullback(X, None, G).theta, expected, rtol=1e-11, atol=1e-11)
    assert ours.theta.size == len(order) == k.theta.size
    for (i, unit), bounds in zip(order, ours.bounds, strict=True):
        np.testing.assert_allclose(bounds * unit, k.bounds[i], rtol=1e-12)


@pytest.mark.parametrize("nu", [0.7, 2.0, 3.3])
def test_matern_of_any_order(nu):
    k = skl.Matern([0.7, 1.9], nu=nu)
    np.testing.assert_allclose(from_sklearn(k)[0](X), k(X), rtol=1e-12, atol=1e-12)


def test_exp_sine_squared_on_one_column():
    k = skl.ExpSineSquared(0.7, 1.3)
    ours, _ = from_sklearn(k)
    assert type(ours) is Periodic and from_sklearn(k, n_columns=1)[0] == ours
    np.testing.assert_allclose(ours(X1, Z1), k(X1, Z1), rtol=1e-12)
    slopes = np.einsum("ij,ijk->k", G, k(X1, eval_gradient=True)[1])
    np.testing.assert_allclose(ours.pullback(X1, None, G).theta, slopes, rtol=1e-10)


def test_exp_sine_squared_on_several_columns_is_kept_as_it_is():
    k = 2.0 * skl.ExpSineSquared(0.7, 1.3)
    ours, _ = from_sklearn(k, n_columns=2)
    assert not ours.is_mercer and isinstance(ours.kernel, SklearnKernel)
    np.testing.assert_allclose(ours(X, Z), k(X, Z), rtol=1e-13)
    circle = rng.normal(size=(40, 2))
    assert np.linalg.eigvalsh(ours(circle))[0] < -0.1  # indeed no covariance


# --- noise ----------------------------------------------------------------------------------------


def white(level=0.3, bounds=(0.01, 10.0)):
    return skl.WhiteKernel(level, bounds)


def test_noise_is_taken_out():
    kernel, noise = from_sklearn(skl.RBF(0.7) + white())
    assert type(kernel) is RBF
    assert noise.value == 0.3 and noise.bounds == (0.01, 10.0) and not noise.fixed
    assert from_sklearn(white() + skl.RBF(0.7))[0] == kernel
    _, held = from_sklearn(skl.RBF() + white(0.3, "fixed"))
    assert held.fixed and held.value == 0.3


def test_noise_under_a_constant():
    kernel, noise = from_sklearn(skl.ConstantKernel(2.0, (1.0, 4.0)) * (skl.RBF(0.7) + white()))
    assert isinstance(kernel, Scaled) and kernel.variance == 2.0
    np.testing.assert_allclose([noise.value, *noise.bounds], [0.6, 0.01, 40.0])
    _, noise = from_sklearn(skl.RBF() + white(0.3, "fixed") * skl.ConstantKernel(2.0, "fixed"))
    assert noise.fixed and noise.value == 0.6
    _, noise = from_sklearn(skl.RBF() + 2.0 * white(0.3, "fixed"))
    assert not noise.fixed and noise.value == 0.6


def test_noises_add():
    _, noise = from_sklearn(white() + skl.RBF() + white(0.5, "fixed"))
    np.testing.assert_allclose([noise.value, *noise.bounds], [0.8, 0.51, 10.5])
    kernel, noise = from_sklearn(white() + white())
    assert kernel == Constant(0.0) and noise.value == 0.6
    np.testing.assert_array_equal(kernel(X), 0.0)


def test_noise_that_is_none():
    for k in (
        white() * skl.RBF(),
        skl.RBF() * (skl.RBF() + white()),
        white() * white(),
        (skl.RBF() + white()) ** 2,
        skl.ConstantKernel(2.0) * ((skl.RBF() + white()) ** 2),
    ):
        with pytest.raises(ValueError, match="WhiteKernel stands in"):
            from_sklearn(k)


def test_what_cannot_be_converted():
    with pytest.raises(ValueError, match="list of kernels"):
        from_sklearn(skl.CompoundKernel([skl.RBF(), skl.RBF()]))
    for wrong in ("rbf", None, RBF(), 3.0):
        with pytest.raises(ValueError, match="takes a scikit-learn kernel"):
            from_sklearn(wrong)
        with pytest.raises(ValueError, match="takes one scikit-learn kernel"):
            SklearnKernel(wrong)


def test_bounds_of_zero_and_bounds_that_meet():
    kernel, _ = from_sklearn(skl.ConstantKernel(2.0, (0.0, 10.0)) + skl.RBF(1.0, (1.0, 1.0)))
    assert np.all(np.isfinite(kernel.bounds)) and kernel.theta.size == 1
    assert from_sklearn(skl.DotProduct(0.0))[0] == Linear(Parameter(0.0, bounds=(1e-10, 1e10)))


def test_every_kernel_of_scikit_learn():
    """Whatever it ships is converted, adapted or refused with a reason."""
    done = set()
    made = [k for k, _, _ in CONVERTED.values()]
    made += [white(), skl.ExpSineSquared(), skl.PairwiseKernel()]
    for k in made:
        stack = [k]
        while stack:
            node = stack.pop()
            done.add(type(node))
            stack += [v for v in node.get_params(deep=False).values() if isinstance(v, skl.Kernel)]
        assert isinstance(from_sklearn(k)[0], Kernel)
    shipped = {
        c
        for c in vars(skl).values()
        if isinstance(c, type) and issubclass(c, skl.Kernel) and c.__module__ == skl.__name__
    }
    assert shipped - done == {skl.Kernel, skl.KernelOperator, skl.CompoundKernel}


# --- the adaptor ----------------------------------------------------------------------------------


class Bent(skl.StationaryKernelMixin, skl.NormalizedKernelMixin, skl.Kernel):
    """A user's kernel: exp(-(|x-x'|/l)^a), with a vector of scales and two hyperparameters."""

    def __init__(self, scales=(1.0, 1.0), power=1.0, scales_bounds=(0.1, 10.0)):
        self.scales = scales
        self.power = power
        self.scales_bounds = scales_bounds

    @property
    def hyperparameter_power(self):
        return skl.Hyperparameter("power", "numeric", (0.5, 2.0))

    @property
    def hyperparameter_scales(self):
        return skl.Hyperparameter("scales", "numeric", self.scales_bounds, len(self.scales))

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        T = ((X[:, None] - Y[None]) / np.asarray(self.scales)) ** 2
        r = np.sqrt(T.sum(axis=2))
        K = np.exp(-(r**self.power))
        if not eval_gradient:
            return K
        logs = np.log(r, out=np.zeros_like(r), where=r > 0)
        power = -K * r**self.power * logs * self.power
        inner = np.divide(self.power * r**self.power, r**2, out=np.zeros_like(r), where=r > 0)
        scales = (K * inner)[:, :, None] * T
        parts = [power[:, :, None]]
        if not self.hyperparameter_scales.fixed:
            parts.append(scales)
        return K, np.concatenate(parts, axis=2)


class Bare(skl.Kernel):
    """A user's kernel without eval_gradient."""

    def __init__(self, gain=1.0, gain_bounds=(1e-3, 1e3)):
        self.gain = gain
        self.gain_bounds = gain_bounds

    @property
    def hyperparameter_gain(self):
        return skl.Hyperparameter("gain", "numeric", self.gain_bounds)

    def __call__(self, X, Y=None):
        return self.gain * np.inner(X, X if Y is None else Y) ** 2

    def diag(self, X):
        return self.gain * np.sum(X**2, axis=1) ** 2

    def is_stationary(self):
        return False


class Letters(skl.GenericKernelMixin, Bare):
    """Over words."""

    def __call__(self, X, Y=None):
        Y = X if Y is None else Y
        return self.gain * np.array([[len(set(a) & set(b)) for b in Y] for a in X], dtype=float)

    def diag(self, X):
        return self.gain * np.array([len(set(a)) for a in X], dtype=float)


class Cubed(skl.RBF):
    """Derived from a kernel that would be converted: what it overrides counts."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if eval_gradient:
            K, dK = super().__call__(X, Y, True)
            return K**3, 3.0 * (K**2)[:, :, None] * dK
        return super().__call__(X, Y) ** 3


ADAPTED = {
    "bent": Bent((0.7, 1.9), 1.3),
    "bent-fixed": Bent((0.7, 1.9), 1.3, "fixed"),
    "bare": Bare(0.7),
    "cubed": Cubed(0.7),
    **{
        metric: skl.PairwiseKernel(gamma=0.7, metric=metric)
        for metric in ("rbf", "laplacian", "linear", "poly", "sigmoid", "cosine")
    },
    "chi2": skl.PairwiseKernel(gamma=0.7, metric="chi2"),
    "pairwise-fixed": skl.PairwiseKernel(gamma=0.7, gamma_bounds="fixed"),
    "composed": 2.0 * Cubed([0.7, 1.9]) + Bare(0.5),
}


@pytest.mark.parametrize("name", ADAPTED)
def test_adapted(name):
    k = ADAPTED[name]
    A, B = (np.abs(X), np.abs(Z)) if name == "chi2" else (X, Z)
    ours, _ = from_sklearn(k)
    np.testing.assert_allclose(ours(A), k(A), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours(A, B), k(A, B), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.diag(A), k.diag(A), rtol=1e-12)
    np.testing.assert_allclose(np.sort(ours.theta), np.sort(k.theta))
    C = rng.normal(size=(7, 5))
    gradient = ours.pullback(A, B, C)
    step = 1e-5
    for i, e in enumerate(step * np.eye(ours.theta.size)):
        up, down = ours.with_theta(ours.theta + e), ours.with_theta(ours.theta - e)
        slope = np.sum(C * (up(A, B) - down(A, B))) / (2.0 * step)
        np.testing.assert_allclose(gradient.theta[i], slope, rtol=1e-6, atol=1e-7)
    moved = A.copy()
    moved[2, 1] += step
    slope = np.sum(C * (ours(moved, B) - ours(A, B))) / step
    np.testing.assert_allclose(gradient.X[2, 1], slope, rtol=1e-3, atol=1e-3)


def test_the_gradient_of_the_adaptor_is_the_kernels_own():
    k = Bent((0.7, 1.9), 1.3)
    slopes = np.einsum("ij,ijk->k", G, k(X, eval_gradient=True)[1])
    ours = SklearnKernel(k)
    np.testing.assert_allclose(ours.pullback(X, None, G).theta, slopes, rtol=1e-12)
    assert ours.parameter_names == ["power", "scales[0]", "scales[1]"]
    np.testing.assert_array_equal(ours.theta, k.theta)
    np.testing.assert_array_equal(ours.bounds, k.bounds)


def test_the_adaptor_copies_and_moves_on():
    k = Bent((0.7, 1.9), 1.3)
    ours = SklearnKernel(k)
    K = ours(X)
    k.power = 0.5
    ours.kernel.power = 0.5
    np.testing.assert_array_equal(ours(X), K)
    moved = ours.with_theta(ours.theta + 0.1)
    np.testing.assert_allclose(moved.kernel.theta, ours.theta + 0.1)
    np.testing.assert_allclose(moved.power, 1.3 * np.exp(0.1))
    np.testing.assert_array_equal(ours(X), K)


def test_the_adaptors_parameters_can_be_held_and_have_priors():
    prior = LogNormal(0.0, 1.0)
    ours = SklearnKernel(Bent((0.7, 1.9), 1.3)).with_parameters(
        power=Parameter(1.5, fixed=True), scales=Parameter([0.8, 2.0], prior=prior)
    )
    assert ours.parameter_names == ["scales[0]", "scales[1]"]
    np.testing.assert_allclose(ours(X), Bent((0.8, 2.0), 1.5)(X))
    slopes = np.einsum("ij,ijk->k", G, Bent((0.8, 2.0), 1.5)(X, eval_gradient=True)[1])
    np.testing.assert_allclose(ours.pullback(X, None, G).theta, slopes[1:], rtol=1e-12)
    assert ours.log_prior() != 0.0
    with pytest.raises(ValueError, match="no parameter"):
        ours.with_parameters(gamma=1.0)


def test_words_behind_the_adaptor():
    ours, _ = from_sklearn(Letters(0.5))
    words = ["abc", "bcd", "xyz"]
    assert not ours.is_numeric
    np.testing.assert_array_equal(ours(words), 0.5 * np.array([[3, 2, 0], [2, 3, 0], [0, 0, 3]]))
    gradient = ours.pullback(words, None, np.ones((3, 3)), inputs=False)
    np.testing.assert_allclose(gradient.theta, [6.5], rtol=1e-8)
    with pytest.raises(ValueError, match="no derivatives"):
        ours.pullback(words, None, np.ones((3, 3)))


def test_indefinite_metrics_are_no_covariances():
    assert not from_sklearn(skl.PairwiseKernel(metric="sigmoid"))[0].is_mercer
    assert not from_sklearn(skl.PairwiseKernel(metric="additive_chi2"))[0].is_mercer
    assert from_sklearn(skl.PairwiseKernel(metric="rbf"))[0].is_mercer
    assert not SklearnKernel(Bare(), is_mercer=False).is_mercer


def test_theta_that_is_no_logarithm():
    class Plain(Bare):
        @property
        def theta(self):
            return np.array([self.gain])

        @theta.setter
        def theta(self, theta):
            self.gain = theta[0]

    with pytest.raises(ValueError, match="not the logarithm"):
        SklearnKernel(Plain(0.7))


def manhattan(a, b):
    return float(np.exp(-np.sum(np.abs(a - b))))


def test_storage_of_the_adaptor():
    k = SklearnKernel(2.0 * skl.PairwiseKernel(0.7, (0.1, 3.0)) ** 2 + skl.RBF([1.0, 2.0], "fixed"))
    k = k.with_theta(k.theta + 0.3)
    again = Kernel.from_json(k.to_json())
    assert again == k
    np.testing.assert_array_equal(again(X), k(X))
    np.testing.assert_array_equal(again.bounds, k.bounds)
    metric = SklearnKernel(skl.PairwiseKernel(metric=manhattan))
    assert Kernel.from_json(metric.to_json(), objects={"manhattan": manhattan}) == metric
    with pytest.raises(ValueError, match="Bare is not one of scikit-learn's own"):
        SklearnKernel(Bare()).to_json()
    with pytest.raises(ValueError, match="has no kernel 'os'"):
        Kernel.from_json(metric.to_json().replace("PairwiseKernel", "os"), {"manhattan": manhattan})


def test_importing_kernels_leaves_scikit_learns_kernels_alone():
    code = "import mercer.kernels, sys; print('sklearn.gaussian_process' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
