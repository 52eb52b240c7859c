"""What tests of any package may ask for."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mercer import linalg
from mercer.compute import thread_count, threads


def pytest_configure(config):
    """Forget compiled loops that are older than a file they call.

    Numba looks at the file of a function alone, and would go on with what it has inlined.
    """
    if hasattr(config, "workerinput"):
        return
    folder = Path(linalg.__file__).parent
    newest = max(source.stat().st_mtime for source in folder.glob("_*.py"))
    for index in (folder / "__pycache__").glob("*.nbi"):
        if index.stat().st_mtime < newest:
            index.unlink()
    if config.getoption("numprocesses", None) and not [*(folder / "__pycache__").glob("*.nbi")]:
        compile_ahead(
            sorted(f"mercer.linalg.{source.stem}" for source in folder.glob("_[a-z]*.py"))
        )


def compile_ahead(modules):
    """Compile the loops in two processes, from both ends of the list, before workers are begun.

    All workers want them within a second of each other, and each would compile every one.
    """
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    environment = {**os.environ, "PYTHONPATH": str(Path(linalg.__file__).parents[2])}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, *names], env=environment, stderr=subprocess.DEVNULL
        )
        for names in (modules, modules[::-1])
    ]
    for process in processes:
        process.wait()  # without Numba they fail, and there is nothing to compile


def pytest_collection_finish():
    """Spare the garbage collector the objects of all tests, some million, that stay to the end.

    A full collection takes most of a second otherwise, and benchmarks make one before each run.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def two_threads(monkeypatch):
    """Two threads of Mercer's, here and in processes begun here, whatever the machine and `make`.

    `make test` gives the BLAS one, and then Mercer has no pool.
    """
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    cores = threads._cores()
    monkeypatch.setattr(threads, "_cores", lambda: max(2, cores))
    with threadpool_limits(2, user_api="blas"):
        if not any(library["num_threads"] == 2 for library in threadpool_info()):
            pytest.skip("the threads of this BLAS cannot be set")
        assert thread_count() == 2
        yield


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_not_ignored():
    """Ctrl-C is heard also where tests run in the background, to which it means nothing."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def ctrl_c():
    """A function that presses Ctrl-C the first time it is called, and returns when it was heard.

    The thread that hears it is the main one, which waits for the caller where that is another: on a
    busy machine searches could end before it has its turn.
    """
    before = signal.getsignal(signal.SIGINT)
    pressed = threading.Lock()

    def press():
        if pressed.acquire(blocking=False):
            os.kill(os.getpid(), signal.SIGINT)
            end = time.monotonic() + 60.0
            while signal.getsignal(signal.SIGINT) is not before:
                assert time.monotonic() < end, "nobody listens"
                time.sleep(0.001)

    yield press
    after = signal.signal(signal.SIGINT, before)
    assert after is before, "the handler was not put back"
