"""What errors and warnings are, and whose line a warning names."""

from __future__ import annotations

import inspect
import warnings

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
