"""Tiles on threads: order, exceptions, nesting, many callers, forks."""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mercer.compute import blas_for, map_tiles, run_together, thread_count, threads
from mercer.kernels import RBF, Linear

pytestmark = pytest.mark.usefixtures("two_threads")


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


def test_results_stand_in_the_order_of_the_tiles():
    def slow_first(i):
        time.sleep(0.002 * (20 - i) / 20)
        return i * i

    assert map_tiles(slow_first, range(20)) == [i * i for i in range(20)]
    assert map_tiles(slow_first, []) == []
    assert map_tiles(slow_first, [3]) == [9]


@pytest.mark.parametrize("bad", [0, 5, 19])
def test_an_exception_reaches_the_caller_and_stops_the_rest(bad):
    done = []

    def work(i):
        if i == bad:
            raise RuntimeError(f"tile {i}")
        done.append(i)
        time.sleep(0.001)

    with pytest.raises(RuntimeError, match=f"tile {bad}"):
        map_tiles(work, range(20))
    assert bad not in done
    # the pool is as good as before
    assert map_tiles(lambda i: i, range(20)) == list(range(20))


def is_helper():
    return threading.current_thread() is not threading.main_thread()


def test_an_exception_of_a_helper_reaches_the_caller():
    failed = threading.Event()

    def work(i):
        if is_helper():
            failed.set()
            raise RuntimeError("a helper's")
        assert failed.wait(20.0), "there is no helper"

    with pytest.raises(RuntimeError, match="a helper's"):
        map_tiles(work, range(20))


def test_an_interrupt_is_passed_on_and_ends_the_work():
    done, begun = [], threading.Event()

    def work(i):
        if not is_helper():
            assert begun.wait(20.0), "there is no helper"
            raise KeyboardInterrupt
        begun.set()
        time.sleep(0.001)
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        map_tiles(work, range(400))
    assert len(done) < 200
    assert map_tiles(lambda i: i, range(8)) == list(range(8))


def test_nested_calls():
    def outer(i):
        return sum(map_tiles(lambda j: sum(map_tiles(lambda k: i * j * k, range(5))), range(5)))

    assert map_tiles(outer, range(12)) == [i * 10 * 10 for i in range(12)]


def test_many_callers_at_once():
    expected = [RBF(0.5 + i)(np.linspace(0.0, 1.0, 30)[:, None]) for i in range(8)]

    def call(i):
        total = [map_tiles(lambda j: i * j, range(50)) for _ in range(5)][-1]
        return total, RBF(0.5 + i)(np.linspace(0.0, 1.0, 30)[:, None])

    before = blas_threads()
    with ThreadPoolExecutor(8) as pool:
        for i, (numbers, K) in enumerate(pool.map(call, range(8))):
            assert numbers == [i * j for j in range(50)]
            np.testing.assert_array_equal(K, expected[i])
    assert blas_threads() == before


def test_the_blas_has_one_thread_while_tiles_run_and_its_own_afterwards():
    before = blas_threads()
    assert max(before) == thread_count() == 2
    seen = map_tiles(lambda i: (blas_threads(), thread_count()), range(8))
    assert all(max(blas) == 1 and count == 2 for blas, count in seen)
    assert blas_threads() == before
    with pytest.raises(RuntimeError):
        map_tiles(lambda i: (_ for _ in ()).throw(RuntimeError("x")), range(8))
    assert blas_threads() == before
    with blas_for(10):
        assert max(blas_threads()) == 1
        with blas_for(10_000):
            assert max(blas_threads()) == 1
    with blas_for(10_000):
        assert blas_threads() == before
    assert blas_threads() == before


def test_the_limit_of_the_blas_is_mercers():
    with threadpool_limits(1, user_api="blas"):
        assert thread_count() == 1
        workers = set(map_tiles(lambda i: threading.get_ident(), range(20)))
        assert workers == {threading.get_ident()}


def test_kernels_hold_the_blas_too():
    """Products of tiles are far too small for its threads."""
    seen = []

    class Watched(Linear):
        def _block(self, A, B):
            seen.append(max(blas_threads()))
            return super()._block(A, B)

    Watched()(np.ones((3, 2)))
    assert seen == [1]


def helped():
    """Whether tiles are taken by a thread of the pool as well."""
    came = threading.Event()
    map_tiles(lambda i: came.set() if is_helper() else came.wait(1.0), range(4))
    return came.is_set()


def _child(connection):
    X = np.random.default_rng(0).normal(size=(700, 2))
    k = 2.0 * RBF(0.7) + Linear(0.3)
    K = k(X)
    gradient = k.pullback(X, None, np.ones((700, 700)), inputs=False).theta
    numbers = map_tiles(lambda i: i, range(20))
    connection.send((float(K.sum()), gradient, numbers, helped()))
    connection.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.parametrize("when", ["idle", "tiles run", "the lock is held"])
def test_a_forked_child_computes(when):
    X = np.random.default_rng(0).normal(size=(700, 2))
    expected = float((2.0 * RBF(0.7) + Linear(0.3))(X).sum())
    assert helped()  # the pool is there
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(sender,))
    if when == "tiles run":
        map_tiles(lambda i: child.start() if i == 0 else time.sleep(0.002), range(8))
    elif when == "the lock is held":
        with threads._truce._lock:
            child.start()
    else:
        child.start()
    try:
        assert receiver.poll(20.0), "the child hangs"
        total, gradient, numbers, has_pool = receiver.recv()
    finally:
        child.join(1.0)
        child.kill()
    assert total == expected and numbers == list(range(20)) and gradient.shape == (3,)
    assert has_pool, "the child has no threads of its own"
    assert map_tiles(lambda i: i, range(20)) == list(range(20))


def _in_a_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_the_truce_holds_in_every_thread():
    """threadpoolctl lets only the first thread set limits, unless it gives control back."""

    def inside():
        with blas_for(10):
            return blas_threads()

    before = blas_threads()
    assert set(inside()) == {1}
    assert set(_in_a_thread(inside)) == {1}
    assert blas_threads() == before


def test_a_truce_begun_in_one_thread_and_ended_in_another_is_over():
    before = blas_threads()
    first, second = blas_for(10), blas_for(10)
    first.__enter__()
    _in_a_thread(second.__enter__)
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    _in_a_thread(lambda: second.__exit__(None, None, None))
    assert blas_threads() == before


def test_a_users_own_limit_in_another_thread_still_works():
    before = blas_threads()
    with blas_for(10):
        pass

    def limited():
        with threadpool_limits(1):
            return blas_threads()

    assert set(_in_a_thread(limited)) == {1}
    assert blas_threads() == before


def test_a_failing_tile_stops_the_others():
    done = []

    def function(i):
        if i == 3:
            raise RuntimeError("tile 3")
        time.sleep(0.002)
        done.append(i)

    assert helped()
    with pytest.raises(RuntimeError, match="tile 3"):
        map_tiles(function, range(200))
    assert len(done) < 50


def test_jobs_that_run_together_have_one_core_each():
    def job(i):
        inside = map_tiles(lambda tile: threading.get_ident(), list(range(8)))
        return i, thread_count(), set(inside) == {threading.get_ident()}

    before = thread_count()
    results = run_together([lambda i=i: job(i) for i in range(5)], 2)
    assert [r[0] for r in results] == list(range(5))
    assert all(alone for _, _, alone in results)  # tiles stay in the job's own thread
    assert thread_count() == before
    with pytest.raises(ZeroDivisionError):
        run_together([lambda: 1 / 0, lambda: 1], 2)
    assert thread_count() == before
