"""Collecting scikit-learn's own tests of a class with another class in its place."""

from __future__ import annotations

import importlib.util
import sys

import pytest

MOST_EXCUSED = 5


def collect(name, original, replacement, different, namespace):
    """Put the tests and fixtures of a module into a namespace; return the module.

    It is run under a name of its own, so that scikit-learn's stays as it is. `different` has the
    deliberate differences: the name of a test, and the reason why it does not hold.
    """
    spec = importlib.util.find_spec(name)
    if spec is None:
        pytest.skip("this scikit-learn comes without its tests", allow_module_level=True)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    swapped = [key for key, value in vars(module).items() if value is original]
    assert swapped == [original.__name__]
    setattr(module, original.__name__, replacement)
    for key, value in vars(module).items():
        if key.startswith("test_") and callable(value):
            namespace[key] = _collected(value, different.get(key))
        elif type(value).__module__.startswith("_pytest.fixtures"):
            namespace[key] = value
    return module


def _collected(test, difference):
    marks = list(getattr(test, "pytestmark", []))
    # Those that scikit-learn expects to fail now and then may do so here. (They are gradients
    # beside differences too coarse for them: test_regressor.py and test_classifier.py have better
    # ones.)
    test.pytestmark = [
        pytest.mark.xfail(**m.kwargs | {"strict": False}).mark if m.name == "xfail" else m
        for m in marks
    ]
    if difference is not None:
        test = pytest.mark.xfail(reason=difference, strict=True)(test)
    return test


def check_collection(module, original, replacement, different, namespace, least):
    """Fail unless every test is there, with the class swapped, and few are excused."""
    theirs = {name for name in vars(module) if name.startswith("test_")}
    assert len(theirs) >= least
    for name in theirs:
        assert namespace[name].__globals__[original.__name__] is replacement
    imported = sys.modules.get(module.__name__)
    assert imported is None or getattr(imported, original.__name__) is original
    assert len(different) <= MOST_EXCUSED
    assert set(different) <= theirs
