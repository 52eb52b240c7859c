"""Threads, tiles, blocks of memory, and workers of every kind."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed
from threadpoolctl import threadpool_info, threadpool_limits

from mercer import GPRegressor
from mercer.compute import threads
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

from .data import make

pytestmark = pytest.mark.usefixtures("two_threads")


def test_thread_counts_and_tiles_agree(monkeypatch):
    X, y = make(600, 4)

    def run():
        model = GPRegressor(1.3 * RBF([1.0, 2.0, 3.0, 4.0]), Gaussian(0.1), optimizer=None)
        model.fit(X, y)
        value, gradient = model.log_marginal_likelihood(eval_gradient=True)
        mean, std = model.predict(X[:50] + 0.1, return_std=True)
        return np.concatenate([[value], gradient, mean, std])

    reference = run()
    np.testing.assert_array_equal(run(), reference)
    with threadpool_limits(1):
        np.testing.assert_allclose(run(), reference, rtol=1e-10, atol=1e-10)
    for tile in (64, 100):
        monkeypatch.setattr("mercer.kernels.assembly.TILE", tile)
        np.testing.assert_allclose(run(), reference, rtol=1e-10, atol=1e-10)


def test_prediction_blocks_agree(monkeypatch):
    X, y = make(100)
    model = GPRegressor(optimizer=None).fit(X, y)
    X_new = np.random.default_rng(1).normal(size=(500, 3))
    reference = model.predict(X_new, return_std=True)
    monkeypatch.setattr("mercer.posterior.posterior._BLOCK_BYTES", 100 * 8 * 7)
    for a, b in zip(reference, model.predict(X_new, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def _fit_and_predict(seed):
    X, y = make(300, seed=seed)
    model = GPRegressor().fit(X, y)
    blas = [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]
    return model.predict(X[:5]), max(blas)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_forked_workers(monkeypatch):
    monkeypatch.setattr("mercer.kernels.assembly.TILE", 64)  # enough tiles for a helper
    monkeypatch.setattr(threads, "_pool", None)
    _fit_and_predict(0)
    assert threads._pool is not None  # threads exist before the fork
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        results = list(pool.map(_fit_and_predict, [0, 1], timeout=120))
    for seed, (predicted, _) in enumerate(results):
        np.testing.assert_allclose(predicted, _fit_and_predict(seed)[0], rtol=1e-8)


def test_threaded_workers_leave_the_blas_as_it_was():
    before = [library["num_threads"] for library in threadpool_info()]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(_fit_and_predict, range(4)))
    for seed, (predicted, _) in enumerate(results):
        np.testing.assert_allclose(predicted, _fit_and_predict(seed)[0], rtol=1e-6)
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_threaded_fits_do_not_fight_for_cores():
    """Oversubscribed BLAS threads made this forty times slower than one after the other."""
    import time

    def seconds(run):
        started = time.perf_counter()
        run()
        return time.perf_counter() - started

    serial = seconds(lambda: [_fit_and_predict(s) for s in range(4)])
    with ThreadPoolExecutor(2) as pool:
        threaded = seconds(lambda: list(pool.map(_fit_and_predict, range(4))))
    # generous: a machine that does other work must not fail this, fighting threads must
    assert threaded < 5.0 * serial + 2.0


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_workers(backend):
    results = Parallel(n_jobs=2, backend=backend)(delayed(_fit_and_predict)(s) for s in (0, 1))
    for seed, (predicted, blas) in enumerate(results):
        np.testing.assert_allclose(predicted, _fit_and_predict(seed)[0], rtol=1e-6)
        if backend == "loky":
            assert blas == max(1, cpu_count() // 2)


def test_a_million_points_need_bounded_memory():
    import tracemalloc

    X, y = make(50)
    model = GPRegressor(optimizer=None).fit(X, y)
    X_new = np.zeros((1_000_000, 3))
    tracemalloc.start()
    mean, std = model.predict(X_new, return_std=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # the results, a few temporaries of their size, and one block
    assert peak < 8 * (mean.nbytes + std.nbytes) + 2**27
