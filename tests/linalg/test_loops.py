"""The compiled loops against their NumPy twins, and these against formulas."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest

from mercer.linalg import PROFILES, _twins, loops

compiled = pytest.importorskip("mercer.linalg._compiled")
elementary = pytest.importorskip("mercer.linalg._elementary")

LOOPS = [name for name, f in vars(_twins).items() if inspect.isfunction(f) and name[0] != "_"]
VALUES = [name for name in LOOPS if name.startswith("value_")]
PULLS = [
    name for name in LOOPS if name.startswith("pull_") and name[5:] not in ("scales", "points")
]


def arguments(name):
    """Every combination of further arguments of a profile."""
    return [(alpha,) for alpha in (1e-3, 0.3, 1.0, 7.3, 1e3, 1e7)] if "rational" in name else [()]


def distances(rng):
    """Squared distances of all sizes, 0 among them, and sizes at which vectors have a remainder."""
    spread = 10.0 ** rng.uniform(-18, 4, 1001)
    return np.concatenate([[0.0, 5e-324, 1e-300, 1e-16, 1.0, 1e8, 1e300], spread])


def test_each_loop_has_a_twin_and_a_test():
    written = {
        name
        for name, f in vars(compiled).items()
        if hasattr(f, "py_func") and not name.startswith("_")
    }
    assert written == set(LOOPS)
    matrices = {"squared_distances", "pull_scales", "pull_points", "transpose", "weigh", "value"}
    matrices |= {"nearest_to_zero", "mirror", "weigh_both"}
    assert matrices | set(VALUES) | set(PULLS) == set(LOOPS)
    for name in LOOPS:
        assert list(inspect.signature(getattr(compiled, name).py_func).parameters) == list(
            inspect.signature(getattr(_twins, name)).parameters
        )


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    s = distances(np.random.default_rng(0))
    for extra in arguments(name):
        ours, twin = s.copy(), s.copy()
        getattr(compiled, name)(ours, *extra)
        getattr(_twins, name)(twin, *extra)
        # k = exp(-e): its relative error is that of e, and e up to 708 is rounded to 1e-13
        exponent = -np.log(np.maximum(twin, 1e-308))
        assert np.all(np.abs(ours - twin) <= 4e-16 * (2.0 + exponent) * twin)
        np.testing.assert_allclose(ours, twin, rtol=0.0, atol=1e-15)


def plain_values(name, shape, A, Bt):
    """The profile of all squared distances, each written out."""
    s = np.sum((A.T[:, :, None] - Bt[:, None, :]) ** 2, axis=0)
    return {
        "rbf": np.exp(-s / 2),
        "exponential": np.exp(-np.sqrt(s)),
        "matern32": (1 + np.sqrt(3 * s)) * np.exp(-np.sqrt(3 * s)),
        "matern52": (1 + np.sqrt(5 * s) + 5 * s / 3) * np.exp(-np.sqrt(5 * s)),
        "rational": (1 + s / (2 * shape)) ** -shape,
    }[name]


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("d", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("m", [0, 1, 384, 777])
def test_weigh_both_multiplies_from_either_side_by_values_and_squares(name, d, m):
    rng = np.random.default_rng(m + d)
    A, Bt = rng.normal(size=(5, d)), rng.normal(size=(d, m))
    U, Vt = rng.normal(size=(5, 3)), rng.normal(size=(3, m))
    k, far = plain_values(name, 0.7, A, Bt), 1e75
    given = (PROFILES.index(name), 0.7, A, Bt, U, Vt)
    for module in (compiled, _twins):
        out, back = np.full((5, 3), np.nan), np.full((3, m), np.nan)
        assert not module.weigh_both(*given, False, out, back, far)
        np.testing.assert_allclose(out, k @ Vt.T, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(back, U.T @ k, rtol=1e-13, atol=1e-13)
        assert not module.weigh_both(*given, True, out, back, far)
        np.testing.assert_allclose(out[:, :2], k @ Vt[:2].T, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(out[:, 2], k**2 @ Vt[2], rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(back[2], U[:, 2] @ k**2, rtol=1e-13, atol=1e-13)
        assert module.weigh_both(*given, True, out, back, -1.0) == (d * (5 + m) > 0)


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("d", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("m", [0, 1, 384, 777])
def test_weigh_is_the_profile_of_the_distances_times_the_weights(name, d, m):
    rng = np.random.default_rng(m + d)
    A, Bt, Vt = rng.normal(size=(5, d)), rng.normal(size=(d, m)), rng.normal(size=(2, m))
    Bt[:, m // 2 : m // 2 + 1] = A[:1].T  # coincident points
    profile, shape = PROFILES.index(name), 0.7
    extra = (shape,) if name == "rational" else ()
    k = plain_values(name, shape, A, Bt)
    for module in (compiled, _twins):
        out = np.full((5, 2), np.nan)
        assert not module.weigh(profile, shape, A, Bt, Vt, out, 1e75)
        np.testing.assert_allclose(out, k @ Vt.T, rtol=1e-13, atol=1e-13)
        values = np.linspace(0.0, 9.0, 37)
        expected = values.copy()
        module.value(profile, shape, values)
        getattr(module, f"value_{name}")(expected, *extra)
        np.testing.assert_array_equal(values, expected)


def test_weigh_tells_whether_a_point_is_far():
    A, Bt, Vt, out = np.ones((1, 2)), np.ones((2, 3)), np.ones((1, 3)), np.empty((1, 1))
    for module in (compiled, _twins):
        assert not module.weigh(0, 0.0, A, Bt, Vt, out, 1.0)
        assert module.weigh(0, 0.0, 2 * A, Bt, Vt, out, 1.0)
        assert module.weigh(0, 0.0, A, -2 * Bt, Vt, out, 1.0)


@pytest.mark.parametrize("n", [0, 1, 2, 19])
def test_mirror(n):
    upper = np.triu(np.random.default_rng(0).normal(size=(n, n)))
    for module in (compiled, _twins):
        A = upper + np.tril(np.full((n, n), np.nan), -1)
        module.mirror(A)
        np.testing.assert_array_equal(A, upper + np.triu(upper, 1).T)


def test_nearest_to_zero():
    A = np.array([[3.0, -1e-300, np.inf], [-2.0, 1e-299, -1e20], [2.0, -0.5, 1e300]])
    A.flags.writeable = False
    for module in (compiled, _twins):
        out = np.empty(3)
        module.nearest_to_zero(A, out)
        np.testing.assert_array_equal(out, [-2.0, -1e-300, -1e20])


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (8, 16), (13, 21)])
def test_transpose(shape):
    A = np.random.default_rng(0).normal(size=shape)
    for module in (compiled, _twins):
        out = np.empty(shape[::-1])
        module.transpose(A, out)
        np.testing.assert_array_equal(out, A.T)


@pytest.mark.parametrize("name", PULLS)
def test_pulls(name):
    rng = np.random.default_rng(1)
    s = distances(rng)
    G = rng.normal(size=s.size)
    for extra in arguments(name):
        ours, twin = s.copy(), s.copy()
        sums = getattr(compiled, name)(ours, G, *extra)
        expected = getattr(_twins, name)(twin, G, *extra)
        size = np.abs(G).sum()
        np.testing.assert_allclose(sums, expected, rtol=1e-13, atol=1e-14 * size * (1 + s.size))
        np.testing.assert_allclose(ours, twin, rtol=2e-13, atol=1e-300)


@pytest.mark.parametrize("name", PULLS)
def test_pulls_in_the_range_that_matters_to_14_digits(name):
    rng = np.random.default_rng(2)
    s = rng.uniform(0.0, 10.0, 500)
    G = rng.normal(size=500)
    for extra in arguments(name):
        ours, twin = s.copy(), s.copy()
        sums = getattr(compiled, name)(ours, G, *extra)
        expected = getattr(_twins, name)(twin, G, *extra)
        np.testing.assert_allclose(ours, twin, rtol=1e-14)
        # a third sum, in alpha, is a difference that almost cancels where alpha is large
        np.testing.assert_allclose(sums[:2], expected[:2], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(sums[2:], expected[2:], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PULLS)
def test_pulls_are_the_slopes_of_the_values(name):
    value, pull = getattr(_twins, name.replace("pull", "value")), getattr(_twins, name)
    s = np.linspace(0.1, 5.0, 40)
    for extra in ((0.7,), (2.3,)) if "rational" in name else ((),):
        up, down, k = s + 1e-6, s - 1e-6, s.copy()
        for array in (up, down, k):
            value(array, *extra)
        W = s.copy()
        inner, outer, *_ = pull(W, np.ones(40), *extra)
        np.testing.assert_allclose(W, (up - down) / 2e-6, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(inner, k.sum())
        np.testing.assert_allclose(outer, np.sum(W * s))


def test_logarithms():
    """Held where a plain log(1 + v) would fail: for the smallest v and across powers of 2."""
    v = np.concatenate(
        [
            10.0 ** np.random.default_rng(3).uniform(-300, 300, 2000),
            np.ldexp(1.0, np.arange(1, 60)) - 1.0,
            np.sqrt(2.0) * np.ldexp(1.0, np.arange(0, 60)) - 1.0,
            [0.0, 2.0**-53, 2.0**-52, 1e-8],
        ]
    )
    ours = np.array([compiled._log1p(x) for x in v])
    np.testing.assert_allclose(ours, np.log1p(v), rtol=5e-16)
    small = [1.0, 1.0 - 2.0**-53, np.finfo(float).tiny]
    positive = np.concatenate([v[v > 0], 1.0 / (1.0 + v), small])
    ours = np.array([elementary.log(x) for x in positive])
    np.testing.assert_allclose(ours, np.log(positive), rtol=5e-16)
    assert np.all(np.isnan([elementary.log(np.nan), elementary.log(np.inf)]))
    x = -np.concatenate([10.0 ** np.random.default_rng(4).uniform(-300, 2.8, 2000), [0.0, 708.0]])
    np.testing.assert_allclose([compiled._exp(t) for t in x], np.exp(x), rtol=5e-16)
    assert compiled._exp(-1e4) == compiled._exp(-708.0) > 0.0


@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1), (3, 5, 2), (4, 4, 4), (7, 6, 33), (9, 17, 71), (5, 400, 8), (2, 770, 13)],
)
def test_matrices(shape):
    n, m, d = shape
    rng = np.random.default_rng(d)
    A, Bt, W = rng.normal(size=(n, d)), rng.normal(size=(d, m)), rng.normal(size=(n, m))
    Bt[:, 0] = A[0]
    results = []
    for module in (compiled, _twins):
        s, scales = np.full((n, m), np.nan), np.full(d, np.nan)
        dA, dBt = np.full((n, d), np.nan), np.full((d, m), np.nan)
        module.squared_distances(A, Bt, s, np.inf)
        module.pull_scales(A, Bt, W, scales)
        module.pull_points(A, Bt, W, dA, dBt)
        results.append((s, scales, dA, dBt))
    for ours, twin in zip(*results, strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-13, atol=1e-12)
    assert results[0][0][0, 0] == 0.0
    difference = A[:, :, None] - Bt[None]
    np.testing.assert_allclose(results[1][0], np.sum(difference**2, axis=1), rtol=1e-13)
    expected = np.einsum("nm,ndm->d", W, difference**2)
    np.testing.assert_allclose(results[1][1], expected, rtol=1e-12, atol=1e-12)
    expected = 2.0 * np.einsum("nm,ndm->nd", W, difference)
    np.testing.assert_allclose(results[1][2], expected, rtol=1e-12, atol=1e-12)
    expected = -2.0 * np.einsum("nm,ndm->dm", W, difference)
    np.testing.assert_allclose(results[1][3], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("module", [compiled, _twins])
def test_distances_tell_whether_a_point_is_far(module):
    out = np.empty((3, 4))
    for x in (0.0, 1e74, 1e76, -1e76, 1e308, np.inf):
        for where in (0, 1):
            points = [np.ones((3, 2)), np.ones((2, 4))]
            points[where][-1, -1] = x
            assert module.squared_distances(*points, out, 1e75) is (abs(x) > 1e75)


def test_the_compiled_loops_are_chosen():
    assert loops() is compiled


def test_without_numba_the_twins_run_with_one_warning():
    code = """
import sys, warnings
sys.modules["numba"] = None
import numpy as np
from mercer.kernels import RBF
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    K = RBF()(np.array([[0.0], [1.0]]))
    RBF().pullback(np.zeros((2, 1)), None, np.ones((2, 2)))
print(round(float(K[0, 1]), 6), [w.category.__name__ for w in caught])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.606531 ['FallbackWarning']"


def test_where_numba_can_cache_nothing_the_twins_run_and_the_warning_names_the_cure():
    code = """
import sys, warnings
import numba.core.caching
# what a folder that cannot be written to, and no home either, come to
for locators in vars(numba.core.caching).values():
    if isinstance(locators, type) and hasattr(locators, "_locator_classes"):
        locators._locator_classes = []
import numpy as np
from mercer.kernels import RBF
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    K = RBF()(np.array([[0.0], [1.0]]))
print(round(float(K[0, 1]), 6), [w.category.__name__ for w in caught])
print("no locator" in str(caught[0].message), "NUMBA_CACHE_DIR" in str(caught[0].message))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["0.606531 ['FallbackWarning']", "True True"]
