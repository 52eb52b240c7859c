"""What errors and warnings are, and whose line a warning names."""

from __future__ import annotations

import inspect
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from mercer import errors
from mercer.errors import FallbackWarning, MercerError, MercerWarning, warn

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value)]


@pytest.mark.parametrize("cls", CLASSES)
def test_all_can_be_caught_by_their_base(cls):
    if issubclass(cls, Warning):
        assert issubclass(cls, MercerWarning)
    else:
        assert issubclass(cls, MercerError)
        assert cls is MercerError or issubclass(cls, ValueError)


@pytest.mark.parametrize("module", ["mercer.linalg.loops", "sklearn.pipeline", "joblib.parallel"])
def test_a_warning_names_the_nearest_line_outside(module):
    inside = {"__name__": module, "warn": warn, "category": FallbackWarning}
    exec("def inner():\n    warn('slower', category)\ndef outer():\n    inner()", inside)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        inside["outer"]()
    assert [(w.category, w.filename, w.lineno) for w in caught] == [
        (FallbackWarning, __file__, line)
    ]


@pytest.mark.parametrize("start", ["threading", "concurrent.futures"])
def test_in_a_worker_it_names_the_line_that_warns(start):
    """Nobody called that thread: its own machinery is no more use to the reader than ours."""
    inside = {"__name__": "mercer.linalg.loops", "warn": warn, "category": FallbackWarning}
    code = "def inner():\n    warn('slower', category)\ndef outer():\n    inner()"
    exec(compile(code, "loops.py", "exec"), inside)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if start == "threading":
            thread = threading.Thread(target=inside["outer"])
            thread.start()
            thread.join()
        else:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(inside["outer"]).result()
    assert [(w.filename, w.lineno) for w in caught] == [("loops.py", 2)]
