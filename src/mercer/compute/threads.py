"""The thread pool that runs tiles, and the truce between it and the BLAS's own threads."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import scipy.linalg  # noqa: F401  (its BLAS must be loaded before threadpoolctl looks for it)
from threadpoolctl import ThreadpoolController

__all__ = ["blas_for", "map_tiles", "run_together", "thread_count"]

Tile = TypeVar("Tile")
Result = TypeVar("Result")


class _Blas:
    """The BLAS libraries that are loaded, by how their number of threads is set."""

    def __init__(self) -> None:
        found = [c for c in ThreadpoolController().lib_controllers if c.user_api == "blas"]
        # An OpenBLAS built on OpenMP has a limit for each calling thread, any other has one for
        # the process.
        self.by_thread = [c for c in found if getattr(c, "threading_layer", "") == "openmp"]
        self.by_process = [c for c in found if c not in self.by_thread]

    @staticmethod
    def set(library: Any, threads: int) -> None:
        """Set a limit from any thread.

        threadpoolctl lets one thread "control" OpenBLAS, the first that sets a limit, and ignores
        all others until that one gives control back. Whoever begins a truce need not be the one
        to end it, so control is given back at once.
        """
        release = getattr(type(library), "clear_controlling_thread", None)
        if release is not None:
            release(force=True)
        library.set_num_threads(threads)
        if release is not None:
            release(force=True)

    @contextmanager
    def one_for_this_thread(self) -> Iterator[None]:
        """Hold the libraries that have a limit a thread at one, in the calling thread."""
        saved = [library.num_threads for library in self.by_thread]
        for library in self.by_thread:
            self.set(library, 1)
        try:
            yield
        finally:
            for library, threads in zip(self.by_thread, saved, strict=True):
                self.set(library, threads)


_blas = cache(_Blas)


class _Truce:
    """Holds the BLAS at one thread while tiles run, however many callers run them at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers = 0
        self._saved: list[int] = []

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the BLAS at one thread."""
        blas = _blas()
        with self._lock:
            if self._callers == 0:
                self._saved = [library.num_threads for library in blas.by_process]
                for library in blas.by_process:
                    blas.set(library, 1)
            self._callers += 1
        try:
            with blas.one_for_this_thread():
                yield
        finally:
            with self._lock:
                self._callers -= 1
                if self._callers == 0:
                    self._restore()

    def allowed(self) -> int:
        """Return the number of threads the BLAS has when no tiles run."""
        blas = _blas()
        with self._lock:
            counts = [library.num_threads for library in blas.by_thread]
            counts += self._saved if self._callers else [c.num_threads for c in blas.by_process]
            return max(counts, default=1)

    def _restore(self) -> None:
        blas = _blas()
        for library, threads in zip(blas.by_process, self._saved, strict=True):
            blas.set(library, threads)

    def after_fork(self) -> None:
        """Forget the callers: none of their threads exists in the child."""
        if self._callers:
            self._restore()
        self._lock = threading.Lock()
        self._callers = 0


_truce = _Truce()
_pool: ThreadPoolExecutor | None = None
_local = threading.local()  # .alone: this thread is one of several that share the cores already


def _forget_pool() -> None:
    # A forked child inherits the pool object but none of its threads.
    global _pool
    _pool = None
    _truce.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """Return how many threads Mercer uses: as many as the BLAS may, and no more than the cores.

    Whatever limits the BLAS (``threadpoolctl.threadpool_limits``, ``OMP_NUM_THREADS``, a joblib
    worker) therefore limits Mercer too.
    """
    return max(1, min(_truce.allowed(), _cores()))


# Below this order a second BLAS thread gains at best a quarter, and on a machine that has other
# work it loses a factor of ten and more, waiting for its turn at every step of a factorisation.
_SMALL = 700


@contextmanager
def blas_for(n: int) -> Iterator[None]:
    """Hold the BLAS at one thread while matrices of a small order n are worked on."""
    if n >= _SMALL:
        yield
    else:
        with _truce.hold():
            yield


def map_tiles(function: Callable[[Tile], Result], tiles: Sequence[Tile]) -> list[Result]:
    """Return ``[function(tile) for tile in tiles]``, computed on Mercer's threads.

    The caller's thread takes tiles too, so that a pool which is busy or not there delays nothing
    and nested calls cannot wait for each other. Results stand in the order of the tiles: whoever
    adds them up gets the same bits whatever the number of threads.
    """
    helpers = min(thread_count(), len(tiles) // 2) - 1
    if helpers < 1 or getattr(_local, "alone", False):
        return [function(tile) for tile in tiles]
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max(1, _cores() - 1), thread_name_prefix="mercer")
    results: list[Any] = [None] * len(tiles)
    numbers = itertools.count()
    stop = threading.Event()

    def work() -> None:
        try:
            with _blas().one_for_this_thread():
                for i in numbers:
                    if i >= len(tiles) or stop.is_set():
                        return
                    results[i] = function(tiles[i])
        except BaseException:
            stop.set()
            raise

    with _truce.hold():
        futures = [_pool.submit(work) for _ in range(helpers)]
        try:
            work()
        finally:
            # A helper that has not started has nothing left to do; one that has must finish.
            for future in futures:
                if not future.cancel():
                    future.exception()
        for future in futures:
            if not future.cancelled():
                future.result()
    return results


def run_together(jobs: Sequence[Callable[[], Result]], n_threads: int) -> list[Result]:
    """Return the results of long jobs, run at once on `n_threads` threads of their own.

    Each job has one core: the BLAS is held at one thread, and tiles run in the job's thread.
    Ctrl-C reaches the caller's thread alone; it is passed on as soon as the jobs have ended, so a
    caller that can stop its jobs should make them end (see `heard`).
    """

    def alone(job: Callable[[], Result]) -> Result:
        _local.alone = True
        with _blas().one_for_this_thread():
            return job()

    with _truce.hold(), ThreadPoolExecutor(n_threads, thread_name_prefix="mercer-job") as pool:
        return list(pool.map(alone, jobs))
