"""PIC: new points that belong to blocks of training rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer import load
from mercer.inference import approximation, exact
from mercer.inference._sparse_predictive import predictive
from mercer.inference.sparse import SparseProblem
from mercer.kernels import RBF, Callable
from mercer.means import Zero
from mercer.posterior import BlockPredictive, TrainingBlocks

from ..inference.sparse_dense import (
    MEANS,
    SCALE,
    exact_problem,
    input_differences,
    make,
    predict,
    same,
)

RNG = np.random.default_rng(6)
X_NEW, GROUPS = RNG.normal(size=(9, 2)), RNG.integers(0, 6, 9)


def fit(*args, **kwargs):
    p, mean = make("pic", *args, **kwargs)
    return p, mean, predictive(p, mean, SCALE)[0]


def clusters(p):
    """Return the problem with blocks that lie together in space."""
    order = np.argsort(p.X[:, 0])
    rows = {f: getattr(p, f)[order] for f in ("X", "Y", "noise")}
    return replace(p, **rows, groups=np.repeat(np.arange(5), 8))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", MEANS)
def test_pic_is_the_big_form(mean, weighted):
    p, function, made = fit(mean, weighted)
    assert isinstance(made, BlockPredictive)
    mu, cov = predict(p, function, X_NEW, groups=GROUPS)
    here = made.at(GROUPS)
    np.testing.assert_allclose(here.mean(X_NEW), mu, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(here.cov(X_NEW), cov, rtol=1e-7, atol=1e-9)
    both = here.mean_and_var(X_NEW)
    np.testing.assert_allclose(both[0], mu, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(both[1], np.einsum("iip->ip", cov), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(here.var(X_NEW), both[1], rtol=1e-12)


@pytest.mark.parametrize("mean", ["zero", "estimated", "integrated"])
def test_one_block_is_the_exact_process(mean):
    p, function = make("pic", mean, True)
    made = predictive(replace(p, groups=np.zeros(40, int)), function, SCALE)[0]
    truth = exact.posterior(exact_problem(p), function, SCALE)[0]
    np.testing.assert_allclose(made.mean(X_NEW), truth.mean(X_NEW), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(made.cov(X_NEW), truth.cov(X_NEW), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("mean", ["zero", "estimated", "integrated"])
def test_rows_as_inducing_inputs_give_the_exact_process(mean):
    p, function = make("pic", mean, True, kernel=1.3 * RBF([0.3, 0.4]))
    made = predictive(replace(p, Z=p.X), function, SCALE)[0]
    truth = exact.posterior(exact_problem(p), function, SCALE)[0]
    np.testing.assert_allclose(made.mean(X_NEW), truth.mean(X_NEW), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(made.var(X_NEW), truth.var(X_NEW), rtol=1e-6, atol=1e-7)
    # new points of two blocks have nothing in common but the inducing variables
    here, together = made.at(GROUPS).cov(X_NEW), same(GROUPS, GROUPS)
    np.testing.assert_allclose(here[together], truth.cov(X_NEW)[together], rtol=1e-6, atol=1e-7)


def test_points_go_to_the_nearest_block():
    p, function = make("pic", "estimated")
    p = clusters(p)
    made = predictive(p, function, SCALE)[0]
    centres = np.array([p.X[p.groups == g].mean(axis=0) for g in range(5)]) / p.X.std(axis=0)
    distances = np.sum((X_NEW[:, None] / p.X.std(axis=0) - centres) ** 2, axis=2)
    nearest = np.argmin(distances, axis=1)
    assert len(np.unique(nearest)) > 2
    np.testing.assert_array_equal(made.blocks.nearest(X_NEW), nearest)
    np.testing.assert_array_equal(made.cov(X_NEW), made.at(nearest).cov(X_NEW))


def test_blocks_have_the_users_names():
    p, function = make("pic")
    names = np.array(["f", "e", "d", "c", "b", "a"])
    made = predictive(p, function, SCALE, labels=names[p.groups])[0]
    numbered = predictive(p, function, SCALE)[0]
    np.testing.assert_allclose(
        made.at(names[GROUPS]).cov(X_NEW), numbered.at(GROUPS).cov(X_NEW), rtol=1e-12
    )


def test_far_from_the_data_the_prior_returns():
    _, _, made = fit()
    far = np.array([[60.0, 60.0], [60.0, -60.0]])
    np.testing.assert_allclose(made.var(far), np.tile(1.3 * SCALE**2, (2, 1)), rtol=1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_input_gradients(mean):
    _, _, made = fit(mean, True)
    here = made.at(GROUPS)
    slopes = here.gradients(X_NEW)
    np.testing.assert_allclose(
        slopes.mean, input_differences(here.mean, X_NEW), rtol=1e-5, atol=1e-7
    )
    np.testing.assert_allclose(slopes.var, input_differences(here.var, X_NEW), rtol=1e-5, atol=1e-7)


def test_draws_have_the_covariance():
    _, _, made = fit("integrated")
    here = made.at(GROUPS[:4])
    draws = here.sample(X_NEW[:4], 20_000, 3)
    for p in range(2):
        cov = here.cov(X_NEW[:4])[:, :, p]
        np.testing.assert_allclose(np.cov(draws[:, :, p]), cov, atol=0.05 * SCALE[p] ** 2)


def test_saving(tmp_path):
    _, _, made = fit("integrated", True)
    made.save(tmp_path / "pic")
    back = load(tmp_path / "pic")
    np.testing.assert_array_equal(back.at(GROUPS).cov(X_NEW), made.at(GROUPS).cov(X_NEW))
    np.testing.assert_array_equal(back.mean(X_NEW), made.mean(X_NEW))
    assert "6 blocks of 40 training rows" in back.describe() and back.n_outputs == 2
    np.testing.assert_array_equal(back.scale, SCALE)


def test_inputs_that_have_no_centres(tmp_path):
    words = np.array([f"{'a' * i}{'b' * (i % 3)}" for i in range(8)], dtype=object)
    kernel = Callable(overlap)
    p, _ = make("pic", n=8, kernel=kernel, X=words, Z=words[::3])
    made = predictive(p, Zero(), SCALE)[0]
    assert np.all(np.isfinite(made.at(p.groups).var(words)))
    with pytest.raises(ValueError, match="say by groups"):
        made.mean(words)


def overlap(a, b):
    return np.exp(-0.1 * (len(a) - len(b)) ** 2)


def test_what_is_refused():
    p, function, made = fit()
    with pytest.raises(ValueError, match=r"labels of training blocks.*got array\(\[7\]\)"):
        made.at([1, 7])
    with pytest.raises(ValueError, match="groups are of 2 points, and X has 9 rows"):
        made.at([1, 2]).mean(X_NEW)
    with pytest.raises(ValueError, match="must stand together"):
        predictive(replace(p, groups=np.arange(40) % 3), function, SCALE)
    with pytest.raises(ValueError, match="under one label of its own"):
        predictive(p, function, SCALE, labels=np.zeros(40))
    with pytest.raises(ValueError, match="a triangle"):
        BlockPredictive(predictive(*make("sor"), SCALE)[0], made.blocks)
    state = made.blocks.to_state()
    with pytest.raises(ValueError, match="a centre for each"):
        TrainingBlocks(**(state | {"centres": state["centres"][:2]}))


def test_error_bars_are_right_where_the_noise_is_next_to_none():
    """Variances far below that of the process, as of targets that are a formula of the inputs."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0.0, 6.0, (300, 1)), axis=0)
    kernel, noise = 1e4 * RBF(1.0), np.full(300, 1e-6)
    settings = kernel, X, 100.0 * np.sin(X), noise
    p = SparseProblem(*settings, X[::6], approximation("pic"), groups=np.repeat(np.arange(5), 60))
    new = rng.uniform(0.5, 5.5, (50, 1))
    _, var = predictive(p, Zero(), np.ones(1))[0].mean_and_var(new)
    assert np.all(var < 1e-5)


def test_a_column_of_one_value_keeps_points_from_no_block():
    p, mean = make("pic", kernel=1.3 * RBF([0.8, 1.4]))
    X = np.column_stack([np.sort(p.X[:, 0]), np.full(40, 3.0)])
    p = replace(p, X=X, Z=X[::6], groups=np.repeat(np.arange(5), 8))
    made = predictive(p, mean, SCALE)[0]
    np.testing.assert_array_equal(made.blocks.nearest(X[[0, 20, 39]]), [0, 2, 4])
    new = np.array([[X[39, 0], 3.5]])
    np.testing.assert_array_equal(made.mean(new), made.at([4]).mean(new))


def test_no_points():
    _, _, made = fit()
    assert made.mean(X_NEW[:0]).shape == (0, 2) and made.cov(X_NEW[:0]).shape == (0, 0, 2)
    assert made.mean_and_var(X_NEW[:0])[1].shape == made.gradients(X_NEW[:0]).mean.shape[::2]
