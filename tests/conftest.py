"""What tests of any package may ask for."""

from __future__ import annotations

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
